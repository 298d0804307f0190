//! Wan 2.7: `wan2.7-image-pro` and `wan2.7-image`. Docs page: docs/models/wan2.7.md.

mod boxes;
mod palette;

use tollgate_core::ApiError;

use super::family::Family;
use crate::endpoint::Endpoint;
use crate::fields::draft::Draft;
use crate::fields::field::{DefaultValue, Field};
use crate::fields::spec::Rule;
use crate::image::format::ImageFormat;
use crate::image::size::{PixelRangeSizes, SizeMode, Sizes};
use crate::input::limits::{InputLimits, MB};
use crate::link_ttl::LinkTtl;
use crate::response::WAN;
use crate::text::show_json;

/// The only model that supports 4K, for images generated from text.
const PRO: &str = "wan2.7-image-pro";
/// The largest `n` outside group mode.
const MAX_N: i64 = 4;
const FORMATS: &[ImageFormat] = &[
    ImageFormat::Jpeg,
    ImageFormat::Png,
    ImageFormat::Webp,
    ImageFormat::Bmp,
];

/// Text-to-image with the pro model.
static PRO_TEXT_TO_IMAGE: SizeMode = SizeMode {
    name: "text-to-image of wan2.7-image-pro",
    tiers: 3,
    min_square: 768,
    max_square: 4096,
};

/// Everything else.
static OTHER_USES: SizeMode = SizeMode {
    name: "wan2.7-image, edits and groups",
    tiers: 2,
    min_square: 768,
    max_square: 2048,
};

pub(super) static FAMILY: Family = Family {
    name: "wan2.7",
    title: "Wan 2.7",
    about: "Images from text, edits of up to 9 images with marked regions, and groups of up to 12 consistent images. Charged per generated image, whatever its size; input is free.",
    models: &[PRO, "wan2.7-image"],
    one_model: false,
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::text(
            "prompt",
            "The prompt: what to generate. Required without `image_urls`.",
        )
        .max_chars(5000),
        Field::image_urls(
            "URLs or data URIs of the images to edit; their presence selects edit mode.",
        ),
        Field::int(
            "n",
            1,
            12,
            "Number of images to generate: at most 4, or 12 with `enable_sequential`.",
        )
        .default_to(DefaultValue::Int(1)),
        Field::size(
            "A tier, a ratio (at tier 2K) or a pixel size such as `1024x1024` or `1024*1024`.",
        ),
        Field::flag(
            "thinking_mode",
            "More reasoning: better results, slower. No effect with `enable_sequential`.",
        ),
        Field::flag(
            "enable_sequential",
            "Group mode: images that belong together.",
        )
        .default_to(DefaultValue::Flag(false)),
        Field::int(
            "seed",
            0,
            2_147_483_647,
            "The same seed and parameters give similar results.",
        ),
        Field::text("negative_prompt", "What the result must not show."),
        Field::flag(
            "watermark",
            "Whether an \"AI generated\" mark is added at the bottom right.",
        )
        .default_to(DefaultValue::Flag(false)),
        Field::custom(
            "bbox_list",
            &boxes::BOXES,
            "Regions to edit, one list per image of `image_urls` (`[]` for none, at most 2 boxes each), in pixels of that image from its top left corner.",
        ),
        Field::custom(
            "color_palette",
            &palette::PALETTE,
            "Colours with their shares; 8 are suggested, the shares sum to 100.00%. Not in group mode.",
        ),
    ],
    ignored: &[],
    sizes: Sizes::PixelRange(PixelRangeSizes {
        tiers: &[("1K", 1024), ("2K", 2048), ("4K", 4096)],
        default: "2K",
        ratio_tier: "2K",
        ratios: &[
            ("1:1", (2048, 2048)),
            ("16:9", (2560, 1440)),
            ("9:16", (1440, 2560)),
            ("4:3", (2304, 1728)),
            ("3:4", (1728, 2304)),
            ("3:2", (2496, 1664)),
            ("2:3", (1664, 2496)),
        ],
        max_ratio: 8,
        modes: &[&PRO_TEXT_TO_IMAGE, &OTHER_USES],
        mode_of,
    }),
    input_limits: InputLimits {
        max_count: 9,
        formats: FORMATS,
        data_uris: FORMATS,
        max_bytes: 20 * MB,
        min_side: 240,
        max_side: 8000,
        max_ratio: 8.0,
        ..InputLimits::DEFAULT
    },
    output: ImageFormat::Png,
    rules: &[
        Rule {
            text: "`prompt` is required for text-to-image and optional in edit mode.",
            apply: prompt_or_images,
        },
        Rule {
            text: "`n` is at most 4, in group mode 12.",
            apply: |draft| match draft.int("n") {
                Some(n) if n > MAX_N && !draft.flag("enable_sequential") => {
                    Err(ApiError::invalid(format!(
                        "`n` must be from 1 to {MAX_N} unless `enable_sequential` is true (then 1 to 12), got {n}"
                    )))
                }
                _ => Ok(()),
            },
        },
        Rule {
            text: "`thinking_mode` has no effect in group mode.",
            apply: |draft| {
                if draft.flag("thinking_mode") && draft.flag("enable_sequential") {
                    draft.drop_field("thinking_mode", "no effect with `enable_sequential`");
                }
                Ok(())
            },
        },
        palette::NOT_IN_GROUPS,
        boxes::ONE_LIST_PER_IMAGE,
    ],
    reference_check: Some(boxes::check_inside_images),
    response: &WAN,
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};

fn mode_of(draft: &Draft<'_>) -> &'static SizeMode {
    let from_text = draft.references() == 0 && !draft.flag("enable_sequential");
    if from_text && draft.base_model == PRO {
        &PRO_TEXT_TO_IMAGE
    } else {
        &OTHER_USES
    }
}

fn prompt_or_images(draft: &mut Draft<'_>) -> Result<(), ApiError> {
    let blank = draft
        .text("prompt")
        .is_none_or(|text| text.trim().is_empty());
    if blank && draft.references() == 0 {
        let got = draft
            .value("prompt")
            .map_or_else(|| "none".to_owned(), show_json);
        return Err(ApiError::invalid(format!(
            "`prompt` is required and must not be empty without `image_urls`, got {got}"
        )));
    }
    Ok(())
}
