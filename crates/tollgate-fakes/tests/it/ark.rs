//! Ark: pictures at once, films as tasks.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};

use crate::client::send;
use crate::media::{Site, data_uri, picture, png, read_base64, read_picture};

const IMAGES: &str = "/images/generations";
const TASKS: &str = "/contents/generations/tasks";

async fn site() -> Site {
    site_with(Options::default()).await
}

async fn site_with(options: Options) -> Site {
    Site::start(
        Provider::Ark,
        options,
        "/api/v3",
        &[("authorization", "Bearer k")],
    )
    .await
}

fn images() -> Value {
    json!({"model": "doubao-seedream-4-5-251128", "prompt": "a tree", "size": "2048x2048",
        "watermark": false})
}

fn film() -> Value {
    json!({"model": "doubao-seedance-1-0-pro-250528", "resolution": "720p", "ratio": "16:9",
        "duration": 5, "content": [{"type": "text", "text": "a tree"}]})
}

fn frame(role: Option<&str>, url: &str) -> Value {
    let mut item = json!({"type": "image_url", "image_url": {"url": url}});
    if let Some(role) = role {
        item["role"] = json!(role);
    }
    item
}

const LINK: &str = "https://example.org/a.png";

fn content(items: &[&Value]) -> Value {
    let mut all = vec![json!({"type": "text", "text": "a tree"})];
    all.extend(items.iter().copied().cloned());
    json!({"content": all})
}

fn with(mut patch: Value, more: Value) -> Value {
    let more = more.as_object().expect("an object").clone();
    patch.as_object_mut().expect("an object").extend(more);
    patch
}

#[tokio::test]
async fn heads() {
    let options = Options {
        keys: vec!["k".to_owned()],
        ..Options::default()
    };
    let site = site_with(options).await;
    let body = images().to_string();
    let json = ("content-type", "application/json");
    let key = ("authorization", "Bearer k");
    let path = "/api/v3/images/generations";
    for (path, headers, status, code, rule) in [
        (path, vec![json], 401, "AuthenticationError", "auth"),
        (
            path,
            vec![json, ("authorization", "Bearer x")],
            401,
            "AuthenticationError",
            "key",
        ),
        (path, vec![key], 400, "InvalidParameter", "content-type"),
        (
            "/images/generations",
            vec![json, key],
            404,
            "NotFound",
            "path",
        ),
    ] {
        let reply = send(&site.fake, "POST", path, &headers, &body)
            .await
            .expect("an answer");
        assert_eq!((reply.status, reply.header("x-fake-rule")), (status, rule));
        let error = &reply.json()["error"];
        assert_eq!(error["code"], code);
        let id = reply.header("x-request-id");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.ends_with(id)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn pictures_are_made() {
    let site = site().await;
    let answer = site.good(IMAGES, &images()).await;
    assert_eq!(answer["usage"]["generated_images"], 1);
    assert_eq!(answer["data"][0]["size"], "2048x2048");
    let file = site.fetch(&answer["data"][0]["url"]).await;
    assert_eq!(file.header("content-type"), "image/jpeg");
    assert_eq!(read_picture(&file.bytes(), "image/jpeg"), (2048, 2048));
    let inline = json!({"model": "doubao-seedream-5-0-260128", "prompt": "a tree", "size": "3K",
        "response_format": "b64_json", "output_format": "png"});
    let answer = site.good(IMAGES, &inline).await;
    assert_eq!(
        read_base64(&answer["data"][0]["b64_json"], "image/png"),
        (3072, 3072)
    );
    let group = with(
        images(),
        json!({"sequential_image_generation": "auto",
        "sequential_image_generation_options": {"max_images": 4}, "prompt": "[[fake:partial=3]]"}),
    );
    let answer = site.good(IMAGES, &group).await;
    let items = answer["data"].as_array().expect("a list");
    assert_eq!(
        items.iter().filter(|item| item["url"].is_string()).count(),
        3
    );
    assert_eq!(
        items[3]["error"]["code"],
        "OutputImageSensitiveContentDetected"
    );
    assert_eq!(answer["usage"]["generated_images"], 3);
}

#[tokio::test]
async fn pictures_are_refused() {
    let site = site().await;
    let small = data_uri("image/png", &png(10, 40));
    let fine = data_uri("image/png", &png(40, 40));
    let wrong = data_uri("image/jpeg", &png(40, 40));
    let many: Vec<&str> = vec![LINK; 15];
    let options = |n: i64| json!({"max_images": n});
    let v5 = "doubao-seedream-5-0-260128";
    let auto = "auto";
    site.table(
        IMAGES,
        &images(),
        &[
            ("", json!({})),
            ("unknown-field", json!({"n": 2})),
            ("unknown-field", json!({"negative_prompt": "x"})),
            ("missing-field", json!({"prompt": null})),
            ("missing-field", json!({"model": null})),
            ("type", json!({"watermark": "false"})),
            ("type", json!({"prompt": 7})),
            ("model", json!({"model": "doubao-seedream-9"})),
            ("model", json!({"model": "seedream"})),
            ("model", json!({"model": "doubao-seedance-1-0-pro-250528"})),
            ("", json!({"model": "seedream-4-5-251128"})),
            ("", json!({"size": "4K"})),
            ("size", json!({"size": "3K"})),
            ("", json!({"size": "3K", "model": v5})),
            ("size", json!({"size": "2k"})),
            ("size", json!({"size": "1024x1024"})),
            ("size", json!({"size": "2048*2048"})),
            ("size", json!({"size": "5000x5000"})),
            ("size", json!({"size": "16384x1000"})),
            ("unsupported", json!({"seed": 5})),
            ("unsupported", json!({"output_format": "png"})),
            ("unsupported", json!({"tools": [{"type": "web_search"}]})),
            ("", json!({"tools": [{"type": "web_search"}], "model": v5})),
            ("value", json!({"output_format": "webp", "model": v5})),
            ("value", json!({"response_format": "base64"})),
            (
                "optimize-mode",
                json!({"optimize_prompt_options": {"mode": "fast"}}),
            ),
            ("", json!({"optimize_prompt_options": {"mode": "standard"}})),
            ("type", json!({"optimize_prompt_options": "standard"})),
            (
                "group-options",
                json!({"sequential_image_generation_options": options(3)}),
            ),
            (
                "range",
                json!({"sequential_image_generation": auto,
            "sequential_image_generation_options": options(16)}),
            ),
            (
                "group-total",
                json!({"sequential_image_generation": auto, "image": [LINK, LINK],
            "sequential_image_generation_options": options(14)}),
            ),
            ("", json!({"image": LINK})),
            ("", json!({"image": [LINK, fine]})),
            ("too-many", json!({"image": many})),
            ("image-url", json!({"image": "a.png"})),
            ("image-url", json!({"image": ""})),
            ("image-size", json!({"image": small})),
            ("image-type", json!({"image": wrong})),
            ("image-data", json!({"image": "data:image/png;base64,????"})),
            ("image-data", json!({"image": "data:image/png;base64,AAAA"})),
            ("not-made", json!({"stream": true})),
        ],
    )
    .await;
}

#[tokio::test]
async fn films_are_made() {
    let site = site().await;
    let mut body = film();
    body["content"][0]["text"] = json!("a tree [[fake:polls=4]]");
    body["return_last_frame"] = json!(true);
    let id = site.good(TASKS, &body).await["id"].clone();
    let path = format!("{TASKS}/{}", id.as_str().expect("an id"));
    assert!(path.contains("/cgt-"));
    let mut seen = Vec::new();
    for _ in 0..4 {
        let state = site.get(&path).await.json();
        assert_eq!((&state["id"], &state["model"]), (&id, &body["model"]));
        seen.push(state);
    }
    let words: Vec<&Value> = seen.iter().map(|state| &state["status"]).collect();
    assert_eq!(words, ["queued", "running", "running", "succeeded"]);
    let done = &seen[3];
    assert_eq!(
        (&done["ratio"], &done["duration"]),
        (&json!("16:9"), &json!(5))
    );
    assert!(done["usage"]["completed_tokens"].is_null());
    assert_eq!(
        done["usage"]["completion_tokens"],
        1280 * 720 * 24 * 5 / 1024
    );
    assert_eq!(
        site.get(&path).await.json()["content"],
        done["content"],
        "the same links"
    );
    let file = site.fetch(&done["content"]["video_url"]).await;
    assert_eq!(file.header("content-type"), "video/mp4");
    assert_eq!(&file.bytes()[4..8], b"ftyp");
    let file = site.fetch(&done["content"]["last_frame_url"]).await;
    assert_eq!(read_picture(&file.bytes(), "image/jpeg"), (1280, 720));
    let polls = site.fake.polls();
    assert_eq!((polls.len(), polls[0].1.len()), (1, 5));
}

#[tokio::test]
async fn films_are_refused() {
    let site = site().await;
    let two = "doubao-seedance-2-0-260128";
    let lite_text = "doubao-seedance-1-0-lite-t2v-250428";
    let lite = "doubao-seedance-1-0-lite-i2v-250428";
    let five = "doubao-seedance-1-5-pro-251215";
    let first = frame(None, LINK);
    let last = frame(Some("last_frame"), LINK);
    let reference = frame(Some("reference_image"), LINK);
    let many = |n: usize| content(&vec![&reference; n]);
    let gif = data_uri("image/gif", &picture(40, 40, image::ImageFormat::Gif));
    let none = json!({"ratio": null});
    site.table(
        TASKS,
        &film(),
        &[
            ("", json!({})),
            ("unknown-field", json!({"aspect_ratio": "16:9"})),
            ("unknown-field", json!({"prompt": "x"})),
            ("missing-field", json!({"content": null})),
            ("missing-field", json!({"content": [{"type": "text"}]})),
            (
                "unknown-field",
                json!({"content": [{"type": "text", "txt": "x"}]}),
            ),
            ("empty", json!({"content": [{"type": "text", "text": " "}]})),
            ("type", json!({"duration": "5"})),
            ("duration", json!({"duration": 1})),
            ("duration", json!({"duration": 13})),
            ("duration", json!({"duration": 3, "model": five})),
            ("duration", json!({"duration": -1})),
            ("", json!({"duration": -1, "model": two})),
            ("", json!({"duration": 15, "model": two})),
            ("length", json!({"frames": 29})),
            ("length", json!({"frames": 30, "duration": null})),
            ("", json!({"frames": 29, "duration": null})),
            (
                "unsupported",
                json!({"frames": 29, "duration": null, "model": two}),
            ),
            ("value", json!({"resolution": "720"})),
            ("value", json!({"resolution": "4k"})),
            (
                "resolution",
                json!({"resolution": "1080p", "model": "doubao-seedance-2-0-fast-260128"}),
            ),
            ("value", json!({"ratio": "2:1"})),
            ("", json!({"ratio": "adaptive"})),
            ("unsupported", json!({"generate_audio": true})),
            ("", json!({"generate_audio": true, "model": five})),
            ("unsupported", json!({"camera_fixed": true, "model": two})),
            ("range", json!({"seed": -2})),
            ("model", json!({"model": "doubao-seedream-4-5-251128"})),
            ("model", json!({"model": "missing"})),
            ("", content(&[&first])),
            ("ratio", with(content(&[&first]), json!({"model": five}))),
            (
                "",
                with(
                    with(content(&[&first]), json!({"model": five})),
                    none.clone(),
                ),
            ),
            ("", content(&[&first, &last])),
            ("frames", content(&[&last])),
            ("frames", content(&[&first, &first])),
            ("references", content(&[&reference])),
            ("", with(many(4), json!({"model": lite}))),
            ("references", with(many(5), json!({"model": lite}))),
            ("", with(many(9), json!({"model": two}))),
            ("references", with(many(10), json!({"model": two}))),
            (
                "frames-and-references",
                with(content(&[&first, &reference]), json!({"model": two})),
            ),
            (
                "text-only",
                with(content(&[&first]), json!({"model": lite_text})),
            ),
            ("needs-image", json!({"model": lite})),
            (
                "last-frame",
                with(
                    content(&[&first, &last]),
                    json!({"model": "doubao-seedance-1-0-pro-fast-251015"}),
                ),
            ),
            ("role", content(&[&frame(Some("reference_video"), LINK)])),
            ("value", content(&[&frame(Some("start"), LINK)])),
            ("image-url", content(&[&frame(None, "iVBORw0KGgo=")])),
            ("", content(&[&frame(None, &gif)])),
        ],
    )
    .await;
}

#[tokio::test]
async fn tasks_are_ended_and_listed() {
    let site = site().await;
    let start = async |text: &str| {
        let mut body = film();
        body["content"][0]["text"] = json!(text);
        let id = site.good(TASKS, &body).await["id"].clone();
        id.as_str().expect("an id").to_owned()
    };
    let state = async |id: &str| site.get(&format!("{TASKS}/{id}")).await;
    let delete = async |id: &str| site.ask("DELETE", &format!("{TASKS}/{id}")).await;
    let id = start("[[fake:polls=5]]").await;
    assert_eq!(delete(&id).await.status, 200);
    assert_eq!(state(&id).await.json()["status"], "cancelled");
    assert_eq!(delete(&id).await.status, 200, "the record goes");
    assert_eq!(state(&id).await.json()["error"]["code"], "NotFound.Task");
    let id = start("[[fake:polls=5]]").await;
    state(&id).await;
    state(&id).await;
    let reply = delete(&id).await;
    assert_eq!(
        (reply.status, reply.header("x-fake-rule")),
        (403, "running")
    );
    for (text, status, code) in [
        ("[[fake:fail]]", "failed", json!("InternalServiceError")),
        (
            "[[fake:content-filter]]",
            "failed",
            json!("OutputVideoSensitiveContentDetected"),
        ),
        ("[[fake:expire]]", "expired", Value::Null),
    ] {
        let id = start(text).await;
        let reply = state(&id).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.json()["status"], status);
        assert_eq!(reply.json()["error"]["code"], code);
        assert!(reply.json()["content"].is_null());
    }
    let (a, b) = (start("a").await, start("b").await);
    let query = format!("{TASKS}?filter.task_ids={a}&filter.task_ids={b}");
    let list = site.get(&query).await.json();
    assert_eq!(list["total"], 2);
    assert_eq!(list["items"][1]["id"], json!(b));
    let failed = site
        .get(&format!("{TASKS}?filter.status=failed&page_size=1"))
        .await
        .json();
    assert_eq!(
        (&failed["total"], failed["items"].as_array().map(Vec::len)),
        (&json!(2), Some(1))
    );
}

#[tokio::test]
async fn what_moderation_says() {
    let site = site().await;
    for (path, mut body) in [(IMAGES, images()), (TASKS, film())] {
        let text = json!("[[fake:blocked]]");
        match path {
            IMAGES => body["prompt"] = text,
            _ => body["content"][0]["text"] = text,
        }
        let reply = site.post(path, &body).await;
        assert_eq!(reply.status, 400);
        assert_eq!(
            reply.json()["error"]["code"],
            "InputTextSensitiveContentDetected"
        );
    }
    let body = with(images(), json!({"prompt": "[[fake:content-filter]]"}));
    let reply = site.post(IMAGES, &body).await;
    assert_eq!(
        reply.json()["error"]["code"],
        "OutputImageSensitiveContentDetected"
    );
}
