//! Request bodies that would use more than their share of memory, time or money.

use serde_json::{Value, json};

use crate::harness::images::{data_uri, png};
use crate::harness::*;

on_both!(no_file_is_stored_for_an_account_without_balance);
on_sqlite!(
    bodies_of_many_json_values_use_little_memory,
    slow_request_bodies_do_not_block_other_requests,
);

const MIB: u64 = 1024 * 1024;
const CHAT: &str = "/v1/chat/completions";
const IMAGES: &str = "/v1/images/generations";

fn chat(text: &str) -> Value {
    json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": text }] })
}

async fn bodies_of_many_json_values_use_little_memory(backend: Backend) {
    let gateway = Setup::new(backend).start().await;
    let client = gateway.unlimited_client().await;
    let list = |item: &str| {
        let items = vec![item; 20 * MIB as usize / (item.len() + 1)];
        format!("{{\"model\":\"gpt-5\",\"messages\":[{}]}}", items.join(","))
    };
    let many_values = [list("{}"), list("0"), list("\"a\"")];
    let idle = gateway.peak_memory();
    for path in [CHAT, IMAGES, "/v1/messages", "/v1/responses"] {
        let send = |body: &String| {
            let (client, body) = (client.clone(), body.clone());
            async move {
                client
                    .post_bytes(path, "application/json", body.as_bytes())
                    .await
            }
        };
        let [a, b, c] = &many_values;
        let ordinary = chat(&"a".repeat(100_000));
        let (a, b, c, ordinary) =
            tokio::join!(send(a), send(b), send(c), client.post(CHAT, &ordinary));
        for reply in [a, b, c] {
            let message = reply.expect(400).text();
            assert!(message.contains("JSON values"), "{path}: {message}");
        }
        ordinary.expect(200);
    }
    let grown = (gateway.peak_memory() - idle) / MIB;
    assert!(grown < 300, "{grown} MiB more than idle");
    gateway.close().await;
}

async fn slow_request_bodies_do_not_block_other_requests(backend: Backend) {
    let gateway = Setup::new(backend).start().await;
    let client = gateway.unlimited_client().await;
    let mut drips = Vec::new();
    for _ in 0..64 {
        let mut raw = gateway.raw().await;
        raw.write(client.raw_json_head(CHAT, 60_000_000).as_bytes())
            .await;
        raw.write(&[b' '; 70_000]).await;
        drips.push(raw);
    }
    // Together these requests announced fifteen times the memory budget.
    let ordinary = chat(&"a".repeat(100_000));
    client.post(CHAT, &ordinary).await.expect(200);
    let image = data_uri("image/png", &png(512, 512));
    let body = json!({ "model": "Doubao-Seedream-4.5", "prompt": "a mill", "image_urls": [image] });
    client.post(IMAGES, &body).await.expect(200);
    drop(drips);
    gateway.close().await;
}

async fn no_file_is_stored_for_an_account_without_balance(backend: Backend) {
    let price = "[price.\"Doubao-Seedream-4.5\"]\nper_image = 0.5\n";
    let gateway = Setup::new(backend).config(price).start().await;
    let client = gateway.funded_client("0").await;
    let image = data_uri("image/png", &png(512, 512));
    let body = json!({ "model": "Doubao-Seedream-4.5", "prompt": "a mill", "image_urls": [image] });
    let message = client.post(IMAGES, &body).await.rejected(402, "0.5");
    assert!(
        message.contains("insufficient account balance"),
        "{message}"
    );
    let private = gateway.data_dir().join("files/private");
    let stored = std::fs::read_dir(&private).map_or(0, Iterator::count);
    assert_eq!(stored, 0, "{}", private.display());
    gateway.close().await;
}
