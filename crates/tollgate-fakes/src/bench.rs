//! Answers that are made once and sent again and again, for measuring what stands before the fake.
//! Chat-completions and messages only; no request is checked.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use memchr::memmem;
use serde_json::{Value, json};

use crate::body::{self, Body, Step};
use crate::fake::Shared;
use crate::socket::Reset;

/// How large the answers are.
#[derive(Debug, Clone)]
pub struct Bench {
    /// Bytes of text in an answer.
    pub bytes: usize,
    /// Into how many events a stream cuts them.
    pub chunks: usize,
}

/// Both answers of a format.
struct Pair {
    whole: Bytes,
    events: Vec<Bytes>,
}

/// The answers of all formats.
pub(crate) struct Prebuilt {
    chat: Pair,
    messages: Pair,
}

impl Prebuilt {
    pub(crate) fn new(bench: &Bench) -> Self {
        let chunks = bench.chunks.max(1);
        let piece = "x".repeat(bench.bytes.div_ceil(chunks).max(1));
        let text = "x".repeat(bench.bytes);
        Self {
            chat: chat(&text, &piece, chunks),
            messages: messages(&text, &piece, chunks),
        }
    }
}

fn chat(text: &str, piece: &str, chunks: usize) -> Pair {
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 200, "total_tokens": 300});
    let whole = json!({"id": "chatcmpl-bench", "object": "chat.completion", "created": 1_700_000_000,
        "model": "bench", "choices": [{"index": 0, "message": {"role": "assistant", "content": text,
        "refusal": null}, "finish_reason": "stop", "logprobs": null}], "usage": usage});
    let chunk = |choices: Value, usage: &Value| {
        let data = json!({"id": "chatcmpl-bench", "object": "chat.completion.chunk",
            "created": 1_700_000_000, "model": "bench", "choices": choices, "usage": usage});
        Bytes::from(format!("data: {data}\n\n"))
    };
    let delta = |delta: Value, reason: Value| {
        chunk(
            json!([{"index": 0, "delta": delta, "finish_reason": reason}]),
            &Value::Null,
        )
    };
    let mut events = vec![delta(
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    let more = delta(json!({"content": piece}), Value::Null);
    events.extend(std::iter::repeat_n(more, chunks));
    events.push(delta(json!({}), json!("stop")));
    events.push(chunk(json!([]), &usage));
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    let whole = Bytes::from(whole.to_string());
    Pair { whole, events }
}

fn messages(text: &str, piece: &str, chunks: usize) -> Pair {
    let message = |content: Value, reason: Value| {
        json!({"id": "msg_bench", "type": "message", "role": "assistant", "model": "bench",
            "content": content, "stop_reason": reason, "stop_sequence": null,
            "usage": {"input_tokens": 100, "output_tokens": 200}})
    };
    let event = |name: &str, data: Value| Bytes::from(format!("event: {name}\ndata: {data}\n\n"));
    let begin = json!({"type": "message_start", "message": message(json!([]), Value::Null)});
    let block = json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "text_delta", "text": piece}});
    let stop = json!({"type": "content_block_stop", "index": 0});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn",
        "stop_sequence": null}, "usage": {"input_tokens": 100, "output_tokens": 200}});
    let mut events = vec![
        event("message_start", begin),
        event("content_block_start", block),
    ];
    events.extend(std::iter::repeat_n(
        event("content_block_delta", delta),
        chunks,
    ));
    events.push(event("content_block_stop", stop));
    events.push(event("message_delta", end));
    events.push(event("message_stop", json!({"type": "message_stop"})));
    let whole = message(json!([{"type": "text", "text": text}]), json!("end_turn"));
    let whole = Bytes::from(whole.to_string());
    Pair { whole, events }
}

pub(crate) async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> io::Result<Response<Body>> {
    let is_messages = request.uri().path().ends_with("/messages");
    let body = request.into_body().collect().await;
    let body = body.map_err(io::Error::other)?.to_bytes();
    let prebuilt = shared.prebuilt.as_ref();
    let prebuilt = prebuilt.ok_or_else(|| io::Error::other("not a fake for measuring"))?;
    let pair = if is_messages {
        &prebuilt.messages
    } else {
        &prebuilt.chat
    };
    let streams = [&b"\"stream\":true"[..], b"\"stream\": true"];
    let streams = streams
        .iter()
        .any(|flag| memmem::find(&body, flag).is_some());
    let (content_type, pieces) = if streams {
        ("text/event-stream; charset=utf-8", pair.events.clone())
    } else {
        ("application/json", vec![pair.whole.clone()])
    };
    let length = pieces[0].len();
    let steps = pieces.into_iter().map(Step::Send).collect();
    let body = body::body(steps, shared.options.delay, Reset::default(), None);
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(content_type));
    if !streams {
        headers.insert("content-length", HeaderValue::from(length));
    }
    Ok(response)
}
