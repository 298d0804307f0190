//! Which request fields of each family are supported, and the upstream field of each.

use crate::provider::FieldSupport;

const fn gemini(
    family: &'static str,
    fields: &'static [(&'static str, &'static str)],
) -> FieldSupport {
    FieldSupport { family, fields }
}

const PROMPT: (&str, &str) = ("prompt", "a text part");
const SIZE: (&str, &str) = ("size", "`imageConfig.aspectRatio`");
const N: (&str, &str) = ("n", "that many calls, up to four at a time");
const FALLBACK: (&str, &str) = (
    "official_fallback",
    "not supported: the operator decides which channels serve a model",
);
const REFERENCES: (&str, &str) = ("image_urls", "`inlineData` parts before the text");
const TIER: (&str, &str) = ("resolution", "`imageConfig.imageSize`");
const TIERS: (&str, &str) = ("resolution", "`imageConfig.imageSize`, `0.5K` as `512`");

/// See [`FieldSupport`].
pub(crate) static FIELD_SUPPORT: &[FieldSupport] = &[
    gemini(
        "gemini-2.5-flash-image",
        &[
            PROMPT,
            SIZE,
            ("resolution", "not supported: the model has one tier"),
            N,
            FALLBACK,
            REFERENCES,
        ],
    ),
    gemini(
        "gemini-3-pro-image",
        &[PROMPT, SIZE, TIER, N, FALLBACK, REFERENCES],
    ),
    gemini(
        "gemini-3.1-flash-image",
        &[
            PROMPT,
            SIZE,
            TIERS,
            N,
            FALLBACK,
            REFERENCES,
            ("engine_search", "`tools: [{googleSearch}]`"),
            (
                "engine_image_search",
                "`googleSearch.searchTypes` with `imageSearch`",
            ),
        ],
    ),
    gemini(
        "imagen-4",
        &[
            ("prompt", "`instances[0].prompt`, or a text part"),
            ("n", "`parameters.sampleCount`, always 1"),
            (
                "size",
                "`parameters.aspectRatio`, or `imageConfig.aspectRatio`",
            ),
            ("image", "not supported: rejected at submission"),
            ("image_urls", "not supported: rejected at submission"),
        ],
    ),
    gemini(
        "veo-3.1",
        &[
            ("prompt", "`instances[0].prompt`"),
            ("image", "`instances[0].image`"),
            ("images", "`instances[0].image`, the first"),
            ("seconds", "`parameters.durationSeconds`"),
            ("duration", "`parameters.durationSeconds`"),
            ("size", "`parameters.aspectRatio` and `.resolution`"),
            ("aspect_ratio", "`parameters.aspectRatio`"),
            ("resolution", "`parameters.resolution`"),
            (
                "metadata",
                "the same names in `parameters`; `seed` and `generateAudio` on the Agent Platform only",
            ),
        ],
    ),
];
