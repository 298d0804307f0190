//! Which request fields of each family are supported, and the upstream field of each.

use crate::provider::FieldSupport;

const PROMPT: (&str, &str) = ("prompt", "`prompt`");
const N: (&str, &str) = ("n", "`n`");
const QUALITY: (&str, &str) = ("quality", "`quality`");
const REFERENCES: (&str, &str) = (
    "image_urls",
    "`image`, `image[]`: the files themselves, under `/images/edits`; a GIF becomes a PNG",
);
const MASK: (&str, &str) = ("mask_url", "`mask`: the file itself, as PNG");
const BACKGROUND: (&str, &str) = ("background", "`background`");
const MODERATION: (&str, &str) = ("moderation", "`moderation`");
const FORMAT: (&str, &str) = ("output_format", "`output_format`");
const COMPRESSION: (&str, &str) = (
    "output_compression",
    "`output_compression`, with jpeg and webp alone",
);

/// The supported fields, for the provider's page.
pub(crate) const FIELD_SUPPORT: &[FieldSupport] = &[
    FieldSupport {
        family: "gpt-image-2",
        fields: &[
            PROMPT,
            (
                "size",
                "`size` in pixels, the nearest that the model supports",
            ),
            ("resolution", "`size` in pixels"),
            QUALITY,
            BACKGROUND,
            MODERATION,
            FORMAT,
            COMPRESSION,
            N,
            REFERENCES,
            MASK,
        ],
    },
    FieldSupport {
        family: "gpt-image-1",
        fields: &[
            PROMPT,
            ("size", "`size` in pixels"),
            N,
            QUALITY,
            BACKGROUND,
            MODERATION,
            FORMAT,
            COMPRESSION,
            REFERENCES,
            MASK,
        ],
    },
    FieldSupport {
        family: "gpt-image-2.5-async",
        fields: &[
            PROMPT,
            (
                "size",
                "`size` in pixels, the nearest that the model supports",
            ),
            QUALITY,
        ],
    },
    FieldSupport {
        family: "sora-2",
        fields: &[
            PROMPT,
            (
                "image",
                "`input_reference`: the file itself, scaled and cut to `size`",
            ),
            ("images", "the first: `input_reference`"),
            ("seconds", "`seconds`, always sent"),
            ("duration", "`seconds`"),
            ("size", "`size`"),
            ("aspect_ratio", "`size`"),
            ("resolution", "`size`"),
        ],
    },
    FieldSupport {
        family: "native-v3",
        fields: &[
            ("input", "`input`"),
            (
                "voice",
                "`voice`, by the option `voices`; without it the option `voice`, else `alloy`",
            ),
            ("speed", "`speed`"),
            (
                "language",
                "not supported: the model detects it from the text",
            ),
            ("instructions", "`instructions`; not supported by `tts-1`"),
            (
                "external_task_id",
                "not supported: it is for the gateway's own records",
            ),
        ],
    },
];
