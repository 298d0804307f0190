//! One exchange: the request is noted, refused or understood; a behaviour is found for it; the
//! answer is made, bent and sent.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::behaviour::Behaviour;
use crate::delivery::{Body, Flight};
use crate::desk::{Desk, Made, Media};
use crate::directive::Stage;
use crate::fake::{Door, Shared};
use crate::files;
use crate::incoming::Seen;
use crate::orders::Orders;
use crate::plan::Plan;
use crate::provider::Wanted;
use crate::refusal::{Fault, Judged, Refusal};
use crate::reply::{self, Reply};
use crate::script::{self, Script};
use crate::socket::Reset;

/// The headers that keys are in.
const CREDENTIALS: &[&str] = &["authorization", "x-goog-api-key", "x-api-key"];

/// Where a fake that runs as a program tells how its tasks were polled.
const REPORT: &str = "/_polls";

pub(crate) async fn answer(
    shared: Arc<Shared>,
    door: Door,
    reset: Reset,
    request: Request<Incoming>,
) -> io::Result<Response<Body>> {
    let flight = Flight::new(&shared.open);
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let seen = Arc::new(Seen::read(&head, &body).await);
    let note = shared.remember(&seen);
    let serial = shared.next_serial();
    let judged = judge(&shared, door, &seen);
    let outcome = judged.and_then(|wanted| respond(&shared, &seen, wanted, serial));
    let reply = match outcome {
        Ok(Outcome::Reply(reply)) => reply,
        Ok(Outcome::Hang) => std::future::pending().await,
        Ok(Outcome::Close) => return Err(io::Error::other("closed on purpose")),
        Ok(Outcome::Reset) => {
            reset.arm();
            return Err(io::Error::other("reset on purpose"));
        }
        Err(refusal) => {
            note.refuse(refusal.rule);
            error(&shared, &refusal, serial)
        }
    };
    if !reply.hold.is_zero() {
        tokio::time::sleep(reply.hold).await;
    }
    Ok(reply.send(reset, flight))
}

/// Refuses the request or understands it.
fn judge(shared: &Shared, door: Door, seen: &Arc<Seen>) -> Judged<Wanted> {
    if door == Door::Files && CREDENTIALS.iter().any(|name| seen.header(name).is_some()) {
        let message = "a key is no business of the place where results are";
        return Err(Box::new(Refusal::new(400, "fake", "key-leaked", message)));
    }
    if door == Door::Files || seen.path.starts_with(files::PREFIX) {
        let seen = Arc::clone(seen);
        let fetch = move |desk: &Desk<'_>| Ok(desk.fetch(&seen.path));
        let media = Media::about(Stage::File, Vec::new(), fetch);
        return Ok(Wanted::Media(media));
    }
    if seen.path == REPORT {
        return Ok(Wanted::Fixed(shared.tasks().report().json()));
    }
    let api = shared.api;
    let key = api.key(seen)?;
    api.admit(&key, &shared.options.keys, seen)?;
    api.judge(seen)
}

/// How an exchange goes on once its request is found in order.
enum Outcome {
    Reply(Reply),
    Hang,
    Close,
    Reset,
}

fn respond(shared: &Shared, seen: &Seen, wanted: Wanted, serial: u64) -> Judged<Outcome> {
    let orders = Orders::of(shared, seen, &wanted)?;
    let how = orders.behaviour.clone();
    if let Some(outcome) = before(shared, seen, &how, serial) {
        return Ok(outcome);
    }
    let headers = shared.api.headers(&id(serial));
    let reply = match make(shared, wanted, orders, serial) {
        Ok(Answer::Made(mut made)) => {
            if matches!(how, Behaviour::ErrorEvent | Behaviour::ErrorFirst) {
                let refusal = shared.api.fault(Fault::Overloaded, seen);
                made = Made::json(shared.api.error(&refusal, &id(serial)));
            }
            reply::whole(made, headers, &how)
        }
        Ok(Answer::Events(events)) => {
            let options = &shared.options;
            let seed = options.seed.wrapping_add(serial);
            reply::stream(events, headers, &how, seed, options.delay)
        }
        // How the work went, and nothing that the request did wrong.
        Err(refusal) if refusal.of_work => error(shared, &refusal, serial),
        Err(refusal) => return Err(refusal),
    };
    Ok(match how {
        Behaviour::LostAnswer { hang: true } => Outcome::Hang,
        Behaviour::LostAnswer { hang: false } => Outcome::Reset,
        _ => Outcome::Reply(reply::dress(reply, &how)),
    })
}

/// What a behaviour makes of a request before anything is done for it.
fn before(shared: &Shared, seen: &Seen, how: &Behaviour, serial: u64) -> Option<Outcome> {
    match how {
        Behaviour::Hang => return Some(Outcome::Hang),
        Behaviour::CloseWithoutAnswer => return Some(Outcome::Close),
        Behaviour::ResetBeforeHead => return Some(Outcome::Reset),
        _ => {}
    }
    let refusal = shared.api.fault(fault(shared, seen, how)?, seen);
    let mut reply = error(shared, &refusal, serial);
    if let Behaviour::Status(status, Some(body)) = how {
        let body = Bytes::from(body.clone());
        reply = Reply::json(*status, shared.api.headers(&id(serial)), body);
    }
    Some(Outcome::Reply(reply))
}

/// An answer as it is before a behaviour changes it.
enum Answer {
    Made(Made),
    Events(Script),
}

fn make(shared: &Shared, wanted: Wanted, orders: Orders, serial: u64) -> Judged<Answer> {
    let number = shared.number(serial);
    match wanted {
        Wanted::Fixed(value) => Ok(Answer::Made(Made::json(value))),
        Wanted::Media(media) => {
            let desk = Desk::new(shared, orders.course, number, id(serial));
            (media.run)(&desk).map(Answer::Made)
        }
        Wanted::Chat(work) => {
            let chunks = shared.options.chunks;
            let plan = Plan::decide(work.ask(), &orders.behaviour, number, chunks);
            let answer = work.answer(&plan).map_err(|no| Box::new(no.of_work()))?;
            Ok(match answer {
                script::Answer::Json(value) => Answer::Made(Made::json(value)),
                script::Answer::Events(events) => Answer::Events(events),
            })
        }
    }
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
