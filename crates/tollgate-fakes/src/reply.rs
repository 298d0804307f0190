//! What goes out, and what a behaviour changes in it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response};

use crate::behaviour::Behaviour;
use crate::delivery::{self, Body, Flight, Step};
use crate::desk::{Content, Made};
use crate::made::Blob;
use crate::rng::Rng;
use crate::script::{self, Script};
use crate::socket::Reset;

type Headers = Vec<(&'static str, String)>;

/// An answer on its way out.
pub(crate) struct Reply {
    status: u16,
    headers: Headers,
    steps: Vec<Step>,
    delay: Duration,
    /// How long it takes until the answer begins.
    pub(crate) hold: Duration,
}

impl Reply {
    /// An answer of JSON that no behaviour changes.
    pub(crate) fn json(status: u16, headers: Headers, body: Bytes) -> Self {
        Self::whole(status, "application/json", headers, &Blob::new(body))
    }

    fn whole(status: u16, media_type: &str, headers: Headers, blob: &Blob) -> Self {
        let mut all = vec![
            ("content-type", media_type.to_owned()),
            ("content-length", blob.len().to_string()),
        ];
        all.extend(headers);
        Self {
            status,
            headers: all,
            steps: steps(blob),
            delay: Duration::ZERO,
            hold: Duration::ZERO,
        }
    }

    pub(crate) fn send(self, reset: Reset, flight: Flight) -> Response<Body> {
        let body = delivery::body(self.steps, self.delay, reset, Some(flight));
        let mut response = Response::new(body);
        *response.status_mut() =
            http::StatusCode::from_u16(self.status).unwrap_or(http::StatusCode::BAD_GATEWAY);
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

fn steps(blob: &Blob) -> Vec<Step> {
    let mut steps = vec![Step::Send(blob.head.clone())];
    if blob.zeros > 0 {
        steps.push(Step::Zeros(blob.zeros));
    }
    if !blob.tail.is_empty() {
        steps.push(Step::Send(blob.tail.clone()));
    }
    steps
}

/// An answer in one piece, and what breaks it. `headers` are those of the provider.
pub(crate) fn whole(made: Made, headers: Headers, how: &Behaviour) -> Reply {
    let (media_type, blob) = match made.content {
        Content::Json(mut value) => {
            script::bend_usage(&mut value, how);
            ("application/json", Blob::new(value.to_string()))
        }
        Content::File(media_type, blob) => (media_type, blob),
        Content::Nothing => ("", Blob::default()),
    };
    let mut all = headers;
    all.extend(made.headers);
    let mut reply = broken(made.status, media_type, all, blob, how);
    reply.hold = made.hold;
    if media_type.is_empty() {
        reply.headers.retain(|(name, _)| *name != "content-type");
    }
    reply
}

fn broken(status: u16, media_type: &str, headers: Headers, blob: Blob, how: &Behaviour) -> Reply {
    let half = blob.first(blob.len() / 2);
    match how {
        Behaviour::TruncatedJson | Behaviour::NoEnd => {
            Reply::whole(status, media_type, headers, &half)
        }
        Behaviour::InvalidUtf8 => {
            let spoilt = Blob::new(script::spoil_utf8(&blob.bytes()));
            Reply::whole(status, media_type, headers, &spoilt)
        }
        Behaviour::ResetMidBody { .. } | Behaviour::Stall { .. } => {
            let end = match how {
                Behaviour::Stall { .. } => Step::Stall,
                _ => Step::Reset,
            };
            let mut reply = Reply::whole(status, media_type, headers, &blob);
            reply.steps = steps(&half);
            reply.steps.push(end);
            reply
        }
        Behaviour::Endless => {
            let mut reply = Reply::whole(status, media_type, headers, &half);
            reply.headers.retain(|(name, _)| *name != "content-length");
            let blank = |_| Bytes::from_static(b"          ");
            reply.steps.push(Step::Endless(Box::new(blank)));
            reply
        }
        _ => Reply::whole(status, media_type, headers, &blob),
    }
}

/// A stream, and what breaks it.
pub(crate) fn stream(
    mut events: Script,
    headers: Headers,
    how: &Behaviour,
    seed: u64,
    delay: Duration,
) -> Reply {
    events.bend(how);
    let mut bytes = events.write();
    let mut end = None;
    match how {
        Behaviour::TruncatedJson => {
            bytes.truncate(events.filler_at);
            let cut = bytes.last().map_or(0, |last| last.len() / 2);
            if let Some(last) = bytes.last_mut() {
                last.truncate(cut);
            }
        }
        Behaviour::InvalidUtf8 => {
            let at = events.filler_at.saturating_sub(1);
            if let Some(event) = bytes.get_mut(at) {
                *event = script::spoil_utf8(event);
            }
        }
        Behaviour::ResetMidBody { after } => {
            bytes.truncate(events.first(*after));
            end = Some(Step::Reset);
        }
        Behaviour::Stall { after } => {
            bytes.truncate(events.first(*after));
            end = Some(Step::Stall);
        }
        Behaviour::Endless => {
            bytes.truncate(events.filler_at);
            let (form, filler) = (events.form, Arc::clone(&events.filler));
            let more = move |n| form.write(&filler(n), false, false);
            end = Some(Step::Endless(Box::new(more)));
        }
        _ => {}
    }
    let bytes = script::shuffle(bytes, &mut Rng::new(seed)).into_iter();
    let mut all = vec![
        ("content-type", events.form.content_type().to_owned()),
        ("cache-control", "no-cache".to_owned()),
    ];
    all.extend(headers);
    Reply {
        status: 200,
        headers: all,
        steps: bytes.map(Step::Send).chain(end).collect(),
        delay,
        hold: Duration::ZERO,
    }
}

const PAGE: &[u8] = b"<!DOCTYPE html><html><head><title>Please sign in</title></head></html>\n";

/// What a behaviour changes in an answer whatever it holds.
pub(crate) fn dress(mut reply: Reply, behaviour: &Behaviour) -> Reply {
    let plain = |content_type: &str, body: &'static [u8]| {
        let blob = Blob::new(Bytes::from_static(body));
        Reply::whole(200, content_type, Vec::new(), &blob)
    };
    match behaviour {
        Behaviour::Html200 => plain("text/html; charset=utf-8", PAGE),
        Behaviour::EmptyBody => plain(&reply.headers[0].1, b""),
        Behaviour::WrongContentType => {
            reply.headers[0].1 = "text/plain".to_owned();
            reply
        }
        Behaviour::HugeHeaders => {
            let filling = (0..400).map(|_| ("x-filling", "f".repeat(1000)));
            reply.headers.extend(filling);
            reply
        }
        Behaviour::Drip { ms } => {
            reply.delay = Duration::from_millis(*ms);
            let steps = reply.steps.into_iter();
            reply.steps = steps.flat_map(drops).collect();
            reply
        }
        _ => reply,
    }
}

/// Every byte on its own.
fn drops(step: Step) -> Vec<Step> {
    match step {
        Step::Send(bytes) => {
            let each = 0..bytes.len();
            each.map(|at| Step::Send(bytes.slice(at..=at))).collect()
        }
        other => vec![other],
    }
}
