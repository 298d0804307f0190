//! Aliases, multipliers, and the description of one model.

use std::fmt::Write as _;

use serde_json::json;
use tollgate_fakes::{Options, Provider, start};

use super::{CHAT, IMAGES, said};
use crate::harness::{Backend, Setup, TestGateway, on_sqlite};

on_sqlite!(
    multipliers_are_the_prices_of_tokens_in_tokens,
    an_alias_has_price_channel_and_books_of_its_model,
    an_entry_under_the_own_name_of_an_alias_wins,
    a_key_for_a_model_is_a_key_for_its_aliases,
    one_model_is_described_under_v1,
);

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

async fn multipliers_are_the_prices_of_tokens_in_tokens(backend: Backend) {
    let config = "currency = \"Tokens\"\n[price.\"gpt-5\"]\ninput = 1.0\noutput = 2.5\n";
    let gate = Setup::new(backend).config(config).start().await;
    let client = gate.user_client("payer", &["--balance", "100000"]).await;
    let body = json!({ "model": "gpt-5", "messages": said("hello"), "max_tokens": 50 });
    let usage = client.post(CHAT, &body).await.expect(200).json()["usage"].clone();
    let tokens = |name: &str| usage[name].as_f64().unwrap();
    let (_, used) = client.balances().await;
    let cost = tokens("prompt_tokens") + 2.5 * tokens("completion_tokens");
    assert!((used - cost).abs() < 1e-6, "{used} {usage}");
    gate.close().await;

    for (config, key) in [
        (
            "currency = \"Tokens\"\n[price.\"gpt-5\"]\ninput_per_million = 1.0\n",
            "price.gpt-5.input_per_million",
        ),
        ("[price.\"gpt-5\"]\noutput = 1.0\n", "price.gpt-5.output"),
    ] {
        let gate = Setup::new(backend).config(config).prepare().await;
        let rejected = gate.cli(&["serve", "--listen", "127.0.0.1:0"]).await;
        assert_eq!(rejected.code, 1);
        assert!(rejected.stderr.contains(key), "{}", rejected.stderr);
        gate.set_config("");
        gate.close().await;
    }
}

async fn an_alias_has_price_channel_and_books_of_its_model(backend: Backend) {
    let gate = Setup::new(backend).config(ALIASES).start().await;
    let client = gate.user_client("payer", &["--balance", "100"]).await;
    let body = json!({ "model": "fast", "messages": said("hello"), "max_tokens": 50 });
    let reply = client.post(CHAT, &body).await.expect(200).json();
    assert_eq!(reply["model"], "fast");
    let tokens = reply["usage"]["total_tokens"].as_f64().unwrap();
    let (_, spent) = client.balances().await;
    assert!((spent - tokens / 1000.0).abs() < 1e-6, "{spent}");

    let body = json!({ "model": "Doubao-Seedream-4.5", "prompt": "a fox" });
    let record = client.generate(&body).await;
    assert_eq!(record["cost"], 2.0, "{record}");
    let database = rusqlite::Connection::open(gate.data_dir().join("tollgate.db")).unwrap();
    for (table, model) in [("chats", "gpt-5"), ("tasks", "doubao-seedance-4-5")] {
        let sql = format!("SELECT model FROM {table}");
        let booked: String = database.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(booked, model);
    }
    drop(database);
    let listed = client.get("/v1/models").await.expect(200).text();
    assert!(listed.contains("\"fast\"") && listed.contains("\"doubao-seedream-4.5\""));
    gate.close().await;
}

async fn an_entry_under_the_own_name_of_an_alias_wins(backend: Backend) {
    let fake = start(Provider::OpenAi, Options::default()).await.unwrap();
    let mut config = format!("{ALIASES}[price.\"fast\"]\noutput_per_million = 0\n");
    write!(
        config,
        "[[channel]]\nname = \"own\"\nkind = \"openai\"\nbase_url = \"{}\"\napi_keys = [\"up-key\"]\nmodels = [\"fast\"]\n",
        fake.base_url()
    )
    .unwrap();
    let gate = Setup::new(backend).config(&config).start().await;
    let client = gate.user_client("payer", &["--balance", "100"]).await;
    let body = json!({ "model": "fast", "messages": said("hello"), "max_tokens": 50 });
    client.post(CHAT, &body).await.expect(200);
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
    gate.close().await;
}

async fn a_key_for_a_model_is_a_key_for_its_aliases(backend: Backend) {
    let gate = Setup::new(backend).config(ALIASES).start().await;
    gate.user("owner", &[]).await;
    let first = gate
        .key("owner", &["--models", "gpt-5,doubao-seedance-4-5"])
        .await;
    let own = gate.key("owner", &["--models", "fast"]).await;
    let chat = |model: &str| json!({ "model": model, "messages": said("hello"), "max_tokens": 50 });
    for model in ["gpt-5", "fast"] {
        first.post(CHAT, &chat(model)).await.expect(200);
    }
    let image = json!({ "model": "doubao-seedream-4-5", "prompt": "a fox" });
    first.post(IMAGES, &image).await.expect(200);
    own.post(CHAT, &chat("fast")).await.expect(200);
    own.post(CHAT, &chat("gpt-5")).await.expect(403);
    own.post(IMAGES, &image).await.expect(403);
    gate.close().await;
}

async fn one_model_is_described_under_v1(backend: Backend) {
    let gate = TestGateway::start(backend).await;
    gate.user("owner", &[]).await;
    let client = gate.key("owner", &["--models", "gpt-5,sora-2"]).await;
    let same = client
        .get("/openai/v1/models/gpt-5")
        .await
        .expect(200)
        .json();
    assert_eq!(
        client.get("/v1/models/gpt-5").await.expect(200).json(),
        same
    );
    let video = client.get("/v1/models/sora-2").await.expect(200).json();
    assert_eq!(
        (&video["id"], &video["object"]),
        (&json!("sora-2"), &json!("model"))
    );
    for unknown in ["gpt-4o", "nothing", "a/b"] {
        client
            .get(&format!("/v1/models/{unknown}"))
            .await
            .error(404, "not_found_error");
    }
    gate.close().await;
}
