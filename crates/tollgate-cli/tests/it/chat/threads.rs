//! Conversations that Anthropic stores (`thread`), and the machine-readable members of a vendor's errors.

use serde_json::{Value, json};

use super::upstream::{Received, Upstream, UpstreamResponse, events, json_response};
use crate::harness::{Backend, ChannelConfig, Client, TestGateway, on_sqlite};

on_sqlite!(
    threads_are_rejected_by_channels_that_cannot_store_them,
    a_thread_continues_with_the_key_that_created_it,
    a_stored_response_continues_with_the_key_that_created_it,
    a_vendors_error_keeps_its_details,
);

const PATH: &str = "/anthropic/v1/messages";

fn request(model: &str, thread: Value) -> Value {
    json!({
        "model": model,
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "hello"}],
        "thread": thread,
    })
}

fn continue_after(after: &str) -> Value {
    json!({"type": "continue", "previous_message_id": after})
}

async fn error_of(client: &Client, path: &str, body: &Value) -> (u16, Value) {
    let reply = client.post(path, body).await;
    (reply.status, reply.json()["error"].clone())
}

async fn threads_are_rejected_by_channels_that_cannot_store_them(backend: Backend) {
    let openai = Upstream::start(|_| json_response(500, &json!({}))).await;
    let config = format!(
        "[[channel]]\nname = \"box\"\nkind = \"sandbox\"\nmodels = [\"claude-sonnet-4-5-20250929\"]\n\
         [[channel]]\nname = \"openai\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodels = [\"gpt-4o\"]\n",
        openai.url
    );
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    for model in ["claude-sonnet-4-5-20250929", "gpt-4o"] {
        for path in [PATH, "/v1/messages"] {
            for thread in [json!({"type": "create"}), continue_after("msg_1")] {
                let (status, error) = error_of(&client, path, &request(model, thread)).await;
                assert_eq!(status, 400, "{error}");
                assert_eq!(error["type"], "invalid_request_error");
                assert_eq!(
                    error["details"],
                    json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]})
                );
            }
        }
    }
    assert!(openai.take().is_empty(), "nothing was sent");
    let unknown_kind = json!({"type": "continue"});
    let (status, error) = error_of(&client, PATH, &request("gpt-4o", unknown_kind)).await;
    assert_eq!(status, 400);
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("`thread.previous_message_id`"),
        "{message}"
    );
    let without = request("claude-sonnet-4-5-20250929", Value::Null);
    assert_eq!(client.post(PATH, &without).await.status, 200);
    gateway.close().await;
}

/// A server of Anthropic's format whose replies have the id `msg_KEY_N`.
fn anthropic(received: &Received) -> UpstreamResponse {
    let messages = received.body["messages"].as_array().unwrap();
    let text = messages[0]["content"].as_str().unwrap_or_default();
    if text == "fail" {
        return json_response(
            529,
            &json!({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}),
        );
    }
    let id = format!("msg_{}_{}", received.key, text.len());
    // For a request that continues a thread, the stored turns count as input.
    let input = match received.body["thread"]["type"] == "continue" {
        true => 90_000,
        false => 3,
    };
    let usage = json!({"input_tokens": input, "output_tokens": 3});
    let mut message = json!({
        "id": id, "type": "message", "role": "assistant", "model": "up",
        "content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn", "usage": usage,
    });
    if received.body["stream"] != true {
        return json_response(200, &message);
    }
    message["content"] = json!([]);
    let event = |name: &str, mut data: Value| {
        data["type"] = json!(name);
        format!("event: {name}\ndata: {data}\n\n")
    };
    let block = json!({"type": "text", "text": ""});
    let delta = json!({"type": "text_delta", "text": "yes"});
    events(
        event("message_start", json!({"message": message}))
            + &event(
                "content_block_start",
                json!({"index": 0, "content_block": block}),
            )
            + &event("content_block_delta", json!({"index": 0, "delta": delta}))
            + &event("content_block_stop", json!({"index": 0}))
            + &event(
                "message_delta",
                json!({"delta": {"stop_reason": "end_turn"}, "usage": usage}),
            )
            + &event("message_stop", json!({})),
    )
}

/// A server of the responses format whose replies have the id `resp_KEY_N`, where N is the length of the input.
pub(super) fn openai(received: &Received) -> UpstreamResponse {
    let input = received.body["input"].as_str().unwrap();
    let mut response = json!({
        "id": format!("resp_{}_{}", received.key, input.len()), "object": "response", "created_at": 1, "model": "up",
        "status": "in_progress", "output": [], "usage": null,
    });
    let created = response.clone();
    response["status"] = json!("completed");
    response["output"] = json!([{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "yes", "annotations": []}]}]);
    response["usage"] = json!({"input_tokens": 3, "output_tokens": 3, "total_tokens": 6});
    if received.body["stream"] != true {
        return json_response(200, &response);
    }
    let event = |name: &str, mut data: Value| {
        data["type"] = json!(name);
        format!("event: {name}\ndata: {data}\n\n")
    };
    let delta = json!({"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "yes"});
    events(
        event("response.created", json!({"response": created}))
            + &event("response.output_text.delta", delta)
            + &event("response.completed", json!({"response": response})),
    )
}

async fn a_stored_response_continues_with_the_key_that_created_it(backend: Backend) {
    let upstream = Upstream::start(openai).await;
    let channel = |name: &str, keys: &[&str]| {
        let channel = ChannelConfig::new(name, "openai").url(&upstream.url);
        let channel = channel.lines("allow = [\"store\", \"stored_context\"]");
        channel.keys(keys).models(&["gpt-4o"]).text()
    };
    let config = channel("a", &["key-a1", "key-a2"]) + &channel("b", &["key-b1", "key-b2"]);
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    for stream in [false, true] {
        for first in ["one", "other", "third one"] {
            let mut body = json!({"model": "gpt-4o", "input": first, "stream": stream});
            assert_eq!(client.post("/v1/responses", &body).await.status, 200);
            let key = upstream.take()[0].key.clone();
            let mut last = format!("resp_{key}_{}", first.len());
            for turn in 1..=5 {
                body["input"] = json!("x".repeat(10 + turn));
                body["previous_response_id"] = json!(last);
                assert_eq!(client.post("/v1/responses", &body).await.status, 200);
                let sent = upstream.take();
                assert_eq!(sent.len(), 1);
                assert_eq!(sent[0].key, key, "stream {stream}, turn {turn}");
                assert_eq!(
                    sent[0].body["previous_response_id"],
                    body["previous_response_id"]
                );
                last = format!("resp_{key}_{}", 10 + turn);
            }
        }
    }
    // A request with an unknown id may use any channel: whether the id exists is the provider's response.
    let body = json!({"model": "gpt-4o", "input": "x", "previous_response_id": "resp_unknown"});
    assert_eq!(client.post("/v1/responses", &body).await.status, 200);
    let key = upstream.take()[0].key.clone();
    // A response that another user stored is not found.
    let stranger = gateway.unlimited_client().await;
    let body =
        json!({"model": "gpt-4o", "input": "x", "previous_response_id": format!("resp_{key}_1")});
    let (status, error) = error_of(&stranger, "/v1/responses", &body).await;
    assert_eq!(status, 404, "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("`previous_response_id`"), "{message}");
    assert!(upstream.take().is_empty());
    gateway.close().await;
}

async fn a_thread_continues_with_the_key_that_created_it(backend: Backend) {
    const MODEL: &str = "claude-sonnet-4-5-20250929";
    let upstream = Upstream::start(anthropic).await;
    let channel = |name: &str, keys: &[&str]| {
        let channel = ChannelConfig::new(name, "anthropic").url(&upstream.url);
        channel.keys(keys).models(&[MODEL]).text()
    };
    // The first channel cannot store threads.
    let first = ChannelConfig::new("box", "sandbox").lines("priority = -1");
    let config = first.models(&[MODEL]).text()
        + &channel("a", &["key-a1", "key-a2"])
        + &channel("b", &["key-b1", "key-b2"]);
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    for stream in [false, true] {
        let mut body = request(MODEL, json!({"type": "create"}));
        body["stream"] = json!(stream);
        let reply = client.post(PATH, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let created = upstream.take();
        assert_eq!(created[0].body["thread"], json!({"type": "create"}));
        let key = &created[0].key;
        let mut last = format!("msg_{key}_5");
        for turn in 1..=6 {
            let mut body = request(MODEL, continue_after(&last));
            let text = "x".repeat(10 + turn);
            last = format!("msg_{key}_{}", text.len());
            body["messages"][0]["content"] = json!(text);
            body["stream"] = json!(stream);
            let reply = client.post(PATH, &body).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            let sent = upstream.take();
            assert_eq!(sent.len(), 1);
            assert_eq!(&sent[0].key, key, "turn {turn}");
            assert_eq!(sent[0].body["thread"], body["thread"]);
        }
        // The gateway accepts the vendor's token count for the stored turns.
        let log = gateway.log();
        assert!(!log.contains("missing or impossible"), "{log}");
        // If the channel fails, if another user sends the id, and for an unknown id, the error instructs the client to begin a new thread.
        let mut failing = request(MODEL, continue_after(&last));
        failing["messages"][0]["content"] = json!("fail");
        let (status, error) = error_of(&client, PATH, &failing).await;
        assert_eq!(status, 404, "{error}");
        assert_eq!(error["details"]["error_code"], "thread_not_found");
        let keys: Vec<_> = upstream.take().into_iter().map(|r| r.key).collect();
        assert!(keys.iter().all(|used| used == key), "{keys:?}");
        let stranger = gateway.unlimited_client().await;
        for (client, id) in [(&stranger, last.as_str()), (&client, "msg_unknown")] {
            let (status, error) = error_of(client, PATH, &request(MODEL, continue_after(id))).await;
            assert_eq!(status, 404, "{error}");
            assert_eq!(error["details"]["error_code"], "thread_not_found");
        }
        assert!(upstream.take().is_empty());
    }
    gateway.close().await;
}

async fn a_vendors_error_keeps_its_details(backend: Backend) {
    const MODEL: &str = "claude-sonnet-4-5-20250929";
    const CHAT: &str = "/openai/v1/chat/completions";
    let details = json!({"error_code": "thread_already_continued", "hint": "key-secret-1"});
    let sent_details = details.clone();
    let anthropic = Upstream::start(move |_| {
        let error = json!({"type": "conflict_error", "message": "no", "details": sent_details});
        json_response(409, &json!({"type": "error", "error": error}))
    });
    let openai = Upstream::start(|_| {
        let error = json!({"message": "bad", "type": "invalid_request_error", "param": "messages[0].name", "code": "1214"});
        json_response(400, &json!({"error": error}))
    });
    let gemini = Upstream::start(|_| {
        let details = json!([{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "contents"}]}]);
        let error = json!({"code": 400, "message": "bad", "status": "INVALID_ARGUMENT", "details": details});
        json_response(400, &json!({"error": error}))
    });
    let (anthropic, openai, gemini) = (anthropic.await, openai.await, gemini.await);
    let channel = |kind: &str, url: &str, model: &str| {
        let channel = ChannelConfig::new(kind, kind).url(url);
        channel.keys(&["key-secret-1"]).models(&[model]).text()
    };
    let config = channel("anthropic", &anthropic.url, MODEL)
        + &channel("openai", &openai.url, "gpt-4o")
        + &channel("gemini", &gemini.url, "gemini-2.5-flash");
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    let messages = |model: &str| json!({"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});

    for path in [PATH, "/v1/messages"] {
        let (status, error) = error_of(&client, path, &messages(MODEL)).await;
        assert_eq!(status, 400, "{error}");
        let expected = json!({"error_code": "thread_already_continued", "hint": "***"});
        assert_eq!(error["details"], expected, "secrets are removed");
    }
    assert_eq!(anthropic.take().len(), 2, "not retried");

    let (status, error) = error_of(&client, CHAT, &messages("gpt-4o")).await;
    assert_eq!(
        (status, &error["param"], &error["code"]),
        (400, &json!("messages[0].name"), &json!("1214"))
    );
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let path = "/gemini/v1beta/models/gemini-2.5-flash:generateContent";
    let (status, error) = error_of(&client, path, &contents).await;
    assert_eq!(status, 400);
    assert_eq!(
        error["details"][0]["fieldViolations"][0]["field"],
        "contents"
    );

    // The client has another format than the vendor, so the vendor's field names would match no field of the client.
    let (_, error) = error_of(&client, PATH, &messages("gpt-4o")).await;
    assert_eq!(
        (&error["param"], &error["details"]),
        (&Value::Null, &Value::Null)
    );
    let (_, error) = error_of(&client, CHAT, &messages("gemini-2.5-flash")).await;
    assert_eq!(
        (&error["param"], &error["code"]),
        (&Value::Null, &Value::Null),
        "{error}"
    );
    gateway.close().await;
}
