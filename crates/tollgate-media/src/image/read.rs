//! From a request body to an image job: every field read by its family's declaration.

use serde_json::{Map, Value};
use tollgate_core::ApiError;

use super::family::Family;
use super::job::{ImageJob, Size};
use crate::catalogue::ImageModel;
use crate::form::{self, Draft};
use crate::submission::Found;

/// An image request that was found good.
pub type Submission = crate::Submission<ImageJob>;

/// Reads a request for `model`. With `strict`, fields that would be ignored are an error.
///
/// `null` counts as absent everywhere. Errors are 400 and name the field, what came and what is allowed.
pub fn read(
    model: &ImageModel,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission, ApiError> {
    read_for(&model.name, model.like, model.family, body, strict)
}

/// Reads a request for the model `name` of `family`, whose rules are those of `like`.
pub(crate) fn read_for(
    name: &str,
    like: &'static str,
    family: &'static Family,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission, ApiError> {
    let mut draft = Draft::new(name, like, family.form());
    form::read_fields(&mut draft, body, strict)?;
    form::apply_rules(&mut draft)?;
    let (size, asked) = family.sizes.choose(&mut draft)?;
    let found = Found::take(&mut draft);
    let job = job(draft, family, size);
    let quality = job.quality.clone();
    Ok(Submission::new(found, job, asked, quality))
}

/// The job, its pictures still to come. Every field that is no word of all families goes into `extra`.
fn job(mut draft: Draft<'_>, family: &Family, size: Size) -> ImageJob {
    for spent in ["size", "resolution"] {
        draft.remove(spent);
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
        extra: draft.rest(),
    }
}
