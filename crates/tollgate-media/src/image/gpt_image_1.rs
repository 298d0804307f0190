//! gpt-image-1-official and gpt-image-1.5-official (SPEC.md › section of that name).

use tollgate_core::ApiError;

use super::family::{Family, LinkLife, Rule};
use super::field::{Field, Preset};
use super::input::InputRules;
use super::job::ImageFormat;
use super::rules;
use super::shape::STANDARD;
use super::size::{Auto, DefaultSize, PixelsAsked, RatioSizes, Sizes, row};
use crate::Endpoint;

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "gpt-image-1",
    title: "GPT Image 1 and 1.5",
    about: "Pictures from text, edits of one reference, or fusions of 2 to 15. `gpt-image-1-official` is the stable, general model; `gpt-image-1.5-official` is newer and edits better. Charged per picture made.",
    models: &["gpt-image-1-official", "gpt-image-1.5-official"],
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt("What to make, in Chinese or English."),
        Field::size("A ratio, or its pixel size, which means the same."),
        Field::n(4).clamped(),
        Field::choice(
            "quality",
            &["auto", "low", "medium", "high"],
            "How carefully to draw.",
        )
        .or(Preset::Text("auto")),
        Field::choice(
            "background",
            &["auto", "opaque", "transparent"],
            "`transparent` is best with png and not allowed with jpeg.",
        )
        .or(Preset::Text("auto")),
        Field::choice("moderation", &["auto", "low"], "`low` is looser.").or(Preset::Text("auto")),
        Field::choice(
            "output_format",
            &["png", "jpeg"],
            "The format of the result files.",
        )
        .or(Preset::Text("png")),
        Field::int(
            "output_compression",
            0,
            100,
            "Quality of jpeg files in percent; no effect on png.",
        ),
        Field::references(
            "Public, stable URLs of reference images: one is edited, 2 to 15 are fused.",
        ),
        Field::mask("URL of the inpainting mask: its fully transparent pixels are repainted."),
    ],
    ignored: &[],
    sizes: Sizes::Ratios(RatioSizes {
        tiers: &[],
        default_tier: 0,
        rows: &[
            row("1:1", &[(1024, 1024)]),
            row("3:2", &[(1536, 1024)]),
            row("2:3", &[(1024, 1536)]),
        ],
        default: DefaultSize::Ratio("1:1"),
        auto: Auto::No,
        pixels: PixelsAsked::AsRatio,
        also: &[],
        fallback: None,
    }),
    inputs: InputRules {
        max_count: 15,
        ..InputRules::SANE
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
    with_facts: None,
    shape: &STANDARD,
    links: LinkLife::Usual,
    safety_review: false,
};
