//! What the messages and responses formats check of a conversation before it is forwarded as it is.

use serde_json::{Value, json};
use tollgate_chat::{InvalidRequest, by_name};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn summarize(format: &str, body: &Value) -> Result<(), InvalidRequest> {
    let format = by_name(format).unwrap();
    let summary = format.summarize_request(body.to_string().as_bytes());
    summary.map(drop)
}

/// A request in the messages format with that block.
fn message(block: &Value) -> Value {
    json!({ "model": "m", "max_tokens": 10, "messages": [
        { "role": "user", "content": "hello" },
        { "role": "user", "content": [{ "type": "text", "text": "look" }, block] },
    ] })
}

fn image(source: Value) -> Value {
    json!({ "type": "image", "source": source })
}

/// A request in the responses format with that member.
fn response(name: &str, value: Value) -> Value {
    let mut body = json!({ "model": "m", "input": "hello" });
    body[name] = value;
    body
}

fn part(part: Value) -> Value {
    response("input", json!([{ "role": "user", "content": [part] }]))
}

#[test]
fn blocks_and_image_sources_of_messages_are_checked() {
    let base64 = |media_type: &str, data: &str| {
        image(json!({ "type": "base64", "media_type": media_type, "data": data }))
    };
    let at = "messages[1].content[1]";
    for (block, field) in [
        (json!({ "type": "picture", "url": "x" }), ".type"),
        (json!({ "type": "input_text", "text": "x" }), ".type"),
        (
            json!({ "type": "image_url", "image_url": { "url": "https://a/b" } }),
            ".type",
        ),
        (json!({ "text": "x" }), ".type"),
        (json!({ "type": "text" }), ".text"),
        (json!({ "type": "text", "text": 7 }), ".text"),
        (json!("x"), ""),
        (image(json!(null)), ".source"),
        (image(json!("https://a/b.png")), ".source"),
        (image(json!({ "url": "https://a/b" })), ".source.type"),
        (
            image(json!({ "type": "link", "url": "https://a/b" })),
            ".source.type",
        ),
        (image(json!({ "type": "url" })), ".source.url"),
        (
            image(json!({ "type": "url", "url": "b.png" })),
            ".source.url",
        ),
        (
            image(json!({ "type": "base64", "data": PNG })),
            ".source.media_type",
        ),
        (base64("application/pdf", PNG), ".source.media_type"),
        (base64("image/bmp", PNG), ".source.media_type"),
        (base64("image/jpeg", PNG), ".source.data"),
        (base64("image/png", "aGVsbG8gd29ybGQ="), ".source.data"),
        (
            image(json!({ "type": "base64", "media_type": "image/png" })),
            ".source.data",
        ),
        (
            json!({ "type": "tool_result", "tool_use_id": "t", "content": [base64("image/gif", PNG)] }),
            ".content[0].source.data",
        ),
    ] {
        let error = summarize("messages", &message(&block)).expect_err(&block.to_string());
        assert_eq!(error.field, format!("{at}{field}"), "{block}");
        assert!(error.message.contains(&error.field), "{error}");
    }
    for block in [
        base64("image/png", PNG),
        image(json!({ "type": "url", "url": "https://a/b.png" })),
        image(json!({ "type": "file", "file_id": "file_1" })),
        json!({ "type": "document", "source": { "type": "text", "media_type": "text/plain", "data": "x" } }),
        json!({ "type": "web_search_tool_result", "tool_use_id": "t", "content": [] }),
        json!({ "type": "container_upload", "file_id": "f" }),
        json!({ "type": "mcp_tool_use", "id": "m", "name": "n", "server_name": "s", "input": {} }),
        json!({ "type": "tool_result", "tool_use_id": "t", "content": "fine" }),
        json!({ "type": "tool_result", "tool_use_id": "t" }),
    ] {
        summarize("messages", &message(&block)).unwrap_or_else(|e| panic!("{block}: {e}"));
    }
    let mut system = message(&json!({ "type": "text", "text": "x" }));
    system["system"] = json!([{ "type": "text", "text": "be brief" }, { "type": "image" }]);
    let error = summarize("messages", &system).unwrap_err();
    assert_eq!(error.field, "system[1].type");
    let escaped = message(&base64("image/jpeg", "/9j/4AAQSkZJRg==")).to_string();
    let escaped = escaped.replace("/9j/", "\\/9j\\/");
    let summary = by_name("messages")
        .unwrap()
        .summarize_request(escaped.as_bytes());
    assert!(summary.is_ok(), "{summary:?}");
}

#[test]
fn tools_of_messages_are_functions_or_the_vendors() {
    let with = |tool: Value| {
        let mut body = message(&json!({ "type": "text", "text": "x" }));
        body["tools"] = json!([tool]);
        summarize("messages", &body)
    };
    let schema = json!({ "type": "object" });
    for tool in [
        json!({ "name": "a", "input_schema": schema }),
        json!({ "type": "custom", "name": "a", "input_schema": schema }),
        json!({ "type": "bash_20241022", "name": "bash" }),
        json!({ "type": "web_search_20260318", "name": "web_search" }),
        json!({ "type": "mcp_toolset", "mcp_server_name": "s" }),
    ] {
        with(tool.clone()).unwrap_or_else(|e| panic!("{tool}: {e}"));
    }
    for (tool, field) in [
        (
            json!({ "type": "function", "function": { "name": "a" } }),
            "tools[0].type",
        ),
        (json!({ "input_schema": schema }), "tools[0].name"),
        (
            json!({ "name": "a", "parameters": schema }),
            "tools[0].input_schema",
        ),
        (json!("a"), "tools[0]"),
    ] {
        assert_eq!(with(tool).unwrap_err().field, field);
    }
}

#[test]
fn tools_and_parts_of_responses_are_checked() {
    for kind in [
        "web_search",
        "web_search_preview",
        "web_search_2025_08_26",
        "file_search",
        "mcp",
        "computer_use_preview",
        "code_interpreter",
        "image_generation",
        "local_shell",
        "shell",
        "apply_patch",
        "namespace",
        "tool_search",
    ] {
        let body = response("tools", json!([{ "type": kind }]));
        summarize("responses", &body).unwrap_or_else(|e| panic!("{kind}: {e}"));
    }
    for kind in ["retrieval", "websearch", "bash_20241022", "plugin"] {
        let body = response("tools", json!([{ "type": kind }]));
        assert_eq!(
            summarize("responses", &body).unwrap_err().field,
            "tools[0].type"
        );
    }
    let at = "input[0].content[0]";
    for (one, field) in [
        (json!({ "type": "picture" }), ".type"),
        (
            json!({ "type": "image_url", "image_url": { "url": "https://a/b" } }),
            ".type",
        ),
        (json!({ "text": "x" }), ".type"),
        (
            json!({ "type": "input_image", "image_url": { "url": "https://a/b" } }),
            ".image_url",
        ),
        (
            json!({ "type": "input_image", "image_url": "b.png" }),
            ".image_url",
        ),
        (
            json!({ "type": "input_image", "image_url": "data:image/png,xx" }),
            ".image_url",
        ),
        (
            json!({ "type": "input_image", "image_url": "data:image/png;base64,aGVsbG8=" }),
            ".image_url",
        ),
    ] {
        let error = summarize("responses", &part(one.clone())).expect_err(&one.to_string());
        assert_eq!(error.field, format!("{at}{field}"), "{one}");
    }
    for one in [
        json!({ "type": "input_text", "text": "x" }),
        json!({ "type": "input_image", "image_url": "https://a/b.png" }),
        json!({ "type": "input_image", "image_url": format!("data:image/png;charset=x;base64,{PNG}") }),
        json!({ "type": "input_image", "file_id": "file_1" }),
        json!({ "type": "output_text", "text": "x", "annotations": [] }),
    ] {
        summarize("responses", &part(one.clone())).unwrap_or_else(|e| panic!("{one}: {e}"));
    }
}

#[test]
fn an_image_of_the_limit_passes_and_one_byte_more_does_not() {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let mut file = engine.decode(PNG).unwrap();
    for (bytes, passes) in [(20_971_519, true), (20_971_520, true), (20_971_521, false)] {
        file.resize(bytes, 0);
        let uri = format!("data:image/png;base64,{}", engine.encode(&file));
        let body = part(json!({ "type": "input_image", "image_url": uri }));
        assert_eq!(summarize("responses", &body).is_ok(), passes, "{bytes}");
        let read = by_name("responses")
            .unwrap()
            .read_request(body.to_string().as_bytes());
        assert_eq!(read.is_ok(), passes, "{bytes}");
    }
}
