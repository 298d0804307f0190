//! Converts a video request into a [`VideoJob`].

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tollgate_core::{Adjustment, ApiError};

use super::family::Family;
use super::job::{ImageUse, VideoJob, VideoSize};
use super::rules::DURATION_FIELDS;
use crate::fields::draft::Draft;
use crate::fields::duration::Durations;
use crate::fields::field::{Field, FieldKind};
use crate::fields::parse::{apply_rules, parse_fields};
use crate::submission::{CommonParts, Submission};

/// Validates `body`, a request for the model `name` of `family`, which follows the rules of `base_model`. With
/// `strict`, fields that would be ignored are an error.
///
/// # Errors
/// 400 that names the field, the value received and the values allowed.
pub(crate) fn parse_request(
    name: &str,
    base_model: &'static str,
    family: &'static Family,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission<VideoJob>, ApiError> {
    let spec = family.request_spec();
    let mut draft = Draft::new(name, base_model, spec.input_limits);
    parse_fields(&spec, &mut draft, body, strict)?;
    let seconds = resolve_duration(&mut draft, family.durations)?;
    let image_use = family.image_use(draft.references());
    let has_first_frame = matches!(
        image_use,
        Some(ImageUse::FirstFrame | ImageUse::FirstAndLast)
    );
    let (size, requested) = family.sizes.resolve(&mut draft, has_first_frame)?;
    // The rules check the resolved duration and tier.
    draft.set("seconds", seconds);
    draft.set("resolution", size.resolution.clone());
    apply_rules(spec.rules, &mut draft)?;
    let image_use = family.image_use(draft.references());
    let parts = CommonParts::take(&mut draft);
    let job = into_job(draft, family, size, image_use);
    Ok(Submission::new(parts, job, requested, None))
}

/// The duration in seconds, from whichever field contains it. `metadata` takes precedence over the other two, which must not contradict each other.
fn resolve_duration(draft: &mut Draft<'_>, durations: &Durations) -> Result<i64, ApiError> {
    let [first, second] = DURATION_FIELDS.map(|field| draft.int(field));
    if let (Some(seconds), Some(duration)) = (first, second)
        && seconds != duration
    {
        return Err(ApiError::invalid(format!(
            "`seconds` and `duration` must not differ, got {seconds} and {duration}"
        )));
    }
    let nested = draft.member("metadata", "durationSeconds");
    if let Some(nested_value) = nested.and_then(Value::as_i64) {
        for (field, requested) in DURATION_FIELDS.iter().zip([first, second]) {
            if let Some(requested) = requested.filter(|requested| *requested != nested_value) {
                let why = "`metadata.durationSeconds` takes precedence";
                draft
                    .adjustments
                    .push(Adjustment::new(*field, requested, nested_value, why));
            }
        }
        return Ok(nested_value);
    }
    Ok(first.or(second).unwrap_or_else(|| durations.default()))
}

/// The job without its input images.
fn into_job(
    mut draft: Draft<'_>,
    family: &Family,
    size: VideoSize,
    image_use: Option<ImageUse>,
) -> VideoJob {
    let seconds = draft.take("seconds").unwrap_or_default();
    for used in ["duration", "size", "aspect_ratio", "resolution"] {
        draft.remove(used);
    }
    let mut options = Options::take(&mut draft, family);
    let seed: Option<i64> = options.get("seed", "seed");
    VideoJob {
        model: draft.model.to_owned(),
        family: family.name.to_owned(),
        prompt: draft.take("prompt").unwrap_or_default(),
        seconds,
        size,
        images: Vec::new(),
        image_use,
        negative_prompt: options.get("negativePrompt", "negative_prompt"),
        // A negative seed requests a random one.
        seed: seed.filter(|seed| *seed >= 0),
        generate_audio: options.get("generateAudio", "generate_audio"),
        return_last_frame: options.get("returnLastFrame", "return_last_frame"),
        camera_fixed: options.get("cameraFixed", "camera_fixed"),
        watermark: options.get("watermark", "watermark"),
        person_generation: options.get("personGeneration", "person_generation"),
        extra: draft.into_remaining(),
    }
}

/// The members of `metadata`, including the defaults of those that were not sent.
struct Options(Map<String, Value>);

impl Options {
    fn take(draft: &mut Draft<'_>, family: &Family) -> Self {
        let mut options = draft.take_object("metadata");
        let members = family.fields.iter().find_map(|field| match field.kind {
            FieldKind::Object(members) if field.name == "metadata" => Some(members),
            _ => None,
        });
        for Field { name, default, .. } in members.unwrap_or_default() {
            if let (Some(default), false) = (default, options.contains_key(*name)) {
                options.insert((*name).to_owned(), default.value());
            }
        }
        Self(options)
    }

    /// Moves out the member under either spelling; each family declares one of them.
    fn get<T: DeserializeOwned>(&mut self, camel: &str, snake: &str) -> Option<T> {
        let value = self.0.remove(camel).or_else(|| self.0.remove(snake))?;
        serde_json::from_value(value).ok()
    }
}
