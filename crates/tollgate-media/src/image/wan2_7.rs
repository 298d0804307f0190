//! wan2.7-image-pro and wan2.7-image (SPEC.md › section of that name).

mod boxes;
mod palette;

use tollgate_core::ApiError;

use super::Draft;
use super::family::{Family, LinkLife, Rule};
use super::field::{Field, Preset};
use super::input::{InputRules, MB};
use super::job::ImageFormat;
use super::shape::PROCESSING;
use super::size::{FreeSizes, Scene, Sizes};
use crate::Endpoint;

/// The model that makes 4K from text.
const PRO: &str = "wan2.7-image-pro";
/// The most pictures outside group mode.
const MAX_SINGLE: i64 = 4;
const FORMATS: &[ImageFormat] = &[
    ImageFormat::Jpeg,
    ImageFormat::Png,
    ImageFormat::Webp,
    ImageFormat::Bmp,
];

/// One picture from text by the pro model.
static PRO_TEXT: Scene = Scene {
    name: "text-to-image of wan2.7-image-pro",
    tiers: 3,
    min_side: 768,
    max_side: 4096,
    ratios: &[
        ("1:1", (2048, 2048)),
        ("16:9", (2560, 1440)),
        ("9:16", (1440, 2560)),
        ("4:3", (2304, 1728)),
        ("3:4", (1728, 2304)),
        ("3:2", (2496, 1664)),
        ("2:3", (1664, 2496)),
    ],
};

/// Everything else: no side is longer than 2048.
static USUAL: Scene = Scene {
    name: "wan2.7-image, edits and groups",
    tiers: 2,
    min_side: 768,
    max_side: 2048,
    ratios: &[
        ("1:1", (2048, 2048)),
        ("16:9", (2048, 1152)),
        ("9:16", (1152, 2048)),
        ("4:3", (2048, 1536)),
        ("3:4", (1536, 2048)),
        ("3:2", (2048, 1360)),
        ("2:3", (1360, 2048)),
    ],
};

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "wan2.7",
    title: "Wan 2.7",
    about: "Pictures from text, edits of up to 9 pictures with marked regions, and groups of up to 12 consistent pictures. Charged per picture made, whatever its size; input is free.",
    models: &[PRO, "wan2.7-image"],
    endpoint: Endpoint::ImageGenerations,
    fields: &[
        Field::text("prompt", "What to make. Required without `image_urls`.").at_most(5000),
        Field::references(
            "URLs or data URIs of the pictures to edit; their presence selects edit mode.",
        ),
        Field::int(
            "n",
            1,
            12,
            "How many pictures to make: at most 4, or 12 with `enable_sequential`.",
        )
        .or(Preset::Int(1)),
        Field::size("A tier, a ratio (made at 2K) or pixels such as `1024x1024` or `1024*1024`."),
        Field::flag(
            "thinking_mode",
            "Stronger reasoning: better and slower. No effect with `enable_sequential`.",
        ),
        Field::flag(
            "enable_sequential",
            "Group mode: pictures that belong together.",
        )
        .or(Preset::Flag(false)),
        Field::int(
            "seed",
            0,
            2_147_483_647,
            "The same seed and parameters give similar results.",
        ),
        Field::text("negative_prompt", "What to avoid."),
        Field::flag(
            "watermark",
            "Whether an \"AI generated\" mark is added at the bottom right.",
        )
        .or(Preset::Flag(false)),
        Field::special(
            "bbox_list",
            &boxes::BOXES,
            "Regions to edit, one list per picture of `image_urls` (`[]` for none, at most 2 boxes each), in pixels of that picture from its top left corner.",
        ),
        Field::special(
            "color_palette",
            &palette::PALETTE,
            "Colours with their shares; 8 are suggested, the shares sum to 100.00%. Not in group mode.",
        ),
    ],
    ignored: &[],
    sizes: Sizes::Free(FreeSizes {
        tiers: &[("1K", 1024), ("2K", 2048), ("4K", 4096)],
        default: "2K",
        ratio_tier: "2K",
        scenes: &[&PRO_TEXT, &USUAL],
        scene,
        following: &USUAL,
    }),
    inputs: InputRules {
        max_count: 9,
        formats: FORMATS,
        data_uris: FORMATS,
        max_bytes: 20 * MB,
        min_side: 240,
        max_side: 8000,
        max_ratio: 8.0,
        ..InputRules::SANE
    },
    output: ImageFormat::Png,
    rules: &[
        Rule {
            text: "`prompt` is required for text-to-image and optional in edit mode.",
            apply: prompt_or_pictures,
        },
        Rule {
            text: "`n` is at most 4, in group mode 12.",
            apply: |draft| match draft.int("n") {
                Some(n) if n > MAX_SINGLE && !draft.flag("enable_sequential") => {
                    Err(ApiError::invalid(format!(
                        "`n` must be from 1 to {MAX_SINGLE} unless `enable_sequential` is true (then 1 to 12), got {n}"
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
        boxes::ONE_LIST_PER_PICTURE,
    ],
    with_facts: Some(boxes::inside_pictures),
    shape: &PROCESSING,
    links: LinkLife::Usual,
    safety_review: false,
};

fn scene(draft: &Draft<'_>) -> &'static Scene {
    let from_text = draft.references() == 0 && !draft.flag("enable_sequential");
    if from_text && draft.like == PRO {
        &PRO_TEXT
    } else {
        &USUAL
    }
}

fn prompt_or_pictures(draft: &mut Draft<'_>) -> Result<(), ApiError> {
    let blank = draft
        .text("prompt")
        .is_none_or(|text| text.trim().is_empty());
    if blank && draft.references() == 0 {
        return Err(ApiError::invalid(
            "`prompt` is required and must not be empty without `image_urls`, got none",
        ));
    }
    Ok(())
}
