//! Webhooks: when a task ends, the gateway posts its record to the client's URL, signed, until the receiver accepts it.

use serde_json::{Value, json};

use crate::harness::webhook_receiver::{Post, WebhookReceiver};
use crate::harness::*;

on_both!(
    every_final_status_is_delivered,
    failed_deliveries_are_retried,
    a_hanging_receiver_does_not_delay_others,
);
on_sqlite!(
    webhooks_to_private_addresses_are_not_posted,
    webhooks_are_visible_to_their_user_alone,
    a_webhook_is_delivered_again_after_a_crash,
);

/// Allows the gateway to call the test's own receiver.
const LOCAL: &str = "[media]\nallow_private_urls = [\"127.0.0.0/8\"]\n";
const IMAGES: &str = "/v1/images/generations";
const VIDEOS: &str = "/v1/video/generations";

fn image(prompt: &str, url: &str) -> Value {
    json!({ "model": "grok-imagine-1.0-partner", "prompt": prompt, "callback_url": url })
}

/// A video. Its callback URL is among the other parameters of the family.
fn video(prompt: &str, url: &str) -> Value {
    json!({
        "model": "grok-imagine-video-1.5", "prompt": prompt, "duration": 1, "aspect_ratio": "1:1",
        "metadata": { "callback_url": url },
    })
}

/// Builds a request from a prompt and a URL.
type Request = fn(&str, &str) -> Value;

/// Submits a request, which must be accepted; returns the task's id.
async fn submit(client: &Client, path: &str, body: &Value) -> String {
    task_id(&client.post(path, body).await.expect(200).json())
}

async fn secret(client: &Client) -> String {
    let reply = client.get_json("/v1/callbacks/secret").await;
    assert_shape(&reply, json!({ "secret": "<string>" }));
    reply["secret"].as_str().unwrap().to_owned()
}

/// The deliveries that the gateway reports for a task's webhook.
async fn deliveries(client: &Client, id: &str) -> Value {
    let log = client.get_json(&format!("/v1/tasks/{id}/callbacks")).await;
    let expected = json!({ "task_id": id, "state": "<string>", "url": "<string>", "next_at": log["next_at"], "tries": log["tries"] });
    assert_shape(&log, expected);
    log
}

/// Waits until `is_done`; returns the statuses of the attempts.
async fn wait_for_deliveries(
    client: &Client,
    id: &str,
    is_done: impl Fn(&Value) -> bool,
) -> (Vec<Option<u64>>, Value) {
    let log = until("a delivery", async || {
        Some(deliveries(client, id).await).filter(&is_done)
    });
    let log = log.await;
    let tries = log["tries"].as_array().expect("tries").iter().enumerate();
    let statuses = tries.map(|(at, one)| {
        assert_has(
            one,
            json!({ "number": at + 1, "at": "<now>", "took_ms": "<integer>" }),
        );
        assert_ne!(one["error"].is_null(), one["status"].is_null(), "{log}");
        one["status"].as_u64()
    });
    (statuses.collect(), log)
}

/// Checks a post as a strict receiver would.
#[track_caller]
fn check(post: &Post, id: &str, secret: &str) {
    assert_eq!(post.header("content-type"), "application/json");
    assert_eq!(post.header("webhook-id"), id);
    let sent: i64 = post.header("webhook-timestamp").parse().expect("seconds");
    assert_has(&json!(sent), json!("<now>"));
    assert!(post.is_signed_with(secret), "its signature");
    let keyless = ["authorization", "x-api-key", "cookie"];
    assert!(keyless.iter().all(|name| post.header(name).is_empty()));
}

async fn every_final_status_is_delivered(backend: Backend) {
    let (gateway, client) = TestGateway::with_config(backend, LOCAL).await;
    let (receiver, secret) = (WebhookReceiver::start().await, secret(&client).await);
    let mut count = 0;
    let requests = [(IMAGES, image as Request), (VIDEOS, video as Request)];
    for (endpoint, request) in requests {
        for (prompt, code) in [
            ("a mill", None),
            ("[[sandbox:fail]]", Some("provider_error")),
            ("[[sandbox:moderated]]", Some("moderated")),
            ("[[sandbox:hang]]", Some("cancelled")),
        ] {
            count += 1;
            let path = format!("accept/{count}");
            let url = receiver.url(&path);
            let id = submit(&client, endpoint, &request(prompt, &url)).await;
            if code == Some("cancelled") {
                let expected = json!({ "state": "task_unfinished", "url": url, "tries": [] });
                assert_has(&deliveries(&client, &id).await, expected);
                client.cancel(&id).await.expect(200);
            }
            let posts = receiver.wait_for_posts(&path, 1).await;
            check(&posts[0], &id, &secret);
            let record = posts[0].json();
            let polled = client.get_json(&format!("/v1/tasks/{id}")).await;
            assert_eq!(record, polled, "the record itself");
            let inner = record.get("data").unwrap_or(&record);
            let expected = if code.is_some() {
                "failed"
            } else {
                "completed"
            };
            assert_eq!(status(inner), expected, "{record}");
            let error = inner.get("error").and_then(|error| error["code"].as_str());
            assert_eq!(error, code, "{record}");

            let is_delivered = |log: &Value| log["state"] == "delivered";
            let (statuses, log) = wait_for_deliveries(&client, &id, is_delivered).await;
            assert_eq!(statuses, [Some(204)], "{log}");
            assert_has(&log, json!({ "next_at": null, "url": url }));
        }
    }
    assert_eq!(receiver.count(), 8, "each end is delivered once");
    assert!(!gateway.log().contains(&secret), "the secret is in the log");
    gateway.close().await;
}

async fn failed_deliveries_are_retried(backend: Backend) {
    let (gateway, client) = TestGateway::with_config(backend, LOCAL).await;
    let (receiver, secret) = (WebhookReceiver::start().await, secret(&client).await);
    let submit = async |path: &str| {
        let body = image("a mill", &receiver.url(path));
        submit(&client, IMAGES, &body).await
    };
    let failing = submit("fail/1").await;
    let closing = submit("close/1").await;
    let (redirected, gone) = (submit("redirect").await, submit("gone").await);
    for (id, path, first) in [(failing, "fail/1", Some(500)), (closing, "close/1", None)] {
        let is_delivered = |log: &Value| log["state"] == "delivered";
        let (statuses, log) = wait_for_deliveries(&client, &id, is_delivered).await;
        assert_eq!(statuses, [first, Some(204)], "{log}");
        let posts = receiver.posts(path);
        assert_eq!(posts.len(), 2);
        posts.iter().for_each(|post| check(post, &id, &secret));
        assert_eq!(posts[0].json(), posts[1].json());
    }
    // The gateway does not follow a redirect: it is a failed attempt.
    let is_retried = |log: &Value| log["tries"].as_array().unwrap().len() >= 2;
    let (statuses, log) = wait_for_deliveries(&client, &redirected, is_retried).await;
    assert_eq!(statuses[..2], [Some(307); 2], "{log}");
    assert_has(&log, json!({ "state": "waiting", "next_at": "<now>" }));
    assert!(receiver.posts("accept").is_empty());
    // After a 410 the gateway makes no more attempts.
    let is_over = |log: &Value| log["state"] == "given_up";
    let (statuses, log) = wait_for_deliveries(&client, &gone, is_over).await;
    assert_eq!(statuses, [Some(410)], "{log}");
    assert_eq!(receiver.posts("gone").len(), 1);
    gateway.close().await;
}

async fn a_hanging_receiver_does_not_delay_others(backend: Backend) {
    const RECEIVERS: usize = 50;
    const EACH: usize = 4;
    let (gateway, client) = TestGateway::with_config(backend, LOCAL).await;
    let hangs = |at: usize| at.is_multiple_of(10);
    let mut receivers = Vec::new();
    for at in 0..RECEIVERS {
        let receiver = WebhookReceiver::start().await;
        let path = if hangs(at) { "hang" } else { "accept" };
        for n in 0..EACH {
            let body = image("[[sandbox:fail]]", &receiver.url(&format!("{path}/{n}")));
            submit(&client, IMAGES, &body).await;
        }
        receivers.push(receiver);
    }
    for (at, receiver) in receivers.iter().enumerate() {
        // The receivers that hang are called too, and must not delay the others.
        let is_called = async || receiver.count() >= EACH;
        until_true("every receiver to be called", is_called).await;
        assert!(hangs(at) || receiver.count() == EACH);
    }
    gateway.close().await;
}

async fn webhooks_to_private_addresses_are_not_posted(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let receiver = WebhookReceiver::start().await;
    let body = image("a mill", &receiver.url("accept"));
    let id = submit(&client, IMAGES, &body).await;
    assert_eq!(status(&client.wait_for_end(&id).await), "completed");
    let is_tried = |log: &Value| log["tries"] != json!([]);
    let (statuses, log) = wait_for_deliveries(&client, &id, is_tried).await;
    assert_eq!(statuses, [None], "{log}");
    let error = log["tries"][0]["error"].as_str().unwrap();
    assert!(error.contains("not public"), "{error}");
    assert_eq!(receiver.count(), 0, "it was not called");
    // A URL that is not HTTP is rejected at the submission.
    for url in ["ftp://example.com/x", "example.com", "", "http://"] {
        let reply = client.post(IMAGES, &image("a mill", url)).await;
        reply.rejected(400, "`callback_url`");
    }
    gateway.close().await;
}

async fn webhooks_are_visible_to_their_user_alone(backend: Backend) {
    let gateway = Setup::new(backend).config(LOCAL).start().await;
    let one = gateway.user_client("both", &[]).await;
    let two = gateway.key("both", &[]).await;
    let receiver = WebhookReceiver::start().await;
    let (first, second) = (secret(&one).await, secret(&two).await);
    assert_ne!(first, second, "each key has a secret of its own");
    assert_eq!(secret(&one).await, first, "and keeps it");

    let body = image("a mill", &receiver.url("accept"));
    let id = submit(&one, IMAGES, &body).await;
    let posts = receiver.wait_for_posts("accept", 1).await;
    check(&posts[0], &id, &first);
    assert!(!posts[0].is_signed_with(&second));
    let path = format!("/v1/tasks/{id}/callbacks");
    let other = gateway.unlimited_client().await;
    other.get(&path).await.rejected(404, "");
    two.get(&path).await.expect(200);
    gateway.anonymous().get(&path).await.rejected(401, "");

    let body = json!({ "model": "grok-imagine-1.0-partner", "prompt": "a mill" });
    let id = submit(&one, IMAGES, &body).await;
    let none = one.get(&format!("/v1/tasks/{id}/callbacks")).await;
    none.rejected(404, "");
    gateway.close().await;
}

async fn a_webhook_is_delivered_again_after_a_crash(backend: Backend) {
    // Links stay the same when the port changes.
    let config = format!("public_url = \"https://gateway.example\"\n{LOCAL}");
    let mut gateway = Setup::new(backend).config(&config).prepare().await;
    let client = gateway.unlimited_client().await;
    let receiver = WebhookReceiver::start().await;
    gateway.crash_at("webhook.after_post");
    assert!(gateway.start_to_crash().await, "{}", gateway.log_tail());
    let body = image("a mill", &receiver.url("accept"));
    let id = submit(&client, IMAGES, &body).await;
    gateway.wait_for_exit().await;
    assert_eq!(receiver.count(), 1, "posted, and not recorded");
    gateway.crash_at("");
    gateway.start_server().await;
    let posts = receiver.wait_for_posts("accept", 2).await;
    let secret = secret(&client).await;
    posts.iter().for_each(|post| check(post, &id, &secret));
    assert_eq!(posts[0].json(), posts[1].json());
    until_true("the record of one attempt", async || {
        let log = deliveries(&client, &id).await;
        log["state"] == "delivered" && log["tries"].as_array().unwrap().len() == 1
    })
    .await;
    gateway.close().await;
}
