//! Determines what the provider bills for a chat: the usage of a complete exchange; for an exchange that ends early, what was generated until then.

use std::sync::Mutex;
use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

use crate::chat_output::{ChatOutput, ChatPrompt, IMAGE_BYTES};
use crate::event_stream::Event;
use crate::lock::lock;
use crate::scenario::Scenario;
use crate::tokens::Tokens;

/// Bytes of text per token, used if there is no usage.
const BYTES_PER_TOKEN: u64 = 4;
/// Tokens that the model generates per second, used if there is no usage: the tokens that are not visible are reasoning.
const TOKENS_PER_SECOND: u64 = 100;
/// Members of events that contain generated output.
const OUTPUT_MEMBERS: [&str; 7] = [
    "content",
    "refusal",
    "delta",
    "text",
    "arguments",
    "partial_json",
    "args",
];

/// The bill of one chat.
#[derive(Debug)]
pub(crate) struct Bill {
    prompt_tokens: u64,
    usage: Tokens,
    /// The number of bytes of the visible output.
    visible_bytes: u64,
    received_at: Instant,
    progress: Mutex<Progress>,
}

/// The part of a response that has been sent.
#[derive(Debug, Default)]
struct Progress {
    /// For each event, its end in the body and the bytes of output up to there. Empty if the response is not a stream.
    events: Vec<(u64, u64)>,
    /// Whether the provider itself ends the stream early.
    breaks_off: bool,
    /// Whether the model continues to generate while the stream stalls.
    stalls: bool,
    sent: u64,
    /// When the last byte was sent. `None` before the first.
    sent_at: Option<Instant>,
}

impl Bill {
    pub(crate) fn new(prompt: &ChatPrompt, output: &ChatOutput, received_at: Instant) -> Self {
        let prompt_tokens = (prompt.text.len() as u64).div_ceil(BYTES_PER_TOKEN);
        Self {
            prompt_tokens,
            usage: output.tokens(),
            visible_bytes: output.visible_bytes(),
            received_at,
            progress: Mutex::default(),
        }
    }

    /// Registers that the response is a stream of these events, written as `bytes`, unless the scenario ends it early.
    pub(crate) fn expect_stream(&self, events: &[Event], bytes: &[Bytes], how: &Scenario) {
        let (mut end, mut generated) = (0, 0);
        let ends = events.iter().zip(bytes).map(|(event, bytes)| {
            end += bytes.len() as u64;
            if let Event::Json(data) = event {
                generated = self.visible_bytes.min(generated + output_bytes(data));
            }
            (end, generated)
        });
        let mut progress = lock(&self.progress);
        progress.events = ends.collect();
        progress.breaks_off = how.breaks_off();
        progress.stalls = matches!(how, Scenario::Stall { .. });
    }

    /// Records that `bytes` more bytes of the body were sent.
    pub(crate) fn sent(&self, bytes: usize) {
        let mut progress = lock(&self.progress);
        progress.sent += bytes as u64;
        progress.sent_at = Some(Instant::now());
    }

    /// The tokens that are billed. `None` if nothing was sent, or the provider failed before it sent any output.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        let progress = lock(&self.progress);
        let sent_at = progress.sent_at?;
        let sent = progress.sent;
        if progress.events.last().is_none_or(|(end, _)| sent >= *end) {
            return Some(self.usage);
        }
        let events = progress.events.iter();
        let sent_events = events.take_while(|(end, _)| *end <= sent);
        let generated = sent_events.last().map_or(0, |(_, generated)| *generated);
        if progress.breaks_off && generated == 0 {
            return None;
        }
        let visible = generated.div_ceil(BYTES_PER_TOKEN);
        let milliseconds = sent_at.duration_since(self.received_at).as_millis() as u64;
        let reasoning = match progress.stalls {
            true => u64::MAX,
            false => milliseconds * TOKENS_PER_SECOND / 1_000,
        };
        let reasoning = reasoning.saturating_sub(visible).min(self.usage.reasoning);
        Some(Tokens {
            input: self.prompt_tokens,
            cached: 0,
            written: 0,
            output: visible + reasoning,
            reasoning,
        })
    }
}

/// The number of bytes of output that an event contains.
fn output_bytes(value: &Value) -> u64 {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) if OUTPUT_MEMBERS.contains(&name.as_str()) => text.len() as u64,
                Value::Object(_) if name == "args" => value.to_string().len() as u64,
                Value::Object(_) if name == "inlineData" => IMAGE_BYTES,
                value => output_bytes(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(output_bytes).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stream_that_ends_early_is_billed_for_what_was_sent() {
        let usage = Tokens {
            input: 90,
            cached: 20,
            written: 8,
            output: 30,
            reasoning: 0,
        };
        let bill = Bill {
            prompt_tokens: 10,
            usage,
            visible_bytes: 16,
            received_at: Instant::now(),
            progress: Mutex::default(),
        };
        assert_eq!(bill.tokens(), None);
        let events = [
            json!({"delta": {"role": "assistant"}}),
            json!({"delta": {"content": "12345678"}}),
            json!({"delta": {"content": "12345678"}}),
            json!({"done": {"text": "1234567812345678"}}),
        ];
        let events: Vec<Event> = events.into_iter().map(Event::Json).collect();
        let bytes = vec![Bytes::from_static(b"0123456789"); 4];
        bill.expect_stream(&events, &bytes, &Scenario::Normal);
        let outputs = [9, 1, 9, 11].map(|bytes| {
            bill.sent(bytes);
            bill.tokens().map(|tokens| (tokens.input, tokens.output))
        });
        assert_eq!(
            outputs,
            [Some((10, 0)), Some((10, 0)), Some((10, 0)), Some((10, 4))]
        );
        bill.sent(10);
        assert_eq!(bill.tokens(), Some(usage));
    }
}
