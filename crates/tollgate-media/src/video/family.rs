//! [`Family`]: the declaration of video models with the same parameters.

use std::fmt;

use super::job::{ImageUse, VideoJob};
use super::size::FrameSizes;
use crate::fields::duration::Durations;
use crate::fields::field::Field;
use crate::fields::spec::{RequestSpec, Rule};
use crate::image::metadata::ImageMetadata;
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;

/// Video models with the same parameters. The parser, the OpenAPI schema and the docs page derive from it.
pub struct Family {
    /// The family's identifier: `like = …` in the configuration, the name of its docs page, `VideoJob::family`.
    pub name: &'static str,
    /// The family's display name.
    pub title: &'static str,
    /// A few sentences at the beginning of the docs page.
    pub about: &'static str,
    /// The family's model ids, the primary one first.
    pub models: &'static [&'static str],
    /// The family's request fields except `model`, in the order of the docs page.
    pub fields: &'static [Field],
    /// Fields that are accepted without effect, each with the reason; they become adjustments.
    pub ignored: &'static [(&'static str, &'static str)],
    /// The durations of the family's videos.
    pub durations: &'static Durations,
    /// The sizes of the family's videos.
    pub sizes: FrameSizes,
    /// The maximum number of images that are used as frames: 1 for the first frame, 2 for first and last frame. If a request has more images, they
    /// are references.
    pub frames: usize,
    /// The limits of reference images.
    pub input_limits: InputLimits,
    /// Rules that involve more than one field, applied in order when duration and size are known.
    pub rules: &'static [Rule],
    /// How long links to results stay valid.
    pub link_ttl: LinkTtl,
    /// Whether prompts pass the safety review by default.
    pub safety_review: bool,
}

impl fmt::Debug for Family {
    /// Writes only the name: the declaration is too long for a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({})", self.name)
    }
}

impl Family {
    /// Fills in a size that follows the first frame, if the metadata of that image is known.
    pub fn apply_reference_metadata(&self, job: &mut VideoJob, images: &[Option<ImageMetadata>]) {
        if let (None, Some(Some(first))) = (job.size.pixels, images.first()) {
            self.sizes.fill_from_first_frame(&mut job.size, first.size);
        }
    }

    /// How a job uses `count` images. `None` if `count` is 0.
    pub(crate) fn image_use(&self, count: usize) -> Option<ImageUse> {
        match count {
            0 => None,
            more if more > self.frames => Some(ImageUse::References),
            1 => Some(ImageUse::FirstFrame),
            _ => Some(ImageUse::FirstAndLast),
        }
    }

    /// The declaration of the family's requests.
    pub(crate) fn request_spec(&'static self) -> RequestSpec {
        RequestSpec {
            title: self.title,
            about: self.about,
            models: self.models,
            model_field: "model",
            fields: self.fields,
            ignored: self.ignored,
            input_limits: self.input_limits,
            rules: self.rules,
            sizes: &self.sizes,
        }
    }
}
