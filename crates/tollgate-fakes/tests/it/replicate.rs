//! Replicate: predictions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};

use crate::client::send;
use crate::media::{Site, base64, data_uri, png, read_picture};

const PICTURES: &str = "/models/bytedance/seedream-4.5/predictions";
const FILMS: &str = "/models/google/veo-3.1/predictions";
const LINK: &str = "https://example.org/a.png";
const KEY: (&str, &str) = ("authorization", "Bearer k");

async fn site() -> Site {
    let options = Options {
        keys: vec!["k".to_owned()],
        ..Options::default()
    };
    Site::start(Provider::Replicate, options, "/v1", &[KEY]).await
}

fn asked(text: &str) -> Value {
    json!({"input": {"prompt": text, "aspect_ratio": "1:1"}})
}

async fn begin(site: &Site, path: &str, body: &Value) -> (Value, String) {
    let reply = site.post(path, body).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let answer = reply.json();
    let own = format!("/predictions/{}", answer["id"].as_str().expect("an id"));
    let origin = format!("http://{}/v1", site.fake.address());
    assert_eq!(answer["urls"]["get"], format!("{origin}{own}"));
    (answer, own)
}

#[tokio::test]
async fn heads() {
    let site = site().await;
    let json = ("content-type", "application/json");
    let path = "/v1/models/bytedance/seedream-4.5/predictions";
    for (path, headers, status, rule) in [
        (path, vec![json], 401, "auth"),
        (path, vec![json, ("authorization", "Bearer no")], 401, "key"),
        (path, vec![KEY], 400, "content-type"),
        (path, vec![json, KEY, ("prefer", "wait=90")], 400, "prefer"),
        (
            "/v1/models/bytedance/missing/predictions",
            vec![json, KEY],
            404,
            "model",
        ),
        ("/v1/models/bytedance", vec![json, KEY], 404, "path"),
    ] {
        let reply = send(&site.fake, "POST", path, &headers, asked("a").to_string()).await;
        let reply = reply.expect("an answer");
        assert_eq!((reply.status, reply.header("x-fake-rule")), (status, rule));
        assert_eq!(reply.json()["status"], status);
        assert!(reply.json()["detail"].is_string() && reply.json()["title"].is_string());
    }
}

#[tokio::test]
async fn predictions() {
    let site = site().await;
    let mut body = asked("[[fake:polls=3]] [[fake:partial=2]]");
    body["input"]["max_images"] = json!(3);
    body["input"]["output_format"] = json!("png");
    let (begun, path) = begin(&site, PICTURES, &body).await;
    assert_eq!(
        (&begun["status"], &begun["output"]),
        (&json!("starting"), &Value::Null)
    );
    assert_eq!(site.get(&path).await.json()["status"], "starting");
    let running = site.get(&path).await.json();
    assert_eq!(running["status"], "processing");
    assert!(
        running["logs"]
            .as_str()
            .is_some_and(|logs| logs.contains("%|"))
    );
    let done = site.get(&path).await.json();
    assert_eq!(
        (&done["status"], &done["input"]),
        (&json!("succeeded"), &body["input"])
    );
    assert!(
        done["completed_at"]
            .as_str()
            .is_some_and(|time| time.ends_with('Z'))
    );
    assert_eq!(done["output"].as_array().map(Vec::len), Some(2));
    let file = site.fetch(&done["output"][1]).await;
    assert_eq!(read_picture(&file.bytes(), "image/png"), (1024, 1024));
    let (_, path) = begin(
        &site,
        "/models/google/nano-banana-pro/predictions",
        &asked("a"),
    )
    .await;
    assert!(
        site.get(&path).await.json()["output"].is_string(),
        "a link and no list"
    );
    let film = json!({"input": {"prompt": "a", "duration": 8, "resolution": "1080p"}});
    let (_, path) = begin(&site, FILMS, &film).await;
    let file = site.fetch(&site.get(&path).await.json()["output"]).await;
    assert_eq!(file.header("content-type"), "video/mp4");
    let speech = json!({"input": {"text": "hello"}});
    let (_, path) = begin(&site, "/models/minimax/speech-02-hd/predictions", &speech).await;
    let file = site.fetch(&site.get(&path).await.json()["output"]).await;
    assert_eq!(file.header("content-type"), "audio/mpeg");
    let mut versioned = asked("a");
    versioned["version"] = json!("a".repeat(64));
    let (begun, _) = begin(&site, "/predictions", &versioned).await;
    assert_eq!(begun["version"], versioned["version"]);
    assert_eq!(
        site.post("/predictions", &asked("a")).await.status,
        422,
        "no version"
    );
}

#[tokio::test]
async fn predictions_that_end_otherwise() {
    let site = site().await;
    for (text, status, error) in [
        ("[[fake:fail]]", "failed", "code: PA"),
        ("[[fake:content-filter]]", "failed", "(E005)"),
        ("[[fake:blocked]]", "failed", "NSFW"),
        ("[[fake:expire]]", "aborted", ""),
    ] {
        let (_, path) = begin(&site, PICTURES, &asked(text)).await;
        let state = site.get(&path).await.json();
        assert_eq!(state["status"], status);
        assert!(
            state["error"].as_str().unwrap_or_default().contains(error),
            "{state}"
        );
        assert!(state["output"].is_null());
    }
    let (_, path) = begin(&site, PICTURES, &asked("[[fake:polls=9]]")).await;
    let cancelled = site.ask("POST", &format!("{path}/cancel")).await;
    assert_eq!(
        (cancelled.status, &cancelled.json()["status"]),
        (200, &json!("canceled"))
    );
    assert_eq!(site.get(&path).await.json()["status"], "canceled");
    assert_eq!(site.get("/predictions/none").await.status, 404);
    let reply = site.post(PICTURES, &asked("[[fake:rate-limited=9]]")).await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, "9"));
    let reply = site
        .post(PICTURES, &asked("[[fake:quota-exhausted]]"))
        .await;
    assert_eq!(
        (reply.status, &reply.json()["title"]),
        (402, &json!("Insufficient credit"))
    );
}

#[tokio::test]
async fn answers_that_wait() {
    let options = Options {
        work: Duration::from_millis(200),
        link_life: Some(Duration::from_millis(400)),
        ..Options::default()
    };
    let headers = [KEY, ("prefer", "wait=5")];
    let site = Site::start(Provider::Replicate, options, "/v1", &headers).await;
    let begun = Instant::now();
    let reply = site.post(PICTURES, &asked("a")).await;
    assert_eq!(
        (reply.status, &reply.json()["status"]),
        (201, &json!("succeeded"))
    );
    assert!(begun.elapsed() >= Duration::from_millis(200));
    let path = format!(
        "/predictions/{}",
        reply.json()["id"].as_str().expect("an id")
    );
    tokio::time::sleep(Duration::from_millis(450)).await;
    let later = site.get(&path).await.json();
    assert_eq!(
        (&later["data_removed"], &later["output"]),
        (&json!(true), &Value::Null)
    );
    let reply = site.post(PICTURES, &asked("[[fake:polls=3]]")).await;
    assert_eq!(
        (reply.status, &reply.json()["status"]),
        (202, &json!("starting"))
    );
}

#[tokio::test]
async fn inputs_are_refused() {
    let site = site().await;
    let input = |input: Value| json!({"input": input});
    let bytes = png(40, 40);
    for (path, rule, body) in [
        (PICTURES, "unknown-field", json!({"prompt": "a"})),
        (PICTURES, "missing-field", json!({})),
        (PICTURES, "missing-field", input(json!({}))),
        (
            PICTURES,
            "unknown-field",
            input(json!({"prompt": "a", "n": 2})),
        ),
        (
            PICTURES,
            "type",
            input(json!({"prompt": "a", "max_images": "2"})),
        ),
        (
            PICTURES,
            "value",
            input(json!({"prompt": "a", "output_format": "jpeg"})),
        ),
        (
            PICTURES,
            "image-url",
            input(json!({"prompt": "a", "image_input": [base64(&bytes)]})),
        ),
        (
            PICTURES,
            "image-type",
            input(json!({"prompt": "a",
            "image": data_uri("image/webp", &bytes)})),
        ),
        (
            FILMS,
            "type",
            input(json!({"prompt": "a", "duration": "8s"})),
        ),
        (
            FILMS,
            "unknown-field",
            input(json!({"prompt": "a", "seconds": 8})),
        ),
        (
            PICTURES,
            "webhook",
            json!({"input": {"prompt": "a"}, "webhook": "here"}),
        ),
        (
            PICTURES,
            "webhook",
            json!({"input": {"prompt": "a"},
            "webhook_events_filter": ["completed"]}),
        ),
    ] {
        let reply = site.post(path, &body).await;
        assert_eq!(
            (reply.status, reply.header("x-fake-rule")),
            (422, rule),
            "{body}"
        );
        assert!(reply.json()["invalid_fields"][0]["field"].is_string());
    }
    for body in [
        input(json!({"prompt": "a", "image_input": [LINK, data_uri("image/png", &bytes)]})),
        json!({"input": {"prompt": "a"}, "webhook": LINK, "webhook_events_filter": ["completed"]}),
    ] {
        assert_eq!(site.post(PICTURES, &body).await.status, 201, "{body}");
    }
}
