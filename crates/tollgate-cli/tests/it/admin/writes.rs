//! After any writes in any order, the audit passes, the trail is complete, and no change is lost.

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use super::{gateway, send};
use crate::harness::*;

on_both!(
    any_sequence_of_writes_keeps_ledger_and_audit_events_consistent,
    concurrent_patches_are_not_lost,
    concurrent_repeats_write_once,
    a_changed_or_missing_audit_event_is_detected,
    a_revoked_key_is_rejected_after_the_reply,
);

/// Random choices, the same in every run.
struct Rng(StdRng);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        items.choose(&mut self.0).unwrap()
    }
}

async fn verified(owner: &Client) -> Value {
    send(owner, "GET", "/events/verify", &[], &Value::Null)
        .await
        .expect(200)
        .json()
}

async fn created(owner: &Client, path: &str, body: &Value) -> String {
    let object = send(owner, "POST", path, &[], body)
        .await
        .expect(201)
        .json();
    object["id"].as_str().unwrap().to_owned()
}

async fn any_sequence_of_writes_keeps_ledger_and_audit_events_consistent(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    let mut rng = Rng(StdRng::seed_from_u64(2026));
    let mut users = vec![created(&owner, "/users", &json!({ "name": "user" })).await];
    let mut keys = vec![created(&owner, "/keys", &json!({ "user_id": users[0] })).await];
    for step in 0..150 {
        let user = rng.pick(&users).clone();
        let key = rng.pick(&keys).clone();
        let amount = *rng.pick(&[
            "1",
            "-0.5",
            "0.000000001",
            "20",
            "-30",
            "999999999.999999999",
        ]);
        let quota = rng
            .pick(&[json!(null), json!("0"), json!("3.5"), json!("7")])
            .clone();
        let version = format!("\"{}\"", rng.below(6));
        let if_match = [("if-match", version.as_str())];
        let once = format!("key-{}", rng.below(60));
        let once = [("idempotency-key", once.as_str())];
        let reply = match rng.below(9) {
            0 => {
                let reply = send(&owner, "POST", "/users", &once, &json!({ "name": format!("user-{}", rng.below(20)), "unlimited": rng.below(3) == 0 })).await;
                if reply.status == 201 {
                    users.push(reply.json()["id"].as_str().unwrap().to_owned());
                }
                reply
            }
            1 => {
                let reply = send(
                    &owner,
                    "POST",
                    "/keys",
                    &once,
                    &json!({ "user_id": user, "quota": quota }),
                )
                .await;
                if reply.status == 201 {
                    keys.push(reply.json()["id"].as_str().unwrap().to_owned());
                }
                reply
            }
            2 | 3 => {
                let mut body = json!({ "amount": amount, "reason": "test" });
                if rng.below(2) == 0 {
                    body["reference"] = json!(format!("pay-{}", rng.below(10)));
                }
                send(
                    &owner,
                    "POST",
                    &format!("/users/{user}/credits"),
                    &once,
                    &body,
                )
                .await
            }
            4 => {
                let body = json!({ "unlimited": rng.below(2) == 0, "disabled": rng.below(4) == 0 });
                send(&owner, "PATCH", &format!("/users/{user}"), &if_match, &body).await
            }
            5 => {
                let body = json!({ "quota": quota, "rpm": rng.below(5) + 1 });
                send(&owner, "PATCH", &format!("/keys/{key}"), &if_match, &body).await
            }
            6 => {
                send(
                    &owner,
                    "POST",
                    &format!("/keys/{key}/rotate"),
                    &[],
                    &json!({}),
                )
                .await
            }
            7 if step % 3 == 0 => {
                send(
                    &owner,
                    "POST",
                    &format!("/keys/{key}/revoke"),
                    &[],
                    &json!({}),
                )
                .await
            }
            _ => {
                send(
                    &owner,
                    "POST",
                    "/tokens",
                    &once,
                    &json!({ "name": "t", "scopes": ["users:read"] }),
                )
                .await
            }
        };
        assert!(
            [200, 201, 400, 409, 412].contains(&reply.status),
            "{}",
            reply.text()
        );
    }
    let found = verified(&owner).await;
    let rows = gateway
        .query_number("SELECT COUNT(*) FROM admin_events")
        .await;
    assert_eq!(
        (&found["ok"], &found["rows"]),
        (&json!(true), &json!(rows)),
        "{found}"
    );
    assert!(rows > 50, "{rows} writes are too few to show anything");
    // Each user's ledger adds up to its balance.
    for id in &users {
        let user = send(&owner, "GET", &format!("/users/{id}"), &[], &Value::Null)
            .await
            .expect(200)
            .json();
        let path = format!("/users/{id}/entries?limit=1");
        let newest = send(&owner, "GET", &path, &[], &Value::Null)
            .await
            .expect(200)
            .json();
        if let Some(entry) = newest["data"].get(0) {
            assert_eq!(entry["balance_after"], user["balance"], "{user}");
        }
    }
    gateway.close().await;
}

async fn concurrent_patches_are_not_lost(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    let id = created(&owner, "/users", &json!({ "name": "ann" })).await;
    let path = format!("/users/{id}");
    let patch = async |n: usize| {
        until("a patch to be taken", async || {
            let user = send(&owner, "GET", &path, &[], &Value::Null)
                .await
                .expect(200);
            let etag = user.header("etag").to_owned();
            let rpm = user.json()["rpm"].as_u64().unwrap_or(0) + 1;
            let body = json!({ "rpm": rpm });
            let reply = send(&owner, "PATCH", &path, &[("if-match", &etag)], &body).await;
            assert!([200, 412].contains(&reply.status), "{n}: {}", reply.text());
            (reply.status == 200).then_some(())
        })
        .await;
    };
    join_all((0..8).map(patch)).await;
    let user = send(&owner, "GET", &path, &[], &Value::Null)
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&user["rpm"], &user["version"]),
        (&json!(8), &json!(9)),
        "{user}"
    );
    gateway.close().await;
}

async fn concurrent_repeats_write_once(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    let id = created(&owner, "/users", &json!({ "name": "ann" })).await;
    let path = format!("/users/{id}/credits");
    let credit = async |n: usize| {
        let key = format!("key-{}", n % 2);
        let body = json!({ "amount": "1", "reason": "paid", "reference": "pay-1" });
        send(&owner, "POST", &path, &[("idempotency-key", &key)], &body).await
    };
    let replies = join_all((0..8).map(credit)).await;
    let ids = replies.iter().map(|reply| reply.json()["id"].to_string());
    let ids: std::collections::BTreeSet<String> = ids.collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    let user = send(&owner, "GET", &format!("/users/{id}"), &[], &Value::Null)
        .await
        .expect(200)
        .json();
    assert_eq!(user["balance"], "1");
    assert_eq!(
        gateway
            .query_number("SELECT COUNT(*) FROM admin_events")
            .await,
        2
    );
    gateway.close().await;
}

async fn a_changed_or_missing_audit_event_is_detected(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    for n in 0..4 {
        created(&owner, "/users", &json!({ "name": format!("user-{n}") })).await;
    }
    for (change, undo, first_bad) in [
        (
            "UPDATE admin_events SET actor = 'x' WHERE seq = 2",
            "UPDATE admin_events SET actor = 'owner' WHERE seq = 2",
            2,
        ),
        (
            "UPDATE admin_events SET reason = '' WHERE seq = 1",
            "UPDATE admin_events SET reason = NULL WHERE seq = 1",
            1,
        ),
        (
            "UPDATE admin_events SET seq = 9 WHERE seq = 4",
            "UPDATE admin_events SET seq = 4 WHERE seq = 9",
            4,
        ),
        (
            "UPDATE admin_events SET seq = 30 WHERE seq = 3",
            "UPDATE admin_events SET seq = 3 WHERE seq = 30",
            3,
        ),
    ] {
        gateway.execute(change).await;
        let found = verified(&owner).await;
        assert_eq!(
            (&found["ok"], &found["first_bad"]),
            (&json!(false), &json!(first_bad)),
            "{change}"
        );
        gateway.execute(undo).await;
        assert_eq!(verified(&owner).await["ok"], true, "{undo}");
    }
    gateway.close().await;
}

async fn a_revoked_key_is_rejected_after_the_reply(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    let chat = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "Hello" }] });
    for _ in 0..5 {
        let client = gateway.unlimited_client().await;
        client.post("/v1/chat/completions", &chat).await.expect(200);
        let revoke = format!("/keys/{}/revoke", client.key_id);
        let reply = send(&owner, "POST", &revoke, &[], &json!({})).await;
        reply.expect(200);
        client.post("/v1/chat/completions", &chat).await.expect(401);
    }
    gateway.close().await;
}
