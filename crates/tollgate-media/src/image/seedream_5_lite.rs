//! Seedream 5.0 Lite: `doubao-seedream-5-0-lite` and two other spellings. Docs page: docs/models/seedream-5-lite.md.

use super::family::Family;
use super::seedream;
use crate::endpoint::Endpoint;
use crate::fields::field::{DefaultValue, Field};
use crate::image::format::ImageFormat;
use crate::image::size::{AutoSize, DefaultSize, PixelSizes, RatioTable, Sizes, row};
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;
use crate::response::STANDARD;

pub(super) static FAMILY: Family = Family {
    name: "seedream-5-lite",
    title: "Seedream 5.0 Lite",
    about: "Images from text or references, one at a time or as a group of up to 4 (with `max_images` 15) that belong together. Groups need no reference. Links last 72 hours.",
    models: &[
        "doubao-seedream-5-0-lite",
        "doubao-seedream-5.0-lite",
        "Doubao-Seedream-5.0-lite",
    ],
    one_model: true,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("The prompt: what to generate."),
        seedream::SIZE,
        Field::resolution("The resolution tier. 1K and 4K are not supported."),
        Field::n(4),
        seedream::REFERENCES,
        Field::choice(
            "output_format",
            &["jpeg", "png"],
            "The format of the result files.",
        )
        .default_to(DefaultValue::Text("jpeg")),
        seedream::GROUP,
        seedream::GROUP_OPTIONS,
        seedream::WATERMARK,
    ],
    ignored: &[],
    sizes: Sizes::Ratios(RatioTable {
        tiers: &["2K", "3K"],
        default_tier: 0,
        rows: &[
            row("1:1", &[(2048, 2048), (3072, 3072)]),
            row("4:3", &[(2304, 1728), (3456, 2592)]),
            row("3:4", &[(1728, 2304), (2592, 3456)]),
            row("16:9", &[(2848, 1600), (4096, 2304)]),
            row("9:16", &[(1600, 2848), (2304, 4096)]),
            row("3:2", &[(2496, 1664), (3744, 2496)]),
            row("2:3", &[(1664, 2496), (2496, 3744)]),
            row("21:9", &[(3136, 1344), (4704, 2016)]),
        ],
        default: DefaultSize::Ratio("1:1"),
        auto: AutoSize::NeedsReference,
        pixels: PixelSizes::Rejected,
        extra_sizes: &[],
        fallback: None,
    }),
    // The provider's limit on reference images.
    input_limits: InputLimits {
        max_count: 14,
        ..seedream::INPUTS
    },
    output: ImageFormat::Jpeg,
    rules: &[seedream::MAX_TOTAL, seedream::GROUP_MODE],
    reference_check: None,
    response: &STANDARD,
    link_ttl: LinkTtl::Long,
    safety_review: false,
};
