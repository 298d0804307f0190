//! Google's pictures and films, on both of its platforms.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};

use crate::client::send;
use crate::media::{Site, base64, picture, png, read_base64};

const KEY: (&str, &str) = ("x-goog-api-key", "k");
const TOKEN: (&str, &str) = ("authorization", "Bearer k");
const PLATFORM: &str = "/v1/projects/p/locations/us-central1/publishers/google";
const FLASH: &str = "/models/gemini-3.1-flash-image:generateContent";
const OLD: &str = "/models/gemini-2.5-flash-image:generateContent";
const PRO: &str = "/models/gemini-3-pro-image:generateContent";

async fn site(base: &'static str, header: (&'static str, &'static str)) -> Site {
    let options = Options {
        keys: vec!["k".to_owned()],
        ..Options::default()
    };
    Site::start(Provider::Gemini, options, base, &[header]).await
}

async fn developer() -> Site {
    site("/v1beta", KEY).await
}

async fn platform() -> Site {
    site(PLATFORM, TOKEN).await
}

fn body(text: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": text}]}],
        "generationConfig": {"responseModalities": ["IMAGE"],
            "imageConfig": {"aspectRatio": "16:9"}}})
}

fn with_picture(media_type: &str, data: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [
        {"inlineData": {"mimeType": media_type, "data": data}}, {"text": "a tree"}]}]})
}

fn image(config: Value) -> Value {
    json!({"generationConfig": {"imageConfig": config}})
}

/// The pictures that are no drafts.
fn finals(answer: &Value) -> Vec<Value> {
    let parts = answer["candidates"][0]["content"]["parts"].as_array();
    let parts = parts.cloned().unwrap_or_default();
    let is_final = |part: &Value| part["thought"] != true && part["inlineData"].is_object();
    parts.into_iter().filter(is_final).collect()
}

#[tokio::test]
async fn heads() {
    let developer = developer().await;
    let json = ("content-type", "application/json");
    let own = "/v1beta/models/gemini-3.1-flash-image:generateContent";
    let other = format!("{PLATFORM}{FLASH}");
    for (path, headers, status, rule) in [
        (own, vec![json], 403, "auth"),
        (own, vec![json, TOKEN], 401, "auth"),
        (own, vec![json, ("x-goog-api-key", "no")], 400, "key"),
        (own, vec![KEY], 400, "content-type"),
        (&other, vec![json, KEY], 401, "auth"),
        (&other, vec![json, TOKEN], 200, ""),
        (
            "/v1/projects/p/models/m:predict",
            vec![json, TOKEN],
            404,
            "path",
        ),
        (
            "/v1beta/models/gemini-3-pro-image-preview:generateContent",
            vec![json, KEY],
            404,
            "model",
        ),
        (
            "/v1beta/models/gemini-3.1-flash-image:streamGenerateContent",
            vec![json, KEY],
            501,
            "not-made",
        ),
    ] {
        let reply = send(
            &developer.fake,
            "POST",
            path,
            &headers,
            body("a").to_string(),
        )
        .await;
        let reply = reply.expect("an answer");
        assert_eq!(
            (reply.status, reply.header("x-fake-rule")),
            (status, rule),
            "{path}"
        );
    }
}

#[tokio::test]
async fn pictures() {
    for site in [developer().await, platform().await] {
        let answer = site.good(FLASH, &body("a tree")).await;
        let parts = finals(&answer);
        assert_eq!(parts.len(), 1);
        let data = &parts[0]["inlineData"];
        assert_eq!(data["mimeType"], "image/png");
        assert_eq!(read_base64(&data["data"], "image/png"), (1360, 768));
        let all = answer["candidates"][0]["content"]["parts"].as_array();
        assert_eq!(all.map(Vec::len), Some(2), "a draft comes first");
        assert_eq!(answer["candidates"][0]["finishReason"], "STOP");
        assert_eq!(finals(&site.good(OLD, &body("a tree")).await).len(), 1);
    }
    let site = developer().await;
    let like = with_picture("image/png", &base64(&png(64, 128)));
    let answer = site.good(PRO, &like).await;
    let data = &finals(&answer)[0]["inlineData"]["data"];
    assert_eq!(
        read_base64(data, "image/png"),
        (720, 1456),
        "as the picture"
    );
    let answer = site.good(FLASH, &body("[[fake:blocked]]")).await;
    assert_eq!(
        answer["promptFeedback"]["blockReason"],
        "PROHIBITED_CONTENT"
    );
    assert!(answer["candidates"].is_null());
    for (text, reason) in [
        ("[[fake:content-filter]]", "IMAGE_SAFETY"),
        ("[[fake:partial=0]]", "NO_IMAGE"),
    ] {
        let answer = site.good(FLASH, &body(text)).await;
        assert_eq!(answer["candidates"][0]["finishReason"], reason);
        assert!(finals(&answer).is_empty());
    }
    let failed = site.post(FLASH, &body("[[fake:fail]]")).await;
    assert_eq!(
        (failed.status, &failed.json()["error"]["status"]),
        (500, &json!("INTERNAL"))
    );
    let search = json!({"tools": [{"googleSearch": {"searchTypes": {"imageSearch": {}}}}],
        "contents": body("x")["contents"]});
    let answer = site.good(FLASH, &search).await;
    assert!(answer["candidates"][0]["groundingMetadata"].is_object());
}

#[tokio::test]
async fn pictures_are_refused() {
    let site = developer().await;
    let config = |config: Value| json!({"generationConfig": config});
    let tool = |tool: Value| json!({"tools": [tool]});
    let gif = base64(&picture(4, 4, image::ImageFormat::Gif));
    let fine = base64(&png(40, 40));
    let link = json!({"contents": [{"parts": [{"text": "x"},
        {"fileData": {"fileUri": "https://example.org/a.png"}}]}]});
    let part = json!({"inlineData": {"mimeType": "image/png", "data": fine}});
    let many = json!({"contents": [{"parts": vec![part; 15]}]});
    let uri = format!("data:image/png;base64,{fine}");
    site.table(
        FLASH,
        &body("a tree"),
        &[
            ("", json!({})),
            ("unknown-field", json!({"n": 2})),
            ("unknown-field", config(json!({"imageSize": "1K"}))),
            ("unknown-field", image(json!({"size": "1K"}))),
            (
                "",
                image(json!({"image_size": "2K", "aspect_ratio": "1:8"})),
            ),
            ("value", image(json!({"imageSize": "1k"}))),
            ("", image(json!({"imageSize": "512"}))),
            ("value", image(json!({"imageSize": "0.5K"}))),
            ("value", image(json!({"aspectRatio": "2:1"}))),
            ("value", image(json!({"personGeneration": "allow_all"}))),
            (
                "platform-only",
                image(json!({"outputMimeType": "image/jpeg"})),
            ),
            ("candidates", config(json!({"candidateCount": 2}))),
            (
                "modalities",
                config(json!({"responseModalities": ["TEXT"]})),
            ),
            ("", config(json!({"responseModalities": ["TEXT", "IMAGE"]}))),
            ("value", config(json!({"responseModalities": ["image"]}))),
            (
                "json-mode",
                config(json!({"responseMimeType": "application/json"})),
            ),
            (
                "thinking-level",
                config(json!({"thinkingConfig": {"thinkingLevel": "LOW"}})),
            ),
            (
                "",
                config(json!({"thinkingConfig": {"thinkingLevel": "MINIMAL"}})),
            ),
            ("tool", tool(json!({"codeExecution": {}}))),
            ("", tool(json!({"googleSearch": {}}))),
            (
                "unknown-field",
                tool(json!({"googleSearch": {"searchTypes": {"images": {}}}})),
            ),
            ("", with_picture("image/png", &fine)),
            ("image-type", with_picture("image/jpeg", &fine)),
            ("unreadable", with_picture("image/png", &gif)),
            ("media-type", with_picture("image/gif", &gif)),
            ("base64", with_picture("image/png", &uri)),
            ("file-uri", link),
            ("too-many", many),
        ],
    )
    .await;
    site.table(
        OLD,
        &body("a tree"),
        &[
            ("", json!({})),
            ("image-size", image(json!({"imageSize": "1K"}))),
            ("aspect-ratio", image(json!({"aspectRatio": "1:4"}))),
            ("search", tool(json!({"googleSearch": {}}))),
            (
                "thinking-model",
                config(json!({"thinkingConfig": {"thinkingBudget": 0}})),
            ),
        ],
    )
    .await;
    site.table(
        PRO,
        &body("a tree"),
        &[
            ("image-size", image(json!({"imageSize": "512"}))),
            (
                "search",
                tool(json!({"googleSearch": {"searchTypes": {"imageSearch": {}}}})),
            ),
            (
                "",
                tool(json!({"googleSearch": {"searchTypes": {"webSearch": {}}}})),
            ),
        ],
    )
    .await;
    let platform = platform().await;
    let jpeg = image(json!({"outputMimeType": "image/jpeg"}));
    platform.table(FLASH, &body("a tree"), &[("", jpeg)]).await;
}

#[tokio::test]
async fn imagen() {
    let path = "/models/imagen-4.0-generate-001:predict";
    let site = platform().await;
    let base = json!({"instances": [{"prompt": "a tree"}],
        "parameters": {"sampleCount": 1, "aspectRatio": "4:3"}});
    let answer = site.good(path, &base).await;
    let picture = &answer["predictions"][0];
    assert_eq!(picture["mimeType"], "image/png");
    assert_eq!(
        read_base64(&picture["bytesBase64Encoded"], "image/png"),
        (1184, 880)
    );
    let mut body = base.clone();
    body["instances"][0]["prompt"] = json!("[[fake:partial=1]]");
    body["parameters"] = json!({"sampleCount": 3, "includeRaiReason": true});
    let answer = site.good(path, &body).await;
    let predictions = answer["predictions"].as_array().expect("a list");
    assert_eq!(predictions.len(), 3);
    assert!(predictions[2]["raiFilteredReason"].is_string());
    assert!(predictions[2]["bytesBase64Encoded"].is_null());
    body["instances"][0]["prompt"] = json!("[[fake:content-filter]]");
    body["parameters"] = json!({});
    assert_eq!(site.good(path, &body).await, json!({}), "no list at all");
    body["instances"][0]["prompt"] = json!("[[fake:blocked]]");
    assert_eq!(site.post(path, &body).await.status, 400);
    let set = |parameters: Value| json!({"parameters": parameters});
    site.table(
        path,
        &base,
        &[
            (
                "",
                set(json!({"negativePrompt": "x", "outputOptions": {"mimeType": "image/jpeg"}})),
            ),
            ("range", set(json!({"sampleCount": 5}))),
            ("value", set(json!({"aspectRatio": "21:9"}))),
            ("value", set(json!({"sampleImageSize": "4K"}))),
            ("unknown-field", set(json!({"aspect_ratio": "1:1"}))),
            ("seed", set(json!({"seed": 7}))),
            ("", set(json!({"seed": 7, "addWatermark": false}))),
            ("missing-field", json!({"instances": null})),
            (
                "too-many",
                json!({"instances": [{"prompt": "a"}, {"prompt": "b"}]}),
            ),
            ("empty-prompt", json!({"instances": [{"prompt": ""}]})),
        ],
    )
    .await;
    let other = site
        .post(
            "/models/imagen-4.0-fast-generate-001:predict",
            &json!({"instances": [{"prompt": "x"}], "parameters": {"sampleImageSize": "2K"}}),
        )
        .await;
    assert_eq!(other.header("x-fake-rule"), "image-size");
    let developer = developer().await;
    developer
        .table(
            path,
            &base,
            &[
                ("", json!({})),
                ("platform-only", set(json!({"negativePrompt": "x"}))),
            ],
        )
        .await;
}

const VEO: &str = "/models/veo-3.1-fast-generate-preview:predictLongRunning";
const VEO_PLATFORM: &str = "/models/veo-3.1-generate-001:predictLongRunning";

fn film(text: &str) -> Value {
    json!({"instances": [{"prompt": text}],
        "parameters": {"durationSeconds": 8, "aspectRatio": "9:16", "resolution": "720p"}})
}

#[tokio::test]
async fn films_of_the_developer_api() {
    let site = developer().await;
    let name = site.good(VEO, &film("[[fake:polls=2]]")).await["name"].clone();
    let path = format!("/{}", name.as_str().expect("a name"));
    assert!(path.starts_with("/models/veo-3.1-fast-generate-preview/operations/"));
    assert_eq!(
        site.get(&path).await.json(),
        json!({"name": name}),
        "nothing but its name"
    );
    let state = site.get(&path).await.json();
    assert_eq!(state["done"], true);
    let samples = &state["response"]["generateVideoResponse"]["generatedSamples"];
    let uri = samples[0]["video"]["uri"].as_str().expect("a link");
    let origin = format!("http://{}", site.fake.address());
    let download = uri.strip_prefix(&origin).expect("the fake's own origin");
    assert!(download.ends_with(":download?alt=media"));
    let bare = send(&site.fake, "GET", download, &[], "")
        .await
        .expect("an answer");
    assert_eq!(bare.status, 403, "the key is needed");
    let moved = send(&site.fake, "GET", download, &[KEY], "")
        .await
        .expect("an answer");
    assert_eq!((moved.status, moved.bytes().len()), (302, 0));
    let file = site.fetch(&json!(moved.header("location"))).await;
    assert_eq!(
        (file.header("content-type"), &file.bytes()[4..8]),
        ("video/mp4", &b"ftyp"[..])
    );
    assert_eq!(
        site.get("/models/veo-3.1-fast-generate-preview/operations/none")
            .await
            .status,
        404
    );
    for (text, pointer, value) in [
        ("[[fake:fail]]", "/error/code", json!(13)),
        (
            "[[fake:content-filter]]",
            "/response/generateVideoResponse/raiMediaFilteredCount",
            json!(1),
        ),
    ] {
        let name = site.good(VEO, &film(text)).await["name"].clone();
        let state = site
            .get(&format!("/{}", name.as_str().expect("a name")))
            .await
            .json();
        assert_eq!(state.pointer(pointer), Some(&value), "{state}");
        assert_eq!(state["done"], true);
    }
    assert_eq!(site.post(VEO, &film("[[fake:blocked]]")).await.status, 400);
}

#[tokio::test]
async fn films_of_the_platform() {
    let site = platform().await;
    let poll = "/models/veo-3.1-generate-001:fetchPredictOperation";
    let mut body = film("[[fake:polls=2]] [[fake:partial=1]]");
    body["parameters"]["sampleCount"] = json!(2);
    body["parameters"]["generateAudio"] = json!(true);
    let name = site.good(VEO_PLATFORM, &body).await["name"].clone();
    assert!(
        name.as_str()
            .is_some_and(|name| name.starts_with("projects/p/locations/us-central1/"))
    );
    let ask = json!({"operationName": name});
    assert!(site.good(poll, &ask).await["done"].is_null());
    let state = site.good(poll, &ask).await;
    let response = &state["response"];
    assert_eq!(response["videos"].as_array().map(Vec::len), Some(1));
    assert_eq!(response["raiMediaFilteredCount"], 1);
    assert_eq!(response["videos"][0]["mimeType"], "video/mp4");
    assert!(
        response["videos"][0]["bytesBase64Encoded"]
            .as_str()
            .is_some_and(|s| s.len() > 1000)
    );
    let get = site
        .get(&format!("/{}", name.as_str().expect("a name")))
        .await;
    assert_eq!(get.status, 404, "operations are fetched by their model");
    let wrong = "/models/veo-3.1-fast-generate-001:fetchPredictOperation";
    assert_eq!(
        site.post(wrong, &ask).await.header("x-fake-rule"),
        "operation-name"
    );
    body["parameters"]["storageUri"] = json!("gs://bucket/films/");
    body["instances"][0]["prompt"] = json!("a tree");
    let name = site.good(VEO_PLATFORM, &body).await["name"].clone();
    let state = site.good(poll, &json!({"operationName": name})).await;
    let uri = state["response"]["videos"][1]["gcsUri"]
        .as_str()
        .expect("a place");
    assert!(uri.starts_with("gs://bucket/films/") && uri.ends_with("/sample_1.mp4"));
}

#[tokio::test]
async fn films_are_refused() {
    let site = developer().await;
    let data = base64(&png(64, 64));
    let frame = json!({"bytesBase64Encoded": data, "mimeType": "image/png"});
    let with = |name: &str, value: Value| {
        let mut instance = json!({"prompt": "a tree"});
        instance[name] = value;
        json!({"instances": [instance]})
    };
    let set = |parameters: Value| json!({"parameters": parameters});
    let both = |mut patch: Value, parameters: Value| {
        patch["parameters"] = parameters;
        patch
    };
    let reference = json!([{"image": frame, "referenceType": "asset"}]);
    let uri = format!("data:image/png;base64,{data}");
    let gs = json!({"gcsUri": "gs://a/b.png", "mimeType": "image/png"});
    site.table(
        VEO,
        &film("a tree"),
        &[
            ("", json!({})),
            ("missing-field", json!({"instances": [{}]})),
            ("empty-prompt", json!({"instances": [{"prompt": " "}]})),
            (
                "unknown-field",
                with("imageUrl", json!("https://example.org/a.png")),
            ),
            ("type", with("image", json!("https://example.org/a.png"))),
            ("", with("image", frame.clone())),
            (
                "data-uri",
                with(
                    "image",
                    json!({"bytesBase64Encoded": uri, "mimeType": "image/png"}),
                ),
            ),
            (
                "image-type",
                with(
                    "image",
                    json!({"bytesBase64Encoded": data, "mimeType": "image/jpeg"}),
                ),
            ),
            (
                "image-type",
                with(
                    "image",
                    json!({"bytesBase64Encoded": data, "mimeType": "image/webp"}),
                ),
            ),
            ("image-source", with("image", gs.clone())),
            ("last-frame", with("lastFrame", frame.clone())),
            ("references", with("referenceImages", reference.clone())),
            (
                "",
                both(
                    with("referenceImages", reference.clone()),
                    json!({"aspectRatio": "16:9"}),
                ),
            ),
            ("type", set(json!({"durationSeconds": "8"}))),
            ("duration", set(json!({"durationSeconds": 5}))),
            ("range", set(json!({"durationSeconds": 10}))),
            (
                "duration",
                set(json!({"durationSeconds": 6, "resolution": "1080p"})),
            ),
            ("", set(json!({"durationSeconds": 6}))),
            ("value", set(json!({"aspectRatio": "1:1"}))),
            ("value", set(json!({"resolution": "4K"}))),
            ("unknown-field", set(json!({"duration": 8}))),
            ("range", set(json!({"sampleCount": 2}))),
            ("platform-only", set(json!({"generateAudio": true}))),
            ("platform-only", set(json!({"storageUri": "gs://a"}))),
            (
                "person-generation",
                set(json!({"personGeneration": "allow_adult"})),
            ),
            (
                "",
                both(
                    with("image", frame.clone()),
                    json!({"personGeneration": "allow_adult"}),
                ),
            ),
        ],
    )
    .await;
    let unknown = site.post(&VEO.replace("preview", "001"), &film("a")).await;
    assert_eq!(
        unknown.header("x-fake-rule"),
        "model",
        "of the other platform"
    );
    let lite = "/models/veo-3.1-lite-generate-preview:predictLongRunning";
    let reply = site
        .post(
            lite,
            &json!({"instances": [{"prompt": "x"}],
        "parameters": {"resolution": "4k"}}),
        )
        .await;
    assert_eq!(reply.header("x-fake-rule"), "resolution");
    let platform = platform().await;
    platform
        .table(
            VEO_PLATFORM,
            &film("a tree"),
            &[
                ("", with("image", gs)),
                (
                    "",
                    set(json!({"sampleCount": 4, "personGeneration": "allow_adult", "seed": 3})),
                ),
            ],
        )
        .await;
}
