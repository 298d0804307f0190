//! Fields, input limits and rules that the Seedream families share.

use serde_json::{Value, json};
use tollgate_core::{Adjustment, ApiError};

use crate::fields::draft::Draft;
use crate::fields::field::{DefaultValue, Field};
use crate::fields::spec::Rule;
use crate::image::format::ImageFormat;
use crate::input::limits::{InputLimits, MB};

pub(super) const SIZE: Field = Field::size(
    "A ratio, or `auto`: the ratio nearest to that of the first reference image; needs `image_urls`.",
);

pub(super) const REFERENCES: Field = Field::image_urls(
    "URLs or data URIs of reference images; their presence selects image-to-image.",
);

pub(super) const GROUP: Field = Field::choice(
    "sequential_image_generation",
    &["disabled", "auto"],
    "`disabled` generates one image even with several references, `auto` a group.",
)
.default_to(DefaultValue::Text("disabled"));

pub(super) const GROUP_OPTIONS: Field = Field::object(
    "sequential_image_generation_options",
    &[Field::int(
        "max_images",
        1,
        15,
        "Largest number of images in the group.",
    )],
    "Used when `sequential_image_generation` is `auto`.",
);

pub(super) const WATERMARK: Field =
    Field::flag("watermark", "Whether a visible watermark is added.")
        .default_to(DefaultValue::Flag(false));

/// Each side longer than 14 px, the area at most 6000x6000 pixels.
pub(super) const INPUTS: InputLimits = InputLimits {
    max_count: 10,
    data_uris: &[ImageFormat::Jpeg, ImageFormat::Png],
    max_bytes: 10 * MB,
    min_side: 15,
    max_ratio: 3.0,
    max_pixels: 6000 * 6000,
    ..InputLimits::DEFAULT
};

/// The maximum number of references and results together.
const MAX_IMAGES: i64 = 15;
const MODE: &str = "sequential_image_generation";
const OPTIONS: &str = "sequential_image_generation_options";

/// The number of images that is requested, and the field that sets it, for errors.
pub(super) fn requested_count(draft: &Draft<'_>) -> (i64, String) {
    let n = draft.int("n").unwrap_or(1);
    let is_group = n > 1 || draft.text(MODE) == Some("auto");
    let max = draft.member(OPTIONS, "max_images").and_then(Value::as_i64);
    match max.filter(|_| is_group) {
        Some(max) if n == 1 || max < n => (max, format!("{OPTIONS}.max_images")),
        _ => (n, "n".to_owned()),
    }
}

/// Rejects a request for more images than its references leave room for.
pub(super) const MAX_TOTAL: Rule = Rule {
    text: "References and generated images together must not exceed 15.",
    apply: |draft| {
        let (count, field) = requested_count(draft);
        let references = i64::try_from(draft.references()).unwrap_or(i64::MAX);
        if count.saturating_add(references) > MAX_IMAGES {
            return Err(ApiError::invalid(format!(
                "`{field}` and the number of `image_urls` must be at most {MAX_IMAGES} together, got {count} and {references}"
            )));
        }
        Ok(())
    },
};

/// Group mode: determines `n`, `sequential_image_generation` and its options.
pub(super) const GROUP_MODE: Rule = Rule {
    text: "`n` above 1 sets `sequential_image_generation` to `auto`. With `auto` and `max_images` k, k images are requested and their price is held (with `n` above 1 as well, the smaller of the two). Without group mode, `max_images` has no effect.",
    apply: |draft| {
        let n = draft.int("n").unwrap_or(1);
        let (count, _) = requested_count(draft);
        if n > 1 && draft.text(MODE) != Some("auto") {
            if draft.is_requested(MODE) {
                draft.adjust(MODE, "auto", "`n` above 1 requests a group");
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
        if count != n {
            if draft.is_requested("n") {
                draft.adjust(
                    "n",
                    count,
                    "`max_images` decides how many images the group has",
                );
            } else {
                draft.set("n", count);
            }
        }
        let max = draft.member(OPTIONS, "max_images").cloned();
        if let Some(max) = max.filter(|max| *max != count) {
            let why = "`n` is smaller and decides how many images the group has";
            let field = format!("{OPTIONS}.max_images");
            draft
                .adjustments
                .push(Adjustment::new(field, max, count, why));
        }
        draft.set(OPTIONS, json!({ "max_images": count }));
        Ok(())
    },
};
