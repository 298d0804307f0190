//! fal: requests in a queue.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};

use crate::client::send;
use crate::media::{Site, base64, data_uri, png, read_picture};

const PICTURES: &str = "/fal-ai/bytedance/seedream/v4.5/text-to-image";
const FILMS: &str = "/fal-ai/veo3.1";
const LINK: &str = "https://example.org/a.png";
const KEY: (&str, &str) = ("authorization", "Key k");

async fn site() -> Site {
    let options = Options {
        keys: vec!["k".to_owned()],
        ..Options::default()
    };
    Site::start(Provider::Fal, options, "", &[KEY]).await
}

fn asked(text: &str) -> Value {
    json!({"prompt": text})
}

/// The paths of a request's state, result and end.
async fn begin(site: &Site, path: &str, body: &Value) -> [String; 3] {
    let answer = site.good(path, body).await;
    assert_eq!(answer["status"], "IN_QUEUE");
    let origin = format!("http://{}", site.fake.address());
    ["status_url", "response_url", "cancel_url"].map(|name| {
        let url = answer[name].as_str().expect("a link");
        url.strip_prefix(&origin)
            .expect("the fake's own origin")
            .to_owned()
    })
}

#[tokio::test]
async fn heads() {
    let site = site().await;
    let json = ("content-type", "application/json");
    for (method, path, headers, status, rule) in [
        ("POST", PICTURES, vec![json], 401, "auth"),
        (
            "POST",
            PICTURES,
            vec![json, ("authorization", "Bearer k")],
            401,
            "auth",
        ),
        (
            "POST",
            PICTURES,
            vec![json, ("authorization", "Key no")],
            401,
            "key",
        ),
        ("POST", PICTURES, vec![KEY], 422, "content-type"),
        ("POST", "/fal-ai/missing", vec![json, KEY], 404, "model"),
        ("POST", "/fal-ai", vec![json, KEY], 405, "method"),
        ("GET", PICTURES, vec![KEY], 404, "path"),
        (
            "POST",
            PICTURES,
            vec![json, KEY, ("x-fal-queue-priority", "high")],
            400,
            "priority",
        ),
        (
            "POST",
            PICTURES,
            vec![json, KEY, ("x-fal-request-timeout", "soon")],
            400,
            "timeout",
        ),
        (
            "POST",
            PICTURES,
            vec![json, KEY, ("x-fal-object-lifecycle-preference", "60")],
            400,
            "lifecycle",
        ),
        (
            "POST",
            "/fal-ai/veo3.1?fal_webhook=here",
            vec![json, KEY],
            400,
            "webhook",
        ),
    ] {
        let reply = send(&site.fake, method, path, &headers, asked("a").to_string()).await;
        let reply = reply.expect("an answer");
        assert_eq!(
            (reply.status, reply.header("x-fake-rule")),
            (status, rule),
            "{path}"
        );
        assert!(!reply.json()["detail"].is_null());
        assert_eq!(reply.header("x-fal-retryable"), "false");
        assert!(!reply.header("x-fal-request-id").is_empty());
    }
}

#[tokio::test]
async fn pictures() {
    let site = site().await;
    let body = json!({"prompt": "[[fake:polls=4]] [[fake:partial=1]]", "num_images": 2,
        "image_size": {"width": 1280, "height": 720}, "output_format": "png"});
    let [status, result, _] = begin(&site, PICTURES, &body).await;
    assert!(
        status.starts_with("/fal-ai/bytedance/requests/"),
        "the rest of the path is dropped"
    );
    let first = site.get(&status).await;
    assert_eq!(
        (first.status, &first.json()["status"]),
        (202, &json!("IN_QUEUE"))
    );
    let second = site.get(&status).await;
    assert_eq!(
        (second.status, &second.json()["status"]),
        (202, &json!("IN_PROGRESS"))
    );
    let early = site.get(&result).await;
    assert_eq!((early.status, early.header("x-fake-rule")), (400, "early"));
    let last = site.get(&status).await;
    assert_eq!(
        (last.status, &last.json()["status"]),
        (200, &json!("COMPLETED"))
    );
    let output = site.get(&result).await.json();
    assert_eq!(output["has_nsfw_concepts"], json!([false, true]));
    assert_eq!(output["images"][0]["content_type"], "image/png");
    let file = site.fetch(&output["images"][0]["url"]).await;
    assert_eq!(read_picture(&file.bytes(), "image/png"), (1280, 720));
}

#[tokio::test]
async fn films_and_sounds() {
    let site = site().await;
    let film = json!({"prompt": "a", "duration": "8s", "resolution": "1080p"});
    let [status, result, _] = begin(&site, FILMS, &film).await;
    assert_eq!(site.get(&status).await.status, 200);
    let output = site.get(&result).await.json();
    let file = site.fetch(&output["video"]["url"]).await;
    assert_eq!(file.header("content-type"), "video/mp4");
    assert_eq!(output["video"]["file_size"], file.bytes().len());
    let [_, result, _] = begin(&site, "/fal-ai/kokoro-tts", &json!({"text": "hello"})).await;
    let output = site.get(&result).await.json();
    assert_eq!(
        site.fetch(&output["audio"]["url"])
            .await
            .header("content-type"),
        "audio/mpeg"
    );
}

#[tokio::test]
async fn requests_that_end_otherwise() {
    let site = site().await;
    let [status, result, _] = begin(&site, FILMS, &asked("[[fake:fail]]")).await;
    let state = site.get(&status).await;
    assert_eq!(
        (state.status, &state.json()["status"]),
        (200, &json!("COMPLETED"))
    );
    assert_eq!(state.json()["error_type"], "runner_error");
    assert_eq!(site.get(&result).await.status, 500);
    let [status, result, _] = begin(&site, FILMS, &asked("[[fake:content-filter]]")).await;
    assert!(
        site.get(&status).await.json()["error"].is_null(),
        "only the result tells"
    );
    let reply = site.get(&result).await;
    assert_eq!(
        (reply.status, reply.header("x-fal-error-type")),
        (422, "content_policy_violation")
    );
    assert_eq!(
        reply.json()["detail"][0]["type"],
        "content_policy_violation"
    );
    let [_, result, _] = begin(&site, FILMS, &asked("[[fake:expire]]")).await;
    let reply = site.get(&result).await;
    assert_eq!(
        (reply.status, reply.header("x-fal-request-timeout-type")),
        (504, "user")
    );
    assert_eq!(
        site.post(FILMS, &asked("[[fake:blocked]]")).await.status,
        422
    );
    let reply = site.post(FILMS, &asked("[[fake:quota-exhausted]]")).await;
    assert_eq!(
        (reply.status, reply.header("x-fal-retryable")),
        (403, "false")
    );
    let reply = site.post(FILMS, &asked("[[fake:overloaded]]")).await;
    assert_eq!(
        (reply.status, reply.header("x-fal-retryable")),
        (503, "true")
    );
}

#[tokio::test]
async fn requests_are_cancelled() {
    let site = site().await;
    let [status, _, cancel] = begin(&site, FILMS, &asked("[[fake:polls=9]]")).await;
    let reply = site.ask("PUT", &cancel).await;
    assert_eq!(
        (reply.status, &reply.json()["status"]),
        (202, &json!("CANCELLATION_REQUESTED"))
    );
    assert_eq!(site.get(&status).await.status, 404, "it has left the queue");
    let [status, _, cancel] = begin(&site, FILMS, &asked("[[fake:polls=9]]")).await;
    site.get(&status).await;
    site.get(&status).await;
    assert_eq!(site.ask("PUT", &cancel).await.status, 202);
    assert_eq!(
        site.get(&status).await.json()["error_type"],
        "request_cancelled"
    );
    let reply = site.ask("PUT", &cancel).await;
    assert_eq!(
        (reply.status, &reply.json()["status"]),
        (400, &json!("ALREADY_COMPLETED"))
    );
    let reply = site.ask("PUT", "/fal-ai/veo3.1/requests/none/cancel").await;
    assert_eq!(
        (reply.status, &reply.json()["status"]),
        (404, &json!("NOT_FOUND"))
    );
    let [status, ..] = begin(&site, FILMS, &asked("a")).await;
    let other = status.replace("veo3.1", "other");
    assert_eq!(site.get(&other).await.status, 404, "of another app");
}

#[tokio::test]
async fn inputs_are_refused() {
    let site = site().await;
    let bytes = png(40, 40);
    site.table(
        PICTURES,
        &asked("a"),
        &[
            (
                "",
                json!({"image_urls": [LINK, data_uri("image/png", &bytes)]}),
            ),
            ("missing-field", json!({"prompt": null})),
            ("unknown-field", json!({"n": 2})),
            ("unknown-field", json!({"input": {"prompt": "a"}})),
            ("type", json!({"num_images": "2"})),
            ("value", json!({"image_size": "1024x1024"})),
            ("missing-field", json!({"image_size": {"width": 64}})),
            ("value", json!({"output_format": "jpg"})),
            ("image-url", json!({"image_url": base64(&bytes)})),
        ],
    )
    .await;
    let reply = site
        .post(
            PICTURES,
            &json!({"prompt": "a", "image_size": {"width": "64"}}),
        )
        .await;
    let place = &reply.json()["detail"][0]["loc"];
    assert_eq!(
        (reply.status, place),
        (422, &json!(["body", "image_size", "width"]))
    );
}
