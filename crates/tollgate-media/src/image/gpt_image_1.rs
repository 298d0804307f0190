//! GPT Image 1 and 1.5: `gpt-image-1-official` and `gpt-image-1.5-official`.
//! Docs page: docs/models/gpt-image-1.md.

use tollgate_core::ApiError;

use super::family::Family;
use super::rules;
use crate::endpoint::Endpoint;
use crate::fields::field::{DefaultValue, Field};
use crate::fields::spec::Rule;
use crate::image::format::ImageFormat;
use crate::image::size::{AutoSize, DefaultSize, PixelSizes, RatioTable, Sizes, row};
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;
use crate::response::STANDARD;

pub(super) static FAMILY: Family = Family {
    name: "gpt-image-1",
    title: "GPT Image 1 and 1.5",
    about: "Images from text, edits of one reference, or fusions of 2 to 15. `gpt-image-1-official` is the stable, general model; `gpt-image-1.5-official` is newer and edits better. Charged per generated image.",
    models: &["gpt-image-1-official", "gpt-image-1.5-official"],
    one_model: false,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("The prompt, in Chinese or English: what to generate."),
        Field::size("A ratio or a pixel size."),
        Field::n(4).clamped(),
        Field::choice(
            "quality",
            &["auto", "low", "medium", "high"],
            "The rendering quality.",
        )
        .default_to(DefaultValue::Text("auto")),
        Field::choice(
            "background",
            &["auto", "opaque", "transparent"],
            "`transparent` is best with png and not allowed with jpeg.",
        )
        .default_to(DefaultValue::Text("auto")),
        Field::choice("moderation", &["auto", "low"], "`low` filters less.")
            .default_to(DefaultValue::Text("auto")),
        Field::choice(
            "output_format",
            &["png", "jpeg"],
            "The format of the result files.",
        )
        .default_to(DefaultValue::Text("png")),
        Field::int(
            "output_compression",
            0,
            100,
            "Quality of jpeg files in percent; no effect on png.",
        ),
        Field::image_urls(
            "Public, stable URLs of reference images: one is edited, 2 to 15 are fused.",
        ),
        Field::mask_url("URL of the inpainting mask; its fully transparent pixels are repainted."),
    ],
    ignored: &[],
    sizes: Sizes::Ratios(RatioTable {
        tiers: &[],
        default_tier: 0,
        rows: &[
            row("1:1", &[(1024, 1024)]),
            row("3:2", &[(1536, 1024)]),
            row("2:3", &[(1024, 1536)]),
        ],
        default: DefaultSize::Ratio("1:1"),
        auto: AutoSize::Rejected,
        pixels: PixelSizes::AsRatio,
        extra_sizes: &[],
        fallback: None,
    }),
    input_limits: InputLimits {
        max_count: 15,
        ..InputLimits::DEFAULT
    },
    output: ImageFormat::Png,
    rules: &[
        rules::MASK_NEEDS_REFERENCES,
        Rule {
            text: "`background: transparent` together with `output_format: jpeg` is not allowed.",
            apply: |draft| {
                let transparent = draft.text("background") == Some("transparent");
                if transparent && draft.text("output_format") == Some("jpeg") {
                    return Err(ApiError::invalid(
                        "`background` \"transparent\" is not allowed with `output_format` \"jpeg\": use png",
                    ));
                }
                Ok(())
            },
        },
        Rule {
            text: "`output_compression` has no effect on png.",
            apply: |draft| {
                rules::compression_only_for(draft, &[ImageFormat::Jpeg]);
                Ok(())
            },
        },
    ],
    reference_check: None,
    response: &STANDARD,
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
