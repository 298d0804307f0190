//! OpenTelemetry traces, as a collector gets them: decoded with the types of OpenTelemetry itself.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use serde_json::json;

use crate::harness::webhook_receiver::WebhookReceiver;
use crate::harness::*;

on_both!(the_work_on_a_task_belongs_to_the_trace_of_its_submission);
on_sqlite!(
    a_chat_is_a_span_with_its_attempts_as_children,
    the_caller_decides_whether_a_trace_is_recorded,
);

const CHATS: &str = "/v1/chat/completions";
/// The receiver accepts everything below its first part.
const TRACES: &str = "accept/v1/traces";
const HEADER: &str = "authorization=Bearer collector-key-of-the-test";

fn config(collector: &WebhookReceiver, more: &str) -> String {
    let endpoint = collector.url("accept");
    format!("[traces]\nendpoint = \"{endpoint}\"\nheaders = \"{HEADER}\"\n{more}")
}

/// Every span that the collector has.
fn spans(collector: &WebhookReceiver) -> Vec<Span> {
    let mut spans = Vec::new();
    for post in collector.posts(TRACES) {
        assert_eq!(post.header("content-type"), "application/x-protobuf");
        assert_eq!(
            post.header("authorization"),
            "Bearer collector-key-of-the-test"
        );
        let request = ExportTraceServiceRequest::decode(post.bytes()).unwrap();
        for resource_spans in request.resource_spans {
            let attributes = resource_spans.resource.unwrap().attributes;
            let name = attributes.iter().find(|a| a.key == "service.name").unwrap();
            let name = name.value.clone().unwrap().value;
            assert_eq!(name, Some(AnyValue::StringValue("tollgate".to_owned())));
            spans.extend(
                resource_spans
                    .scope_spans
                    .into_iter()
                    .flat_map(|scope| scope.spans),
            );
        }
    }
    spans
}

/// The spans of a trace when there are so many, the first that began first.
async fn trace(collector: &WebhookReceiver, id: &[u8], count: usize) -> Vec<Span> {
    let mut found = until("the spans", async || {
        let mut found = spans(collector);
        found.retain(|span| span.trace_id == id);
        (found.len() >= count).then_some(found)
    })
    .await;
    assert_eq!(found.len(), count);
    found.sort_by_key(|span| span.start_time_unix_nano);
    assert!(
        found
            .iter()
            .all(|span| span.end_time_unix_nano >= span.start_time_unix_nano)
    );
    found
}

/// The attributes of a span, as text.
fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let text = |value: &AnyValue| match value {
        AnyValue::StringValue(text) => text.clone(),
        AnyValue::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let value = |a: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        text(a.value.as_ref().unwrap().value.as_ref().unwrap())
    };
    span.attributes
        .iter()
        .map(|a| (a.key.as_str(), value(a)))
        .collect()
}

#[track_caller]
fn check_attributes(span: &Span, expected: &[(&str, &str)]) {
    let found = attributes(span);
    for (name, value) in expected {
        assert_eq!(
            found.get(name).map(String::as_str),
            Some(*value),
            "{name} in {found:?}"
        );
    }
}

/// The bytes of hexadecimal digits.
fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

async fn a_chat_is_a_span_with_its_attempts_as_children(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    // An upstream that answers, but not with a chat.
    let upstream = WebhookReceiver::start().await;
    let channels = format!(
        "[[channel]]\nname = \"broken\"\nkind = \"openai\"\nbase_url = \"{}\"\napi_keys = [\"upstream-key-1\"]\n\
         models = [\"gpt-5\"]\ntrace_context = true\n\
         [[channel]]\nname = \"works\"\nkind = \"sandbox\"\nmodels = [\"gpt-5\"]\npriority = 1\n\
         [price.\"gpt-5\"]\ninput_per_million = 1\noutput_per_million = 2\n",
        upstream.url("accept/v1"),
    );
    let (gateway, client) = TestGateway::with_config(backend, &config(&collector, &channels)).await;
    for (trace_id, is_stream) in [("1".repeat(32), false), ("2".repeat(32), true)] {
        let parent = "b7ad6b7169203331";
        let traceparent = format!("00-{trace_id}-{parent}-01");
        let body = json!({
            "model": "gpt-5", "stream": is_stream, "messages": [{ "role": "user", "content": "privately-told" }],
        });
        let headers = [
            ("traceparent", traceparent.as_str()),
            ("x-request-id", "req-of-the-test"),
        ];
        client.post_with(CHATS, &body, &headers).await.expect(200);
        let found = trace(&collector, &bytes(&trace_id), 3).await;
        let [request, failed, answered] = &found[..] else {
            unreachable!()
        };
        assert_eq!(request.name, format!("POST {CHATS}"));
        assert_eq!(
            (request.kind(), &request.parent_span_id),
            (SpanKind::Server, &bytes(parent))
        );
        check_attributes(
            request,
            &[
                ("http.response.status_code", "200"),
                ("http.route", CHATS),
                ("client.address", "127.0.0.1"),
                ("gen_ai.operation.name", "chat"),
                ("gen_ai.request.model", "gpt-5"),
                ("tollgate.attempts", "2"),
                ("tollgate.channel", "works"),
                ("tollgate.key.id", &client.key_id),
                ("tollgate.outcome", "done"),
                ("tollgate.request.id", "req-of-the-test"),
            ],
        );
        let cost: f64 = attributes(request)["tollgate.cost"].parse().unwrap();
        assert!(cost > 0.0);
        for attempt in [failed, answered] {
            assert_eq!(attempt.name, "chat gpt-5");
            assert_eq!(
                (attempt.kind(), &attempt.parent_span_id),
                (SpanKind::Client, &request.span_id)
            );
        }
        check_attributes(
            failed,
            &[("tollgate.channel", "broken"), ("gen_ai.system", "openai")],
        );
        assert!(attributes(failed).contains_key("error.type"));
        assert_eq!(failed.status.as_ref().unwrap().code, 2);
        let usage = attributes(request)["gen_ai.usage.output_tokens"].clone();
        check_attributes(
            answered,
            &[
                ("tollgate.channel", "works"),
                ("gen_ai.usage.output_tokens", &usage),
            ],
        );
        // The provider's spans are children of the attempt.
        let post = upstream.posts("accept/v1/chat/completions").pop().unwrap();
        let span_id: String = failed
            .span_id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            post.header("traceparent"),
            format!("00-{trace_id}-{span_id}-01")
        );
    }
    for post in collector.posts(TRACES) {
        let text = String::from_utf8_lossy(&post.bytes()).into_owned();
        assert!(
            !text.contains("privately-told") && !text.contains(client.secret.as_ref().unwrap())
        );
    }
    gateway.close().await;
}

async fn the_caller_decides_whether_a_trace_is_recorded(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let config = config(&collector, "sample_ratio = 0\n");
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    let (left_out, recorded) = ("3".repeat(32), "4".repeat(32));
    for traceparent in [
        String::new(),
        format!("00-{left_out}-b7ad6b7169203331-00"),
        format!("00-{recorded}-b7ad6b7169203331-01"),
    ] {
        let headers = [("traceparent", traceparent.as_str())];
        client
            .send_with("GET", "/v1/models", &headers, "")
            .await
            .expect(200);
    }
    trace(&collector, &bytes(&recorded), 1).await;
    // Spans are sent in the order of their ends, and the rest at the end.
    gateway.close().await;
    assert_eq!(spans(&collector).len(), 1);
}

async fn the_work_on_a_task_belongs_to_the_trace_of_its_submission(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let prices = "[price.\"imagen-4.0-partner\"]\nper_image = 0.5\n";
    let (gateway, client) = TestGateway::with_config(backend, &config(&collector, prices)).await;
    for (trace_id, prompt, error) in [
        ("5".repeat(32), "a mill", None),
        ("6".repeat(32), "[[sandbox:fail]]", Some("provider_error")),
    ] {
        let traceparent = format!("00-{trace_id}-b7ad6b7169203331-01");
        let body = json!({ "model": "imagen-4.0-partner", "prompt": prompt });
        let headers = [("traceparent", traceparent.as_str())];
        let path = "/v1/images/generations";
        let receipt = client
            .post_with(path, &body, &headers)
            .await
            .expect(200)
            .json();
        let id = task_id(&receipt);
        client.wait_for_end(&id).await;
        let found = trace(&collector, &bytes(&trace_id), 3).await;
        let by_kind = |kind: SpanKind| found.iter().find(|span| span.kind() == kind).unwrap();
        let submission = by_kind(SpanKind::Server);
        let (task, attempt) = (by_kind(SpanKind::Consumer), by_kind(SpanKind::Client));
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
