//! Converts an image request into an [`ImageJob`].

use serde_json::{Map, Value};
use tollgate_core::ApiError;

use super::family::Family;
use super::job::{ImageJob, Size};
use crate::fields::draft::Draft;
use crate::fields::parse::{apply_rules, parse_fields};
use crate::submission::CommonParts;

/// A validated image request.
pub type Submission = crate::submission::Submission<ImageJob>;

/// Validates `body`, a request for the model `name` of `family`, which follows the rules of `base_model`.
///
/// With `strict`, fields that would be ignored are an error. `null` counts as absent everywhere.
///
/// # Errors
/// 400 that names the field, the value received and the values allowed.
pub fn parse_request(
    name: &str,
    base_model: &'static str,
    family: &'static Family,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission, ApiError> {
    let spec = family.request_spec();
    let mut draft = Draft::new(name, base_model, spec.input_limits);
    parse_fields(&spec, &mut draft, body, strict)?;
    apply_rules(spec.rules, &mut draft)?;
    let (size, requested) = family.sizes.resolve(&mut draft)?;
    let parts = CommonParts::take(&mut draft);
    let job = into_job(draft, family, size);
    let quality = job.quality.clone();
    Ok(Submission::new(parts, job, requested, quality))
}

/// The job without its input images. Fields that only this family has are moved into `extra`.
fn into_job(mut draft: Draft<'_>, family: &Family, size: Size) -> ImageJob {
    for used in ["size", "resolution"] {
        draft.remove(used);
    }
    ImageJob {
        model: draft.model.to_owned(),
        family: family.name.to_owned(),
        prompt: draft.take("prompt").unwrap_or_default(),
        negative_prompt: draft.take("negative_prompt"),
        n: draft.take("n").unwrap_or(1),
        size,
        quality: draft.take("quality"),
        output_format: draft.take("output_format").unwrap_or(family.output),
        output_compression: draft.take("output_compression"),
        background: draft.take("background"),
        moderation: draft.take("moderation"),
        seed: draft.take("seed"),
        watermark: draft.take("watermark"),
        references: Vec::new(),
        mask: None,
        extra: draft.into_remaining(),
    }
}
