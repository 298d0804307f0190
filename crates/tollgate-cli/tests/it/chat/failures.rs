//! Failures of upstreams: no failure looks like a success, the client gets an error in its own format, and only what was delivered is
//! charged.

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::Value;
use tollgate_fakes::Scenario::{self, *};

use super::charges::prices;
use super::format::Format;
use super::providers::{AllProviders, CHANNELS, all_models, chat_records};
use super::request::ChatRequest;
use crate::harness::*;

on_sqlite!(
    upstream_errors_are_returned_in_the_format_of_the_client,
    malformed_responses_are_errors,
    broken_connections_are_errors,
    streams_without_an_end_are_errors,
    unusual_valid_responses_are_not_failures,
);

/// The number of scenarios that run side by side: most of the time they wait.
const AT_ONCE: usize = 3;

async fn upstream_errors_are_returned_in_the_format_of_the_client(backend: Backend) {
    let scenarios =
        "status=500 rate-limited=60 quota-exhausted key-refused model-missing overloaded";
    check_all(backend, scenarios).await;
}

async fn malformed_responses_are_errors(backend: Backend) {
    let bodies = "html-200 empty-body truncated-json invalid-utf8 wrong-content-type huge-headers error-first";
    check_all(backend, bodies).await;
}

async fn broken_connections_are_errors(backend: Backend) {
    let resets = "reset-before-head close-without-response reset-mid-body=1 reset-mid-body=4";
    check_all(backend, resets).await;
}

async fn streams_without_an_end_are_errors(backend: Backend) {
    check_all(backend, "no-end error-event stall=4 hang").await;
}

async fn unusual_valid_responses_are_not_failures(backend: Backend) {
    let scenarios = "huge-event=1200 drip=0 length-stop blocked content-filter refusal";
    check_all(backend, scenarios).await;
}

/// What a client must see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// A successful reply.
    Success,
    /// A successful reply, or the vendor's own rejection of the request.
    SuccessOr400,
    /// An error instead of a reply.
    Error(u16),
    /// A stream that starts, and ends in an error.
    Cut,
    /// A stream that ends in an error, or an error instead of a reply: this depends on where the stream is cut.
    CutOrError,
    /// Anything that is well-formed.
    Any,
}

impl Outcome {
    fn expected(scenario: &Scenario, stream: bool) -> Self {
        match scenario {
            RateLimited { .. } => Self::Error(429),
            Hang => Self::Error(504),
            Stall { .. } if !stream => Self::Error(504),
            NoEnd | ErrorEvent if stream => Self::Cut,
            // The gateway may correct invalid text; it must not send it to the client unchanged.
            InvalidUtf8 if stream => Self::Any,
            // Gemini reports an exhausted quota and a rate limit with the same error.
            QuotaExhausted => Self::CutOrError,
            TruncatedJson | Stall { .. } | ResetMidBody { .. } if stream => Self::CutOrError,
            Blocked | ContentFilter | Refusal => Self::SuccessOr400,
            Normal | HugeEvent { .. } | Drip { .. } | LengthStop => Self::Success,
            _ => Self::Error(502),
        }
    }

    fn allows(self, seen: Self) -> bool {
        match self {
            Self::SuccessOr400 => matches!(seen, Self::Success | Self::Error(400)),
            Self::CutOrError => matches!(seen, Self::Cut | Self::Error(429 | 502 | 504)),
            Self::Any => true,
            expected => seen == expected,
        }
    }
}

/// Runs each scenario on a separate gateway, because an upstream's failures cause cooldowns.
async fn check_all(backend: Backend, scenarios: &str) {
    let checks = scenarios.split(' ').map(async |scenario| {
        check_scenario(backend, &scenario.parse().unwrap()).await;
    });
    let checks = futures_util::stream::iter(checks);
    checks.buffer_unordered(AT_ONCE).collect::<()>().await;
}

async fn check_scenario(backend: Backend, scenario: &Scenario) {
    // Only where the gateway must notice that a provider is silent: on a busy machine a response that arrives byte by byte takes longer.
    let limits = match scenario {
        Hang | Stall { .. } => "time_limits.chat_first_byte_s = 3\ntime_limits.chat_idle_s = 3\n",
        _ => "",
    };
    let config = limits.to_owned() + &prices(&all_models());
    let AllProviders { gateway, fakes } = AllProviders::start(backend, &config).await;
    let client = gateway.funded_client("1000").await;
    fakes.iter().for_each(|fake| fake.set(scenario.clone()));
    let all = (0..CHANNELS.len()).flat_map(|channel| {
        let requests = Format::all_and_streamed();
        requests.map(move |(format, stream)| (channel, format, stream))
    });
    let all = all.map(|(channel, format, stream)| chat(&client, channel, format, stream));
    let exchanges = join_all(all).await;
    let columns = "outcome, settled, estimated, attempts, request_id";
    let rows = chat_records(&gateway, columns).await;
    let mut total = 0;
    for exchange in &exchanges {
        let expected = Outcome::expected(scenario, exchange.stream);
        eprintln!("{scenario:?} {} {exchange:?}", exchange.id);
        let (seen, has_text) = exchange.seen();
        let Some(row) = rows.iter().find(|row| row[4] == exchange.id) else {
            // The channel is in cooldown, no upstream was called, and nothing is recorded.
            assert_eq!(seen, Outcome::Error(429));
            continue;
        };
        assert!(expected.allows(seen), "{seen:?}, not {expected:?}");
        check_record(row, seen, has_text);
        total += row[1].parse::<i64>().unwrap_or(0);
    }
    until_true("every hold to be released", async || {
        let (left, used) = client.balances().await;
        assert_eq!((used * 1e9).round() as i64, total);
        (left + used - 1000.0).abs() < 1e-6
    })
    .await;
    for fake in &fakes {
        let is_over = async || fake.open_streams() == 0;
        until_true("every exchange to end", is_over).await;
    }
    gateway.close().await;
}

/// One request and its result.
#[derive(Debug)]
struct Exchange {
    id: String,
    format: Format,
    stream: bool,
    status: u16,
    body: String,
    /// The events of a stream that started.
    events: Vec<Event>,
}

async fn chat(client: &Client, channel: usize, format: Format, stream: bool) -> Exchange {
    let (model, _) = CHANNELS[channel].models[0];
    let text = "sing of the sea, of ships and of the harbour";
    let request = ChatRequest::of_text(format, model, stream, text).max_tokens(400);
    let id = format!("case-{channel}-{format:?}-{stream}");
    let path = format.vendor_path(model, stream);
    let headers = [("x-request-id", id.as_str())];
    let mut reply = client.open_with(&path, &request.body, &headers).await;
    assert_eq!(reply.headers["x-request-id"], id.as_str());
    let (mut body, mut events) = (String::new(), Vec::new());
    if stream && reply.status == 200 {
        events = reply.events().await;
    } else {
        body = reply.text().await;
    }
    assert!(!reply.broken, "{id}: the connection broke");
    let status = reply.status;
    Exchange {
        id,
        format,
        stream,
        status,
        body,
        events,
    }
}

impl Exchange {
    /// What the client saw, and whether it got any text.
    fn seen(&self) -> (Outcome, bool) {
        let json = || serde_json::from_str::<Value>(&self.body).unwrap();
        if self.status != 200 {
            let message = self.format.error(self.status, &json());
            let is_private = message.contains("127.0.0.1") || message.contains("up-");
            assert!(!is_private, "{message}");
            return (Outcome::Error(self.status), false);
        }
        if !self.stream {
            let reply = self.format.parse(&json());
            return (Outcome::Success, !reply.text.is_empty());
        }
        let (last, before) = self.events.split_last().expect("events");
        for event in before {
            assert!(!self.format.is_end(event) && self.format.error_event(event).is_none());
        }
        let has_text = self
            .events
            .iter()
            .any(|e| !self.format.text_of(e).is_empty());
        match (self.format.is_end(last), self.format.error_event(last)) {
            (true, None) => (Outcome::Success, has_text),
            (false, Some(message)) => {
                let denies_charge = message.contains("nothing was charged");
                assert!(!(has_text && denies_charge), "{}: {message}", self.id);
                (Outcome::Cut, has_text)
            }
            _ => panic!("neither a successful end nor an error"),
        }
    }
}

/// Checks the columns of a chat's record: outcome, settled, estimated, attempts.
#[track_caller]
fn check_record(row: &[String], seen: Outcome, has_text: bool) {
    let settled = row[1].parse::<i64>().unwrap_or(0);
    let attempts: Vec<Value> = serde_json::from_str(&row[3]).unwrap();
    let attempts = attempts.len();
    let is_right = match seen {
        Outcome::Success => row[0] == "done" && attempts == 0,
        // A stream that broke in its first packet, before the gateway sent any of it on, may have been retried.
        Outcome::Cut => {
            let charged = (settled > 0) == has_text && (row[2] == "1") == has_text;
            row[0] == "cut" && charged && (1..=2).contains(&attempts)
        }
        _ => settled == 0 && (row[0] == "failed" || attempts == 0),
    };
    assert!(is_right, "{seen:?} {has_text}: {row:?}");
}
