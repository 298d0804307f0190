//! Hosted search if only one API of a channel has it, and ids of models that clients derive.

use serde_json::{Value, json};

use super::upstream::{Received, Upstream, json_response};
use crate::harness::{Backend, ChannelConfig, TestGateway, on_sqlite};

on_sqlite!(
    search_uses_the_api_that_supports_it,
    derived_model_ids_resolve,
);

const CHAT: &str = "/openai/v1/chat/completions";

/// A server of both APIs of OpenAI; its text is the path that was called.
fn openai(received: &Received) -> (u16, &'static str, String) {
    let text = received.path.clone();
    let message = json!({"role": "assistant", "content": text});
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    let body = match received.path.as_str() {
        "/responses" => json!({
            "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "up",
            "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}],
            "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        }),
        _ => json!({"id": "c", "object": "chat.completion", "created": 1, "model": "up",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}),
    };
    json_response(200, &body)
}

async fn search_uses_the_api_that_supports_it(backend: Backend) {
    let upstream = Upstream::start(openai).await;
    let channel = |name: &str, model: &str, more: &str| {
        let channel = ChannelConfig::new(name, "openai").url(&upstream.url);
        let channel = channel.lines("allow = [\"web_search\"]").lines(more);
        channel.models(&[model]).text()
    };
    let config = channel("both", "gpt-5", "")
        + &channel("one", "gpt-5-mini", "apis = [\"chat-completions\"]")
        + &channel("plain", "deepseek-v3-0324", "");
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    let body = |model: &str, search: bool| {
        let mut body = json!({"model": model, "messages": [{"role": "user", "content": "news?"}]});
        if search {
            body["web_search_options"] = json!({});
        }
        body
    };
    for (model, search, path) in [
        ("gpt-5", false, "/chat/completions"),
        ("gpt-5", true, "/responses"),
        ("deepseek-v3-0324", true, "/chat/completions"),
    ] {
        let reply = client.post(CHAT, &body(model, search)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let reply = reply.json();
        assert_eq!(reply["choices"][0]["message"]["content"], path, "{model}");
        let sent = upstream.take();
        if path == "/responses" {
            assert_eq!(sent[0].body["tools"], json!([{"type": "web_search"}]));
        }
    }
    // The gateway also chooses the API for a request in another format.
    let messages = json!({"model": "gpt-5", "max_tokens": 99, "messages": [{"role": "user", "content": "news?"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}]});
    let reply = client.post("/anthropic/v1/messages", &messages).await;
    assert_eq!(
        reply.json()["content"][0]["text"],
        "/responses",
        "{}",
        reply.text()
    );
    upstream.take();
    // If the channel does not have that API, the request gets a 400 that names the conflict.
    let reply = client.post(CHAT, &body("gpt-5-mini", true)).await;
    assert_eq!(reply.status, 400);
    let error = &reply.json()["error"];
    assert_eq!(error["param"], "web_search_options");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("responses"), "{message}");
    assert!(upstream.take().is_empty(), "nothing was sent");
    gateway.close().await;
}

async fn derived_model_ids_resolve(backend: Backend) {
    let config = "[[model]]\nname = \"own-*\"\nlike = \"gpt-5-mini\"\n\
        [[channel]]\nname = \"box\"\nkind = \"sandbox\"\nmodels = [\"claude-opus-4-1-20250805\", \"gpt-5-mini\"]\n";
    let (gateway, client) = TestGateway::with_config(backend, config).await;
    let body = |model: &str| json!({"model": model, "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]});
    for model in [
        "claude-opus-4-8",
        "claude-opus-4-1",
        "gpt-5-mini-2025-08-07",
        "own-small",
    ] {
        let reply = client.post("/anthropic/v1/messages", &body(model)).await;
        assert_eq!(reply.status, 200, "{model}: {}", reply.text());
        assert_eq!(reply.json()["model"], model);
        for path in ["/anthropic/v1/models", "/v1/models"] {
            let reply = client.get(&format!("{path}/{model}")).await;
            assert_eq!(
                (reply.status, &reply.json()["id"]),
                (200, &json!(model)),
                "{path}"
            );
        }
    }
    let missing: Value = client
        .post("/anthropic/v1/messages", &body("gpt5-mini"))
        .await
        .json();
    let message = missing["error"]["message"].as_str().unwrap();
    assert!(message.contains("gpt-5-mini"), "{message}");
    let missing: Value = client
        .post("/anthropic/v1/messages", &body("zzz"))
        .await
        .json();
    let message = missing["error"]["message"].as_str().unwrap();
    assert!(!message.contains("similar"), "{message}");
    gateway.close().await;
}
