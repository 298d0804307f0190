//! Messages: an answer written, whole or as events.

use std::sync::Arc;

use serde_json::{Value, json};

use super::check::Messages;
use super::invalid;
use super::sign;
use crate::chat_output::{ChatOutput, Ending, pieces};
use crate::event_stream::{Answer, Event, EventStream, Form};
use crate::rejection::{OrRejected, Rejection};
use crate::tokens::{Tokens, WRITTEN_1H, tokens};

/// How many tokens a request has.
pub(super) fn count(request: &Messages) -> Value {
    let asked = request
        .prompt
        .results
        .as_ref()
        .unwrap_or(&request.prompt.text);
    json!({"input_tokens": tokens(asked, 0, false).input})
}

pub(super) fn make(request: &Messages, plan: &ChatOutput) -> OrRejected<Answer> {
    if plan.ending == Ending::Filtered {
        let message = "Output blocked by content filtering policy";
        return Err(Box::new(invalid("content-filter", message)));
    }
    let writer = Writer { request, plan };
    Ok(if request.stream {
        Answer::Events(writer.script())
    } else {
        Answer::Json(writer.whole())
    })
}

struct Writer<'a> {
    request: &'a Messages,
    plan: &'a ChatOutput,
}

impl Writer<'_> {
    fn message(&self, content: Value, usage: Value) -> Value {
        json!({
            "id": self.plan.id("msg_", "message", 0), "type": "message", "role": "assistant",
            "model": self.request.model, "content": content, "stop_reason": null,
            "stop_sequence": null, "usage": usage,
        })
    }

    fn whole(&self) -> Value {
        let blocks: Vec<Value> = self.blocks().into_iter().map(|block| block.whole).collect();
        let mut message = self.message(json!(blocks), self.usage());
        if let (Value::Object(message), Value::Object(end)) = (&mut message, self.end()) {
            message.extend(end);
        }
        message
    }

    /// Why the message ends.
    fn end(&self) -> Value {
        match &self.plan.ending {
            Ending::Length => json!({"stop_reason": "max_tokens", "stop_sequence": null}),
            Ending::Refused | Ending::Blocked => {
                let why = "The request may violate the usage policy.";
                let details = json!({"type": "refusal", "category": "cyber", "explanation": why});
                json!({"stop_reason": "refusal", "stop_sequence": null, "stop_details": details})
            }
            Ending::Stopped(stop) => {
                json!({"stop_reason": "stop_sequence", "stop_sequence": stop})
            }
            _ if !self.plan.calls.is_empty() => {
                json!({"stop_reason": "tool_use", "stop_sequence": null})
            }
            _ => json!({"stop_reason": "end_turn", "stop_sequence": null}),
        }
    }

    fn usage(&self) -> Value {
        let Tokens {
            input,
            cached,
            written,
            output,
            reasoning,
        } = self.plan.tokens;
        let long = if self.request.caches_long {
            written
        } else {
            WRITTEN_1H
        };
        let mut usage = json!({
            "input_tokens": input - cached - written,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written - long, "ephemeral_1h_input_tokens": long,
            },
            "output_tokens": output,
            "service_tier": "standard",
        });
        if !self.plan.thoughts.is_empty() {
            usage["output_tokens_details"] = json!({"thinking_tokens": reasoning});
        }
        usage
    }

    /// The blocks, each whole, as it begins, and what is added to it.
    fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        if !self.plan.thoughts.is_empty() {
            blocks.push(self.thinking());
            if self.request.prompt.text.contains("redacted") {
                let data = self.plan.id("redacted_fake_", "redacted", 0);
                let whole = json!({"type": "redacted_thinking", "data": data});
                blocks.push(Block {
                    started: whole.clone(),
                    whole,
                    deltas: Vec::new(),
                });
            }
        }
        if !self.plan.pieces.is_empty() {
            let delta = |piece: &String| json!({"type": "text_delta", "text": piece});
            blocks.push(Block {
                whole: json!({"type": "text", "text": self.plan.text()}),
                started: json!({"type": "text", "text": ""}),
                deltas: self.plan.pieces.iter().map(delta).collect(),
            });
        }
        for (at, call) in self.plan.calls.iter().enumerate() {
            let id = self.plan.id("toolu_", "call", at);
            let block = |input: &Value| json!({"type": "tool_use", "id": id, "name": call.name, "input": input});
            let mut texts = vec![String::new()];
            texts.extend(pieces(&call.text(), 4));
            let delta = |text: &String| json!({"type": "input_json_delta", "partial_json": text});
            blocks.push(Block {
                whole: block(&call.arguments),
                started: block(&json!({})),
                deltas: texts.iter().map(delta).collect(),
            });
        }
        blocks
    }

    fn thinking(&self) -> Block {
        let omits = self.request.omits;
        let thought = self.plan.thought();
        let signature = sign(&thought);
        let shown = if omits { "" } else { thought.as_str() };
        let thoughts = self.plan.thoughts.iter().filter(|_| !omits);
        let delta = |piece: &String| json!({"type": "thinking_delta", "thinking": piece});
        let mut deltas: Vec<Value> = thoughts.map(delta).collect();
        deltas.push(json!({"type": "signature_delta", "signature": signature}));
        Block {
            whole: json!({"type": "thinking", "thinking": shown, "signature": signature}),
            started: json!({"type": "thinking", "thinking": "", "signature": ""}),
            deltas,
        }
    }

    fn script(&self) -> EventStream {
        let mut start = self.usage();
        start["output_tokens"] = json!(1);
        if let Value::Object(usage) = &mut start {
            usage.shift_remove("output_tokens_details");
        }
        let message = self.message(json!([]), start);
        let mut events = vec![event("message_start", json!({"message": message}))];
        let mut text_at = (0, 0);
        for (index, block) in self.blocks().into_iter().enumerate() {
            let started = json!({"index": index, "content_block": block.started});
            events.push(event("content_block_start", started));
            if index == 0 {
                events.push(event("ping", json!({})));
            }
            for delta in block.deltas {
                let is_text = delta["type"] == "text_delta";
                let data = json!({"index": index, "delta": delta});
                events.push(event("content_block_delta", data));
                if is_text && text_at.0 == 0 {
                    text_at = (events.len(), index);
                }
            }
            events.push(event("content_block_stop", json!({"index": index})));
        }
        let before = events.len();
        let end = json!({"delta": self.end(), "usage": self.usage()});
        events.push(event("message_delta", end));
        events.push(event("message_stop", json!({})));
        let (filler_at, index) = if text_at.0 == 0 { (2, 0) } else { text_at };
        let more = event(
            "content_block_delta",
            json!({"index": index, "delta": {"type": "text_delta", "text": "and so on "}}),
        );
        let overloaded = Rejection::new(529, "overloaded_error", "scenario", "Overloaded");
        let error = Event::Json {
            name: Some("error"),
            data: super::SPEC.error_body(&overloaded, "req_fake_stream"),
        };
        EventStream {
            form: Form::Sse,
            tail: events.len() - before,
            events,
            filler_at,
            filler: Arc::new(move |_| more.clone()),
            error_first: error.clone(),
            error_mid: error,
        }
    }
}

struct Block {
    whole: Value,
    started: Value,
    deltas: Vec<Value>,
}

fn event(name: &'static str, data: Value) -> Event {
    let mut all = json!({"type": name});
    if let (Value::Object(all), Value::Object(data)) = (&mut all, data) {
        all.extend(data);
    }
    Event::Json {
        name: Some(name),
        data: all,
    }
}
