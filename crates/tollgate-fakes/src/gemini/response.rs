//! Generate-content: an answer written, whole or as chunks.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::check::{Generate, Stream};
use super::{SPEC, is_third, sign};
use crate::chat_output::{ChatOutput, Ending};
use crate::event_stream::{Answer, Event, EventStream, Form};
use crate::rejection::Rejection;

pub(super) fn make(request: &Generate, plan: &ChatOutput) -> Answer {
    let writer = Writer { request, plan };
    match request.stream {
        Stream::No => Answer::Json(writer.whole()),
        Stream::Sse => Answer::Events(writer.script(Form::SseCrLf)),
        Stream::Array => Answer::Events(writer.script(Form::Array)),
    }
}

struct Writer<'a> {
    request: &'a Generate,
    plan: &'a ChatOutput,
}

impl Writer<'_> {
    /// A reply object with these candidates and this usage.
    fn reply(&self, candidates: Vec<Value>, usage: Value) -> Value {
        let mut reply = Map::new();
        if self.plan.ending == Ending::Blocked {
            let feedback = json!({"blockReason": "PROHIBITED_CONTENT"});
            reply.insert("promptFeedback".to_owned(), feedback);
        } else {
            reply.insert("candidates".to_owned(), json!(candidates));
        }
        reply.insert("usageMetadata".to_owned(), usage);
        reply.insert("modelVersion".to_owned(), json!(self.request.model));
        let id = self.plan.id("", "response", 0);
        reply.insert("responseId".to_owned(), json!(id));
        Value::Object(reply)
    }

    fn candidate(index: usize, parts: Vec<Value>) -> Value {
        json!({"content": {"parts": parts, "role": "model"}, "index": index})
    }

    fn whole(&self) -> Value {
        let last = |index| {
            let mut candidate = Self::candidate(index, self.parts());
            self.finish(&mut candidate);
            candidate
        };
        let candidates = (0..self.request.prompt.count).map(last).collect();
        self.reply(candidates, self.usage(true))
    }

    fn parts(&self) -> Vec<Value> {
        let mut parts = Vec::new();
        if self.shows() {
            parts.push(json!({"text": self.plan.thought(), "thought": true}));
        }
        if !self.plan.pieces.is_empty() {
            parts.push(json!({"text": self.plan.text()}));
        }
        parts.extend(self.calls());
        self.sign_text(&mut parts);
        parts
    }

    fn shows(&self) -> bool {
        self.request.shows && !self.plan.thoughts.is_empty()
    }

    /// Whether the answer carries signatures.
    fn signs(&self) -> bool {
        is_third(&self.request.model) || !self.plan.thoughts.is_empty()
    }

    fn calls(&self) -> Vec<Value> {
        let calls = self.plan.calls.iter().enumerate();
        let part = |(at, call): (usize, &crate::chat_output::Call)| {
            let mut function = json!({"name": call.name, "args": call.arguments});
            if is_third(&self.request.model) {
                function["id"] = json!(self.plan.id("", "call", at));
            }
            let mut part = json!({"functionCall": function});
            if at == 0 && self.signs() {
                part["thoughtSignature"] = json!(sign(&self.plan.id("", "signature", 0)));
            }
            part
        };
        calls.map(part).collect()
    }

    /// Without calls the signature stands on the last text.
    fn sign_text(&self, parts: &mut [Value]) {
        if let Some(last) = parts.last_mut()
            && self.plan.calls.is_empty()
            && self.signs()
        {
            last["thoughtSignature"] = json!(sign(&self.plan.id("", "signature", 0)));
        }
    }

    /// Writes why a candidate ends.
    fn finish(&self, candidate: &mut Value) {
        let reason = match self.plan.ending {
            Ending::Length => "MAX_TOKENS",
            Ending::Refused => "SAFETY",
            Ending::Filtered => "PROHIBITED_CONTENT",
            Ending::Natural | Ending::Stopped(_) | Ending::Blocked => "STOP",
        };
        candidate["finishReason"] = json!(reason);
        if self.plan.ending == Ending::Refused {
            let rating = json!({"category": "HARM_CATEGORY_DANGEROUS_CONTENT",
                "probability": "HIGH", "blocked": true});
            candidate["safetyRatings"] = json!([rating]);
            if let Some(candidate) = candidate.as_object_mut() {
                candidate.shift_remove("content");
            }
        }
    }

    /// The counts: all of them at the end, those of the prompt before.
    fn usage(&self, end: bool) -> Value {
        let tokens = self.plan.tokens;
        let visible = tokens.output - tokens.reasoning;
        let visible = match (end, &self.plan.ending) {
            (_, Ending::Blocked | Ending::Refused) => 0,
            (true, _) => visible,
            (false, _) => 1,
        };
        let images = self.request.prompt.media.iter();
        let images = images.filter(|m| m.what.starts_with("image/")).count() as u64;
        let text = json!({"modality": "TEXT", "tokenCount": tokens.input - images});
        let image = json!({"modality": "IMAGE", "tokenCount": images});
        let details = if images > 0 {
            json!([text, image])
        } else {
            json!([text])
        };
        let mut usage = json!({
            "promptTokenCount": tokens.input,
            "cachedContentTokenCount": tokens.cached,
            "candidatesTokenCount": visible,
            "totalTokenCount": tokens.input + visible + tokens.reasoning,
            "promptTokensDetails": details,
            "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": tokens.cached}],
            "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": visible}],
        });
        if tokens.reasoning > 0 {
            usage["thoughtsTokenCount"] = json!(tokens.reasoning);
        }
        usage
    }

    fn chunk(&self, parts: Vec<Value>) -> Value {
        self.reply(vec![Self::candidate(0, parts)], self.usage(false))
    }

    /// The parts of each chunk of the stream.
    fn split(&self) -> Vec<Vec<Value>> {
        let mut chunks: Vec<Vec<Value>> = Vec::new();
        if self.shows() {
            let thoughts = self.plan.thoughts.iter();
            chunks.extend(thoughts.map(|t| vec![json!({"text": t, "thought": true})]));
        }
        let pieces = self.plan.pieces.iter();
        chunks.extend(pieces.map(|piece| vec![json!({"text": piece})]));
        let calls = self.calls();
        if !calls.is_empty() {
            chunks.push(calls);
        }
        if let Some(last) = chunks.last_mut() {
            self.sign_text(last);
        }
        chunks
    }

    fn script(&self, form: Form) -> EventStream {
        let chunks = self.split();
        let begin = if self.shows() {
            self.plan.thoughts.len()
        } else {
            0
        };
        let blank = matches!(self.plan.ending, Ending::Blocked | Ending::Refused);
        let mut events = Vec::new();
        if !blank {
            events.extend(chunks.into_iter().map(|parts| self.chunk(parts)));
        }
        // After a call the end comes in a chunk of its own, as newer models send it.
        if blank || !self.plan.calls.is_empty() || events.len() < 2 {
            events.push(self.chunk(vec![json!({"text": ""})]));
        }
        if let Some(last) = events.last_mut() {
            last["usageMetadata"] = self.usage(true);
            if let Some(candidate) = last.pointer_mut("/candidates/0") {
                self.finish(candidate);
            }
        }
        let mut events: Vec<Event> = events.into_iter().map(Event::unnamed).collect();
        let filler_at = (begin + 1).min(events.len() - 1).max(1);
        if events.len() > filler_at {
            events.insert(filler_at, Event::Raw("\r\n"));
        }
        let more = Event::unnamed(self.chunk(vec![json!({"text": "and so on "})]));
        let message = "The model is overloaded. Please try again later.";
        let error = SPEC.error_body(&Rejection::new(503, "UNAVAILABLE", "scenario", message), "");
        let error = Event::unnamed(error);
        EventStream {
            form,
            events,
            tail: 1,
            filler_at,
            filler: Arc::new(move |_| more.clone()),
            error_first: error.clone(),
            error_mid: error,
        }
    }
}
