//! Prepared responses (`providers/bench.toml`), for measuring the gateway in front of the fake. Chat completions and messages only; no request is
//! checked.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::body::{self, Body, Step};
use crate::event_stream::{Event, Form};
use crate::options::Bench;
use crate::socket::Reset;
use crate::tables::scope::Scope;
use crate::tables::syntax::Template;

/// The templates of one kind of response in a format.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseTemplates {
    complete: Template,
    form: Form,
    before: Template,
    /// The template of the event that is repeated.
    each: Template,
    after: Template,
}

/// Both responses of a format, complete and streamed.
struct Pair {
    complete: Bytes,
    events: Vec<Bytes>,
}

/// The responses of all formats.
#[derive(Deserialize)]
struct Formats<T> {
    chat: T,
    messages: T,
}

/// The responses that a fake sends instead of all others.
pub(crate) struct Prebuilt(Formats<Pair>);

impl Prebuilt {
    /// # Panics
    ///
    /// If the templates, which are part of the program, are invalid.
    pub(crate) fn new(bench: &Bench) -> Self {
        let formats = toml::from_str(include_str!("../providers/bench.toml"));
        let formats: Formats<ResponseTemplates> =
            formats.unwrap_or_else(|error| panic!("bench: {error}"));
        let chunks = bench.chunks.max(1);
        let vars = json!({
            "text": "x".repeat(bench.bytes), "piece": "x".repeat(bench.bytes.div_ceil(chunks).max(1)),
        });
        let vars = vars.as_object().cloned().unwrap_or_default();
        Self(Formats {
            chat: formats.chat.build(&vars, chunks),
            messages: formats.messages.build(&vars, chunks),
        })
    }
}

impl ResponseTemplates {
    fn build(&self, vars: &Map<String, Value>, chunks: usize) -> Pair {
        let (nothing, no_tables) = (Value::Null, Map::new());
        let scope = Scope::new(vars, &nothing, &no_tables);
        let write = |event: &Value| {
            let event = match event {
                Value::String(text) => Event::Raw(text.clone()),
                event => Event::Json(event.clone()),
            };
            self.form.write(&event, false, false)
        };
        let list = |template: &Template| -> Vec<Bytes> {
            let events = template.render(&scope);
            events.as_array().into_iter().flatten().map(write).collect()
        };
        let mut events = list(&self.before);
        events.extend(std::iter::repeat_n(
            write(&self.each.render(&scope)),
            chunks,
        ));
        events.extend(list(&self.after));
        Pair {
            complete: Bytes::from(self.complete.render(&scope).to_string()),
            events,
        }
    }
}

pub(crate) async fn respond(
    prebuilt: Arc<Prebuilt>,
    delay: Duration,
    request: Request<Incoming>,
) -> io::Result<Response<Body>> {
    let is_messages = request.uri().path().ends_with("/messages");
    let body = request.into_body().collect().await;
    let body = body.map_err(io::Error::other)?.to_bytes();
    let pair = if is_messages {
        &prebuilt.0.messages
    } else {
        &prebuilt.0.chat
    };
    let streams = [&b"\"stream\":true"[..], b"\"stream\": true"];
    let streams = streams
        .iter()
        .any(|flag| memmem::find(&body, flag).is_some());
    let (content_type, pieces) = if streams {
        ("text/event-stream; charset=utf-8", pair.events.clone())
    } else {
        ("application/json", vec![pair.complete.clone()])
    };
    let length = pieces[0].len();
    let steps = pieces.into_iter().map(Step::Send).collect();
    let body = body::body(steps, delay, Reset::default(), None, None);
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static(content_type));
    if !streams {
        headers.insert("content-length", HeaderValue::from(length));
    }
    Ok(response)
}
