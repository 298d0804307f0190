//! Users share workers, fetches, channels and webhooks: the backlog of one user delays no other user. Loops and tasks continue after a panic.

use std::future::pending;

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};

use crate::harness::images::png;
use crate::harness::webhook_receiver::WebhookReceiver;
use crate::harness::*;

on_both!(
    hanging_tasks_delay_no_other_user,
    slow_references_delay_no_other_user,
    a_full_channel_is_shared_by_users,
    a_user_may_have_several_calls_on_a_channel,
    a_panic_of_a_worker_or_a_loop_loses_no_task,
);
on_sqlite!(
    waiting_tasks_and_webhooks_of_a_user_are_limited,
    a_receiver_that_never_responds_gets_few_posts,
);

const IMAGES: &str = "/v1/images/generations";
const LOCAL: &str = "media.allow_private_urls = [\"127.0.0.0/8\"]\n";

fn image(prompt: &str) -> Value {
    json!({ "model": "imagen-4.0-partner", "prompt": prompt })
}

fn image_with_reference(url: &str) -> Value {
    json!({ "model": "doubao-seedream-4.5", "prompt": "a mill", "image_urls": [url] })
}

/// Submits the same request `count` times; returns the tasks' ids.
async fn submit_many(client: &Client, body: &Value, count: usize) -> Vec<String> {
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        ids.push(client.submit(body).await);
    }
    ids
}

async fn cancel_all(client: &Client, ids: &[String]) {
    for id in ids {
        client.cancel(id).await.expect(200);
    }
}

/// How many of these tasks have that status.
async fn count(client: &Client, ids: &[String], wanted: &str) -> usize {
    let mut found = 0;
    for id in ids {
        found += usize::from(status(&client.task(id).await) == wanted);
    }
    found
}

async fn hanging_tasks_delay_no_other_user(backend: Backend) {
    let config = "workers.calls = 4\n";
    let gateway = Setup::new(backend).config(config).start().await;
    let (ann, bob) = (
        gateway.user_client("ann", &[]).await,
        gateway.user_client("bob", &[]).await,
    );
    let hanging = submit_many(&ann, &image("[[sandbox:hang]]"), 30).await;
    let is_busy = async || count(&ann, &hanging, "in_progress").await == 3;
    until_true("three of four permits to be taken", is_busy).await;
    for _ in 0..3 {
        bob.generate(&image("a mill")).await;
    }
    assert_eq!(count(&ann, &hanging, "in_progress").await, 3);
    cancel_all(&ann, &hanging).await;
    // Once the hanging tasks are cancelled, new tasks run.
    ann.generate(&image("a mill")).await;
    gateway.close().await;
}

async fn slow_references_delay_no_other_user(backend: Backend) {
    let router = Router::new()
        .route("/hangs.png", get(pending::<String>))
        .route("/valid.png", get(async || png(300, 300)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let site = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });

    let config = format!("{LOCAL}workers.calls = 4\nworkers.fetches = 4\n");
    let gateway = Setup::new(backend).config(&config).start().await;
    let (ann, bob) = (
        gateway.user_client("ann", &[]).await,
        gateway.user_client("bob", &[]).await,
    );
    let trickling = image_with_reference(&format!("{site}/hangs.png"));
    let trickling = submit_many(&ann, &trickling, 12).await;
    let is_busy = async || count(&ann, &trickling, "in_progress").await >= 4;
    until_true("four references to be fetched", is_busy).await;
    bob.generate(&image("a mill")).await;
    let reference = image_with_reference(&format!("{site}/valid.png"));
    bob.generate(&reference).await;
    cancel_all(&ann, &trickling).await;
    gateway.close().await;
}

async fn a_full_channel_is_shared_by_users(backend: Backend) {
    const BACKLOG: usize = 60;
    let channel = "[[channel]]\nname = \"one\"\nkind = \"sandbox\"\nmax_concurrency = 1\nmodels = [\"imagen-4.0-partner\"]\n";
    let gateway = Setup::new(backend).config(channel).start().await;
    let (ann, bob) = (
        gateway.user_client("ann", &[]).await,
        gateway.user_client("bob", &[]).await,
    );
    let slow = submit_many(&ann, &image("[[sandbox:delay=300]]"), BACKLOG).await;
    bob.generate(&image("a mill")).await;
    let ended = count(&ann, &slow, "completed").await;
    assert!(ended < BACKLOG / 2, "{ended} of {BACKLOG} ended first");
    cancel_rest(&ann, &slow).await;
    gateway.close().await;
}

async fn a_user_may_have_several_calls_on_a_channel(backend: Backend) {
    let channel = "[[channel]]\nname = \"one\"\nkind = \"sandbox\"\nmax_concurrency = 4\nmodels = [\"imagen-4.0-partner\"]\n";
    let gateway = Setup::new(backend).config(channel).start().await;
    let ann = gateway.user_client("ann", &[]).await;
    let mut hanging = Vec::new();
    // Workers claim the later tasks while earlier ones of the same user run.
    for running in 1..=2 {
        hanging.push(ann.submit(&image("[[sandbox:hang]]")).await);
        let all_run = async || count(&ann, &hanging, "in_progress").await == running;
        until_true("the tasks to run side by side", all_run).await;
    }
    cancel_all(&ann, &hanging).await;
    gateway.close().await;
}

/// Cancels the tasks that have not ended.
async fn cancel_rest(client: &Client, ids: &[String]) {
    for id in ids {
        let reply = client.cancel(id).await;
        assert!([200, 409].contains(&reply.status), "{}", reply.text());
    }
}

async fn waiting_tasks_and_webhooks_of_a_user_are_limited(backend: Backend) {
    let limits = "fairness.unfinished_tasks = 3\nfairness.waiting_webhooks = 1\n";
    let config = format!("{LOCAL}{limits}");
    let gateway = Setup::new(backend).config(&config).start().await;
    let (ann, bob) = (
        gateway.user_client("ann", &[]).await,
        gateway.user_client("bob", &[]).await,
    );
    let hanging = submit_many(&ann, &image("[[sandbox:hang]]"), 3).await;
    let other_key = gateway.key("ann", &[]).await;
    for client in [&ann, &other_key] {
        let reply = client.post(IMAGES, &image("a mill")).await;
        reply.rejected(429, "may have 3 unfinished tasks");
        assert_eq!(reply.header("retry-after"), "5");
    }
    bob.generate(&image("a mill")).await;
    cancel_all(&ann, &hanging).await;
    let accepted = async || ann.post(IMAGES, &image("a mill")).await.status == 200;
    until_true("a task to be accepted again", accepted).await;

    let receiver = WebhookReceiver::start().await;
    let mut with_webhook = image("a mill");
    with_webhook["callback_url"] = json!(receiver.url("fail/1"));
    bob.generate(&with_webhook).await;
    let reply = bob.post(IMAGES, &with_webhook).await;
    reply.rejected(429, "may have 1 webhooks");
    bob.generate(&image("a mill")).await;
    receiver.wait_for_posts("fail/1", 2).await;
    let accepted = async || bob.post(IMAGES, &with_webhook).await.status == 200;
    until_true("a webhook to be accepted again", accepted).await;
    gateway.close().await;
}

async fn a_receiver_that_never_responds_gets_few_posts(backend: Backend) {
    let gateway = Setup::new(backend).config(LOCAL).start().await;
    let client = gateway.unlimited_client().await;
    let (hanging, other) = (
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    );
    let mut body = image("[[sandbox:fail]]");
    let submit = async |body: &mut Value, url: String| {
        body["callback_url"] = json!(url);
        client.submit(body).await
    };
    for n in 0..30 {
        submit(&mut body, hanging.url(&format!("hang/{n}"))).await;
    }
    gateway.idle().await;
    for n in 0..30 {
        submit(&mut body, other.url(&format!("accept/{n}"))).await;
    }
    until_true("the others", async || other.count() == 30).await;
    assert_eq!(hanging.count(), 4, "before its first 2xx");
    let untried = gateway
        .query_number("SELECT COUNT(*) FROM callbacks WHERE state = 'waiting' AND attempts = 0")
        .await;
    assert_eq!(untried, 26, "what cannot be posted is not claimed");
    gateway.close().await;
}

async fn a_panic_of_a_worker_or_a_loop_loses_no_task(backend: Backend) {
    for (point, job) in [
        ("run.before_finish", "task"),
        ("run.after_claim", "workers"),
    ] {
        let mut gateway = Setup::new(backend)
            .config("leases.seconds = 1\n")
            .env("TOLLGATE_CRASH_AT", format!("panic@{point}"))
            .start()
            .await;
        let client = gateway.unlimited_client().await;
        client.generate(&image("a mill")).await;
        let failures = format!("tollgate_background_failures_total{{job=\"{job}\"}}");
        assert!(gateway.metric(&failures).await > 0.5, "{point}");
        // The log has lines of the panic.
        gateway.kill().await;
        gateway.set_env("TOLLGATE_CRASH_AT", "");
        gateway.start_server().await;
        gateway.close().await;
    }
}
