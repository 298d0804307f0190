//! Which channel and key serve a chat, which failure puts what into cooldown, and what happens when no channel is left.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tollgate_fakes::{Fake, Options, Provider, Scenario, start};

use super::charges::prices;
use super::format::Format;
use super::providers::{channel, chat_records, fake};
use super::request::ChatRequest;
use crate::harness::*;

on_sqlite!(
    priority_takes_precedence_over_weight,
    keys_are_used_in_rotation_and_have_separate_cooldowns,
    failures_cause_cooldowns,
    the_circuit_breaker_opens_and_closes,
    no_failover_after_the_first_byte,
    connections_have_a_timeout,
    errors_are_returned_if_there_is_no_other_channel,
    a_full_channel_is_skipped,
    requests_of_one_end_user_use_one_channel,
    running_streams_continue_after_a_reload,
    channel_test_uses_every_key,
);

const MODEL: &str = "gpt-4o";

/// A gateway with channels to two fakes of OpenAI, `a` and `b`.
struct TwoChannels {
    gateway: TestGateway,
    client: Client,
    a: Fake,
    b: Fake,
}

impl TwoChannels {
    async fn start(backend: Backend, a_more: &str, b_more: &str) -> Self {
        let (a, b) = (fake(Provider::OpenAi).await, fake(Provider::OpenAi).await);
        let config = channel("a", Provider::OpenAi, &a, a_more)
            + &channel("b", Provider::OpenAi, &b, b_more);
        let (gateway, client) = TestGateway::with_config(backend, &config).await;
        Self {
            gateway,
            client,
            a,
            b,
        }
    }

    /// How many requests each fake got since the last call.
    fn counts(&self) -> (usize, usize) {
        let counts = (self.a.requests().len(), self.b.requests().len());
        self.a.clear();
        self.b.clear();
        counts
    }

    /// Checks that this number of chats succeed, and that each fake got its number of requests.
    async fn check(&self, chats: usize, counts: (usize, usize), what: &str) {
        for _ in 0..chats {
            assert_eq!(chat(&self.client, MODEL).await, 200, "{what}");
        }
        assert_eq!(self.counts(), counts, "{what}");
    }
}

/// Sends a chat that is not streamed; returns the status.
async fn chat(client: &Client, model: &str) -> u16 {
    let request = ChatRequest::of_text(Format::Chat, model, false, "hi");
    let path = Format::Chat.vendor_path(model, false);
    client.post(&path, &request.body).await.status
}

async fn priority_takes_precedence_over_weight(backend: Backend) {
    let two = TwoChannels::start(backend, "priority = 1\nweight = 1000", "priority = 0").await;
    two.check(8, (0, 8), "").await;
    two.gateway.close().await;

    let two = TwoChannels::start(backend, "weight = 3", "weight = 1").await;
    let statuses = join_all((0..200).map(|_| chat(&two.client, MODEL))).await;
    assert!(statuses.iter().all(|status| *status == 200));
    let (a, b) = two.counts();
    // 150 is expected; the bounds are six standard deviations away.
    assert!((113..=187).contains(&a) && a + b == 200, "{a} {b}");
    two.gateway.close().await;
}

async fn keys_are_used_in_rotation_and_have_separate_cooldowns(backend: Backend) {
    let keys = "api_keys = [\"up-1\", \"up-2\", \"up-3\"]";
    let two = TwoChannels::start(backend, keys, "priority = 1").await;
    let uses = |key: &str| {
        let key = format!("Bearer {key}");
        let requests = two.a.requests().into_iter();
        let with_key = requests.filter(|r| r.header("authorization") == Some(&key));
        with_key.count()
    };
    for _ in 0..6 {
        assert_eq!(chat(&two.client, MODEL).await, 200);
    }
    assert_eq!(["up-1", "up-2", "up-3"].map(uses), [2, 2, 2]);
    two.counts();
    two.a.set("key-refused=up-2".parse().unwrap());
    for _ in 0..9 {
        assert_eq!(chat(&two.client, MODEL).await, 200);
    }
    assert_eq!(uses("up-2"), 1, "used once, then it has a cooldown");
    assert_eq!(two.counts(), (10, 0), "other keys and the channel go on");
    two.gateway.close().await;
}

async fn failures_cause_cooldowns(backend: Backend) {
    // Whether the cooldown also covers other models of the channel.
    for (scenario, applies_to_channel) in [
        ("rate-limited=600", true),
        ("quota-exhausted", true),
        ("key-refused", true),
        ("model-missing", false),
    ] {
        let two = TwoChannels::start(backend, "", "priority = 1").await;
        two.a.queue(scenario.parse().unwrap());
        two.check(1, (1, 1), scenario).await;
        two.check(1, (0, 1), scenario).await;
        assert_eq!(chat(&two.client, "gpt-5").await, 200, "{scenario}");
        let expected = if applies_to_channel { (0, 1) } else { (1, 0) };
        assert_eq!(two.counts(), expected, "{scenario}: another model");
        let row = chat_records(&two.gateway, "attempts, channel")
            .await
            .remove(0);
        let failover = row[0].contains("\"channel\":\"a\"") && row[1] == "b";
        assert!(failover, "{row:?}");
        two.gateway.close().await;
    }
}

async fn the_circuit_breaker_opens_and_closes(backend: Backend) {
    let two = TwoChannels::start(backend, "", "priority = 1").await;
    two.a.set(Scenario::Status(500, None));
    two.check(5, (5, 5), "closed").await;
    two.check(5, (0, 5), "open").await;
    two.a.set(Scenario::Normal);
    until_true("the circuit breaker to close", async || {
        assert_eq!(chat(&two.client, MODEL).await, 200);
        two.counts().0 == 1
    })
    .await;
    two.check(3, (3, 0), "closed again").await;
    two.gateway.close().await;
}

async fn no_failover_after_the_first_byte(backend: Backend) {
    let two = TwoChannels::start(backend, "", "priority = 1").await;
    for format in Format::ALL {
        let request = ChatRequest::of_text(format, MODEL, true, "hello there");
        for scenario in [
            Scenario::ErrorFirst,
            Scenario::ResetBeforeHead,
            Scenario::Html200,
        ] {
            two.a.queue(scenario);
            let reply = format.send(&two.client, MODEL, true, &request.body).await;
            assert_eq!(reply.unwrap().text, "echo: hello there", "{format:?}");
            assert_eq!(two.counts(), (1, 1), "{format:?}");
            two.check(1, (1, 0), "one failure opens nothing").await;
        }
        two.a.queue(Scenario::ResetMidBody { after: 4 });
        let path = format.vendor_path(MODEL, true);
        let mut reply = two.client.open(&path, &request.body).await;
        assert_eq!(reply.status, 200);
        let last = reply.events().await.pop().unwrap();
        assert!(format.error_event(&last).is_some(), "{last:?}");
        assert_eq!(two.counts(), (1, 0), "{format:?}: it has started");
    }
    two.gateway.close().await;
}

async fn connections_have_a_timeout(backend: Backend) {
    // This listener accepts connections without a TLS handshake: without a separate timeout the gateway would wait as long as for a first byte.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", silent.local_addr().unwrap());
    let b = fake(Provider::OpenAi).await;
    let b = channel("b", Provider::OpenAi, &b, "priority = 1");
    for (everywhere, here) in [
        ("", "connect_s = 1\n"),
        ("time_limits.chat_connect_s = 1\n", ""),
    ] {
        let config = format!(
            "{everywhere}[[channel]]\nname = \"a\"\nkind = \"openai\"\nbase_url = \"{url}\"\napi_keys = [\"k\"]\n\
             models = [\"{MODEL}\"]\n{here}{b}"
        );
        let (gateway, client) = TestGateway::with_config(backend, &config).await;
        assert_eq!(chat(&client, MODEL).await, 200);
        let rows = chat_records(&gateway, "channel, attempts").await;
        let timed_out = rows[0][1].contains("\"outcome\":\"Connect\"");
        assert!(
            rows.len() == 1 && rows[0][0] == "b" && timed_out,
            "{rows:?}"
        );
        gateway.close().await;
    }
}

async fn errors_are_returned_if_there_is_no_other_channel(backend: Backend) {
    for (scenario, status, word, requests) in [
        ("status=500", 502, "BAD_GATEWAY", 5),
        ("rate-limited=600", 429, "RESOURCE_EXHAUSTED", 1),
        ("key-refused", 502, "BAD_GATEWAY", 1),
        ("hang", 504, "", 1),
        ("status=400", 400, "INVALID_ARGUMENT", 1),
    ] {
        let upstream = fake(Provider::OpenAi).await;
        let config = channel("only", Provider::OpenAi, &upstream, "first_byte_s = 1");
        let (gateway, client) = TestGateway::with_config(backend, &config).await;
        upstream.set(scenario.parse().unwrap());
        let request = ChatRequest::of_text(Format::Generate, MODEL, false, "hi");
        let path = Format::Generate.enveloped_path(MODEL, false);
        let reply = client.post(&path, &request.body).await.expect(status);
        let body = reply.json();
        let message = Format::Generate.error(status, &body);
        let is_word = word.is_empty() || body["error"]["status"] == word;
        assert!(is_word, "{scenario}: {body}");
        let address = upstream.address().to_string();
        assert!(!message.contains(&address), "{message}");
        assert_eq!(upstream.requests().len(), requests, "{scenario}");
        if status == 429 {
            let seconds: u64 = reply.header("retry-after").parse().unwrap();
            assert!((590..=601).contains(&seconds), "{seconds}");
            assert_eq!(chat(&client, MODEL).await, 429);
            assert_eq!(upstream.requests().len(), requests, "a cooldown");
            // The cooldown covers the user whose request failed; it covers all users after another user's request fails too.
            for (tried, seen) in [(1, "not for another user"), (1, "now for all")] {
                let other = gateway.unlimited_client().await;
                assert_eq!(chat(&other, MODEL).await, 429);
                assert_eq!(upstream.requests().len(), requests + tried, "{seen}");
            }
        }
        gateway.close().await;
    }
}

async fn a_full_channel_is_skipped(backend: Backend) {
    let limit = "max_concurrency = 1\n";
    // The gateway also waits for a provider that hangs after the client has disconnected.
    let second = format!("{limit}priority = 1\n[time_limits]\nchat_first_byte_s = 10");
    let two = TwoChannels::start(backend, limit, &second).await;
    for fake in [&two.a, &two.b] {
        fake.set(Scenario::Hang);
    }
    let hanging = join_all((0..2).map(|_| chat(&two.client, MODEL)));
    let full = async {
        let are_busy = async || two.a.open_streams() == 1 && two.b.open_streams() == 1;
        until_true("both to be busy", are_busy).await;
        for format in Format::ALL {
            let request = ChatRequest::of_text(format, MODEL, true, "hi");
            let path = format.vendor_path(MODEL, true);
            let reply = two.client.post(&path, &request.body).await.expect(503);
            format.error(503, &reply.json());
            assert_ne!(reply.header("retry-after"), "", "{format:?}");
        }
    };
    tokio::select! {
        _ = hanging => panic!("they hang"),
        () = full => {}
    }
    for fake in [&two.a, &two.b] {
        fake.set(Scenario::Normal);
    }
    let is_free = async || chat(&two.client, MODEL).await == 200;
    until_true("a free permit", is_free).await;
    two.gateway.close().await;
}

async fn requests_of_one_end_user_use_one_channel(backend: Backend) {
    let two = TwoChannels::start(backend, "", "").await;
    let mut seen = [0, 0];
    for user in 0..16 {
        let name = format!("user-{user}");
        for format in [Format::Chat, Format::Responses, Format::Messages] {
            let mut request = ChatRequest::of_text(format, MODEL, false, "hi");
            match format {
                Format::Messages => request.body["metadata"] = json!({"user_id": name}),
                _ => request.body["user"] = json!(name),
            }
            let reply = format.send(&two.client, MODEL, false, &request.body).await;
            reply.unwrap();
        }
        match two.counts() {
            (3, 0) => seen[0] += 1,
            (0, 3) => seen[1] += 1,
            other => panic!("user {user} went to both: {other:?}"),
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "one channel: {seen:?}");
    two.gateway.close().await;
}

async fn running_streams_continue_after_a_reload(backend: Backend) {
    let delay = Duration::from_millis(150);
    let options = Options {
        delay,
        ..Options::default()
    };
    let before = start(Provider::OpenAi, options).await.unwrap();
    let after = fake(Provider::OpenAi).await;
    let old = prices(&[MODEL]) + &channel("before", Provider::OpenAi, &before, "");
    let gateway = Setup::new(backend).config(&old).start().await;
    let client = gateway.funded_client("1000").await;
    let request = ChatRequest::of_text(Format::Chat, MODEL, true, "hi").max_tokens(50);
    let path = Format::Chat.vendor_path(MODEL, true);
    let mut stream = client.open(&path, &request.body).await;
    assert!(stream.event().await.is_some());

    let free = "[price.\"gpt-4o\"]\ninput_per_million = 0\n".to_owned();
    gateway.set_config(&(free + &channel("after", Provider::OpenAi, &after, "")));
    gateway.signal("HUP").await;
    until_true("the new channel", async || {
        assert_eq!(chat(&client, MODEL).await, 200);
        !after.requests().is_empty()
    })
    .await;
    let (_, used_before) = client.balances().await;
    let last = stream.events().await.pop().unwrap();
    assert!(Format::Chat.is_end(&last), "{last:?}");
    let (_, used) = client.balances().await;
    assert!(
        used >= used_before && used > 0.0,
        "at the price of its start"
    );
    assert_eq!(chat(&client, MODEL).await, 200);
    assert_eq!(client.balances().await.1, used, "the new price");
    gateway.close().await;
}

async fn channel_test_uses_every_key(backend: Backend) {
    let models = "models = [\"gpt-4o\"]";
    let keys = format!("api_keys = [\"up-1\", \"up-2\"]\n{models}");
    let two = TwoChannels::start(backend, &keys, models).await;
    let output = two.gateway.cli(&["channel", "test", "a"]).await;
    assert!(
        output.code == 0 && output.stdout.contains("echo"),
        "{output:?}"
    );
    assert_eq!(two.counts(), (2, 0));
    two.a.set("key-refused=up-2".parse().unwrap());
    let output = two.gateway.cli(&["channel", "test", "a"]).await;
    assert_eq!(output.code, 1, "{output:?}");
    let all = output.stdout + &output.stderr;
    assert!(!all.contains("up-1") && !all.contains("up-2"), "{all}");
    assert_eq!(two.counts(), (2, 0));
    let output = two.gateway.cli(&["channel", "test", "nowhere"]).await;
    assert_eq!(output.code, 1, "{output:?}");
    two.gateway.close().await;
}
