//! Helpers for the rules of video families: a shared rule, and the names of the fields for error messages.

use tollgate_core::ApiError;

use crate::fields::draft::Draft;
use crate::text::show_json;

/// The fields that contain the duration; the first one is a string.
pub(super) const DURATION_FIELDS: [&str; 2] = ["seconds", "duration"];

/// The field in which the client sent the duration, for errors.
pub(super) fn duration_field(draft: &Draft<'_>) -> &'static str {
    if draft.member("metadata", "durationSeconds").is_some() {
        return "metadata.durationSeconds";
    }
    let requested = DURATION_FIELDS
        .into_iter()
        .find(|field| draft.is_requested(field));
    requested.unwrap_or(DURATION_FIELDS[0])
}

/// The field in which the client sent the resolution tier, for errors.
pub(super) fn tier_field(draft: &Draft<'_>) -> &'static str {
    if draft.member("metadata", "resolution").is_some() {
        return "metadata.resolution";
    }
    let requested = ["resolution", "size"]
        .into_iter()
        .find(|field| draft.is_requested(field));
    requested.unwrap_or("resolution")
}

/// The fields in which the client sent images, for errors.
pub(super) fn image_fields(draft: &Draft<'_>) -> String {
    let mut names: Vec<String> = Vec::new();
    for input in &draft.inputs {
        let name = input.field.split(['[', '.']).next().unwrap_or_default();
        let name = format!("`{name}`");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" and ")
}

/// Returns a 400 error unless there is a prompt or an image.
pub(super) fn prompt_or_images(draft: &mut Draft<'_>) -> Result<(), ApiError> {
    let prompt = draft.value("prompt");
    let blank = draft
        .text("prompt")
        .is_none_or(|text| text.trim().is_empty());
    if blank && draft.references() == 0 {
        let got = prompt.map_or_else(|| "none".to_owned(), show_json);
        return Err(ApiError::invalid(format!(
            "`prompt` is required and must not be empty without an image, got {got}"
        )));
    }
    Ok(())
}
