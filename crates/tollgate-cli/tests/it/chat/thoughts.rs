//! Which thoughts a client gets.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider, start};

use crate::harness::*;

on_sqlite!(
    thoughts_are_hidden_unless_the_client_requests_them,
    unrequested_thoughts_are_hidden_in_the_envelope_and_kept_for_tool_loops,
);

const CHAT: &str = "/openai/v1/chat/completions";
const RESPONSES: &str = "/openai/v1/responses";
const MESSAGES: &str = "/anthropic/v1/messages";

/// Whether a complete or streamed response of the sandbox has a thought: no other sentence of it has this word.
fn has_thought(text: &str) -> bool {
    text.contains("The message is") || text.contains("\"message \"")
}

async fn thoughts_are_hidden_unless_the_client_requests_them(backend: Backend) {
    // The same sandbox, by the client's format and by another.
    for apis in ["", "apis = [\"chat-completions\"]", "apis = [\"messages\"]"] {
        let config = format!("[[channel]]\nname = \"box\"\nkind = \"sandbox\"\n{apis}\n");
        let (gateway, client) = TestGateway::with_config(backend, &config).await;
        let model = "claude-sonnet-4-5-20250929-thinking";
        let gemini = "/gemini/v1beta/models/gemini-2.5-pro-thinking:generateContent";
        let contents = json!({ "contents": [{ "role": "user", "parts": [{ "text": "hello" }] }] });
        let mut with_thoughts = contents.clone();
        with_thoughts["generationConfig"] =
            json!({ "thinkingConfig": { "includeThoughts": true, "thinkingBudget": 1_024 } });
        let chat = json!({ "model": model, "messages": [{ "role": "user", "content": "hello" }], "max_tokens": 4_000 });
        let mut thinking = chat.clone();
        thinking["thinking"] = json!({ "type": "enabled", "budget_tokens": 1_024 });
        let responses = json!({ "model": model, "input": "hello" });
        let mut summary = responses.clone();
        summary["reasoning"] = json!({ "effort": "medium", "summary": "auto" });
        for (path, body, shown) in [
            (CHAT, &chat, false),
            (MESSAGES, &chat, false),
            (MESSAGES, &thinking, true),
            (RESPONSES, &responses, false),
            (RESPONSES, &summary, true),
            (gemini, &contents, false),
            (gemini, &with_thoughts, true),
        ] {
            for stream in [false, true] {
                let mut body = body.clone();
                let mut path = path.to_owned();
                if path == gemini && stream {
                    path = path.replace(":generateContent", ":streamGenerateContent?alt=sse");
                } else if path != gemini {
                    body["stream"] = stream.into();
                }
                let text = client.post(&path, &body).await.expect(200).text();
                assert_eq!(has_thought(&text), shown, "{apis} {path} {stream}: {text}");
                assert!(text.contains("said"), "{text}");
            }
        }
        gateway.close().await;
    }
}

async fn unrequested_thoughts_are_hidden_in_the_envelope_and_kept_for_tool_loops(backend: Backend) {
    let fake = start(Provider::OpenAi, Options::default()).await.unwrap();
    let up = ChannelConfig::new("up", "openai").url(&fake.base_url());
    let up = up.keys(&["up-key"]).lines("apis = [\"chat-completions\"]");
    let up = up.model_as("deepseek-v3.1-think-250821", "deepseek-reasoner");
    let (gateway, client) = TestGateway::with_config(backend, &up.text()).await;
    let tool = json!({ "type": "function", "function": { "name": "get_weather", "parameters": { "type": "object", "properties": {} } } });
    let mut body = json!({ "model": "deepseek-v3.1-think-250821", "messages": [{ "role": "user", "content": "think, then call tool get_weather" }], "tools": [tool] });
    let bare = client.post(CHAT, &body).await.expect(200).json();
    let shown = &bare["choices"][0]["message"]["reasoning_content"];
    assert!(shown.is_string(), "{bare}");

    let path = "/api/v1/chat/completions";
    let reply = client.post(path, &body).await.expect(200).json();
    let mut turn = reply["data"]["choices"][0]["message"].clone();
    assert_eq!(turn.get("reasoning_content"), None, "{reply}");
    turn["content"] = Value::Null;
    let call = turn["tool_calls"][0]["id"].clone();
    assert!(call.is_string(), "{reply}");
    let result = json!({ "role": "tool", "tool_call_id": call, "content": "rain" });
    let messages = body["messages"].as_array_mut().unwrap();
    messages.extend([turn, result]);
    client.post(path, &body).await.expect(200);
    gateway.close().await;
}
