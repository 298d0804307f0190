//! A family: everything that one section of SPEC.md says about its models, as one declaration.

use std::fmt;

use tollgate_core::ApiError;

use super::draft::Draft;
use super::facts::ImageFacts;
use super::field::Field;
use super::input::InputRules;
use super::job::{ImageFormat, ImageJob};
use super::shape::Shape;
use super::size::Sizes;
use crate::Endpoint;

/// Image models that share one parameter section of SPEC.md. Validation, the OpenAPI schema and the
/// docs page are all read off this.
pub struct Family {
    /// Its short name: `like = …` in the configuration, the name of its docs page, `ImageJob::family`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// A few sentences that open its docs page.
    pub about: &'static str,
    /// Its model ids. The first is the usual one.
    pub models: &'static [&'static str],
    /// Where it is asked.
    pub endpoint: Endpoint,
    /// Its request fields, `model` aside, in SPEC.md's order.
    pub fields: &'static [Field],
    /// Fields that it takes without effect, each with the reason; they become adjustments.
    pub ignored: &'static [(&'static str, &'static str)],
    /// The sizes it makes.
    pub sizes: Sizes,
    /// What its reference images and mask must be.
    pub inputs: InputRules,
    /// The format of its results when no `output_format` field says otherwise.
    pub output: ImageFormat,
    /// What no table says. Applied in order after every field was read by itself.
    pub rules: &'static [Rule],
    /// A check of the normalised job that needs the references' sizes.
    pub with_facts: Option<JobCheck>,
    /// How its receipts and records look.
    pub shape: &'static Shape,
    /// How long its results are kept.
    pub links: LinkLife,
    /// Whether prompts pass the safety review unless the configuration says otherwise.
    pub safety_review: bool,
}

/// Checks a job against what is known of its references, in their order.
pub type JobCheck = fn(&ImageJob, &[Option<ImageFacts>]) -> Result<(), ApiError>;

/// One odd rule.
pub struct Rule {
    /// What it says, for the docs page.
    pub text: &'static str,
    pub(crate) apply: fn(&mut Draft<'_>) -> Result<(), ApiError>,
}

/// How long links to results work (CONTRACT.md › `expiry.images_s`, `expiry.long_s`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkLife {
    /// 24 hours unless configured otherwise.
    Usual,
    /// 72 hours unless configured otherwise.
    Long,
}

impl LinkLife {
    /// The hours that SPEC.md promises.
    pub fn hours(self) -> u32 {
        match self {
            Self::Usual => 24,
            Self::Long => 72,
        }
    }
}

impl fmt::Debug for Family {
    /// Its name: the declaration is too long for a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({})", self.name)
    }
}

impl Family {
    /// The family of that name, such as a stored job's.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        super::FAMILIES
            .iter()
            .find(|family| family.name == name)
            .copied()
    }

    /// Settles what depends on the references: a size that follows one of them is filled in as soon
    /// as that one's facts are known, and whatever the family checks against the references' sizes
    /// is checked. `references` are in the job's order, none where not known yet; may be called again
    /// when more is known.
    pub fn settle(
        &self,
        job: &mut ImageJob,
        references: &[Option<ImageFacts>],
    ) -> Result<(), ApiError> {
        if job.size.pixels.is_none() {
            self.sizes.follow(&mut job.size, references);
        }
        self.with_facts
            .map_or(Ok(()), |check| check(job, references))
    }
}
