//! Odd rules that several families share.

use serde_json::Value;
use tollgate_core::ApiError;

use super::draft::Draft;
use super::family::Rule;
use super::input::InputRole;
use super::job::ImageFormat;

/// A mask without a picture that it masks.
pub(super) const MASK_NEEDS_REFERENCES: Rule = Rule {
    text: "`mask_url` requires `image_urls`; the mask must have an alpha channel and the pixel size of the first reference.",
    apply: |draft| {
        let masked = draft
            .inputs
            .iter()
            .any(|input| input.role == InputRole::Mask);
        if masked && draft.references() == 0 {
            return Err(ApiError::invalid(
                "`mask_url` requires `image_urls`: the mask applies to the first reference image, got none",
            ));
        }
        Ok(())
    },
};

/// Drops `output_compression` unless the results are of one of `formats`.
pub(super) fn compression_only_for(draft: &mut Draft<'_>, formats: &[ImageFormat]) {
    let output = draft.output_format();
    if !formats.contains(&output) {
        let why = format!("no effect on {} files", output.name());
        draft.drop_field("output_compression", why);
    }
}

/// Group mode of Seedream: settles `n`, `sequential_image_generation` and its options.
pub(super) const GROUP_MODE: Rule = Rule {
    text: "`n` above 1 sets `sequential_image_generation` to `auto`. With `auto` and `max_images` k, k pictures are asked and held for (with `n` above 1 as well, the smaller of the two). Without group mode `max_images` has no effect.",
    apply: |draft| {
        const MODE: &str = "sequential_image_generation";
        const OPTIONS: &str = "sequential_image_generation_options";
        let n = draft.int("n").unwrap_or(1);
        if n > 1 && draft.text(MODE) != Some("auto") {
            if draft.asked(MODE) {
                draft.adjust(MODE, "auto", "`n` above 1 asks for a group");
            } else {
                draft.set(MODE, "auto");
            }
        }
        if draft.text(MODE) != Some("auto") {
            draft.drop_field(
                OPTIONS,
                "only used when `sequential_image_generation` is auto",
            );
            return Ok(());
        }
        let max = draft
            .value(OPTIONS)
            .and_then(|options| options.get("max_images"))
            .and_then(Value::as_i64);
        let count = match max {
            Some(max) if n > 1 => n.min(max),
            Some(max) => max,
            None => n,
        };
        if count != n {
            if draft.asked("n") {
                draft.adjust(
                    "n",
                    count,
                    "`max_images` decides how many pictures the group has",
                );
            } else {
                draft.set("n", count);
            }
        }
        draft.set(OPTIONS, serde_json::json!({ "max_images": count }));
        Ok(())
    },
};

/// The fallback flag makes no sense for a model that is the official channel already.
pub(super) const FALLBACK_NOT_WITH_OFFICIAL: Rule = Rule {
    text: "`official_fallback: true` must not be used with the `-official` model.",
    apply: |draft| {
        if draft.flag("official_fallback") && draft.model.like.ends_with("-official") {
            return Err(ApiError::invalid(format!(
                "`official_fallback` must not be true with {}: it is the official channel already",
                draft.model.like
            )));
        }
        Ok(())
    },
};
