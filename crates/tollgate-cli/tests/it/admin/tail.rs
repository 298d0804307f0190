//! The live tail: each event of every node reaches everyone who may see it, once, also after a connection was lost.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ADMIN, OWNER, PRICES, image, priced_gateway, send};
use crate::harness::*;

on_both!(
    the_live_tail_reports_tasks_and_chats,
    a_reconnected_tail_client_gets_each_event_once,
    the_tail_has_only_events_that_the_scopes_allow,
    the_tail_ends_when_the_token_is_deleted_or_the_gateway_stops,
);
on_postgres!(the_tail_has_the_events_of_all_nodes);

const TAIL: &str = "/admin/v1/tail";

fn chat() -> Value {
    json!({ "model": "gpt-5", "max_tokens": 20, "messages": [{ "role": "user", "content": "Hello" }] })
}

/// Reads events until one has that kind and state or outcome.
async fn wait_for(stream: &mut Stream, kind: &str, state: &str) -> (Event, Vec<Event>) {
    let mut before = Vec::new();
    loop {
        let event = stream.event().await.expect("an event");
        let data = event.json();
        let is_it = data["state"] == state || data["outcome"] == state;
        if event.name == kind && is_it {
            return (event, before);
        }
        before.push(event);
    }
}

async fn the_live_tail_reports_tasks_and_chats(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let mut all = owner.watch(TAIL, &[]).await;
    assert_eq!(all.status, 200);
    assert_eq!(all.headers["content-type"], "text/event-stream");
    let filter = "?model=gpt-5,other&outcome=done,failed";
    let mut chats = owner.watch(&format!("{TAIL}{filter}"), &[]).await;
    let task = task_id(&client.generate(&image("a mill")).await);
    let (_, before) = wait_for(&mut all, "task", "completed").await;
    let states: Vec<_> = before.iter().map(|e| e.json()["state"].clone()).collect();
    assert_eq!(states, ["submitted", "in_progress"]);
    client
        .post("/v1/chat/completions", &chat())
        .await
        .expect(200);
    let (event, _) = wait_for(&mut all, "chat", "done").await;
    assert_has(
        &event.json(),
        json!({ "id": "<string>", "outcome": "done", "model": "gpt-5", "channel": "sandbox", "user_id": "<string>", "key_id": "<string>", "at": "<string>" }),
    );
    let ended = before[0].json();
    assert_eq!(ended["id"], task.as_str());
    assert_eq!(ended["cost"], "0");
    // The filter leaves out the task.
    let first = chats.event().await.unwrap();
    assert_eq!((first.name.as_str(), first.json()), ("chat", event.json()));
    // The list shows the same values for the chat.
    let list = owner.get_json(&format!("{ADMIN}/chats")).await;
    for member in ["id", "outcome", "cost", "user_id", "key_id"] {
        assert_eq!(list["data"][0][member], event.json()[member], "{member}");
    }
    for (path, headers, field) in [
        ("?colour=red", vec![], "colour"),
        ("", vec![("last-event-id", "17")], ""),
        ("", vec![("last-event-id", "seventeen")], "Last-Event-ID"),
    ] {
        let mut reply = owner.watch(&format!("{TAIL}{path}"), &headers).await;
        if field.is_empty() {
            // This id is older than all events that are kept.
            assert_eq!(reply.event().await.unwrap().name, "reset");
            continue;
        }
        assert_eq!(reply.status, 400);
        let body: Value = serde_json::from_str(&reply.text().await).unwrap();
        assert_eq!(body["error"]["field"], field);
    }
    gateway.close().await;
}

async fn a_reconnected_tail_client_gets_each_event_once(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let mut stream = owner.watch(TAIL, &[]).await;
    let mut seen = Vec::new();
    let mut last = String::new();
    for round in 0..6 {
        // Some events are read before the connection is lost, the others after.
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let client = client.clone();
            running.spawn(async move { client.post("/v1/chat/completions", &chat()).await });
        }
        for reply in running.join_all().await {
            reply.expect(200);
        }
        while seen.len() < round * 10 + 3 {
            let event = stream.event().await.unwrap();
            seen.push(event.json()["id"].clone());
            last = event.id;
        }
        drop(stream);
        stream = owner.watch(TAIL, &[("last-event-id", &last)]).await;
    }
    while seen.len() < 60 {
        seen.push(stream.event().await.unwrap().json()["id"].clone());
    }
    let stored = gateway.query("SELECT id FROM chats ORDER BY id").await;
    let mut seen: Vec<_> = seen.iter().map(|id| id.as_str().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        stored.iter().map(|row| row[0].as_str()).collect::<Vec<_>>()
    );
    gateway.close().await;
}

async fn token(owner: &Client, gateway: &TestGateway, scope: &str) -> (Client, String) {
    let new = json!({ "name": scope, "scopes": [scope] });
    let token = send(owner, "POST", "/tokens", &[], &new).await.expect(201);
    let token = token.json();
    let secret = token["secret"].as_str().unwrap().to_owned();
    let id = token["id"].as_str().unwrap().to_owned();
    (gateway.client(Some(secret), String::new()), id)
}

async fn the_tail_has_only_events_that_the_scopes_allow(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let mut streams = BTreeMap::new();
    for scope in ["tasks:read", "chats:read"] {
        let (watcher, _) = token(&owner, &gateway, scope).await;
        streams.insert(scope, watcher.watch(TAIL, &[]).await);
    }
    let (stranger, _) = token(&owner, &gateway, "users:read").await;
    assert_eq!(stranger.watch(TAIL, &[]).await.status, 403);
    assert_eq!(client.watch(TAIL, &[]).await.status, 401);
    client
        .post("/v1/chat/completions", &chat())
        .await
        .expect(200);
    client.generate(&image("a mill")).await;
    client
        .post("/v1/chat/completions", &chat())
        .await
        .expect(200);
    let tasks = streams.get_mut("tasks:read").unwrap();
    let (_, before) = wait_for(tasks, "task", "completed").await;
    assert!(
        before.iter().all(|event| event.name == "task"),
        "{before:?}"
    );
    let chats = streams.get_mut("chats:read").unwrap();
    for _ in 0..2 {
        assert_eq!(chats.event().await.unwrap().name, "chat");
    }
    gateway.close().await;
}

async fn the_tail_ends_when_the_token_is_deleted_or_the_gateway_stops(backend: Backend) {
    let (gateway, owner, _) = priced_gateway(backend).await;
    let (watcher, id) = token(&owner, &gateway, "chats:read").await;
    let mut stream = watcher.watch(TAIL, &[]).await;
    let mut of_owner = owner.watch(TAIL, &[]).await;
    let path = format!("/tokens/{id}");
    let deleted = send(
        &owner,
        "DELETE",
        &path,
        &[("if-match", "\"1\"")],
        &Value::Null,
    );
    deleted.await.expect(204);
    assert_eq!(stream.event().await, None);
    assert!(!stream.broken);
    // Neither the stream nor its loop keeps the gateway from stopping.
    gateway.close().await;
    assert_eq!(of_owner.event().await, None);
}

async fn the_tail_has_the_events_of_all_nodes(backend: Backend) {
    let node = || Setup::new(backend).config(PRICES).admin_key(OWNER);
    let a = node().start().await;
    let b = node().beside(&a).start().await;
    let client = a.funded_client("10").await;
    let at_b = b.client(client.secret.clone(), client.key_id.clone());
    let owner = a.client(Some(OWNER.to_owned()), String::new());
    let mut stream = owner.watch(TAIL, &[]).await;
    // The other node detects the watcher at its next poll; chats that it serves before that are not shown.
    let mut last = String::new();
    let (mut of_other, mut shown) = (Vec::new(), Vec::new());
    while !of_other.iter().any(|id| shown.contains(id)) {
        let reply = at_b.post("/v1/chat/completions", &chat()).await.expect(200);
        let id = reply.header("x-request-id").to_owned();
        let own = client
            .post("/v1/chat/completions", &chat())
            .await
            .expect(200);
        let own = own.header("x-request-id").to_owned();
        let chats = owner
            .get_json(&format!("{ADMIN}/chats?request_id={id},{own}"))
            .await;
        let of = |request: &str| {
            let list = chats["data"].as_array().unwrap();
            let chat = list.iter().find(|chat| chat["request_id"] == request);
            chat.unwrap()["id"].clone()
        };
        of_other.push(of(&id));
        // The stream always shows the chat of its own node; it may show the other node's chat before that or after.
        while !shown.contains(&of(&own)) {
            let event = stream.event().await.unwrap();
            shown.push(event.json()["id"].clone());
            last = event.id;
        }
    }
    // The other node resumes the stream after the last event of this one.
    at_b.post("/v1/chat/completions", &chat()).await.expect(200);
    let owner_at_b = b.client(Some(OWNER.to_owned()), String::new());
    let mut resumed = owner_at_b.watch(TAIL, &[("last-event-id", &last)]).await;
    assert_eq!(resumed.event().await.unwrap().name, "chat");
    a.close().await;
    b.close().await;
}
