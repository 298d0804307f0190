//! Seedream 4.5: `doubao-seedance-4-5`, `doubao-seedream-4-5` and two other spellings.
//! Docs page: docs/models/seedream-4.5.md.

use serde_json::json;
use tollgate_core::ApiError;

use super::family::Family;
use super::seedream;
use crate::endpoint::Endpoint;
use crate::fields::field::{DefaultValue, Field};
use crate::fields::spec::Rule;
use crate::image::format::ImageFormat;
use crate::image::size::{AutoSize, DefaultSize, PixelSizes, RatioTable, Sizes, row};
use crate::link_ttl::LinkTtl;
use crate::response::STANDARD;

const MODE: Field = Field::choice(
    "mode",
    &["standard", "fast"],
    "`standard` is better, `fast` is faster.",
)
.default_to(DefaultValue::Text("standard"));

pub(super) static FAMILY: Family = Family {
    name: "seedream-4.5",
    title: "Seedream 4.5",
    about: "Images from text or references at 2K and 4K, one at a time or as a group of up to 14 that belong together. A group needs at least one reference; without `image_urls`, `n` and `max_images` must be 1.",
    models: &[
        "doubao-seedance-4-5",
        "Doubao-Seedream-4.5",
        "doubao-seedream-4.5",
        "doubao-seedream-4-5",
    ],
    one_model: true,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("The prompt: what to generate."),
        seedream::SIZE,
        Field::resolution("The resolution tier. 1K is not supported."),
        Field::n(15),
        seedream::REFERENCES,
        Field::object(
            "optimize_prompt_options",
            &[MODE],
            "How the prompt is improved.",
        ),
        Field::choice(
            "optimize_prompt_mode",
            &["standard", "fast"],
            "The same as `optimize_prompt_options: {mode}`.",
        ),
        seedream::GROUP,
        seedream::GROUP_OPTIONS,
        seedream::WATERMARK,
    ],
    ignored: &[("output_format", "the results of this model are always jpeg")],
    // The provider's sizes, with the 4K sides 4694 and 6198 rounded down to multiples of 16.
    sizes: Sizes::Ratios(RatioTable {
        tiers: &["2K", "4K"],
        default_tier: 0,
        rows: &[
            row("1:1", &[(2048, 2048), (4096, 4096)]),
            row("4:3", &[(2304, 1728), (4688, 3520)]),
            row("3:4", &[(1728, 2304), (3520, 4688)]),
            row("16:9", &[(2560, 1440), (5404, 3040)]),
            row("9:16", &[(1440, 2560), (3040, 5404)]),
            row("3:2", &[(2496, 1664), (4992, 3328)]),
            row("2:3", &[(1664, 2496), (3328, 4992)]),
            row("21:9", &[(3024, 1296), (6192, 2656)]),
            row("9:21", &[(1296, 3024), (2656, 6192)]),
        ],
        default: DefaultSize::Ratio("1:1"),
        auto: AutoSize::NeedsReference,
        pixels: PixelSizes::Rejected,
        extra_sizes: &[],
        fallback: None,
    }),
    input_limits: seedream::INPUTS,
    output: ImageFormat::Jpeg,
    rules: &[
        Rule {
            text: "A group needs at least one reference image: text alone yields one image.",
            apply: |draft| match seedream::requested_count(draft) {
                (count, field) if count > 1 && draft.references() == 0 => {
                    Err(ApiError::invalid(format!(
                        "`{field}` must be 1 without `image_urls` (a group needs at least one reference image), got {count}"
                    )))
                }
                _ => Ok(()),
            },
        },
        seedream::MAX_TOTAL,
        seedream::GROUP_MODE,
        Rule {
            text: "The prompt-optimization mode is `optimize_prompt_options: {mode}`, or `optimize_prompt_mode` for short; not two different ones.",
            apply: |draft| {
                let short = draft.remove("optimize_prompt_mode");
                let is_long = draft.is_member_requested("optimize_prompt_options", "mode");
                let long = draft.value("optimize_prompt_options");
                let long = long.and_then(|options| options.get("mode"));
                let long = long.filter(|_| is_long).cloned();
                match (&short, &long) {
                    (Some(short), Some(long)) if short != long => Err(ApiError::invalid(format!(
                        "`optimize_prompt_mode` and `optimize_prompt_options.mode` must not differ, got {short} and {long}"
                    ))),
                    _ => {
                        let mode = short.or(long).unwrap_or_else(|| "standard".into());
                        draft.set("optimize_prompt_options", json!({ "mode": mode }));
                        Ok(())
                    }
                }
            },
        },
    ],
    reference_check: None,
    response: &STANDARD,
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
