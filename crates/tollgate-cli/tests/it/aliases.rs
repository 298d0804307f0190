//! Aliases: other names of a model, with the model's price, channels and ledger.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider, start};

use crate::harness::*;

on_sqlite!(
    an_alias_has_the_price_channel_and_records_of_its_model,
    an_entry_for_the_alias_takes_precedence_over_its_model,
    a_key_restricted_to_a_model_allows_its_aliases,
);

const CHAT: &str = "/openai/v1/chat/completions";
const IMAGES: &str = "/v1/images/generations";

/// Two aliases, one channel and one price for their models.
const ALIASES: &str = r#"
[price."gpt-5"]
input_per_million = 1000.0
output_per_million = 1000.0
[price."doubao-seedance-4-5"]
per_image = 2.0
[[model]]
name = "fast"
like = "gpt-5"
[[channel]]
name = "box"
kind = "sandbox"
models = ["gpt-5", "doubao-seedance-4-5"]
"#;

/// A chat of a few tokens.
fn chat(model: &str) -> Value {
    let message = json!({ "role": "user", "content": "hello" });
    json!({ "model": model, "messages": [message], "max_tokens": 50 })
}

async fn an_alias_has_the_price_channel_and_records_of_its_model(backend: Backend) {
    let gateway = Setup::new(backend).config(ALIASES).start().await;
    let client = gateway.funded_client("100").await;
    let reply = client.post(CHAT, &chat("fast")).await.expect(200).json();
    assert_eq!(reply["model"], "fast");
    let tokens = reply["usage"]["total_tokens"].as_f64().unwrap();
    let (_, spent) = client.balances().await;
    assert!((spent - tokens / 1000.0).abs() < 1e-6, "{spent}");

    let body = json!({ "model": "Doubao-Seedream-4.5", "prompt": "a fox" });
    let record = client.generate(&body).await;
    assert_eq!(record["cost"], 2.0, "{record}");
    for (table, model) in [("chats", "gpt-5"), ("tasks", "doubao-seedance-4-5")] {
        let booked = gateway.query(&format!("SELECT model FROM {table}")).await;
        assert_eq!(booked, [[model]]);
    }
    let listed = client.get("/v1/models").await.expect(200).text();
    assert!(listed.contains("\"fast\"") && listed.contains("\"doubao-seedream-4.5\""));
    gateway.close().await;
}

async fn an_entry_for_the_alias_takes_precedence_over_its_model(backend: Backend) {
    let fake = start(Provider::OpenAi, Options::default()).await.unwrap();
    let mut config = format!("{ALIASES}[price.\"fast\"]\noutput_per_million = 0\n");
    let own = ChannelConfig::new("own", "openai").url(&fake.base_url());
    config += &own.keys(&["up-key"]).models(&["fast"]).text();
    let gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.funded_client("100").await;
    client.post(CHAT, &chat("fast")).await.expect(200);
    assert_eq!(
        client.balances().await,
        (100.0, 0.0),
        "its own price is nothing"
    );
    let requests = fake.requests();
    assert!(
        requests[0].body.to_string().contains("fast"),
        "{:?}",
        requests[0].body
    );
    gateway.close().await;
}

async fn a_key_restricted_to_a_model_allows_its_aliases(backend: Backend) {
    let gateway = Setup::new(backend).config(ALIASES).start().await;
    gateway.user("owner", &[]).await;
    let first = gateway
        .key("owner", &["--models", "gpt-5,doubao-seedance-4-5"])
        .await;
    let own = gateway.key("owner", &["--models", "fast"]).await;
    for model in ["gpt-5", "fast"] {
        first.post(CHAT, &chat(model)).await.expect(200);
    }
    let image = json!({ "model": "doubao-seedream-4-5", "prompt": "a fox" });
    first.post(IMAGES, &image).await.expect(200);
    own.post(CHAT, &chat("fast")).await.expect(200);
    own.post(CHAT, &chat("gpt-5")).await.expect(403);
    own.post(IMAGES, &image).await.expect(403);
    gateway.close().await;
}
