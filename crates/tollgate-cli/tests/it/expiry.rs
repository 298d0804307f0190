//! Expired data is deleted: files, task records, idempotency keys. The ledger is kept.

use serde_json::{Value, json};

use crate::harness::images::png;
use crate::harness::priced_images::*;
use crate::harness::*;

on_both!(tasks_and_files_expire_after_their_ttl);

/// How long everything is kept.
const TTL_S: &str = "4";

async fn tasks_and_files_expire_after_their_ttl(backend: Backend) {
    let mut setup = Setup::new(backend).config(PRICES);
    for kind in ["TASKS", "IMAGES", "LONG"] {
        setup = setup.env(&format!("TOLLGATE_EXPIRY__{kind}_S"), TTL_S);
    }
    let gateway = setup.start().await;
    let client = gateway.funded_client("10").await;
    let upload = client.upload_image(&png(400, 400)).await;
    let body = images("a kite", 2);
    let receipt = submit_once(&client, "once", &body).await.expect(200);
    let id = task_id(&receipt.json());
    let record = client.wait_for_end(&id).await;
    let links = image_urls(&record);
    for link in [&upload, &links[0]] {
        client.fetch(link).await.expect(200);
    }
    for link in links.iter().chain([&upload]) {
        let is_expired = async || client.fetch(link).await.status != 200;
        until_true("a link to expire", is_expired).await;
        client.fetch(link).await.rejected(410, "");
    }
    let stale =
        json!({ "model": "grok-imagine-1.0-edit-partner", "prompt": "x", "image_urls": [upload] });
    client.post_image(&stale).await.rejected(400, "expired");
    // The name of a file that never existed.
    let (_, name) = upload.rsplit_once('/').unwrap();
    let never = format!("/files/{}{}.png", &name[..7], "z".repeat(26));
    let status = client.get(&never).await.status;
    assert!([404, 410].contains(&status), "{status}");
    let are_deleted = async || public_files(&gateway).is_empty();
    until_true("the files to be deleted", are_deleted).await;
    let path = format!("/v1/tasks/{id}");
    let is_deleted = async || client.get(&path).await.status == 404;
    until_true("the record to be deleted", is_deleted).await;
    assert!(client.tasks().await.is_empty());
    gateway.check_ledger().await;
    let after_two = (10.0 - 2.0 * PRICE, 2.0 * PRICE);
    assert_eq!(client.balances().await, after_two);

    // The idempotency key is kept for a day: a repeated request returns the first receipt, and nothing is charged.
    let again = submit_once(&client, "once", &body).await.expect(200);
    assert_eq!(again.body, receipt.body);
    assert_eq!(client.balances().await, after_two);
    if backend == Backend::Postgres {
        check_a_day_later(&gateway, &client, &body).await;
    }
    gateway.close().await;
}

/// An idempotency key of the day before is ignored, and deleted.
async fn check_a_day_later(gateway: &TestGateway, client: &Client, body: &Value) {
    let age = "UPDATE idempotency SET created_at = created_at - 86400000";
    gateway.execute(age).await;
    let receipt = submit_once(client, "once", body).await.expect(200);
    client.wait_for_end(&task_id(&receipt.json())).await;
    let after_four = (10.0 - 4.0 * PRICE, 4.0 * PRICE);
    assert_eq!(client.balances().await, after_four);
    gateway.execute(age).await;
    let count = "SELECT COUNT(*) FROM idempotency";
    let is_deleted = async || gateway.query_number(count).await == 0;
    until_true("the key to be deleted", is_deleted).await;
}
