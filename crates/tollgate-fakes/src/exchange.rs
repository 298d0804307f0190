//! One exchange: the request is noted, refused or understood; a behaviour is found for it; the
//! answer is made, bent and sent.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;

use crate::behaviour::Behaviour;
use crate::delivery::{self, Body, Flight, Step};
use crate::directive;
use crate::fake::{Shared, lock};
use crate::incoming::Seen;
use crate::plan::Plan;
use crate::provider::Wanted;
use crate::refusal::{Fault, Judged, Refusal};
use crate::rng::Rng;
use crate::script::{self, Answer, Script};
use crate::socket::Reset;

/// What goes out.
struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    steps: Vec<Step>,
    delay: Duration,
}

impl Reply {
    fn json(status: u16, headers: Vec<(&'static str, String)>, body: Bytes) -> Self {
        let mut all = vec![
            ("content-type", "application/json".to_owned()),
            ("content-length", body.len().to_string()),
        ];
        all.extend(headers);
        Self {
            status,
            headers: all,
            steps: vec![Step::Send(body)],
            delay: Duration::ZERO,
        }
    }
}

pub(crate) async fn answer(
    shared: Arc<Shared>,
    reset: Reset,
    request: Request<Incoming>,
) -> io::Result<Response<Body>> {
    let flight = Flight::new(&shared.open);
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let seen = Seen::read(&head, &body);
    let note = Arc::new(Mutex::new(seen.clone()));
    shared.state().seen.push(Arc::clone(&note));
    let serial = shared.next_serial();
    let judged = judge(&shared, &seen);
    let reply = match judged.and_then(|wanted| respond(&shared, &seen, &wanted, serial)) {
        Ok(Outcome::Reply(reply)) => reply,
        Ok(Outcome::Hang) => std::future::pending().await,
        Ok(Outcome::Close) => return Err(io::Error::other("closed on purpose")),
        Ok(Outcome::Reset) => {
            reset.arm();
            return Err(io::Error::other("reset on purpose"));
        }
        Err(refusal) => {
            lock(&note).refused = Some(refusal.rule);
            error(&shared, &refusal, serial)
        }
    };
    Ok(send(reply, reset, flight))
}

/// Refuses the request or understands it.
fn judge(shared: &Shared, seen: &Seen) -> Judged<Wanted> {
    let api = shared.api;
    let key = api.key(seen)?;
    let keys = &shared.options.keys;
    if !keys.is_empty() && !keys.contains(&key) {
        return Err(Box::new(api.fault(Fault::KeyRefused, seen)));
    }
    api.judge(seen)
}

/// How an exchange goes on once its request is found in order.
enum Outcome {
    Reply(Reply),
    Hang,
    Close,
    Reset,
}

fn respond(shared: &Shared, seen: &Seen, wanted: &Wanted, serial: u64) -> Judged<Outcome> {
    let behaviour = behaviour(shared, seen, wanted)?;
    match &behaviour {
        Behaviour::Hang => return Ok(Outcome::Hang),
        Behaviour::CloseWithoutAnswer => return Ok(Outcome::Close),
        Behaviour::ResetBeforeHead => return Ok(Outcome::Reset),
        _ => {}
    }
    if let Some(fault) = fault(shared, seen, &behaviour) {
        let refusal = shared.api.fault(fault, seen);
        let mut reply = error(shared, &refusal, serial);
        if let Behaviour::Status(status, Some(body)) = behaviour {
            reply = Reply::json(status, shared.api.headers(&id(serial)), Bytes::from(body));
        }
        return Ok(Outcome::Reply(reply));
    }
    let answer = match wanted {
        Wanted::Fixed(value) => Answer::Json(value.clone()),
        Wanted::Chat(work) => {
            let chunks = shared.options.chunks;
            let number = (shared.instance << 32) + serial;
            let plan = Plan::decide(work.ask(), &behaviour, number, chunks);
            match work.answer(&plan) {
                Ok(answer) => answer,
                // The model's refusal, not the request's.
                Err(refusal) => return Ok(Outcome::Reply(error(shared, &refusal, serial))),
            }
        }
    };
    let reply = match answer {
        Answer::Json(value) => whole(shared, seen, value, &behaviour, serial),
        Answer::Events(events) => stream(shared, events, &behaviour, serial),
    };
    Ok(Outcome::Reply(dress(reply, &behaviour)))
}

/// The behaviour for this request: its own, else the next of the queue, else the one that is set.
fn behaviour(shared: &Shared, seen: &Seen, wanted: &Wanted) -> Judged<Behaviour> {
    let text = match wanted {
        Wanted::Chat(work) => work.ask().text.as_str(),
        Wanted::Fixed(_) => "",
    };
    let header = seen.header("x-fake").map(str::parse);
    let own = header.or_else(|| directive::behaviour(text));
    if let Some(own) = own {
        let unknown = |message| Refusal::new(400, "fake", "behaviour", message);
        return own.map_err(|message| Box::new(unknown(message)));
    }
    let mut state = shared.state();
    let next = state.queue.pop_front().or_else(|| state.set.clone());
    Ok(next.unwrap_or(Behaviour::Normal))
}

fn fault(shared: &Shared, seen: &Seen, behaviour: &Behaviour) -> Option<Fault> {
    match behaviour {
        Behaviour::Status(status, _) => Some(Fault::Status(*status)),
        Behaviour::RateLimited { retry_after } => {
            let retry_after = *retry_after;
            Some(Fault::RateLimited { retry_after })
        }
        Behaviour::QuotaExhausted => Some(Fault::QuotaExhausted),
        Behaviour::KeyRefused { key } => {
            let of = shared.api.key(seen).ok();
            let meant = key.is_none() || *key == of;
            meant.then_some(Fault::KeyRefused)
        }
        Behaviour::ModelMissing => Some(Fault::ModelMissing),
        Behaviour::Overloaded => Some(Fault::Overloaded),
        _ => None,
    }
}

fn id(serial: u64) -> String {
    format!("req_fake_{serial:08}")
}

fn error(shared: &Shared, refusal: &Refusal, serial: u64) -> Reply {
    let id = id(serial);
    let mut headers = shared.api.headers(&id);
    headers.extend(refusal.headers.iter().cloned());
    headers.push(("x-fake-rule", refusal.rule.to_owned()));
    let body = shared.api.error(refusal, &id).to_string();
    Reply::json(refusal.status, headers, Bytes::from(body))
}

/// An answer in one piece, and what breaks it.
fn whole(shared: &Shared, seen: &Seen, mut value: Value, how: &Behaviour, serial: u64) -> Reply {
    script::bend_usage(&mut value, how);
    if matches!(how, Behaviour::ErrorEvent | Behaviour::ErrorFirst) {
        let refusal = shared.api.fault(Fault::Overloaded, seen);
        value = shared.api.error(&refusal, &id(serial));
    }
    let headers = shared.api.headers(&id(serial));
    let body = Bytes::from(value.to_string());
    let half = body.slice(..body.len() / 2);
    match how {
        Behaviour::TruncatedJson | Behaviour::NoEnd => Reply::json(200, headers, half),
        Behaviour::InvalidUtf8 => Reply::json(200, headers, script::spoil_utf8(&body)),
        Behaviour::ResetMidBody { .. } | Behaviour::Stall { .. } => {
            let end = match how {
                Behaviour::Stall { .. } => Step::Stall,
                _ => Step::Reset,
            };
            let mut reply = Reply::json(200, headers, body);
            reply.steps = vec![Step::Send(half), end];
            reply
        }
        Behaviour::Endless => {
            let mut reply = Reply::json(200, headers, body);
            reply.headers.retain(|(name, _)| *name != "content-length");
            let blank = |_| Bytes::from_static(b"          ");
            reply.steps = vec![Step::Send(half), Step::Endless(Box::new(blank))];
            reply
        }
        _ => Reply::json(200, headers, body),
    }
}

/// A stream, and what breaks it.
fn stream(shared: &Shared, mut events: Script, how: &Behaviour, serial: u64) -> Reply {
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
    let mut rng = Rng::new(shared.options.seed.wrapping_add(serial));
    let bytes = script::shuffle(bytes, &mut rng).into_iter();
    let mut headers = vec![
        ("content-type", events.form.content_type().to_owned()),
        ("cache-control", "no-cache".to_owned()),
    ];
    headers.extend(shared.api.headers(&id(serial)));
    Reply {
        status: 200,
        headers,
        steps: bytes.map(Step::Send).chain(end).collect(),
        delay: shared.options.delay,
    }
}

const PAGE: &[u8] = b"<!DOCTYPE html><html><head><title>Please sign in</title></head></html>\n";

/// What a behaviour changes in an answer whatever it holds.
fn dress(mut reply: Reply, behaviour: &Behaviour) -> Reply {
    let plain = |content_type: &str, body: &'static [u8]| {
        let mut reply = Reply::json(200, Vec::new(), Bytes::from_static(body));
        reply.headers[0].1 = content_type.to_owned();
        reply
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

fn send(reply: Reply, reset: Reset, flight: Flight) -> Response<Body> {
    let body = delivery::body(reply.steps, reply.delay, reset, Some(flight));
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(reply.status).unwrap_or(http::StatusCode::BAD_GATEWAY);
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().append(name, value);
        }
    }
    response
}
