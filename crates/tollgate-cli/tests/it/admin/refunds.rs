//! Refunds of tasks and chats: never more than was settled, once per idempotency key, and in the ledger.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{ADMIN, image, priced_gateway, send};
use crate::harness::*;

on_both!(
    refunds_return_settled_amounts,
    concurrent_refunds_never_exceed_the_settled_amount,
);
on_sqlite!(the_audit_detects_changed_refunds);

async fn refund(owner: &Client, object: &str, once: &str, body: &Value) -> Reply {
    let path = format!("{object}/refund");
    send(owner, "POST", &path, &[("idempotency-key", once)], body).await
}

fn code(reply: &Reply) -> (u16, Value) {
    (reply.status, reply.json()["error"]["code"].clone())
}

async fn refunds_return_settled_amounts(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let task = task_id(&client.generate(&image("a mill")).await);
    assert_eq!(client.balances().await, (9.6, 0.4));
    assert_eq!(client.task(&task).await["refunded"], Value::Null);
    let path = format!("/tasks/{task}");
    let part = json!({ "amount": "0.1", "reason": "too dark" });
    let first = refund(&owner, &path, "1", &part).await.expect(201).json();
    assert_has(
        &first,
        json!({
            "entry": { "kind": "refund", "ref": task, "amount": "0.1", "delta": "0.1", "reason": "too dark" },
            "charge": { "price": "0.4", "units": 1, "unit": "image", "held": "0.4", "settled": "0.4", "released": "0", "refunded": "0.1" },
        }),
    );
    assert_eq!(client.balances().await, (9.7, 0.3));
    assert_eq!(client.task(&task).await["refunded"], 0.1);
    // The same request again returns the same refund; the same idempotency key with another body does not refund.
    let again = refund(&owner, &path, "1", &part).await.expect(201);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.json(), first);
    for (once, body, expected) in [
        (
            "1",
            json!({ "amount": "0.2", "reason": "x" }),
            (409, "idempotency_key_reused"),
        ),
        (
            "2",
            json!({ "amount": "0.300000001", "reason": "x" }),
            (409, "refund_exceeds_settled"),
        ),
        (
            "2",
            json!({ "amount": "0", "reason": "x" }),
            (400, "invalid"),
        ),
        (
            "2",
            json!({ "amount": "-1", "reason": "x" }),
            (400, "invalid"),
        ),
        (
            "2",
            json!({ "amount": 0.1, "reason": "x" }),
            (400, "invalid"),
        ),
        ("2", json!({ "amount": "0.1" }), (400, "invalid")),
        (
            "2",
            json!({ "reason": "x", "amounts": "1" }),
            (400, "invalid"),
        ),
    ] {
        let reply = refund(&owner, &path, once, &body).await;
        assert_eq!(code(&reply), (expected.0, json!(expected.1)), "{body}");
    }
    // A request without an amount refunds all that is left.
    let rest = refund(&owner, &path, "3", &json!({ "reason": "still dark" })).await;
    assert_eq!(rest.expect(201).json()["charge"]["refunded"], "0.4");
    assert_eq!(client.balances().await, (10.0, 0.0));
    let reply = refund(&owner, &path, "4", &json!({ "reason": "x" })).await;
    assert_eq!(code(&reply), (409, json!("nothing_to_refund")));

    // A chat, whose key was revoked meanwhile.
    let chat = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "Hello" }] });
    client.post("/v1/chat/completions", &chat).await.expect(200);
    let rows = gateway.query("SELECT id, settled FROM chats").await;
    let (chat, settled) = (&rows[0][0], &rows[0][1]);
    assert_ne!(settled, "0");
    let keys = send(&owner, "GET", "/keys", &[], &Value::Null).await.json();
    let key = keys["data"][0]["id"].as_str().unwrap();
    let revoke = format!("/keys/{key}/revoke");
    send(&owner, "POST", &revoke, &[], &json!({}))
        .await
        .expect(200);
    let path = format!("/chats/{chat}");
    let complete = refund(&owner, &path, "5", &json!({ "reason": "wrong" })).await;
    assert_has(
        &complete.expect(201).json(),
        json!({ "entry": { "ref": chat }, "charge": { "price": null, "unit": "token" } }),
    );
    let users = send(&owner, "GET", "/users", &[], &Value::Null)
        .await
        .json();
    assert_has(
        &users["data"][0],
        json!({ "balance": "10", "used": "0", "held": "0" }),
    );

    // Rejected refunds: nothing to refund, task not finished, no such task, no scope.
    let client = gateway.user_client("second", &["--balance", "10"]).await;
    let failed = client.submit(&image("[[sandbox:fail]]")).await;
    client.wait_for_end(&failed).await;
    let open = client.submit(&image("[[sandbox:hang]]")).await;
    for (id, expected) in [
        (failed.as_str(), (409, "nothing_to_refund")),
        (open.as_str(), (409, "not_finished")),
        ("task_none", (404, "not_found")),
        (chat.as_str(), (404, "not_found")),
    ] {
        let reply = refund(
            &owner,
            &format!("/tasks/{id}"),
            "6",
            &json!({ "reason": "x" }),
        )
        .await;
        assert_eq!(code(&reply), (expected.0, json!(expected.1)), "{id}");
    }
    let body = json!({ "name": "t", "scopes": ["tasks:write", "users:write"] });
    let token = send(&owner, "POST", "/tokens", &[], &body)
        .await
        .expect(201)
        .json();
    let token = gateway.client(
        Some(token["secret"].as_str().unwrap().to_owned()),
        String::new(),
    );
    let reply = refund(&token, "/tasks/task_none", "7", &json!({ "reason": "x" })).await;
    assert_eq!(code(&reply), (403, json!("missing_scope")));
    let (path, body) = (format!("/tasks/{task}/refund"), json!({ "reason": "x" }));
    let no_key = send(&owner, "POST", &path, &[], &body).await.json();
    assert_eq!(no_key["error"]["field"], "Idempotency-Key");
    client.cancel(&open).await.expect(200);
    let events = owner
        .get_json(&format!("{ADMIN}/events?action=task.refund,chat.refund"))
        .await;
    assert_eq!(events["data"].as_array().unwrap().len(), 3);
    gateway.close().await;
}

async fn concurrent_refunds_never_exceed_the_settled_amount(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let task = task_id(&client.generate(&image("a mill")).await);
    let path = format!("/tasks/{task}");
    let body = json!({ "amount": "0.12", "reason": "side by side" });
    let refunds = (0..20).map(async |n| refund(&owner, &path, &n.to_string(), &body).await.status);
    let statuses = join_all(refunds).await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 3);
    assert!(statuses.iter().all(|status| [201, 409].contains(status)));
    assert_eq!(client.balances().await, (9.96, 0.04));
    // The refunded amount can be spent again, also as part of a key's quota.
    client.generate(&image("a second mill")).await;
    let key = gateway.key("account", &["--quota", "0.4"]).await;
    let task = task_id(&key.generate(&image("a third mill")).await);
    key.post_image(&image("a fourth")).await.rejected(402, "");
    let body = json!({ "reason": "x" });
    let path = format!("/tasks/{task}");
    refund(&owner, &path, "quota", &body).await.expect(201);
    key.generate(&image("a fourth")).await;
    gateway.close().await;
}

async fn the_audit_detects_changed_refunds(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let task = task_id(&client.generate(&image("a mill")).await);
    let body = json!({ "amount": "0.1", "reason": "x" });
    refund(&owner, &format!("/tasks/{task}"), "1", &body)
        .await
        .expect(201);
    for (table, column, check) in [
        ("charges", "refunded", "refunds"),
        ("charges", "refunded", "charge_seal"),
        ("tasks", "refunded", "task_charges"),
        ("users", "used", "user_sums"),
        ("keys", "used", "key_sums"),
        ("ledger", "amount", "refund_owners"),
    ] {
        let (change, undo) = match table {
            "ledger" => (
                "amount = -amount WHERE kind = 'refund'".to_owned(),
                "amount = -amount WHERE kind = 'refund'".to_owned(),
            ),
            _ => (
                format!("{column} = {column} + 1"),
                format!("{column} = {column} - 1"),
            ),
        };
        gateway
            .execute(&format!("UPDATE {table} SET {change}"))
            .await;
        let id = send(&owner, "POST", "/audits", &[], &json!({}))
            .await
            .expect(202)
            .json()["id"]
            .clone();
        let path = format!("{ADMIN}/audits/{}", id.as_str().unwrap());
        let audit = until("the audit to end", async || {
            let audit = owner.get_json(&path).await;
            (audit["state"] != "running").then_some(audit)
        })
        .await;
        assert_eq!(
            (&audit["state"], &audit["ok"]),
            (&json!("done"), &json!(false))
        );
        assert!(
            audit["violations"]
                .to_string()
                .contains(&format!("\"{check}\"")),
            "{audit}"
        );
        let found = gateway.cli(&["audit", "--json"]).await;
        assert!(
            found.stdout.contains(&format!("\"{check}\"")),
            "{table}: {}",
            found.stdout
        );
        gateway.execute(&format!("UPDATE {table} SET {undo}")).await;
    }
    let audits = owner.get_json(&format!("{ADMIN}/audits")).await;
    assert_eq!(audits["data"].as_array().unwrap().len(), 6);
    // An audit that another node runs.
    let running = format!(
        "INSERT INTO audits (id, started_at, progress) VALUES ('audit_other', {}000, 40)",
        now()
    );
    gateway.execute(&running).await;
    let audit = owner.get_json(&format!("{ADMIN}/audits/audit_other")).await;
    assert_has(
        &audit,
        json!({ "state": "running", "ok": null, "progress": 0.4 }),
    );
    gateway.close().await;
}
