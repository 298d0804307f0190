//! What clients found against the specification: aliases, multipliers, limits, thoughts, and messages that say what was sent.

mod chats;
mod models;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use http_body_util::Full;
use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider, start};

use crate::harness::priced_images;
use crate::harness::{Backend, Client, Reply, Setup, TestGateway, on_sqlite, status, task_id};

on_sqlite!(
    an_image_of_exactly_the_limit_passes_in_every_format,
    bodies_are_limited_by_endpoint,
    a_402_says_what_is_needed,
    a_compressed_body_is_told_so,
    an_upload_that_is_no_image_is_told_the_accepted_types,
    the_balance_of_a_disabled_user_has_its_own_error_body,
    fewer_images_than_requested_are_an_adjustment,
    a_link_that_is_cut_off_is_downloaded_seven_times,
);

const CHAT: &str = "/openai/v1/chat/completions";
const RESPONSES: &str = "/openai/v1/responses";
const MESSAGES: &str = "/anthropic/v1/messages";
const IMAGES: &str = "/v1/images/generations";
/// The largest image that clients may send, in bytes.
const LIMIT: usize = 20_971_520;

fn said(text: &str) -> Value {
    json!([{ "role": "user", "content": text }])
}

/// The message of an error in any envelope.
fn message(reply: &Reply) -> String {
    let body = reply.json();
    let error = body
        .pointer("/error/message")
        .or_else(|| body.get("message"));
    error.and_then(Value::as_str).expect("a message").to_owned()
}

/// POST of bytes as they are.
async fn post_bytes(client: &Client, path: &str, body: Vec<u8>, headers: &[(&str, &str)]) -> Reply {
    let mut request = client.request(Method::POST, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client
        .send(request.body(Full::from(Bytes::from(body))).unwrap())
        .await
}

/// A PNG of `bytes` bytes as base64.
fn png_base64(bytes: usize) -> String {
    let mut file = crate::harness::images::png(300, 300);
    file.resize(bytes, 0);
    STANDARD.encode(file)
}

async fn an_image_of_exactly_the_limit_passes_in_every_format(backend: Backend) {
    let gate = TestGateway::start(backend).await;
    let client = gate.unlimited_client().await;
    let bodies = |data: &str| {
        let uri = format!("data:image/png;base64,{data}");
        let content = json!([{ "type": "image_url", "image_url": { "url": uri } }]);
        let block = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data } });
        [
            (
                RESPONSES,
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
                CHAT,
                json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": content }] }),
            ),
            (
                MESSAGES,
                json!({ "model": "gpt-5", "max_tokens": 100, "messages": [{ "role": "user", "content": [block] }] }),
            ),
        ]
    };
    for (path, body) in bodies(&png_base64(LIMIT)) {
        assert_eq!(client.post(path, &body).await.status, 200, "{path}");
    }
    for (path, body) in &bodies(&png_base64(LIMIT + 1))[..3] {
        let reply = client.post(path, body).await.expect(400);
        assert!(
            message(&reply).contains("20971520 bytes"),
            "{path}: {}",
            message(&reply)
        );
    }
    gate.close().await;
}

async fn bodies_are_limited_by_endpoint(backend: Backend) {
    let gate = TestGateway::start(backend).await;
    let client = gate.unlimited_client().await;
    let padded = |mut body: Value| {
        body["padding"] = "x".repeat(1_100_000).into();
        body
    };
    let id = client
        .submit(&json!({ "model": "grok-imagine-1.0-partner", "prompt": "a" }))
        .await;
    client.wait_for_end(&id).await;
    for (path, body) in [
        (
            "/v1/audio/speech",
            json!({ "model": "native-v3", "input": "hello" }),
        ),
        (
            "/native/v1/audio/tts",
            json!({ "model_name": "native-v3", "text": "hello" }),
        ),
        (
            "/v1/multimodal/audio/generations",
            json!({ "model": "native-v3", "task_type": "tts", "metadata": { "text": "hello" } }),
        ),
        ("/v1/tasks/batch", json!({ "task_ids": [id] })),
        (&format!("/v1/tasks/{id}/cancel"), json!({})),
    ] {
        let said = client
            .post(path, &padded(body))
            .await
            .error(413, "invalid_request_error");
        assert!(said.contains("1048576 bytes"), "{path}: {said}");
    }
    client.cancel(&id).await.expect(409);
    let body = json!({ "model": "grok-imagine-1.0-partner", "prompt": "a" });
    client.post(IMAGES, &padded(body)).await.expect(200);
    gate.close().await;
}

async fn a_402_says_what_is_needed(backend: Backend) {
    let config = "[price.\"gpt-5\"]\noutput_per_million = 1000.0\n[price.\"grok-imagine-1.0-partner\"]\nper_image = 0.5\n";
    let gate = Setup::new(backend).config(config).start().await;
    let poor = gate.user_client("poor", &["--balance", "0.75"]).await;
    let hello = said("hello");
    let order = json!({ "model": "grok-imagine-1.0-partner", "prompt": "a", "n": 3 });
    let said = poor
        .post(IMAGES, &order)
        .await
        .error(402, "payment_required");
    assert!(
        said.contains("needs 1.5 USD") && said.contains("0.75 USD is available"),
        "{said}"
    );

    let body = json!({ "model": "gpt-5", "messages": hello });
    let said = message(&poor.post(CHAT, &body).await.expect(402));
    assert!(
        said.contains("needs 8.192 USD") && said.contains("0.75 USD"),
        "{said}"
    );
    assert!(
        said.contains("a smaller `max_tokens` than the default of 8192"),
        "{said}"
    );
    let mut capped = body.clone();
    capped["max_tokens"] = 1_000.into();
    let said = message(&poor.post(CHAT, &capped).await.expect(402));
    assert!(
        said.contains("needs 1 USD") && !said.contains("max_tokens"),
        "{said}"
    );

    gate.user("rich", &[]).await;
    let limited = gate.key("rich", &["--quota", "0.25"]).await;
    let said = message(&limited.post(CHAT, &capped).await.expect(402));
    assert!(
        said.contains("quota") && said.contains("0.25 USD is left"),
        "{said}"
    );
    gate.close().await;
}

async fn a_compressed_body_is_told_so(backend: Backend) {
    let gate = TestGateway::start(backend).await;
    let client = gate.unlimited_client().await;
    let gzip = [&[0x1f, 0x8b, 8, 0][..], &[0xab; 40]].concat();
    let json = ("content-type", "application/json");
    for path in [IMAGES, CHAT, "/v1/tasks/batch"] {
        let named = post_bytes(
            &client,
            path,
            gzip.clone(),
            &[json, ("content-encoding", "gzip")],
        )
        .await;
        let said = message(&named.expect(400));
        assert!(
            said.contains("`Content-Encoding`") && said.contains("gzip"),
            "{said}"
        );
        let unnamed = post_bytes(&client, path, gzip.clone(), &[json]).await;
        let said = message(&unnamed.expect(400));
        assert!(said.contains("gzip") && !said.contains("UTF-8"), "{said}");
    }
    let form = ("content-type", "multipart/form-data; boundary=edge");
    let headers = [form, ("content-encoding", "gzip")];
    let said = message(
        &post_bytes(&client, "/v1/uploads/images", gzip, &headers)
            .await
            .expect(400),
    );
    assert!(said.contains("gzip"), "{said}");
    gate.close().await;
}

async fn an_upload_that_is_no_image_is_told_the_accepted_types(backend: Backend) {
    let gate = TestGateway::start(backend).await;
    let client = gate.unlimited_client().await;
    let reply = client
        .upload("a.txt", "text/plain", b"hello, this is a text")
        .await;
    let said = message(&reply.expect(400));
    assert!(said.contains("jpeg, png, gif, webp"), "{said}");
    assert!(!said.to_lowercase().contains("bmp"), "{said}");
    let reply = post_bytes(
        &client,
        "/v1/uploads/images",
        b"{}".to_vec(),
        &[("content-type", "application/json")],
    )
    .await;
    assert!(message(&reply.expect(400)).ends_with("got \"application/json\""));
    gate.close().await;
}

async fn the_balance_of_a_disabled_user_has_its_own_error_body(backend: Backend) {
    let gate = TestGateway::start(backend).await;
    let client = gate.user_client("gone", &[]).await;
    client.key_balances().await;
    assert_eq!(gate.cli(&["user", "disable", "gone"]).await.code, 0);
    let disabled = async || {
        let reply = client.get("/v1/balance").await;
        (reply.status == 403).then_some(())
    };
    crate::harness::until("the user to be disabled", disabled).await;
    for path in ["/v1/balance", "/user/balance"] {
        let body = client.get(path).await.expect(403).json();
        assert_eq!(body["success"], false, "{body}");
        assert!(
            body["message"].as_str().unwrap().contains("disabled"),
            "{body}"
        );
        assert_eq!(body.as_object().unwrap().len(), 2, "{body}");
    }
    gate.close().await;
}

async fn fewer_images_than_requested_are_an_adjustment(backend: Backend) {
    let gate = Setup::new(backend)
        .config(priced_images::PRICES)
        .start()
        .await;
    let client = gate.user_client("payer", &["--balance", "10"]).await;
    let record = client
        .generate(&priced_images::images("a pier [[sandbox:partial=2]]", 4))
        .await;
    let fewer = &record["adjustments"][0];
    assert_eq!(
        (&fewer["field"], &fewer["asked"], &fewer["used"]),
        (&json!("n"), &json!(4), &json!(2)),
        "{record}"
    );
    assert!(
        fewer["why"]
            .as_str()
            .is_some_and(|why| why.contains("fewer"))
    );
    let record = client.generate(&priced_images::images("a pier", 2)).await;
    assert_eq!(record.get("adjustments"), None, "{record}");
    gate.close().await;
}

async fn a_link_that_is_cut_off_is_downloaded_seven_times(backend: Backend) {
    let video = json!({ "model": "seedance-1.0-pro", "duration": 2, "aspect_ratio": "1:1", "resolution": "480p" });
    for (provider, path, mut body) in [
        (
            Provider::Ark,
            IMAGES,
            json!({ "model": "doubao-seedance-4-5" }),
        ),
        (Provider::Ark, "/v1/video/generations", video),
        (Provider::OpenAi, "/v1/videos", json!({ "model": "sora-2" })),
        (
            Provider::Xai,
            IMAGES,
            json!({ "model": "grok-imagine-1.0-partner" }),
        ),
    ] {
        let fake = start(provider, Options::default()).await.unwrap();
        let config = format!(
            "[[channel]]\nname = \"up\"\nkind = \"{}\"\nbase_url = \"{}\"\napi_keys = [\"up-key\"]\npoll_ms = 50\nmodels = [{}]\n",
            provider.name(),
            fake.base_url(),
            body["model"],
        );
        let gate = Setup::new(backend).config(&config).start().await;
        let client = gate.unlimited_client().await;
        body["prompt"] = "a pier [[fake:reset-mid-body@file]]".into();
        let receipt = client.post(path, &body).await.expect(200).json();
        let record = client.wait_for_end(&task_id(&receipt)).await;
        assert_eq!(status(&record), "failed", "{record}");
        assert_eq!(record["error"]["code"], "provider_error", "{record}");
        let requests = fake.requests();
        let downloads = requests.iter().filter(|seen| {
            seen.method == "GET"
                && (seen.path.contains("_files") || seen.path.ends_with("/content"))
        });
        assert_eq!(downloads.count(), 7, "{} {path}", provider.name());
        let submissions = requests.iter().filter(|seen| seen.method == "POST");
        assert_eq!(submissions.count(), 1, "{} {path}", provider.name());
        gate.close().await;
    }
}
