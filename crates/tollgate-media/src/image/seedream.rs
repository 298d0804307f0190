//! What the two Seedream families share: fields, input limits and the group rule.

use serde_json::{Value, json};

use super::family::Rule;
use super::field::{Field, Preset};
use super::input::{InputRules, MB};
use super::job::ImageFormat;

pub(super) const SIZE: Field = Field::size(
    "A ratio, or `auto`: the one nearest to the first reference's; needs `image_urls`.",
);

pub(super) const REFERENCES: Field = Field::references(
    "URLs or data URIs of reference images; their presence selects image-to-image.",
);

pub(super) const GROUP: Field = Field::choice(
    "sequential_image_generation",
    &["disabled", "auto"],
    "`disabled` makes one picture even with several references, `auto` a group.",
)
.or(Preset::Text("disabled"));

pub(super) const GROUP_OPTIONS: Field = Field::object(
    "sequential_image_generation_options",
    &[Field::int(
        "max_images",
        1,
        15,
        "How many pictures the group may have.",
    )],
    "Used when `sequential_image_generation` is `auto`.",
);

pub(super) const WATERMARK: Field =
    Field::flag("watermark", "Whether a visible watermark is added.").or(Preset::Flag(false));

/// Each side longer than 14 px, the area at most 6000x6000.
pub(super) const INPUTS: InputRules = InputRules {
    max_count: 10,
    data_uris: &[ImageFormat::Jpeg, ImageFormat::Png],
    max_bytes: 10 * MB,
    min_side: 15,
    max_ratio: 3.0,
    max_pixels: 6000 * 6000,
    ..InputRules::SANE
};

/// Group mode: settles `n`, `sequential_image_generation` and its options.
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
        draft.set(OPTIONS, json!({ "max_images": count }));
        Ok(())
    },
};
