//! OpenTelemetry traces of tasks: across workers, nodes and providers.

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider, start};

use crate::harness::webhook_receiver::WebhookReceiver;
use crate::harness::*;
use crate::traces::{attributes, bytes, check_attributes, config, trace};

on_both!(
    a_cancelled_task_has_spans,
    the_spans_of_a_task_belong_to_the_trace_of_its_submission,
);
on_sqlite!(
    requests_to_providers_have_the_trace_context_of_the_attempt,
    an_attempt_that_another_process_completes_is_one_span,
);

const STATE: &str = "vendor=a:b,other=1";

/// The only span of a kind.
#[track_caller]
fn only(spans: &[Span], kind: SpanKind) -> &Span {
    let mut of_kind = spans.iter().filter(|span| span.kind() == kind);
    let (Some(span), None) = (of_kind.next(), of_kind.next()) else {
        panic!("not one span of {kind:?}: {spans:?}");
    };
    span
}

/// A trace that a caller of the gateway began.
struct CallersTrace {
    id: String,
}

impl CallersTrace {
    fn new(digit: char) -> Self {
        let id = digit.to_string().repeat(32);
        Self { id }
    }

    /// Submits a request in the trace, with a trace state; returns the task's id.
    async fn submit(&self, client: &Client, path: &str, body: &Value) -> String {
        let traceparent = format!("00-{}-b7ad6b7169203331-01", self.id);
        let headers = [("traceparent", traceparent.as_str()), ("tracestate", STATE)];
        let receipt = client.post_with(path, body, &headers).await;
        task_id(&receipt.expect(200).json())
    }

    /// The trace headers that a provider gets with the requests of this span.
    fn headers_of(&self, span: &Span) -> (Option<String>, Option<String>) {
        let span_id = span.span_id.iter();
        let span_id: String = span_id.map(|byte| format!("{byte:02x}")).collect();
        let traceparent = format!("00-{}-{span_id}-01", self.id);
        (Some(traceparent), Some(STATE.to_owned()))
    }
}

/// The trace headers of the requests that a fake received, if they have any.
fn trace_headers(fake: &Fake) -> Vec<(Option<String>, Option<String>)> {
    let requests = fake.requests().into_iter();
    let headers = requests.map(|request| {
        let header = |name| request.header(name).map(str::to_owned);
        (header("traceparent"), header("tracestate"))
    });
    headers
        .filter(|trace_headers| *trace_headers != (None, None))
        .collect()
}

/// A channel to a fake that serves one model.
async fn channel(kind: &str, model: &str, upstream: &str, more: &str) -> (Fake, String) {
    let provider: Provider = kind.parse().unwrap();
    let fake = start(provider, Options::default()).await.unwrap();
    let name = format!("{kind}-{model}");
    let channel = ChannelConfig::new(&name, kind).url(&fake.base_url());
    let channel = channel.keys(&["access:hidden-half"]);
    let channel = channel.model_as(model, upstream);
    let text = channel.lines("poll_ms = 100").lines(more).text();
    (fake, text)
}

async fn the_spans_of_a_task_belong_to_the_trace_of_its_submission(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let prices = "[price.\"imagen-4.0-partner\"]\nper_image = 0.5\n";
    let (gateway, client) = TestGateway::with_config(backend, &config(&collector, prices)).await;
    for (callers, prompt, error) in [
        (CallersTrace::new('5'), "a mill", None),
        (
            CallersTrace::new('6'),
            "[[sandbox:fail]]",
            Some("provider_error"),
        ),
    ] {
        let body = json!({ "model": "imagen-4.0-partner", "prompt": prompt });
        let id = callers
            .submit(&client, "/v1/images/generations", &body)
            .await;
        client.wait_for_end(&id).await;
        let found = trace(&collector, &bytes(&callers.id), 3).await;
        let submission = only(&found, SpanKind::Server);
        let task = only(&found, SpanKind::Consumer);
        let attempt = only(&found, SpanKind::Client);
        assert!(found.iter().all(|span| span.trace_state == STATE));
        assert_eq!(task.links[0].trace_state, STATE);
        assert_eq!(task.parent_span_id, submission.span_id);
        assert_eq!(
            (task.links.len(), &task.links[0].span_id),
            (1, &submission.span_id)
        );
        assert_eq!(attempt.parent_span_id, task.span_id);
        let cost = if error.is_none() { "0.5" } else { "0" };
        check_attributes(
            task,
            &[
                ("tollgate.task.id", &id),
                ("tollgate.cost", cost),
                ("tollgate.attempts", "1"),
            ],
        );
        check_attributes(
            attempt,
            &[("gen_ai.output.type", "image"), ("tollgate.task.id", &id)],
        );
        assert_eq!(
            attributes(task).get("error.type").map(String::as_str),
            error
        );
        assert_eq!(attempt.status.is_some(), error.is_some());
    }
    gateway.close().await;
}

async fn a_cancelled_task_has_spans(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let (gateway, client) = TestGateway::with_config(backend, &config(&collector, "")).await;
    let callers = CallersTrace::new('7');
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "[[sandbox:hang]]" });
    let id = callers
        .submit(&client, "/v1/images/generations", &body)
        .await;
    until_true("the attempt", async || {
        gateway.query_number("SELECT COUNT(*) FROM attempts").await == 1
    })
    .await;
    client.cancel(&id).await.expect(200);
    let found = trace(&collector, &bytes(&callers.id), 3).await;
    let task = only(&found, SpanKind::Consumer);
    let attempt = only(&found, SpanKind::Client);
    assert_eq!(attempt.parent_span_id, task.span_id);
    let ended = [("error.type", "cancelled"), ("tollgate.task.id", &id)];
    check_attributes(attempt, &ended);
    check_attributes(task, &ended);
    let channel = attributes(attempt)["tollgate.channel"].clone();
    check_attributes(
        task,
        &[
            ("tollgate.attempts", "1"),
            ("tollgate.cost", "0"),
            ("tollgate.channel", &channel),
        ],
    );
    gateway.close().await;
}

async fn requests_to_providers_have_the_trace_context_of_the_attempt(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let passes = "trace_context = true";
    let image = channel("openai", "gpt-image-2-official", "gpt-image-2", passes).await;
    let video = channel("openai", "sora-2", "sora-2", passes).await;
    let speech = channel("kling", "native-v3", "native-v3", passes).await;
    let silent = channel("dashscope", "wan2.7-image", "wan2.7-image", "").await;
    let channels = [&image.1, &video.1, &speech.1, &silent.1].map(String::as_str);
    let config = config(&collector, &channels.concat());
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    let text = json!({ "model": "native-v3", "input": "hello" });
    let prompt = |model: &str| json!({ "model": model, "prompt": "a red boat" });
    for (digit, fake, path, body, gets_trace) in [
        (
            'a',
            &image.0,
            "/v1/images/generations",
            prompt("gpt-image-2-official"),
            true,
        ),
        ('b', &video.0, "/v1/videos", prompt("sora-2"), true),
        ('c', &speech.0, "/v1/audio/speech", text, true),
        (
            'd',
            &silent.0,
            "/v1/images/generations",
            prompt("wan2.7-image"),
            false,
        ),
    ] {
        let callers = CallersTrace::new(digit);
        let id = callers.submit(&client, path, &body).await;
        let record = client.wait_for_end(&id).await;
        assert_eq!(status(&record), "completed", "{record}");
        let found = trace(&collector, &bytes(&callers.id), 3).await;
        let attempt = only(&found, SpanKind::Client);
        let expected = match gets_trace {
            true => vec![callers.headers_of(attempt)],
            false => Vec::new(),
        };
        assert_eq!(trace_headers(fake), expected, "{path}");
    }
    gateway.close().await;
}

async fn an_attempt_that_another_process_completes_is_one_span(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let (fake, channel) = channel("openai", "sora-2", "sora-2", "trace_context = true").await;
    let (mut gateway, client) =
        TestGateway::with_config(backend, &config(&collector, &channel)).await;
    let callers = CallersTrace::new('e');
    let body = json!({ "model": "sora-2", "prompt": "a red boat [[fake:polls=20]]" });
    let id = callers.submit(&client, "/v1/videos", &body).await;
    until_true("a poll", async || !fake.polls().is_empty()).await;
    gateway.restart().await;
    assert_eq!(status(&client.wait_for_end(&id).await), "completed");
    let found = trace(&collector, &bytes(&callers.id), 3).await;
    let task = only(&found, SpanKind::Consumer);
    let attempt = only(&found, SpanKind::Client);
    assert_eq!(attempt.parent_span_id, task.span_id);
    assert_eq!(trace_headers(&fake), [callers.headers_of(attempt)]);
    // The attempt began in the previous process: its polls took two seconds, and the last of them were in this process.
    let took = attempt.end_time_unix_nano - attempt.start_time_unix_nano;
    assert!(took > 1_900_000_000, "{took}");
    gateway.close().await;
}
