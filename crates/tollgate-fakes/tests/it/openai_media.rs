//! OpenAI: pictures and speech at once, films as tasks.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};

use crate::client::send;
use crate::media::{Form, Site, data_uri, mask, picture, png, read_base64};

const LINK: &str = "https://example.org/a.png";
const GENERATE: &str = "/images/generations";
const EDIT: &str = "/images/edits";

async fn site() -> Site {
    let options = Options {
        keys: vec!["k".to_owned()],
        ..Options::default()
    };
    Site::start(
        Provider::OpenAi,
        options,
        "/v1",
        &[("authorization", "Bearer k")],
    )
    .await
}

fn images() -> Value {
    json!({"model": "gpt-image-2", "prompt": "a tree"})
}

#[tokio::test]
async fn pictures() {
    let site = site().await;
    let body = json!({"model": "gpt-image-2", "prompt": "[[fake:partial=2]]", "n": 3,
        "size": "1536x512", "output_format": "webp", "output_compression": 80});
    let answer = site.good(GENERATE, &body).await;
    assert_eq!(answer["data"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        read_base64(&answer["data"][1]["b64_json"], "image/webp"),
        (1536, 512)
    );
    assert_eq!(
        (&answer["size"], &answer["output_format"]),
        (&json!("1536x512"), &json!("webp"))
    );
    assert!(answer["data"][0]["url"].is_null());
    let usage = &answer["usage"];
    let number = |name: &str| usage[name].as_u64().expect("a number");
    assert_eq!(
        number("total_tokens"),
        number("input_tokens") + number("output_tokens")
    );
    for text in ["[[fake:blocked]]", "[[fake:content-filter]]"] {
        let reply = site
            .post(GENERATE, &json!({"model": "gpt-image-2", "prompt": text}))
            .await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (400, &json!("moderation_blocked"))
        );
    }
    let reply = site
        .post(
            GENERATE,
            &json!({"model": "gpt-image-2", "prompt": "[[fake:fail]]"}),
        )
        .await;
    assert_eq!(reply.status, 500);
}

#[tokio::test]
async fn pictures_are_refused() {
    let site = site().await;
    let old = "gpt-image-1.5";
    let new = "gpt-image-2.5-flare";
    site.table(
        GENERATE,
        &images(),
        &[
            ("", json!({})),
            ("unknown-field", json!({"response_format": "b64_json"})),
            ("unknown-field", json!({"style": "vivid"})),
            ("unknown-field", json!({"negative_prompt": "x"})),
            ("missing-field", json!({"prompt": null})),
            ("empty-prompt", json!({"prompt": ""})),
            ("length", json!({"prompt": "x".repeat(32_001)})),
            ("type", json!({"n": "2"})),
            ("range", json!({"n": 11})),
            ("model", json!({"model": "gpt-image-1"})),
            ("model", json!({"model": "dall-e-3"})),
            ("model", json!({"model": "gpt-image-2.5"})),
            ("size", json!({"size": "1881x836"})),
            ("size", json!({"size": "1024X1024"})),
            ("size", json!({"size": "2560x3840"})),
            ("size", json!({"size": "4096x2048"})),
            ("size", json!({"size": "2048x512"})),
            ("size", json!({"size": "512x512"})),
            ("", json!({"size": "2336x3520"})),
            ("", json!({"size": "auto"})),
            ("size", json!({"size": "2048x2048", "model": old})),
            ("", json!({"size": "1536x1024", "model": old})),
            ("quality", json!({"quality": "max"})),
            ("", json!({"quality": "max", "model": new})),
            ("value", json!({"quality": "hd"})),
            (
                "transparent",
                json!({"background": "transparent", "output_format": "jpeg"}),
            ),
            (
                "",
                json!({"background": "transparent", "output_format": "webp"}),
            ),
            ("compression", json!({"output_compression": 50})),
            (
                "range",
                json!({"output_compression": 101, "output_format": "jpeg"}),
            ),
            ("unsupported-parameter", json!({"complexity": "low"})),
            ("", json!({"complexity": "low", "model": new})),
            ("partial-images", json!({"partial_images": 2})),
            ("not-made", json!({"stream": true})),
            ("value", json!({"moderation": "none"})),
        ],
    )
    .await;
    let reply = site
        .post(
            GENERATE,
            &json!({"model": "gpt-image-2", "prompt": "x",
        "response_format": "url"}),
        )
        .await;
    assert_eq!(reply.json()["error"]["code"], "unknown_parameter");
    assert_eq!(reply.json()["error"]["param"], "response_format");
    let form = Form::default()
        .text("prompt", "x")
        .text("model", "gpt-image-2");
    assert_eq!(
        site.post_form(GENERATE, &form).await.header("x-fake-rule"),
        "content-type"
    );
    assert_eq!(site.get(GENERATE).await.status, 405);
}

fn form() -> Form {
    Form::default()
        .text("model", "gpt-image-2")
        .text("prompt", "a tree")
}

#[tokio::test]
async fn edits_as_forms() {
    let site = site().await;
    let (small, large) = (png(64, 64), png(128, 64));
    let jpeg = picture(64, 64, image::ImageFormat::Jpeg);
    let good = form()
        .text("n", "2")
        .text("size", "1024x1024")
        .file("image[]", "image/png", &small)
        .file("image[]", "image/jpeg", &jpeg)
        .file("mask", "image/png", &mask(64, 64));
    let answer = site.post_form(EDIT, &good).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["data"].as_array().map(Vec::len), Some(2));
    let seen = site.fake.requests().pop().expect("a request");
    assert_eq!(seen.parts.len(), 7);
    assert_eq!(seen.parts[4].filename.as_deref(), Some("a"));
    assert_eq!(seen.parts[4].bytes, small);
    let many = (0..17).fold(form(), |form, _| form.file("image[]", "image/png", &small));
    let image = || form().file("image", "image/png", &small);
    for (rule, form) in [
        ("", image()),
        ("missing-field", form()),
        (
            "missing-field",
            Form::default()
                .text("prompt", "x")
                .file("image", "image/png", &small),
        ),
        ("unknown-field", image().text("response_format", "url")),
        (
            "unknown-field",
            image().file("picture", "image/png", &small),
        ),
        ("type", image().text("n", "two")),
        ("range", image().text("n", "0")),
        ("duplicate", image().file("image", "image/png", &small)),
        (
            "file-type",
            form().file("image", "application/octet-stream", &small),
        ),
        ("image-type", form().file("image", "image/jpeg", &small)),
        (
            "image-data",
            form().file("image", "image/png", b"not a picture"),
        ),
        ("too-many", many),
        ("mask", image().file("mask", "image/png", &small)),
        ("mask", image().file("mask", "image/png", &mask(128, 64))),
        (
            "mask",
            form()
                .file("image", "image/png", &large)
                .file("mask", "image/png", &mask(64, 64)),
        ),
        (
            "unknown-field",
            image().file("markup", "image/png", &mask(64, 64)),
        ),
        (
            "unsupported-parameter",
            image().text("input_fidelity", "high"),
        ),
        ("form", Form::default()),
    ] {
        let reply = site.post_form(EDIT, &form).await;
        assert_eq!(reply.header("x-fake-rule"), rule, "{}", reply.text());
        assert_eq!(reply.status == 200, rule.is_empty());
    }
}

#[tokio::test]
async fn edits_as_json() {
    let site = site().await;
    let uri = data_uri("image/png", &png(64, 64));
    let gif = data_uri("image/gif", &picture(4, 4, image::ImageFormat::Gif));
    let mut base = images();
    base["images"] = json!([{"image_url": uri}, {"image_url": LINK}, {"file_id": "f"}]);
    site.table(
        EDIT,
        &base,
        &[
            ("", json!({})),
            (
                "",
                json!({"mask": {"image_url": data_uri("image/png", &mask(64, 64))}}),
            ),
            ("mask", json!({"mask": {"image_url": uri}})),
            ("missing-field", json!({"images": null})),
            ("empty", json!({"images": []})),
            ("type", json!({"images": [LINK]})),
            ("unknown-field", json!({"image": LINK})),
            ("unknown-field", json!({"images": [{"url": LINK}]})),
            ("reference", json!({"images": [{}]})),
            (
                "reference",
                json!({"images": [{"image_url": LINK, "file_id": "f"}]}),
            ),
            (
                "image-url",
                json!({"images": [{"image_url": "iVBORw0KGgo="}]}),
            ),
            ("image-type", json!({"images": [{"image_url": gif}]})),
            (
                "too-many",
                json!({"images": vec![json!({"image_url": LINK}); 17]}),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn films() {
    let site = site().await;
    let form = Form::default()
        .text("prompt", "[[fake:polls=3]]")
        .text("model", "sora-2")
        .text("seconds", "8")
        .text("size", "1280x720")
        .file("input_reference", "image/png", &png(1280, 720));
    let begun = site.post_form("/videos", &form).await.json();
    assert_eq!(
        (&begun["status"], &begun["seconds"]),
        (&json!("queued"), &json!("8"))
    );
    let path = format!("/videos/{}", begun["id"].as_str().expect("an id"));
    assert!(path.starts_with("/videos/video_"));
    let early = site.get(&format!("{path}/content")).await;
    assert_eq!(
        (early.status, early.header("x-fake-rule")),
        (404, "not-ready")
    );
    for (status, least) in [("queued", 0), ("in_progress", 1), ("completed", 100)] {
        let state = site.get(&path).await.json();
        assert_eq!(state["status"], status);
        assert!(
            state["progress"]
                .as_u64()
                .is_some_and(|progress| progress >= least)
        );
        assert_eq!(state["expires_at"].is_u64(), status == "completed");
    }
    let film = site.get(&format!("{path}/content")).await;
    assert_eq!(
        (film.status, film.header("content-type")),
        (200, "video/mp4")
    );
    assert_eq!(&film.bytes()[4..8], b"ftyp");
    let full = format!("/v1{path}/content");
    let bare = send(&site.fake, "GET", &full, &[], "")
        .await
        .expect("an answer");
    assert_eq!(bare.status, 401, "the key is needed");
    let small = site.get(&format!("{path}/content?variant=thumbnail")).await;
    assert_eq!(small.header("content-type"), "image/webp");
    assert_eq!(
        site.get("/videos").await.json()["data"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert_eq!(site.ask("DELETE", &path).await.json()["deleted"], true);
    assert_eq!(site.get(&path).await.status, 404);
    for (text, code) in [
        ("[[fake:content-filter]]", "moderation_blocked"),
        ("[[fake:fail]]", "video_generation_failed"),
    ] {
        let begun = site.good("/videos", &json!({"prompt": text})).await;
        let path = format!("/videos/{}", begun["id"].as_str().expect("an id"));
        let state = site.get(&path).await;
        assert_eq!(
            (state.status, &state.json()["status"]),
            (200, &json!("failed"))
        );
        assert_eq!(state.json()["error"]["code"], code);
    }
    let blocked = site
        .post("/videos", &json!({"prompt": "[[fake:blocked]]"}))
        .await;
    assert_eq!(blocked.json()["error"]["code"], "moderation_blocked");
}

#[tokio::test]
async fn films_are_refused() {
    let site = site().await;
    let uri = data_uri("image/png", &png(720, 1280));
    let wrong = data_uri("image/png", &png(1280, 720));
    site.table(
        "/videos",
        &json!({"prompt": "a tree", "model": "sora-2"}),
        &[
            ("", json!({})),
            ("type", json!({"seconds": 8})),
            ("value", json!({"seconds": "10"})),
            ("value", json!({"size": "1920x1080"})),
            ("size", json!({"size": "1024x1792"})),
            ("", json!({"size": "1024x1792", "model": "sora-2-pro"})),
            ("model", json!({"model": "sora-3"})),
            ("unknown-field", json!({"duration": 8})),
            ("empty-prompt", json!({"prompt": ""})),
            ("type", json!({"input_reference": LINK})),
            ("", json!({"input_reference": {"image_url": LINK}})),
            ("", json!({"input_reference": {"image_url": uri}})),
            (
                "reference-size",
                json!({"input_reference": {"image_url": wrong}}),
            ),
            ("reference", json!({"input_reference": {}})),
        ],
    )
    .await;
    let base = || Form::default().text("prompt", "a tree");
    for (rule, form) in [
        (
            "reference-size",
            base().file("input_reference", "image/png", &png(8, 8)),
        ),
        (
            "image-type",
            base().file("input_reference", "image/webp", &png(720, 1280)),
        ),
        (
            "image-type",
            base().file(
                "input_reference",
                "application/octet-stream",
                &png(720, 1280),
            ),
        ),
        (
            "unknown-field",
            base().file("image", "image/png", &png(720, 1280)),
        ),
        ("value", base().text("seconds", "5")),
        ("type", base().text("input_reference", LINK)),
    ] {
        let reply = site.post_form("/videos", &form).await;
        assert_eq!(reply.header("x-fake-rule"), rule, "{}", reply.text());
    }
}

#[tokio::test]
async fn speech() {
    let site = site().await;
    let body =
        json!({"model": "gpt-4o-mini-tts", "input": "hello to all of you", "voice": "alloy"});
    let reply = site.post("/audio/speech", &body).await;
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, "audio/mpeg")
    );
    assert!(reply.bytes().len() > 1000);
    site.table(
        "/audio/speech",
        &body,
        &[
            (
                "",
                json!({"voice": {"id": "voice_1"}, "instructions": "gently", "speed": 4}),
            ),
            ("", json!({"response_format": "wav"})),
            ("missing-field", json!({"voice": null})),
            ("unknown-field", json!({"language": "en"})),
            ("voice", json!({"voice": "genshin_vindi2"})),
            ("length", json!({"input": "x".repeat(4097)})),
            ("empty-input", json!({"input": ""})),
            ("range", json!({"speed": 0.2})),
            ("value", json!({"response_format": "ogg"})),
            ("not-made", json!({"response_format": "opus"})),
            ("model", json!({"model": "native-v3"})),
            (
                "unsupported-parameter",
                json!({"model": "tts-1", "instructions": "gently"}),
            ),
            ("voice", json!({"model": "tts-1", "voice": "marin"})),
        ],
    )
    .await;
}
