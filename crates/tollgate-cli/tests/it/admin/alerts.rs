//! Alerts: signed messages reach the receiver once per crossing; the test button; values that no alert may have.

use serde_json::{Value, json};

use super::{ADMIN, chat_failing_channel, image, priced_gateway, send};
use crate::harness::webhook_receiver::WebhookReceiver;
use crate::harness::*;

on_both!(
    a_low_balance_is_reported_once_until_credit_is_added,
    the_test_endpoint_posts_a_message,
);
on_sqlite!(open_circuits_are_reported, invalid_alerts_are_rejected);

async fn create(owner: &Client, members: &Value) -> Value {
    let created = send(
        owner,
        "POST",
        "/alerts",
        &[("idempotency-key", "a")],
        members,
    )
    .await;
    created.expect(201).json()
}

async fn a_low_balance_is_reported_once_until_credit_is_added(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let receiver = WebhookReceiver::start().await;
    let url = receiver.url("fail/1");
    let alert = create(
        &owner,
        &json!({ "on": "low_balance", "threshold": "9.7", "url": url }),
    )
    .await;
    let secret = alert["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"));
    client.generate(&image("a mill")).await;
    // The receiver returns 500 to the first post, so the gateway repeats it.
    let posts = receiver.wait_for_posts("fail/1", 2).await;
    assert_eq!(posts[0].header("webhook-id"), posts[1].header("webhook-id"));
    for post in &posts {
        assert!(post.is_signed_with(secret));
        assert_has(
            &post.json(),
            json!({ "type": "low_balance", "alert_id": alert["id"], "test": false, "at": "<string>", "data": { "balance": "9.6", "threshold": "9.7" } }),
        );
    }
    let path = format!(
        "{ADMIN}/alerts/{}/deliveries",
        alert["id"].as_str().unwrap()
    );
    let listed = until("the record of the delivery", async || {
        let listed = owner.get_json(&path).await["data"].clone();
        Some(listed).filter(|listed| listed[0]["state"] == "delivered")
    });
    assert_has(
        &listed.await,
        json!([{ "attempts": 2, "status": 204, "error": null }]),
    );
    let users = owner.get_json(&format!("{ADMIN}/users")).await;
    let credits = format!(
        "/users/{}/credits",
        users["data"][0]["id"].as_str().unwrap()
    );
    let credit = json!({ "amount": "0.4", "reason": "paid" });
    let credited = send(
        &owner,
        "POST",
        &credits,
        &[("idempotency-key", "c")],
        &credit,
    )
    .await;
    credited.expect(201);
    until("the alert is armed anew", async || {
        let states = gateway.query("SELECT subject FROM alert_states").await;
        states.is_empty().then_some(())
    })
    .await;
    client.generate(&image("a hill")).await;
    let posts = receiver.wait_for_posts("fail/1", 3).await;
    assert!(posts[2].is_signed_with(secret));
    for path in ["/alerts", "/events"] {
        let text = owner.get(&format!("{ADMIN}{path}")).await.text();
        assert!(!text.contains(secret), "{path}");
    }
    gateway.close().await;
}

async fn the_test_endpoint_posts_a_message(backend: Backend) {
    let (gateway, owner, _) = priced_gateway(backend).await;
    let receiver = WebhookReceiver::start().await;
    let alert = json!({ "on": "debt", "url": receiver.url("accept"), "enabled": false });
    let alert = create(&owner, &alert).await;
    let path = format!("/alerts/{}", alert["id"].as_str().unwrap());
    // Each request sends a message, also if it repeats the idempotency key of another.
    for _ in 0..2 {
        let headers = [("idempotency-key", "alert-test")];
        let tested = send(
            &owner,
            "POST",
            &format!("{path}/test"),
            &headers,
            &json!({}),
        )
        .await;
        assert_has(
            &tested.expect(200).json(),
            json!({ "status": 204, "error": null }),
        );
    }
    let posts = receiver.posts("accept");
    assert_eq!(posts.len(), 2);
    assert!(posts[0].is_signed_with(alert["secret"].as_str().unwrap()));
    assert_has(
        &posts[0].json(),
        json!({ "type": "debt", "test": true, "data": {} }),
    );
    let gone = json!({ "url": receiver.url("gone") });
    let patched = send(&owner, "PATCH", &path, &[("if-match", "\"1\"")], &gone).await;
    patched.expect(200);
    let tested = send(&owner, "POST", &format!("{path}/test"), &[], &json!({})).await;
    assert_eq!(tested.expect(200).json()["status"], 410);
    let listed = owner.get_json(&format!("{ADMIN}{path}/deliveries")).await;
    assert_has(
        &listed["data"],
        json!([{ "state": "given_up", "status": 410 }, { "state": "delivered" }, { "state": "delivered" }]),
    );
    let deleted = send(
        &owner,
        "DELETE",
        &path,
        &[("if-match", "\"2\"")],
        &Value::Null,
    )
    .await;
    deleted.expect(204);
    let deliveries = owner.get(&format!("{ADMIN}{path}/deliveries")).await;
    assert_eq!(deliveries.status, 404);
    gateway.close().await;
}

async fn open_circuits_are_reported(backend: Backend) {
    let (gateway, owner, client) = chat_failing_channel(backend).await;
    let receiver = WebhookReceiver::start().await;
    create(
        &owner,
        &json!({ "on": "circuit_open", "url": receiver.url("accept") }),
    )
    .await;
    let chat = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "Hello" }] });
    for _ in 0..6 {
        let reply = client.post("/v1/chat/completions", &chat).await;
        assert_ne!(reply.status, 200);
    }
    let posts = receiver.wait_for_posts("accept", 1).await;
    assert_has(
        &posts[0].json(),
        json!({ "type": "circuit_open", "data": { "channel": "broken" } }),
    );
    gateway.close().await;
}

async fn invalid_alerts_are_rejected(backend: Backend) {
    let gateway = Setup::new(backend).admin_key(super::OWNER).start().await;
    let owner = gateway.client(Some(super::OWNER.to_owned()), String::new());
    let public = "https://93.184.216.34/hook";
    for (alert, field) in [
        (json!({ "url": public }), "on"),
        (json!({ "on": "fire", "url": public }), "on"),
        (json!({ "on": "debt" }), "url"),
        (
            json!({ "on": "debt", "url": "ftp://93.184.216.34/" }),
            "url",
        ),
        (json!({ "on": "debt", "url": "http://127.0.0.1:1/" }), "url"),
        (
            json!({ "on": "debt", "url": "http://169.254.169.254/latest" }),
            "url",
        ),
        (
            json!({ "on": "debt", "url": public, "threshold": "1" }),
            "threshold",
        ),
        (json!({ "on": "low_balance", "url": public }), "threshold"),
        (
            json!({ "on": "low_balance", "url": public, "threshold": 5 }),
            "threshold",
        ),
        (
            json!({ "on": "budget", "url": public, "threshold": "1.01" }),
            "threshold",
        ),
        (
            json!({ "on": "debt", "url": public, "secret": "x" }),
            "secret",
        ),
    ] {
        let reply = send(&owner, "POST", "/alerts", &[], &alert)
            .await
            .expect(400);
        assert_eq!(
            reply.json()["error"]["field"],
            field,
            "{alert}: {}",
            reply.text()
        );
    }
    let alert = json!({ "on": "queue_age", "url": public, "threshold": "60" });
    let alert = create(&owner, &alert).await;
    assert_has(
        &alert,
        json!({ "on": "queue_age", "threshold": "60", "enabled": true, "version": 1 }),
    );
    let path = format!("/alerts/{}", alert["id"].as_str().unwrap());
    for (patch, field) in [
        (json!({ "threshold": null }), "threshold"),
        (json!({ "on": "debt" }), "threshold"),
        (json!({ "url": "http://10.0.0.1/" }), "url"),
    ] {
        let headers = [("if-match", "\"1\"")];
        let reply = send(&owner, "PATCH", &path, &headers, &patch)
            .await
            .expect(400);
        assert_eq!(reply.json()["error"]["field"], field, "{patch}");
    }
    let patch = json!({ "on": "debt", "threshold": null });
    assert_eq!(send(&owner, "PATCH", &path, &[], &patch).await.status, 428);
    let stale = send(&owner, "PATCH", &path, &[("if-match", "\"7\"")], &patch).await;
    assert_eq!(stale.status, 412);
    let patched = send(&owner, "PATCH", &path, &[("if-match", "\"1\"")], &patch).await;
    assert_has(
        &patched.expect(200).json(),
        json!({ "on": "debt", "threshold": null, "version": 2 }),
    );
    gateway.close().await;
}
