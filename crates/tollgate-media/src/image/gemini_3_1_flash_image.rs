//! Gemini 3.1 Flash Image: `gemini-3.1-flash-image-preview` and `…-official`.
//! Docs page: docs/models/gemini-3.1-flash-image.md.

use tollgate_core::ApiError;

use super::family::Family;
use super::gemini;
use crate::endpoint::Endpoint;
use crate::fields::field::{DefaultValue, Field};
use crate::fields::spec::Rule;
use crate::image::format::ImageFormat;
use crate::image::size::{AutoSize, DefaultSize, PixelSizes, RatioTable, Sizes, row};
use crate::link_ttl::LinkTtl;
use crate::response::STANDARD;

pub(super) static FAMILY: Family = Family {
    name: "gemini-3.1-flash-image",
    title: "Gemini 3.1 Flash Image",
    about: "Images from text and up to 14 references in 14 ratios at four tiers, after a search of the web if wanted. Of the references, at most 10 objects and 4 characters are suggested. The `-official` model is served by the provider's own channel.",
    models: &[
        "gemini-3.1-flash-image-preview",
        "gemini-3.1-flash-image-preview-official",
    ],
    one_model: false,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("The prompt: what to generate."),
        gemini::SIZE,
        Field::resolution("The resolution tier; each has its own price."),
        Field::n(4),
        gemini::OFFICIAL_FALLBACK,
        gemini::REFERENCES,
        Field::flag(
            "engine_search",
            "Whether the model may search the web for text first.",
        )
        .default_to(DefaultValue::Flag(false))
        .aliases(&["google_search"]),
        Field::flag(
            "engine_image_search",
            "Whether it may also search the web for images; needs `engine_search`.",
        )
        .default_to(DefaultValue::Flag(false))
        .aliases(&["google_image_search", "image_search"]),
    ],
    ignored: &[],
    // The provider's own sizes.
    sizes: Sizes::Ratios(RatioTable {
        tiers: &["0.5K", "1K", "2K", "4K"],
        default_tier: 1,
        rows: &[
            row(
                "1:1",
                &[(512, 512), (1024, 1024), (2048, 2048), (4096, 4096)],
            ),
            row(
                "3:2",
                &[(632, 424), (1264, 848), (2528, 1696), (5056, 3392)],
            ),
            row(
                "2:3",
                &[(424, 632), (848, 1264), (1696, 2528), (3392, 5056)],
            ),
            row(
                "4:3",
                &[(600, 448), (1200, 896), (2400, 1792), (4800, 3584)],
            ),
            row(
                "3:4",
                &[(448, 600), (896, 1200), (1792, 2400), (3584, 4800)],
            ),
            row(
                "16:9",
                &[(688, 384), (1376, 768), (2752, 1536), (5504, 3072)],
            ),
            row(
                "9:16",
                &[(384, 688), (768, 1376), (1536, 2752), (3072, 5504)],
            ),
            row(
                "5:4",
                &[(576, 464), (1152, 928), (2304, 1856), (4608, 3712)],
            ),
            row(
                "4:5",
                &[(464, 576), (928, 1152), (1856, 2304), (3712, 4608)],
            ),
            row(
                "21:9",
                &[(792, 336), (1584, 672), (3168, 1344), (6336, 2688)],
            ),
            row(
                "1:4",
                &[(256, 1024), (512, 2048), (1024, 4096), (2048, 8192)],
            ),
            row(
                "4:1",
                &[(1024, 256), (2048, 512), (4096, 1024), (8192, 2048)],
            ),
            row(
                "1:8",
                &[(192, 1536), (384, 3072), (768, 6144), (1536, 12288)],
            ),
            row(
                "8:1",
                &[(1536, 192), (3072, 384), (6144, 768), (12288, 1536)],
            ),
        ],
        default: DefaultSize::FollowReference("1:1"),
        auto: AutoSize::Rejected,
        pixels: PixelSizes::Rejected,
        extra_sizes: &[],
        fallback: None,
    }),
    input_limits: gemini::INPUTS,
    output: ImageFormat::Png,
    rules: &[
        gemini::FALLBACK_NOT_WITH_OFFICIAL,
        Rule {
            text: "`engine_image_search: true` requires `engine_search: true`.",
            apply: |draft| {
                if draft.flag("engine_image_search") && !draft.flag("engine_search") {
                    let got = if draft.is_requested("engine_search") {
                        "false"
                    } else {
                        "none"
                    };
                    return Err(ApiError::invalid(format!(
                        "`{}` must not be true unless `{}` is true, got {got}",
                        draft.name_of("engine_image_search"),
                        draft.name_of("engine_search"),
                    )));
                }
                Ok(())
            },
        },
    ],
    reference_check: None,
    response: &STANDARD,
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
