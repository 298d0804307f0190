//! Prices, channels and models that the admin API writes, beside those of the configuration file.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::table::run_table;
use super::{OWNER, PRICES, image, priced_gateway, send};
use crate::harness::*;
use tollgate_fakes::{Options, Provider, start};

on_both!(
    price_requests_match_the_table,
    channel_requests_match_the_table,
    model_requests_match_the_table,
    chats_do_not_fail_while_channels_change,
    the_file_takes_precedence_over_the_database,
);
on_sqlite!(
    a_job_of_a_deleted_channel_is_polled_to_its_end,
    stored_provider_keys_need_the_encryption_secret,
    the_configuration_is_shown_checked_and_exported,
);
on_postgres!(a_change_applies_on_every_node);

const FILE: &str = r#"
[secrets]
key = "0123456789abcdef0123456789abcdef"
[[channel]]
name = "filed"
kind = "sandbox"
"#;
const BILLED_CHANNEL: &str = r#"
[[channel]]
name = "billed"
kind = "openai"
api_keys = ["env:PROVIDER_KEY"]
admin_key = "env:PROVIDER_KEY"
models = ["gpt-4o"]
"#;
const KEY: &str = "sk-a-key-of-the-provider-wxyz";

async fn channel_requests_match_the_table(backend: Backend) {
    let file = format!("traces.headers = \"env:COLLECTOR_HEADERS\"\n{FILE}");
    let setup = Setup::new(backend).admin_key(OWNER).config(&file);
    let setup = setup.env("COLLECTOR_HEADERS", "authorization=secret");
    let gateway = setup.env("PROVIDER_KEY", KEY).start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    run_table(&gateway, &owner, "admin_channels", Vec::new()).await;
    // No table has a key in plain text.
    for table in ["configuration", "admin_events", "admin_writes"] {
        let rows = gateway.query(&format!("SELECT * FROM {table}")).await;
        let text = format!("{rows:?}");
        assert!(
            !text.contains("sk-secret-of") && !text.contains(KEY),
            "{table}"
        );
    }
    gateway.close().await;
}

async fn price_requests_match_the_table(backend: Backend) {
    let (gateway, owner, _) = priced_gateway(backend).await;
    run_table(&gateway, &owner, "admin_prices", Vec::new()).await;
    gateway.close().await;
}

/// A price in the file takes precedence over the database's price, which is kept and shown; without the one in the file, the database's applies
/// again.
async fn the_file_takes_precedence_over_the_database(backend: Backend) {
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

    gateway.reload("", "were reloaded").await;
    client.generate(&image("of the database again")).await;
    client.check_balances(9.1, 0.9).await;
    gateway.close().await;
}

/// What one node writes applies on the other node, also after the other node was restarted.
async fn a_change_applies_on_every_node(backend: Backend) {
    let a = Setup::new(backend).admin_key(OWNER);
    let a = a.env("PROVIDER_KEY", KEY).start().await;
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
    // A node that cannot use a part of the configuration reports an error.
    let channel = json!({ "name": "keyed", "kind": "openai", "api_keys": ["env:PROVIDER_KEY"], "models": ["gpt-5"] });
    send(&owner, "POST", "/channels", &[], &channel)
        .await
        .expect(201);
    until_true("its error", async || {
        let nodes = owner.get_json("/admin/v1/nodes").await;
        let nodes = nodes["data"].as_array().unwrap();
        let error_of = |node: &Value| node["config_error"].as_str().map(str::to_owned);
        let errors: Vec<String> = nodes.iter().filter_map(error_of).collect();
        let versions: Vec<&Value> = nodes.iter().map(|node| &node["config_version"]).collect();
        errors.len() == 1 && errors[0].contains("PROVIDER_KEY") && versions[0] == versions[1]
    })
    .await;
    a.close().await;
    b.close().await;
}

/// The export is a configuration file with which a gateway has the same channels and prices.
async fn the_configuration_is_shown_checked_and_exported(backend: Backend) {
    let file = format!(
        "limits.rpm = 77\nfairness.weights = {{ \"ann b\" = 4 }}\n{PRICES}{FILE}{BILLED_CHANNEL}"
    );
    let setup = Setup::new(backend).admin_key(OWNER).config(&file);
    let mut gateway = setup.env("PROVIDER_KEY", KEY).start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    run_table(&gateway, &owner, "admin_config", Vec::new()).await;
    let price =
        json!({ "per_second": "0.1", "when": [{ "resolution": "4k", "per_second": "0.6" }] });
    send(&owner, "PUT", "/prices/sora-2", &[], &price)
        .await
        .expect(201);
    let channel = json!({
        "name": "made", "kind": "openai", "api_keys": ["env:PROVIDER_KEY", "sk-secret-of-the-provider-abcd"],
        "models": [{ "name": "gpt-5", "upstream": "five" }], "first_byte_s": 7, "betas": ["x*"],
    });
    send(&owner, "POST", "/channels", &[], &channel)
        .await
        .expect(201);
    let exported = owner.get("/admin/v1/config/export").await.expect(200);
    assert_eq!(exported.header("content-type"), "application/toml");
    let text = exported.text();
    assert!(text.contains("admin_key = \"env:PROVIDER_KEY\""), "{text}");
    for secret in ["sk-secret-of", KEY, OWNER, "0123456789abcdef0123"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(
        text.contains("# api_keys: a key sealed") && text.contains("# secrets.key is set"),
        "{text}"
    );
    let check = json!({ "toml": text });
    let check = send(&owner, "POST", "/config/validate", &[], &check).await;
    assert_has(
        &check.expect(200).json(),
        json!({ "ok": true, "warnings": [] }),
    );

    let shown = async |path: &str| {
        let list = owner
            .get_json(&format!("/admin/v1{path}?source=file,database"))
            .await;
        let mut objects = list["data"].clone();
        for object in objects.as_array_mut().unwrap() {
            for name in ["source", "created_at", "updated_at", "shadowed", "api_keys"] {
                object[name].take();
            }
        }
        objects
    };
    let before = (shown("/prices").await, shown("/channels").await);
    for (path, name) in [("/prices", "sora-2"), ("/channels", "made")] {
        let path = format!("{path}/{name}");
        let deleted = send(
            &owner,
            "DELETE",
            &path,
            &[("if-match", "\"1\"")],
            &Value::Null,
        );
        deleted.await.expect(204);
    }
    gateway.set_config(&text);
    gateway.restart().await;
    assert_eq!((shown("/prices").await, shown("/channels").await), before);
    gateway.close().await;
}

async fn model_requests_match_the_table(backend: Backend) {
    let file = format!("{FILE}[[model]]\nname = \"filed-model\"\nlike = \"gpt-5\"\n");
    let setup = Setup::new(backend).admin_key(OWNER).config(&file);
    let gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let client = gateway.unlimited_client().await;
    let saved = vec![("client".to_owned(), client.secret.clone().unwrap())];
    run_table(&gateway, &owner, "admin_models", saved).await;
    gateway.close().await;
}

fn chat() -> Value {
    json!({ "model": "gpt-5-nano", "messages": [{ "role": "user", "content": "x" }] })
}

/// Sends chats one after the other; none may fail. Returns how many chats there were.
async fn chat_until(client: &Client, stop: &AtomicBool) -> usize {
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        client
            .post("/v1/chat/completions", &chat())
            .await
            .expect(200);
        count += 1;
    }
    count
}

/// Chats that run while channels are added, changed, paused, woken and deleted never fail.
async fn chats_do_not_fail_while_channels_change(backend: Backend) {
    let setup = Setup::new(backend).admin_key(OWNER).config(FILE);
    let gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let client = gateway.unlimited_client().await;
    let stop = AtomicBool::new(false);
    let changes = async {
        let act = async |method: &str, path: &str, version: i64, body: Value, status: u16| {
            let version = format!("\"{version}\"");
            let headers = [("if-match", version.as_str())];
            send(&owner, method, path, &headers, &body)
                .await
                .expect(status);
        };
        let channel =
            json!({ "name": "made", "kind": "sandbox", "priority": -1, "max_concurrency": 2 });
        for _ in 0..3 {
            act("POST", "/channels", 0, channel.clone(), 201).await;
            act("POST", "/channels/filed/pause", 0, json!({}), 200).await;
            act(
                "PATCH",
                "/channels/made",
                1,
                json!({ "max_concurrency": 9 }),
                200,
            )
            .await;
            act("POST", "/channels/filed/wake", 0, json!({}), 200).await;
            act(
                "POST",
                "/channels/made/pause",
                0,
                json!({ "for_s": 60 }),
                200,
            )
            .await;
            act("POST", "/channels/made/wake", 0, json!({}), 200).await;
            act("DELETE", "/channels/made", 2, Value::Null, 204).await;
        }
        stop.store(true, Ordering::Relaxed);
    };
    let (a, b, ()) = tokio::join!(
        chat_until(&client, &stop),
        chat_until(&client, &stop),
        changes
    );
    assert!(a > 0 && b > 0);
    // If all channels of a model are paused, its requests get a clear error and fail over to no other channel.
    let pause = send(&owner, "POST", "/channels/filed/pause", &[], &json!({})).await;
    pause.expect(200);
    let reply = client
        .post("/v1/chat/completions", &chat())
        .await
        .expect(503);
    assert!(reply.text().contains("is paused"), "{}", reply.text());
    // A task waits for the end of the pause.
    let task = client.submit(&image("waits")).await;
    send(&owner, "POST", "/channels/filed/wake", &[], &json!({}))
        .await
        .expect(200);
    assert_eq!(status(&client.wait_for_end(&task).await), "completed");
    let health = owner.get_json("/admin/v1/channels/filed/health").await;
    assert_has(
        &health,
        json!({ "data": [{ "p50_ms": "<integer>", "error_rate": 0.0 }] }),
    );
    gateway.close().await;
}

/// A job that the provider has when its channel is deleted is polled to its end, also after a restart.
async fn a_job_of_a_deleted_channel_is_polled_to_its_end(backend: Backend) {
    let setup = Setup::new(backend).admin_key(OWNER).config(FILE);
    let mut gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let client = gateway.unlimited_client().await;
    let fake = start(Provider::Ark, Options::default()).await.unwrap();
    let channel = json!({
        "name": "made", "kind": "ark", "base_url": fake.base_url(), "api_keys": [KEY],
        "models": ["seedance-1.0-pro"], "priority": -1, "poll_ms": 20,
    });
    send(&owner, "POST", "/channels", &[], &channel)
        .await
        .expect(201);
    let body = json!({ "model": "seedance-1.0-pro", "prompt": "a pier [[fake:polls=40]]", "duration": 2, "resolution": "480p" });
    let receipt = client.post("/v1/video/generations", &body).await;
    let id = task_id(&receipt.expect(200).json());
    until_true("a poll", async || !fake.polls().is_empty()).await;
    send(
        &owner,
        "DELETE",
        "/channels/made",
        &[("if-match", "\"1\"")],
        &Value::Null,
    )
    .await
    .expect(204);
    gateway.restart().await;
    assert_eq!(status(&client.wait_for_end(&id).await), "completed");
    let detail = owner.get_json(&format!("/admin/v1/tasks/{id}")).await;
    assert_has(
        &detail,
        json!({ "channel": "made", "attempts": [{ "number": 1, "channel": "made" }] }),
    );
    gateway.close().await;
}

/// Storing a key needs `secrets.key`, and so does using it later: a node without `secrets.key` leaves the channel out and reports that.
async fn stored_provider_keys_need_the_encryption_secret(backend: Backend) {
    let setup = Setup::new(backend).admin_key(OWNER);
    let mut gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let channel =
        json!({ "name": "made", "kind": "openai", "api_keys": [KEY], "models": ["gpt-5"] });
    let reply = send(&owner, "POST", "/channels", &[], &channel)
        .await
        .expect(400);
    assert_eq!(reply.json()["error"]["field"], "api_keys[0]");
    assert!(!reply.text().contains(KEY));
    let secret = "0123456789abcdef0123456789abcdef";
    gateway.set_env("TOLLGATE_SECRETS__KEY", secret);
    gateway.restart().await;
    send(&owner, "POST", "/channels", &[], &channel)
        .await
        .expect(201);
    gateway.set_env("TOLLGATE_SECRETS__KEY", "");
    gateway.restart().await;
    let message = "has no `secrets.key`";
    until_true("an error", async || gateway.log().contains(message)).await;
    let test = send(&owner, "POST", "/channels/made/test", &[], &json!({})).await;
    let test = test.expect(200).json();
    assert_eq!(test["ok"], false);
    assert!(
        test["results"][0]["error"]
            .as_str()
            .unwrap()
            .contains(message),
        "{test}"
    );
    // The pause of a channel that this node cannot open ends too.
    let pause = json!({ "for_s": 600 });
    let reply = send(&owner, "POST", "/channels/made/pause", &[], &pause).await;
    reply.expect(200);
    let paused = async || owner.get_json("/admin/v1/channels").await["data"][0]["paused"].clone();
    assert_eq!(paused().await, true);
    gateway
        .execute("UPDATE configuration SET body = '{\"until\":1}' WHERE kind = 'pause'")
        .await;
    assert_eq!(paused().await, false);
    // The gateway does not fall back to the sandbox.
    let client = gateway.unlimited_client().await;
    client
        .post("/v1/chat/completions", &chat())
        .await
        .expect(502);
    gateway.set_env("TOLLGATE_SECRETS__KEY", "too short");
    gateway.terminate().await;
    assert!(!gateway.start_to_crash().await);
    gateway.set_env("TOLLGATE_SECRETS__KEY", secret);
    gateway.start_server().await;
    assert_eq!(
        owner.get_json("/admin/v1/channels/made").await["api_keys"][0]["hint"],
        "wxyz"
    );
    gateway.close().await;
}
