//! What is past its time goes: files, task records, idempotency keys. The books stay.

use serde_json::Value;

use crate::gate::{Backend, Client, Gate, Setup, links, on_both, status, task_id, until};
use crate::pictures::png;
use crate::shop::{self, PRICE, PRICES, order, pictures};

on_both!(everything_goes_in_its_time);

/// How long everything is kept.
const LIFE_S: &str = "4";

async fn everything_goes_in_its_time(backend: Backend) {
    let setup = Setup::new(backend).config(PRICES);
    let setup = setup.env("TOLLGATE_EXPIRY__TASKS_S", LIFE_S);
    let setup = setup.env("TOLLGATE_EXPIRY__IMAGES_S", LIFE_S);
    let gate = setup.env("TOLLGATE_EXPIRY__LONG_S", LIFE_S).start().await;
    let client = gate.somebody_with("payer", &["--balance", "10"]).await;
    let upload = client.uploaded(&png(64, 64)).await;
    client.fetch(&upload).await.expect(200);
    let body = pictures("a kite", 2);
    let receipt = order(&client, "once", &body).await.expect(200);
    let id = task_id(&receipt.json());
    let record = client.ended(&id).await;
    assert_eq!(status(&record), "completed", "{record}");
    let links = links(&record);
    client.fetch(&links[0]).await.expect(200);

    for link in links.iter().chain([&upload]) {
        until("a link to end", async || {
            (client.fetch(link).await.status != 200).then_some(())
        })
        .await;
        client.fetch(link).await.error(410, "not_found_error");
    }
    until("the files to be deleted", async || {
        shop::public_files(&gate).is_empty().then_some(())
    })
    .await;
    let path = format!("/v1/tasks/{id}");
    until("the record to be forgotten", async || {
        (client.get(&path).await.status == 404).then_some(())
    })
    .await;
    let all = client.get("/v1/tasks").await.expect(200).json();
    assert_eq!(all["data"].as_array().unwrap().len(), 0, "{all}");
    gate.check_books().await;
    assert_eq!(client.purse().await, (10.0 - 2.0 * PRICE, 2.0 * PRICE));

    // The idempotency key lives on for its day: the receipt is the first one, and nothing is charged.
    let again = order(&client, "once", &body).await.expect(200);
    assert_eq!(again.body, receipt.body);
    assert_eq!(client.purse().await, (10.0 - 2.0 * PRICE, 2.0 * PRICE));
    if backend == Backend::Postgres {
        a_day_later(&gate, &client, &body).await;
    }
    gate.close().await;
}

/// An idempotency key of yesterday stands for nothing, and is forgotten.
async fn a_day_later(gate: &Gate, client: &Client, body: &Value) {
    let age = "UPDATE idempotency SET created_at = created_at - 86400000";
    shop::sql(gate, age).await;
    let receipt = order(client, "once", body).await.expect(200);
    client.ended(&task_id(&receipt.json())).await;
    assert_eq!(client.purse().await, (10.0 - 4.0 * PRICE, 4.0 * PRICE));
    shop::sql(gate, age).await;
    until("the key to be forgotten", async || {
        let left = shop::number(gate, "SELECT COUNT(*) FROM idempotency").await;
        (left == 0).then_some(())
    })
    .await;
}
