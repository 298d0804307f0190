//! The gateway does not forward what has no price: options of a request that a channel must allow or a price must name.

use serde_json::{Value, json};

use super::upstream::{Received, Upstream, events, json_response};
use crate::harness::{Backend, ChannelConfig, Client, Reply, Setup, on_both};

on_both!(
    options_are_forwarded_only_if_they_are_allowed_or_priced,
    settings_that_a_forwarded_request_loses_are_named,
    a_reload_changes_what_a_channel_allows,
    responses_are_stored_only_if_the_channel_allows_it,
    parts_with_a_price_are_held_and_charged_separately,
);

const CHAT: &str = "/openai/v1/chat/completions";
const RESPONSES: &str = "/openai/v1/responses";
const MESSAGES: &str = "/anthropic/v1/messages";

/// A server of the formats of OpenAI and Anthropic. Each reply counts 1,000 tokens of input and 100 of output.
fn provider(received: &Received) -> (u16, &'static str, String) {
    let body = match received.path.as_str() {
        "/responses" => json!({
            "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "up",
            "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "yes", "annotations": []}]}],
            "usage": {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100},
        }),
        "/v1/messages" => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "up", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "yes"}], "usage": {"input_tokens": 1000, "output_tokens": 100},
        }),
        _ => json!({"id": "c", "object": "chat.completion", "created": 1, "model": "up",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}}),
    };
    json_response(200, &body)
}

/// A channel of each kind, for the models `KIND-strict`, and `KIND-open` that allows `allow`.
fn channels(url: &str, allow: &str) -> String {
    let channel = |kind: &str, which: &str, more: &str| {
        let model = format!("{kind}-{which}");
        let channel = ChannelConfig::new(&model, kind).url(url);
        let price = format!(
            "[price.\"{model}\"]\ninput_per_million = 1000\noutput_per_million = 10000\n\
             service_tiers = {{ priority = 2, flex = 0.5 }}\n"
        );
        channel.models(&[&model]).lines(more).text() + &price
    };
    let models =
        |kind: &str, like: &str| format!("[[model]]\nname = \"{kind}-*\"\nlike = \"{like}\"\n");
    let kinds = ["openai", "anthropic"]
        .map(|kind| channel(kind, "strict", "") + &channel(kind, "open", allow));
    models("openai", "gpt-4o")
        + &models("anthropic", "claude-sonnet-4-5-20250929")
        + &kinds.concat()
}

/// A request with the additional members `more`.
fn request(path: &str, which: &str, more: &Value) -> Value {
    let mut body = match path {
        RESPONSES => {
            json!({"model": format!("openai-{which}"), "input": "hi", "max_output_tokens": 100})
        }
        CHAT => {
            json!({"model": format!("openai-{which}"), "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]})
        }
        _ => {
            json!({"model": format!("anthropic-{which}"), "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]})
        }
    };
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Checks that an error in any format has this status and contains `expected`. Returns its message.
fn rejected(reply: &Reply, status: u16, expected: &str) -> String {
    assert_eq!(reply.status, status, "{}", reply.text());
    let message = reply.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.contains(expected), "{message}, not {expected}");
    message
}

const ALLOW: &str = "allow = [\"service_tier\", \"background\", \"store\", \"stored_context\", \"web_search\", \"cache_write_1h\", \"inference_geo\"]\nbetas = [\"context-1m-*\"]";

async fn responses_are_stored_only_if_the_channel_allows_it(backend: Backend) {
    let upstream = Upstream::start(provider).await;
    let thinker = "[[model]]\nname = \"openai-strict-*\"\nlike = \"gpt-5\"\n";
    let config = channels(&upstream.url, ALLOW).replace(
        "models = [\"openai-strict\"]",
        "models = [{ name = \"openai-strict\", upstream = \"gpt-4o\" }, { name = \"openai-strict-thinker\", upstream = \"gpt-5\" }]",
    );
    let setup = Setup::new(backend).config(thinker).config(&config);
    let gateway = setup.start().await;
    let client = gateway.unlimited_client().await;
    let encrypted = json!({"include": ["reasoning.encrypted_content"]});
    for (which, more, sent) in [
        ("strict", json!({}), json!(false)),
        ("strict", json!({"store": null}), json!(false)),
        ("strict", json!({"input": "a \"store\""}), json!(false)),
        ("strict", json!({"store": false}), json!(false)),
        ("open", json!({}), Value::Null),
        // The next request of this model must name the stored reasoning.
        ("strict-thinker", json!({}), Value::Null),
        ("strict-thinker", encrypted, json!(false)),
    ] {
        let reply = client
            .post(RESPONSES, &request(RESPONSES, which, &more))
            .await;
        assert_eq!(reply.status, 200, "{more}: {}", reply.text());
        assert_eq!(reply.header("x-tollgate-dropped"), "");
        assert_eq!(upstream.take()[0].body["store"], sent, "{which} {more}");
    }
    gateway.close().await;
}

async fn options_are_forwarded_only_if_they_are_allowed_or_priced(backend: Backend) {
    let upstream = Upstream::start(provider).await;
    let gateway = Setup::new(backend)
        .config(&channels(&upstream.url, ALLOW))
        .start()
        .await;
    let client = gateway.unlimited_client().await;
    let long =
        json!([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]);
    // Path, members, and what is dropped if the channel allows nothing ("" for 400).
    let cases = [
        (CHAT, json!({"service_tier": "scale"}), "service_tier"),
        (CHAT, json!({"store": true}), "store"),
        (CHAT, json!({"models": ["gpt-5-pro"]}), "models"),
        (CHAT, json!({"enable_search": true}), ""),
        (CHAT, json!({"tools": [{"type": "web_search"}]}), ""),
        (
            RESPONSES,
            json!({"service_tier": "ultrafast", "store": true}),
            "service_tier, store",
        ),
        (RESPONSES, json!({"background": true}), ""),
        (RESPONSES, json!({"previous_response_id": "resp_0"}), ""),
        (RESPONSES, json!({"conversation": "conv_0"}), ""),
        (RESPONSES, json!({"tools": [{"type": "web_search"}]}), ""),
        (MESSAGES, json!({"speed": "fast"}), "speed"),
        (MESSAGES, json!({"inference_geo": "us"}), "inference_geo"),
        (MESSAGES, json!({"system": long}), "cache_control.ttl"),
        (
            MESSAGES,
            json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
            "",
        ),
    ];
    for (path, more, dropped) in &cases {
        let body = request(path, "strict", more);
        let reply = client.post(path, &body).await;
        let sent = upstream.take();
        if dropped.is_empty() {
            assert_eq!(reply.status, 400, "{more}: {}", reply.text());
            assert!(reply.text().contains("allows"), "{}", reply.text());
            assert!(sent.is_empty(), "{more}");
        } else {
            assert_eq!(reply.status, 200, "{more}: {}", reply.text());
            assert_eq!(reply.header("x-tollgate-dropped"), *dropped);
            for name in more.as_object().unwrap().keys() {
                let sent = &sent[0].body[name];
                let is_left_out =
                    sent.is_null() || *sent == json!(false) || !sent.to_string().contains("1h");
                assert!(is_left_out, "{more}: {sent}");
            }
            let strict = client
                .post_with(path, &body, &[("x-tollgate-strict", "true")])
                .await;
            assert_eq!(strict.status, 400, "{more}: {}", strict.text());
            assert!(upstream.take().is_empty());
        }
        // The same request to a channel that allows the option.
        if more.get("models").is_none() && more.get("enable_search").is_none() {
            let body = request(path, "open", more);
            let reply = client.post(path, &body).await;
            assert_eq!(reply.status, 200, "{more}: {}", reply.text());
            assert_eq!(reply.header("x-tollgate-dropped"), "", "{more}");
            let sent = upstream.take();
            for (name, value) in more.as_object().unwrap() {
                assert_eq!(sent[0].body[name], *value, "{more}");
            }
        }
    }
    for name in ["Service_Tier", "STORE", "Previous_response_id"] {
        let body = request(RESPONSES, "open", &json!({name: "flex"}));
        let reply = client.post(RESPONSES, &body).await;
        let message = rejected(&reply, 400, name);
        assert!(message.contains(&name.to_lowercase()), "{message}");
    }
    assert!(upstream.take().is_empty());
    check_betas(&client, &upstream).await;
    check_tiers(&client, &upstream).await;
    gateway.close().await;
}

/// Beta features that have a price are dropped from the header, and the others are sent.
async fn check_betas(client: &Client, upstream: &Upstream) {
    let header = (
        "anthropic-beta",
        "interleaved-thinking-2025-05-14, context-1m-2025-08-07",
    );
    for (which, dropped, sent) in [
        (
            "strict",
            "anthropic-beta:context-1m-2025-08-07",
            "interleaved-thinking-2025-05-14",
        ),
        (
            "open",
            "",
            "interleaved-thinking-2025-05-14, context-1m-2025-08-07",
        ),
    ] {
        let body = request(MESSAGES, which, &json!({}));
        let reply = client.post_with(MESSAGES, &body, &[header]).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.header("x-tollgate-dropped"), dropped);
        let betas = &upstream.take()[0].betas;
        let betas: Vec<_> = betas.iter().flat_map(|value| value.split(", ")).collect();
        assert_eq!(betas.join(", "), sent);
    }
}

/// A tier with a price is forwarded by every channel, and charged at its multiple: 1,000 × 0.001 + 100 × 0.01 = 2.
async fn check_tiers(client: &Client, upstream: &Upstream) {
    for (tier, cost) in [("default", 2.0), ("priority", 4.0), ("Flex", 1.0)] {
        for path in [CHAT, RESPONSES] {
            let (_, before) = client.balances().await;
            let body = request(path, "strict", &json!({"service_tier": tier}));
            let reply = client.post(path, &body).await;
            assert_eq!(
                (reply.status, reply.header("x-tollgate-dropped")),
                (200, ""),
                "{}",
                reply.text()
            );
            assert_eq!(upstream.take()[0].body["service_tier"], tier);
            let (_, after) = client.balances().await;
            assert!(
                (after - before - cost).abs() < 1e-6,
                "{tier}: {}",
                after - before
            );
        }
    }
    // A tier in a field of another format has no price, and no channel gets it.
    for (field, which) in [
        ("serviceTier", "strict"),
        ("speed", "strict"),
        ("speed", "open"),
    ] {
        let (_, before) = client.balances().await;
        let body = request(CHAT, which, &json!({field: "flex"}));
        let reply = client.post(CHAT, &body).await.expect(200);
        assert_eq!(reply.header("x-tollgate-dropped"), field);
        assert!(upstream.take()[0].body[field].is_null(), "{field}");
        let (_, after) = client.balances().await;
        assert!((after - before - 2.0).abs() < 1e-6, "{field}");
    }
    let two_tiers = json!({"service_tier": "priority", "speed": "flex"});
    let reply = client
        .post(CHAT, &request(CHAT, "strict", &two_tiers))
        .await;
    rejected(&reply, 400, "speed");
    // The format of Anthropic cannot carry a tier of OpenAI: the request is rejected, so nobody pays for a tier that was not sent.
    let mut body = request(CHAT, "strict", &json!({"service_tier": "priority"}));
    body["model"] = json!("anthropic-strict");
    rejected(&client.post(CHAT, &body).await, 400, "service_tier");
}

async fn settings_that_a_forwarded_request_loses_are_named(backend: Backend) {
    let upstream = Upstream::start(provider).await;
    let channel = ChannelConfig::new("openai", "openai").url(&upstream.url);
    let config = channel.models(&["gpt-5"]).text();
    let gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.unlimited_client().await;
    for path in [CHAT, RESPONSES] {
        let mut body = request(path, "strict", &json!({"temperature": 0.2}));
        body["model"] = json!("gpt-5");
        let reply = client.post(path, &body).await.expect(200);
        assert_eq!(reply.header("x-tollgate-dropped"), "temperature");
        assert!(upstream.take()[0].body["temperature"].is_null(), "{path}");
        let strict = [("x-tollgate-strict", "true")];
        let reply = client.post_with(path, &body, &strict).await;
        rejected(&reply, 400, "temperature");
        assert!(upstream.take().is_empty());
    }
    gateway.close().await;
}

async fn a_reload_changes_what_a_channel_allows(backend: Backend) {
    let upstream = Upstream::start(provider).await;
    let gateway = Setup::new(backend)
        .config(&channels(&upstream.url, ""))
        .start()
        .await;
    let client = gateway.unlimited_client().await;
    let body = request(
        RESPONSES,
        "open",
        &json!({"previous_response_id": "resp_0"}),
    );
    rejected(&client.post(RESPONSES, &body).await, 400, "stored_context");
    gateway
        .reload(
            &channels(&upstream.url, ALLOW),
            "channels and prices were reloaded",
        )
        .await;
    client.post(RESPONSES, &body).await.expect(200);
    gateway.close().await;
}

/// A server whose responses report searches: 3 in the format of Anthropic, with 300 tokens that were also written to the cache, 200 of them for an
/// hour; 2 in the format of OpenAI.
fn searching(received: &Received) -> (u16, &'static str, String) {
    let (status, content_type, text) = provider(received);
    let mut body: Value = serde_json::from_str(&text).unwrap();
    if received.path == "/v1/messages" {
        body["usage"] = json!({"input_tokens": 1000, "output_tokens": 100, "cache_creation_input_tokens": 300,
            "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
            "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 1}});
    } else if received.path == "/responses" {
        let call = json!({"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "a"}});
        body["output"]
            .as_array_mut()
            .unwrap()
            .extend([call.clone(), call]);
    }
    if received.path.ends_with("/completions") {
        body["usage"] = json!({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100,
            "prompt_tokens_details": {"audio_tokens": 40, "image_tokens": 50}, "completion_tokens_details": {"audio_tokens": 10}});
    }
    match received.body["stream"] == true {
        true => events(streamed(&received.path, &body)),
        false => (status, content_type, body.to_string()),
    }
}

/// The same response as a stream.
fn streamed(path: &str, body: &Value) -> String {
    let all = match path {
        "/v1/messages" => {
            let mut begin = body.clone();
            begin["content"] = json!([]);
            begin["stop_reason"] = Value::Null;
            begin["usage"]["output_tokens"] = json!(1);
            vec![
                json!({"type": "message_start", "message": begin}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "yes"}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": body["usage"]}),
                json!({"type": "message_stop"}),
            ]
        }
        "/responses" => vec![
            json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}}),
            json!({"type": "response.output_text.delta", "sequence_number": 1, "item_id": "m", "output_index": 0, "content_index": 0, "delta": "yes"}),
            json!({"type": "response.completed", "sequence_number": 2, "response": body}),
        ],
        _ => vec![
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up",
                "choices": [{"index": 0, "delta": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]}),
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up", "choices": [], "usage": body["usage"]}),
        ],
    };
    let event = |data: &Value| {
        let name = data["type"].as_str();
        let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
        format!("{name}data: {data}\n\n")
    };
    let end = if path.ends_with("/completions") {
        "data: [DONE]\n\n"
    } else {
        ""
    };
    all.iter().map(event).collect::<String>() + end
}

async fn parts_with_a_price_are_held_and_charged_separately(backend: Backend) {
    let upstream = Upstream::start(searching).await;
    let parts = "cache_write_1h_per_million = 2000\nper_web_search = 0.5\naudio_input_per_million = 3000\naudio_output_per_million = 20000\nimage_input_per_million = 2000\n";
    let config =
        channels(&upstream.url, "").replace("service_tiers", &format!("{parts}service_tiers"));
    let gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.funded_client("1000").await;
    let long =
        json!([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]);
    let tool = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    let mut used = 0.0;
    let cases = [
        // 1,000 × 0.001 + 100 × 0.001 + 200 × 0.002 + 100 × 0.01 + 3 × 0.5; a fetched page has no price.
        (MESSAGES, json!({"system": long, "tools": tool}), 4.0),
        // 1,000 × 0.001 + 100 × 0.01 + 2 × 0.5
        (RESPONSES, json!({"tools": [{"type": "web_search"}]}), 3.0),
        // 910 × 0.001 + 40 × 0.003 + 50 × 0.002 + 90 × 0.01 + 10 × 0.02
        (CHAT, json!({}), 2.23),
    ];
    for (stream, (path, more, cost)) in [false, true]
        .into_iter()
        .flat_map(|stream| cases.iter().map(move |case| (stream, case)))
    {
        let mut body = request(path, "strict", more);
        body["stream"] = json!(stream);
        let reply = client.post(path, &body).await;
        assert_eq!(
            (reply.status, reply.header("x-tollgate-dropped")),
            (200, ""),
            "{}",
            reply.text()
        );
        used += cost;
        client.check_balances(1000.0 - used, used).await;
    }
    // The metric includes the tokens of the parts: 1,300 + 1,000 + 1,000, plain and streamed.
    for (channel, input) in [("anthropic-strict", 2600.0), ("openai-strict", 4000.0)] {
        let name =
            format!("tollgate_chat_tokens_total{{channel=\"{channel}\",direction=\"input\"}}");
        assert_eq!(gateway.metric(&name).await, input, "{channel}");
    }
    let rows = gateway
        .query("SELECT parts_cost, parts FROM chats ORDER BY id")
        .await;
    let first = r#"[["cache_write_1h",200,2000000000000,1000000],["web_search",3,500000000,1]]"#;
    let last = r#"[["audio_input",40,3000000000000,1000000],["image_input",50,2000000000000,1000000],["audio_output",10,20000000000000,1000000]]"#;
    for rows in rows.chunks(3) {
        assert_eq!(rows[0], ["1900000000", first]);
        assert_eq!(rows[1], ["1000000000", r#"[["web_search",2,500000000,1]]"#]);
        assert_eq!(rows[2], ["420000000", last]);
    }
    // A response of chat completions does not state how often the model searched.
    upstream.take();
    let search = request(CHAT, "strict", &json!({"web_search_options": {}}));
    rejected(&client.post(CHAT, &search).await, 400, "web_search_options");
    // The hold covers 50,000 tokens of search results at 0.003, 100 tokens at 0.02, and ten searches at 0.5: 157.
    upstream.take();
    let poor = gateway.user_client("poor", &["--balance", "155"]).await;
    let body = request(MESSAGES, "strict", &json!({"tools": tool}));
    rejected(&poor.post(MESSAGES, &body).await, 402, "");
    assert!(upstream.take().is_empty());
    gateway
        .execute("UPDATE chats SET parts_cost = parts_cost + 1 WHERE parts_cost = 1000000000")
        .await;
    let audit = gateway.cli(&["audit"]).await;
    assert!(
        audit.code != 0 && audit.stdout.contains("chat_arithmetic"),
        "{}",
        audit.stdout
    );
    gateway
        .execute("UPDATE chats SET parts_cost = 1000000000 WHERE parts_cost = 1000000001")
        .await;
    gateway.close().await;
}
