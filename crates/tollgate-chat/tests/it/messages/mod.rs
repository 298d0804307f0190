//! Messages: known traps of gateways as tests named after their numbers, what is passed on, and properties.

mod forward;
mod order;
mod properties;
mod requests;
mod streams;

use serde_json::{Value, json};
use tollgate_chat::hub::{Event, FinishReason, ModelCapabilities, Request};
use tollgate_chat::messages::Messages;
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
        default_max_tokens: 8192,
    }
}

fn rendering() -> RenderOptions<'static> {
    RenderOptions {
        model: "mine",
        created: 7,
        seed: "seed",
        include_usage: false,
        estimated_prompt_tokens: 11,
        request: None,
        json_array: false,
    }
}

/// A request of a chat-completions client, for an upstream of this format.
fn from_chat(messages: Value, more: Value) -> Request {
    let mut body = json!({"model": "m", "messages": messages});
    let map = body.as_object_mut().unwrap();
    map.extend(more.as_object().cloned().unwrap_or_default());
    let read =
        tollgate_chat::chat_completions::ChatCompletions.read_request(body.to_string().as_bytes());
    read.unwrap_or_else(|bad| panic!("{bad}: {body}"))
}

fn user(content: &str) -> Value {
    json!({"role": "user", "content": content})
}

fn write(
    request: &Request,
    capabilities: &ModelCapabilities,
) -> Result<WrittenRequest, InvalidRequest> {
    Messages.write_request(request, &target(capabilities))
}

/// What is sent, and what is dropped.
fn sent(request: &Request, capabilities: &ModelCapabilities) -> (Value, Vec<String>) {
    let written = write(request, capabilities).unwrap_or_else(|bad| panic!("{bad}"));
    (
        serde_json::from_slice(&written.body).unwrap(),
        written.dropped,
    )
}

/// The events of a stream, read in one piece.
fn events(sse: &str) -> Result<Vec<Event>, MalformedResponse> {
    let mut reader = Messages.stream_reader();
    let mut out = Vec::new();
    reader.push(sse.as_bytes(), &mut out)?;
    reader.finish(&mut out)?;
    Ok(out)
}

/// The stream that these events become, ended well.
fn stream(events: &[Event]) -> String {
    let mut writer = Messages.stream_writer(&rendering());
    let mut out = Vec::new();
    for event in events {
        writer.write(event, &mut out);
    }
    writer.end(&mut out);
    String::from_utf8(out).unwrap()
}

/// One event of the wire.
fn sse(name: &str, mut data: Value) -> String {
    data["type"] = json!(name);
    format!("event: {name}\ndata: {data}\n\n")
}

/// The head of a stream.
fn head() -> String {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": [],
        "usage": {"input_tokens": 5, "output_tokens": 1}});
    sse("message_start", json!({"message": message}))
}

/// A text block.
fn text_block(index: u64, text: &str) -> String {
    sse(
        "content_block_start",
        json!({"index": index, "content_block": {"type": "text", "text": ""}}),
    ) + &sse(
        "content_block_delta",
        json!({"index": index, "delta": {"type": "text_delta", "text": text}}),
    ) + &sse("content_block_stop", json!({"index": index}))
}

/// The end of a stream.
fn tail(reason: &str) -> String {
    sse(
        "message_delta",
        json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}),
    ) + &sse("message_stop", json!({}))
}

fn text(text: &str) -> Event {
    Event::Text {
        choice: 0,
        text: text.to_owned(),
    }
}

fn call_start(call: u32, id: &str) -> Event {
    Event::ToolStart {
        choice: 0,
        call,
        id: id.to_owned(),
        name: "f".to_owned(),
        custom: false,
    }
}

fn arguments(call: u32, json: &str) -> Event {
    Event::ToolArguments {
        choice: 0,
        call,
        json: json.to_owned(),
    }
}

fn call_end(call: u32) -> Event {
    Event::ToolEnd {
        choice: 0,
        call,
        signature: None,
    }
}

fn finish(finish: FinishReason) -> Event {
    Event::Finish {
        choice: 0,
        finish,
        stop_sequence: None,
    }
}
