//! Requests that force a call of a tool.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider, start};

use crate::harness::*;

on_sqlite!(a_model_without_forced_tool_calls_rejects_a_forced_tool);

/// A path, the request's tools and text, the settings that force a call, the settings that let the model choose, and the field's name.
fn requests() -> [(&'static str, Value, Value, Value, &'static str); 4] {
    let schema = json!({ "type": "object", "properties": {} });
    let function = json!({ "name": "f", "parameters": schema });
    let responses_tool = json!({ "type": "function", "name": "f", "parameters": schema });
    let messages = json!([{ "role": "user", "content": "hello" }]);
    let google_choice =
        |mode: &str| json!({ "toolConfig": { "functionCallingConfig": { "mode": mode } } });
    [
        (
            "/openai/v1/chat/completions",
            json!({ "model": "gpt-5", "messages": messages, "tools": [{ "type": "function", "function": function }] }),
            json!({ "tool_choice": "required" }),
            json!({ "tool_choice": "auto" }),
            "tool_choice",
        ),
        (
            "/openai/v1/responses",
            json!({ "model": "gpt-5", "input": "hello", "tools": [responses_tool] }),
            json!({ "tool_choice": { "type": "function", "name": "f" } }),
            json!({ "tool_choice": "none" }),
            "tool_choice",
        ),
        (
            "/anthropic/v1/messages",
            json!({ "model": "gpt-5", "max_tokens": 100, "messages": messages, "tools": [{ "name": "f", "input_schema": schema }] }),
            json!({ "tool_choice": { "type": "any" } }),
            json!({ "tool_choice": { "type": "auto" } }),
            "tool_choice",
        ),
        (
            "/gemini/v1beta/models/gpt-5:generateContent",
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "hello" }] }], "tools": [{ "functionDeclarations": [function] }] }),
            google_choice("ANY"),
            google_choice("AUTO"),
            "toolConfig",
        ),
    ]
}

async fn a_model_without_forced_tool_calls_rejects_a_forced_tool(backend: Backend) {
    let fake = start(Provider::OpenAi, Options::default()).await.unwrap();
    let up = ChannelConfig::new("up", "openai").url(&fake.base_url());
    let up = up.keys(&["up-key"]).lines("apis = [\"chat-completions\"]");
    let upstream = up.model_as("gpt-5", "deepseek-reasoner").text();
    let other =
        "[[channel]]\nname = \"box\"\nkind = \"sandbox\"\npriority = 9\nmodels = [\"gpt-5\"]\n";
    // If the next channel can force a call, it serves the request; otherwise the error names the field. A free choice is accepted.
    for (config, forced_status) in [(upstream.clone(), 400), (format!("{upstream}{other}"), 200)] {
        let (gateway, client) = TestGateway::with_config(backend, &config).await;
        for (path, body, forced, free, field) in requests() {
            for (settings, status) in [(forced, forced_status), (free, 200)] {
                let mut body = body.clone();
                let settings = settings.as_object().unwrap().clone();
                body.as_object_mut().unwrap().extend(settings);
                let reply = client.post(path, &body).await.expect(status);
                if status == 400 {
                    let message = reply.message(400);
                    let is_named =
                        message.contains(field) && message.contains("forces a tool call");
                    assert!(is_named, "{path}: {message}");
                }
            }
        }
        gateway.close().await;
    }
}
