//! What the sandbox does as a real server of the format would: the same words in both ways of answering, thoughts only for
//! those who ask, errors for what it does not have.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_chat::hub::{Choice, PartKind, ResponseBuilder};
use tollgate_chat::{Format, by_name};
use tollgate_upstream::{Channel, UpstreamErrorKind};

use crate::harness::{Chat, chat_provider};

const CHAT: &str = "chat-completions";
const MESSAGES: &str = "messages";
const RESPONSES: &str = "responses";
const GENERATE: &str = "generate-content";

/// A body that says `text` in `format`.
fn body(format: &str, text: &str) -> Value {
    match format {
        RESPONSES => json!({ "model": "gpt-5", "input": text }),
        GENERATE => json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }] }),
        _ => json!({
            "model": "gpt-5", "max_tokens": 4_000,
            "messages": [{ "role": "user", "content": text }],
        }),
    }
}

fn with(mut body: Value, fields: &Value) -> Value {
    let fields = fields.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(fields);
    body
}

async fn answer(format: &'static dyn Format, body: &Value, stream: bool) -> Choice {
    let mut body = body.clone();
    if format.name() != GENERATE {
        body["stream"] = stream.into();
    }
    let sandbox = chat_provider(Channel::new("sandbox", "sandbox"), Duration::ZERO);
    let call = Chat::new(format, stream, body.to_string().into_bytes());
    let mut reply = call.send(&*sandbox).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = reply.chunk().await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    if !stream {
        return format.read_response(&bytes).unwrap().choices.remove(0);
    }
    let mut events = Vec::new();
    let mut reader = format.stream_reader();
    reader.push(&bytes, &mut events).unwrap();
    reader.finish(&mut events).unwrap();
    let mut builder = ResponseBuilder::default();
    for event in &events {
        builder.push(event);
    }
    builder.build().choices.remove(0)
}

async fn error(format: &str, body: &Value) -> String {
    let sandbox = chat_provider(Channel::new("sandbox", "sandbox"), Duration::ZERO);
    let format = by_name(format).unwrap();
    let call = Chat::new(format, false, body.to_string().into_bytes());
    let error = call.send(&*sandbox).await.err().expect("a rejection");
    assert_eq!(error.kind, UpstreamErrorKind::Rejected, "{error}");
    error.message
}

fn text(choice: &Choice) -> String {
    let texts = choice.parts.iter().filter_map(|part| match &part.kind {
        PartKind::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn thinks(choice: &Choice) -> bool {
    let is_thought =
        |kind: &PartKind| matches!(kind, PartKind::Reasoning { text, .. } if !text.is_empty());
    choice.parts.iter().any(|part| is_thought(&part.kind))
}

#[tokio::test]
async fn a_stream_has_the_words_of_the_complete_response() {
    for format in tollgate_chat::FORMATS {
        for message in ["hello", "what is a fox?", "[[sandbox:words=20]]"] {
            let body = body(format.name(), message);
            let whole = text(&answer(*format, &body, false).await);
            let streamed = text(&answer(*format, &body, true).await);
            assert_eq!(whole, streamed, "{} {message}", format.name());
            assert!(!whole.is_empty());
        }
    }
}

#[tokio::test]
async fn thoughts_are_shown_to_those_who_ask() {
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 1_024 } });
    let effort = json!({ "output_config": { "effort": "high" } });
    let config = |show: bool| json!({ "generationConfig": { "thinkingConfig": { "thinkingBudget": 1_024, "includeThoughts": show } } });
    for (format, fields, shown) in [
        (MESSAGES, thinking, true),
        (MESSAGES, effort, false),
        (MESSAGES, json!({}), false),
        (GENERATE, config(true), true),
        (GENERATE, config(false), false),
        (
            RESPONSES,
            json!({ "reasoning": { "effort": "high" } }),
            false,
        ),
        (
            RESPONSES,
            json!({ "reasoning": { "effort": "high", "summary": "auto" } }),
            true,
        ),
        (CHAT, json!({}), false),
        (CHAT, json!({ "reasoning_effort": "high" }), true),
    ] {
        let format = by_name(format).unwrap();
        let body = with(body(format.name(), "hello"), &fields);
        for stream in [false, true] {
            let choice = answer(format, &body, stream).await;
            assert_eq!(
                thinks(&choice),
                shown,
                "{} {fields} {stream}",
                format.name()
            );
        }
    }
}

#[tokio::test]
async fn state_that_the_sandbox_does_not_have_is_rejected() {
    for (fields, field) in [
        (
            json!({ "previous_response_id": "resp_1" }),
            "previous_response_id",
        ),
        (json!({ "conversation": "conv_1" }), "conversation"),
        (
            json!({ "conversation": { "id": "conv_1" } }),
            "conversation",
        ),
        (json!({ "background": true }), "background"),
    ] {
        let said = error(RESPONSES, &with(body(RESPONSES, "hello"), &fields)).await;
        assert!(said.starts_with(&format!("`{field}`")), "{said}");
    }
    let none = json!({ "previous_response_id": null, "conversation": null, "background": false });
    let body = with(body(RESPONSES, "hello"), &none);
    answer(by_name(RESPONSES).unwrap(), &body, false).await;
}

#[tokio::test]
async fn a_forced_tool_must_be_among_the_tools() {
    let schema = json!({ "type": "object", "properties": {} });
    let tool = |format: &str| match format {
        CHAT => {
            json!([{ "type": "function", "function": { "name": "there", "parameters": schema } }])
        }
        RESPONSES => json!([{ "type": "function", "name": "there", "parameters": schema }]),
        MESSAGES => json!([{ "name": "there", "input_schema": schema }]),
        _ => json!([{ "functionDeclarations": [{ "name": "there" }] }]),
    };
    let choice = |format: &str, name: &str| match format {
        CHAT => json!({ "tool_choice": { "type": "function", "function": { "name": name } } }),
        RESPONSES => json!({ "tool_choice": { "type": "function", "name": name } }),
        MESSAGES => json!({ "tool_choice": { "type": "tool", "name": name } }),
        _ => {
            json!({ "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": [name] } } })
        }
    };
    for format in [CHAT, RESPONSES, MESSAGES, GENERATE] {
        let tools = json!({ "tools": tool(format) });
        let body = with(body(format, "hello"), &tools);
        let said = error(format, &with(body.clone(), &choice(format, "missing"))).await;
        assert!(said.contains("missing"), "{format}: {said}");
        let forced = with(body, &choice(format, "there"));
        let choice = answer(by_name(format).unwrap(), &forced, false).await;
        let calls =
            |kind: &PartKind| matches!(kind, PartKind::ToolCall { name, .. } if name == "there");
        assert!(
            choice.parts.iter().any(|part| calls(&part.kind)),
            "{format}"
        );
    }
    let hosted = json!({
        "tools": [{ "type": "web_search_20250305", "name": "web_search" }],
        "tool_choice": { "type": "tool", "name": "web_search" },
    });
    answer(
        by_name(MESSAGES).unwrap(),
        &with(body(MESSAGES, "hello"), &hosted),
        false,
    )
    .await;
}
