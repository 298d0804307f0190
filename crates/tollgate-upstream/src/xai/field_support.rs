//! Which request fields of each family are supported, and the upstream field of each.

use crate::provider::FieldSupport;

const PROMPT: (&str, &str) = ("prompt", "`prompt`");
const N: (&str, &str) = (
    "n",
    "`n`; in calls of 3 if the model generates fewer at once",
);

/// The supported fields, for the provider's page.
pub(crate) const FIELD_SUPPORT: &[FieldSupport] = &[
    FieldSupport {
        family: "grok-imagine",
        fields: &[PROMPT, ("size", "`aspect_ratio`"), N],
    },
    FieldSupport {
        family: "grok-imagine-edit",
        fields: &[
            PROMPT,
            (
                "image_urls",
                "the first: `image`, as a data URI, with the nearest `aspect_ratio`; a GIF becomes a PNG",
            ),
            N,
        ],
    },
    FieldSupport {
        family: "grok-imagine-video",
        fields: &[
            PROMPT,
            ("image", "`image`, as a data URI"),
            ("images", "one: `image`; several: `reference_images`"),
            ("seconds", "`duration`"),
            ("duration", "`duration`"),
            ("size", "`aspect_ratio`, `resolution`"),
            (
                "aspect_ratio",
                "`aspect_ratio`; without it the ratio of the first frame",
            ),
            ("resolution", "`resolution`"),
        ],
    },
    FieldSupport {
        family: "native-v3",
        fields: &[
            ("input", "`text`"),
            (
                "voice",
                "`voice_id`; without it the option `voice`, else `eve`",
            ),
            ("speed", "`speed`, within 0.7 to 1.5"),
            ("language", "`language`, else `auto`"),
            (
                "instructions",
                "not supported: the upstream has no such field",
            ),
            (
                "external_task_id",
                "not supported: it is for the gateway's own records",
            ),
        ],
    },
];
