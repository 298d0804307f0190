//! What the configuration offers, as the admin API shows it: models, prices, channels and their health.

use serde_json::{Value, json};

use super::{OWNER, gateway};
use crate::harness::*;

on_sqlite!(
    models_list_the_schemas_of_their_requests,
    prices_and_channels_are_shown_without_secrets,
);

const SECRET: &str = "sk-a-key-of-the-provider-wxyz";
const CONFIG: &str = r#"
currency = "CNY"
[price."grok-imagine-video-1.5"]
per_second = 0.10
when = [{ resolution = "720p", per_second = 0.6 }]
[price."gpt-5"]
input_per_million = 1.25
cached_input_per_million = 0.125
output_per_million = 10
per_web_search = 0.01
service_tiers = { priority = 2 }
[[channel]]
name = "second"
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
api_keys = ["sk-a-key-of-the-provider-wxyz", "short", "env:PATH"]
models = ["gpt-5", { name = "gpt-4o", upstream = "gpt-4o-mini" }]
max_concurrency = 3
first_byte_s = 7
poll_ms = 250
[[channel]]
name = "first"
kind = "sandbox"
models = ["gpt-5"]
"#;

async fn list(owner: &Client, path: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let reply = owner
            .get_json(&format!("/admin/v1/{path}?limit=2{cursor}"))
            .await;
        items.extend(reply["data"].as_array().unwrap().clone());
        match reply["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

async fn models_list_the_schemas_of_their_requests(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    let models = list(&owner, "models").await;
    let ids: Vec<&str> = models.iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted() && ids.len() > 20);
    for (id, kind, endpoint, field) in [
        (
            "gpt-image-2-official",
            "image",
            "/v1/images/generations",
            "quality",
        ),
        (
            "grok-imagine-video-1.5",
            "video",
            "/v1/video/generations",
            "duration",
        ),
        ("native-v3", "speech", "/v1/audio/speech", "input"),
        ("gpt-5", "chat", "/api/v1/chat/completions", "messages"),
    ] {
        let model = &models[ids.binary_search(&id).unwrap()];
        assert_eq!(
            (&model["kind"], &model["endpoint"]),
            (&json!(kind), &json!(endpoint))
        );
        assert!(model["schema"]["properties"][field].is_object(), "{model}");
        assert_eq!(model["family"].is_null(), kind == "chat");
    }
    // An alias is not a separate model.
    let aliases = models.iter().flat_map(|m| m["aliases"].as_array().unwrap());
    let aliases: Vec<&str> = aliases.map(|alias| alias.as_str().unwrap()).collect();
    assert!(aliases.iter().all(|alias| !ids.contains(alias)));
    let count = owner.get_json("/admin/v1/models?limit=200").await;
    assert_eq!(count["data"].as_array().unwrap().len(), ids.len().min(200));
    gateway.close().await;
}

async fn prices_and_channels_are_shown_without_secrets(backend: Backend) {
    let setup = Setup::new(backend).admin_key(OWNER).config(CONFIG);
    let gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let built_in = |model: &str, price: &str| json!({ "model": model, "source": "builtin", "shadowed": false, "per_image": price, "version": 1 });
    assert_eq!(
        list(&owner, "prices").await,
        [
            json!({
                "model": "gpt-5", "source": "file", "shadowed": false, "version": 1,
                "input_per_million": "1.25", "cached_input_per_million": "0.125", "output_per_million": "10",
                "per_web_search": "0.01", "service_tiers": { "priority": "2" },
            }),
            json!({
                "model": "grok-imagine-video-1.5", "source": "file", "shadowed": false, "version": 1,
                "per_second": "0.1", "when": [{ "resolution": "720p", "per_second": "0.6" }],
            }),
            built_in("wan2.7-image", "0.2"),
            built_in("wan2.7-image-pro", "0.5"),
        ]
    );
    let price = owner.get("/admin/v1/prices/wan2.7-image").await.expect(200);
    assert_eq!(
        (price.header("etag"), price.json()),
        ("\"1\"", built_in("wan2.7-image", "0.2"))
    );
    owner.get("/admin/v1/prices/nothing").await.expect(404);

    let channels = list(&owner, "channels").await;
    let names: Vec<&Value> = channels.iter().map(|channel| &channel["name"]).collect();
    assert_eq!(names, ["first", "second"]);
    let second = owner.get("/admin/v1/channels/second").await.expect(200);
    assert_eq!(second.json(), channels[1]);
    assert!(!second.text().contains(SECRET));
    let keys = &channels[1]["api_keys"];
    assert_eq!(
        (&keys[0]["hint"], &keys[1]["hint"]),
        (&json!("wxyz"), &Value::Null)
    );
    assert_eq!(
        (&keys[1]["origin"], &keys[2]["origin"]),
        (&json!("file"), &json!("env:PATH"))
    );
    assert_eq!(keys[0]["fingerprint"].as_str().map(str::len), Some(16));
    let mut channel = channels[1].clone();
    channel["api_keys"].take();
    assert_eq!(
        channel,
        json!({
            "name": "second", "kind": "openai", "source": "file", "shadowed": false, "base_url": "http://127.0.0.1:9/v1",
            "models": [
                { "name": "gpt-5", "upstream": "gpt-5", "options": null },
                { "name": "gpt-4o", "upstream": "gpt-4o-mini", "options": null },
            ],
            "priority": 0, "weight": 1, "max_concurrency": 3, "connect_s": null, "first_byte_s": 7.0, "idle_s": null,
            "apis": null, "poll_ms": 250, "options": {}, "api_keys": null, "paused": false,
            "created_at": null, "updated_at": null, "version": 1,
        })
    );
    owner.get("/admin/v1/channels/nothing").await.expect(404);
    owner
        .get("/admin/v1/channels/nothing/health")
        .await
        .expect(404);

    // Nothing listens at that address: failures open the circuit.
    let health = owner.get_json("/admin/v1/channels/second/health").await;
    assert_eq!(health["data"][0]["circuit"], "closed");
    assert_eq!(health["data"][0]["in_flight"], 0);
    let client = gateway.unlimited_client().await;
    let chat = json!({ "model": "gpt-4o", "messages": [{ "role": "user", "content": "x" }] });
    for _ in 0..5 {
        client.post("/v1/chat/completions", &chat).await;
    }
    let health = owner.get_json("/admin/v1/channels/second/health").await;
    assert_ne!(health["data"][0]["circuit"], "closed");
    gateway.close().await;
}
