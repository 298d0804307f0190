//! Every client format with every API of a provider, complete and streamed. The fakes reject what the real providers reject, so a reply proves that
//! the request was valid.

use axum::Router;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tollgate_fakes::Fake;

use super::format::{ChatReply, Format};
use super::providers::{AllProviders, CHANNELS};
use super::request::{ChatRequest, PNG, TOOL};
use crate::harness::*;

on_sqlite!(
    texts_and_turns_are_translated,
    tools_and_their_results_are_translated,
    images_are_translated,
    token_limits_stop_sequences_and_schemas_are_translated,
    thinking_with_tools_keeps_the_signatures,
    dropped_fields_are_reported,
    a_forced_tool_is_checked_before_translation,
);

/// One client format and one model, either complete or streamed.
struct Case<'a> {
    client: &'a Client,
    fake: &'a Fake,
    format: Format,
    model: &'static str,
    upstream: &'static str,
    stream: bool,
}

/// Runs a test for every client format and model, complete and streamed.
async fn for_each(backend: Backend, config: &str, test: impl AsyncFn(&Case<'_>)) {
    let AllProviders { gateway, fakes } = AllProviders::start(backend, config).await;
    let client = &gateway.unlimited_client().await;
    for (format, stream) in Format::all_and_streamed() {
        for (fake, channel) in fakes.iter().zip(CHANNELS) {
            for &(model, upstream) in channel.models {
                eprintln!("{format:?} to {upstream}, stream: {stream}");
                let case = Case {
                    client,
                    fake,
                    format,
                    model,
                    upstream,
                    stream,
                };
                test(&case).await;
            }
        }
    }
    gateway.close().await;
}

impl Case<'_> {
    fn request(&self) -> ChatRequest {
        ChatRequest::new(self.format, self.model, self.stream)
    }

    async fn send(&self, request: &ChatRequest) -> ChatReply {
        let reply = self
            .format
            .send(self.client, self.model, self.stream, &request.body);
        reply.await.unwrap_or_else(|error| {
            let seen = self.fake.requests();
            let seen = seen
                .last()
                .map(|seen| (seen.rejected_by, seen.body.to_string()));
            panic!("{error:?}\nsent {}\nupstream {seen:?}", request.body)
        })
    }

    /// The finish reason in the client's format.
    fn end(&self, ends: [&'static str; 4]) -> &'static str {
        ends[self.format as usize]
    }
}

async fn texts_and_turns_are_translated(backend: Backend) {
    for_each(backend, "", async |case| {
        let text = "how are \"you\", é?";
        let request = case
            .request()
            .system("Be brief.")
            .user("hi")
            .assistant("hello");
        let reply = case.send(&request.user(text)).await;
        assert_eq!(reply.text, format!("echo: {text}"));
        let expected = tollgate_fakes::tokens(text, reply.text.len(), false);
        let expected = [expected.input, expected.cached, expected.output];
        assert_eq!(reply.usage[..3], expected);
        let seen = case.fake.requests();
        assert_eq!(seen.len(), 1);
        let body = seen[0].body.to_string();
        assert!(
            body.contains("Be brief.") && body.contains("hello"),
            "{body}"
        );
        case.fake.clear();
    })
    .await;
}

async fn tools_and_their_results_are_translated(backend: Backend) {
    for_each(backend, "", async |case| {
        let forced = case.request().tools().forced().user("what is the weather?");
        let reply = case.send(&forced).await;
        assert!(
            reply.calls.len() == 1 && reply.calls[0].name == TOOL,
            "{reply:?}"
        );

        let request = case
            .request()
            .tools()
            .user(&format!("call tool {TOOL} twice"));
        let reply = case.send(&request).await;
        assert_eq!(reply.calls.len(), 2, "{reply:?}");
        for (number, call) in reply.calls.iter().enumerate() {
            assert_eq!(call.name, TOOL);
            assert_eq!(call.arguments["city"], format!("city \"é\" {}", number + 1));
        }
        let end = case.end(["tool_calls", "completed", "tool_use", "STOP"]);
        assert_eq!(reply.end, end);

        let request = request.turn(&reply).results(&reply.calls, "sunny");
        let reply = case.send(&request).await;
        assert_eq!(reply.text, "echo: sunny sunny");
        let reply = case.send(&request.turn(&reply).user("thanks")).await;
        assert_eq!(reply.text, "echo: thanks");
    })
    .await;
}

async fn images_are_translated(backend: Backend) {
    let bytes = STANDARD.decode(PNG).unwrap();
    let expected = format!("echo: see [image/png, {} bytes]", bytes.len());
    let routes = Router::new().route("/pixel.png", get(move || async move { bytes }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/pixel.png", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let config = "media.allow_private_urls = [\"127.0.0.0/8\"]\n";
    for_each(backend, config, async |case| {
        assert_eq!(case.send(&case.request().image()).await.text, expected);
        // The gateway sends either the URL or the image that it fetched from there.
        let text = case.send(&case.request().image_url(&url)).await.text;
        assert!(text == expected || text.contains(&url), "{text}");
    })
    .await;
}

async fn token_limits_stop_sequences_and_schemas_are_translated(backend: Backend) {
    for_each(backend, "", async |case| {
        let long = "a b c d ".repeat(100);
        let reply = case.send(&case.request().max_tokens(16).user(&long)).await;
        assert!((1..=64).contains(&reply.text.len()), "{reply:?}");
        let end = case.end(["length", "incomplete", "max_tokens", "MAX_TOKENS"]);
        assert_eq!(reply.end, end);

        // These APIs have no stop sequences.
        if case.format != Format::Responses && !case.upstream.starts_with("gpt") {
            let request = case.request().stop("END").user("one END two");
            let reply = case.send(&request).await;
            assert_eq!(reply.text, "echo: one ");
            let is_claude = case.upstream.starts_with("claude");
            let end = case.end(["stop", "", "stop_sequence", "STOP"]);
            assert!(reply.end == end || case.format == Format::Messages && !is_claude);
        }

        let reply = case
            .send(&case.request().schema().user("which town?"))
            .await;
        let value: Value = serde_json::from_str(&reply.text).expect(&reply.text);
        assert!(
            value["town"].is_string() && value["count"].is_i64(),
            "{value}"
        );
        assert!(reply.calls.is_empty());
    })
    .await;
}

/// The vendor gets the signatures of its thinking back, also through formats that have no field for them: without them these fakes reject the
/// request.
async fn thinking_with_tools_keeps_the_signatures(backend: Backend) {
    for_each(backend, "", async |case| {
        if case.upstream == "gpt-4o" {
            return;
        }
        let text = format!("think, then call tool {TOOL}");
        let request = case.request().thinking().tools().user(&text);
        let reply = case.send(&request).await;
        assert!(reply.calls.len() == 1 && reply.usage[3] > 0, "{reply:?}");
        let returns_thoughts = ["claude-sonnet-4-5", "gemini-2.5-flash", "gpt-5-mini"];
        if returns_thoughts.contains(&case.upstream) && case.format != Format::Chat {
            assert!(reply.thought.starts_with("I am asked"), "{reply:?}");
        }
        let request = request.turn(&reply).results(&reply.calls, "rain");
        let reply = case.send(&request).await;
        assert_eq!(reply.text, "echo: rain");
        let request = request.turn(&reply).user("and now think again");
        assert_eq!(case.send(&request).await.text, "echo: and now think again");
    })
    .await;
}

async fn dropped_fields_are_reported(backend: Backend) {
    let AllProviders {
        gateway,
        fakes: _fakes,
    } = AllProviders::start(backend, "").await;
    let client = gateway.unlimited_client().await;
    let model = "claude-sonnet-4-5-20250929";
    let plain = ChatRequest::of_text(Format::Chat, model, false, "hi").body;
    let mut body = plain.clone();
    body["frequency_penalty"] = 0.5.into();
    body["seed"] = 7.into();
    let path = Format::Chat.vendor_path("", false);
    let reply = client.post(&path, &body).await.expect(200);
    let dropped = reply.header("x-tollgate-dropped");
    let both = dropped.contains("frequency_penalty") && dropped.contains("seed");
    assert!(both, "{dropped}");
    // The chat's record names the same fields.
    let stored = gateway.query("SELECT dropped FROM chats").await;
    let stored: Vec<String> = serde_json::from_str(&stored[0][0]).unwrap();
    assert_eq!(stored.join(", "), dropped);
    let strict = [("x-tollgate-strict", "true")];
    let reply = client.post_with(&path, &body, &strict).await.expect(400);
    let message = Format::Chat.error(400, &reply.json());
    let names = ["`frequency_penalty`", "`seed`"];
    assert!(names.iter().any(|name| message.contains(name)), "{message}");
    // If no field has to be dropped, none is.
    let reply = client.post_with(&path, &plain, &strict).await.expect(200);
    assert_eq!(reply.header("x-tollgate-dropped"), "");
    // A field that would change the reply is always rejected, with its name.
    body["n"] = 2.into();
    let reply = client.post(&path, &body).await.expect(400);
    assert_eq!(reply.json()["error"]["param"], "n", "{}", reply.text());
    gateway.close().await;
}

async fn a_forced_tool_is_checked_before_translation(backend: Backend) {
    let config = "[[channel]]\nname = \"box\"\nkind = \"sandbox\"\napis = [\"chat-completions\"]\n";
    let (gateway, client) = TestGateway::with_config(backend, config).await;
    let tool = json!({ "name": "there", "input_schema": { "type": "object", "properties": {} } });
    let mut body = json!({ "model": "gpt-5", "max_tokens": 100, "messages": [{ "role": "user", "content": "hello" }], "tools": [tool] });
    body["tool_choice"] = json!({ "type": "tool", "name": "missing" });
    let messages = "/anthropic/v1/messages";
    let message = client.post(messages, &body).await.message(400);
    let is_named = message.contains("`tool_choice`") && message.contains("missing");
    assert!(is_named, "{message}");
    body["tool_choice"]["name"] = "there".into();
    client.post(messages, &body).await.expect(200);
    gateway.close().await;
}
