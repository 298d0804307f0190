//! Responses: the answer as an object. The stream is made of the same items.

use serde_json::{Value, json};

use super::items::ENCRYPTED;
use super::{Responses, echoed, stream};
use crate::chat_output::{Call, ChatOutput, Ending};
use crate::event_stream::Answer;
use crate::openai::invalid;
use crate::openai::usage;
use crate::rejection::OrRejected;
use crate::tables::schema::field;

const CREATED: u64 = 1_760_000_000;

pub(super) fn make(request: &Responses, plan: &ChatOutput) -> OrRejected<Answer> {
    if plan.ending == Ending::Blocked {
        let message = "Invalid prompt: your prompt was flagged as potentially violating our usage \
            policy. Please try again with a different prompt.";
        return Err(Box::new(invalid("blocked", message).code("invalid_prompt")));
    }
    let writer = Writer { request, plan };
    Ok(if request.stream {
        Answer::Events(stream::script(&writer))
    } else {
        Answer::Json(writer.finished())
    })
}

/// Writes one answer.
pub(super) struct Writer<'a> {
    pub(super) request: &'a Responses,
    pub(super) plan: &'a ChatOutput,
}

impl Writer<'_> {
    /// The whole response.
    pub(super) fn finished(&self) -> Value {
        let mut response = self.response(self.items());
        let reason = match self.plan.ending {
            Ending::Length => Some("max_output_tokens"),
            Ending::Filtered => Some("content_filter"),
            _ => None,
        };
        match reason {
            Some(reason) => {
                response["status"] = json!("incomplete");
                response["incomplete_details"] = json!({"reason": reason});
            }
            None => {
                response["status"] = json!("completed");
                response["completed_at"] = json!(CREATED + 1);
            }
        }
        response["usage"] = usage(self.plan.tokens, "input", "output");
        response
    }

    /// A response in progress, which holds these items so far.
    pub(super) fn response(&self, output: Vec<Value>) -> Value {
        let body = &self.request.body;
        let or = |name: &str, default: Value| field(body, name).cloned().unwrap_or(default);
        json!({
            "id": self.plan.id("resp_", "response", 0), "object": "response",
            "created_at": CREATED, "status": "in_progress", "background": false,
            "completed_at": null, "error": null, "incomplete_details": null,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "max_tool_calls": null, "model": body["model"], "output": output,
            "parallel_tool_calls": self.request.prompt.parallel,
            "previous_response_id": body.get("previous_response_id"),
            "prompt_cache_key": body.get("prompt_cache_key"),
            "reasoning": or("reasoning", json!({"effort": null, "summary": null})),
            "safety_identifier": null, "service_tier": "default", "store": or("store", json!(true)),
            "temperature": or("temperature", json!(1.0)),
            "text": or("text", json!({"format": {"type": "text"}, "verbosity": "medium"})),
            "tool_choice": or("tool_choice", json!("auto")), "tools": echoed(body),
            "top_logprobs": 0, "top_p": or("top_p", json!(1.0)),
            "truncation": or("truncation", json!("disabled")),
            "usage": null, "user": body.get("user"), "metadata": or("metadata", json!({})),
        })
    }

    pub(super) fn items(&self) -> Vec<Value> {
        let reasons = !self.plan.thoughts.is_empty();
        let speaks = !self.plan.pieces.is_empty();
        let reasoning = reasons.then(|| self.reasoning(true));
        let message = speaks.then(|| self.message(true));
        let calls = self.plan.calls.iter().enumerate();
        let calls = calls.map(|(at, call)| self.call(at, call, true));
        reasoning.into_iter().chain(message).chain(calls).collect()
    }

    /// The reasoning item; `done` or as it begins.
    pub(super) fn reasoning(&self, done: bool) -> Value {
        let id = self.plan.id("rs_", "reasoning", 0);
        let shows = done && self.request.summary;
        let summary = if shows {
            json!([{"type": "summary_text", "text": self.plan.thought()}])
        } else {
            json!([])
        };
        let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
        if self.request.encrypted {
            // What comes with the beginning is only a part of it.
            let length = if done {
                usize::MAX
            } else {
                ENCRYPTED.len() + 4
            };
            let content: String = self.encrypted().chars().take(length).collect();
            item["encrypted_content"] = json!(content);
        }
        item
    }

    fn encrypted(&self) -> String {
        self.plan.id(ENCRYPTED, "encrypted", 0)
    }

    pub(super) fn refuses(&self) -> bool {
        self.plan.ending == Ending::Refused
    }

    /// The only content part of the message; `text` is what it holds so far.
    pub(super) fn part(&self, text: &str) -> Value {
        if self.refuses() {
            json!({"type": "refusal", "refusal": text})
        } else {
            json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
        }
    }

    pub(super) fn message(&self, done: bool) -> Value {
        let content = if done {
            json!([self.part(&self.plan.text())])
        } else {
            json!([])
        };
        json!({
            "id": self.plan.id("msg_", "message", 0), "type": "message",
            "status": self.status(done), "role": "assistant", "content": content,
        })
    }

    pub(super) fn call(&self, at: usize, call: &Call, done: bool) -> Value {
        let (kind, field, prefix) = names(call);
        let text = if done { call.text() } else { String::new() };
        json!({
            "id": self.plan.id(prefix, "item", at), "type": kind, "status": self.status(done),
            "call_id": self.plan.id("call_", "call", at), "name": call.name, field: text,
        })
    }

    fn status(&self, done: bool) -> &'static str {
        match (done, &self.plan.ending) {
            (false, _) => "in_progress",
            (true, Ending::Length | Ending::Filtered) => "incomplete",
            (true, _) => "completed",
        }
    }
}

/// The type of a call's item, the field of what it is called with, the prefix of its id.
pub(super) fn names(call: &Call) -> (&'static str, &'static str, &'static str) {
    if call.custom {
        ("custom_tool_call", "input", "ctc_")
    } else {
        ("function_call", "arguments", "fc_")
    }
}
