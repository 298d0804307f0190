//! What messages refuses.

use serde_json::{Value, json};

use crate::client::{GIF, MESSAGES, PNG, Wire, send};

#[tokio::test]
async fn heads() {
    const KEY: (&str, &str) = ("x-api-key", "k");
    const JSON: (&str, &str) = ("content-type", "application/json");
    const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");
    let path = MESSAGES.path;
    MESSAGES
        .heads(&[
            ("POST", path, &[JSON, VERSION], 401, "auth"),
            (
                "POST",
                path,
                &[JSON, VERSION, ("x-goog-api-key", "k")],
                401,
                "auth",
            ),
            (
                "POST",
                path,
                &[JSON, VERSION, ("x-api-key", "no")],
                401,
                "key",
            ),
            ("POST", path, &[JSON, KEY], 400, "version"),
            (
                "POST",
                path,
                &[JSON, KEY, ("anthropic-version", "2025-10-01")],
                400,
                "version",
            ),
            ("POST", path, &[KEY, VERSION], 400, "content-type"),
            ("GET", path, &[KEY, VERSION], 405, "method"),
            ("POST", "/messages", &[JSON, KEY, VERSION], 404, "path"),
            (
                "POST",
                "/v1/v1/messages",
                &[JSON, KEY, VERSION],
                404,
                "path",
            ),
            ("GET", "/v1/models", &[KEY], 400, "version"),
            ("GET", "/v1/models/none", &[KEY, VERSION], 404, "model"),
        ])
        .await;
    let fake = MESSAGES.start().await;
    let headers = [JSON, VERSION, ("authorization", "Bearer k")];
    let body = (MESSAGES.body)("hello").to_string();
    let reply = send(&fake, "POST", path, &headers, &body)
        .await
        .expect("an answer");
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn parameters() {
    let base = (MESSAGES.body)("hello");
    let model = |model: &str, more: Value| {
        let mut patch = more;
        patch["model"] = json!(model);
        patch
    };
    MESSAGES
        .table(
            &base,
            &[
                ("", json!({})),
                ("missing-field", json!({"max_tokens": null})),
                ("missing-field", json!({"messages": null})),
                ("unknown-field", json!({"n": 1})),
                ("unknown-field", json!({"mcp_servers": []})),
                ("unknown-field", json!({"metadata": {"user": "x"}})),
                ("range", json!({"temperature": 1.5})),
                ("range", json!({"max_tokens": -1})),
                ("model-limit", json!({"max_tokens": 64_001})),
                (
                    "temperature-and-top-p",
                    json!({"temperature": 0.5, "top_p": 0.5}),
                ),
                (
                    "",
                    model(
                        "claude-3-opus-20240229",
                        json!({"temperature": 0.5, "top_p": 0.5}),
                    ),
                ),
                (
                    "sampling",
                    model("claude-opus-4-7", json!({"temperature": 1})),
                ),
                ("sampling", model("claude-sonnet-5", json!({"top_k": 4}))),
                ("blank-stop", json!({"stop_sequences": ["end", "\n"]})),
                ("blank-stop", json!({"stop_sequences": [""]})),
                ("type", json!({"stop_sequences": "end"})),
                (
                    "empty-text",
                    json!({"system": [{"type": "text", "text": ""}]}),
                ),
                (
                    "block-type",
                    json!({"system": [{"type": "image", "source": {}}]}),
                ),
                ("value", json!({"service_tier": "default"})),
            ],
        )
        .await;
    let new: Wire = Wire {
        headers: &[
            ("content-type", "application/json"),
            ("authorization", "Bearer k"),
            ("anthropic-version", "2026-10-21"),
            ("anthropic-beta", "mcp"),
        ],
        ..MESSAGES
    };
    let said = json!([{"role": "user", "content": "hello"},
        {"role": "assistant", "content": [{"type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "x"}}]}]);
    new.table(
        &base,
        &[
            ("", json!({"mcp_servers": []})),
            ("sampling", json!({"temperature": 1})),
            ("assistant-document", json!({"messages": said})),
        ],
    )
    .await;
}

#[tokio::test]
async fn thinking() {
    let base = (MESSAGES.body)("hello");
    let budget = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
    let tools = json!([{"name": "f", "input_schema": {"type": "object"}}]);
    let with = |more: Value| {
        let mut patch = more;
        patch["thinking"] = budget(1024);
        patch
    };
    let forced = |choice: Value| with(json!({"tools": tools, "tool_choice": choice}));
    let said = json!([{"role": "user", "content": "hello"},
        {"role": "assistant", "content": "so"}]);
    let adaptive = json!({"type": "adaptive"});
    MESSAGES
        .table(
            &base,
            &[
                ("", with(json!({}))),
                ("range", json!({"thinking": budget(1023)})),
                ("budget", json!({"thinking": budget(4000)})),
                ("missing-field", json!({"thinking": {"type": "enabled"}})),
                ("thinking-and-force", forced(json!({"type": "any"}))),
                (
                    "thinking-and-force",
                    forced(json!({"type": "tool", "name": "f"})),
                ),
                ("", forced(json!({"type": "auto"}))),
                ("thinking-and-sampling", with(json!({"temperature": 0.5}))),
                ("thinking-and-sampling", with(json!({"top_k": 4}))),
                ("thinking-and-sampling", with(json!({"top_p": 0.9}))),
                ("prefill", with(json!({"messages": said}))),
                (
                    "thinking-model",
                    with(json!({"model": "claude-3-5-haiku-20241022"})),
                ),
                ("thinking-model", with(json!({"model": "claude-opus-4-7"}))),
                ("thinking-model", json!({"thinking": adaptive})),
                (
                    "",
                    json!({"thinking": adaptive, "model": "claude-sonnet-4-6"}),
                ),
                (
                    "unknown-field",
                    json!({"model": "claude-sonnet-5",
                    "thinking": {"type": "adaptive", "budget_tokens": 2000}}),
                ),
            ],
        )
        .await;
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "done"})
}

/// User says hello; the model's blocks; the user's blocks.
fn turns(model: &[Value], user: &[Value]) -> Value {
    let tools = json!([{"name": "f", "input_schema": {"type": "object"}}]);
    json!({"tools": tools, "messages": [{"role": "user", "content": "hello"},
        {"role": "assistant", "content": model}, {"role": "user", "content": user}]})
}

#[tokio::test]
async fn calls_and_results() {
    let base = (MESSAGES.body)("hello");
    let text = json!({"type": "text", "text": "and"});
    let [a, b] = [tool_use("a"), tool_use("b")];
    let with = |mut patch: Value, name: &str, value: Value| {
        patch[name] = value;
        patch
    };
    let apart = json!({"tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": "hello"},
        {"role": "assistant", "content": [a, b]}, {"role": "user", "content": [result("a")]},
        {"role": "user", "content": [result("b"), text]}]});
    let split = json!({"tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": "hello"},
        {"role": "assistant", "content": [a, b]}, {"role": "user", "content": [result("a")]},
        {"role": "assistant", "content": [text]}, {"role": "user", "content": [result("b")]}]});
    let enabled = json!({"type": "enabled", "budget_tokens": 1024});
    let thought =
        |signature: Value| json!({"type": "thinking", "thinking": "hm", "signature": signature});
    let answered = |block: Value| turns(&[block, a.clone()], &[result("a")]);
    MESSAGES
        .table(
            &base,
            &[
                (
                    "",
                    turns(
                        &[a.clone(), b.clone()],
                        &[result("b"), result("a"), text.clone()],
                    ),
                ),
                ("", apart),
                ("missing-result", split),
                (
                    "missing-result",
                    turns(&[a.clone(), b.clone()], &[result("a")]),
                ),
                (
                    "missing-result",
                    turns(std::slice::from_ref(&a), &[text.clone(), result("a")]),
                ),
                (
                    "orphan-result",
                    turns(std::slice::from_ref(&text), &[result("a")]),
                ),
                (
                    "double-result",
                    turns(std::slice::from_ref(&a), &[result("a"), result("a")]),
                ),
                (
                    "duplicate-id",
                    turns(&[a.clone(), a.clone()], &[result("a")]),
                ),
                ("id-pattern", turns(&[tool_use("a.b")], &[result("a.b")])),
                ("id-pattern", turns(&[tool_use("")], &[result("")])),
                (
                    "tools-absent",
                    with(
                        turns(std::slice::from_ref(&a), &[result("a")]),
                        "tools",
                        json!(null),
                    ),
                ),
                (
                    "type",
                    turns(
                        &[json!({"type": "tool_use", "id": "a", "name": "f",
                    "input": "{}"})],
                        &[result("a")],
                    ),
                ),
                (
                    "block-type",
                    turns(&[result("a")], std::slice::from_ref(&text)),
                ),
                ("signature", answered(thought(json!("EqQB")))),
                (
                    "missing-field",
                    answered(json!({"type": "thinking", "thinking": "hm"})),
                ),
                ("", answered(thought(json!("sig_fake_of_a_test")))),
                (
                    "changed-thinking",
                    answered(thought(json!("sig_fake_0123456789abcdef"))),
                ),
                (
                    "thinking-first",
                    with(
                        turns(std::slice::from_ref(&a), &[result("a")]),
                        "thinking",
                        enabled.clone(),
                    ),
                ),
                (
                    "",
                    with(answered(thought(json!("sig_fake_x"))), "thinking", enabled),
                ),
            ],
        )
        .await;
}

#[tokio::test]
async fn messages() {
    let base = (MESSAGES.body)("hello");
    let blocks = |blocks: Value| json!({"messages": [{"role": "user", "content": blocks}]});
    let text = |text: &str| json!({"type": "text", "text": text});
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    let ended = |end: &str, model: &str| json!({"model": model, "messages": [said("user", "hi"), said("assistant", end)]});
    let cached = |n: usize| {
        let block = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
        blocks(Value::Array(vec![block; n]))
    };
    MESSAGES
        .table(
            &base,
            &[
                ("messages", json!({"messages": []})),
                (
                    "first-turn",
                    json!({"messages": [said("assistant", "hi"), said("user", "x")]}),
                ),
                ("empty-message", json!({"messages": [said("user", "")]})),
                ("empty-message", blocks(json!([]))),
                ("empty-text", blocks(json!([text("x"), text("")]))),
                ("empty-text", blocks(json!([text(" \n")]))),
                ("value", json!({"messages": [said("tool", "x")]})),
                (
                    "system-role",
                    json!({"messages": [said("user", "x"), said("system", "x")]}),
                ),
                (
                    "",
                    json!({"model": "claude-opus-4-8",
                    "messages": [said("user", "x"), said("system", "x")]}),
                ),
                ("", ended("so", "claude-haiku-4-5")),
                ("trailing-space", ended("so ", "claude-haiku-4-5")),
                ("prefill", ended("so", "claude-opus-4-8")),
                ("", cached(4)),
                ("cache-control", cached(5)),
                (
                    "unknown-field",
                    blocks(json!([{"type": "text", "text": "x", "extra": 1}])),
                ),
                (
                    "block-type",
                    blocks(json!([{"type": "image_url", "image_url": {}}])),
                ),
            ],
        )
        .await;
}

#[tokio::test]
async fn media() {
    let base = (MESSAGES.body)("hello");
    let block = |kind: &str, source: Value| json!({"messages": [{"role": "user", "content": [{"type": kind, "source": source}]}]});
    let bytes = |media_type: &str, data: &str| json!({"type": "base64", "media_type": media_type, "data": data});
    let image = |media_type: &str, data: &str| block("image", bytes(media_type, data));
    MESSAGES
        .table(
            &base,
            &[
                ("", image("image/png", PNG)),
                ("", image("image/gif", GIF)),
                ("media-mismatch", image("image/jpeg", PNG)),
                ("media-type", image("image/jpg", PNG)),
                ("media-type", image("image/svg+xml", PNG)),
                ("base64", image("image/png", "data:image/png;base64,AAAA")),
                ("unreadable", image("image/png", "aGVsbG8=")),
                (
                    "",
                    block(
                        "image",
                        json!({"type": "url", "url": "https://example.org/"}),
                    ),
                ),
                (
                    "url",
                    block(
                        "image",
                        json!({"type": "url", "url": "data:image/png;base64,"}),
                    ),
                ),
                (
                    "source-type",
                    block("image", json!({"type": "text", "data": "x"})),
                ),
                (
                    "",
                    block("document", bytes("application/pdf", "JVBERi0xLjQK")),
                ),
                (
                    "unreadable",
                    block("document", bytes("application/pdf", "aGVsbG8=")),
                ),
                (
                    "media-type",
                    block("document", bytes("text/plain", "aGVsbG8=")),
                ),
                ("block-type", block("input_audio", json!({}))),
            ],
        )
        .await;
}

#[tokio::test]
async fn tools() {
    let base = (MESSAGES.body)("hello");
    let tool =
        |name: &str, schema: Value| json!({"tools": [{"name": name, "input_schema": schema}]});
    let object = json!({"type": "object"});
    let strict = json!({"tools": [{"name": "f", "strict": true, "input_schema": object}]});
    let twice = json!({"name": "f", "input_schema": object});
    let chosen = |choice: Value, model: &str| {
        json!({"tools": [{"name": "f", "input_schema": object}], "tool_choice": choice,
            "model": model})
    };
    let format = |schema: Value| json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}});
    let any = json!({"type": "any"});
    MESSAGES
        .table(
            &base,
            &[
                ("", tool("f", object.clone())),
                (
                    "",
                    json!({"tools": [{"type": "bash_20250124", "name": "bash"}]}),
                ),
                ("tool-name", tool("a.b", object.clone())),
                ("tool-name", tool(&"f".repeat(129), object.clone())),
                ("schema-root", tool("f", json!({}))),
                ("schema-root", tool("f", json!({"type": "string"}))),
                (
                    "schema-root",
                    tool("f", json!({"type": "object", "anyOf": []})),
                ),
                ("missing-field", json!({"tools": [{"name": "f"}]})),
                (
                    "unknown-field",
                    json!({"tools": [{"name": "f", "input_schema": object,
                    "parameters": {}}]}),
                ),
                ("open-schema", strict),
                ("duplicate-tool", json!({"tools": [twice, twice]})),
                (
                    "choice-without-tools",
                    json!({"tool_choice": {"type": "auto"}}),
                ),
                ("type", chosen(json!("auto"), "claude-haiku-4-5")),
                (
                    "choice-unknown",
                    chosen(json!({"type": "tool", "name": "g"}), "claude-3-haiku"),
                ),
                (
                    "missing-field",
                    chosen(json!({"type": "tool"}), "claude-haiku-4-5"),
                ),
                ("", chosen(any.clone(), "claude-haiku-4-5")),
                ("force", chosen(any, "claude-sonnet-5-5")),
                ("open-schema", format(object.clone())),
                (
                    "",
                    format(json!({"type": "object", "additionalProperties": false})),
                ),
                (
                    "unknown-field",
                    json!({"output_config": {"format": {"type": "json_schema",
                    "name": "n", "schema": {}}}}),
                ),
            ],
        )
        .await;
}

#[tokio::test]
async fn errors_are_in_the_form_of_anthropic() {
    let fake = MESSAGES.start().await;
    let mut body = (MESSAGES.body)("hello");
    body["max_tokens"] = json!(null);
    let reply = MESSAGES.post(&fake, &body).await;
    let shown = reply.json();
    assert_eq!(shown["type"], "error");
    assert_eq!(shown["error"]["type"], "invalid_request_error");
    assert_eq!(shown["error"]["message"], "max_tokens: Field required");
    assert_eq!(shown["request_id"], reply.header("request-id"));
    body["model"] = json!("missing-1");
    let reply = MESSAGES.post(&fake, &body).await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.json()["error"]["type"], "not_found_error");
}
