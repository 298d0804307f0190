//! native-v3 (SPEC.md › Speech synthesis).

use super::family::{Family, Shapes};
use crate::LinkLife;
use crate::form::field::Field;

/// The longest text, in Unicode scalar values. SPEC.md names no limit; this is the greatest that a provider takes at
/// once, and adapters of providers that take less split the text.
const MAX_TEXT: usize = 4096;
/// The slowest and fastest pace that SPEC.md names.
const SPEEDS: (f64, f64) = (0.25, 4.0);

const TEXT: &str = "What to say.";
const VOICE: &str = "The id of a voice that the channel's provider has.";
const SPEED: &str =
    "The pace; 1 is the usual one. A channel with a smaller range takes the nearest.";
const LANGUAGE: &str = "The voice's language, such as `zh` or `en`.";

const INSTRUCTIONS: Field = Field::text(
    "instructions",
    "Style or expression, where the channel's provider takes it.",
)
.at_most(4096);
const EXTERNAL_TASK_ID: Field = Field::text(
    "external_task_id",
    "Your own id for the task, told again in its records.",
)
.at_most(256)
.or_in_metadata();

const fn text(name: &'static str) -> Field {
    Field::text(name, TEXT).at_most(MAX_TEXT).required()
}

const fn voice(name: &'static str) -> Field {
    Field::text(name, VOICE).at_most(256)
}

const fn speed(name: &'static str) -> Field {
    Field::number(name, SPEEDS.0, SPEEDS.1, SPEED)
}

const fn language(name: &'static str) -> Field {
    Field::text(name, LANGUAGE).at_most(35)
}

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "native-v3",
    title: "Native speech v3",
    about: "Speaks a text. Asynchronous: the call returns a task, whose record names the audio file when it is there. There is no voice cloning.",
    models: &["native-v3", "kling-v3"],
    fields: Shapes {
        usual: &[
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
            Field::choice("task_type", &["tts"], "What to do.").required(),
            Field::object(
                "metadata",
                &[
                    text("text"),
                    voice("voice_id"),
                    speed("voice_speed"),
                    language("voice_language"),
                    INSTRUCTIONS,
                ],
                "The fields themselves.",
            ),
            EXTERNAL_TASK_ID,
        ],
    },
    ignored: &[
        ("response_format", "the channel decides the audio's format"),
        ("stream_format", "speech is a task, not a stream"),
    ],
    rules: &[],
    links: LinkLife::Usual,
    safety_review: false,
};
