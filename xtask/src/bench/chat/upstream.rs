//! The upstream of the bench: responds to chats with about 1 KB, complete or in 100 chunks, without parsing them.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use crate::outcome::Outcome;

/// The number of chunks of a stream.
pub(super) const CHUNKS: usize = 100;
/// The pause between two chunks, so that each is transmitted separately.
const PACE: Duration = Duration::from_millis(2);
/// The length of the text of a complete response, in bytes.
const TEXT_BYTES: usize = 700;
/// A word in the body of a request whose stream stays open after its first chunk.
pub(super) const OPEN: &str = "open";
/// A word in the body of a request whose stream never ends and is as fast as the client reads.
pub(super) const ENDLESS: &str = "endless";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Serves on a free loopback port, which it prints, until it is killed.
pub(crate) fn serve() -> Outcome {
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(|e| e.to_string())?;
        println!("{}", listener.local_addr().map_err(|e| e.to_string())?);
        let responses = FixedResponses::new();
        loop {
            let (stream, _) = listener.accept().await.map_err(|e| e.to_string())?;
            tokio::spawn(serve_connection(stream, responses.clone()));
        }
    })
}

async fn serve_connection(stream: TcpStream, responses: FixedResponses) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let responses = responses.clone();
        async move { Ok::<_, Infallible>(responses.respond(request).await) }
    });
    let served =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // Disconnecting clients are part of the measurement.
    let _ = served.await;
}

#[derive(Clone)]
struct FixedResponses {
    completion: Bytes,
    message: Bytes,
    chunk: Bytes,
    last: Bytes,
}

impl FixedResponses {
    fn new() -> Self {
        let text = "The harbour lies still at dawn. ".repeat(TEXT_BYTES / 32);
        let completion = json!({
            "id": "chatcmpl-bench", "object": "chat.completion", "created": 1_700_000_000, "model": "gpt-5",
            "choices": [{ "index": 0, "message": { "role": "assistant", "content": text, "refusal": null }, "finish_reason": "stop", "logprobs": null }],
            "usage": { "prompt_tokens": 200, "completion_tokens": 180, "total_tokens": 380,
                       "prompt_tokens_details": { "cached_tokens": 0 }, "completion_tokens_details": { "reasoning_tokens": 0 } },
        });
        let message = json!({
            "id": "msg_bench", "type": "message", "role": "assistant", "model": "claude-haiku-4-5-20251001",
            "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": { "input_tokens": 200, "output_tokens": 180 },
        });
        let event = |choices: serde_json::Value, usage: serde_json::Value| {
            let chunk = json!({ "id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_700_000_000,
                                "model": "gpt-5", "choices": choices, "usage": usage });
            format!("data: {chunk}\n\n")
        };
        let delta = json!([{ "index": 0, "delta": { "content": "The harbour lies still. " }, "finish_reason": null }]);
        let finish = json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }]);
        let usage = json!({ "prompt_tokens": 200, "completion_tokens": 180, "total_tokens": 380 });
        let last = event(finish, json!(null)) + &event(json!([]), usage) + "data: [DONE]\n\n";
        Self {
            completion: completion.to_string().into(),
            message: message.to_string().into(),
            chunk: event(delta, json!(null)).into(),
            last: last.into(),
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let body = request
            .into_body()
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        let is_stream = memchr::memmem::find(&body, b"\"stream\":true").is_some();
        let has = |word: &str| memchr::memmem::find(&body, word.as_bytes()).is_some();
        if path.ends_with("/messages") {
            return complete_response(self.message.clone());
        }
        if !is_stream {
            return complete_response(self.completion.clone());
        }
        let chunks = StreamChunks {
            chunk: self.chunk.clone(),
            last: self.last.clone(),
            sent: 0,
            pace: pace_interval(),
            kind: if has(OPEN) {
                StreamKind::Open
            } else if has(ENDLESS) {
                StreamKind::Endless
            } else {
                StreamKind::Paced
            },
        };
        let stream = futures_util::stream::unfold(chunks, |mut chunks| async move {
            let chunk = chunks.next_chunk().await?;
            Some((Ok(Frame::data(chunk)), chunks))
        });
        let mut response = Response::new(StreamBody::new(stream).boxed_unsync());
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static("text/event-stream"),
        );
        response
    }
}

enum StreamKind {
    Paced,
    Open,
    Endless,
}

struct StreamChunks {
    chunk: Bytes,
    last: Bytes,
    sent: usize,
    pace: Interval,
    kind: StreamKind,
}

impl StreamChunks {
    async fn next_chunk(&mut self) -> Option<Bytes> {
        self.sent += 1;
        match self.kind {
            StreamKind::Endless => Some(self.chunk.clone()),
            StreamKind::Open if self.sent > 1 => {
                sleep(Duration::from_secs(3_600)).await;
                None
            }
            _ if self.sent > CHUNKS => None,
            _ => {
                self.pace.tick().await;
                Some(if self.sent == CHUNKS {
                    self.last.clone()
                } else {
                    self.chunk.clone()
                })
            }
        }
    }
}

fn pace_interval() -> Interval {
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}

fn complete_response(body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}
