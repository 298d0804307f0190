//! Tasks and chats in the admin API: lists, records, cancellation, repeated webhooks, and search.

use serde_json::{Value, json};

use super::{ADMIN, OWNER, image, priced_gateway, send};
use crate::harness::webhook_receiver::WebhookReceiver;
use crate::harness::*;

on_both!(
    the_timeline_has_the_last_poll_of_the_provider,
    tasks_are_listed_shown_and_cancelled,
    chats_are_listed_and_shown,
    webhooks_are_sent_again,
);

async fn get(owner: &Client, path: &str) -> Value {
    owner.get_json(&format!("{ADMIN}{path}")).await
}

/// The ids of a list.
async fn ids(owner: &Client, path: &str) -> Vec<String> {
    let list = get(owner, path).await;
    let data = list["data"].as_array().unwrap();
    let ids = data
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned());
    ids.collect()
}

fn events(task: &Value) -> Vec<&str> {
    let steps = task["timeline"].as_array().unwrap();
    steps
        .iter()
        .map(|step| step["event"].as_str().unwrap())
        .collect()
}

async fn the_timeline_has_the_last_poll_of_the_provider(backend: Backend) {
    let setup = Setup::new(backend).admin_key(OWNER);
    let gateway = setup
        .env("TOLLGATE_SANDBOX__IMAGE_MS", "2000")
        .start()
        .await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let client = gateway.unlimited_client().await;
    let task = client.submit(&image("a mill")).await;
    client.wait_for_end(&task).await;
    let page = get(&owner, &format!("/tasks/{task}")).await;
    let steps = events(&page);
    let polled = steps.iter().position(|step| *step == "polled");
    let fetched = steps.iter().position(|step| *step == "fetched");
    assert!(polled.is_some() && polled < fetched, "{steps:?}");
    gateway.close().await;
}

async fn tasks_are_listed_shown_and_cancelled(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let done = task_id(&client.generate(&image("a mill")).await);
    let failed = client.submit(&image("[[sandbox:fail]]")).await;
    client.wait_for_end(&failed).await;
    let open = client.submit(&image("[[sandbox:hang]]")).await;
    client.wait_for_start(&open).await;
    let user = get(&owner, "/users").await["data"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();

    assert_eq!(ids(&owner, "/tasks").await, [&*open, &failed, &done]);
    for (filter, expected) in [
        ("state=completed", vec![&done]),
        ("state=completed,failed", vec![&failed, &done]),
        ("error_code=provider_error", vec![&failed]),
        ("kind=video", vec![]),
        ("kind=image&state=in_progress", vec![&open]),
        ("state=nonsense", vec![]),
        (
            "model=gpt-image-2-official&channel=sandbox&state=completed",
            vec![&done],
        ),
        ("channel=none", vec![]),
        ("to=2001-01-01T00:00:00Z", vec![]),
    ] {
        assert_eq!(
            &ids(&owner, &format!("/tasks?{filter}"))
                .await
                .iter()
                .collect::<Vec<_>>(),
            &expected,
            "{filter}"
        );
    }
    assert_eq!(
        ids(&owner, &format!("/tasks?user_id={user}&limit=1")).await,
        [&*open]
    );
    let page = get(&owner, "/tasks?limit=2").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(
        ids(&owner, &format!("/tasks?limit=2&cursor={cursor}")).await,
        [&*done]
    );

    let task = get(&owner, &format!("/tasks/{done}")).await;
    assert_has(
        &task,
        json!({
            "id": done, "kind": "image", "state": "completed", "user_id": user, "channel": "sandbox",
            "error_code": null, "held": "0", "cost": "0.4", "refunded": "0", "adjustments": [], "webhook": null,
            "record": { "id": done, "status": "completed" },
            "request": { "prompt": "a mill" },
            "attempts": [{ "number": 1, "channel": "sandbox", "fence": 1, "error": null }],
            "charge": { "price": "0.4", "units": 1, "unit": "image", "held": "0.4", "settled": "0.4", "released": "0" },
            "entries": [{ "kind": "hold", "amount": "0.4", "delta": "0" }, { "kind": "settle", "amount": "0.4", "delta": "-0.4" }],
            "files": [{ "type": "image/png" }],
        }),
    );
    assert_eq!(
        events(&task),
        [
            "accepted",
            "held",
            "attempt_started",
            "fetched",
            "settled",
            "ended"
        ]
    );
    let file = client
        .fetch(task["files"][0]["url"].as_str().unwrap())
        .await;
    assert_eq!(
        Some(file.expect(200).body.len() as u64),
        task["files"][0]["bytes"].as_u64()
    );
    let task = get(&owner, &format!("/tasks/{failed}")).await;
    assert_has(
        &task,
        json!({ "state": "failed", "cost": "0", "files": [], "charge": { "settled": "0", "released": "0.4" } }),
    );
    assert!(events(&task).contains(&"attempt_failed"), "{task}");
    assert_eq!(get(&owner, &format!("/tasks/{open}")).await["held"], "0.4");

    let cancel = format!("/tasks/{open}/cancel");
    let cancelled = send(&owner, "POST", &cancel, &[], &json!({ "reason": "asked" })).await;
    assert_has(
        &cancelled.expect(200).json(),
        json!({ "state": "cancelled", "held": "0", "cost": "0", "charge": { "released": "0.4" } }),
    );
    assert_eq!(client.balances().await, (9.6, 0.4));
    let again = send(&owner, "POST", &cancel, &[], &json!({})).await;
    assert_eq!(
        again.expect(409).json()["error"]["code"],
        "already_finished"
    );
    let event = get(&owner, "/events?action=task.cancel").await;
    assert_has(
        &event["data"][0],
        json!({ "object": { "type": "task", "id": open }, "reason": "asked" }),
    );

    for (q, expected) in [
        (done.as_str(), json!([{ "type": "task", "id": done }])),
        (user.as_str(), json!([{ "type": "user", "id": user }])),
        ("nothing-has-this-id", json!([])),
    ] {
        let found = get(&owner, &format!("/search?q={q}")).await;
        assert_has(&found["data"], expected);
    }
    for (path, status) in [
        ("/search?q=ab", 400),
        ("/tasks/task_none", 404),
        ("/tasks?user=x", 400),
    ] {
        send(&owner, "GET", path, &[], &Value::Null)
            .await
            .expect(status);
    }
    let (path, accept) = (format!("{ADMIN}/tasks"), [("accept", "text/csv")]);
    let csv = owner.send_with("GET", &path, &accept, String::new()).await;
    let csv = csv.expect(200).text();
    assert!(csv.starts_with("id,kind,model,state,"), "{csv}");
    assert_eq!(csv.lines().count(), 4);
    gateway.close().await;
}

async fn chats_are_listed_and_shown(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let chat = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "Hello" }] });
    let reply = client.post("/v1/chat/completions", &chat).await.expect(200);
    let request_id = reply.header("x-request-id").to_owned();
    let fail = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "[[sandbox:status=500]]" }] });
    assert_ne!(client.post("/v1/chat/completions", &fail).await.status, 200);
    let chats = get(&owner, "/chats").await["data"].clone();
    let [failed, done] = chats.as_array().unwrap().as_slice() else {
        panic!("two chats: {chats}");
    };
    assert_has(
        done,
        json!({
            "model": "gpt-5", "format": "chat-completions", "streamed": false, "outcome": "done", "channel": "sandbox",
            "request_id": request_id, "error_code": null, "refunded": "0",
        }),
    );
    assert_has(failed, json!({ "outcome": "failed", "cost": "0" }));
    assert_ne!(failed["error_code"], Value::Null, "{failed}");
    let id = done["id"].as_str().unwrap();
    assert_eq!(
        ids(&owner, &format!("/chats?request_id={request_id}")).await,
        [id]
    );
    assert_eq!(
        ids(&owner, "/chats?outcome=done&format=chat-completions").await,
        [id]
    );
    let code = failed["error_code"].as_str().unwrap();
    let failures = ids(&owner, &format!("/chats?error_code=other,{code}")).await;
    assert_eq!(failures, [failed["id"].as_str().unwrap()]);
    assert_eq!(
        ids(&owner, "/chats?outcome=cut").await,
        Vec::<String>::new()
    );
    let page = get(&owner, &format!("/chats/{id}")).await;
    let cost = &page["cost"];
    assert_has(
        &page,
        json!({ "attempts": [], "dropped": [], "charge": { "unit": "token", "settled": cost, "refunded": "0" } }),
    );
    let spent = json!(format!("-{}", cost.as_str().unwrap()));
    let entries = page["entries"].as_array().unwrap();
    assert!(
        entries.iter().any(|entry| entry["delta"] == spent),
        "{page}"
    );
    let found = get(&owner, &format!("/search?q={request_id}")).await;
    assert_has(&found["data"], json!([{ "type": "request", "id": id }]));
    // A token can read what its scopes allow.
    let body = json!({ "name": "t", "scopes": ["tasks:read"] });
    let token = send(&owner, "POST", "/tokens", &[], &body)
        .await
        .expect(201)
        .json();
    let token = gateway.client(
        Some(token["secret"].as_str().unwrap().to_owned()),
        String::new(),
    );
    send(&token, "GET", "/chats", &[], &Value::Null)
        .await
        .expect(403);
    assert_eq!(
        get(&token, &format!("/search?q={id}")).await["data"],
        json!([])
    );
    gateway.close().await;
}

async fn webhooks_are_sent_again(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let receiver = WebhookReceiver::start().await;
    let mut body = image("a mill");
    let without = client.submit(&body).await;
    body["callback_url"] = json!(receiver.url("hook"));
    let task = client.submit(&body).await;
    client.wait_for_end(&task).await;
    let delivered = async |count: usize| {
        until_true("the webhook to be delivered", async || {
            let task = get(&owner, &format!("/tasks/{task}")).await;
            let tries = task["webhook"]["tries"].as_array().map_or(0, Vec::len);
            task["webhook"]["state"] == "delivered" && tries == count
        })
        .await;
    };
    delivered(1).await;
    let path = format!("/tasks/{task}/webhook/resend");
    let resent = send(&owner, "POST", &path, &[], &json!({}))
        .await
        .expect(202)
        .json();
    assert_eq!(resent["url"], body["callback_url"]);
    delivered(2).await;
    receiver.wait_for_posts("hook", 2).await;
    client.wait_for_end(&without).await;
    let open = client.submit(&image("[[sandbox:hang]]")).await;
    for (id, code) in [(&without, "no_webhook"), (&open, "not_finished")] {
        let path = format!("/tasks/{id}/webhook/resend");
        let reply = send(&owner, "POST", &path, &[], &json!({})).await;
        assert_eq!(reply.expect(409).json()["error"]["code"], code);
    }
    client.cancel(&open).await.expect(200);
    gateway.close().await;
}
