//! The admin API: a table of requests, sign-in, and what any sequence of writes leaves behind.

mod alerts;
mod budgets;
mod catalogue;
mod configuration;
mod quote;
mod refunds;
mod sessions;
mod table;
mod tail;
mod tasks;
mod usage;
mod writes;

use serde_json::{Value, json};

use crate::harness::*;

/// The owner's key of the gateways in these tests.
const OWNER: &str = "the-owner-of-this-gateway";
const ADMIN: &str = "/admin/v1";

async fn gateway(backend: Backend) -> (TestGateway, Client) {
    let gateway = Setup::new(backend).admin_key(OWNER).start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    (gateway, owner)
}

const PRICES: &str = r#"
[media]
allow_private_urls = ["127.0.0.0/8"]
[price."gpt-image-2-official"]
per_image = 0.4
[price."gpt-5"]
input_per_million = 100
output_per_million = 1000
"#;

/// A gateway with prices, its owner, and a client with a balance of 10.
async fn priced_gateway(backend: Backend) -> (TestGateway, Client, Client) {
    let setup = Setup::new(backend).config(PRICES).admin_key(OWNER);
    let gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let client = gateway.funded_client("10").await;
    (gateway, owner, client)
}

/// A gateway whose only channel cannot be reached, its owner, and a client.
async fn chat_failing_channel(backend: Backend) -> (TestGateway, Client, Client) {
    let channel = r#"
[media]
allow_private_urls = ["127.0.0.0/8"]
[[channel]]
name = "broken"
kind = "openai"
base_url = "http://127.0.0.1:1"
api_keys = ["sk-none"]
models = [{ name = "gpt-5" }]
"#;
    let setup = Setup::new(backend).config(channel).admin_key(OWNER);
    let gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let client = gateway.unlimited_client().await;
    (gateway, owner, client)
}

/// A request of one image, which costs 0.4.
fn image(prompt: &str) -> Value {
    json!({ "model": "gpt-image-2-official", "prompt": prompt })
}

/// Sends a request with a JSON body below [`ADMIN`].
async fn send(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Reply {
    let headers = [&[("content-type", "application/json")], headers].concat();
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    client
        .send_with(method, &format!("{ADMIN}{path}"), &headers, body)
        .await
}
