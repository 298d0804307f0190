//! [`Family`]: the declaration of image models with the same parameters.

use std::fmt;

use tollgate_core::ApiError;

use super::format::ImageFormat;
use super::job::ImageJob;
use super::metadata::ImageMetadata;
use super::size::Sizes;
use crate::endpoint::Endpoint;
use crate::fields::field::Field;
use crate::fields::spec::{RequestSpec, Rule};
use crate::input::input_image::InputRole;
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;
use crate::response::format::ResponseFormat;

/// Image models with the same parameters. The parser, the OpenAPI schema and the docs page derive from it.
pub struct Family {
    /// The family's identifier: `like = …` in the configuration, the name of its docs page, `ImageJob::family`.
    pub name: &'static str,
    /// The family's display name.
    pub title: &'static str,
    /// A few sentences at the beginning of the docs page.
    pub about: &'static str,
    /// The family's model ids, the primary one first.
    pub models: &'static [&'static str],
    /// Whether the ids are names of one model, for which prices, channels and keys use the first. Otherwise each id is a model.
    pub one_model: bool,
    /// The endpoint that serves the family.
    pub endpoint: Endpoint,
    /// The family's request fields except `model`, in the order of the docs page.
    pub fields: &'static [Field],
    /// Fields that are accepted without effect, each with the reason; they become adjustments.
    pub ignored: &'static [(&'static str, &'static str)],
    /// The sizes that the family can generate.
    pub sizes: Sizes,
    /// The limits of reference images and mask.
    pub input_limits: InputLimits,
    /// The format of results if the family has no field `output_format`.
    pub output: ImageFormat,
    /// Rules that involve more than one field, applied in order after every field has been validated separately.
    pub rules: &'static [Rule],
    /// A check of the job that needs the sizes of its references.
    pub reference_check: Option<ReferenceCheck>,
    /// The JSON format of receipts and records.
    pub response: &'static ResponseFormat,
    /// How long links to results stay valid.
    pub link_ttl: LinkTtl,
    /// Whether prompts pass the safety review by default.
    pub safety_review: bool,
}

/// Checks a job against the metadata of its references, in their order; `None` for metadata that is not known yet.
pub type ReferenceCheck = fn(&ImageJob, &[Option<ImageMetadata>]) -> Result<(), ApiError>;

impl fmt::Debug for Family {
    /// Writes only the name: the declaration is too long for a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family({})", self.name)
    }
}

impl Family {
    /// Fills in a size that follows a reference image, and checks the job against its references' sizes. `references`
    /// are in the job's order, `None` for those whose metadata is not known yet.
    ///
    /// # Errors
    /// 400 if the references are not valid for the job.
    pub fn apply_reference_metadata(
        &self,
        job: &mut ImageJob,
        references: &[Option<ImageMetadata>],
    ) -> Result<(), ApiError> {
        if job.size.pixels.is_none() {
            self.sizes.fill_from_references(&mut job.size, references);
        }
        self.reference_check
            .map_or(Ok(()), |check| check(job, references))
    }

    /// Checks an image file against the family's limits. `field` names it in errors; `first_reference`, if known, has
    /// the size that a mask must have.
    ///
    /// # Errors
    /// 400 that names the field and the limit.
    pub fn check_input_image(
        &self,
        role: InputRole,
        field: &str,
        metadata: &ImageMetadata,
        first_reference: Option<&ImageMetadata>,
    ) -> Result<(), ApiError> {
        self.input_limits.check(field, metadata)?;
        if role != InputRole::Mask {
            return Ok(());
        }
        if !metadata.has_alpha {
            return Err(ApiError::invalid(format!(
                "`{field}` must have an alpha channel, got a {} without one",
                metadata.format.name()
            )));
        }
        match first_reference {
            Some(first) if first.size != metadata.size => Err(ApiError::invalid(format!(
                "`{field}` must have the size of the first reference image ({}), got {}",
                first.size, metadata.size
            ))),
            _ => Ok(()),
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
