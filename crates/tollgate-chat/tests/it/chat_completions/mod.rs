//! Chat completions: known traps of gateways as tests named after their numbers, what is passed on, and properties.

mod forward;
mod properties;
mod requests;
mod streams;

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_chat::chat_completions::ChatCompletions;
use tollgate_chat::hub::{Event, ModelCapabilities, Request};
use tollgate_chat::{
    Format, InvalidRequest, MalformedResponse, RenderOptions, Target, WrittenRequest,
};

fn capabilities() -> ModelCapabilities {
    ModelCapabilities::default()
}

fn target(capabilities: &ModelCapabilities) -> Target<'_> {
    Target {
        model: "up",
        stream: false,
        capabilities,
        default_max_tokens: 4096,
    }
}

fn rendering() -> RenderOptions<'static> {
    RenderOptions {
        model: "mine",
        created: 7,
        seed: "seed",
        include_usage: false,
        estimated_prompt_tokens: 0,
        request: None,
        json_array: false,
    }
}

/// A body around these messages and members.
fn body(messages: Value, more: Value) -> Vec<u8> {
    let mut body = json!({"model": "m", "messages": messages});
    let map = body.as_object_mut().unwrap();
    map.extend(more.as_object().cloned().unwrap_or_default());
    body.to_string().into_bytes()
}

fn user(content: &str) -> Value {
    json!({"role": "user", "content": content})
}

fn read(body: &[u8]) -> Request {
    let read = ChatCompletions.read_request(body);
    read.unwrap_or_else(|bad| panic!("{bad}: {}", String::from_utf8_lossy(body)))
}

fn bad(body: &[u8]) -> String {
    ChatCompletions
        .read_request(body)
        .expect_err("should be bad")
        .message
}

fn write(
    request: &Request,
    capabilities: &ModelCapabilities,
) -> Result<WrittenRequest, InvalidRequest> {
    ChatCompletions.write_request(request, &target(capabilities))
}

fn sent(request: &Request, capabilities: &ModelCapabilities) -> Value {
    serde_json::from_slice(&write(request, capabilities).unwrap().body).unwrap()
}

/// The same request passed on.
fn passed(body: &[u8], capabilities: &ModelCapabilities, stream: bool) -> Value {
    let body = Bytes::copy_from_slice(body);
    let glance = ChatCompletions.summarize_request(&body).unwrap();
    let target = Target {
        stream,
        ..target(capabilities)
    };
    let sent = ChatCompletions
        .forward_request(&body, &glance, &target)
        .unwrap();
    serde_json::from_slice(&sent).unwrap()
}

/// The events of a stream, read in one piece.
fn events(sse: &str) -> Result<Vec<Event>, MalformedResponse> {
    let mut reader = ChatCompletions.stream_reader();
    let mut out = Vec::new();
    reader.push(sse.as_bytes(), &mut out)?;
    reader.finish(&mut out)?;
    Ok(out)
}

/// A chunk of one choice as an event.
fn chunk(delta: Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!(
        "data: {}\n\n",
        json!({"id": "c1", "model": "up", "created": 1, "choices": [choice]})
    )
}

/// A chunk with a fragment of a tool call.
fn fragment(index: Value, id: Value, name: Value, arguments: &str) -> String {
    let call =
        json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
    chunk(json!({"tool_calls": [call]}), None)
}

const DONE: &str = "data: [DONE]\n\n";
