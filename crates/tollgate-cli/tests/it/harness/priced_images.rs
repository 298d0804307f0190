//! The submissions of the tests of crashes, nodes and charges: small images with a price.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::images::decode;
use super::{Client, Reply, TestGateway, image_urls};

/// A model with images of 512 × 512 pixels, several at a time, and references as data URIs.
pub(crate) const MODEL: &str = "gemini-3.1-flash-image-preview";
/// The configuration of the model's price.
pub(crate) const PRICES: &str = "[price.\"gemini-3.1-flash-image-preview\"]\nper_image = 0.25\n";
/// The price of one image.
pub(crate) const PRICE: f64 = 0.25;

/// A request of `n` images.
pub(crate) fn images(prompt: &str, n: u32) -> Value {
    json!({ "model": MODEL, "prompt": prompt, "resolution": "0.5K", "size": "1:1", "n": n })
}

/// Submits under an idempotency key; `None` if the connection breaks before the response.
pub(crate) async fn try_submit_once(client: &Client, key: &str, body: &Value) -> Option<Reply> {
    let path = "/v1/images/generations";
    client.try_post_once(path, key, body).await
}

/// The same, if there must be a response.
pub(crate) async fn submit_once(client: &Client, key: &str, body: &Value) -> Reply {
    let reply = try_submit_once(client, key, body).await;
    reply.expect("a response")
}

/// How many different images a record has; each must decode.
pub(crate) async fn count_images(client: &Client, record: &Value) -> usize {
    assert_eq!(record["status"], "completed", "{record}");
    let mut links = image_urls(record);
    for link in &links {
        decode(&client.fetch(link).await.expect(200).body);
    }
    links.sort();
    links.dedup();
    links.len()
}

/// Every public file, including those to which no task refers.
pub(crate) fn public_files(gateway: &TestGateway) -> Vec<PathBuf> {
    let entries = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let hours = entries(gateway.data_dir().join("files/public"));
    let files = hours.flat_map(|hour| entries(hour.path()));
    files.map(|file| file.path()).collect()
}

/// Checks that every public file is a complete image; returns the number of files.
pub(crate) fn count_public_files(gateway: &TestGateway) -> usize {
    let files = public_files(gateway);
    for file in &files {
        decode(&std::fs::read(file).unwrap());
    }
    files.len()
}
