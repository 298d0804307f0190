//! Prepares responses for sending, and breaks them as a scenario requires: truncated, reset, stalled, sent byte by byte.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response};

use crate::bill::Bill;
use crate::body::{self, Body, InFlight, Step};
use crate::event_stream::{self, EventStream};
use crate::media_files::Blob;
use crate::media_response::{Content, MediaResponse};
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::socket::Reset;

type Headers = Vec<(&'static str, String)>;

/// A response that is ready to be sent.
pub(crate) struct OutgoingResponse {
    status: u16,
    headers: Headers,
    steps: Vec<Step>,
    delay: Duration,
    /// The delay before the response is sent.
    pub(crate) hold: Duration,
    /// What the provider bills for it, if it is a chat.
    pub(crate) bill: Option<Arc<Bill>>,
}

impl OutgoingResponse {
    /// A JSON response that no scenario changes.
    pub(crate) fn json(status: u16, headers: Headers, body: Bytes) -> Self {
        Self::complete_body(status, "application/json", headers, &Blob::new(body))
    }

    fn complete_body(status: u16, media_type: &str, headers: Headers, blob: &Blob) -> Self {
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
            bill: None,
        }
    }

    pub(crate) fn send(self, reset: Reset, flight: InFlight) -> Response<Body> {
        let body = body::body(self.steps, self.delay, reset, self.bill, Some(flight));
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

/// A complete response with the changes of the scenario. `headers` are those of the provider.
pub(crate) fn complete(
    response: MediaResponse,
    headers: Headers,
    how: &Scenario,
) -> OutgoingResponse {
    let (media_type, blob) = match response.content {
        Content::Json(mut value) => {
            event_stream::change_usage(&mut value, how);
            ("application/json", Blob::new(value.to_string()))
        }
        Content::File(media_type, blob) => (media_type, blob),
        Content::Nothing => ("", Blob::default()),
    };
    let mut all = headers;
    all.extend(response.headers);
    let mut reply = break_response(response.status, media_type, all, blob, how);
    reply.hold = response.hold;
    if media_type.is_empty() {
        reply.headers.retain(|(name, _)| *name != "content-type");
    }
    reply
}

/// A complete response that is cut off, reset, stalled or otherwise broken as the scenario requires.
fn break_response(
    status: u16,
    media_type: &str,
    headers: Headers,
    blob: Blob,
    how: &Scenario,
) -> OutgoingResponse {
    let half = blob.first(blob.len() / 2);
    match how {
        Scenario::TruncatedJson | Scenario::NoEnd => {
            OutgoingResponse::complete_body(status, media_type, headers, &half)
        }
        Scenario::InvalidUtf8 => {
            let invalid = Blob::new(event_stream::insert_invalid_utf8(&blob.bytes()));
            OutgoingResponse::complete_body(status, media_type, headers, &invalid)
        }
        Scenario::ResetMidBody { .. } | Scenario::Stall { .. } => {
            let end = match how {
                Scenario::Stall { .. } => Step::Stall,
                _ => Step::Reset,
            };
            let mut reply = OutgoingResponse::complete_body(status, media_type, headers, &blob);
            reply.steps = steps(&half);
            reply.steps.push(end);
            reply
        }
        Scenario::Endless => {
            let mut reply = OutgoingResponse::complete_body(status, media_type, headers, &half);
            reply.headers.retain(|(name, _)| *name != "content-length");
            let blank = |_| Bytes::from_static(b"          ");
            reply.steps.push(Step::Endless(Box::new(blank)));
            reply
        }
        _ => OutgoingResponse::complete_body(status, media_type, headers, &blob),
    }
}

/// A streamed response with the changes of the scenario. `bill` records the sent bytes.
pub(crate) fn stream(
    mut events: EventStream,
    headers: Headers,
    how: &Scenario,
    seed: u64,
    delay: Duration,
    bill: Option<Arc<Bill>>,
) -> OutgoingResponse {
    if let Some(bill) = &bill {
        bill.expect_stream(&events.events, &events.write(), how);
    }
    events.apply_scenario(how);
    let mut bytes = events.write();
    let mut end = None;
    match how {
        Scenario::TruncatedJson => {
            bytes.truncate(events.filler_at);
            let cut = bytes.last().map_or(0, |last| last.len() / 2);
            if let Some(last) = bytes.last_mut() {
                last.truncate(cut);
            }
        }
        Scenario::InvalidUtf8 => {
            let at = events.filler_at.saturating_sub(1);
            if let Some(event) = bytes.get_mut(at) {
                *event = event_stream::insert_invalid_utf8(event);
            }
        }
        Scenario::ResetMidBody { after } => {
            bytes.truncate(events.entries_before(*after));
            end = Some(Step::Reset);
        }
        Scenario::Stall { after } => {
            bytes.truncate(events.entries_before(*after));
            end = Some(Step::Stall);
        }
        Scenario::Endless => {
            bytes.truncate(events.filler_at);
            let (form, filler) = (events.form, Arc::clone(&events.filler));
            let more = move |n| form.write(&filler(n), false, false);
            end = Some(Step::Endless(Box::new(more)));
        }
        Scenario::Pings => {
            bytes.truncate(events.filler_at);
            let comment = events.form.comment();
            end = Some(Step::Endless(Box::new(move |_| {
                Bytes::from_static(comment)
            })));
        }
        _ => {}
    }
    let bytes = event_stream::shuffle(bytes, &mut Rng::new(seed)).into_iter();
    let mut all = vec![
        ("content-type", events.form.content_type().to_owned()),
        ("cache-control", "no-cache".to_owned()),
    ];
    all.extend(headers);
    OutgoingResponse {
        status: 200,
        headers: all,
        steps: bytes.map(Step::Send).chain(end).collect(),
        delay,
        hold: Duration::ZERO,
        bill,
    }
}

const PAGE: &[u8] = b"<!DOCTYPE html><html><head><title>Please sign in</title></head></html>\n";

/// Applies the changes of a scenario that do not depend on the content of the response.
pub(crate) fn apply_to_any(mut reply: OutgoingResponse, scenario: &Scenario) -> OutgoingResponse {
    let plain = |content_type: &str, body: &'static [u8]| {
        let blob = Blob::new(Bytes::from_static(body));
        OutgoingResponse::complete_body(200, content_type, Vec::new(), &blob)
    };
    match scenario {
        Scenario::Html200 => plain("text/html; charset=utf-8", PAGE),
        Scenario::EmptyBody => plain(&reply.headers[0].1, b""),
        Scenario::WrongContentType => {
            reply.headers[0].1 = "text/plain".to_owned();
            reply
        }
        Scenario::HugeHeaders => {
            let filling = (0..400).map(|_| ("x-filling", "f".repeat(1000)));
            reply.headers.extend(filling);
            reply
        }
        Scenario::Drip { ms } => {
            reply.delay = Duration::from_millis(*ms);
            let steps = reply.steps.into_iter();
            reply.steps = steps.flat_map(drops).collect();
            reply
        }
        _ => reply,
    }
}

/// Splits a step into single bytes.
fn drops(step: Step) -> Vec<Step> {
    match step {
        Step::Send(bytes) => {
            let each = 0..bytes.len();
            each.map(|at| Step::Send(bytes.slice(at..=at))).collect()
        }
        other => vec![other],
    }
}
