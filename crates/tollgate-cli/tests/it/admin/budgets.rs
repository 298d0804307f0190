//! Budgets as clients see them: requests of every endpoint beyond a hard budget get 402, and ends and refunds change the spent amount.

use serde_json::{Value, json};

use super::{ADMIN, PRICES, image, send};
use crate::harness::*;

on_both!(a_hard_budget_rejects_requests_until_a_refund);

async fn a_hard_budget_rejects_requests_until_a_refund(backend: Backend) {
    let setup = Setup::new(backend).config(PRICES).admin_key(super::OWNER);
    let gateway = setup.start().await;
    let owner = gateway.client(Some(super::OWNER.to_owned()), String::new());
    // A client without a limit, so that nothing is held for its chats before it has a budget.
    let client = gateway.unlimited_client().await;
    let chat = json!({ "model": "gpt-5", "max_tokens": 10, "messages": [{ "role": "user", "content": "Hello" }] });
    let chats = "/v1/chat/completions";
    client.post(chats, &chat).await.expect(200);
    let users = send(&owner, "GET", "/users", &[], &Value::Null)
        .await
        .json();
    let user = users["data"][0]["id"].clone();
    let new = json!({ "user_id": user, "amount": "1", "period": "month", "mode": "hard" });
    let budget = send(&owner, "POST", "/budgets", &[], &new).await;
    let budget = budget.expect(201).json();
    let spent: f64 = budget["spent"].as_str().unwrap().parse().unwrap();
    assert!(spent > 0.0, "what was spent before counts: {budget}");
    let path = format!("{ADMIN}/budgets/{}", budget["id"].as_str().unwrap());

    let task = task_id(&client.generate(&image("a mill")).await);
    client.generate(&image("a hill")).await;
    let rejected = client
        .post("/v1/images/generations", &image("a pond"))
        .await;
    let message = rejected.expect(402).json()["error"]["message"].to_string();
    assert!(
        message.contains("monthly budget of this account"),
        "{message}"
    );
    assert!(message.contains("is left until 20"), "{message}");
    // The output alone could cost 1, at a price of 1 per thousand tokens.
    let large = json!({ "model": "gpt-5", "max_tokens": 1000, "messages": [{ "role": "user", "content": "Hello" }] });
    client.post(chats, &large).await.expect(402);
    client.post(chats, &chat).await.expect(200);
    let now = owner.get_json(&path).await;
    assert_eq!((&now["held"], &now["mode"]), (&json!("0"), &json!("hard")));

    let part = json!({ "amount": "0.4", "reason": "too dark" });
    let refund = format!("/tasks/{task}/refund");
    let refund = send(&owner, "POST", &refund, &[("idempotency-key", "1")], &part);
    refund.await.expect(201);
    client.generate(&image("a pond")).await;
    client
        .post("/v1/images/generations", &image("a pond"))
        .await
        .expect(402);
    let softer = json!({ "mode": "soft" });
    let path = format!("/budgets/{}", budget["id"].as_str().unwrap());
    let changed = send(&owner, "PATCH", &path, &[("if-match", "\"1\"")], &softer).await;
    changed.expect(200);
    client.generate(&image("a pond")).await;
    gateway.close().await;
}
