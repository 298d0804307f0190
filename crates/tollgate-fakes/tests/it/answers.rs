//! How the fakes answer: texts, thoughts, calls, media, schemas and their usage, whole and streamed.

use serde_json::{Value, json};
use tollgate_fakes::{Provider, tokens};

use crate::client::{CHAT, GENERATE, MESSAGES, PNG, RESPONSES, Reply, WIRES, Wire, send};

/// What an answer says, whatever its format.
#[derive(Debug, Default, PartialEq)]
struct Said {
    text: String,
    thought: String,
    /// Names and arguments.
    calls: Vec<(String, Value)>,
    end: String,
    /// Input, cached, output, reasoning.
    usage: [u64; 4],
}

fn said(wire: Wire, reply: &Value) -> Said {
    match wire.path {
        path if path == CHAT.path => of_chat(reply),
        path if path == RESPONSES.path => of_response(reply),
        path if path == MESSAGES.path => of_message(reply),
        _ => of_generated(reply),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn counts(usage: &Value, names: [&str; 4]) -> [u64; 4] {
    names.map(|name| usage.pointer(name).and_then(Value::as_u64).unwrap_or(0))
}

fn parsed(arguments: &Value) -> Value {
    serde_json::from_str(&text(arguments)).expect("arguments")
}

fn of_chat(reply: &Value) -> Said {
    let choice = &reply["choices"][0];
    let calls = choice["message"]["tool_calls"]
        .as_array()
        .into_iter()
        .flatten();
    let call = |call: &Value| {
        let function = &call["function"];
        (text(&function["name"]), parsed(&function["arguments"]))
    };
    let names = [
        "/prompt_tokens",
        "/prompt_tokens_details/cached_tokens",
        "/completion_tokens",
        "/completion_tokens_details/reasoning_tokens",
    ];
    Said {
        text: text(&choice["message"]["content"]),
        thought: text(&choice["message"]["reasoning_content"]),
        calls: calls.map(call).collect(),
        end: text(&choice["finish_reason"]),
        usage: counts(&reply["usage"], names),
    }
}

fn of_response(reply: &Value) -> Said {
    let mut said = Said {
        end: text(&reply["status"]),
        ..Said::default()
    };
    for item in reply["output"].as_array().into_iter().flatten() {
        match item["type"].as_str().unwrap_or_default() {
            "message" => said.text += &text(&item["content"][0]["text"]),
            "reasoning" => said.thought += &text(&item["summary"][0]["text"]),
            _ => said
                .calls
                .push((text(&item["name"]), parsed(&item["arguments"]))),
        }
    }
    let names = [
        "/input_tokens",
        "/input_tokens_details/cached_tokens",
        "/output_tokens",
        "/output_tokens_details/reasoning_tokens",
    ];
    said.usage = counts(&reply["usage"], names);
    said
}

fn of_message(reply: &Value) -> Said {
    let mut said = Said {
        end: text(&reply["stop_reason"]),
        ..Said::default()
    };
    for block in reply["content"].as_array().into_iter().flatten() {
        match block["type"].as_str().unwrap_or_default() {
            "text" => said.text += &text(&block["text"]),
            "thinking" => {
                assert!(text(&block["signature"]).starts_with("sig_fake_"));
                said.thought += &text(&block["thinking"]);
            }
            _ => said
                .calls
                .push((text(&block["name"]), block["input"].clone())),
        }
    }
    let usage = &reply["usage"];
    let names = [
        "/input_tokens",
        "/cache_read_input_tokens",
        "/output_tokens",
        "/output_tokens_details/thinking_tokens",
    ];
    said.usage = counts(usage, names);
    let written = usage["cache_creation_input_tokens"].as_u64().unwrap_or(0);
    let parts = usage["cache_creation"].as_object().into_iter().flatten();
    assert_eq!(written, parts.filter_map(|(_, n)| n.as_u64()).sum::<u64>());
    said.usage[0] += said.usage[1] + written;
    said
}

fn of_generated(reply: &Value) -> Said {
    let candidate = &reply["candidates"][0];
    let mut said = Said {
        end: text(&candidate["finishReason"]),
        ..Said::default()
    };
    for part in candidate["content"]["parts"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if part["thought"] == true {
            said.thought += &text(&part["text"]);
        } else if let Some(call) = part.get("functionCall") {
            said.calls.push((text(&call["name"]), call["args"].clone()));
        } else {
            said.text += &text(&part["text"]);
        }
    }
    let usage = &reply["usageMetadata"];
    let names = [
        "/promptTokenCount",
        "/cachedContentTokenCount",
        "/candidatesTokenCount",
        "/thoughtsTokenCount",
    ];
    said.usage = counts(usage, names);
    said.usage[2] += said.usage[3];
    assert_eq!(usage["totalTokenCount"], said.usage[0] + said.usage[2]);
    said
}

/// A stream put together to what would have come whole.
fn folded(wire: Wire, reply: &Reply) -> Value {
    let events = reply.events();
    match wire.path {
        path if path == CHAT.path => fold_chat(&events),
        path if path == RESPONSES.path => fold_response(&events),
        path if path == MESSAGES.path => fold_message(&events),
        _ => fold_generated(&events),
    }
}

fn add(to: &mut Value, more: &Value) {
    *to = json!(text(to) + &text(more));
}

fn fold_chat(events: &[Value]) -> Value {
    let mut message = json!({"content": "", "reasoning_content": "", "tool_calls": []});
    let mut reason = Value::Null;
    let mut usage = Value::Null;
    for event in events {
        assert_eq!(event["id"], events[0]["id"]);
        usage = event["usage"].clone();
        let Some(choice) = event["choices"].get(0) else {
            continue;
        };
        assert_eq!(reason, Value::Null, "nothing follows the end");
        reason = choice["finish_reason"].clone();
        add(&mut message["content"], &choice["delta"]["content"]);
        add(
            &mut message["reasoning_content"],
            &choice["delta"]["reasoning_content"],
        );
        for call in choice["delta"]["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let index = call["index"].as_u64().expect("an index") as usize;
            let calls = message["tool_calls"].as_array_mut().expect("a list");
            if index == calls.len() {
                assert!(call["id"].is_string() && call["function"]["name"].is_string());
                calls.push(call.clone());
            } else {
                assert!(call.get("id").is_none());
                add(
                    &mut calls[index]["function"]["arguments"],
                    &call["function"]["arguments"],
                );
            }
        }
    }
    let choice = json!({"message": message, "finish_reason": reason});
    json!({"choices": [choice], "usage": usage})
}

fn fold_response(events: &[Value]) -> Value {
    assert_eq!(events[0]["type"], "response.created");
    let mut added = Vec::new();
    let mut done = Vec::new();
    let mut texts = String::new();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" => {
                assert_eq!(event["output_index"], added.len());
                added.push(event["item"]["id"].clone());
            }
            "response.output_item.done" => {
                assert_eq!(event["item"]["id"], added[done.len()]);
                done.push(event["item"].clone());
            }
            "response.output_text.delta" => {
                assert_eq!(Some(&event["item_id"]), added.last());
                texts += &text(&event["delta"]);
            }
            _ => {}
        }
    }
    let response = events.last().expect("an end")["response"].clone();
    assert_eq!(response["output"], json!(done));
    assert_eq!(of_response(&response).text, texts);
    response
}

fn fold_message(events: &[Value]) -> Value {
    let mut message = events[0]["message"].clone();
    let mut open = None;
    for event in &events[1..] {
        let blocks = message["content"].as_array_mut().expect("a list");
        match event["type"].as_str().unwrap_or_default() {
            "content_block_start" => {
                assert_eq!((open, &event["index"]), (None, &json!(blocks.len())));
                open = event["index"].as_u64();
                blocks.push(event["content_block"].clone());
                blocks.last_mut().expect("a block")["partial"] = json!("");
            }
            "content_block_delta" => {
                assert_eq!(event["index"].as_u64(), open);
                let block = blocks.last_mut().expect("a block");
                let delta = &event["delta"];
                add(&mut block["partial"], &delta["partial_json"]);
                for name in ["text", "thinking", "signature"] {
                    if let Some(more) = delta.get(name) {
                        add(&mut block[name], more);
                    }
                }
            }
            "content_block_stop" => {
                open = None;
                let block = blocks.last_mut().expect("a block");
                if block["type"] == "tool_use" {
                    block["input"] = parsed(&block["partial"]);
                }
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    assert_eq!(events.last().expect("an end")["type"], "message_stop");
    message
}

fn fold_generated(events: &[Value]) -> Value {
    let mut whole = events.last().expect("a chunk").clone();
    let parts = events.iter().flat_map(|event| {
        let parts = event["candidates"][0]["content"]["parts"].as_array();
        parts.expect("every chunk has parts").clone()
    });
    whole["candidates"][0]["content"]["parts"] = parts.collect();
    whole
}

/// Asks for the same whole and as a stream, checks that both say the same, and gives it.
async fn both(wire: Wire, body: Value) -> Said {
    let fake = wire.start().await;
    let reply = wire.post(&fake, &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let whole = said(wire, &reply.json());
    let (streamed, body) = wire.streamed(body);
    let reply = streamed.post(&fake, &body).await;
    assert!(
        reply
            .header("content-type")
            .starts_with("text/event-stream"),
        "{}",
        reply.text()
    );
    assert_eq!(said(wire, &folded(wire, &reply)), whole);
    whole
}

fn with_tool(wire: Wire, text: &str) -> Value {
    let mut body = (wire.body)(text);
    let schema = json!({"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer", "maximum": 5}}});
    body["tools"] = match wire.path {
        path if path == CHAT.path => {
            json!([{"type": "function", "function": {"name": "weather", "parameters": schema}}])
        }
        path if path == RESPONSES.path => {
            json!([{"type": "function", "name": "weather", "parameters": schema}])
        }
        path if path == MESSAGES.path => json!([{"name": "weather", "input_schema": schema}]),
        _ => json!([{"functionDeclarations": [{"name": "weather", "parameters": schema}]}]),
    };
    body
}

#[tokio::test]
async fn texts_and_their_usage() {
    for &wire in WIRES {
        let said = both(wire, (wire.body)("héllo ✓ wörld")).await;
        assert_eq!(said.text, "echo: héllo ✓ wörld");
        let expected = tokens("héllo ✓ wörld", said.text.len(), false);
        assert_eq!(
            said.usage,
            [expected.input, expected.cached, expected.output, 0]
        );
        assert!(said.calls.is_empty() && said.thought.is_empty());
        let ends = ["stop", "completed", "end_turn", "STOP"];
        assert!(ends.contains(&said.end.as_str()), "{}", said.end);
    }
}

#[tokio::test]
async fn calls() {
    for &wire in WIRES {
        let said = both(wire, with_tool(wire, "call tool weather twice, please")).await;
        assert_eq!(said.text, "");
        let expected = [
            json!({"city": "city \"é\" 1", "days": 5}),
            json!({"city": "city \"é\" 2", "days": 5}),
        ];
        let expected = expected.map(|arguments| ("weather".to_owned(), arguments));
        assert_eq!(said.calls, expected);
        let ends = ["tool_calls", "completed", "tool_use", "STOP"];
        assert!(ends.contains(&said.end.as_str()), "{}", said.end);
        let aloud = both(wire, with_tool(wire, "aloud call tool weather.")).await;
        assert_eq!((aloud.calls.len(), aloud.text.is_empty()), (1, false));
        let unknown = both(wire, with_tool(wire, "call tool other")).await;
        assert_eq!(unknown.text, "echo: call tool other");
    }
}

#[tokio::test]
async fn interleaved_calls_come_together_all_the_same() {
    let said = both(CHAT, with_tool(CHAT, "interleave: call tool weather twice")).await;
    assert_eq!(said.calls.len(), 2);
}

#[tokio::test]
async fn forced_calls() {
    let choices = [
        (CHAT, "tool_choice", json!("required")),
        (
            RESPONSES,
            "tool_choice",
            json!({"type": "function", "name": "weather"}),
        ),
        (MESSAGES, "tool_choice", json!({"type": "any"})),
        (
            GENERATE,
            "toolConfig",
            json!({"functionCallingConfig": {"mode": "ANY"}}),
        ),
    ];
    for (wire, name, choice) in choices {
        let mut body = with_tool(wire, "hello");
        body[name] = choice;
        assert_eq!(both(wire, body).await.calls.len(), 1);
    }
    let never = [
        (CHAT, "tool_choice", json!("none")),
        (MESSAGES, "tool_choice", json!({"type": "none"})),
    ];
    for (wire, name, choice) in never {
        let mut body = with_tool(wire, "call tool weather");
        body[name] = choice;
        assert_eq!(both(wire, body).await.calls.len(), 0);
    }
}

#[tokio::test]
async fn thoughts() {
    let text = "think hard about it";
    let mut asked = Vec::new();
    for (wire, name, value) in [
        (
            RESPONSES,
            "reasoning",
            json!({"effort": "high", "summary": "auto"}),
        ),
        (
            MESSAGES,
            "thinking",
            json!({"type": "enabled", "budget_tokens": 2000}),
        ),
        (
            GENERATE,
            "generationConfig",
            json!({"thinkingConfig": {"includeThoughts": true}}),
        ),
    ] {
        let mut body = (wire.body)(text);
        body[name] = value;
        asked.push((wire, body));
    }
    asked[0].1["model"] = json!("gpt-5");
    let mut foreign = (CHAT.body)(text);
    foreign["model"] = json!("deepseek-chat");
    asked.push((CHAT, foreign));
    for (wire, body) in asked {
        let said = both(wire, body).await;
        assert_eq!(said.thought, format!("I am asked: {text}"));
        let expected = tokens(text, said.text.len(), true);
        assert_eq!(said.usage[2..], [expected.output, expected.reasoning]);
    }
}

#[tokio::test]
async fn a_thought_and_a_call_go_back_as_they_came() {
    let fake = MESSAGES.start().await;
    let mut body = with_tool(MESSAGES, "think redacted and call tool weather");
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    let content = MESSAGES.post(&fake, &body).await.json()["content"].clone();
    assert_eq!(content[1]["type"], "redacted_thinking");
    let id = &content[2]["id"];
    let messages = body["messages"].as_array_mut().expect("a list");
    messages.push(json!({"role": "assistant", "content": content}));
    messages.push(json!({"role": "user", "content": [{"type": "tool_result",
        "tool_use_id": id, "content": "sunny"}]}));
    let reply = MESSAGES.post(&fake, &body).await.json();
    assert_eq!(reply["content"][0]["text"], "echo: sunny");
    let wire = GENERATE.at("/v1beta/models/gemini-3-flash:generateContent");
    let fake = wire.start().await;
    let mut body = with_tool(GENERATE, "call tool weather twice");
    let content = wire.post(&fake, &body).await.json()["candidates"][0]["content"].clone();
    assert!(content["parts"][0]["functionCall"]["id"].is_string());
    let response = json!({"functionResponse": {"name": "weather", "response": {"output": "dry"}}});
    let contents = body["contents"].as_array_mut().expect("a list");
    contents.push(content);
    contents.push(json!({"role": "user", "parts": [response, response]}));
    assert_eq!(
        of_generated(&wire.post(&fake, &body).await.json()).text,
        "echo: dry dry"
    );
}

#[tokio::test]
async fn omitted_thoughts_are_signed() {
    let fake = MESSAGES.start().await;
    let mut body = (MESSAGES.body)("think");
    body["model"] = json!("claude-sonnet-5");
    let content = &MESSAGES.post(&fake, &body).await.json()["content"];
    assert_eq!(content[0]["thinking"], "");
    let signature = content[0]["signature"].as_str().expect("a signature");
    assert!(signature.starts_with("sig_fake_"));
}

#[tokio::test]
async fn media_are_acknowledged() {
    let uri = format!("data:image/png;base64,{PNG}");
    let parts = [
        (
            CHAT,
            "/messages/0/content",
            json!([{"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": uri}}]),
        ),
        (
            RESPONSES,
            "/input",
            json!([{"role": "user", "content": [
            {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": uri}]}]),
        ),
        (
            MESSAGES,
            "/messages/0/content",
            json!([{"type": "text", "text": "see"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                "data": PNG}}]),
        ),
        (
            GENERATE,
            "/contents/0/parts",
            json!([{"text": "see"},
            {"inlineData": {"mimeType": "image/png", "data": PNG}}]),
        ),
    ];
    for (wire, at, value) in parts {
        let mut body = (wire.body)("");
        *body.pointer_mut(at).expect("a place") = value;
        assert_eq!(
            both(wire, body).await.text,
            "echo: see [image/png, 70 bytes]"
        );
    }
}

#[tokio::test]
async fn schemas_are_followed() {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"], "additionalProperties": false});
    let plain = json!({"type": "OBJECT", "properties": {"ok": {"type": "BOOLEAN"}}});
    let formats = [
        (
            CHAT,
            "response_format",
            json!({"type": "json_schema",
            "json_schema": {"name": "n", "schema": schema, "strict": true}}),
        ),
        (
            RESPONSES,
            "text",
            json!({"format": {"type": "json_schema", "name": "n",
            "schema": schema}}),
        ),
        (
            MESSAGES,
            "output_config",
            json!({"format": {"type": "json_schema", "schema": schema}}),
        ),
        (
            GENERATE,
            "generationConfig",
            json!({"responseMimeType": "application/json",
            "responseSchema": plain}),
        ),
    ];
    for (wire, name, value) in formats {
        let mut body = (wire.body)("hello");
        body[name] = value;
        assert_eq!(both(wire, body).await.text, "{\"ok\":true}");
    }
}

#[tokio::test]
async fn stops_and_limits() {
    let stops = [
        (CHAT, "stop", json!("b"), "stop"),
        (MESSAGES, "stop_sequences", json!(["b"]), "stop_sequence"),
        (
            GENERATE,
            "generationConfig",
            json!({"stopSequences": ["b"]}),
            "STOP",
        ),
    ];
    for (wire, name, value, end) in stops {
        let mut body = (wire.body)("aaa b ccc");
        body[name] = value;
        let said = both(wire, body).await;
        assert_eq!((said.text.as_str(), said.end.as_str()), ("echo: aaa ", end));
    }
    let limits = [
        (CHAT, "max_tokens", json!(2), "length"),
        (RESPONSES, "max_output_tokens", json!(2), "incomplete"),
        (MESSAGES, "max_tokens", json!(2), "max_tokens"),
        (
            GENERATE,
            "generationConfig",
            json!({"maxOutputTokens": 2}),
            "MAX_TOKENS",
        ),
    ];
    for (wire, name, value, end) in limits {
        let mut body = (wire.body)("a long text");
        body[name] = value;
        let said = both(wire, body).await;
        assert_eq!((said.text.as_str(), said.end.as_str()), ("echo: a ", end));
    }
}

#[tokio::test]
async fn several_choices() {
    let fake = CHAT.start().await;
    let mut body = (CHAT.body)("hello");
    body["n"] = json!(2);
    let choices = CHAT.post(&fake, &body).await.json()["choices"].clone();
    assert_eq!(choices[1]["index"], 1);
    assert_eq!(choices[1]["message"], choices[0]["message"]);
    let fake = GENERATE.start().await;
    let mut body = (GENERATE.body)("hello");
    body["generationConfig"] = json!({"candidateCount": 2});
    let candidates = GENERATE.post(&fake, &body).await.json()["candidates"].clone();
    assert_eq!(candidates.as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn encrypted_reasoning_is_whole_only_at_the_end() {
    let fake = RESPONSES.start().await;
    let mut body = (RESPONSES.body)("think");
    body["model"] = json!("gpt-5");
    body["include"] = json!(["reasoning.encrypted_content"]);
    let (_, body) = RESPONSES.streamed(body);
    let events = RESPONSES.post(&fake, &body).await.events();
    let contents: Vec<&str> = events
        .iter()
        .filter_map(|event| event["item"]["encrypted_content"].as_str())
        .collect();
    assert_eq!(contents.len(), 2);
    assert!(contents[1].starts_with(contents[0]) && contents[0] != contents[1]);
}

#[tokio::test]
async fn gemini_streams_an_array_without_alt_sse() {
    let fake = GENERATE.start().await;
    let wire = GENERATE.at("/v1beta/models/gemini-2.5-flash:streamGenerateContent");
    let reply = wire.post(&fake, &(wire.body)("hello")).await;
    assert!(reply.header("content-type").starts_with("application/json"));
    let chunks = reply.json();
    let chunks = chunks.as_array().expect("an array");
    assert_eq!(of_generated(&fold_generated(chunks)).text, "echo: hello");
}

#[tokio::test]
async fn lists_and_counts() {
    for &wire in &[CHAT, MESSAGES, GENERATE] {
        let fake = wire.start().await;
        let (path, list, id) = match wire.provider {
            Provider::Gemini => ("/v1beta/models", "models", "name"),
            _ => ("/v1/models", "data", "id"),
        };
        let reply = send(&fake, "GET", path, wire.headers, "")
            .await
            .expect("an answer");
        let models = reply.json()[list].clone();
        let first = text(&models[0][id]);
        let one = format!("{path}/{}", first.trim_start_matches("models/"));
        let reply = send(&fake, "GET", &one, wire.headers, "")
            .await
            .expect("an answer");
        assert_eq!(reply.json(), models[0]);
    }
    let fake = MESSAGES.start().await;
    let mut body = (MESSAGES.body)("hello");
    body["max_tokens"] = Value::Null;
    let reply = MESSAGES
        .at("/v1/messages/count_tokens")
        .post(&fake, &body)
        .await;
    assert_eq!(
        reply.json(),
        json!({"input_tokens": tokens("hello", 0, false).input})
    );
    let fake = GENERATE.start().await;
    let wire = GENERATE.at("/v1beta/models/gemini-2.5-flash:countTokens");
    let reply = wire.post(&fake, &(GENERATE.body)("hello")).await;
    assert_eq!(
        reply.json(),
        json!({"totalTokens": tokens("hello", 0, false).input})
    );
}
