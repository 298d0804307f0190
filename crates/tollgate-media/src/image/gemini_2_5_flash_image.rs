//! Gemini 2.5 Flash Image: `gemini-2.5-flash-image-preview` and `…-official`.
//! Docs page: docs/models/gemini-2.5-flash-image.md.

use super::family::Family;
use super::gemini;
use crate::endpoint::Endpoint;
use crate::fields::field::Field;
use crate::image::format::ImageFormat;
use crate::image::size::{AutoSize, DefaultSize, PixelSizes, RatioTable, Sizes, row};
use crate::link_ttl::LinkTtl;
use crate::response::STANDARD;

pub(super) static FAMILY: Family = Family {
    name: "gemini-2.5-flash-image",
    title: "Gemini 2.5 Flash Image",
    about: "Images from text and up to 14 references, about one megapixel each. The `-official` model is served by the provider's own channel.",
    models: &[
        "gemini-2.5-flash-image-preview",
        "gemini-2.5-flash-image-preview-official",
    ],
    one_model: false,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("The prompt: what to generate.").max_chars(1000),
        gemini::SIZE,
        Field::resolution("The resolution tier; there is only one."),
        Field::n(4),
        gemini::OFFICIAL_FALLBACK,
        gemini::REFERENCES,
    ],
    ignored: &[],
    // The provider's own sizes.
    sizes: Sizes::Ratios(RatioTable {
        tiers: &["1K"],
        default_tier: 0,
        rows: &[
            row("1:1", &[(1024, 1024)]),
            row("2:3", &[(832, 1248)]),
            row("3:2", &[(1248, 832)]),
            row("3:4", &[(864, 1184)]),
            row("4:3", &[(1184, 864)]),
            row("4:5", &[(896, 1152)]),
            row("5:4", &[(1152, 896)]),
            row("9:16", &[(768, 1344)]),
            row("16:9", &[(1344, 768)]),
            row("21:9", &[(1536, 672)]),
        ],
        default: DefaultSize::FollowReference("1:1"),
        auto: AutoSize::Rejected,
        pixels: PixelSizes::Rejected,
        extra_sizes: &[],
        fallback: None,
    }),
    input_limits: gemini::INPUTS,
    output: ImageFormat::Png,
    rules: &[gemini::FALLBACK_NOT_WITH_OFFICIAL],
    reference_check: None,
    response: &STANDARD,
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
