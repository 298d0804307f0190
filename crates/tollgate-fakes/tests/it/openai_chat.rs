//! What chat-completions refuses.

use serde_json::{Value, json};

use crate::client::{CHAT, GIF, PNG};

#[tokio::test]
async fn heads() {
    const KEY: (&str, &str) = ("authorization", "Bearer k");
    const JSON: (&str, &str) = ("content-type", "application/json");
    let path = CHAT.path;
    CHAT.heads(&[
        ("POST", path, &[JSON], 401, "auth"),
        ("POST", path, &[JSON, ("x-api-key", "k")], 401, "auth"),
        ("POST", path, &[JSON, ("authorization", "k")], 401, "auth"),
        (
            "POST",
            path,
            &[JSON, ("authorization", "Bearer no")],
            401,
            "key",
        ),
        (
            "POST",
            path,
            &[KEY, ("content-type", "text/plain")],
            400,
            "content-type",
        ),
        ("POST", path, &[KEY], 400, "content-type"),
        ("GET", path, &[KEY], 405, "method"),
        ("POST", "/chat/completions", &[JSON, KEY], 404, "path"),
        ("POST", "/v1/v1/chat/completions", &[JSON, KEY], 404, "path"),
        ("GET", "/v1/models", &[], 401, "auth"),
        ("GET", "/v1/models/none", &[KEY], 404, "model"),
    ])
    .await;
}

#[tokio::test]
async fn parameters() {
    let many = |n: usize| -> Value { (0..n).map(|n| json!(n.to_string())).collect() };
    let base = (CHAT.body)("hello");
    CHAT.table(
        &base,
        &[
            ("", json!({})),
            ("unknown-field", json!({"top_k": 4})),
            ("unknown-field", json!({"thinking": {"type": "enabled"}})),
            ("missing-field", json!({"messages": null})),
            ("missing-field", json!({"model": null})),
            ("messages", json!({"messages": []})),
            ("type", json!({"messages": "hello"})),
            ("type", json!({"temperature": "hot"})),
            ("range", json!({"temperature": 2.1})),
            ("range", json!({"top_p": -0.1})),
            ("range", json!({"presence_penalty": 3})),
            ("range", json!({"n": 0})),
            ("range", json!({"n": 129})),
            ("range", json!({"top_logprobs": 21, "logprobs": true})),
            ("top-logprobs", json!({"top_logprobs": 2})),
            ("range", json!({"max_tokens": 0})),
            (
                "two-limits",
                json!({"max_tokens": 9, "max_completion_tokens": 9}),
            ),
            ("too-many", json!({"stop": many(5)})),
            ("", json!({"stop": many(4)})),
            ("", json!({"stop": null, "temperature": null, "n": 2})),
            (
                "stream-options",
                json!({"stream_options": {"include_usage": true}}),
            ),
            (
                "unknown-field",
                json!({"stream": true, "stream_options": {"usage": true}}),
            ),
            ("value", json!({"service_tier": "fastest"})),
            ("value", json!({"reasoning_effort": "huge"})),
            ("unsupported-parameter", json!({"reasoning_effort": "low"})),
            (
                "unsupported-parameter",
                json!({"model": "o3", "max_tokens": 9}),
            ),
            (
                "unsupported-parameter",
                json!({"model": "gpt-5", "max_tokens": 9}),
            ),
            ("", json!({"model": "gpt-5", "max_completion_tokens": 9})),
            (
                "unsupported-value",
                json!({"model": "gpt-5", "temperature": 0.2}),
            ),
            (
                "unsupported-value",
                json!({"model": "o4-mini", "top_p": 0.5}),
            ),
            ("", json!({"model": "gpt-5", "temperature": 1})),
            (
                "unsupported-parameter",
                json!({"model": "gpt-5", "logprobs": true}),
            ),
            ("unsupported-parameter", json!({"model": "o3", "stop": "x"})),
            ("length", json!({"safety_identifier": "x".repeat(129)})),
            (
                "",
                json!({"model": "deepseek-chat", "top_k": 4, "thinking": {"type": "enabled"}}),
            ),
        ],
    )
    .await;
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "done"})
}

fn called(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids.iter().map(|id| call(id)).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn after_user(messages: &[Value]) -> Value {
    let mut all = vec![json!({"role": "user", "content": "hello"})];
    all.extend_from_slice(messages);
    json!({"messages": all})
}

#[tokio::test]
async fn messages() {
    let more = json!({"role": "user", "content": "go on"});
    let said = |more: Value| after_user(&[more]);
    let base = (CHAT.body)("hello");
    let foreign = |message: Value| {
        let mut body = after_user(&[message, result("a")]);
        body["model"] = json!("kimi-k2-thinking");
        body
    };
    let mut thought = called(&["a"]);
    thought["reasoning_content"] = json!("I see");
    CHAT.table(
        &base,
        &[
            (
                "",
                after_user(&[called(&["a", "b"]), result("b"), result("a"), more.clone()]),
            ),
            (
                "missing-result",
                after_user(&[called(&["a", "b"]), result("a"), more.clone()]),
            ),
            ("missing-result", after_user(&[called(&["a"])])),
            (
                "missing-result",
                after_user(&[called(&["a"]), more.clone(), result("a")]),
            ),
            ("orphan-result", after_user(&[result("a")])),
            ("orphan-result", after_user(&[called(&["a"]), result("b")])),
            (
                "orphan-result",
                after_user(&[called(&["a"]), result("a"), result("a")]),
            ),
            (
                "duplicate-id",
                after_user(&[called(&["a", "a"]), result("a")]),
            ),
            ("length", after_user(&[called(&["x".repeat(41).as_str()])])),
            (
                "empty-tool-calls",
                said(json!({"role": "assistant", "content": "x", "tool_calls": []})),
            ),
            (
                "assistant-content",
                said(json!({"role": "assistant", "content": null})),
            ),
            ("role", said(json!({"role": "model", "content": "x"}))),
            ("missing-field", said(json!({"role": "user"}))),
            (
                "unknown-field",
                said(json!({"role": "user", "content": "x", "cache_control": {}})),
            ),
            ("reasoning-content", foreign(called(&["a"]))),
            ("", foreign(thought)),
        ],
    )
    .await;
}

#[tokio::test]
async fn parts() {
    let base = (CHAT.body)("hello");
    let part = |part: Value| json!({"messages": [{"role": "user", "content": [part]}]});
    let image = |url: String| part(json!({"type": "image_url", "image_url": {"url": url}}));
    let file = |data: &str| part(json!({"type": "file", "file": {"file_data": data}}));
    let pdf = "data:application/pdf;base64,JVBERi0xLjQK";
    CHAT.table(
        &base,
        &[
            ("", image("https://example.org/a.png".to_owned())),
            ("", image(format!("data:image/png;base64,{PNG}"))),
            ("", image(format!("data:image/jpeg;base64,{PNG}"))),
            ("", image(format!("data:image/gif;base64,{GIF}"))),
            ("image", image("data:image/png;base64,aGVsbG8=".to_owned())),
            ("image", image("data:image/png;base64,???".to_owned())),
            ("image", image(format!("data:text/plain;base64,{PNG}"))),
            ("image-url", image(PNG.to_owned())),
            (
                "type",
                part(json!({"type": "image_url", "image_url": "https://example.org/"})),
            ),
            ("part-type", part(json!({"type": "image", "source": {}}))),
            (
                "part-type",
                part(json!({"type": "input_text", "text": "x"})),
            ),
            (
                "part-type",
                part(json!({"type": "refusal", "refusal": "x"})),
            ),
            (
                "value",
                part(json!({"type": "input_audio",
                "input_audio": {"data": "AAAA", "format": "ogg"}})),
            ),
            (
                "audio",
                part(json!({"type": "input_audio",
                "input_audio": {"data": "data:audio/wav;base64,AAAA", "format": "wav"}})),
            ),
            ("", file(pdf)),
            ("file", file("JVBERi0xLjQK")),
            (
                "file",
                part(json!({"type": "file", "file": {"filename": "a.pdf"}})),
            ),
            (
                "part-type",
                after_user(&[
                    called(&["a"]),
                    json!({"role": "tool", "tool_call_id": "a",
                "content": [{"type": "image_url", "image_url": {"url": "https://x.org"}}]}),
                ]),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn tools() {
    let base = (CHAT.body)("hello, answer in JSON");
    let tool = |function: Value| json!({"tools": [{"type": "function", "function": function}]});
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    let optional = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": [], "additionalProperties": false});
    let one_of = json!({"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}]}},
        "required": ["a"], "additionalProperties": false});
    let strict = |schema: &Value| json!({"name": "f", "strict": true, "parameters": schema});
    let chosen = |choice: Value| {
        json!({"tool_choice": choice,
        "tools": [{"type": "function", "function": {"name": "f"}}]})
    };
    let format = |inner: Value| {
        json!({"response_format": {"type": "json_schema",
        "json_schema": inner}})
    };
    CHAT.table(
        &base,
        &[
            ("", tool(json!({"name": "f", "parameters": open}))),
            (
                "",
                tool(json!({"name": "f", "parameters": null, "strict": null})),
            ),
            ("", tool(strict(&closed))),
            ("strict-schema", tool(strict(&open))),
            ("strict-schema", tool(strict(&optional))),
            ("strict-schema", tool(strict(&one_of))),
            ("schema-root", tool(json!({"name": "f", "parameters": {}}))),
            ("name-pattern", tool(json!({"name": "a.b"}))),
            ("name-pattern", tool(json!({"name": ""}))),
            ("name-length", tool(json!({"name": "f".repeat(65)}))),
            (
                "unknown-field",
                tool(json!({"name": "f", "input_schema": {}})),
            ),
            (
                "unknown-field",
                json!({"tools": [{"type": "function", "name": "f"}]}),
            ),
            ("missing-field", json!({"tools": [{"type": "function"}]})),
            ("value", json!({"tools": [{"type": "web_search"}]})),
            (
                "",
                json!({"tools": [{"type": "custom", "custom": {"name": "f"}}]}),
            ),
            ("empty-tools", json!({"tools": []})),
            ("choice-without-tools", json!({"tool_choice": "auto"})),
            (
                "choice-without-tools",
                json!({"parallel_tool_calls": false}),
            ),
            ("", chosen(json!("required"))),
            (
                "",
                chosen(json!({"type": "function", "function": {"name": "f"}})),
            ),
            ("tool-choice", chosen(json!("any"))),
            (
                "tool-choice",
                chosen(json!({"type": "function", "name": "f"})),
            ),
            (
                "tool-choice",
                chosen(json!({"type": "function", "function": {"name": "g"}})),
            ),
            ("", json!({"response_format": {"type": "json_object"}})),
            (
                "json-word",
                json!({"response_format": {"type": "json_object"},
                "messages": [{"role": "user", "content": "hello"}]}),
            ),
            ("", format(json!({"name": "n", "schema": open}))),
            (
                "strict-schema",
                format(json!({"name": "n", "schema": open, "strict": true})),
            ),
            ("missing-field", format(json!({"schema": open}))),
            ("missing-field", format(json!({"name": "n"}))),
            (
                "unknown-field",
                json!({"response_format": {"type": "json_schema", "schema": open}}),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn errors_are_in_the_form_of_openai() {
    let fake = CHAT.start().await;
    let mut body = (CHAT.body)("hello");
    body["temperature"] = json!(3);
    let error = &CHAT.post(&fake, &body).await.json()["error"];
    assert_eq!(error["type"], "invalid_request_error");
    assert_eq!(error["param"], "temperature");
    assert_eq!(error["code"], "decimal_above_max_value");
    body["model"] = json!("missing-1");
    let reply = CHAT.post(&fake, &body).await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.json()["error"]["code"], "model_not_found");
    assert!(!reply.header("x-request-id").is_empty());
}
