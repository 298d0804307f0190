//! What is charged: prices by size, resolution and quality, per delivered image, in each currency. No balance is ever overdrawn.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::*;

on_both!(
    prices_depend_on_the_request,
    only_delivered_images_are_charged,
    prices_are_in_the_configured_currency,
    concurrent_submissions_never_overdraw,
    prices_are_reloaded,
);
on_sqlite!(
    a_402_states_the_required_and_the_available_amount,
    prices_in_tokens_are_multipliers,
);

const PRICES: &str = r#"
[price."gpt-image-2-official"]
per_image = 0.04
when = [
  { resolution = "2k", quality = "high", per_image = 0.3 },
  { resolution = "2k", per_image = 0.19 },
  { size = "3:1", per_image = 0.05 },
  { size = "1024x1536", per_image = 0.06 },
  { quality = "low", per_image = 0.000000001 },
]
[price."wan2.7-image"]
when = [{ size = "1K", per_image = 0.1 }]
[price."grok-imagine-1.0-partner"]
per_image = 0.333333333
"#;

const IMAGES: &str = "/v1/images/generations";
const CHAT: &str = "/openai/v1/chat/completions";

/// A request of images of `grok-imagine-1.0-partner`, which supports `n` up to 10.
fn images(prompt: &str, n: u32) -> Value {
    json!({ "model": "grok-imagine-1.0-partner", "prompt": prompt, "n": n })
}

/// The configuration of that model's price.
fn price(amount: &str) -> String {
    format!("[price.\"grok-imagine-1.0-partner\"]\nper_image = {amount}\n")
}

async fn prices_depend_on_the_request(backend: Backend) {
    let gateway = Setup::new(backend).config(PRICES).start().await;
    let client = gateway.funded_client("100").await;
    cases::check(&client, "image_prices", &[]).await;
    assert_eq!(client.balances().await, (100.0, 0.0));
    gateway.close().await;
}

async fn only_delivered_images_are_charged(backend: Backend) {
    let gateway = Setup::new(backend).config(&price("2")).start().await;
    let client = gateway.funded_client("40").await;
    cases::check(&client, "images_delivered", &[]).await;
    assert_eq!(client.balances().await, (26.0, 14.0));
    // A request that costs more than the available balance changes nothing.
    let ten = images("[[sandbox:hang]]", 10);
    let held = [client.submit(&ten).await];
    client
        .post_image(&images("a mill", 4))
        .await
        .rejected(402, "");
    assert_eq!(client.balances().await, (6.0, 14.0));
    // A task may hold the complete available balance; its cancellation releases the hold.
    let last = client.submit(&images("[[sandbox:hang]]", 3)).await;
    assert_eq!(client.balances().await, (0.0, 14.0));
    client
        .post_image(&images("a mill", 1))
        .await
        .rejected(402, "");
    for id in held.iter().chain([&last]) {
        client.cancel(id).await.expect(200);
    }
    assert_eq!(client.balances().await, (26.0, 14.0));
    gateway.close().await;
}

async fn prices_are_in_the_configured_currency(backend: Backend) {
    // The built-in price of this model is in CNY only; a configured price takes precedence.
    for (currency, per_image, balance, built_in, needed) in [
        ("CNY", 0.3, "1.7", 1.0, "0.1 CNY"),
        ("Tokens", 1500.0, "5000", 0.0, "2000 Tokens"),
    ] {
        let config = format!(
            "currency = \"{currency}\"\n[price.\"wan2.7-image\"]\nper_image = {per_image}\n"
        );
        let gateway = Setup::new(backend).config(&config).start().await;
        let client = gateway.funded_client(balance).await;
        let body =
            |model: &str| json!({ "model": model, "prompt": "x", "size": "768x768", "n": 2 });
        let record = client.generate(&body("wan2.7-image-pro")).await;
        assert_eq!(record["cost"], built_in);
        let record = client.generate(&body("wan2.7-image")).await;
        assert_eq!(record["cost"], 2.0 * per_image);
        let reply = client.post_image(&body("wan2.7-image")).await;
        reply.rejected(402, needed);
        gateway.close().await;
    }
}

async fn concurrent_submissions_never_overdraw(backend: Backend) {
    let gateway = Setup::new(backend).config(&price("0.5")).start().await;
    // The first user can pay 7 images; one of the second user's two keys has a quota for 3.
    let first = gateway.user_client("seven", &["--balance", "3.7"]).await;
    gateway.user("shared", &["--balance", "2.5"]).await;
    let three = gateway.key("shared", &["--quota", "1.5"]).await;
    let open = gateway.key("shared", &[]).await;
    let accepted = submit_at_once(vec![&first; 50]).await;
    assert_eq!(accepted, [7]);
    first.check_balances(3.7 - 3.5, 0.0).await;
    let mixed: Vec<&Client> = [&three, &open].into_iter().cycle().take(40).collect();
    let accepted = submit_at_once(mixed).await;
    assert_eq!(accepted.iter().sum::<u32>(), 5, "{accepted:?}");
    assert!(three.key_balances().await.0 >= 0.0);
    assert_eq!(open.balances().await.0, 0.0);
    for client in [&first, &open] {
        for task in client.tasks().await {
            let id = task["id"].as_str().unwrap();
            client.cancel(id).await.expect(200);
        }
    }
    assert_eq!(first.balances().await, (3.7, 0.0));
    assert_eq!(open.balances().await, (2.5, 0.0));
    gateway.close().await;
}

/// All clients submit at once; returns how many submissions of each key were accepted. All others are rejected with 402.
async fn submit_at_once(clients: Vec<&Client>) -> Vec<u32> {
    let body = images("[[sandbox:hang]]", 1);
    let replies = join_all(clients.iter().map(|client| client.post_image(&body))).await;
    let mut accepted = BTreeMap::new();
    for (client, reply) in clients.iter().zip(replies) {
        match reply.status {
            200 => *accepted.entry(&client.key_id).or_insert(0) += 1,
            _ => drop(reply.rejected(402, "")),
        }
    }
    accepted.into_values().collect()
}

async fn prices_are_reloaded(backend: Backend) {
    let gateway = Setup::new(backend).config(&price("1")).start().await;
    let client = gateway.funded_client("100").await;
    let early = client.submit(&images("[[sandbox:delay=700]]", 1)).await;
    let log_text = "channels and prices were reloaded";
    gateway.reload(&price("3"), log_text).await;
    let one = images("a mill", 1);
    assert_eq!(client.generate(&one).await["cost"], 3.0);
    let record = client.wait_for_end(&early).await;
    assert_eq!(record["cost"], 1.0, "frozen at the submission");
    // If the new file is invalid, the gateway keeps its prices.
    let invalid = price("5").replace("per_image", "per_picture");
    let log_text = "the configuration was not applied";
    gateway.reload(&invalid, log_text).await;
    assert!(gateway.log().contains("per_picture"));
    assert_eq!(client.generate(&one).await["cost"], 3.0);
    gateway.set_config(&price("3"));
    gateway.close().await;
}

async fn a_402_states_the_required_and_the_available_amount(backend: Backend) {
    let prices = "[price.\"gpt-5\"]\noutput_per_million = 1000.0\n";
    let config = format!("{prices}{}", price("0.5"));
    let gateway = Setup::new(backend).config(&config).start().await;
    let poor = gateway.funded_client("0.75").await;
    gateway.user("rich", &[]).await;
    let limited = gateway.key("rich", &["--quota", "0.25"]).await;
    let chat = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "hello" }] });
    let mut capped = chat.clone();
    capped["max_tokens"] = 1_000.into();
    let default = "a smaller `max_tokens` than the default of 8192";
    for (client, path, body, expected) in [
        (
            &poor,
            IMAGES,
            &images("a", 3),
            ["needs 1.5 USD", "0.75 USD is available"],
        ),
        (&poor, CHAT, &chat, ["needs 8.192 USD", default]),
        (&poor, CHAT, &chat, ["needs 8.192 USD", "0.75 USD"]),
        (&poor, CHAT, &capped, ["needs 1 USD", "0.75 USD"]),
        (&limited, CHAT, &capped, ["quota", "0.25 USD is left"]),
    ] {
        let message = client.post(path, body).await.message(402);
        assert!(
            expected.iter().all(|part| message.contains(part)),
            "{message}"
        );
        assert_eq!(message.contains("max_tokens"), body == &chat, "{message}");
    }
    gateway.close().await;
}

async fn prices_in_tokens_are_multipliers(backend: Backend) {
    let config = "currency = \"Tokens\"\n[price.\"gpt-5\"]\ninput = 1.0\noutput = 2.5\n";
    let gateway = Setup::new(backend).config(config).start().await;
    let client = gateway.funded_client("100000").await;
    let body = json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": "hello" }], "max_tokens": 50 });
    let usage = client.post(CHAT, &body).await.expect(200).json()["usage"].clone();
    let tokens = |name: &str| usage[name].as_f64().unwrap();
    let (_, used) = client.balances().await;
    let cost = tokens("prompt_tokens") + 2.5 * tokens("completion_tokens");
    assert!((used - cost).abs() < 1e-6, "{used} {usage}");
    gateway.close().await;

    for (config, key) in [
        (
            "currency = \"Tokens\"\n[price.\"gpt-5\"]\ninput_per_million = 1.0\n",
            "price.gpt-5.input_per_million",
        ),
        ("[price.\"gpt-5\"]\noutput = 1.0\n", "price.gpt-5.output"),
    ] {
        let gateway = Setup::new(backend).config(config).prepare().await;
        let rejected = gateway.cli(&["serve", "--listen", "127.0.0.1:0"]).await;
        rejected.check_failure(key);
        gateway.set_config("");
        gateway.close().await;
    }
}
