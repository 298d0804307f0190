//! Reference images: the gateway checks uploads and data URIs at the submission, and other URLs when the task runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::middleware::{Next, from_fn};
use axum::response::Redirect;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat::{Bmp, Gif, Jpeg, WebP};
use serde_json::json;

use crate::harness::images::{data_uri, mask, opaque, png};
use crate::harness::*;

on_sqlite!(
    uploads_are_checked_at_submission,
    data_uris_are_checked_at_submission,
    an_image_of_exactly_the_size_limit_is_accepted_in_every_format,
);
on_both!(
    urls_are_fetched_when_the_task_runs,
    references_at_private_addresses_are_rejected
);

/// An image of more than 10 MB.
fn heavy() -> Vec<u8> {
    let mut file = png(300, 300);
    file.resize(10 * 1_048_576 + 1, 0);
    file
}

/// The placeholders of a table with their values.
fn values<'a>(values: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    let pairs = values.iter().map(|(name, value)| (*name, value.as_str()));
    pairs.collect()
}

async fn uploads_are_checked_at_submission(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let mut links = Vec::new();
    for (name, file) in [
        ("square", png(300, 300)),
        ("wide", png(400, 100)),
        ("tiny", png(14, 14)),
        ("gif", opaque(Gif, 300, 300)),
        ("mask", mask(300, 300)),
        ("small_mask", mask(299, 300)),
        ("heavy", heavy()),
    ] {
        links.push((name, client.upload_image(&file).await));
    }
    let square = &links[0].1;
    let missing = format!("{}zz.png", &square[..square.len() - 6]);
    links.push(("missing", missing));
    cases::check(&client, "references_uploaded", &values(&links)).await;
    gateway.close().await;
}

async fn data_uris_are_checked_at_submission(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let (square, jpeg) = (png(300, 300), opaque(Jpeg, 300, 300));
    let uri = data_uri("image/png", &square);
    let uris = [
        ("png without base64", uri.replace(";base64", "")),
        ("png", uri),
        ("jpeg", data_uri("image/jpeg", &jpeg)),
        ("webp", data_uri("image/webp", &opaque(WebP, 300, 300))),
        ("bmp", data_uri("image/bmp", &opaque(Bmp, 300, 300))),
        ("jpeg as png", data_uri("image/png", &jpeg)),
        ("png as text", data_uri("text/plain", &square)),
        ("wide", data_uri("image/png", &png(400, 100))),
        ("narrow", data_uri("image/png", &png(239, 300))),
    ];
    cases::check(&client, "references_as_data_uris", &values(&uris)).await;
    // Private copies are deleted when their task has ended.
    let private = gateway.data_dir().join("files/private");
    until_true("no private copies", async || is_empty(&private)).await;
    gateway.close().await;
}

fn is_empty(dir: &Path) -> bool {
    let mut entries = std::fs::read_dir(dir).unwrap().flatten();
    entries.all(|entry| entry.path().is_dir() && is_empty(&entry.path()))
}

/// A server of images on this machine; it counts its requests.
async fn start_site() -> (String, Arc<AtomicU32>) {
    let count = Arc::new(AtomicU32::new(0));
    let file = |bytes: Vec<u8>| get(move || async move { bytes });
    let redirect = |to: &'static str| get(move || async move { Redirect::temporary(to) });
    let router = Router::new()
        .route("/good.png", file(png(300, 300)))
        .route("/wide.png", file(png(400, 100)))
        .route("/tiny.png", file(png(9, 9)))
        .route("/heavy.png", file(heavy()))
        .route("/mask.png", file(mask(300, 300)))
        .route("/page.png", file(b"<html></html>".to_vec()))
        .route("/hop", redirect("/good.png"))
        .route("/loop", redirect("/loop"))
        .route("/away", redirect("http://10.0.0.1/good.png"))
        .route("/file", redirect("file:///etc/passwd"));
    let counted = Arc::clone(&count);
    let router = router.layer(from_fn(move |request, next: Next| {
        counted.fetch_add(1, Ordering::Relaxed);
        next.run(request)
    }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}"), count)
}

const PRICES: &str = "[price.\"doubao-seedream-4.5\"]\nper_image = 1\n[price.\"gpt-image-2-official\"]\nper_image = 1\n";

async fn urls_are_fetched_when_the_task_runs(backend: Backend) {
    let (site, _) = start_site().await;
    let config = format!("media.allow_private_urls = [\"127.0.0.0/8\"]\n{PRICES}");
    let gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.funded_client("20").await;
    cases::check(&client, "references_fetched", &[("site", &site)]).await;
    assert_eq!(client.balances().await, (18.0, 2.0));
    gateway.close().await;
}

async fn references_at_private_addresses_are_rejected(backend: Backend) {
    let (site, count) = start_site().await;
    let gateway = Setup::new(backend).config(PRICES).start().await;
    let client = gateway.funded_client("9").await;
    let (_, port) = site.rsplit_once(':').unwrap();
    let post = async |url: &str| {
        let body =
            json!({ "model": "doubao-seedream-4.5", "prompt": "a mill", "image_urls": [url] });
        client.post_image(&body).await
    };
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
    ] {
        let reply = post(&format!("http://{host}:{port}/good.png")).await;
        if reply.status != 200 {
            reply.rejected(400, "");
            continue;
        }
        let record = client.wait_for_end(&task_id(&reply.json())).await;
        let error = json!({ "code": "invalid_request" });
        assert_has(
            &record,
            json!({ "status": "failed", "cost": 0.0, "error": error }),
        );
        let message = record["error"]["message"].as_str().unwrap();
        assert!(message.contains("`image_urls[0]`"), "{message}");
    }
    for url in [
        "file:///etc/passwd",
        "ftp://example.com/a.png",
        "gopher://127.0.0.1/",
        "javascript:alert(1)",
        "//example.com/a.png",
        "a.png",
        "",
        "http://",
    ] {
        post(url).await.rejected(400, "");
    }
    assert_eq!(count.load(Ordering::Relaxed), 0, "no request was received");
    assert_eq!(client.balances().await, (9.0, 0.0));
    gateway.close().await;
}

/// The largest image that clients may send, in bytes.
const LIMIT: usize = 20_971_520;

async fn an_image_of_exactly_the_size_limit_is_accepted_in_every_format(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let bodies = |data: &str| {
        let uri = format!("data:image/png;base64,{data}");
        let content = json!([{ "type": "image_url", "image_url": { "url": uri } }]);
        let block = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data } });
        [
            (
                "/openai/v1/responses",
                json!({ "model": "gpt-5", "input": [{ "role": "user", "content": [{ "type": "input_image", "image_url": uri }] }] }),
            ),
            (
                "/v1/images/edits",
                json!({ "model": "grok-imagine-1.0-edit-partner", "prompt": "a", "image_urls": [uri] }),
            ),
            (
                "/v1/video/generations",
                json!({ "model": "sora-2", "prompt": "a", "image": data }),
            ),
            (
                "/openai/v1/chat/completions",
                json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": content }] }),
            ),
            (
                "/anthropic/v1/messages",
                json!({ "model": "gpt-5", "max_tokens": 100, "messages": [{ "role": "user", "content": [block] }] }),
            ),
        ]
    };
    let mut file = png(300, 300);
    file.resize(LIMIT, 0);
    for (path, body) in bodies(&STANDARD.encode(&file)) {
        assert_eq!(client.post(path, &body).await.status, 200, "{path}");
    }
    file.push(0);
    for (path, body) in &bodies(&STANDARD.encode(&file))[..3] {
        let message = client.post(path, body).await.message(400);
        assert!(message.contains("20971520 bytes"), "{path}: {message}");
    }
    gateway.close().await;
}
