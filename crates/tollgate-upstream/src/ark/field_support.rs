//! Which request fields of each family are supported, and the upstream field of each.

use crate::provider::FieldSupport;

type Field = (&'static str, &'static str);

const PROMPT: Field = (
    "prompt",
    "`prompt`; in group mode, if the prompt names no number of images, with a sentence that names it",
);
const SIZE: Field = ("size", "`size` in pixels, with `resolution`");
const RESOLUTION: Field = ("resolution", "`size` in pixels");
const N: Field = (
    "n",
    "above 1, `sequential_image_generation_options.max_images`",
);
const REFERENCES: Field = ("image_urls", "`image`, as data URIs");
const GROUP: Field = ("sequential_image_generation", "the same");
const GROUP_OPTIONS: Field = ("sequential_image_generation_options", "the same");
const WATERMARK: Field = ("watermark", "the same, always sent");

const fn seedance(family: &'static str, metadata: &'static [Field; 9]) -> FieldSupport {
    FieldSupport {
        family,
        fields: metadata,
    }
}

const VIDEO_PROMPT: Field = ("prompt", "a text of `content`, without `--` flags");
const IMAGE: Field = ("image", "an image of `content`, `first_frame`");
const LENGTH: Field = ("seconds", "`duration`");
const DURATION: Field = ("duration", "the same");
const FRAME: Field = ("size", "`ratio` and `resolution`");
const RATIO: Field = (
    "aspect_ratio",
    "`ratio`; not supported beside a first frame, which decides",
);
const TIER: Field = ("resolution", "the same");

/// See [`FieldSupport`].
pub(crate) static FIELD_SUPPORT: &[FieldSupport] = &[
    FieldSupport {
        family: "seedream-4.5",
        fields: &[
            PROMPT,
            SIZE,
            RESOLUTION,
            N,
            REFERENCES,
            (
                "optimize_prompt_options",
                "the same; `fast` as `standard`, which is all that 4.5 has",
            ),
            ("optimize_prompt_mode", "`optimize_prompt_options.mode`"),
            GROUP,
            GROUP_OPTIONS,
            WATERMARK,
        ],
    },
    FieldSupport {
        family: "seedream-5-lite",
        fields: &[
            PROMPT,
            SIZE,
            RESOLUTION,
            N,
            REFERENCES,
            ("output_format", "the same"),
            GROUP,
            GROUP_OPTIONS,
            WATERMARK,
        ],
    },
    seedance(
        "seedance-1.0",
        &[
            VIDEO_PROMPT,
            IMAGE,
            (
                "images",
                "images of `content`: `first_frame` and `last_frame`, or `reference_image` each",
            ),
            LENGTH,
            DURATION,
            FRAME,
            RATIO,
            TIER,
            ("metadata", "the same names beside `content`"),
        ],
    ),
    seedance(
        "seedance-1.5-pro",
        &[
            VIDEO_PROMPT,
            IMAGE,
            (
                "images",
                "images of `content`: `first_frame` and `last_frame`",
            ),
            LENGTH,
            DURATION,
            FRAME,
            RATIO,
            TIER,
            ("metadata", "the same names beside `content`"),
        ],
    ),
    seedance(
        "seedance-2.0",
        &[
            ("prompt", "a text of `content`"),
            IMAGE,
            (
                "images",
                "images of `content`: one `first_frame`, or `reference_image` each",
            ),
            LENGTH,
            DURATION,
            FRAME,
            RATIO,
            TIER,
            ("metadata", "the same names beside `content`"),
        ],
    ),
];
