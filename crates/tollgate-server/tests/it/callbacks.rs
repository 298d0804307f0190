//! Callbacks: the end of a task is told where its client asked, signed, until somebody says yes.

mod receiver;

use serde_json::{Value, json};

use crate::gate::{Backend, Client, Gate, Setup, on_both, on_one, status, until};
use crate::records::{about, names, now};
use receiver::{Post, Receiver};

on_both!(
    every_end_is_told,
    what_is_not_heard_is_told_again,
    a_hanging_receiver_delays_nobody_else,
);
on_one!(
    private_addresses_are_not_called,
    callbacks_are_their_owners_business,
    a_crash_after_the_post_tells_it_again,
);

/// Lets the gateway call the test itself.
const LOCAL: &str = "[media]\nallow_private_urls = [\"127.0.0.0/8\"]\n";
const IMAGES: &str = "/v1/images/generations";
const FILMS: &str = "/v1/video/generations";

fn setup(backend: Backend) -> Setup {
    Setup::new(backend).env("TOLLGATE_SANDBOX__VIDEO_MS", "0")
}

fn picture(prompt: &str, callback: &str) -> Value {
    json!({ "model": "grok-imagine-1.0-partner", "prompt": prompt, "callback_url": callback })
}

/// A film that names its callback where its family's other parameters are.
fn film(prompt: &str, callback: &str) -> Value {
    json!({
        "model": "grok-imagine-video-1.5", "prompt": prompt, "duration": 1, "aspect_ratio": "1:1",
        "metadata": { "callback_url": callback },
    })
}

/// Orders, which must be taken; answers the task's id.
async fn order(client: &Client, path: &str, body: &Value) -> String {
    let receipt = client.post(path, body).await.expect(200).json();
    crate::gate::task_id(&receipt)
}

async fn secret(client: &Client) -> String {
    let reply = client.get("/v1/callbacks/secret").await.expect(200).json();
    assert_eq!(names(&reply), ["secret"], "{reply}");
    reply["secret"].as_str().expect("a secret").to_owned()
}

/// What the gateway says of a task's callback.
async fn log(client: &Client, id: &str) -> Value {
    let log = client.get(&format!("/v1/tasks/{id}/callbacks")).await;
    let log = log.expect(200).json();
    assert_eq!(
        names(&log),
        ["next_at", "state", "task_id", "tries", "url"],
        "{log}"
    );
    assert_eq!(log["task_id"], id);
    log
}

/// The same when it is in that state.
async fn logged(client: &Client, id: &str, state: &str) -> Value {
    until("a callback's state", async || {
        Some(log(client, id).await).filter(|log| log["state"] == state)
    })
    .await
}

/// The statuses of a log's tries, in their order.
#[track_caller]
fn statuses(log: &Value) -> Vec<Option<u64>> {
    let tries = log["tries"].as_array().expect("tries").iter();
    let numbered = tries.enumerate().map(|(at, tried)| {
        assert_eq!(tried["number"], at + 1, "{log}");
        assert!(about(&tried["at"], now()), "{log}");
        assert!(tried["took_ms"].is_u64(), "{log}");
        assert_ne!(tried["error"].is_null(), tried["status"].is_null(), "{log}");
        tried["status"].as_u64()
    });
    numbered.collect()
}

/// Looks at a post as a careful receiver does.
#[track_caller]
fn check(post: &Post, id: &str, secret: &str) {
    assert_eq!(post.header("content-type"), "application/json");
    assert_eq!(post.header("webhook-id"), id);
    let sent: i64 = post.header("webhook-timestamp").parse().expect("seconds");
    assert!(about(&json!(sent), now()), "{sent}");
    assert!(post.is_signed_with(secret), "its signature");
    let keyless = ["authorization", "x-api-key", "cookie"];
    assert!(keyless.iter().all(|name| post.header(name).is_empty()));
}

async fn every_end_is_told(backend: Backend) {
    let gate = setup(backend).config(LOCAL).start().await;
    let client = gate.somebody().await;
    let (receiver, secret) = (Receiver::start().await, secret(&client).await);
    let made = [(IMAGES, "image"), (FILMS, "film")];
    for (path, kind) in made {
        for (prompt, ends, code) in [
            ("a mill", "completed", None),
            ("[[sandbox:fail]]", "failed", Some("provider_error")),
            ("[[sandbox:moderated]]", "failed", Some("moderated")),
            ("[[sandbox:hang]]", "failed", Some("cancelled")),
        ] {
            let to = format!("yes/{kind}/{}", code.unwrap_or("completed"));
            let url = receiver.url(&to);
            let body = match kind {
                "image" => picture(prompt, &url),
                _ => film(prompt, &url),
            };
            let id = order(&client, path, &body).await;
            if code == Some("cancelled") {
                let before = log(&client, &id).await;
                assert_eq!(before["state"], "task_unfinished", "{before}");
                assert_eq!(
                    (&before["url"], &before["tries"]),
                    (&json!(url), &json!([]))
                );
                client.cancel(&id).await.expect(200);
            }
            let told = receiver.told(&to, 1).await;
            check(&told[0], &id, &secret);
            let record = told[0].json();
            let asked = client.get(&format!("/v1/tasks/{id}")).await;
            assert_eq!(record, asked.expect(200).json(), "the record itself");
            let inner = record.get("data").unwrap_or(&record);
            assert_eq!(status(inner), ends, "{record}");
            let error = inner.get("error").and_then(|error| error["code"].as_str());
            assert_eq!(error, code, "{record}");

            let log = logged(&client, &id, "delivered").await;
            assert_eq!(statuses(&log), [Some(204)], "{log}");
            assert!(log["next_at"].is_null() && log["url"] == url, "{log}");
        }
    }
    assert_eq!(receiver.count(), 8, "each end is told once");
    assert!(!gate.log().contains(&secret), "the secret is in the log");
    gate.close().await;
}

async fn what_is_not_heard_is_told_again(backend: Backend) {
    let gate = setup(backend).config(LOCAL).start().await;
    let client = gate.somebody().await;
    let (receiver, secret) = (Receiver::start().await, secret(&client).await);
    let mut ids = Vec::new();
    for path in ["no/1", "break/1", "away", "gone"] {
        let body = picture("a mill", &receiver.url(path));
        ids.push(order(&client, IMAGES, &body).await);
    }
    let [refused, broken, away, gone] = &ids[..] else {
        panic!("four orders");
    };
    for (id, path, first) in [(refused, "no/1", Some(500)), (broken, "break/1", None)] {
        let log = logged(&client, id, "delivered").await;
        assert_eq!(statuses(&log), [first, Some(204)], "{log}");
        let posts = receiver.posts(path);
        assert_eq!(posts.len(), 2);
        for post in &posts {
            check(post, id, &secret);
        }
        assert_eq!(posts[0].json(), posts[1].json());
    }
    // A redirect is no yes, and nobody goes where it leads.
    let waits = until("a second try", async || {
        Some(log(&client, away).await).filter(|log| log["tries"].as_array().unwrap().len() >= 2)
    })
    .await;
    assert_eq!(statuses(&waits)[..2], [Some(307); 2], "{waits}");
    assert_eq!(waits["state"], "waiting");
    assert!(about(&waits["next_at"], now()), "{waits}");
    assert!(receiver.posts("yes").is_empty());
    // Who is gone wants to hear no more.
    let log = logged(&client, gone, "given_up").await;
    assert_eq!(statuses(&log), [Some(410)], "{log}");
    assert_eq!(receiver.posts("gone").len(), 1);
    gate.close().await;
}

async fn a_hanging_receiver_delays_nobody_else(backend: Backend) {
    const RECEIVERS: usize = 50;
    const EACH: usize = 4;
    let gate = setup(backend).config(LOCAL).start().await;
    let client = gate.somebody().await;
    let mut receivers = Vec::new();
    for _ in 0..RECEIVERS {
        receivers.push(Receiver::start().await);
    }
    let hangs = |at: usize| at.is_multiple_of(10);
    for (at, receiver) in receivers.iter().enumerate() {
        for n in 0..EACH {
            let path = if hangs(at) { "hang" } else { "yes" };
            let url = receiver.url(&format!("{path}/{n}"));
            let body = picture("[[sandbox:fail]]", &url);
            order(&client, IMAGES, &body).await;
        }
    }
    for (at, receiver) in receivers.iter().enumerate() {
        // Who hangs is called too: it is what must not delay the others.
        until("every receiver to be called", async || {
            (receiver.count() >= EACH).then_some(())
        })
        .await;
        if !hangs(at) {
            assert_eq!(receiver.count(), EACH);
        }
    }
    gate.close().await;
}

async fn private_addresses_are_not_called(backend: Backend) {
    let gate = setup(backend).start().await;
    let client = gate.somebody().await;
    let receiver = Receiver::start().await;
    let id = order(&client, IMAGES, &picture("a mill", &receiver.url("yes"))).await;
    assert_eq!(status(&client.ended(&id).await), "completed");
    let log = until("a try", async || {
        Some(log(&client, &id).await).filter(|log| log["tries"] != json!([]))
    })
    .await;
    assert_eq!(statuses(&log), [None], "{log}");
    let error = log["tries"][0]["error"].as_str().unwrap();
    assert!(error.contains("not public"), "{error}");
    assert_eq!(receiver.count(), 0, "nobody was called");
    // What is no URL of the web is refused at once.
    for url in ["ftp://example.com/x", "example.com", "", "http://"] {
        let message = client.post(IMAGES, &picture("a mill", url)).await;
        let message = message.error(400, "invalid_request_error");
        assert!(message.contains("`callback_url`"), "{message}");
    }
    gate.close().await;
}

async fn callbacks_are_their_owners_business(backend: Backend) {
    let gate: Gate = setup(backend).config(LOCAL).start().await;
    gate.user("both", &[]).await;
    let (one, two) = (gate.key("both", &[]).await, gate.key("both", &[]).await);
    let other = gate.somebody().await;
    let receiver = Receiver::start().await;
    let (first, second) = (secret(&one).await, secret(&two).await);
    assert_ne!(first, second, "each key has a secret of its own");
    assert_eq!(secret(&one).await, first, "and keeps it");

    let id = order(&one, IMAGES, &picture("a mill", &receiver.url("yes"))).await;
    let told = receiver.told("yes", 1).await;
    check(&told[0], &id, &first);
    assert!(!told[0].is_signed_with(&second));
    let path = format!("/v1/tasks/{id}/callbacks");
    other.get(&path).await.error(404, "not_found_error");
    assert_eq!(
        two.get(&path).await.expect(200).status,
        200,
        "the same user's"
    );
    let nobody = gate.nobody();
    nobody.get(&path).await.error(401, "authentication_error");

    let silent = order(
        &one,
        IMAGES,
        &json!({ "model": "grok-imagine-1.0-partner", "prompt": "a mill" }),
    )
    .await;
    one.ended(&silent).await;
    let none = one.get(&format!("/v1/tasks/{silent}/callbacks")).await;
    none.error(404, "not_found_error");
    gate.close().await;
}

async fn a_crash_after_the_post_tells_it_again(backend: Backend) {
    // Links stay the same although the port does not.
    let config = format!("public_url = \"https://gate.example\"\n{LOCAL}");
    let mut gate = setup(backend).config(&config).prepare().await;
    let client = gate.somebody().await;
    let receiver = Receiver::start().await;
    gate.set_env("TOLLGATE_CRASH_AT", "webhook.after_post");
    assert!(gate.start_doomed().await, "{}", gate.last_words());
    let id = order(&client, IMAGES, &picture("a mill", &receiver.url("yes"))).await;
    gate.ended().await;
    assert_eq!(receiver.count(), 1, "posted, and not noted");
    gate.set_env("TOLLGATE_CRASH_AT", "");
    gate.start_server().await;
    let told = receiver.told("yes", 2).await;
    let secret = secret(&client).await;
    for post in &told {
        check(post, &id, &secret);
    }
    assert_eq!(told[0].json(), told[1].json());
    let log = logged(&client, &id, "delivered").await;
    assert_eq!(log["tries"].as_array().unwrap().len(), 1, "{log}");
    gate.close().await;
}
