//! Prices and channels that the admin API writes, beside those of the file.

use serde_json::{Value, json};

use super::table::run_table;
use super::{OWNER, PRICES, image, priced_gateway, send};
use crate::harness::*;

on_both!(
    prices_get_what_the_table_says,
    the_file_shadows_the_database,
);
on_postgres!(a_change_holds_on_every_node_within_a_second);

async fn prices_get_what_the_table_says(backend: Backend) {
    let (gateway, owner, _) = priced_gateway(backend).await;
    run_table(&gateway, &owner, "admin_prices", Vec::new()).await;
    gateway.close().await;
}

/// A price in the file wins over the database's, which is kept and shown; the file without it makes the database's hold again.
async fn the_file_shadows_the_database(backend: Backend) {
    let setup = Setup::new(backend).admin_key(OWNER);
    let mut gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let client = gateway.funded_client("10").await;
    let path = "/prices/gpt-image-2-official";
    let price = json!({ "per_image": "0.3" });
    send(&owner, "PUT", path, &[], &price).await.expect(201);
    client.generate(&image("of the database")).await;
    client.check_balances(9.7, 0.3).await;

    gateway.set_config(PRICES);
    gateway.restart().await;
    let shadowed = r#"price \"gpt-image-2-official\""#;
    until_true("a warning", async || gateway.log().contains(shadowed)).await;
    client.generate(&image("of the file")).await;
    client.check_balances(9.3, 0.7).await;
    let prices = owner.get_json("/admin/v1/prices").await;
    let has = json!({ "data": [
        { "model": "gpt-5", "source": "file" },
        { "model": "gpt-image-2-official", "source": "file", "shadowed": false, "per_image": "0.4" },
        { "model": "gpt-image-2-official", "source": "database", "shadowed": true, "per_image": "0.3" },
    ]});
    assert_has(&prices, has);
    let own = format!("{path}?source=database");
    let patch = json!({ "per_image": "0.2" });
    let match_1 = [("if-match", "\"1\"")];
    send(&owner, "PATCH", path, &match_1, &patch)
        .await
        .expect(409);
    let patched = send(&owner, "PATCH", &own, &match_1, &patch).await;
    assert_has(
        &patched.expect(200).json(),
        json!({ "shadowed": true, "version": 2 }),
    );

    gateway.reload("", "were read again").await;
    client.generate(&image("of the database again")).await;
    client.check_balances(9.1, 0.9).await;
    gateway.close().await;
}

/// What one node writes holds on the other, also after that was restarted.
async fn a_change_holds_on_every_node_within_a_second(backend: Backend) {
    let a = Setup::new(backend).admin_key(OWNER).start().await;
    let mut b = Setup::new(backend)
        .admin_key(OWNER)
        .beside(&a)
        .start()
        .await;
    let owner = a.client(Some(OWNER.to_owned()), String::new());
    let client = b.funded_client("10").await;
    let path = "/prices/gpt-image-2-official";
    let price = json!({ "per_image": "0.5" });
    send(&owner, "PUT", path, &[], &price).await.expect(201);
    let quote = json!({ "endpoint": "/v1/images/generations", "request": image("x") });
    let quoted =
        async |price: &str| client.post("/v1/quote", &quote).await.json()["price"] == price;
    until_true("the other node has the price", async || quoted("0.5").await).await;
    b.restart().await;
    assert!(quoted("0.5").await);
    send(
        &owner,
        "DELETE",
        path,
        &[("if-match", "\"1\"")],
        &Value::Null,
    )
    .await
    .expect(204);
    until_true("the price is gone", async || quoted("0").await).await;
    a.close().await;
    b.close().await;
}
