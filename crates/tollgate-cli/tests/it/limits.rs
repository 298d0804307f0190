//! Limits of keys, users and the gateway, and clients that hold connections and send nothing.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::harness::images::png;
use crate::harness::*;

on_sqlite!(
    posts_are_limited,
    requests_in_flight_are_limited,
    users_and_the_gateway_have_limits,
    tokens_are_limited,
    a_chat_is_in_flight_until_its_last_byte,
    silent_clients_do_not_block_other_clients
);

const GENERATIONS: &str = "/v1/images/generations";

fn image() -> Value {
    json!({ "model": "imagen-4.0-partner", "prompt": "a mill" })
}

fn batch() -> Value {
    json!({ "task_ids": ["task_x"] })
}

/// The seconds that a client must wait before it retries.
#[track_caller]
fn check_retry_after(reply: &Reply) {
    let seconds: u32 = reply.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
}

async fn posts_are_limited(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    gateway.user("busy", &[]).await;
    let limited = gateway.key("busy", &["--rpm", "4"]).await;
    let open = gateway.key("busy", &[]).await;
    let check = |reply: &Reply, left: u32| {
        let [limit, remaining, reset] = ["limit", "remaining", "reset"].map(|name| {
            let number = reply.header(&format!("x-ratelimit-{name}"));
            number.parse::<u32>().expect(name)
        });
        assert_eq!((limit, remaining), (4, left));
        assert!((1..=60).contains(&reset), "{reset}");
    };
    // Rejected submissions, uploads and batches also count.
    check(&limited.post_image(&image()).await.expect(200), 3);
    let unknown = json!({ "model": "nothing" });
    check(&limited.post_image(&unknown).await.expect(404), 2);
    let upload = async || limited.upload("a.png", "image/png", &png(3, 3)).await;
    check(&upload().await.expect(200), 1);
    let reply = limited.post("/v1/tasks/batch", &batch()).await;
    check(&reply.expect(200), 0);
    let reply = limited.post_image(&image()).await;
    reply.rejected(429, "4");
    check(&reply, 0);
    check_retry_after(&reply);
    let reply = upload().await;
    reply.rejected(429, "");
    check_retry_after(&reply);
    // GETs are not limited, and other keys are not either.
    for _ in 0..10 {
        limited.get("/v1/tasks").await.expect(200);
    }
    let reply = open.post_image(&image()).await.expect(200);
    assert_eq!(reply.header("x-ratelimit-limit"), "");
    gateway.close().await;
}

/// Starts a POST whose body is incomplete, so that the gateway waits for the remaining bytes.
async fn start_post(gateway: &TestGateway, client: &Client, body: &str) -> RawConnection {
    let mut raw = gateway.raw().await;
    let head = client.raw_json_head(GENERATIONS, body.len());
    raw.write(format!("{head}{{").as_bytes()).await;
    raw
}

async fn requests_in_flight_are_limited(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    gateway.user("busy", &[]).await;
    let limited = gateway.key("busy", &["--max-concurrency", "2"]).await;
    let open = gateway.key("busy", &[]).await;
    let body = image().to_string();
    // A GET counts while it is in flight, so a POST that starts at that moment may be rejected; the loop then starts another.
    let mut started = VecDeque::new();
    let reply = loop {
        started.push_back(start_post(&gateway, &limited, &body).await);
        let reply = limited.get("/v1/models").await;
        if reply.status != 200 {
            break reply;
        }
        assert!(started.len() < 1000, "the limit is never reached");
    };
    reply.rejected(429, "2");
    assert!(!reply.header("retry-after").is_empty());
    open.get("/v1/models").await.expect(200);
    // When one of these requests ends, its permit is free. The others are then closed.
    loop {
        let mut one = started.pop_front().expect("two were accepted");
        one.write(&body.as_bytes()[1..]).await;
        match one.status().await {
            Some(200) => break,
            other => assert_eq!(other, Some(429)),
        }
    }
    limited.get("/v1/models").await.expect(200);
    drop(started);
    let mut third = start_post(&gateway, &limited, &body).await;
    third.write(&body.as_bytes()[1..]).await;
    let status = third.status().await.expect("a response");
    assert!([200, 429].contains(&status), "{status}");
    until_true("both to be free", async || {
        let (one, two) = tokio::join!(limited.get("/v1/models"), limited.get("/v1/tasks"));
        one.status == 200 && two.status == 200
    })
    .await;
    gateway.close().await;
}

async fn users_and_the_gateway_have_limits(backend: Backend) {
    let setup = Setup::new(backend).config("limits.rpm = 5");
    let gateway = setup.start().await;
    let user = gateway.user("busy", &["--unlimited", "--rpm", "3"]).await;
    assert_has(&user, json!({ "rpm": 3, "tpm": null }));
    let one = gateway.key("busy", &[]).await;
    let two = gateway.key("busy", &[]).await;
    let post = async |client: &Client| client.post("/v1/tasks/batch", &batch()).await;
    for client in [&one, &two, &one] {
        post(client).await.expect(200);
    }
    for client in [&one, &two] {
        let reply = post(client).await;
        let message = reply.rejected(429, "");
        assert!(message.starts_with("this account"), "{message}");
        assert_eq!(reply.header("x-ratelimit-limit"), "3");
    }
    let other = gateway.user_client("other", &[]).await;
    for _ in 0..2 {
        let reply = post(&other).await.expect(200);
        assert_eq!(reply.header("x-ratelimit-limit"), "5");
    }
    let message = post(&other).await.rejected(429, "");
    assert!(message.starts_with("this gateway"), "{message}");
    gateway.close().await;
}

fn chat(words: u32, stream: bool) -> Value {
    let text = format!("[[sandbox:words={words}]]");
    let message = json!({ "role": "user", "content": text });
    json!({ "model": "gpt-5", "stream": stream, "messages": [message], "max_tokens": 50_000 })
}

async fn tokens_are_limited(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    gateway.user("busy", &[]).await;
    let limited = gateway.key("busy", &["--tpm", "100"]).await;
    let path = "/v1/chat/completions";
    // The estimate may be far over the limit; afterwards the tokens that the chat used count.
    for words in [10, 10, 200] {
        let reply = limited.post(path, &chat(words, false)).await;
        reply.expect(200);
    }
    let reply = limited.post(path, &chat(1, false)).await.expect(429);
    let message = &reply.json()["error"]["message"];
    assert_eq!(message, "this API key may use 100 tokens a minute");
    check_retry_after(&reply);
    // Images use no tokens.
    limited.post_image(&image()).await.expect(200);
    gateway.close().await;
}

async fn a_chat_is_in_flight_until_its_last_byte(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    gateway.user("busy", &[]).await;
    let limited = gateway.key("busy", &["--max-concurrency", "1"]).await;
    let body = chat(20_000, true).to_string();
    let head = limited.raw_json_head("/v1/chat/completions", body.len());
    let mut raw = gateway.raw().await;
    // The response starts, and the client does not read the remaining part.
    raw.write(format!("{head}{body}").as_bytes()).await;
    let has_status = async |status| limited.get("/v1/models").await.status == status;
    until_true("the stream to be in flight", async || has_status(429).await).await;
    drop(raw);
    until_true("its permit to be free", async || has_status(200).await).await;
    gateway.close().await;
}

async fn silent_clients_do_not_block_other_clients(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let head = client.raw_head(GENERATIONS, "Content-Length: 900\r\n");
    let half_a_head = &head[..head.len() - 20];
    let half_a_body = format!("{head}{{\"model\":");
    let http2 = "PRI * HTTP/2.0\r\n\r\nSM";
    let silent = ["", "G", http2, half_a_head, &half_a_body];
    let mut hanging = Vec::new();
    for text in silent.iter().cycle().take(500) {
        let mut raw = gateway.raw().await;
        raw.write(text.as_bytes()).await;
        hanging.push(raw);
    }
    for _ in 0..20 {
        client.get("/v1/models").await.expect(200);
    }
    client.generate(&image()).await;
    client.upload_image(&png(30, 30)).await;
    drop(hanging);
    gateway.close().await;
}
