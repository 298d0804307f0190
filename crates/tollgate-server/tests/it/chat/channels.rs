//! Which channel and key a chat goes to, what rests after which trouble, and what happens when nothing is left.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tollgate_fakes::{Fake, Options, Provider, Scenario, start};

use super::money::prices;
use super::site::{channel, fake, payer, records};
use super::talk::Talk;
use super::wire::Wire;
use crate::gate::{Backend, Client, Gate, Setup, on_one, until};

on_one!(
    priority_comes_before_weight,
    keys_take_turns_and_rest_alone,
    what_is_tired_rests,
    the_circuit_opens_and_closes,
    another_channel_only_before_the_first_byte,
    a_connection_has_its_time,
    when_nothing_is_left,
    a_full_channel_is_passed_over,
    users_keep_to_their_channel,
    a_new_configuration_while_streams_run,
    channel_test_asks_with_every_key,
);

const MODEL: &str = "gpt-4o";

/// A gateway before two fakes of OpenAI, `a` and `b`.
struct Pair {
    gate: Gate,
    client: Client,
    a: Fake,
    b: Fake,
}

impl Pair {
    async fn start(backend: Backend, a_more: &str, b_more: &str) -> Self {
        let (a, b) = (fake(Provider::OpenAi).await, fake(Provider::OpenAi).await);
        let config = channel("a", Provider::OpenAi, &a, a_more)
            + &channel("b", Provider::OpenAi, &b, b_more);
        let gate = Setup::new(backend).config(&config).start().await;
        let client = gate.somebody().await;
        Self { gate, client, a, b }
    }

    /// How often each was asked, which is forgotten.
    fn asked(&self) -> (usize, usize) {
        let counts = (self.a.requests().len(), self.b.requests().len());
        self.a.clear();
        self.b.clear();
        counts
    }
}

/// Asks without a stream; the status.
async fn ask(client: &Client, model: &str) -> u16 {
    let talk = Talk::saying(Wire::Chat, model, false, "hi");
    client
        .post(&Wire::Chat.bare_path(model, false), &talk.body)
        .await
        .status
}

async fn priority_comes_before_weight(backend: Backend) {
    let pair = Pair::start(backend, "priority = 1\nweight = 1000", "priority = 0").await;
    for _ in 0..8 {
        assert_eq!(ask(&pair.client, MODEL).await, 200);
    }
    assert_eq!(pair.asked(), (0, 8));
    pair.gate.close().await;

    let pair = Pair::start(backend, "weight = 3", "weight = 1").await;
    let statuses = join_all((0..200).map(|_| ask(&pair.client, MODEL))).await;
    assert!(statuses.iter().all(|status| *status == 200));
    let (a, b) = pair.asked();
    // 150 is expected; the bounds are six standard deviations away.
    assert!((113..=187).contains(&a) && a + b == 200, "{a} {b}");
    pair.gate.close().await;
}

async fn keys_take_turns_and_rest_alone(backend: Backend) {
    let keys = "api_keys = [\"up-1\", \"up-2\", \"up-3\"]";
    let pair = Pair::start(backend, keys, "priority = 1").await;
    let used = |fake: &Fake, key: &str| {
        let key = format!("Bearer {key}");
        let seen = fake.requests().into_iter();
        seen.filter(|seen| seen.header("authorization") == Some(&key))
            .count()
    };
    for _ in 0..6 {
        assert_eq!(ask(&pair.client, MODEL).await, 200);
    }
    for key in ["up-1", "up-2", "up-3"] {
        assert_eq!(used(&pair.a, key), 2, "{key}");
    }
    pair.asked();
    pair.a.set(Scenario::KeyRefused {
        key: Some("up-2".to_owned()),
    });
    for _ in 0..9 {
        assert_eq!(ask(&pair.client, MODEL).await, 200);
    }
    assert_eq!(used(&pair.a, "up-2"), 1, "asked once, then it rests");
    assert_eq!(
        pair.asked(),
        (10, 0),
        "the others go on, and so does the channel"
    );
    pair.gate.close().await;
}

async fn what_is_tired_rests(backend: Backend) {
    for (behaviour, others_too) in [
        (Scenario::RateLimited { retry_after: 600 }, true),
        (Scenario::QuotaExhausted, true),
        (Scenario::KeyRefused { key: None }, true),
        (Scenario::ModelMissing, false),
    ] {
        let pair = Pair::start(backend, "", "priority = 1").await;
        pair.a.queue(behaviour.clone());
        assert_eq!(ask(&pair.client, MODEL).await, 200, "{behaviour:?}");
        assert_eq!(pair.asked(), (1, 1), "{behaviour:?}");
        assert_eq!(ask(&pair.client, MODEL).await, 200, "{behaviour:?}");
        assert_eq!(pair.asked(), (0, 1), "{behaviour:?}");
        assert_eq!(ask(&pair.client, "gpt-5").await, 200, "{behaviour:?}");
        let expected = if others_too { (0, 1) } else { (1, 0) };
        assert_eq!(pair.asked(), expected, "{behaviour:?}: another model");
        let rows = records(&pair.gate, "attempts, channel").await;
        assert!(
            rows[0][0].contains("\"channel\":\"a\"") && rows[0][1] == "b",
            "{rows:?}"
        );
        pair.gate.close().await;
    }
}

async fn the_circuit_opens_and_closes(backend: Backend) {
    let pair = Pair::start(backend, "", "priority = 1").await;
    pair.a.set(Scenario::Status(500, None));
    for _ in 0..5 {
        assert_eq!(ask(&pair.client, MODEL).await, 200);
    }
    assert_eq!(pair.asked(), (5, 5));
    for _ in 0..5 {
        assert_eq!(ask(&pair.client, MODEL).await, 200);
    }
    assert_eq!(pair.asked(), (0, 5), "it is left alone");
    pair.a.set(Scenario::Normal);
    until("the circuit to close", async || {
        assert_eq!(ask(&pair.client, MODEL).await, 200);
        (pair.asked().0 == 1).then_some(())
    })
    .await;
    for _ in 0..3 {
        assert_eq!(ask(&pair.client, MODEL).await, 200);
    }
    assert_eq!(pair.asked(), (3, 0));
    pair.gate.close().await;
}

async fn another_channel_only_before_the_first_byte(backend: Backend) {
    let pair = Pair::start(backend, "", "priority = 1").await;
    for wire in Wire::ALL {
        let talk = Talk::saying(wire, MODEL, true, "hello there");
        for behaviour in [
            Scenario::ErrorFirst,
            Scenario::ResetBeforeHead,
            Scenario::Html200,
        ] {
            pair.a.queue(behaviour);
            let said = wire.ask(&pair.client, MODEL, true, &talk.body).await;
            assert_eq!(said.unwrap().text, "echo: hello there", "{wire:?}");
            assert_eq!(pair.asked(), (1, 1), "{wire:?}");
            assert_eq!(ask(&pair.client, MODEL).await, 200);
            assert_eq!(pair.asked(), (1, 0), "{wire:?}: one failure opens nothing");
        }
        pair.a.queue(Scenario::ResetMidBody { after: 4 });
        let mut reply = pair
            .client
            .open(&wire.bare_path(MODEL, true), &talk.body)
            .await;
        assert_eq!(reply.status, 200);
        let events = reply.events().await;
        assert!(
            wire.error_event(events.last().unwrap()).is_some(),
            "{wire:?}: {events:?}"
        );
        assert_eq!(pair.asked(), (1, 0), "{wire:?}: it has begun");
    }
    pair.gate.close().await;
}

async fn a_connection_has_its_time(backend: Backend) {
    // Takes connections and never speaks TLS: without a limit of its own this would last as long as the first byte may.
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", mute.local_addr().unwrap());
    let b = fake(Provider::OpenAi).await;
    for (everywhere, here) in [
        ("", "connect_s = 1\n"),
        ("time_limits.chat_connect_s = 1\n", ""),
    ] {
        let a = format!(
            "[[channel]]\nname = \"a\"\nkind = \"openai\"\nbase_url = \"{url}\"\napi_keys = [\"k\"]\nmodels = [\"{MODEL}\"]\n{here}"
        );
        let config = [
            everywhere,
            &a,
            &channel("b", Provider::OpenAi, &b, "priority = 1"),
        ]
        .concat();
        let gate = Setup::new(backend).config(&config).start().await;
        let client = gate.somebody().await;
        assert_eq!(ask(&client, MODEL).await, 200);
        let attempts = records(&gate, "channel, attempts").await;
        let [record] = &attempts[..] else {
            panic!("{attempts:?}")
        };
        assert_eq!(record[0], "b");
        assert!(
            record[1].contains("\"outcome\":\"Connect\""),
            "{}",
            record[1]
        );
        gate.close().await;
    }
}

async fn when_nothing_is_left(backend: Backend) {
    for (behaviour, status, gemini, asked) in [
        (Scenario::Status(500, None), 502, "BAD_GATEWAY", 5),
        (
            Scenario::RateLimited { retry_after: 600 },
            429,
            "RESOURCE_EXHAUSTED",
            1,
        ),
        (Scenario::KeyRefused { key: None }, 502, "BAD_GATEWAY", 1),
        (Scenario::Hang, 504, "", 1),
        (Scenario::Status(400, None), 400, "INVALID_ARGUMENT", 1),
    ] {
        let upstream = fake(Provider::OpenAi).await;
        let config = channel("only", Provider::OpenAi, &upstream, "first_byte_s = 1");
        let gate = Setup::new(backend).config(&config).start().await;
        let client = gate.somebody().await;
        upstream.set(behaviour.clone());
        let talk = Talk::saying(Wire::Generate, MODEL, false, "hi");
        let reply = client
            .post(&Wire::Generate.spec_path(MODEL, false), &talk.body)
            .await;
        let body = reply.clone().expect(status).json();
        let message = Wire::Generate.error(status, &body);
        assert!(
            gemini.is_empty() || body["error"]["status"] == gemini,
            "{behaviour:?}: {body}"
        );
        assert!(
            !message.contains(&upstream.address().to_string()),
            "{message}"
        );
        assert_eq!(upstream.requests().len(), asked, "{behaviour:?}");
        if status == 429 {
            let wait: u64 = reply.header("retry-after").parse().unwrap();
            assert!((590..=601).contains(&wait), "{wait}");
            assert_eq!(ask(&client, MODEL).await, 429);
            assert_eq!(
                upstream.requests().len(),
                asked,
                "it asked to be left alone"
            );
        }
        gate.close().await;
    }
}

async fn a_full_channel_is_passed_over(backend: Backend) {
    let pair = Pair::start(
        backend,
        "max_concurrency = 1",
        "max_concurrency = 1\npriority = 1",
    )
    .await;
    pair.a.set(Scenario::Hang);
    pair.b.set(Scenario::Hang);
    let talk = Talk::saying(Wire::Chat, MODEL, false, "hi");
    let path = Wire::Chat.bare_path(MODEL, false);
    let hanging = join_all((0..2).map(|_| pair.client.post(&path, &talk.body)));
    let full = async {
        until("both to be busy", async || {
            (pair.a.open_streams() == 1 && pair.b.open_streams() == 1).then_some(())
        })
        .await;
        for wire in Wire::ALL {
            let talk = Talk::saying(wire, MODEL, true, "hi");
            let reply = pair
                .client
                .post(&wire.bare_path(MODEL, true), &talk.body)
                .await;
            wire.error(503, &reply.clone().expect(503).json());
            assert_ne!(reply.header("retry-after"), "", "{wire:?}");
        }
    };
    tokio::select! {
        _ = hanging => panic!("they hang"),
        () = full => {}
    }
    pair.a.set(Scenario::Normal);
    pair.b.set(Scenario::Normal);
    until("room", async || {
        (ask(&pair.client, MODEL).await == 200).then_some(())
    })
    .await;
    pair.gate.close().await;
}

async fn users_keep_to_their_channel(backend: Backend) {
    let pair = Pair::start(backend, "", "").await;
    let mut seen = [0, 0];
    for user in 0..16 {
        for turn in 0..3 {
            let wire = Wire::ALL[turn];
            let mut talk = Talk::saying(wire, MODEL, false, "hi");
            let name = format!("user-{user}");
            match wire {
                Wire::Messages => talk.body["metadata"] = json!({"user_id": name}),
                _ => talk.body["user"] = json!(name),
            }
            wire.ask(&pair.client, MODEL, false, &talk.body)
                .await
                .unwrap();
        }
        match pair.asked() {
            (3, 0) => seen[0] += 1,
            (0, 3) => seen[1] += 1,
            other => panic!("user {user} went to both: {other:?}"),
        }
    }
    assert!(
        seen[0] > 0 && seen[1] > 0,
        "all users on one channel: {seen:?}"
    );
    pair.gate.close().await;
}

async fn a_new_configuration_while_streams_run(backend: Backend) {
    let options = Options {
        delay: Duration::from_millis(150),
        ..Options::default()
    };
    let before = start(Provider::OpenAi, options).await.unwrap();
    let after = fake(Provider::OpenAi).await;
    let old = prices(&[MODEL]) + &channel("before", Provider::OpenAi, &before, "");
    let gate = Setup::new(backend).config(&old).start().await;
    let client = payer(&gate, "1000").await;
    let talk = Talk::saying(Wire::Chat, MODEL, true, "hi").cap(50);
    let mut stream = client
        .open(&Wire::Chat.bare_path(MODEL, true), &talk.body)
        .await;
    assert!(stream.event().await.is_some());

    let free = "[price.\"gpt-4o\"]\ninput_per_million = 0\n";
    gate.set_config(&(free.to_owned() + &channel("after", Provider::OpenAi, &after, "")));
    gate.signal("HUP").await;
    until("the new channel", async || {
        assert_eq!(ask(&client, MODEL).await, 200);
        (!after.requests().is_empty()).then_some(())
    })
    .await;
    let spent_before_end = client.purse().await.1;
    let events = stream.events().await;
    assert!(Wire::Chat.is_end(events.last().unwrap()), "{events:?}");
    let spent = client.purse().await.1;
    assert!(
        spent >= spent_before_end && spent > 0.0,
        "at the price of its beginning"
    );
    assert_eq!(ask(&client, MODEL).await, 200);
    assert_eq!(client.purse().await.1, spent, "the new price");
    gate.close().await;
}

async fn channel_test_asks_with_every_key(backend: Backend) {
    let pair = Pair::start(
        backend,
        "api_keys = [\"up-1\", \"up-2\"]\nmodels = [\"gpt-4o\"]",
        "models = [\"gpt-4o\"]",
    )
    .await;
    let said = pair.gate.cli(&["channel", "test", "a"]).await;
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("echo"), "{}", said.stdout);
    assert_eq!(pair.asked(), (2, 0));
    pair.a.set(Scenario::KeyRefused {
        key: Some("up-2".to_owned()),
    });
    let said = pair.gate.cli(&["channel", "test", "a"]).await;
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    let all = said.stdout + &said.stderr;
    assert!(!all.contains("up-1") && !all.contains("up-2"), "{all}");
    assert_eq!(pair.asked(), (2, 0));
    let said = pair.gate.cli(&["channel", "test", "nowhere"]).await;
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    pair.gate.close().await;
}
