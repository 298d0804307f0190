//! A video family: everything that SPEC.md and a provider say about its models, as one declaration.

use std::fmt;

use super::job::{ImageUse, VideoJob};
use super::size::FrameSizes;
use crate::LinkLife;
use crate::form::field::Field;
use crate::form::length::Lengths;
use crate::form::{Form, Rule};
use crate::image::ImageFacts;
use crate::input::InputRules;

/// Video models that share their parameters. Validation, the OpenAPI schema and the docs page are all read off this.
pub struct Family {
    /// Its short name: `like = …` in the configuration, the name of its docs page, `VideoJob::family`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// A few sentences that open its docs page.
    pub about: &'static str,
    /// Its model ids. The first is the usual one.
    pub models: &'static [&'static str],
    /// Its request fields, `model` aside, in SPEC.md's order.
    pub fields: &'static [Field],
    /// Fields that it takes without effect, each with the reason; they become adjustments.
    pub ignored: &'static [(&'static str, &'static str)],
    /// How long its films last.
    pub lengths: &'static Lengths,
    /// The frames it makes.
    pub sizes: FrameSizes,
    /// How many images it takes as frames: 1, the first one; 2, the last one too. More than that are references.
    pub frames: usize,
    /// What its images must be.
    pub inputs: InputRules,
    /// What no table says. Applied in order when length and size are known.
    pub rules: &'static [Rule],
    /// How long its results are kept.
    pub links: LinkLife,
    /// Whether prompts pass the safety review unless the configuration says otherwise.
    pub safety_review: bool,
}

impl fmt::Debug for Family {
    /// Its name: the declaration is too long for a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({})", self.name)
    }
}

impl Family {
    /// Fills in a size that follows the first frame, as soon as that one's facts are known.
    pub fn settle(&self, job: &mut VideoJob, images: &[Option<ImageFacts>]) {
        if let (None, Some(Some(first))) = (job.size.pixels, images.first()) {
            self.sizes.follow(&mut job.size, first.size);
        }
    }

    /// What that many images are to the film.
    pub(crate) fn image_use(&self, count: usize) -> Option<ImageUse> {
        match count {
            0 => None,
            more if more > self.frames => Some(ImageUse::References),
            1 => Some(ImageUse::FirstFrame),
            _ => Some(ImageUse::FirstAndLast),
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
