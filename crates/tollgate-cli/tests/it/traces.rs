//! OpenTelemetry traces that a collector receives: decoded with the types of OpenTelemetry itself.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use serde_json::{Value, json};

use crate::harness::webhook_receiver::WebhookReceiver;
use crate::harness::*;

on_sqlite!(
    a_chat_is_a_span_with_its_attempts_as_children,
    content_of_chats_is_recorded_only_for_keys_with_trace_content,
    newer_attribute_names_are_used_if_the_operator_opts_in,
    the_caller_decides_whether_a_trace_is_recorded,
);

const CHATS: &str = "/v1/chat/completions";
/// The path of the receiver; it accepts everything below `accept`.
const TRACES: &str = "accept/v1/traces";
const HEADER: &str = "authorization=Bearer collector-key-of-the-test";

pub(crate) fn config(collector: &WebhookReceiver, more: &str) -> String {
    let endpoint = collector.url("accept");
    format!("[traces]\nendpoint = \"{endpoint}\"\nheaders = \"{HEADER}\"\n{more}")
}

/// Every span that the collector received.
pub(crate) fn spans(collector: &WebhookReceiver) -> Vec<Span> {
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

/// Waits until a trace has this number of spans; returns them in the order of their starts.
pub(crate) async fn trace(collector: &WebhookReceiver, id: &[u8], count: usize) -> Vec<Span> {
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
pub(crate) fn attributes(span: &Span) -> BTreeMap<&str, String> {
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
pub(crate) fn check_attributes(span: &Span, expected: &[(&str, &str)]) {
    let found = attributes(span);
    for (name, value) in expected {
        assert_eq!(
            found.get(name).map(String::as_str),
            Some(*value),
            "{name} in {found:?}"
        );
    }
}

/// The bytes of a string of hexadecimal digits.
pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

async fn a_chat_is_a_span_with_its_attempts_as_children(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    // An upstream that responds, but not with a chat.
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
            "model": "gpt-5", "stream": is_stream, "messages": [{ "role": "user", "content": "private-prompt" }],
        });
        let headers = [
            ("traceparent", traceparent.as_str()),
            ("tracestate", "vendor=a:b, other=1"),
            ("x-request-id", "req-of-the-test"),
        ];
        client.post_with(CHATS, &body, &headers).await.expect(200);
        let found = trace(&collector, &bytes(&trace_id), 3).await;
        assert!(
            found
                .iter()
                .all(|span| span.trace_state == "vendor=a:b, other=1")
        );
        let [request, failed, succeeded] = &found[..] else {
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
        for attempt in [failed, succeeded] {
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
            succeeded,
            &[
                ("tollgate.channel", "works"),
                ("gen_ai.usage.output_tokens", &usage),
            ],
        );
        // The request to the provider names the attempt's span as the parent.
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
        assert_eq!(post.header("tracestate"), "vendor=a:b, other=1");
    }
    for post in collector.posts(TRACES) {
        let text = String::from_utf8_lossy(&post.bytes()).into_owned();
        assert!(
            !text.contains("private-prompt") && !text.contains(client.secret.as_ref().unwrap())
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
        // The gateway ignores an invalid `tracestate`, and still uses the `traceparent` beside it.
        let headers = [("traceparent", traceparent.as_str()), ("tracestate", "a")];
        client
            .send_with("GET", "/v1/models", &headers, "")
            .await
            .expect(200);
    }
    let found = trace(&collector, &bytes(&recorded), 1).await;
    assert_eq!(found[0].trace_state, "");
    // Spans are sent in the order of their ends, and the remaining ones when the gateway stops.
    gateway.close().await;
    assert_eq!(spans(&collector).len(), 1);
}

async fn newer_attribute_names_are_used_if_the_operator_opts_in(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let upstream = WebhookReceiver::start().await;
    let channels = format!(
        "metrics_s = 1\n[[channel]]\nname = \"broken\"\nkind = \"gemini\"\nbase_url = \"{}\"\napi_keys = [\"upstream-key-1\"]\n\
         models = [\"gpt-5\"]\n[[channel]]\nname = \"works\"\nkind = \"sandbox\"\nmodels = [\"gpt-5\"]\npriority = 1\n",
        upstream.url("accept"),
    );
    for (trace_id, opt_in, provider, first_piece) in [
        (
            "7".repeat(32),
            "http",
            "gen_ai.system",
            "gen_ai.server.time_to_first_token",
        ),
        (
            "8".repeat(32),
            "http, gen_ai_latest_experimental",
            "gen_ai.provider.name",
            "gen_ai.client.operation.time_to_first_chunk",
        ),
    ] {
        let setup = Setup::new(backend).config(&config(&collector, &channels));
        let setup = setup.env("OTEL_SEMCONV_STABILITY_OPT_IN", opt_in);
        let gateway = setup.start().await;
        let client = gateway.unlimited_client().await;
        let traceparent = format!("00-{trace_id}-b7ad6b7169203331-01");
        let body = json!({
            "model": "gpt-5", "stream": true, "messages": [{ "role": "user", "content": "hello" }],
        });
        let headers = [("traceparent", traceparent.as_str())];
        client.post_with(CHATS, &body, &headers).await.expect(200);
        let found = trace(&collector, &bytes(&trace_id), 3).await;
        let named = |span: &Span| attributes(span).get(provider).cloned();
        let names: Vec<_> = found.iter().map(named).collect();
        let expected = [None, Some("gcp.gen_ai"), Some("sandbox")];
        assert_eq!(names, expected.map(|name| name.map(str::to_owned)));
        until_true("the times of the first pieces", async || {
            let posts = collector.posts("accept/v1/metrics");
            posts.iter().any(|post| {
                let text = String::from_utf8_lossy(&post.bytes()).into_owned();
                text.contains(first_piece) && text.contains(provider)
            })
        })
        .await;
        gateway.close().await;
    }
}

async fn content_of_chats_is_recorded_only_for_keys_with_trace_content(backend: Backend) {
    let collector = WebhookReceiver::start().await;
    let (gateway, silent) = TestGateway::with_config(backend, &config(&collector, "")).await;
    gateway.user("open", &[]).await;
    let open = gateway.key("open", &["--trace-content"]).await;
    let chat = async |client: &Client, digit: &str, is_stream: bool, path: &str| {
        let trace_id = digit.repeat(32);
        let traceparent = format!("00-{trace_id}-b7ad6b7169203331-01");
        let body = json!({
            "model": "gpt-5", "stream": is_stream, "max_tokens": 50,
            "messages": [{ "role": "user", "content": "secret question [[sandbox:say=secret reply]]" }],
        });
        let headers = [("traceparent", traceparent.as_str())];
        client.post_with(path, &body, &headers).await.expect(200);
        let found = trace(&collector, &bytes(&trace_id), 2).await;
        let request = found.iter().find(|s| s.kind() == SpanKind::Server).unwrap();
        attributes(request)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect::<BTreeMap<_, _>>()
    };
    for (digit, is_stream, path) in [
        ("1", false, CHATS),
        ("2", true, CHATS),
        ("3", true, "/anthropic/v1/messages"),
    ] {
        let found = chat(&open, digit, is_stream, path).await;
        let value = |name: &str| -> Value { serde_json::from_str(&found[name]).unwrap() };
        let input = &value("gen_ai.input.messages")[0];
        assert_eq!(input["role"], "user");
        let text = input["parts"][0]["content"].as_str().unwrap();
        assert!(text.starts_with("secret question"), "{text}");
        let output = &value("gen_ai.output.messages")[0];
        assert_eq!(output["role"], "assistant");
        let content = json!([{ "type": "text", "content": "secret reply" }]);
        assert_eq!(output["parts"], content, "{path}");
        assert_eq!(output["finish_reason"], "stop");
    }
    let found = chat(&silent, "4", true, CHATS).await;
    assert!(
        !found
            .values()
            .any(|value| value.contains("secret question") || value.contains("secret reply"))
    );
    gateway.close().await;
}
