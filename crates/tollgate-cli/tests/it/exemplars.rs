//! Exemplars, which link histograms to traces, in `/metrics` as OpenMetrics and by OTLP.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Exemplar, exemplar};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use serde_json::json;

use crate::harness::webhook_receiver::WebhookReceiver;
use crate::harness::*;
use crate::traces::{bytes, config, trace};

on_sqlite!(
    histograms_link_to_the_traces_of_sampled_requests,
    open_metrics_are_returned_only_if_they_are_accepted,
);

const CHATS: &str = "/v1/chat/completions";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0";

/// A sample of a page in OpenMetrics.
#[derive(Debug)]
struct Sample {
    /// The name with its labels.
    name: String,
    value: f64,
    /// Trace, span and value; `None` if the sample has no exemplar.
    exemplar: Option<(String, String, f64)>,
}

/// Parses a page and checks that it is valid OpenMetrics: families do not repeat, samples belong to the family before them, buckets grow, exemplars
/// are within their bucket, and the page has an end.
fn parse(page: &str) -> Vec<Sample> {
    let body = page.strip_suffix("# EOF\n").expect("an end");
    let (mut samples, mut families) = (Vec::new(), BTreeSet::new());
    let (mut family, mut kind) = (String::new(), "");
    let mut buckets: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for line in body.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, of_kind) = declared.split_once(' ').expect("a type");
            assert!(families.insert(name), "{name} twice");
            (family, kind) = (name.to_owned(), of_kind);
            assert!(!name.ends_with("_total"), "{line}");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let sample = parse_sample(line);
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            other => panic!("{other}"),
        };
        let own_name = sample.name.split('{').next().unwrap();
        let suffix = own_name.strip_prefix(family.as_str()).unwrap_or("no");
        assert!(suffixes.contains(&suffix), "{line} in {family}");
        if let Some((series, bound)) = sample.name.rsplit_once("le=\"") {
            let bound = bound.trim_end_matches("\"}");
            assert!(bound.contains('.') || bound == "+Inf", "{line}");
            let bound: f64 = bound.parse().unwrap();
            let before = buckets.insert(series.to_owned(), (bound, sample.value));
            let (lower, below) = before.unwrap_or((f64::NEG_INFINITY, 0.0));
            assert!(bound > lower && sample.value >= below, "{line}");
            if let Some((.., value)) = &sample.exemplar {
                assert!(*value > lower && *value <= bound, "{line}");
                assert!(sample.value > below, "{line}");
            }
        } else {
            assert!(sample.exemplar.is_none(), "{line}");
        }
        samples.push(sample);
    }
    samples
}

fn parse_sample(line: &str) -> Sample {
    let (sample, exemplar) = match line.split_once(" # ") {
        Some((sample, exemplar)) => (sample, Some(exemplar)),
        None => (line, None),
    };
    let (name, value) = sample.rsplit_once(' ').expect("a value");
    let exemplar = exemplar.map(|text| {
        let (labels, rest) = text.split_once("} ").expect("labels");
        let (value, time) = rest.split_once(' ').expect("a time");
        assert!(time.parse::<f64>().unwrap() > 1.7e9, "{line}");
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}=\"")).expect(name);
            rest.split('"').next().unwrap().to_owned()
        };
        (label("trace_id"), label("span_id"), value.parse().unwrap())
    });
    Sample {
        name: name.to_owned(),
        value: value.parse().unwrap(),
        exemplar,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The exemplars of the histograms of the last message of metrics, by name.
fn sent_exemplars(collector: &WebhookReceiver) -> BTreeMap<String, Vec<Exemplar>> {
    let posts = collector.posts("accept/v1/metrics");
    let last = posts.last().map(|post| post.bytes()).unwrap_or_default();
    let request = ExportMetricsServiceRequest::decode(last).unwrap();
    let scopes = request
        .resource_metrics
        .into_iter()
        .flat_map(|r| r.scope_metrics);
    let mut found: BTreeMap<String, Vec<Exemplar>> = BTreeMap::new();
    for metric in scopes.flat_map(|scope| scope.metrics) {
        if let Some(Data::Histogram(histogram)) = metric.data {
            let points = histogram.data_points.into_iter();
            found
                .entry(metric.name)
                .or_default()
                .extend(points.flat_map(|point| point.exemplars));
        }
    }
    found.retain(|_, exemplars| !exemplars.is_empty());
    found
}

async fn histograms_link_to_the_traces_of_sampled_requests(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let config = config(&collector, "sample_ratio = 0\nmetrics_s = 1\n");
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    let body = json!({
        "model": "gpt-5", "stream": true,
        "messages": [{ "role": "user", "content": "hello [[sandbox:delay=20]]" }],
    });
    client.post(CHATS, &body).await.expect(200);
    let page = gateway.metrics_page(OPEN_METRICS).await;
    assert_eq!(
        page.header("content-type"),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let is_linked = |sample: &Sample| sample.exemplar.is_some();
    assert!(!parse(&page.text()).iter().any(is_linked));

    let id = "9".repeat(32);
    let traceparent = format!("00-{id}-b7ad6b7169203331-01");
    let headers = [("traceparent", traceparent.as_str())];
    client.post_with(CHATS, &body, &headers).await.expect(200);
    let image = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    let task_trace = "8".repeat(32);
    let traceparent = format!("00-{task_trace}-b7ad6b7169203331-01");
    let headers = [("traceparent", traceparent.as_str())];
    let receipt = client
        .post_with("/v1/images/generations", &image, &headers)
        .await;
    client
        .wait_for_end(&task_id(&receipt.expect(200).json()))
        .await;

    // The chat's spans are the request's and the attempt's; the task's are the request's, its own and the attempt's.
    let (chat, task) = (
        trace(&collector, &bytes(&id), 2).await,
        trace(&collector, &bytes(&task_trace), 3).await,
    );
    let span = |spans: &[opentelemetry_proto::tonic::trace::v1::Span], kind: SpanKind| {
        let span = spans.iter().find(|span| span.kind() == kind).unwrap();
        (hex(&span.trace_id), hex(&span.span_id))
    };
    let expected = [
        (
            "tollgate_http_request_seconds",
            CHATS,
            span(&chat, SpanKind::Server),
        ),
        (
            "tollgate_chat_first_token_seconds",
            "sandbox",
            span(&chat, SpanKind::Client),
        ),
        (
            "tollgate_provider_seconds",
            "\"chat\"",
            span(&chat, SpanKind::Client),
        ),
        (
            "tollgate_chat_request_tokens",
            "\"input\"",
            span(&chat, SpanKind::Client),
        ),
        (
            "tollgate_chat_request_tokens",
            "\"output\"",
            span(&chat, SpanKind::Client),
        ),
        (
            "tollgate_provider_seconds",
            "\"image\"",
            span(&task, SpanKind::Client),
        ),
        (
            "tollgate_task_queue_seconds",
            "\"image\"",
            span(&task, SpanKind::Consumer),
        ),
        (
            "tollgate_task_hold_seconds",
            "\"image\"",
            span(&task, SpanKind::Consumer),
        ),
    ];
    let page = gateway.metrics_page(OPEN_METRICS).await.text();
    let samples = parse(&page);
    for (name, label, (trace_id, span_id)) in &expected {
        let of_series =
            |sample: &&Sample| sample.name.starts_with(name) && sample.name.contains(label);
        let linked = samples
            .iter()
            .filter(of_series)
            .filter_map(|s| s.exemplar.as_ref());
        let linked: Vec<_> = linked.map(|(trace, span, _)| (trace, span)).collect();
        assert_eq!(linked, [(trace_id, span_id)], "{name} {label}");
    }
    // OTLP sends the same exemplars, with the metrics' names in OTLP.
    let sent = until("the exemplars", async || {
        let sent = sent_exemplars(&collector);
        sent.contains_key("tollgate_task_hold_seconds")
            .then_some(sent)
    })
    .await;
    for (name, (trace_id, span_id)) in [
        ("gen_ai.client.token.usage", span(&chat, SpanKind::Client)),
        (
            "gen_ai.server.time_to_first_token",
            span(&chat, SpanKind::Client),
        ),
        (
            "tollgate_task_hold_seconds",
            span(&task, SpanKind::Consumer),
        ),
    ] {
        for exemplar in &sent[name] {
            let span = (hex(&exemplar.trace_id), hex(&exemplar.span_id));
            assert_eq!(span, (trace_id.clone(), span_id.clone()), "{name}");
            assert!(exemplar.time_unix_nano > 0);
            let Some(exemplar::Value::AsDouble(value)) = exemplar.value else {
                panic!("{exemplar:?}");
            };
            assert!(value >= 0.0);
        }
    }
    gateway.close().await;
}

async fn open_metrics_are_returned_only_if_they_are_accepted(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let body = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "hello" }] });
    client.post(CHATS, &body).await.expect(200);
    for accept in [
        "*/*",
        "text/plain",
        "application/openmetrics-text;version=9.0.0",
    ] {
        let page = gateway.metrics_page(accept).await;
        assert_eq!(page.header("content-type"), "text/plain; version=0.0.4");
        assert!(page.text().contains("# TYPE tollgate_chats_total counter"));
        assert!(!page.text().contains("# EOF"));
    }
    let page = gateway.metrics_page(OPEN_METRICS).await.text();
    let samples = parse(&page);
    let chats = samples
        .iter()
        .find(|s| s.name.starts_with("tollgate_chats_total{"));
    assert!((chats.unwrap().value - 1.0).abs() < f64::EPSILON);
    // Only gateways that send metrics record the tokens of single chats.
    assert!(!page.contains("tollgate_chat_request_tokens"));
    gateway.close().await;
}
