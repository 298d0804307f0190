//! Native speech v3: `native-v3` and `kling-v3`. Docs page: docs/models/native-v3.md.

use super::family::{Family, FieldsByLayout};
use crate::fields::field::Field;
use crate::link_ttl::LinkTtl;

/// The maximum length of a text, in Unicode scalar values: the largest limit of a provider. Adapters of providers with smaller limits split the text.
const MAX_TEXT: usize = 4096;
/// The lowest and highest speaking rate.
const SPEEDS: (f64, f64) = (0.25, 4.0);

const TEXT: &str = "The text to speak.";
const VOICE: &str = "A voice id of the channel's provider.";
const SPEED: &str = "Speaking rate; 1 is normal. Clamped to the range of the channel.";
const LANGUAGE: &str = "The voice's language, such as `zh` or `en`.";

const INSTRUCTIONS: Field = Field::text(
    "instructions",
    "Style or expression, if the channel's provider supports it.",
)
.max_chars(4096);
const EXTERNAL_TASK_ID: Field = Field::text(
    "external_task_id",
    "Your own id for the task, repeated in its records.",
)
.max_chars(256)
.allowed_in_metadata();

const fn text(name: &'static str) -> Field {
    Field::text(name, TEXT).max_chars(MAX_TEXT).required()
}

const fn voice(name: &'static str) -> Field {
    Field::text(name, VOICE).max_chars(256)
}

const fn speed(name: &'static str) -> Field {
    Field::number(name, SPEEDS.0, SPEEDS.1, SPEED)
}

const fn language(name: &'static str) -> Field {
    Field::text(name, LANGUAGE).max_chars(35)
}

pub(super) static FAMILY: Family = Family {
    name: "native-v3",
    title: "Native speech v3",
    about: "Converts text to speech. Asynchronous: the response is a receipt, and the task's record contains the link to the audio file once it is completed. Voice cloning is not supported.",
    models: &["native-v3", "kling-v3"],
    one_model: true,
    fields: FieldsByLayout {
        standard: &[
            text("input"),
            voice("voice"),
            speed("speed"),
            language("language"),
            INSTRUCTIONS,
            EXTERNAL_TASK_ID,
        ],
        native: &[
            text("text"),
            voice("voice_id"),
            speed("voice_speed"),
            language("voice_language"),
            INSTRUCTIONS,
            EXTERNAL_TASK_ID,
        ],
        multimodal: &[
            Field::choice("task_type", &["tts"], "The kind of task.").required(),
            Field::object(
                "metadata",
                &[
                    text("text"),
                    voice("voice_id"),
                    speed("voice_speed"),
                    language("voice_language"),
                    INSTRUCTIONS,
                ],
                "The speech parameters.",
            )
            .required(),
            EXTERNAL_TASK_ID,
        ],
    },
    ignored: &[
        ("response_format", "the channel determines the audio format"),
        (
            "stream_format",
            "speech is generated as a task, not as a stream",
        ),
    ],
    rules: &[],
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
