//! Chat-completions: an answer written, whole or as chunks.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Chat;
use crate::chat_output::{Call, ChatOutput, Ending, pieces};
use crate::event_stream::{Answer, Event, EventStream, Form};
use crate::openai::invalid;
use crate::openai::{SPEC, is_foreign, usage};
use crate::rejection::{OrRejected, Rejection};

const CREATED: u64 = 1_760_000_000;

pub(super) fn make(chat: &Chat, plan: &ChatOutput) -> OrRejected<Answer> {
    if plan.ending == Ending::Blocked {
        let message = "The response was filtered due to the prompt triggering the content \
            management policy. Please modify your prompt and retry.";
        let rejection = invalid("blocked", message)
            .code("content_filter")
            .param("prompt");
        return Err(Box::new(rejection));
    }
    let writer = Writer { chat, plan };
    Ok(if chat.stream {
        Answer::Events(writer.script())
    } else {
        Answer::Json(writer.whole())
    })
}

struct Writer<'a> {
    chat: &'a Chat,
    plan: &'a ChatOutput,
}

impl Writer<'_> {
    fn id(&self) -> String {
        self.plan.id("chatcmpl-", "chat", 0)
    }

    fn count(&self) -> usize {
        self.chat.prompt.count
    }

    fn reason(&self) -> &'static str {
        match self.plan.ending {
            Ending::Length => "length",
            Ending::Filtered => "content_filter",
            _ if !self.plan.calls.is_empty() => "tool_calls",
            _ => "stop",
        }
    }

    /// Whether the text is what the model rejects with.
    fn refuses(&self) -> bool {
        self.plan.ending == Ending::Refused
    }

    fn shows_thought(&self) -> bool {
        is_foreign(&self.chat.model) && !self.plan.thoughts.is_empty()
    }

    fn whole(&self) -> Value {
        let choices: Vec<Value> = (0..self.count()).map(|index| self.choice(index)).collect();
        json!({
            "id": self.id(), "object": "chat.completion", "created": CREATED,
            "model": self.chat.model, "choices": choices,
            "usage": usage(self.plan.tokens, "prompt", "completion"),
            "service_tier": "default", "system_fingerprint": "fp_fake",
        })
    }

    fn choice(&self, index: usize) -> Value {
        let text = self.plan.text();
        let none = self.plan.pieces.is_empty();
        let mut message = json!({
            "role": "assistant",
            "content": if self.refuses() || none { Value::Null } else { json!(text) },
            "refusal": if self.refuses() { json!(text) } else { Value::Null },
            "annotations": [],
        });
        if self.shows_thought() {
            message["reasoning_content"] = json!(self.plan.thought());
        }
        if !self.plan.calls.is_empty() {
            let calls = self.plan.calls.iter().enumerate();
            message["tool_calls"] = calls.map(|(at, call)| self.call(index, at, call)).collect();
        }
        json!({
            "index": index, "message": message, "finish_reason": self.reason(),
            "logprobs": self.logprobs(&self.plan.pieces),
        })
    }

    fn call_id(&self, choice: usize, at: usize) -> String {
        self.plan.id("call_", "call", 1000 * choice + at)
    }

    fn call(&self, choice: usize, at: usize, call: &Call) -> Value {
        let (kind, field) = names(call);
        json!({
            "id": self.call_id(choice, at), "type": kind,
            kind: {"name": call.name, field: call.text()},
        })
    }

    fn logprobs(&self, pieces: &[String]) -> Value {
        if !self.chat.logprobs {
            return Value::Null;
        }
        let token = |piece: &String| json!({"token": piece, "logprob": -0.25, "bytes": piece.as_bytes(), "top_logprobs": []});
        json!({"content": pieces.iter().map(token).collect::<Vec<_>>(), "refusal": null})
    }

    fn chunk(&self, choices: Value, usage: Value) -> Event {
        let mut chunk = json!({
            "id": self.id(), "object": "chat.completion.chunk", "created": CREATED,
            "model": self.chat.model, "service_tier": "default",
            "system_fingerprint": "fp_fake", "choices": choices, "obfuscation": "kJ3",
        });
        if self.chat.include_usage {
            chunk["usage"] = usage;
        }
        Event::unnamed(chunk)
    }

    fn delta(&self, index: usize, delta: Value) -> Event {
        self.last(index, delta, Value::Null, Value::Null)
    }

    fn last(&self, index: usize, delta: Value, reason: Value, logprobs: Value) -> Event {
        let choice =
            json!({"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason});
        self.chunk(json!([choice]), Value::Null)
    }

    fn script(&self) -> EventStream {
        let mut events = Vec::new();
        let mut filler_at = 0;
        for index in 0..self.count() {
            let first = json!({"role": "assistant", "content": "", "refusal": null});
            events.push(self.delta(index, first));
        }
        if self.shows_thought() {
            let thoughts = self.plan.thoughts.iter();
            events.extend(thoughts.map(|t| self.delta(0, json!({"reasoning_content": t}))));
        }
        let field = if self.refuses() { "refusal" } else { "content" };
        for piece in &self.plan.pieces {
            let logprobs = self.logprobs(std::slice::from_ref(piece));
            let say =
                |index| self.last(index, json!({field: piece}), Value::Null, logprobs.clone());
            events.extend((0..self.count()).map(say));
            if filler_at == 0 {
                filler_at = events.len();
                events.push(Event::Raw(": keep-alive\n\n"));
            }
        }
        for index in 0..self.count() {
            self.push_calls(index, &mut events);
        }
        if filler_at == 0 {
            filler_at = events.len().min(2);
        }
        let before = events.len();
        for index in 0..self.count() {
            events.push(self.last(index, json!({}), json!(self.reason()), Value::Null));
        }
        if self.chat.include_usage {
            let usage = usage(self.plan.tokens, "prompt", "completion");
            events.push(self.chunk(json!([]), usage));
        }
        events.push(Event::Raw("data: [DONE]\n\n"));
        let more = self.delta(0, json!({"content": "and so on "}));
        let error = Event::unnamed(SPEC.error_body(&overloaded(), ""));
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

    /// The calls, one after the other; all at once if the text says `interleave`.
    fn push_calls(&self, choice: usize, events: &mut Vec<Event>) {
        let calls = self.plan.calls.iter().enumerate();
        let mut all: Vec<_> = calls
            .map(|(at, call)| self.fragments(choice, at, call).into_iter())
            .collect();
        if self.chat.prompt.text.contains("interleave") {
            while all.iter().any(|fragments| fragments.len() > 0) {
                events.extend(all.iter_mut().filter_map(Iterator::next));
            }
        } else {
            events.extend(all.into_iter().flatten());
        }
    }

    /// One call: its beginning, then its arguments in pieces.
    fn fragments(&self, choice: usize, at: usize, call: &Call) -> Vec<Event> {
        let (kind, field) = names(call);
        let begin = json!({
            "index": at, "id": self.call_id(choice, at), "type": kind,
            kind: {"name": call.name, field: ""},
        });
        let mut fragments = vec![self.delta(choice, json!({"tool_calls": [begin]}))];
        for piece in pieces(&call.text(), 4) {
            let more = json!({"index": at, kind: {field: piece}});
            fragments.push(self.delta(choice, json!({"tool_calls": [more]})));
        }
        fragments
    }
}

/// The type of a call, and the field that holds what it is called with.
fn names(call: &Call) -> (&'static str, &'static str) {
    if call.custom {
        ("custom", "input")
    } else {
        ("function", "arguments")
    }
}

fn overloaded() -> Rejection {
    let message = "The server had an error while processing your request. Sorry!";
    Rejection::new(500, "server_error", "scenario", message).code("server_error")
}
