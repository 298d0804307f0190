//! Usage and how a reply ended: the words of the format.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::hub::{Finish, Usage};

/// `usage` on the wire. What is missing counts nothing.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    image_tokens: Option<u64>,
    audio_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let input = wire.input_tokens_details.unwrap_or_default();
        let output = wire.output_tokens_details.unwrap_or_default();
        Self {
            input: wire.input_tokens.unwrap_or(0),
            cache_read: input.cached_tokens.unwrap_or(0),
            cache_write: input.cache_write_tokens.unwrap_or(0),
            input_image: input.image_tokens.unwrap_or(0),
            input_audio: input.audio_tokens.unwrap_or(0),
            output: wire.output_tokens.unwrap_or(0),
            reasoning: output.reasoning_tokens.unwrap_or(0),
            ..Self::default()
        }
    }
}

/// `usage` as clients need it: both details always there.
pub(super) fn write_usage(usage: &Usage) -> Value {
    let mut input =
        json!({"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write});
    for (name, count) in [
        ("image_tokens", usage.input_image),
        ("audio_tokens", usage.input_audio),
    ] {
        if count > 0 {
            input[name] = count.into();
        }
    }
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": input,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}

/// `status` of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// `completed`.
    Completed,
    /// `incomplete`, with the reason.
    Incomplete(&'static str),
    /// `failed`, with code and message.
    Failed(&'static str, &'static str),
}

impl Outcome {
    /// The outcome of a reply that ended so. A refusal in words is a complete reply.
    pub(super) fn of(finish: Finish, has_refusal: bool) -> Self {
        match finish {
            Finish::Refusal if has_refusal => Self::Completed,
            Finish::Refusal | Finish::PromptBlocked => Self::Incomplete("content_filter"),
            Finish::Length | Finish::ContextFull | Finish::Pause => {
                Self::Incomplete("max_output_tokens")
            }
            Finish::BadToolCall => {
                Self::Failed("server_error", "the model made a malformed tool call")
            }
            Finish::End | Finish::StopSequence | Finish::ToolCall | Finish::Other => {
                Self::Completed
            }
        }
    }

    /// `status`.
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete(_) => "incomplete",
            Self::Failed(..) => "failed",
        }
    }
}

/// How a reply ended, from its status words.
pub(super) fn read_finish(is_incomplete: bool, reason: Option<&str>, has_refusal: bool) -> Finish {
    match (is_incomplete, reason) {
        (false, _) if has_refusal => Finish::Refusal,
        (false, _) => Finish::End,
        (true, Some("content_filter")) => Finish::Refusal,
        (true, Some("max_output_tokens") | None) => Finish::Length,
        (true, Some(_)) => Finish::Pause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_30_every_finish_has_its_status_and_reads_back() {
        for (finish, outcome, back) in [
            (Finish::End, Outcome::Completed, Finish::End),
            (Finish::StopSequence, Outcome::Completed, Finish::End),
            (Finish::ToolCall, Outcome::Completed, Finish::End),
            (Finish::Other, Outcome::Completed, Finish::End),
            (
                Finish::Length,
                Outcome::Incomplete("max_output_tokens"),
                Finish::Length,
            ),
            (
                Finish::ContextFull,
                Outcome::Incomplete("max_output_tokens"),
                Finish::Length,
            ),
            (
                Finish::Pause,
                Outcome::Incomplete("max_output_tokens"),
                Finish::Length,
            ),
            (
                Finish::Refusal,
                Outcome::Incomplete("content_filter"),
                Finish::Refusal,
            ),
            (
                Finish::PromptBlocked,
                Outcome::Incomplete("content_filter"),
                Finish::Refusal,
            ),
        ] {
            assert_eq!(Outcome::of(finish, false), outcome);
            let reason = match outcome {
                Outcome::Incomplete(reason) => Some(reason),
                _ => None,
            };
            assert_eq!(read_finish(reason.is_some(), reason, false), back);
        }
        assert_eq!(Outcome::of(Finish::Refusal, true), Outcome::Completed);
        assert_eq!(read_finish(false, None, true), Finish::Refusal);
        assert_eq!(read_finish(true, Some("steered"), false), Finish::Pause);
        assert_eq!(Outcome::of(Finish::BadToolCall, false).status(), "failed");
    }

    #[test]
    fn trap_49_usage_is_read_and_written_whole() {
        let usage = Usage {
            input: 100,
            cache_read: 60,
            cache_write: 10,
            output: 30,
            reasoning: 20,
            ..Usage::default()
        };
        let wire = write_usage(&usage);
        assert_eq!(wire["total_tokens"], 130);
        let back: WireUsage = serde_json::from_value(wire).unwrap();
        assert_eq!(Usage::from(back), usage);
        let bare: WireUsage =
            serde_json::from_str(r#"{"input_tokens":3,"output_tokens_details":null}"#).unwrap();
        assert_eq!(Usage::from(bare).input, 3);
    }
}
