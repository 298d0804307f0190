//! Recorded exchanges with each provider, in `tests/cases/PROVIDER.jsonl`: a call of the adapter, the requests that it must send, the responses that
//! it receives, and the outcome.
//!
//! A line is a [`Case`], the `defaults` of the cases below it, or a row of the case above it: an array of the status (`null` for a connection that
//! breaks), the response, the outcome, and other fields. A row of a case with `check` is an array of fields of the channel and a part of the error,
//! `null` if there is no error. `{host}`, `{key}` and `{jwt}` are placeholders for the server's address, the key and a signed token; jobs and images
//! are described as in [`crate::jobs`].

use std::path::Path;
use std::sync::{Arc, Mutex};

use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tollgate_core::{Secret, TaskKind};
use tollgate_media::Job;
use tollgate_upstream::Channel;

use crate::adapter::{Adapter, Delivered, KEY, RecordingSink, channel, entry, error_kind};
use crate::chat::Chat;
use crate::fixture_server::{self as server, FixtureServer, ReceivedRequest, Reply};
use crate::jobs::{self, InputImages};
use crate::outcome::Outcome;
use crate::sent_request::{sent_body, sent_headers};

/// A call of an adapter and its expected outcome.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Case {
    name: String,
    model: String,
    /// The provider's id of the model, if the channel has one.
    upstream: Option<String>,
    options: Map<String, Value>,
    model_options: Map<String, Value>,
    apis: Option<Vec<String>>,
    /// The path of the channel's base URL.
    base: String,
    key: Option<String>,
    failed_attempts: u32,
    /// The fields of a job to start, or to find.
    image: Option<Map<String, Value>>,
    video: Option<Map<String, Value>>,
    speech: Option<Map<String, Value>>,
    images: Vec<String>,
    mask: Option<String>,
    find: bool,
    /// The id of a job to poll or to cancel, the kind of its task if it is not a video, and the number of requested results if more than one.
    poll: Option<String>,
    cancel: Option<String>,
    task: Option<TaskKind>,
    requested: Option<u32>,
    /// The format of a chat.
    chat: Option<String>,
    stream: bool,
    client_headers: Vec<(String, String)>,
    /// Whether the case only checks the channel's options.
    check: bool,
    /// The error kinds of the sink's deliveries; `null` for one that succeeds.
    sink_errors: Vec<Option<String>>,
    exchanges: Vec<Exchange>,
    /// Whether the requests are sent at the same time, so that their order is not checked.
    in_any_order: bool,
    /// The headers of every request, and the only request of a case with rows.
    headers: Map<String, Value>,
    request: Option<String>,
    body: Option<Value>,
    outcome: String,
    /// The error's message, and its delay before a retry in milliseconds.
    message: Option<String>,
    retry_ms: Option<u64>,
    /// The kinds of the missing results' errors.
    failures: Vec<String>,
    /// The delivered links and files. `own` is a link to the channel's origin, which is fetched with the key.
    results: Vec<String>,
    adjustments: Vec<String>,
    progress: Option<Vec<u8>>,
}

/// A request and its response.
#[derive(Deserialize, Default, Clone)]
#[serde(default, deny_unknown_fields)]
struct Exchange {
    request: Option<String>,
    body: Option<Value>,
    headers: Option<Map<String, Value>>,
    /// `None` if the connection breaks before the response.
    status: Option<u16>,
    reply: Value,
    /// The content type, if it differs from that of JSON or of a page.
    #[serde(rename = "type")]
    content_type: Option<String>,
    reply_headers: Map<String, Value>,
    /// Whether the connection breaks in the middle of the response.
    cut: bool,
    /// The number of times that the same request is sent; once if this is absent.
    times: Option<usize>,
}

const EXCHANGE_FIELDS: [&str; 5] = ["type", "reply_headers", "cut", "headers", "times"];

/// The cases of a file, with the numbers of their lines.
fn read_cases(kind: &str) -> Vec<(usize, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let text = std::fs::read_to_string(folder.join(format!("{kind}.jsonl"))).expect(kind);
    let mut cases: Vec<(usize, Map<String, Value>)> = Vec::new();
    let (mut defaults, mut above) = (Map::new(), Map::new());
    for (at, line) in text.lines().enumerate() {
        let location = || format!("{kind}.jsonl:{}", at + 1);
        match serde_json::from_str(line).unwrap_or_else(|e| panic!("{}: {e}", location())) {
            Value::Array(row) => cases.push((at + 1, with_row(above.clone(), &row))),
            Value::Object(object) => match object.get("defaults") {
                Some(Value::Object(changed)) => defaults = changed.clone(),
                _ => {
                    above = defaults.clone();
                    above.extend(object);
                    if above.contains_key("outcome") {
                        cases.push((at + 1, above.clone()));
                    }
                }
            },
            _ => panic!("{}: no object and no array", location()),
        }
    }
    let case = |(line, case)| match serde_json::from_value(Value::Object(case)) {
        Ok(case) => (line, case),
        Err(error) => panic!("{kind}.jsonl:{line}: {error}"),
    };
    cases.into_iter().map(case).collect()
}

fn with_row(mut case: Map<String, Value>, row: &[Value]) -> Map<String, Value> {
    if case.contains_key("check") {
        case.extend(row[0].as_object().cloned().expect("fields of the channel"));
        case.insert("message".to_owned(), row[1].clone());
        return case;
    }
    let mut exchange = Map::new();
    for (name, value) in ["status", "reply"].into_iter().zip(row) {
        exchange.insert(name.to_owned(), value.clone());
    }
    for name in ["request", "body"] {
        exchange.extend(case.remove(name).map(|value| (name.to_owned(), value)));
    }
    case.insert("outcome".to_owned(), row[2].clone());
    for (name, value) in row.get(3).and_then(Value::as_object).into_iter().flatten() {
        let is_of_exchange = EXCHANGE_FIELDS.contains(&name.as_str());
        let target = if is_of_exchange {
            &mut exchange
        } else {
            &mut case
        };
        target.insert(name.clone(), value.clone());
    }
    case.insert("exchanges".to_owned(), json!([exchange]));
    case
}

impl Case {
    fn channel(&self, kind: &str, base: String) -> Channel {
        let mut channel = channel(kind, base, &self.model);
        channel.options = self.options.clone();
        channel.apis = self.apis.clone();
        channel.api_keys = vec![Secret::new(self.key.as_deref().unwrap_or(KEY))];
        let model = &mut channel.models[0];
        model.upstream = self.upstream.clone().unwrap_or(self.model.clone());
        model.options = self.model_options.clone();
        if self.model.is_empty() {
            channel.models.clear();
        }
        channel
    }

    fn job(&self) -> Job {
        match (&self.image, &self.video, &self.speech) {
            (Some(fields), None, None) => jobs::job(TaskKind::Image, fields),
            (None, Some(fields), None) => jobs::job(TaskKind::Video, fields),
            (None, None, Some(fields)) => jobs::job(TaskKind::Speech, fields),
            _ => panic!("one job"),
        }
    }

    async fn call(&self, adapter: &Adapter) -> Outcome {
        let task = self.task.unwrap_or(TaskKind::Video);
        if let Some(id) = &self.poll {
            return Outcome::polled(adapter.poll(id, task, self.requested.unwrap_or(1)).await);
        }
        if let Some(id) = &self.cancel {
            return Outcome::ok(adapter.cancel(id, task).await);
        }
        if self.find {
            return Outcome::found(adapter.find(&self.job()).await);
        }
        let folder = InputImages::new();
        let files = folder.files(&self.images);
        let mask = self.mask.as_ref().map(|text| folder.file("mask_url", text));
        Outcome::started(adapter.start_with(&self.job(), &files, mask.as_ref()).await)
    }

    async fn chat(&self, format: &str, channel: Channel) -> Outcome {
        let mut chat = Chat::new(format);
        chat.stream = self.stream;
        if !self.model.is_empty() {
            chat.model = self.model.clone();
        }
        for (name, value) in &self.client_headers {
            let name: http::HeaderName = name.parse().expect("a header's name");
            chat.headers
                .append(name, value.parse().expect("a header's value"));
        }
        Outcome::ok(chat.send(&*crate::chat::open(channel)).await)
    }

    /// The exchanges, one for each request.
    fn repeated_exchanges(&self) -> Vec<Exchange> {
        let times = |exchange: &Exchange| exchange.times.unwrap_or(1);
        let repeated = |exchange: &Exchange| vec![exchange.clone(); times(exchange)];
        self.exchanges.iter().flat_map(repeated).collect()
    }

    /// The outcome of the case, and its expected outcome.
    async fn run(&self, kind: &str) -> (Value, Value) {
        let remaining = RemainingExchanges::new(self.repeated_exchanges());
        let replies = Arc::clone(&remaining);
        let server = FixtureServer::start(move |request| replies.reply(request)).await;
        let channel = self.channel(kind, server.url(&self.base));
        let (outcome, sink) = match &self.chat {
            Some(format) => (self.chat(format, channel).await, RecordingSink::default()),
            None => {
                let mut adapter = Adapter::open(channel);
                adapter.failed_attempts = self.failed_attempts;
                let errors = self.sink_errors.iter();
                let kinds = errors.map(|kind| kind.as_deref().map(error_kind));
                *adapter.sink.errors.lock().unwrap() = kinds.collect();
                (self.call(&adapter).await, adapter.sink)
            }
        };
        let error = outcome.error.as_ref();
        assert!(!error.is_some_and(|e| e.message.is_empty() || format!("{e:?}").contains(KEY)));
        // The status of an error response is the status of the error.
        let status = match remaining.exchanges[..] {
            [ref exchange] if self.outcome.starts_with("error ") && !exchange.cut => {
                exchange.status.filter(|status| *status >= 400)
            }
            _ => None,
        };
        let delay = error.and_then(|error| error.retry_after);
        let results = sink.results();
        let results = results.iter().map(|result| shown(result, &server));
        let (sent, requests) = self.requests(&remaining.exchanges, &server.received());
        let actual = json!({
            "outcome": outcome.text,
            "message": self.message.as_ref().and(error.map(|error| &error.message)),
            "status": status.and(error.and_then(|error| error.status)),
            "retry_ms": delay.map(|delay| u64::try_from(delay.as_millis()).unwrap()),
            "failures": self.ordered(outcome.failures),
            "results": self.ordered(results.collect()),
            "adjustments": sink.adjustments(),
            "progress": self.progress.as_ref().map(|_| sink.progress_reports()),
            "requests": sent,
        });
        let expected = json!({
            "outcome": self.outcome,
            "message": self.message,
            "status": status,
            "retry_ms": self.retry_ms,
            "failures": self.ordered(self.failures.clone()),
            "results": self.ordered(self.results.clone()),
            "adjustments": self.adjustments,
            "progress": self.progress,
            "requests": requests,
        });
        (actual, expected)
    }

    /// Sorts the list if the requests are sent at the same time.
    fn ordered<T: ToString>(&self, mut list: Vec<T>) -> Vec<T> {
        if self.in_any_order {
            list.sort_by_key(T::to_string);
        }
        list
    }

    /// The requests that were sent, and the expected ones. A case need not specify bodies.
    fn requests(
        &self,
        exchanges: &[Exchange],
        received: &[ReceivedRequest],
    ) -> (Vec<Value>, Vec<Value>) {
        let sent = received.iter();
        let sent: Vec<Value> = sent
            .map(|request| json!([request.line, sent_headers(request), sent_body(request)]))
            .collect();
        let as_sent = |at: usize, field: usize| sent.get(at).map(|request| request[field].clone());
        let expected = exchanges.iter().enumerate().map(|(at, exchange)| {
            let line = exchange.request.clone().map(Value::from);
            let headers = exchange.headers.as_ref().unwrap_or(&self.headers);
            let body = exchange.body.clone();
            let line = line.or_else(|| as_sent(at, 0));
            json!([line, headers, body.or_else(|| as_sent(at, 2))])
        });
        let expected = self.ordered(expected.collect());
        (self.ordered(sent), expected)
    }

    fn check_options(&self, kind: &str) -> (Value, Value) {
        let base = format!("https://provider.example{}", self.base);
        let channel = self.channel(kind, base);
        let error = (entry(kind).check)(&channel).err();
        let part = self.message.clone();
        match (&error, &part) {
            (Some(error), Some(part)) if error.contains(part) => (Value::Null, Value::Null),
            _ => (json!(error), json!(part)),
        }
    }
}

/// The exchanges of a case; `open` has the positions of those whose responses have not been sent.
struct RemainingExchanges {
    exchanges: Vec<Exchange>,
    open: Mutex<Vec<usize>>,
}

impl RemainingExchanges {
    fn new(exchanges: Vec<Exchange>) -> Arc<Self> {
        let open = Mutex::new((0..exchanges.len()).collect());
        Arc::new(Self { exchanges, open })
    }

    /// The response of the first exchange that has this request, or else of the first exchange.
    fn reply(&self, request: &ReceivedRequest) -> Reply {
        let mut open = self.open.lock().unwrap();
        let body = sent_body(request);
        let is_same = |at: &usize| {
            let exchange = &self.exchanges[*at];
            exchange.request.as_ref() == Some(&request.line)
                && exchange
                    .body
                    .as_ref()
                    .is_none_or(|expected| *expected == body)
        };
        let position = open.iter().position(is_same).unwrap_or(0);
        if open.is_empty() {
            return server::reply(500, "text/plain", "the case has no such request");
        }
        self.exchanges[open.remove(position)].reply(request.header("host"))
    }
}

impl Exchange {
    fn reply(&self, host: &str) -> Reply {
        let status = self.status?;
        let (text, content_type) = match &self.reply {
            Value::String(text) if text.starts_with('{') => (text.clone(), "application/json"),
            Value::String(text) => (text.clone(), "text/html"),
            json => (json.to_string(), "application/json"),
        };
        let text = text.replace("{host}", host).replace("{key}", KEY);
        let content_type = self.content_type.as_deref().unwrap_or(content_type);
        let mut reply = match self.cut {
            true => server::broken_off(content_type, text),
            false => server::reply(status, content_type, text),
        };
        for (name, value) in &self.reply_headers {
            reply = server::with_header(reply, name, value.as_str().expect("a text"));
        }
        reply
    }
}

/// A result as the cases write it. Asserts that the key is sent only with links to the channel's own origin, and is marked as sensitive.
fn shown(result: &Delivered, server: &FixtureServer) -> String {
    match result {
        Delivered::File(bytes) => jobs::describe(bytes),
        Delivered::Link(link) => {
            let url = link.url.replace(&server.host(), "{host}");
            let is_with_key = |headers: &HeaderMap| {
                let mut values = headers.values();
                values.any(|v| v.is_sensitive() && v.to_str().is_ok_and(|v| v.contains(KEY)))
            };
            assert_eq!(is_with_key(&link.headers), link.is_own, "{url}");
            assert!(link.is_own || link.headers.is_empty(), "{url}");
            format!("{}{url}", if link.is_own { "own " } else { "" })
        }
    }
}

/// Runs the cases of a file and prints all differences.
async fn run(kind: &str) {
    let mut mismatches = Vec::new();
    for (line, case) in read_cases(kind) {
        let (actual, expected) = match case.check {
            true => case.check_options(kind),
            false => case.run(kind).await,
        };
        if actual != expected {
            let name = &case.name;
            mismatches.push(format!(
                "{kind}.jsonl:{line}: {name}\n  expected {expected}\n  actual   {actual}"
            ));
        }
    }
    assert!(mismatches.is_empty(), "\n{}", mismatches.join("\n"));
}

/// Defines a test of each provider's cases.
macro_rules! providers {
    ($($kind:ident)*) => {
        $(
            #[tokio::test]
            async fn $kind() {
                run(stringify!($kind)).await;
            }
        )*
    };
}

providers!(anthropic ark dashscope fal gemini kling openai replicate xai);
