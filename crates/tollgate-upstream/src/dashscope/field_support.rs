//! Lists which request fields of each family are supported.

use crate::provider::FieldSupport;

pub(crate) static FIELD_SUPPORT: &[FieldSupport] = &[FieldSupport {
    family: "wan2.7",
    fields: &[
        ("prompt", "`input.messages[0].content[].text`"),
        (
            "image_urls",
            "`input.messages[0].content[].image`, as data URIs",
        ),
        ("n", "`parameters.n`, always"),
        (
            "size",
            "`parameters.size`: `W*H`, or the tier if the size follows the last reference image",
        ),
        ("thinking_mode", "`parameters.thinking_mode`"),
        ("enable_sequential", "`parameters.enable_sequential`"),
        ("seed", "`parameters.seed`"),
        (
            "negative_prompt",
            "`parameters.negative_prompt`; left out if the model rejects it",
        ),
        ("watermark", "`parameters.watermark`"),
        ("bbox_list", "`parameters.bbox_list`"),
        ("color_palette", "`parameters.color_palette`"),
    ],
}];
