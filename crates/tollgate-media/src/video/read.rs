//! From a request body to a video job: every field read by its family's declaration.

use serde_json::{Map, Value};
use tollgate_core::{Adjustment, ApiError};

use super::family::Family;
use super::job::{ImageUse, VideoJob, VideoSize};
use crate::Submission;
use crate::form::field::{Field, Kind};
use crate::form::length::Lengths;
use crate::form::{self, Draft};
use crate::submission::Found;
use crate::text;

/// The fields that hold a film's length, the first of them as a string.
const LENGTHS: [&str; 2] = ["seconds", "duration"];

/// Reads a request for the model `name` of `family`, whose rules are those of `like`.
pub(crate) fn read_for(
    name: &str,
    like: &'static str,
    family: &'static Family,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission<VideoJob>, ApiError> {
    let mut draft = Draft::new(name, like, family.form());
    form::read_fields(&mut draft, body, strict)?;
    let seconds = seconds(&mut draft, family.lengths)?;
    let image_use = family.image_use(draft.references());
    let is_frame = matches!(
        image_use,
        Some(ImageUse::FirstFrame | ImageUse::FirstAndLast)
    );
    let (size, asked) = family.sizes.choose(&mut draft, is_frame)?;
    // The rules see what was settled.
    draft.set("seconds", seconds);
    draft.set("resolution", size.resolution.clone());
    form::apply_rules(&mut draft)?;
    let image_use = family.image_use(draft.references());
    let found = Found::take(&mut draft);
    let job = job(draft, family, size, image_use);
    Ok(Submission::new(found, job, asked, None))
}

/// The film's length, by whichever field. `metadata` wins over the other two, which must not differ.
fn seconds(draft: &mut Draft<'_>, lengths: &Lengths) -> Result<i64, ApiError> {
    let [first, second] = LENGTHS.map(|field| draft.int(field));
    if let (Some(seconds), Some(duration)) = (first, second)
        && seconds != duration
    {
        return Err(ApiError::invalid(format!(
            "`seconds` and `duration` must not differ, got {seconds} and {duration}"
        )));
    }
    let nested = draft.member("metadata", "durationSeconds");
    if let Some(wins) = nested.and_then(Value::as_i64) {
        for (field, asked) in LENGTHS.iter().zip([first, second]) {
            if let Some(asked) = asked.filter(|asked| *asked != wins) {
                let why = "`metadata.durationSeconds` wins";
                draft
                    .adjustments
                    .push(Adjustment::new(*field, asked, wins, why));
            }
        }
        return Ok(wins);
    }
    Ok(first.or(second).unwrap_or_else(|| lengths.default()))
}

/// The field that the film's length came in.
pub(super) fn length_field(draft: &Draft<'_>) -> &'static str {
    if draft.member("metadata", "durationSeconds").is_some() {
        return "metadata.durationSeconds";
    }
    let asked = LENGTHS.into_iter().find(|field| draft.asked(field));
    asked.unwrap_or(LENGTHS[0])
}

/// The field that the film's tier came in.
pub(super) fn tier_field(draft: &Draft<'_>) -> &'static str {
    if draft.member("metadata", "resolution").is_some() {
        return "metadata.resolution";
    }
    let asked = ["resolution", "size"]
        .into_iter()
        .find(|field| draft.asked(field));
    asked.unwrap_or("resolution")
}

/// The job, its images still to come.
fn job(
    mut draft: Draft<'_>,
    family: &Family,
    size: VideoSize,
    image_use: Option<ImageUse>,
) -> VideoJob {
    let seconds = draft.take("seconds").unwrap_or_default();
    for spent in ["duration", "size", "aspect_ratio", "resolution"] {
        draft.remove(spent);
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
        // A negative seed asks for any.
        seed: seed.filter(|seed| *seed >= 0),
        generate_audio: options.get("generateAudio", "generate_audio"),
        return_last_frame: options.get("returnLastFrame", "return_last_frame"),
        camera_fixed: options.get("cameraFixed", "camera_fixed"),
        watermark: options.get("watermark", "watermark"),
        person_generation: options.get("personGeneration", "person_generation"),
        extra: draft.rest(),
    }
}

/// The members of `metadata`, with the defaults of those that were not sent.
struct Options(Map<String, Value>);

impl Options {
    fn take(draft: &mut Draft<'_>, family: &Family) -> Self {
        let mut options = draft.take_object("metadata");
        let members = family.fields.iter().find_map(|field| match field.kind {
            Kind::Object(members) if field.name == "metadata" => Some(members),
            _ => None,
        });
        for Field { name, default, .. } in members.unwrap_or_default() {
            if let (Some(default), false) = (default, options.contains_key(*name)) {
                options.insert((*name).to_owned(), default.value());
            }
        }
        Self(options)
    }

    /// The member of either name, as each provider spells its own.
    fn get<T: serde::de::DeserializeOwned>(&mut self, camel: &str, snake: &str) -> Option<T> {
        let value = self.0.remove(camel).or_else(|| self.0.remove(snake))?;
        serde_json::from_value(value).ok()
    }
}

/// 400 unless there is a prompt or an image.
pub(super) fn prompt_or_images(draft: &mut Draft<'_>) -> Result<(), ApiError> {
    let prompt = draft.value("prompt");
    let blank = draft
        .text("prompt")
        .is_none_or(|text| text.trim().is_empty());
    if blank && draft.references() == 0 {
        let came = prompt.map_or_else(|| "none".to_owned(), text::show);
        return Err(ApiError::invalid(format!(
            "`prompt` is required and must not be empty without an image, got {came}"
        )));
    }
    Ok(())
}
