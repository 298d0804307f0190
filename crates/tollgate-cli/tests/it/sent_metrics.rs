//! Metrics that a collector receives by OTLP: decoded with the types of OpenTelemetry itself.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, HistogramDataPoint, Metric, number_data_point,
};
use prost::Message as _;
use serde_json::json;

use crate::harness::webhook_receiver::WebhookReceiver;
use crate::harness::*;

on_both!(sent_metrics_equal_those_of_the_metrics_endpoint);
on_sqlite!(
    a_busy_collector_is_retried_after_its_retry_after_and_loses_no_counts,
    a_collector_that_hangs_or_is_down_delays_nothing,
    metrics_are_sent_only_if_they_are_configured,
);

const CHATS: &str = "/v1/chat/completions";
/// What the log has for each message that was not sent.
const FAILED: &str = "cannot send the metrics to the collector";
const PRICE: &str = "[price.\"gpt-5\"]\ninput_per_million = 1\noutput_per_million = 2\n";

fn config(endpoint: &str, metrics_s: u32) -> String {
    format!(
        "[traces]\nendpoint = \"{endpoint}\"\nheaders = \"authorization=Bearer collector-key\"\nsample_ratio = 0\n\
         metrics_s = {metrics_s}\n{PRICE}"
    )
}

async fn chat(client: &Client) {
    let body = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "hello" }] });
    client.post(CHATS, &body).await.expect(200);
}

/// The metrics of every message so far, by name, the oldest first.
fn messages(collector: &WebhookReceiver, path: &str) -> Vec<BTreeMap<String, Metric>> {
    let posts = collector.posts(path);
    let decode = |post: &crate::harness::webhook_receiver::Post| {
        assert_eq!(post.header("content-type"), "application/x-protobuf");
        assert_eq!(post.header("authorization"), "Bearer collector-key");
        let mut request = ExportMetricsServiceRequest::decode(post.bytes()).unwrap();
        let mut resource_metrics = request.resource_metrics.remove(0);
        let resource = resource_metrics.resource.unwrap();
        let resource = attributes(&resource.attributes);
        assert_eq!(resource["service.name"], "tollgate");
        assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
        assert!(resource["service.instance.id"].starts_with("node-"));
        let metrics = resource_metrics.scope_metrics.remove(0).metrics;
        metrics.into_iter().map(|m| (m.name.clone(), m)).collect()
    };
    posts.iter().map(decode).collect()
}

fn attributes(attributes: &[KeyValue]) -> BTreeMap<&str, String> {
    let value = |a: &KeyValue| match a.value.as_ref().unwrap().value.as_ref().unwrap() {
        AnyValue::StringValue(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    attributes
        .iter()
        .map(|a| (a.key.as_str(), value(a)))
        .collect()
}

/// The labels of a point, in the notation of `/metrics`.
fn labels(point: &[KeyValue]) -> String {
    let labels = attributes(point);
    let labels = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{value}\""));
    let labels: Vec<_> = labels.collect();
    match labels.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", labels.join(",")),
    }
}

/// The points of a sum or gauge, by their names and labels in the notation of `/metrics`.
fn numbers(metric: &Metric) -> BTreeMap<String, f64> {
    let points = match metric.data.as_ref().unwrap() {
        Data::Sum(sum) => {
            assert!(sum.is_monotonic, "{}", metric.name);
            let cumulative = AggregationTemporality::Cumulative;
            assert_eq!(sum.aggregation_temporality(), cumulative);
            &sum.data_points
        }
        Data::Gauge(gauge) => &gauge.data_points,
        other => panic!("{other:?}"),
    };
    let number = |value: &number_data_point::Value| match value {
        number_data_point::Value::AsDouble(number) => *number,
        number_data_point::Value::AsInt(_) => panic!("an integer"),
    };
    points
        .iter()
        .map(|point| {
            assert!(point.start_time_unix_nano > 0);
            assert!(point.time_unix_nano > point.start_time_unix_nano);
            let name = format!("{}{}", metric.name, labels(&point.attributes));
            (name, number(point.value.as_ref().unwrap()))
        })
        .collect()
}

fn histogram<'a>(metric: &'a Metric, unit: &str) -> &'a [HistogramDataPoint] {
    let Some(Data::Histogram(histogram)) = &metric.data else {
        panic!("{metric:?}");
    };
    let cumulative = AggregationTemporality::Cumulative;
    assert_eq!(histogram.aggregation_temporality(), cumulative);
    assert_eq!(metric.unit, unit, "{}", metric.name);
    &histogram.data_points
}

/// When the gateway wrote a message, in nanoseconds.
fn written_at(message: &BTreeMap<String, Metric>) -> u64 {
    match message["tollgate_build_info"].data.as_ref().unwrap() {
        Data::Gauge(gauge) => gauge.data_points[0].time_unix_nano,
        other => panic!("{other:?}"),
    }
}

/// The number of chats in the last message.
fn chats(collector: &WebhookReceiver, path: &str) -> f64 {
    let messages = messages(collector, path);
    let counted = messages
        .last()
        .and_then(|last| last.get("tollgate_chats_total"));
    counted.map_or(0.0, |metric| numbers(metric).values().sum())
}

async fn sent_metrics_equal_those_of_the_metrics_endpoint(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let config = config(&collector.url("accept"), 1);
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    for _ in 0..3 {
        chat(&client).await;
    }
    let path = "accept/v1/metrics";
    until("three chats", async || {
        (chats(&collector, path) > 2.5).then_some(())
    })
    .await;
    let messages = messages(&collector, path);
    let last = messages.last().unwrap();
    // The values of these metrics do not change any more.
    for name in [
        "tollgate_chats_total",
        "tollgate_chat_tokens_total",
        "tollgate_ledger_used",
        "tollgate_build_info",
    ] {
        let found = numbers(&last[name]);
        assert!(!found.is_empty(), "{name}");
        for (name, value) in found {
            assert!(value > 0.0, "{name}");
            assert_eq!(
                gateway.metric(&name).await.to_bits(),
                value.to_bits(),
                "{name}"
            );
        }
    }
    let is_sum = matches!(last["tollgate_chats_total"].data, Some(Data::Sum(_)));
    assert!(is_sum && matches!(last["tollgate_ledger_used"].data, Some(Data::Gauge(_))));
    let requests = histogram(&last["tollgate_http_request_seconds"], "s").iter();
    let mut of_chats =
        requests.filter(|point| attributes(&point.attributes).get("route").unwrap() == CHATS);
    let (of_chats, None) = (of_chats.next().unwrap(), of_chats.next()) else {
        panic!("two points of one route");
    };
    assert_eq!(of_chats.count, 3);
    assert_eq!(of_chats.bucket_counts.iter().sum::<u64>(), 3);
    assert_eq!(
        of_chats.bucket_counts.len(),
        of_chats.explicit_bounds.len() + 1
    );
    let mut below = 0;
    for (bound, count) in of_chats.explicit_bounds.iter().zip(&of_chats.bucket_counts) {
        below += count;
        let name = format!(
            "tollgate_http_request_seconds_bucket{{method=\"POST\",route=\"{CHATS}\",le=\"{bound}\"}}"
        );
        let shown = gateway.metric(&name).await;
        assert!(
            (shown - below as f64).abs() < 0.5,
            "{name}: {shown}, {below}"
        );
    }
    // Durations of providers have the names of OpenTelemetry's conventions, and no other names.
    assert!(!last.contains_key("tollgate_provider_seconds"));
    let [times] = histogram(&last["gen_ai.client.operation.duration"], "s") else {
        panic!("one channel");
    };
    let found = attributes(&times.attributes);
    assert_eq!(found["gen_ai.operation.name"], "chat");
    assert_eq!(found["gen_ai.system"], "sandbox");
    assert_eq!(times.count, 3);
    let name = format!(
        "tollgate_provider_seconds_sum{{channel=\"{}\",kind=\"chat\"}}",
        found["tollgate.channel"]
    );
    assert_eq!(
        gateway.metric(&name).await.to_bits(),
        times.sum.unwrap().to_bits()
    );
    check_token_usage(&gateway, last).await;
    gateway.close().await;
}

/// Checks the tokens of three chats, by type, with the names of the conventions.
async fn check_token_usage(gateway: &TestGateway, last: &BTreeMap<String, Metric>) {
    assert!(!last.contains_key("tollgate_chat_request_tokens"));
    let points = histogram(&last["gen_ai.client.token.usage"], "{token}");
    let types = points.iter().map(|point| {
        let found = attributes(&point.attributes);
        assert_eq!(found["gen_ai.operation.name"], "chat");
        assert_eq!(found["gen_ai.system"], "sandbox");
        assert_eq!(found["gen_ai.request.model"], "gpt-5");
        assert_eq!((point.count, point.explicit_bounds.len()), (3, 14));
        (found["gen_ai.token.type"].clone(), point.sum.unwrap())
    });
    let types: BTreeMap<String, f64> = types.collect();
    assert_eq!(types.keys().collect::<Vec<_>>(), ["input", "output"]);
    for (direction, tokens) in types {
        let name =
            format!("tollgate_chat_tokens_total{{channel=\"sandbox\",direction=\"{direction}\"}}");
        assert!(tokens > 0.0);
        assert_eq!(gateway.metric(&name).await.to_bits(), tokens.to_bits());
    }
}

async fn a_busy_collector_is_retried_after_its_retry_after_and_loses_no_counts(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    // The interval is shorter than the pause that the collector requests.
    let config = config(&collector.url("busy/2"), 1);
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    chat(&client).await;
    let path = "busy/2/v1/metrics";
    collector.wait_for_posts(path, 3).await;
    let times: Vec<u64> = messages(&collector, path).iter().map(written_at).collect();
    for pair in times[..3].windows(2) {
        let pause = pair[1] - pair[0];
        assert!(pause > 1_900_000_000, "{pause} ns");
    }
    // The third message includes the counts of the two messages that the collector rejected.
    until("the chat", async || {
        (chats(&collector, path) > 0.5).then_some(())
    })
    .await;
    // Counts after the last interval are sent when the gateway stops.
    chat(&client).await;
    gateway.close().await;
    assert!((chats(&collector, path) - 2.0).abs() < 0.5);
}

async fn a_collector_that_hangs_or_is_down_delays_nothing(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let (gateway, client) =
        TestGateway::with_config(backend, &config(&collector.url("hang"), 1)).await;
    collector.wait_for_posts("hang/v1/metrics", 1).await;
    chat(&client).await;
    // The exporter waits at most ten seconds for a response, and still does.
    let log = gateway.log();
    assert!(!log.contains(FAILED), "{log}");
    gateway.close().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let (gateway, client) = TestGateway::with_config(backend, &config(&nobody, 1)).await;
    let has_failed = async || gateway.log().contains(FAILED);
    until_true("a message to fail", has_failed).await;
    chat(&client).await;
    assert!((gateway.metric("tollgate_background_failures_total").await) < 0.5);
    gateway.close().await;
}

async fn metrics_are_sent_only_if_they_are_configured(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let (gateway, client) =
        TestGateway::with_config(backend, &config(&collector.url("accept"), 0)).await;
    chat(&client).await;
    gateway.close().await;
    assert_eq!(collector.posts("accept/v1/metrics").len(), 0);
}
