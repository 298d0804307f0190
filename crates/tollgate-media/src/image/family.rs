//! A family: everything that one section of SPEC.md says about its models, as one declaration.

use std::fmt;

use tollgate_core::ApiError;

use super::facts::ImageFacts;
use super::field::Field;
use super::job::{ImageFormat, ImageJob};
use super::size::Sizes;
use crate::Endpoint;
use crate::form::Form;
use crate::input::{InputRole, InputRules};
use crate::shape::Shape;

pub use crate::family::LinkLife;
pub use crate::form::Rule;

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

    /// Checks a picture's file against the family's limits. `field` names it in errors;
    /// `first_reference`, where known, is what a mask's size must equal.
    pub fn check_input(
        &self,
        role: InputRole,
        field: &str,
        facts: &ImageFacts,
        first_reference: Option<&ImageFacts>,
    ) -> Result<(), ApiError> {
        self.inputs.check(field, facts)?;
        if role != InputRole::Mask {
            return Ok(());
        }
        if !facts.has_alpha {
            return Err(ApiError::invalid(format!(
                "`{field}` must have an alpha channel, got a {} without one",
                facts.format.name()
            )));
        }
        match first_reference {
            Some(first) if first.size != facts.size => Err(ApiError::invalid(format!(
                "`{field}` must have the size of the first reference image ({}), got {}",
                first.size, facts.size
            ))),
            _ => Ok(()),
        }
    }

    /// What its requests hold.
    pub(crate) fn form(&'static self) -> Form {
        Form {
            title: self.title,
            about: self.about,
            models: self.models,
            model_field: "model",
            fields: self.fields,
            ignored: self.ignored,
            inputs: self.inputs,
            rules: self.rules,
            sizes: &self.sizes,
        }
    }
}
