//! What the provider `gemini` sends for pictures and films, and what it makes of answers: on the Developer API and on the
//! Agent Platform.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use ring::signature::{
    KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, RsaPublicKeyComponents,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tollgate_core::Secret;
use tollgate_media::image::{ImageFormat, ImageJob};
use tollgate_media::video::VideoJob;
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::error::UpstreamErrorKind::{self, *};
use tollgate_upstream::{Channel, PROVIDERS, Polled};

use crate::booth::{Booth, Thing, film as film_of, members, picture_of, raw};
use crate::vendor::{KEY, Reply, Seen, Vendor, answer, channel};

const JSON: &str = "application/json";
const FLASH: &str = "gemini-3.1-flash-image-preview";
const OPERATION: &str = "models/veo-3.1-generate-preview/operations/abc";
const PLATFORM_OPERATION: &str =
    "projects/p/locations/l/publishers/google/models/veo-3.1-generate-001/operations/1";

fn booth_on(channel: Channel, model: &str) -> Booth {
    Booth::of(channel, ChannelModel::new(model, model))
}

/// A channel on the Developer API.
async fn developer(model: &str, status: u16, text: impl Into<Bytes>) -> (Vendor, Booth) {
    let text = text.into();
    let vendor = Vendor::start(move || answer(status, JSON, text.clone())).await;
    let booth = booth_on(channel("gemini", vendor.url("")), model);
    (vendor, booth)
}

fn vertex(vendor: &Vendor) -> Channel {
    let options = json!({ "platform": "vertex", "project": "p", "location": "l" });
    Channel {
        options: members(options),
        ..channel("gemini", vendor.url(""))
    }
}

/// A channel on the Agent Platform, with a token as its key.
async fn platform(model: &str, status: u16, text: impl Into<Bytes>) -> (Vendor, Booth) {
    let text = text.into();
    let vendor = Vendor::start(move || answer(status, JSON, text.clone())).await;
    let booth = booth_on(vertex(&vendor), model);
    (vendor, booth)
}

fn flash(n: u32) -> ImageJob {
    let mut job = picture_of("gemini-3.1-flash-image", "a cat", (688, 384));
    job.n = n;
    job.size.ratio = Some("16:9".into());
    job.size.tier = Some("0.5K".into());
    job
}

fn candidate(parts: Value, finish: &str) -> String {
    let content = json!({ "role": "model", "parts": parts });
    json!({ "candidates": [{ "content": content, "finishReason": finish, "index": 0 }] })
        .to_string()
}

#[tokio::test]
async fn a_picture_is_asked_for_as_documented() {
    let text = candidate(
        json!([
            { "thought": true, "inlineData": { "mimeType": "image/png", "data": "ZHJhZnQ=" } },
            { "text": "here", "thoughtSignature": "c2ln" },
            { "inlineData": { "mimeType": "image/png", "data": "Y2F0cw==" } },
            { "inlineData": { "mimeType": "image/png", "data": "bW9yZQ==" } },
        ]),
        "STOP",
    );
    // As Google's own servers write it.
    let text = text.replace("==", "\\u003d\\u003d");
    let (vendor, mut booth) = developer(FLASH, 200, text).await;
    let one = raw("google-1.png", ImageFormat::Png, b"one");
    let two = raw("google-2.webp", ImageFormat::Webp, b"two2");
    booth.references = vec![one, two];
    assert!(booth.draw(&flash(1)).await.unwrap().is_empty());
    assert_eq!(booth.kept.files(), ["cats"]);
    let seen = &vendor.seen()[0];
    assert_eq!(
        seen.line,
        "POST /v1beta/models/gemini-3.1-flash-image:generateContent"
    );
    assert_eq!(seen.headers["x-goog-api-key"], KEY);
    assert!(!seen.headers.contains_key("authorization"));
    assert_eq!(
        seen.json(),
        json!({
            "contents": [{ "role": "user", "parts": [
                { "inlineData": { "mimeType": "image/png", "data": "b25l" } },
                { "inlineData": { "mimeType": "image/webp", "data": "dHdvMg==" } },
                { "text": "a cat" },
            ] }],
            "generationConfig": {
                "responseModalities": ["IMAGE"],
                "imageConfig": { "aspectRatio": "16:9", "imageSize": "512" },
            },
        })
    );
}

#[tokio::test]
async fn searches_are_tools_and_the_oldest_model_has_one_tier() {
    let text = candidate(json!([{ "inlineData": { "data": "Y2F0" } }]), "STOP");
    let (vendor, booth) = developer(FLASH, 200, text.clone()).await;
    let mut job = flash(1);
    job.extra = members(json!({ "engine_search": true, "engine_image_search": false }));
    booth.draw(&job).await.unwrap();
    job.extra = members(json!({ "engine_search": true, "engine_image_search": true }));
    booth.draw(&job).await.unwrap();
    let sent: Vec<Value> = vendor.seen().iter().map(Seen::json).collect();
    assert_eq!(sent[0]["tools"], json!([{ "googleSearch": {} }]));
    let kinds = json!({ "webSearch": {}, "imageSearch": {} });
    assert_eq!(
        sent[1]["tools"],
        json!([{ "googleSearch": { "searchTypes": kinds } }])
    );
    let modalities = &sent[1]["generationConfig"]["responseModalities"];
    assert_eq!(*modalities, json!(["TEXT", "IMAGE"]));

    let name = "gemini-2.5-flash-image-preview-official";
    let (vendor, booth) = developer(name, 200, text).await;
    let mut job = picture_of("gemini-2.5-flash-image", "a cat", (1536, 672));
    job.size.tier = Some("1K".into());
    booth.draw(&job).await.unwrap();
    let seen = &vendor.seen()[0];
    assert!(seen.line.contains("/gemini-2.5-flash-image:"));
    assert_eq!(
        seen.json()["generationConfig"]["imageConfig"],
        json!({ "aspectRatio": "21:9" })
    );
}

/// Answers the requests one after the other with these.
async fn in_turn(model: &str, answers: Vec<(u16, String)>) -> (Vendor, Booth) {
    let left = std::sync::Mutex::new(answers);
    let vendor = Vendor::start(move || {
        let (status, text) = left.lock().unwrap().pop().expect("one answer for each");
        answer(status, JSON, text)
    })
    .await;
    let booth = booth_on(channel("gemini", vendor.url("")), model);
    (vendor, booth)
}

#[tokio::test]
async fn several_pictures_are_as_many_calls_and_some_may_fail() {
    let good = || {
        (
            200,
            candidate(json!([{ "inlineData": { "data": "Y2F0" } }]), "STOP"),
        )
    };
    let refused = (200, candidate(json!([]), "IMAGE_SAFETY"));
    let broken = (
        503,
        r#"{"error":{"code":503,"status":"UNAVAILABLE","message":"busy"}}"#.into(),
    );
    let (vendor, booth) = in_turn(FLASH, vec![good(), refused, good(), broken]).await;
    let mut kinds = booth.draw(&flash(4)).await.unwrap();
    kinds.sort_by_key(|kind| format!("{kind:?}"));
    assert_eq!(kinds, [Moderated, Unavailable]);
    assert_eq!((booth.kept.files().len(), vendor.seen().len()), (2, 4));
    assert_eq!(booth.kept.progress_seen(), [25, 50, 75, 100]);

    let refused = |reason| (200, candidate(json!([]), reason));
    let (_vendor, booth) = in_turn(FLASH, vec![refused("NO_IMAGE"), refused("SAFETY")]).await;
    let error = booth.draw(&flash(2)).await.unwrap_err();
    assert_eq!(error.kind, Moderated);
}

#[tokio::test]
async fn answers_without_a_picture_say_why() {
    let check = async |text: String, tried: u32, expected: UpstreamErrorKind, words: &str| {
        let (_vendor, mut booth) = developer(FLASH, 200, text.clone()).await;
        booth.failed_attempts = tried;
        let error = booth.draw(&flash(1)).await.unwrap_err();
        assert_eq!(error.kind, expected, "{text}");
        assert!(error.message.contains(words), "{}", error.message);
        assert!(booth.kept.things().is_empty());
    };
    let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } });
    check(blocked.to_string(), 0, Moderated, "PROHIBITED_CONTENT").await;
    let said = json!([{ "text": "I cannot draw that." }]);
    check(
        candidate(said.clone(), "STOP"),
        0,
        Unavailable,
        "I cannot draw that.",
    )
    .await;
    check(candidate(said, "STOP"), 1, Failed, "STOP").await;
    check(
        candidate(json!([]), "IMAGE_RECITATION"),
        0,
        Moderated,
        "IMAGE_RECITATION",
    )
    .await;
    let draft = json!([{ "thought": true, "inlineData": { "data": "Y2F0" } }]);
    check(candidate(draft, "NO_IMAGE"), 2, Failed, "NO_IMAGE").await;
    check("{}".into(), 0, OutcomeUnknown, "not of the kind").await;
    check("<html>".into(), 5, Unavailable, "not of the kind").await;
    let bad = candidate(json!([{ "inlineData": { "data": "!" } }]), "STOP");
    check(bad, 0, OutcomeUnknown, "base64").await;
}

/// Refusals that all of Google's methods share.
const REFUSALS: &[(u16, &str, UpstreamErrorKind)] = &[
    (
        400,
        r#"{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}"#,
        Rejected,
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#,
        KeyRejected,
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"The prompt violates our usage guidelines","status":"INVALID_ARGUMENT"}}"#,
        Moderated,
    ),
    (
        403,
        r#"{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}"#,
        KeyRejected,
    ),
    (
        404,
        r#"{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}"#,
        ModelNotFound,
    ),
    (
        429,
        r#"{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17s"}]}}"#,
        RateLimited,
    ),
    (
        429,
        r#"{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"RequestsPerDayPerProject"}]}]}}"#,
        QuotaExhausted,
    ),
    (
        503,
        r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#,
        Unavailable,
    ),
    (502, "<html>Bad Gateway</html>", Unavailable),
];

#[tokio::test]
async fn refusals_are_told_apart() {
    let imagen = ChannelModel::new("imagen-4.0-partner", "imagen-4.0-generate-001");
    for (status, text, expected) in REFUSALS {
        let (_vendor, mut booth) = developer(FLASH, *status, *text).await;
        let picture = booth.draw(&flash(1)).await.unwrap_err();
        let film = booth
            .film(&film_of("veo-3.1", json!({})))
            .await
            .unwrap_err();
        booth.model = imagen.clone();
        let of_imagen = picture_of("imagen-4", "a cat", (1024, 1024));
        let of_imagen = booth.draw(&of_imagen).await.unwrap_err();
        for error in [picture, film, of_imagen] {
            assert_eq!(error.kind, *expected, "{status} {text}: {error:?}");
            assert_eq!(error.status, Some(*status));
            if *expected == RateLimited {
                assert_eq!(error.retry_after, Some(Duration::from_secs(17)));
            }
        }
    }
}

#[tokio::test]
async fn a_lost_answer_is_unknown() {
    let vendor = Vendor::start(|| cut_after("{\"candidates\": [")).await;
    let booth = booth_on(channel("gemini", vendor.url("")), FLASH);
    let error = booth.draw(&flash(1)).await.unwrap_err();
    assert_eq!(error.kind, OutcomeUnknown);
    let film = film_of("veo-3.1", json!({}));
    assert_eq!(booth.film(&film).await.unwrap_err().kind, OutcomeUnknown);
    assert_eq!(booth.poll(OPERATION).await.unwrap_err().kind, Unavailable);
}

fn cut_after(text: &'static str) -> Reply {
    let mut reply = answer(200, JSON, "");
    let parts = [Ok(Bytes::from(text)), Err(std::io::Error::other("gone"))];
    *reply.body_mut() = stream::iter(parts).boxed();
    reply
}

#[tokio::test]
async fn families_of_others_are_not_served() {
    let (vendor, booth) = developer(FLASH, 200, "{}").await;
    let job = picture_of("gpt-image-2", "a cat", (1024, 1024));
    assert_eq!(
        booth.draw(&job).await.unwrap_err().kind,
        UnsupportedByChannel
    );
    let film = film_of("sora-2", json!({}));
    assert_eq!(
        booth.film(&film).await.unwrap_err().kind,
        UnsupportedByChannel
    );
    assert!(vendor.seen().is_empty());
}

#[tokio::test]
async fn imagen_is_itself_on_the_platform_and_geminis_elsewhere() {
    let text = r#"{"predictions":[{"mimeType":"image/png","bytesBase64Encoded":"Y2F0"}]}"#;
    let (vendor, booth) = platform("imagen-4.0-partner", 200, text).await;
    let mut job = picture_of("imagen-4", "a cat", (1408, 768));
    job.size.ratio = Some("16:9".into());
    booth.draw(&job).await.unwrap();
    assert_eq!(booth.kept.files(), ["cat"]);
    let seen = &vendor.seen()[0];
    assert_eq!(
        seen.line,
        "POST /v1/projects/p/locations/l/publishers/google/models/imagen-4.0-generate-001:predict"
    );
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    assert!(!seen.headers.contains_key("x-goog-api-key"));
    assert_eq!(
        seen.json(),
        json!({
            "instances": [{ "prompt": "a cat" }],
            "parameters": { "sampleCount": 1, "includeRaiReason": true, "aspectRatio": "16:9" },
        })
    );

    let text = candidate(json!([{ "inlineData": { "data": "Y2F0" } }]), "STOP");
    let (vendor, booth) = developer("imagen-4.0-partner", 200, text).await;
    booth.draw(&job).await.unwrap();
    let seen = &vendor.seen()[0];
    assert!(
        seen.line
            .ends_with("/gemini-3.1-flash-image:generateContent")
    );
    assert_eq!(
        seen.json()["generationConfig"]["imageConfig"],
        json!({ "aspectRatio": "16:9" })
    );
}

#[tokio::test]
async fn what_imagens_filter_takes_is_moderated() {
    for (text, words) in [
        (
            r#"{"predictions":[{"raiFilteredReason":"It shows a child."}]}"#,
            "It shows a child.",
        ),
        (r#"{"predictions":[]}"#, "filter"),
        ("{}", "filter"),
    ] {
        let (_vendor, booth) = platform("imagen-4.0-partner", 200, text).await;
        let job = picture_of("imagen-4", "a cat", (1024, 1024));
        let error = booth.draw(&job).await.unwrap_err();
        assert_eq!(error.kind, Moderated, "{text}");
        assert!(error.message.contains(words), "{error}");
    }
    let (_vendor, booth) = platform("imagen-4.0-partner", 200, "<html>").await;
    let job = picture_of("imagen-4", "a cat", (1024, 1024));
    assert_eq!(booth.draw(&job).await.unwrap_err().kind, Unavailable);
}

fn film() -> VideoJob {
    let mut job = film_of("veo-3.1", json!({ "prompt": "a cat" }));
    job.seconds = 8;
    job.negative_prompt = Some("dogs".into());
    job.person_generation = Some("allow_adult".into());
    job.seed = Some(7);
    job.generate_audio = Some(false);
    job
}

#[tokio::test]
async fn a_film_is_asked_for_on_the_developer_api() {
    let text = json!({ "name": OPERATION }).to_string();
    let (vendor, mut booth) = developer("veo-3.1-pro", 200, text).await;
    let picture = raw("google-3.jpg", ImageFormat::Jpeg, b"one");
    booth.references = vec![picture];
    assert_eq!(booth.film(&film()).await.unwrap(), OPERATION);
    let seen = &vendor.seen()[0];
    assert_eq!(
        seen.line,
        "POST /v1beta/models/veo-3.1-generate-preview:predictLongRunning"
    );
    assert_eq!(seen.headers["x-goog-api-key"], KEY);
    assert_eq!(
        seen.json(),
        json!({
            "instances": [{
                "prompt": "a cat",
                "image": { "bytesBase64Encoded": "b25l", "mimeType": "image/jpeg" },
            }],
            "parameters": {
                "sampleCount": 1, "durationSeconds": 8, "aspectRatio": "16:9", "resolution": "720p",
                "negativePrompt": "dogs", "personGeneration": "allow_adult",
            },
        })
    );
}

#[tokio::test]
async fn a_film_is_asked_for_on_the_agent_platform() {
    let text = json!({ "name": PLATFORM_OPERATION }).to_string();
    let (vendor, booth) = platform("veo-3.1-flash", 200, text).await;
    assert_eq!(booth.film(&film()).await.unwrap(), PLATFORM_OPERATION);
    let seen = &vendor.seen()[0];
    assert_eq!(
        seen.line,
        "POST /v1/projects/p/locations/l/publishers/google/models/veo-3.1-fast-generate-001:predictLongRunning"
    );
    let parameters = &seen.json()["parameters"];
    assert_eq!(
        (&parameters["seed"], &parameters["generateAudio"]),
        (&7.into(), &false.into())
    );
    assert_eq!(seen.json()["instances"], json!([{ "prompt": "a cat" }]));

    let (_vendor, booth) = platform("veo-3.1-flash", 200, r#"{"name":"../x"}"#).await;
    assert_eq!(booth.film(&film()).await.unwrap_err().kind, OutcomeUnknown);
}

#[tokio::test]
async fn the_developer_api_gives_the_film_as_a_link_for_the_key() {
    let vendor = Vendor::answering(|seen| {
        let host = seen.headers["host"].to_str().unwrap();
        let uri = format!("http://{host}/v1beta/files/x:download?alt=media");
        let samples = json!([{ "video": { "uri": uri } }]);
        let response = json!({ "generateVideoResponse": { "generatedSamples": samples } });
        let text = json!({ "name": OPERATION, "done": true, "response": response });
        answer(200, JSON, text.to_string())
    })
    .await;
    let booth = booth_on(channel("gemini", vendor.url("")), "veo-3.1-pro");
    let polled = booth.poll(OPERATION).await.unwrap();
    assert!(matches!(polled, Polled::Completed(_)), "{polled:?}");
    assert_eq!(vendor.seen()[0].line, format!("GET /v1beta/{OPERATION}"));
    let Thing::Link {
        url,
        headers,
        is_own,
    } = &booth.kept.things()[0]
    else {
        panic!("no link");
    };
    assert_eq!(*url, vendor.url("/v1beta/files/x:download?alt=media"));
    assert!(
        *is_own && headers["x-goog-api-key"] == KEY && headers["x-goog-api-key"].is_sensitive()
    );

    // A key is for its own origin.
    let elsewhere = r#"{"done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"https://x.example/a.mp4"}}]}}}"#;
    let (_vendor, booth) = developer("veo-3.1-pro", 200, elsewhere).await;
    booth.poll(OPERATION).await.unwrap();
    let Thing::Link {
        headers, is_own, ..
    } = &booth.kept.things()[0]
    else {
        panic!("no link");
    };
    assert!(!is_own && headers.is_empty());
}

#[tokio::test]
async fn the_agent_platform_gives_the_film_itself_however_it_comes_apart() {
    let film: Vec<u8> = (0..3_000_001_u32).map(|n| (n % 251) as u8).collect();
    let head = format!(
        r#"{{"name":"{PLATFORM_OPERATION}","done":true,"response":{{"videos":[{{"bytesBase64Encoded":""#
    );
    let text = head + &STANDARD.encode(&film) + r#"","mimeType":"video/mp4"}]}}"#;
    let text = Bytes::from(text);
    let vendor = Vendor::start(move || {
        let mut reply = answer(200, JSON, "");
        let text = text.clone();
        let parts = (0..text.len()).step_by(99_991);
        let parts: Vec<_> = parts
            .map(|at| Ok(text.slice(at..text.len().min(at + 99_991))))
            .collect();
        *reply.body_mut() = stream::iter(parts).boxed();
        reply
    })
    .await;
    let booth = booth_on(vertex(&vendor), "veo-3.1-pro");
    let polled = booth.poll(PLATFORM_OPERATION).await.unwrap();
    assert!(matches!(polled, Polled::Completed(_)), "{polled:?}");
    assert!(booth.kept.files()[0] == film);
    let seen = &vendor.seen()[0];
    assert_eq!(
        seen.line,
        "POST /v1/projects/p/locations/l/publishers/google/models/veo-3.1-generate-001:fetchPredictOperation"
    );
    assert_eq!(seen.json(), json!({ "operationName": PLATFORM_OPERATION }));

    // A film that breaks off is asked for again.
    let vendor = Vendor::start(|| {
        cut_after(r#"{"done":true,"response":{"videos":[{"bytesBase64Encoded":"AAAA"#)
    })
    .await;
    let booth = booth_on(vertex(&vendor), "veo-3.1-pro");
    let error = booth.poll(PLATFORM_OPERATION).await.unwrap_err();
    assert_eq!((error.kind, booth.kept.things().len()), (Unavailable, 0));
}

#[tokio::test]
async fn polls_say_how_far_it_is_and_why_it_failed() {
    let name = json!({ "name": OPERATION }).to_string();
    let (_vendor, booth) = developer("veo-3.1-pro", 200, name).await;
    let polled = booth.poll(OPERATION).await.unwrap();
    assert!(matches!(polled, Polled::Pending(None)), "{polled:?}");
    for (text, expected) in [
        (
            r#"{"done":true,"error":{"code":3,"message":"bad ratio"}}"#,
            Rejected,
        ),
        (
            r#"{"done":true,"error":{"code":3,"message":"The prompt violates Vertex AI's usage guidelines."}}"#,
            Moderated,
        ),
        (
            r#"{"done":true,"error":{"code":8,"message":"exhausted"}}"#,
            RateLimited,
        ),
        (
            r#"{"done":true,"error":{"code":13,"message":"internal"}}"#,
            Unavailable,
        ),
        (r#"{"done":true,"error":{"code":2}}"#, Failed),
        (
            r#"{"done":true,"response":{"generateVideoResponse":{"raiMediaFilteredCount":1,"raiMediaFilteredReasons":["No celebrities."]}}}"#,
            Moderated,
        ),
        (
            r#"{"done":true,"response":{"raiMediaFilteredCount":1}}"#,
            Moderated,
        ),
        (r#"{"done":true,"response":{}}"#, Failed),
    ] {
        let (_vendor, booth) = developer("veo-3.1-pro", 200, text).await;
        let error = booth.failure(OPERATION).await;
        assert_eq!(error.kind, expected, "{text}");
        assert!(!error.message.is_empty());
    }
    for (status, text, expected) in REFUSALS {
        let (_vendor, booth) = developer("veo-3.1-pro", *status, *text).await;
        match booth.poll(OPERATION).await {
            // About the operation itself.
            Ok(Polled::Failed(error)) => {
                assert!(matches!(expected, Rejected | ModelNotFound));
                assert_eq!(error.kind, Failed);
            }
            other => assert_eq!(other.unwrap_err().kind, *expected),
        }
    }
    let (_vendor, booth) = developer("veo-3.1-pro", 200, "<html>").await;
    assert_eq!(booth.poll(OPERATION).await.unwrap_err().kind, Unavailable);
    let (vendor, booth) = developer("veo-3.1-pro", 200, "{}").await;
    assert!(booth.poll("operations/../../x").await.is_err());
    assert!(vendor.seen().is_empty());
}

/// A service account's key file whose tokens come from `uri`.
fn key_file(uri: &str) -> Secret {
    let document = json!({
        "type": "service_account",
        "project_id": "of-the-key",
        "private_key_id": "key-1",
        "private_key": include_str!("data/service_account_key.pem"),
        "client_email": "gateway@of-the-key.iam.example",
        "token_uri": uri,
    });
    Secret::new(document.to_string())
}

/// What a token service is asked: claims and header of the JWT, whose signature must be good.
fn claims(seen: &Seen) -> (Value, Value) {
    let body = str::from_utf8(&seen.body).unwrap();
    let form: Vec<_> = url::form_urlencoded::parse(body.as_bytes()).collect();
    assert_eq!(form[0].1, "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let (signed, signature) = form[1].1.rsplit_once('.').unwrap();
    let pem = include_bytes!("data/service_account_key.pem");
    let key = PrivatePkcs8KeyDer::from_pem_slice(pem).unwrap();
    let key = RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap();
    let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public_key());
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    public
        .verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &signature)
        .expect("the signature is good");
    let (head, claims) = signed.split_once('.').unwrap();
    let read = |part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    (read(head), read(claims))
}

#[tokio::test]
async fn a_service_accounts_key_file_makes_tokens_that_are_used_until_they_are_refused() {
    let tokens = std::sync::atomic::AtomicUsize::new(0);
    let (service, roots) = Vendor::secure("localhost", move |_| {
        let number = tokens.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let token = json!({ "access_token": format!("ya29.{number}"), "expires_in": 3599, "token_type": "Bearer" });
        answer(200, JSON, token.to_string())
    })
    .await;
    let port = service.host().rsplit(':').next().unwrap().to_owned();
    let uri = format!("https://localhost:{port}/token");
    // The first token is refused after it was good once.
    let vendor = Vendor::answering(|seen| {
        let is_stale = seen.headers["authorization"] == "Bearer ya29.1"
            && seen.line.starts_with(
                "POST /v1/projects/of-the-key/locations/us-central1/publishers/google/models/veo",
            );
        if is_stale {
            return answer(
                401,
                JSON,
                r#"{"error":{"code":401,"status":"UNAUTHENTICATED","message":"expired"}}"#,
            );
        }
        let text = r#"{"predictions":[{"bytesBase64Encoded":"Y2F0"}],"name":"operations/1"}"#;
        answer(200, JSON, text)
    })
    .await;
    let channel = Channel {
        api_keys: vec![key_file(&uri)],
        options: members(json!({ "platform": "vertex" })),
        ..channel("gemini", vendor.url(""))
    };
    let egress = Client::trusting(roots, ClientOptions::default());
    let model = ChannelModel::new("imagen-4.0-partner", "imagen-4.0-partner");
    let mut booth = Booth::through(&egress, channel, model);
    booth.key = key_file(&uri);
    let job = picture_of("imagen-4", "a cat", (1024, 1024));
    booth.draw(&job).await.unwrap();
    booth.draw(&job).await.unwrap();
    assert_eq!(service.seen().len(), 1, "a token is fetched once");
    assert_eq!(vendor.seen()[1].headers["authorization"], "Bearer ya29.1");

    let asked = &service.seen()[0];
    assert_eq!(asked.line, "POST /token");
    assert_eq!(
        asked.headers["content-type"],
        "application/x-www-form-urlencoded"
    );
    let (head, claims) = claims(asked);
    assert_eq!(
        head,
        json!({ "alg": "RS256", "typ": "JWT", "kid": "key-1" })
    );
    assert_eq!(claims["iss"], "gateway@of-the-key.iam.example");
    assert_eq!(claims["aud"], uri.as_str());
    assert_eq!(
        claims["scope"],
        "https://www.googleapis.com/auth/cloud-platform"
    );
    let life = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert_eq!(life, 3600);

    booth.model = ChannelModel::new("veo-3.1-pro", "veo-3.1-pro");
    let error = booth
        .film(&film_of("veo-3.1", json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.kind, KeyRejected);
    booth.film(&film_of("veo-3.1", json!({}))).await.unwrap();
    assert_eq!(service.seen().len(), 2, "a refused token is not used again");
}

#[tokio::test]
async fn a_token_service_that_refuses_refuses_the_key() {
    for (status, text, expected) in [
        (
            400,
            r#"{"error":"invalid_grant","error_description":"account not found"}"#,
            KeyRejected,
        ),
        (500, "oops", Unavailable),
        (200, "{}", Unavailable),
    ] {
        let (service, roots) =
            Vendor::secure("localhost", move |_| answer(status, JSON, text)).await;
        let port = service.host().rsplit(':').next().unwrap().to_owned();
        let key = key_file(&format!("https://localhost:{port}/token"));
        let channel = Channel {
            api_keys: vec![key.clone()],
            options: members(json!({ "platform": "vertex" })),
            ..channel("gemini", "http://127.0.0.1:1".into())
        };
        let egress = Client::trusting(roots, ClientOptions::default());
        let model = ChannelModel::new("imagen-4.0-partner", "imagen-4.0-partner");
        let mut booth = Booth::through(&egress, channel, model);
        booth.key = key;
        let job = picture_of("imagen-4", "a cat", (1024, 1024));
        let error = booth.draw(&job).await.unwrap_err();
        assert_eq!(error.kind, expected, "{status} {text}");
    }
}

#[tokio::test]
async fn channels_that_cannot_work_are_refused_at_the_start() {
    let check = |options: Value, key: Secret, expected: &str| {
        let channel = Channel {
            api_keys: vec![key],
            options: members(options),
            ..Channel::new("main", "gemini")
        };
        let entry = PROVIDERS
            .iter()
            .find(|entry| entry.kind == "gemini")
            .unwrap();
        let error = (entry.check)(&channel).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("MII"), "{error}");
    };
    let vertex = || json!({ "platform": "vertex", "project": "p" });
    check(json!({ "platform": "aws" }), Secret::new(KEY), "\"vertex\"");
    check(
        json!({ "platform": "vertex" }),
        Secret::new(KEY),
        "`project` is missing",
    );
    check(
        json!({}),
        key_file("https://x.example"),
        "needs `platform = \"vertex\"`",
    );
    check(
        vertex(),
        key_file("http://x.example"),
        "must be an https URL",
    );
    check(
        vertex(),
        Secret::new("{"),
        "api_keys[0]: the key begins with {",
    );
    check(
        vertex(),
        Secret::new("{\"private_key\":\"MII\"}"),
        "no RSA key",
    );
    check(
        vertex(),
        Secret::new("{\"type\":\"authorized_user\"}"),
        "`private_key` is missing",
    );
}
