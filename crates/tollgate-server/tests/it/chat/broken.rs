//! Upstreams that break in every way: never an end that looks like a good one, an error in the client's own words, and a
//! charge for what was delivered alone.

use futures_util::future::join_all;
use tollgate_fakes::Scenario;

use super::money::{all_models, prices};
use super::site::{Site, WAYS, payer, records};
use super::talk::Talk;
use super::wire::Wire;
use crate::gate::{Backend, Client, Event, on_one, until};

on_one!(
    refusals_of_the_upstream,
    answers_that_are_none,
    connections_that_break,
    ends_that_do_not_come,
    odd_answers_that_are_answers,
);

/// Time limits that tests can wait for, and prices.
fn config() -> String {
    let limits = "time_limits.chat_first_byte_s = 3\ntime_limits.chat_idle_s = 3\n";
    limits.to_owned() + &prices(&all_models())
}

/// What a client has to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// An answer that ends well.
    Answered,
    /// An answer that ends well, or the vendor's own refusal of the request.
    AnsweredOr400,
    /// An error instead of an answer.
    Refused(u16),
    /// A stream that begins, and ends in an error.
    Cut,
    /// Either of the last two, as the cut falls.
    CutOrRefused,
    /// Anything that is in order.
    Any,
}

fn fate(behaviour: &Scenario, stream: bool) -> Fate {
    match behaviour {
        Scenario::RateLimited { .. } => Fate::Refused(429),
        Scenario::Hang => Fate::Refused(504),
        Scenario::Stall { .. } if !stream => Fate::Refused(504),
        Scenario::NoEnd | Scenario::ErrorEvent if stream => Fate::Cut,
        // Text that is none may be made text; it may not reach the client as it is.
        Scenario::InvalidUtf8 if stream => Fate::Any,
        // Gemini says the same of a quota and of a rate.
        Scenario::QuotaExhausted => Fate::CutOrRefused,
        Scenario::TruncatedJson | Scenario::Stall { .. } | Scenario::ResetMidBody { .. }
            if stream =>
        {
            Fate::CutOrRefused
        }
        Scenario::Blocked | Scenario::ContentFilter | Scenario::Refusal => Fate::AnsweredOr400,
        Scenario::Normal
        | Scenario::HugeEvent { .. }
        | Scenario::Drip { .. }
        | Scenario::LengthStop
        | Scenario::NoUsage
        | Scenario::AbsurdUsage
        | Scenario::NegativeUsage => Fate::Answered,
        _ => Fate::Refused(502),
    }
}

/// One request to a way whose fake behaves so, and what came of it.
struct Outcome {
    name: String,
    id: String,
    wire: Wire,
    status: u16,
    body: String,
    /// Of a stream that began.
    events: Vec<Event>,
    stream: bool,
    fate: Fate,
}

async fn ask(
    client: &Client,
    behaviour: &Scenario,
    way: usize,
    wire: Wire,
    stream: bool,
) -> Outcome {
    let model = WAYS[way].models[0].0;
    let talk = Talk::saying(
        wire,
        model,
        stream,
        "sing of the sea, of ships and of the harbour",
    )
    .cap(400);
    let id = format!("case-{way}-{wire:?}-{stream}");
    let path = wire.bare_path(model, stream);
    let mut reply = client
        .open_with(&path, &talk.body, &[("x-request-id", &id)])
        .await;
    let name = format!(
        "{behaviour:?}: {wire:?} from {} stream={stream}",
        WAYS[way].name
    );
    assert_eq!(reply.headers["x-request-id"], id.as_str());
    let mut outcome = Outcome {
        name,
        id,
        wire,
        status: reply.status,
        body: String::new(),
        events: Vec::new(),
        stream,
        fate: fate(behaviour, stream),
    };
    if stream && reply.status == 200 {
        outcome.events = reply.events().await;
    } else {
        outcome.body = reply.text().await;
    }
    assert!(!reply.broken, "{}: the connection broke", outcome.name);
    outcome
}

impl Outcome {
    /// The fate that the client saw, and whether any text came.
    fn seen(&self) -> (Fate, bool) {
        let name = &self.name;
        if self.status != 200 {
            let body: serde_json::Value = serde_json::from_str(&self.body).expect(name);
            let message = self.wire.error(self.status, &body);
            assert!(
                !message.contains("127.0.0.1") && !message.contains("up-"),
                "{name}: {message}"
            );
            return (Fate::Refused(self.status), false);
        }
        if !self.stream {
            let said = self
                .wire
                .said(&serde_json::from_str(&self.body).expect(name));
            return (Fate::Answered, !said.text.is_empty());
        }
        let text = self
            .events
            .iter()
            .any(|event| !self.wire.piece(event).is_empty());
        let errors: Vec<usize> = (0..self.events.len())
            .filter(|at| self.wire.error_event(&self.events[*at]).is_some())
            .collect();
        let end = self.events.iter().position(|event| self.wire.is_end(event));
        let last = self.events.len() - 1;
        match (errors.as_slice(), end) {
            ([], Some(at)) => {
                assert_eq!(at, last, "{name}: {:?}", self.events);
                (Fate::Answered, text)
            }
            ([at], None) => {
                assert_eq!(*at, last, "{name}: {:?}", self.events);
                (Fate::Cut, text)
            }
            _ => panic!(
                "{name}: neither a good end nor one error: {:?}",
                self.events
            ),
        }
    }

    /// What was seen is what had to be, and the record of it is `row`.
    fn check(&self, row: &[String]) {
        let (name, (seen, text)) = (&self.name, self.seen());
        let fits = match self.fate {
            Fate::AnsweredOr400 => matches!(seen, Fate::Answered | Fate::Refused(400)),
            Fate::CutOrRefused => matches!(seen, Fate::Cut | Fate::Refused(429 | 502 | 504)),
            Fate::Any => true,
            expected => seen == expected,
        };
        assert!(
            fits,
            "{name}: {:?} expected, {seen:?} seen: {} {:?}",
            self.fate, self.body, self.events
        );
        let settled = row[1].parse::<i64>().unwrap_or(0);
        let attempts: serde_json::Value = serde_json::from_str(&row[3]).expect(name);
        let attempts = attempts.as_array().expect(name).len();
        match seen {
            Fate::Answered => {
                assert_eq!(row[0], "done", "{name}: {row:?}");
                assert_eq!(attempts, 0, "{name}: {row:?}");
            }
            Fate::Cut => {
                assert_eq!(row[0], "cut", "{name}: {row:?}");
                // One that broke in its first packet, before anything of it was sent on, may have been tried again.
                assert!((1..=2).contains(&attempts), "{name}: {row:?}");
                assert_eq!(settled > 0, text, "{name}: {row:?}");
                assert_eq!(row[2] == "1", text, "{name}: an estimate: {row:?}");
            }
            _ => {
                assert_eq!(settled, 0, "{name}: {row:?}");
                assert!(row[0] == "failed" || attempts == 0, "{name}: {row:?}");
            }
        }
    }
}

/// Each behaviour on a gateway of its own: what an upstream does has consequences.
async fn all(backend: Backend, behaviours: &[Scenario]) {
    for behaviour in behaviours {
        one(backend, behaviour).await;
    }
}

async fn one(backend: Backend, behaviour: &Scenario) {
    let site = Site::start(backend, &config()).await;
    let client = payer(&site.gate, "1000").await;
    for fake in &site.fakes {
        fake.set(behaviour.clone());
    }
    let mut asking = Vec::new();
    for way in 0..WAYS.len() {
        for wire in Wire::ALL {
            for stream in [false, true] {
                asking.push(ask(&client, behaviour, way, wire, stream));
            }
        }
    }
    let outcomes = join_all(asking).await;
    let rows = records(
        &site.gate,
        "outcome, settled, estimated, attempts, request_id",
    )
    .await;
    let mut total = 0;
    for outcome in &outcomes {
        let row = rows.iter().find(|row| row[4] == outcome.id);
        // Where the channel was told to wait before, nobody was asked, and there is nothing to record.
        let Some(row) = row else {
            assert_eq!(outcome.seen().0, Fate::Refused(429), "{}", outcome.name);
            continue;
        };
        outcome.check(row);
        total += row[1].parse::<i64>().unwrap_or(0);
    }
    until("every hold to be given back", async || {
        let (left, used) = client.purse().await;
        assert_eq!((used * 1e9).round() as i64, total, "{behaviour:?}");
        ((left + used - 1000.0).abs() < 1e-6).then_some(())
    })
    .await;
    for fake in &site.fakes {
        until("every exchange to end", async || {
            (fake.open_streams() == 0).then_some(())
        })
        .await;
    }
    site.gate.close().await;
}

async fn refusals_of_the_upstream(backend: Backend) {
    let behaviours = [
        Scenario::Status(500, None),
        Scenario::RateLimited { retry_after: 60 },
        Scenario::QuotaExhausted,
        Scenario::KeyRefused { key: None },
        Scenario::ModelMissing,
        Scenario::Overloaded,
    ];
    all(backend, &behaviours).await;
}

async fn answers_that_are_none(backend: Backend) {
    let behaviours = [
        Scenario::Html200,
        Scenario::EmptyBody,
        Scenario::TruncatedJson,
        Scenario::InvalidUtf8,
        Scenario::WrongContentType,
        Scenario::HugeHeaders,
        Scenario::ErrorFirst,
    ];
    all(backend, &behaviours).await;
}

async fn connections_that_break(backend: Backend) {
    let behaviours = [
        Scenario::ResetBeforeHead,
        Scenario::CloseWithoutAnswer,
        Scenario::ResetMidBody { after: 1 },
        Scenario::ResetMidBody { after: 4 },
    ];
    all(backend, &behaviours).await;
}

async fn ends_that_do_not_come(backend: Backend) {
    let behaviours = [
        Scenario::NoEnd,
        Scenario::ErrorEvent,
        Scenario::Stall { after: 4 },
        Scenario::Hang,
    ];
    all(backend, &behaviours).await;
}

async fn odd_answers_that_are_answers(backend: Backend) {
    let behaviours = [
        Scenario::HugeEvent { bytes: 1200 },
        Scenario::Drip { ms: 0 },
        Scenario::LengthStop,
        Scenario::Blocked,
        Scenario::ContentFilter,
        Scenario::Refusal,
    ];
    all(backend, &behaviours).await;
}
