//! Limits of keys, and clients that hold connections and say nothing.

use std::collections::VecDeque;

use serde_json::json;

use crate::gate::{Backend, Client, Gate, Raw, Reply, Setup, on_one, until};
use crate::pictures::png;

on_one!(
    posts_are_counted,
    requests_in_flight_are_counted,
    users_and_the_gateway_have_limits_too,
    tokens_are_counted,
    a_chat_is_in_flight_until_its_last_byte,
    silent_clients_block_nobody
);

async fn posts_are_counted(backend: Backend) {
    let gate = Gate::start(backend).await;
    gate.user("busy", &[]).await;
    let limited = gate.key("busy", &["--rpm", "4"]).await;
    let open = gate.key("busy", &[]).await;
    let standing = |reply: &Reply| {
        ["limit", "remaining", "reset"].map(|name| {
            let number = reply.header(&format!("x-ratelimit-{name}"));
            number
                .parse::<u32>()
                .unwrap_or_else(|_| panic!("{name}: {number:?}"))
        })
    };
    let order = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    // Refused ones, uploads and batches count as well.
    let wrong = json!({ "model": "nothing" });
    let ids = json!({ "task_ids": ["task_x"] });
    for (left, reply) in [
        (3, limited.order(&order).await.expect(200)),
        (2, limited.order(&wrong).await.expect(404)),
        (
            1,
            limited
                .upload("a.png", "image/png", &png(3, 3))
                .await
                .expect(200),
        ),
        (0, limited.post("/v1/tasks/batch", &ids).await.expect(200)),
    ] {
        let [limit, remaining, reset] = standing(&reply);
        assert_eq!((limit, remaining), (4, left));
        assert!((1..=60).contains(&reset), "{reset}");
    }
    let refused = limited.order(&order).await;
    let message = refused.error(429, "rate_limit_error");
    assert!(message.contains('4'), "{message}");
    assert_eq!(standing(&refused)[..2], [4, 0]);
    let wait: u32 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let refused = limited.upload("a.png", "image/png", &png(3, 3)).await;
    refused.error(429, "rate_limit_error");
    assert!(!refused.header("retry-after").is_empty());
    // Reading is free, and so is every other key.
    for _ in 0..10 {
        limited.get("/v1/tasks").await.expect(200);
    }
    let reply = open.order(&order).await.expect(200);
    assert_eq!(reply.header("x-ratelimit-limit"), "");
    gate.close().await;
}

/// A POST that was begun and waits for the rest of its body.
async fn begun(gate: &Gate, client: &Client, body: &str) -> Raw {
    let mut raw = gate.raw().await;
    let head = format!(
        "POST /v1/images/generations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{{",
        client.secret.as_deref().unwrap(),
        body.len(),
    );
    raw.write(head.as_bytes()).await;
    raw
}

async fn requests_in_flight_are_counted(backend: Backend) {
    let gate = Gate::start(backend).await;
    gate.user("busy", &[]).await;
    let limited = gate.key("busy", &["--max-concurrency", "2"]).await;
    let open = gate.key("busy", &[]).await;
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" }).to_string();
    // A look counts while it lasts, so one that is begun at that moment may be refused: then another is begun.
    let mut begun_ones = VecDeque::new();
    let refused = loop {
        begun_ones.push_back(begun(&gate, &limited, &body).await);
        let reply = limited.get("/v1/models").await;
        if reply.status != 200 {
            break reply;
        }
        assert!(begun_ones.len() < 1000, "the limit is never reached");
    };
    let message = refused.error(429, "rate_limit_error");
    assert!(message.contains('2'), "{message}");
    assert!(!refused.header("retry-after").is_empty());
    open.get("/v1/models").await.expect(200);
    // One ends, the others go away.
    loop {
        let mut one = begun_ones.pop_front().expect("two were let in");
        one.write(&body.as_bytes()[1..]).await;
        match one.answer().await.map(|(status, ..)| status) {
            Some(200) => break,
            other => assert_eq!(other, Some(429)),
        }
    }
    limited.get("/v1/models").await.expect(200);
    drop(begun_ones);
    let mut third = begun(&gate, &limited, &body).await;
    third.write(&body.as_bytes()[1..]).await;
    let (status, ..) = third.answer().await.expect("an answer");
    assert!([200, 429].contains(&status), "{status}");
    until("both to be free", async || {
        let (one, two) = tokio::join!(limited.get("/v1/models"), limited.get("/v1/tasks"));
        (one.status == 200 && two.status == 200).then_some(())
    })
    .await;
    gate.close().await;
}

async fn users_and_the_gateway_have_limits_too(backend: Backend) {
    let gate = Setup::new(backend).config("limits.rpm = 5").start().await;
    let user = gate.user("busy", &["--unlimited", "--rpm", "3"]).await;
    assert_eq!((&user["rpm"], &user["tpm"]), (&json!(3), &json!(null)));
    let (one, two) = (gate.key("busy", &[]).await, gate.key("busy", &[]).await);
    let ids = json!({ "task_ids": ["task_x"] });
    let ask = async |client: &Client| client.post("/v1/tasks/batch", &ids).await;
    for client in [&one, &two, &one] {
        ask(client).await.expect(200);
    }
    for client in [&one, &two] {
        let refused = ask(client).await;
        let message = refused.error(429, "rate_limit_error");
        assert!(message.starts_with("this account"), "{message}");
        assert_eq!(refused.header("x-ratelimit-limit"), "3");
    }
    gate.user("other", &[]).await;
    let other = gate.key("other", &[]).await;
    assert_eq!(
        ask(&other).await.expect(200).header("x-ratelimit-limit"),
        "5"
    );
    ask(&other).await.expect(200);
    let message = ask(&other).await.error(429, "rate_limit_error");
    assert!(message.starts_with("this gateway"), "{message}");
    gate.close().await;
}

async fn tokens_are_counted(backend: Backend) {
    let gate = Gate::start(backend).await;
    gate.user("busy", &[]).await;
    let limited = gate.key("busy", &["--tpm", "100"]).await;
    let chat = |words: u32| {
        let text = format!("[[sandbox:words={words}]]");
        json!({ "model": "gpt-5", "max_tokens": 5000, "messages": [{ "role": "user", "content": text }] })
    };
    let ask = async |words| limited.post("/v1/chat/completions", &chat(words)).await;
    // An estimate may be far beyond the limit; what counts afterwards is what it took.
    for _ in 0..2 {
        ask(10).await.expect(200);
    }
    ask(200).await.expect(200);
    let refused = ask(1).await.expect(429);
    let message = &refused.json()["error"]["message"];
    assert_eq!(message, "this API key may use 100 tokens a minute");
    let wait: u32 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    // Pictures take none.
    let order = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    limited.order(&order).await.expect(200);
    gate.close().await;
}

async fn a_chat_is_in_flight_until_its_last_byte(backend: Backend) {
    let gate = Gate::start(backend).await;
    gate.user("busy", &[]).await;
    let limited = gate.key("busy", &["--max-concurrency", "1"]).await;
    let body = json!({
        "model": "gpt-5",
        "stream": true,
        "messages": [{ "role": "user", "content": "[[sandbox:words=20000]]" }],
    })
    .to_string();
    let mut raw = gate.raw().await;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        limited.secret.as_deref().unwrap(),
        body.len(),
    );
    // Its answer has begun, and nobody takes the rest of it.
    raw.write(head.as_bytes()).await;
    until("the stream to be in flight", async || {
        let reply = limited.get("/v1/models").await;
        (reply.status == 429).then_some(())
    })
    .await;
    drop(raw);
    until("its place to be free", async || {
        let reply = limited.get("/v1/models").await;
        (reply.status == 200).then_some(())
    })
    .await;
    gate.close().await;
}

async fn silent_clients_block_nobody(backend: Backend) {
    let gate = Setup::new(backend).start().await;
    let client = gate.somebody().await;
    let key = client.secret.clone().unwrap();
    let half_a_head =
        format!("POST /v1/images/generations HTTP/1.1\r\nAuthorization: Bearer {key}");
    let half_a_body =
        format!("{half_a_head}\r\nHost: x\r\nContent-Length: 900\r\n\r\n{{\"model\":");
    let silent = [
        "",
        "G",
        "PRI * HTTP/2.0\r\n\r\nSM",
        &half_a_head,
        &half_a_body,
    ];
    let mut hanging = Vec::new();
    for text in silent.iter().cycle().take(500) {
        let mut raw = gate.raw().await;
        raw.write(text.as_bytes()).await;
        hanging.push(raw);
    }
    for _ in 0..20 {
        client.get("/v1/models").await.expect(200);
    }
    client
        .make(&json!({ "model": "imagen-4.0-partner", "prompt": "a mill" }))
        .await;
    client.uploaded(&png(30, 30)).await;
    drop(hanging);
    gate.close().await;
}
