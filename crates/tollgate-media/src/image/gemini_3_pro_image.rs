//! Gemini 3 Pro Image: `gemini-3-pro-image-preview` and `…-official`.
//! Docs page: docs/models/gemini-3-pro-image.md.

use super::family::Family;
use super::gemini;
use crate::endpoint::Endpoint;
use crate::fields::field::Field;
use crate::image::format::ImageFormat;
use crate::image::size::{AutoSize, DefaultSize, PixelSizes, RatioTable, Sizes, row};
use crate::link_ttl::LinkTtl;
use crate::response::STANDARD;

pub(super) static FAMILY: Family = Family {
    name: "gemini-3-pro-image",
    title: "Gemini 3 Pro Image",
    about: "Images from text and up to 14 references at 1K, 2K and 4K. 4K takes long. The `-official` model is served by the provider's own channel.",
    models: &[
        "gemini-3-pro-image-preview",
        "gemini-3-pro-image-preview-official",
    ],
    one_model: false,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("The prompt: what to generate."),
        gemini::SIZE,
        Field::resolution("The resolution tier."),
        Field::n(4),
        gemini::OFFICIAL_FALLBACK,
        gemini::REFERENCES,
    ],
    ignored: &[],
    // The provider's own sizes.
    sizes: Sizes::Ratios(RatioTable {
        tiers: &["1K", "2K", "4K"],
        default_tier: 0,
        rows: &[
            row("1:1", &[(1024, 1024), (2048, 2048), (4096, 4096)]),
            row("2:3", &[(848, 1264), (1696, 2528), (3392, 5056)]),
            row("3:2", &[(1264, 848), (2528, 1696), (5056, 3392)]),
            row("3:4", &[(896, 1200), (1792, 2400), (3584, 4800)]),
            row("4:3", &[(1200, 896), (2400, 1792), (4800, 3584)]),
            row("4:5", &[(928, 1152), (1856, 2304), (3712, 4608)]),
            row("5:4", &[(1152, 928), (2304, 1856), (4608, 3712)]),
            row("9:16", &[(768, 1376), (1536, 2752), (3072, 5504)]),
            row("16:9", &[(1376, 768), (2752, 1536), (5504, 3072)]),
            row("21:9", &[(1584, 672), (3168, 1344), (6336, 2688)]),
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
