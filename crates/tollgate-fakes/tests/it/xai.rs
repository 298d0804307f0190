//! xAI: pictures and speech at once, films as tasks.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};

use crate::client::send;
use crate::media::{Site, data_uri, picture, png, read_base64, read_picture};

const LINK: &str = "https://example.org/a.png";

async fn site() -> Site {
    let options = Options {
        keys: vec!["k".to_owned()],
        ..Options::default()
    };
    Site::start(
        Provider::Xai,
        options,
        "/v1",
        &[("authorization", "Bearer k")],
    )
    .await
}

fn images() -> Value {
    json!({"model": "grok-imagine-image", "prompt": "a tree"})
}

fn film() -> Value {
    json!({"model": "grok-imagine-video-1.5", "prompt": "a tree", "duration": 6})
}

#[tokio::test]
async fn heads() {
    let site = site().await;
    let json = ("content-type", "application/json");
    for (path, headers, status, rule) in [
        ("/v1/images/generations", vec![json], 401, "auth"),
        (
            "/v1/images/generations",
            vec![json, ("authorization", "Bearer no")],
            400,
            "key",
        ),
        (
            "/v1/images/generations",
            vec![("authorization", "Bearer k")],
            415,
            "content-type",
        ),
        (
            "/images/generations",
            vec![json, ("authorization", "Bearer k")],
            404,
            "path",
        ),
    ] {
        let reply = send(&site.fake, "POST", path, &headers, images().to_string()).await;
        let reply = reply.expect("an answer");
        assert_eq!((reply.status, reply.header("x-fake-rule")), (status, rule));
        assert!(reply.json()["error"].is_string());
    }
}

#[tokio::test]
async fn pictures() {
    let site = site().await;
    let mut body = images();
    body["n"] = json!(3);
    body["aspect_ratio"] = json!("16:9");
    body["resolution"] = json!("2k");
    body["prompt"] = json!("[[fake:partial=2]]");
    let answer = site.good("/images/generations", &body).await;
    assert_eq!(answer["data"][2]["respect_moderation"], false);
    assert_eq!(answer["data"][2]["url"], "");
    assert!(answer["usage"]["cost_in_usd_ticks"].is_u64());
    let file = site.fetch(&answer["data"][1]["url"]).await;
    assert_eq!(read_picture(&file.bytes(), "image/jpeg"), (2736, 1536));
    let edit = json!({"model": "grok-imagine-image", "prompt": "a tree",
        "response_format": "b64_json", "image": {"url": LINK, "type": "image_url"}});
    let answer = site.good("/images/edits", &edit).await;
    assert_eq!(
        read_base64(&answer["data"][0]["b64_json"], "image/jpeg"),
        (1024, 1024)
    );
    body["prompt"] = json!("[[fake:content-filter]]");
    let answer = site.good("/images/generations", &body).await;
    assert_eq!(answer["data"][0]["respect_moderation"], false);
    body["prompt"] = json!("[[fake:blocked]]");
    let reply = site.post("/images/generations", &body).await;
    assert_eq!(
        (reply.status, reply.header("x-fake-rule")),
        (400, "moderation")
    );
    assert!(reply.json()["code"].is_string());
}

#[tokio::test]
async fn pictures_are_refused() {
    let site = site().await;
    site.table(
        "/images/generations",
        &images(),
        &[
            ("", json!({})),
            ("unknown-field", json!({"size": "1024x1024"})),
            ("unknown-field", json!({"seed": 1})),
            ("unknown-field", json!({"image": {"url": LINK}})),
            ("missing-field", json!({"prompt": null})),
            ("empty-prompt", json!({"prompt": " "})),
            ("type", json!({"n": "2"})),
            ("range", json!({"n": 11})),
            ("value", json!({"aspect_ratio": "5:4"})),
            ("value", json!({"resolution": "1K"})),
            ("model", json!({"model": "grok-2-image"})),
            ("value", json!({"response_format": "base64"})),
        ],
    )
    .await;
    let gif = data_uri("image/gif", &picture(40, 40, image::ImageFormat::Gif));
    let mut edit = images();
    edit["image"] = json!({"url": data_uri("image/png", &png(4, 4))});
    site.table(
        "/images/edits",
        &edit,
        &[
            ("", json!({})),
            ("type", json!({"image": LINK})),
            ("image-fields", json!({"image": null})),
            ("image-fields", json!({"images": [{"url": LINK}]})),
            (
                "",
                json!({"image": null, "images": [{"url": LINK}, {"file_id": "f"}]}),
            ),
            (
                "too-many",
                json!({"image": null, "images": vec![json!({"url": LINK}); 4]}),
            ),
            ("image-source", json!({"image": {"type": "image_url"}})),
            ("image-url", json!({"image": {"url": "iVBORw0KGgo="}})),
            ("image-type", json!({"image": {"url": gif}})),
            ("value", json!({"image": {"url": LINK, "type": "url"}})),
        ],
    )
    .await;
    let reply = send(
        &site.fake,
        "POST",
        "/v1/images/edits",
        &[
            ("authorization", "Bearer k"),
            ("content-type", "multipart/form-data; boundary=a"),
        ],
        "--a--",
    );
    let reply = reply.await.expect("an answer");
    assert_eq!(
        (reply.status, reply.header("x-fake-rule")),
        (415, "content-type")
    );
}

#[tokio::test]
async fn films() {
    let site = site().await;
    let mut body = film();
    body["prompt"] = json!("[[fake:polls=3]]");
    body["resolution"] = json!("720p");
    let id = site.good("/videos/generations", &body).await["request_id"].clone();
    let path = format!("/videos/{}", id.as_str().expect("an id"));
    let first = site.get(&path).await;
    assert_eq!((first.status, first.bytes().len()), (202, 0));
    assert_eq!(first.header("content-type"), "");
    let second = site.get(&path).await;
    assert_eq!(
        (second.status, &second.json()["status"]),
        (202, &json!("pending"))
    );
    assert!(second.json()["progress"].is_u64());
    let done = site.get(&path).await;
    assert_eq!((done.status, &done.json()["status"]), (200, &json!("done")));
    assert_eq!(done.json()["video"]["duration"], 6);
    let file = site.fetch(&done.json()["video"]["url"]).await;
    assert_eq!(&file.bytes()[4..8], b"ftyp");
    for (text, pointer, value) in [
        (
            "[[fake:content-filter]]",
            "/video/respect_moderation",
            json!(false),
        ),
        ("[[fake:fail]]", "/status", json!("failed")),
        ("[[fake:expire]]", "/status", json!("expired")),
    ] {
        body["prompt"] = json!(text);
        let id = site.good("/videos/generations", &body).await["request_id"].clone();
        let state = site
            .get(&format!("/videos/{}", id.as_str().expect("an id")))
            .await;
        assert_eq!(state.status, 200);
        assert_eq!(state.json().pointer(pointer), Some(&value));
    }
    let reply = site.get("/videos/none").await;
    assert_eq!((reply.status, reply.header("x-fake-rule")), (404, "task"));
}

#[tokio::test]
async fn films_are_refused() {
    let site = site().await;
    let image = json!({"url": LINK});
    let several = |n: usize| vec![image.clone(); n];
    site.table(
        "/videos/generations",
        &film(),
        &[
            ("", json!({})),
            ("unknown-field", json!({"size": "1280x720"})),
            ("unknown-field", json!({"seconds": "6"})),
            ("missing-field", json!({"model": null})),
            ("model", json!({"model": "grok-imagine-image"})),
            ("range", json!({"duration": 16})),
            ("type", json!({"duration": "6"})),
            ("value", json!({"aspect_ratio": "21:9"})),
            ("", json!({"resolution": "1080p"})),
            (
                "resolution",
                json!({"resolution": "1080p", "model": "grok-imagine-video"}),
            ),
            (
                "needs-image",
                json!({"model": "grok-imagine-video-1.5-preview"}),
            ),
            ("", json!({"image": image})),
            ("type", json!({"image": LINK})),
            (
                "image-fields",
                json!({"image": image, "reference_images": several(1)}),
            ),
            ("", json!({"reference_images": several(7)})),
            ("too-many", json!({"reference_images": several(8)})),
            (
                "resolution",
                json!({"reference_images": several(2), "resolution": "1080p"}),
            ),
            (
                "duration",
                json!({"reference_images": several(2), "duration": 11}),
            ),
            (
                "audio-alone",
                json!({"reference_audios": [{"voice_id": "eve"}]}),
            ),
            ("empty-prompt", json!({"prompt": ""})),
        ],
    )
    .await;
}

#[tokio::test]
async fn speech() {
    let site = site().await;
    let body = json!({"text": "hello to all of you"});
    let reply = site.post("/tts", &body).await;
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, "audio/mpeg")
    );
    assert_eq!(reply.bytes()[..2], [0xff, 0xf3]);
    let wav = json!({"text": "hello", "output_format": {"codec": "wav"}, "speed": 1.5});
    assert!(site.post("/tts", &wav).await.bytes().starts_with(b"RIFF"));
    site.table(
        "/tts",
        &body,
        &[
            ("", json!({"voice_id": "eve", "language": "auto"})),
            ("unknown-field", json!({"voice": "eve"})),
            ("range", json!({"speed": 2.0})),
            ("empty-text", json!({"text": ""})),
            ("value", json!({"output_format": {"codec": "opus"}})),
            ("voice", json!({"voice_id": "no such voice"})),
            ("not-made", json!({"with_timestamps": true})),
        ],
    )
    .await;
    let reply = site.post("/tts", &json!({"text": "x", "speed": 9})).await;
    assert!(reply.json()["error"].is_string() && reply.json()["code"].is_null());
}
