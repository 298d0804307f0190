//! Lists which request fields of each family are supported.

use crate::provider::FieldSupport;

pub(crate) static FIELD_SUPPORT: &[FieldSupport] = &[FieldSupport {
    family: "native-v3",
    fields: &[
        (
            "input",
            "`text`; over 1000 characters in several calls, cut at sentence ends",
        ),
        (
            "voice",
            "`voice_id`; without one the channel's voice for the language",
        ),
        ("speed", "`voice_speed`, within 0.8 to 2.0, one decimal"),
        (
            "language",
            "`voice_language`; without one `zh` or `en` by the text's script",
        ),
        ("instructions", "not supported: the provider accepts none"),
        (
            "external_task_id",
            "not supported: the gateway's own records have it",
        ),
    ],
}];
