//! Request bodies that would use more than their share of memory, time or money.

use serde_json::{Value, json};

use crate::harness::images::{data_uri, png};
use crate::harness::*;

on_both!(an_account_without_money_gets_no_file_stored);
on_sqlite!(
    three_hostile_bodies_take_little_memory,
    drip_feeding_clients_leave_room_for_others,
);

const MIB: u64 = 1024 * 1024;
const CHAT: &str = "/v1/chat/completions";
const IMAGES: &str = "/v1/images/generations";

fn chat(text: &str) -> Value {
    json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": text }] })
}

async fn three_hostile_bodies_take_little_memory(backend: Backend) {
    let gateway = Setup::new(backend).start().await;
    let client = gateway.unlimited_client().await;
    let list = |item: &str| {
        let items = vec![item; 20 * MIB as usize / (item.len() + 1)];
        format!("{{\"model\":\"gpt-5\",\"messages\":[{}]}}", items.join(","))
    };
    let hostile = [list("{}"), list("0"), list("\"a\"")];
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
        let [a, b, c] = &hostile;
        let honest = chat(&"a".repeat(100_000));
        let (a, b, c, honest) = tokio::join!(send(a), send(b), send(c), client.post(CHAT, &honest));
        for reply in [a, b, c] {
            let message = reply.expect(400).text();
            assert!(message.contains("JSON values"), "{path}: {message}");
        }
        honest.expect(200);
    }
    let grown = (gateway.peak_memory() - idle) / MIB;
    assert!(grown < 300, "{grown} MiB more than idle");
    gateway.close().await;
}

async fn drip_feeding_clients_leave_room_for_others(backend: Backend) {
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
    let honest = chat(&"a".repeat(100_000));
    client.post(CHAT, &honest).await.expect(200);
    let image = data_uri("image/png", &png(512, 512));
    let body = json!({ "model": "Doubao-Seedream-4.5", "prompt": "a mill", "image_urls": [image] });
    client.post(IMAGES, &body).await.expect(200);
    drop(drips);
    gateway.close().await;
}

async fn an_account_without_money_gets_no_file_stored(backend: Backend) {
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
