//! How the fakes answer: texts, thoughts, calls, media, schemas and their usage, whole and streamed.

use serde_json::{Value, json};
use tollgate_fakes::{Provider, tokens};

use crate::client::{CHAT, GENERATE, MESSAGES, PNG, RESPONSES, WIRES, Wire, send};
use crate::said::{Said, fold_generated, folded, of_generated, said, text};

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
