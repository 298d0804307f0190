//! DashScope: pictures as tasks, and at once.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};

use crate::client::send;
use crate::media::{Site, data_uri, picture, png, read_picture};

const LATER: &str = "/services/aigc/image-generation/generation";
const AT_ONCE: &str = "/services/aigc/multimodal-generation/generation";
const LINK: &str = "https://example.org/a.png";
const KEY: (&str, &str) = ("authorization", "Bearer k");
const ASYNC: (&str, &str) = ("x-dashscope-async", "enable");

async fn site() -> Site {
    let options = Options {
        keys: vec!["k".to_owned()],
        ..Options::default()
    };
    Site::start(Provider::DashScope, options, "/api/v1", &[KEY, ASYNC]).await
}

fn body(text: &str) -> Value {
    asked(&[json!({"text": text})])
}

fn asked(content: &[Value]) -> Value {
    json!({"model": "wan2.7-image-pro",
        "input": {"messages": [{"role": "user", "content": content}]},
        "parameters": {"size": "2K", "n": 1, "watermark": false}})
}

fn with_picture(image: &str) -> Value {
    json!({"input": asked(&[json!({"image": image}), json!({"text": "a tree"})])["input"]})
}

/// A patch of the parameters.
fn set(parameters: Value) -> Value {
    json!({"parameters": parameters})
}

async fn begin(site: &Site, body: &Value) -> String {
    let answer = site.good(LATER, body).await;
    assert_eq!(answer["output"]["task_status"], "PENDING");
    let id = answer["output"]["task_id"].as_str().expect("an id");
    format!("/tasks/{id}")
}

#[tokio::test]
async fn heads() {
    let site = site().await;
    let json = ("content-type", "application/json");
    let later = "/api/v1/services/aigc/image-generation/generation";
    let at_once = "/api/v1/services/aigc/multimodal-generation/generation";
    for (path, headers, status, code, rule) in [
        (later, vec![json, ASYNC], 401, "InvalidApiKey", "auth"),
        (
            later,
            vec![json, ASYNC, ("authorization", "Bearer x")],
            401,
            "InvalidApiKey",
            "key",
        ),
        (later, vec![json, KEY], 403, "AccessDenied", "async"),
        (
            at_once,
            vec![json, KEY, ASYNC],
            403,
            "AccessDenied",
            "async",
        ),
        (
            later,
            vec![KEY, ASYNC],
            400,
            "InvalidParameter",
            "content-type",
        ),
        ("/api/v1/services", vec![json, KEY], 404, "NotFound", "path"),
    ] {
        let body = body("a tree").to_string();
        let reply = send(&site.fake, "POST", path, &headers, body)
            .await
            .expect("an answer");
        assert_eq!((reply.status, reply.header("x-fake-rule")), (status, rule));
        assert_eq!(reply.json()["code"], code);
        assert_eq!(reply.json()["request_id"], reply.header("x-request-id"));
    }
}

#[tokio::test]
async fn pictures_as_tasks() {
    let site = site().await;
    let mut wanted = body("[[fake:polls=3]] [[fake:partial=2]]");
    wanted["parameters"]["n"] = json!(3);
    wanted["parameters"]["size"] = json!("2560*1440");
    let path = begin(&site, &wanted).await;
    for status in ["PENDING", "RUNNING"] {
        let state = site.get(&path).await.json();
        assert_eq!(state["output"]["task_status"], status);
        assert!(state["usage"].is_null() && state["output"]["end_time"].is_null());
    }
    let state = site.get(&path).await.json();
    assert_eq!(state["output"]["task_status"], "SUCCEEDED");
    assert_eq!(state["usage"]["image_count"], 2);
    assert_eq!(state["output"]["end_time"].as_str().map(str::len), Some(23));
    let choices = state["output"]["choices"].as_array().expect("a list");
    assert_eq!(choices.len(), 2);
    let file = site
        .fetch(&choices[1]["message"]["content"][0]["image"])
        .await;
    assert_eq!(read_picture(&file.bytes(), "image/png"), (2560, 1440));
    let mut group = body("a tree");
    group["parameters"] = json!({"enable_sequential": true});
    let path = begin(&site, &group).await;
    let state = site.get(&path).await.json();
    let content = &state["output"]["choices"][0]["message"]["content"];
    assert_eq!(
        content.as_array().map(Vec::len),
        Some(12),
        "the default of a group"
    );
    let list = site.get("/tasks?status=SUCCEEDED&page_size=1").await.json();
    assert_eq!(
        (&list["total"], list["data"].as_array().map(Vec::len)),
        (&json!(2), Some(1))
    );
}

#[tokio::test]
async fn tasks_that_end_otherwise() {
    let site = site().await;
    for (text, code) in [
        ("[[fake:fail]]", "InternalError.Algo"),
        ("[[fake:expire]]", "InternalError.Timeout"),
        ("[[fake:content-filter]]", "DataInspectionFailed"),
    ] {
        let path = begin(&site, &body(text)).await;
        let state = site.get(&path).await.json();
        assert_eq!(state["output"]["task_status"], "FAILED");
        assert_eq!(state["output"]["code"], code);
    }
    let blocked = site.post(LATER, &body("[[fake:blocked]]")).await;
    assert_eq!(
        (blocked.status, &blocked.json()["code"]),
        (400, &json!("DataInspectionFailed"))
    );
    let unknown = site.get("/tasks/none").await;
    assert_eq!(unknown.status, 200);
    assert_eq!(unknown.json()["output"]["task_status"], "UNKNOWN");
    let path = begin(&site, &body("[[fake:polls=9]]")).await;
    let cancel = format!("{path}/cancel");
    assert_eq!(site.ask("POST", &cancel).await.status, 200);
    assert_eq!(
        site.get(&path).await.json()["output"]["task_status"],
        "CANCELED"
    );
    let again = site.ask("POST", &cancel).await;
    assert_eq!(
        (again.status, &again.json()["code"]),
        (400, &json!("UnsupportedOperation"))
    );
    for (text, status, code) in [
        ("[[fake:quota-exhausted]]", 400, "Arrearage"),
        ("[[fake:rate-limited]]", 429, "Throttling.RateQuota"),
        ("[[fake:model-missing]]", 404, "ModelNotFound"),
        ("[[fake:overloaded]]", 503, "ModelUnavailable"),
    ] {
        let reply = site.post(LATER, &body(text)).await;
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (status, &json!(code))
        );
    }
}

#[tokio::test]
async fn pictures_at_once() {
    let options = Options::default();
    let site = Site::start(Provider::DashScope, options, "/api/v1", &[KEY]).await;
    let answer = site.good(AT_ONCE, &body("a tree")).await;
    let link = &answer["output"]["choices"][0]["message"]["content"][0]["image"];
    let file = site.fetch(link).await;
    assert_eq!(read_picture(&file.bytes(), "image/png"), (2048, 2048));
    assert_eq!(
        site.post(AT_ONCE, &body("[[fake:content-filter]]"))
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn pictures_are_refused() {
    let site = site().await;
    let uri = |width, height| data_uri("image/png", &png(width, height));
    let gif = data_uri("image/gif", &picture(300, 300, image::ImageFormat::Gif));
    let bmp = data_uri("image/bmp", &picture(300, 300, image::ImageFormat::Bmp));
    let palette = |shares: &[&str]| -> Value {
        let colour = |share: &&str| json!({"hex": "#00ff00", "ratio": share});
        json!({"color_palette": shares.iter().map(colour).collect::<Vec<_>>()})
    };
    let thirds = ["33.33%", "33.33%", "33.34%"];
    let with_box = |one: Value| {
        let mut patch = with_picture(LINK);
        patch["parameters"] = json!({"bbox_list": [[one]]});
        patch
    };
    let mut in_a_group = palette(&thirds);
    in_a_group["enable_sequential"] = json!(true);
    let many: Vec<Value> = std::iter::repeat_n(json!({"image": LINK}), 10)
        .chain([json!({"text": "x"})])
        .collect();
    let standard = "wan2.7-image";
    site.table(
        LATER,
        &body("a tree"),
        &[
            ("", json!({})),
            ("unknown-field", json!({"prompt": "x"})),
            ("unknown-field", set(json!({"prompt_extend": true}))),
            ("missing-field", json!({"input": null})),
            ("messages", json!({"input": {"messages": []}})),
            ("model", json!({"model": "wan2.2-t2i-flash"})),
            ("type", set(json!({"n": "1"}))),
            ("range", set(json!({"n": 5}))),
            ("", set(json!({"n": 12, "enable_sequential": true}))),
            ("size", set(json!({"size": "2048x2048"}))),
            ("size", set(json!({"size": "1k"}))),
            ("", set(json!({"size": "4K"}))),
            (
                "size",
                json!({"model": standard, "parameters": {"size": "4K"}}),
            ),
            (
                "size",
                set(json!({"size": "4K", "enable_sequential": true})),
            ),
            ("", set(json!({"size": "4096*4096"}))),
            (
                "size",
                json!({"model": standard, "parameters": {"size": "2560*2560"}}),
            ),
            ("size", set(json!({"size": "512*512"}))),
            ("size", set(json!({"size": "4000*400"}))),
            ("range", set(json!({"seed": -1}))),
            ("", set(palette(&thirds))),
            ("palette", set(palette(&["50.00%", "50.00%"]))),
            ("palette", set(palette(&["50%", "25%", "25%"]))),
            ("palette", set(palette(&["50.00%", "25.00%", "24.99%"]))),
            ("palette", set(in_a_group)),
            ("boxes", set(json!({"bbox_list": [[[0, 0, 5, 5]]]}))),
            ("", with_box(json!([0, 0, 5, 5]))),
            ("boxes", with_box(json!([9, 0, 5, 5]))),
            ("boxes", with_box(json!([0, 0, 5]))),
            ("", with_picture(LINK)),
            ("", with_picture(&uri(240, 300))),
            ("", with_picture(&bmp)),
            ("image-size", with_picture(&uri(239, 300))),
            ("image-size", with_picture(&uri(240, 2000))),
            ("image-type", with_picture(&gif)),
            ("image-url", with_picture("iVBORw0KGgo=")),
            ("image-url", with_picture("oss://a/b")),
            ("too-many", json!({"input": asked(&many)["input"]})),
            (
                "text",
                json!({"input": asked(&[json!({"image": LINK})])["input"]}),
            ),
            (
                "text",
                json!({"input": asked(&[json!({"text": "a"}), json!({"text": "b"})])["input"]}),
            ),
            (
                "item",
                json!({"input": asked(&[json!({"text": "a", "image": LINK})])["input"]}),
            ),
            (
                "unknown-field",
                json!({"input": asked(&[json!({"type": "text", "text": "a"})])["input"]}),
            ),
            ("length", json!({"input": body(&"x".repeat(5001))["input"]})),
        ],
    )
    .await;
}
