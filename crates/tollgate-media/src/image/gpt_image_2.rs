//! GPT Image 2: `gpt-image-2-official`. Docs page: docs/models/gpt-image-2.md.

use super::family::Family;
use super::rules;
use crate::endpoint::Endpoint;
use crate::fields::field::{DefaultValue, Field};
use crate::fields::spec::Rule;
use crate::image::format::{ImageFormat, PixelSize};
use crate::image::size::{AutoSize, DefaultSize, PixelSizes, RatioTable, Sizes, row};
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;
use crate::response::STANDARD;

pub(super) static FAMILY: Family = Family {
    name: "gpt-image-2",
    title: "GPT Image 2",
    about: "Images from text, or from text and up to 16 reference images, in 15 ratios at three tiers. A high-quality image at 4k can take more than two minutes. Every prompt passes a safety review before the submission is accepted.",
    models: &["gpt-image-2-official"],
    one_model: false,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::prompt(
            "The prompt, in Chinese or English: what to generate. A prompt that the safety review rejects is an error of the submission.",
        ),
        Field::size(
            "A ratio, `auto` (the first reference's ratio, else 1:1) or a pixel size of the table.",
        ),
        Field::resolution(
            "The resolution tier. With a pixel size it must be the tier of that size.",
        ),
        Field::choice(
            "quality",
            &["auto", "low", "medium", "high"],
            "`auto` usually equals low.",
        )
        .default_to(DefaultValue::Text("auto")),
        Field::choice(
            "background",
            &["auto", "opaque", "transparent"],
            "`transparent` is not supported and becomes `auto`.",
        )
        .default_to(DefaultValue::Text("auto")),
        Field::choice("moderation", &["auto", "low"], "`low` filters less.")
            .default_to(DefaultValue::Text("auto")),
        Field::choice(
            "output_format",
            &["png", "jpeg", "webp"],
            "The format of the result files.",
        )
        .default_to(DefaultValue::Text("png")),
        Field::int(
            "output_compression",
            0,
            100,
            "Quality of jpeg and webp files in percent; no effect on png.",
        ),
        Field::n(4),
        Field::image_urls(
            "Public, stable URLs of reference images; their presence selects image-to-image.",
        ),
        Field::mask_url("URL of the inpainting mask; its fully transparent pixels are repainted."),
    ],
    ignored: &[],
    sizes: Sizes::Ratios(RatioTable {
        tiers: &["1k", "2k", "4k"],
        default_tier: 0,
        rows: &[
            row("1:1", &[(1024, 1024), (2048, 2048), (2880, 2880)]),
            row("3:2", &[(1536, 1024), (2048, 1360), (3520, 2336)]),
            row("2:3", &[(1024, 1536), (1360, 2048), (2336, 3520)]),
            row("4:3", &[(1024, 768), (2048, 1536), (3312, 2480)]),
            row("3:4", &[(768, 1024), (1536, 2048), (2480, 3312)]),
            row("5:4", &[(1280, 1024), (2560, 2048), (3216, 2576)]),
            row("4:5", &[(1024, 1280), (2048, 2560), (2576, 3216)]),
            row("16:9", &[(1536, 864), (2048, 1152), (3840, 2160)]),
            row("9:16", &[(864, 1536), (1152, 2048), (2160, 3840)]),
            row("2:1", &[(2048, 1024), (2688, 1344), (3840, 1920)]),
            row("1:2", &[(1024, 2048), (1344, 2688), (1920, 3840)]),
            row("3:1", &[(1536, 512), (3072, 1024), (3840, 1280)]),
            row("1:3", &[(512, 1536), (1024, 3072), (1280, 3840)]),
            row("21:9", &[(2016, 864), (2688, 1152), (3840, 1648)]),
            row("9:21", &[(864, 2016), (1152, 2688), (1648, 3840)]),
        ],
        default: DefaultSize::Ratio("1:1"),
        auto: AutoSize::OptionalReference,
        pixels: PixelSizes::InTable,
        extra_sizes: &[
            (PixelSize::new(1881, 836), 0),
            (PixelSize::new(887, 1774), 0),
        ],
        fallback: None,
    }),
    input_limits: InputLimits::DEFAULT,
    output: ImageFormat::Png,
    rules: &[
        rules::MASK_NEEDS_REFERENCES,
        Rule {
            text: "`background: transparent` is replaced by `auto`.",
            apply: |draft| {
                if draft.text("background") == Some("transparent") {
                    draft.adjust(
                        "background",
                        "auto",
                        "this model does not support transparent backgrounds",
                    );
                }
                Ok(())
            },
        },
        Rule {
            text: "`output_compression` has no effect on png.",
            apply: |draft| {
                rules::compression_only_for(draft, &[ImageFormat::Jpeg, ImageFormat::Webp]);
                Ok(())
            },
        },
    ],
    reference_check: None,
    response: &STANDARD,
    link_ttl: LinkTtl::Standard,
    safety_review: true,
};
