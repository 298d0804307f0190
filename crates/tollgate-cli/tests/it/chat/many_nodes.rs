//! What two gateways on one database and one Redis share about chats: cooldowns, reasoning, stored responses.

use serde_json::json;
use tollgate_fakes::{Fake, Provider, Scenario};

use super::format::Format;
use super::providers::{channel, fake};
use super::request::{ChatRequest, TOOL};
use super::threads::openai;
use super::upstream::Upstream;
use crate::harness::*;

on_postgres!(
    a_cooldown_applies_on_other_nodes,
    a_cooldown_of_one_user_applies_to_others_after_a_second_user_fails,
    a_cooldown_ends_on_all_nodes,
    reasoning_signatures_are_shared_with_other_nodes,
    a_stored_response_is_continued_from_other_nodes,
);

const MODEL: &str = "gpt-4o";
const OWNER: &str = "the-owner-of-these-nodes";
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Two gateways with one client.
struct TwoNodes {
    redis: RedisServer,
    a: TestGateway,
    b: TestGateway,
    at_a: Client,
    at_b: Client,
}

impl TwoNodes {
    /// `None` if no Redis is available.
    async fn start(config: &str) -> Option<Self> {
        let redis = RedisServer::start_new().await?;
        let node = || {
            let setup = Setup::new(Backend::Postgres)
                .config(config)
                .admin_key(OWNER);
            let setup = setup.redis(redis.url());
            setup.env("TOLLGATE_SECRETS__KEY", SECRET)
        };
        let a = node().start().await;
        let b = node().beside(&a).start().await;
        let at_a = a.unlimited_client().await;
        let at_b = same_client(&b, &at_a);
        wait_for_subscribers(&redis, 2).await;
        Some(Self {
            redis,
            a,
            b,
            at_a,
            at_b,
        })
    }

    /// Another user's clients at both nodes.
    async fn other_user(&self) -> (Client, Client) {
        let at_a = self.a.unlimited_client().await;
        let at_b = same_client(&self.b, &at_a);
        (at_a, at_b)
    }

    /// How many cooldowns the node reports for its channel.
    async fn cooldowns(&self, gateway: &TestGateway) -> usize {
        let owner = gateway.client(Some(OWNER.to_owned()), String::new());
        let health = owner.get_json("/admin/v1/channels/only/health").await;
        let cooldowns = health["data"][0]["cooldowns"].as_array();
        cooldowns.expect("a list of cooldowns").len()
    }

    async fn wait_for_cooldowns(&self, gateway: &TestGateway, count: usize) {
        let what = format!("{count} cooldowns on the node");
        until_true(&what, async || self.cooldowns(gateway).await == count).await;
    }

    async fn close(self) {
        self.a.close().await;
        self.b.close().await;
    }
}

fn same_client(gateway: &TestGateway, client: &Client) -> Client {
    gateway.client(client.secret.clone(), client.key_id.clone())
}

async fn chat(client: &Client) -> u16 {
    let request = ChatRequest::of_text(Format::Chat, MODEL, false, "hi");
    let path = Format::Chat.vendor_path(MODEL, false);
    client.post(&path, &request.body).await.status
}

/// How many requests the fake got since the last call.
fn count(upstream: &Fake) -> usize {
    let count = upstream.requests().len();
    upstream.clear();
    count
}

async fn a_cooldown_applies_on_other_nodes(_: Backend) {
    let upstream = fake(Provider::OpenAi).await;
    let keys = "api_keys = [\"up-1\", \"up-2\"]";
    let config = channel("only", Provider::OpenAi, &upstream, keys);
    let Some(nodes) = TwoNodes::start(&config).await else {
        return;
    };
    let uses = || {
        let requests = upstream.requests().into_iter();
        let key = Some("Bearer up-2");
        requests
            .filter(|r| r.header("authorization") == key)
            .count()
    };
    upstream.set("key-refused=up-2".parse().unwrap());
    // The request succeeds with the other key, so the failure was the first key's: the cooldown covers all users.
    while uses() == 0 {
        assert_eq!(chat(&nodes.at_a).await, 200);
    }
    nodes.wait_for_cooldowns(&nodes.b, 1).await;
    let (_, stranger) = nodes.other_user().await;
    for client in [&nodes.at_b, &stranger, &nodes.at_a] {
        for _ in 0..4 {
            assert_eq!(chat(client).await, 200);
        }
    }
    assert_eq!(uses(), 1);
    // A node that starts later has the cooldown too.
    let setup = Setup::new(Backend::Postgres)
        .config(&config)
        .admin_key(OWNER);
    let setup = setup.redis(nodes.redis.url());
    let setup = setup.env("TOLLGATE_SECRETS__KEY", SECRET);
    let late = setup.beside(&nodes.a).start().await;
    nodes.wait_for_cooldowns(&late, 1).await;
    late.close().await;
    nodes.close().await;
}

async fn a_cooldown_of_one_user_applies_to_others_after_a_second_user_fails(_: Backend) {
    let upstream = fake(Provider::OpenAi).await;
    let config = channel("only", Provider::OpenAi, &upstream, "");
    let Some(nodes) = TwoNodes::start(&config).await else {
        return;
    };
    upstream.set("rate-limited=600".parse().unwrap());
    assert_eq!(chat(&nodes.at_a).await, 429);
    nodes.wait_for_cooldowns(&nodes.b, 1).await;
    assert_eq!(count(&upstream), 1);
    assert_eq!(chat(&nodes.at_b).await, 429);
    assert_eq!(count(&upstream), 0, "the same user's");
    // A user whose requests do not fail may use the channel; if a second user's request fails too, both nodes put the channel into cooldown for all.
    let (_, second) = nodes.other_user().await;
    let received = "tollgate_redis_messages_total{direction=\"received\"}";
    let before = nodes.a.metric(received).await;
    assert_eq!(chat(&second).await, 429);
    assert_eq!(count(&upstream), 1, "not for another user");
    let has_received = async || nodes.a.metric(received).await > before;
    until_true("the first node to receive it", has_received).await;
    let (third_at_a, third_at_b) = nodes.other_user().await;
    for client in [&third_at_a, &third_at_b] {
        assert_eq!(chat(client).await, 429);
        assert_eq!(count(&upstream), 0, "for all");
    }
    nodes.close().await;
}

async fn a_cooldown_ends_on_all_nodes(_: Backend) {
    let upstream = fake(Provider::OpenAi).await;
    let config = channel("only", Provider::OpenAi, &upstream, "");
    let Some(nodes) = TwoNodes::start(&config).await else {
        return;
    };
    // A success although the key is in cooldown: the provider had not requested the pause, and there is no other key.
    upstream.set("key-refused".parse().unwrap());
    assert_eq!(chat(&nodes.at_a).await, 502);
    nodes.wait_for_cooldowns(&nodes.b, 1).await;
    upstream.set(Scenario::Normal);
    assert_eq!(chat(&nodes.at_b).await, 200);
    assert_eq!(nodes.cooldowns(&nodes.b).await, 0);
    nodes.wait_for_cooldowns(&nodes.a, 0).await;
    // An operator wakes the channel on one of them.
    upstream.set("rate-limited=600".parse().unwrap());
    assert_eq!(chat(&nodes.at_b).await, 429);
    nodes.wait_for_cooldowns(&nodes.a, 1).await;
    let owner = nodes.a.client(Some(OWNER.to_owned()), String::new());
    let wake = "/admin/v1/channels/only/wake";
    owner.post(wake, &json!({})).await.expect(200);
    assert_eq!(nodes.cooldowns(&nodes.a).await, 0);
    nodes.wait_for_cooldowns(&nodes.b, 0).await;
    nodes.close().await;
}

async fn reasoning_signatures_are_shared_with_other_nodes(_: Backend) {
    let gemini = fake(Provider::Gemini).await;
    let model = "gemini-2.5-pro";
    let more = format!("models = [{{ name = \"{model}\", upstream = \"gemini-3-pro-preview\" }}]");
    let config = channel("only", Provider::Gemini, &gemini, &more);
    let Some(nodes) = TwoNodes::start(&config).await else {
        return;
    };
    for stream in [false, true] {
        let request = ChatRequest::new(Format::Chat, model, stream);
        let text = format!("think, then call tool {TOOL}");
        let request = request.thinking().tools().user(&text);
        let path = Format::Chat;
        let reply = path.send(&nodes.at_a, model, stream, &request.body).await;
        let reply = reply.unwrap();
        let keys = ["KEYS", "{tollgate:chats:1}:signature:*"];
        let written = async || {
            !nodes
                .redis
                .query::<Vec<String>>(&keys)
                .await
                .unwrap()
                .is_empty()
        };
        until_true("the signature to be written", written).await;
        let names = nodes.redis.query::<Vec<String>>(&keys).await.unwrap();
        let call = reply.calls[0].id.clone();
        assert!(!names.iter().any(|name| name.contains(&call)), "{names:?}");
        let ttl = nodes.redis.query::<i64>(&["TTL", &names[0]]).await.unwrap();
        assert!((86_000..=86_400).contains(&ttl), "{ttl}");
        gemini.clear();
        // The other node sends the provider the provider's own signature.
        let request = request.turn(&reply).results(&reply.calls, "rain");
        let reply = path.send(&nodes.at_b, model, stream, &request.body).await;
        assert_eq!(reply.unwrap().text, "echo: rain");
        let seen = gemini.requests().last().unwrap().body.to_string();
        assert!(seen.contains("thoughtSignature"), "{seen}");
        assert!(!seen.contains("skip_thought_signature_validator"), "{seen}");
        nodes.redis.query::<String>(&["FLUSHALL"]).await.unwrap();
    }
    nodes.close().await;
}

async fn a_stored_response_is_continued_from_other_nodes(_: Backend) {
    let upstream = Upstream::start(openai).await;
    let channel = ChannelConfig::new("only", "openai").url(&upstream.url);
    let channel = channel.keys(&["key-1", "key-2", "key-3"]);
    let channel = channel.lines("allow = [\"store\", \"stored_context\"]");
    let config = channel.models(&[MODEL]).text();
    let Some(nodes) = TwoNodes::start(&config).await else {
        return;
    };
    let path = "/v1/responses";
    for first in ["one", "other", "third one"] {
        let body = json!({ "model": MODEL, "input": first });
        nodes.at_a.post(path, &body).await.expect(200);
        let key = upstream.take()[0].key.clone();
        let id = format!("resp_{key}_{}", first.len());
        let all = ["KEYS", "{tollgate:chats:1}:conversation:*"];
        let written = async || {
            !nodes
                .redis
                .query::<Vec<String>>(&all)
                .await
                .unwrap()
                .is_empty()
        };
        until_true("its home to be written", written).await;
        // The other node has not seen this response. Another user cannot continue it there either.
        let (_, stranger) = nodes.other_user().await;
        let body = json!({ "model": MODEL, "input": "x", "previous_response_id": id });
        stranger.post(path, &body).await.expect(404);
        assert!(upstream.take().is_empty());
        for _ in 0..3 {
            nodes.at_b.post(path, &body).await.expect(200);
            assert_eq!(upstream.take()[0].key, key);
        }
        nodes.redis.query::<String>(&["FLUSHALL"]).await.unwrap();
    }
    nodes.close().await;
}
