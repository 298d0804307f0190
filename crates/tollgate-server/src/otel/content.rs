//! The content of a chat, for API keys with `trace_content`: the conversation and the reply in the form of OpenTelemetry's conventions
//! (<https://github.com/open-telemetry/semantic-conventions-genai>, `gen-ai-input-messages.json`, `gen-ai-output-messages.json`). Files are left out.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Value as Json, json};
use tollgate_chat::Format;
use tollgate_chat::hub::{FinishReason, Part, PartKind, Request, Response, ResponseBuilder, Role};

use super::proto::Value;
use super::semconv;

/// The largest size in bytes of a request, and of a reply, that is recorded.
const MAX_BYTES: usize = 262_144;

/// A chat as its client sees it.
pub struct ChatContent {
    format: &'static dyn Format,
    is_stream: bool,
    /// `None` if it is too large.
    request: Option<Bytes>,
    /// `None` if it is too large or not recorded.
    reply: Mutex<Option<Vec<u8>>>,
}

impl std::fmt::Debug for ChatContent {
    /// Prints nothing of the content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatContent").finish_non_exhaustive()
    }
}

impl ChatContent {
    /// The content of a request in `format`; `is_stream` states whether its reply is a stream. A stream that is one JSON array (`is_array`) is not
    /// recorded.
    pub fn new(
        format: &'static dyn Format,
        request: &Bytes,
        is_stream: bool,
        is_array: bool,
    ) -> Self {
        Self {
            format,
            is_stream,
            request: (request.len() <= MAX_BYTES).then(|| request.clone()),
            reply: Mutex::new((!is_array).then(Vec::new)),
        }
    }

    /// Records the next piece of the reply, without an envelope.
    pub fn push(&self, piece: &[u8]) {
        let mut reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = reply.as_mut() {
            if bytes.len() + piece.len() > MAX_BYTES {
                *reply = None;
            } else {
                bytes.extend_from_slice(piece);
            }
        }
    }

    /// The attributes of the conventions, as JSON text. Content that cannot be parsed, or is too large, has none.
    pub(super) fn attributes(&self) -> Vec<(&'static str, Value)> {
        let mut attributes = Vec::new();
        let request = self.request.as_ref();
        if let Some(Ok(request)) = request.map(|body| self.format.read_request(body)) {
            let (system, messages) = input(&request);
            if !system.is_empty() {
                let text = Json::from(system).to_string();
                attributes.push((semconv::SYSTEM_INSTRUCTIONS, text.into()));
            }
            let text = Json::from(messages).to_string();
            attributes.push((semconv::INPUT_MESSAGES, text.into()));
        }
        if let Some(response) = self.response() {
            let text = output(&response).to_string();
            attributes.push((semconv::OUTPUT_MESSAGES, text.into()));
        }
        attributes
    }

    /// The reply, as far as the client received it. `None` if nothing was received.
    fn response(&self) -> Option<Response> {
        let mut reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = reply.take().filter(|bytes| !bytes.is_empty())?;
        if !self.is_stream {
            return self.format.read_response(&bytes).ok();
        }
        let (mut reader, mut events) = (self.format.stream_reader(), Vec::new());
        // A stream that was cut off is recorded up to that point.
        let _ = reader.push(&bytes, &mut events);
        let mut builder = ResponseBuilder::default();
        events.iter().for_each(|event| builder.push(event));
        Some(builder.build())
    }
}

/// The parts of the system prompts, and all other messages.
fn input(request: &Request) -> (Vec<Json>, Vec<Json>) {
    let (mut system, mut messages) = (Vec::new(), Vec::new());
    for turn in &request.turns {
        let parts: Vec<Json> = turn.parts.iter().map(part).collect();
        let is_result = |part: &Part| matches!(part.kind, PartKind::ToolResult { .. });
        let role = match turn.role {
            Role::System => {
                system.extend(parts);
                continue;
            }
            Role::User if turn.parts.first().is_some_and(is_result) => "tool",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        messages.push(json!({ "role": role, "parts": parts }));
    }
    (system, messages)
}

fn output(response: &Response) -> Json {
    let choices = response.choices.iter().map(|choice| {
        let parts: Vec<Json> = choice.parts.iter().map(part).collect();
        let reason = finish_reason(choice.finish);
        json!({ "role": "assistant", "parts": parts, "finish_reason": reason })
    });
    choices.collect()
}

fn part(part: &Part) -> Json {
    match &part.kind {
        PartKind::Text { text, .. } | PartKind::Refusal(text) => {
            json!({ "type": "text", "content": text })
        }
        PartKind::Reasoning { text, .. } => json!({ "type": "reasoning", "content": text }),
        PartKind::ToolCall {
            id,
            name,
            arguments,
            ..
        } => {
            let arguments = serde_json::from_str(arguments);
            let arguments = arguments.unwrap_or(Json::Null);
            json!({ "type": "tool_call", "id": id, "name": name, "arguments": arguments })
        }
        PartKind::ToolResult { id, content, .. } => {
            let content: Vec<Json> = content.iter().map(self::part).collect();
            json!({ "type": "tool_call_response", "id": id, "response": content })
        }
        // The conventions also allow types that they do not define.
        PartKind::Image { .. } => json!({ "type": "image" }),
        PartKind::Audio { .. } => json!({ "type": "audio" }),
        PartKind::Video { .. } => json!({ "type": "video" }),
        PartKind::File { name, .. } => json!({ "type": "file", "name": name }),
        PartKind::RedactedReasoning(_) => json!({ "type": "reasoning", "content": "" }),
        PartKind::FormatSpecific { format, value } => {
            json!({ "type": format!("{format}.{}", value["type"].as_str().unwrap_or("part")) })
        }
    }
}

fn finish_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::EndTurn | FinishReason::StopSequence | FinishReason::Pause => "stop",
        FinishReason::Length | FinishReason::ContextFull => "length",
        FinishReason::ToolCall => "tool_call",
        FinishReason::Refusal | FinishReason::PromptBlocked => "content_filter",
        FinishReason::InvalidToolCall | FinishReason::Other => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(content: &ChatContent) -> Vec<(&'static str, Json)> {
        let found = content.attributes().into_iter();
        let text = |value| match value {
            Value::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        };
        found.map(|(name, value)| (name, text(value))).collect()
    }

    fn chat(is_stream: bool, request: &Json, reply: &[&str]) -> ChatContent {
        let format = tollgate_chat::by_name("chat-completions").unwrap();
        let content = ChatContent::new(format, &request.to_string().into(), is_stream, false);
        reply
            .iter()
            .for_each(|piece| content.push(piece.as_bytes()));
        content
    }

    #[test]
    fn a_conversation_is_written_as_the_conventions_require() {
        let request = json!({ "model": "m", "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [
                { "type": "text", "text": "What is this?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,c2VjcmV0" } },
            ] },
            { "role": "assistant", "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{\"at\":1}" } },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "a boat" },
        ] });
        let reply = json!({ "id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            { "index": 0, "message": { "role": "assistant", "content": "A boat." }, "finish_reason": "stop" },
        ] });
        let content = chat(false, &request, &[&reply.to_string()]);
        let expected = vec![
            (
                "gen_ai.system_instructions",
                json!([{ "type": "text", "content": "Be brief." }]),
            ),
            (
                "gen_ai.input.messages",
                json!([
                    { "role": "user", "parts": [{ "type": "text", "content": "What is this?" }, { "type": "image" }] },
                    { "role": "assistant", "parts": [
                        { "type": "tool_call", "id": "c1", "name": "look", "arguments": { "at": 1 } },
                    ] },
                    { "role": "tool", "parts": [
                        { "type": "tool_call_response", "id": "c1", "response": [{ "type": "text", "content": "a boat" }] },
                    ] },
                ]),
            ),
            (
                "gen_ai.output.messages",
                json!([
                    { "role": "assistant", "parts": [{ "type": "text", "content": "A boat." }], "finish_reason": "stop" },
                ]),
            ),
        ];
        assert_eq!(attributes(&content), expected);
    }

    #[test]
    fn a_stream_is_recorded_as_far_as_it_was_received() {
        let request = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "x" }] });
        let chunk = |text: &str| {
            let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": null });
            let chunk = json!({ "id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] });
            format!("data: {chunk}\n\n")
        };
        let content = chat(
            true,
            &request,
            &[&chunk("two "), &chunk("words"), "data: {\"id\""],
        );
        let found = attributes(&content);
        let output = &found
            .iter()
            .find(|(name, _)| *name == "gen_ai.output.messages")
            .unwrap()
            .1;
        assert_eq!(
            output[0]["parts"],
            json!([{ "type": "text", "content": "two words" }])
        );
    }

    #[test]
    fn what_is_too_large_is_left_out() {
        let long = "x".repeat(MAX_BYTES);
        let request = json!({ "model": "m", "messages": [{ "role": "user", "content": long }] });
        let content = chat(false, &request, &["{", &long]);
        assert!(attributes(&content).is_empty());
        assert_eq!(format!("{content:?}"), "ChatContent { .. }");
    }
}
