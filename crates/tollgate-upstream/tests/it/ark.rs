//! What the provider `ark` sends, and what it makes of answers (upstream documents: Volcengine 82379).

use serde_json::{Value, json};
use tollgate_media::image::{ImageFormat, ImageJob};
use tollgate_media::video::ImageUse::{self, FirstAndLast, FirstFrame, References};
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::error::UpstreamErrorKind::{self, *};
use tollgate_upstream::{Polled, ProviderError};

use crate::booth::{Booth, film, members, picture_of, raw};
use crate::vendor::{KEY, Vendor, answer, channel};

const JSON: &str = "application/json";
const TICKET: &str = "cgt-20261121-abcde";

fn group(n: u32) -> ImageJob {
    ImageJob {
        n,
        extra: members(json!({
            "sequential_image_generation": "auto",
            "sequential_image_generation_options": { "max_images": n },
            "optimize_prompt_options": { "mode": "fast" },
        })),
        ..picture_of("seedream-4.5", "a day of a cat", (2048, 2048))
    }
}

fn booth_at(base: &str, model: &str) -> Booth {
    let channel = channel("ark", base.to_owned());
    Booth::of(channel, ChannelModel::new(model, model))
}

async fn ark(status: u16, text: impl Into<bytes::Bytes>) -> (Vendor, Booth) {
    at("seedance-1.5-pro", status, text).await
}

async fn at(model: &str, status: u16, text: impl Into<bytes::Bytes>) -> (Vendor, Booth) {
    let text = text.into();
    let vendor = Vendor::start(move || answer(status, JSON, text.clone())).await;
    let booth = booth_at(&vendor.url("/api/v3"), model);
    (vendor, booth)
}

#[tokio::test]
async fn a_picture_is_asked_for_as_documented() {
    let text = r#"{"model":"m","created":1,"data":[{"url":"https://tos.example/a.jpeg","size":"2848x1600"}],"usage":{"generated_images":1}}"#;
    let (vendor, booth) = at("doubao-seedream-5.0-lite", 200, text).await;
    let mut job = picture_of("seedream-5-lite", "a cat", (2848, 1600));
    job.output_format = ImageFormat::Jpeg;
    assert!(booth.draw(&job).await.unwrap().is_empty());
    let seen = &vendor.seen()[0];
    assert_eq!(seen.line, "POST /api/v3/images/generations");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(seen.headers["content-type"], JSON);
    assert_eq!(seen.headers["x-client-request-id"], "a-1");
    assert_eq!(
        seen.json(),
        json!({
            "model": "doubao-seedream-5-0-260128",
            "prompt": "a cat",
            "size": "2848x1600",
            "sequential_image_generation": "disabled",
            "output_format": "jpeg",
            "response_format": "url",
            "watermark": false,
        })
    );
    assert_eq!(booth.kept.urls(), ["https://tos.example/a.jpeg"]);
}

#[tokio::test]
async fn a_group_of_references_is_asked_for_as_documented() {
    let text = r#"{"data":[{"b64_json":"Y2F0"}]}"#;
    let (vendor, mut booth) = at("doubao-seedream-4-5", 200, text).await;
    let mut job = group(3);
    job.watermark = Some(true);
    let one = raw("ark-1.png", ImageFormat::Png, b"one");
    let two = raw("ark-2.jpg", ImageFormat::Jpeg, b"two2");
    booth.references = vec![one, two];
    assert!(booth.draw(&job).await.unwrap().is_empty());
    assert_eq!(booth.kept.files(), ["cat"]);
    assert_eq!(
        vendor.seen()[0].json(),
        json!({
            "model": "doubao-seedream-4-5-251128",
            "prompt": "a day of a cat\nGenerate 3 pictures.",
            "image": ["data:image/png;base64,b25l", "data:image/jpeg;base64,dHdvMg=="],
            "size": "2048x2048",
            "sequential_image_generation": "auto",
            "sequential_image_generation_options": { "max_images": 3 },
            "optimize_prompt_options": { "mode": "standard" },
            "response_format": "url",
            "watermark": true,
        })
    );
    booth.references.truncate(1);
    booth.draw(&group(1)).await.unwrap();
    let second = vendor.seen()[1].json();
    assert_eq!(second["image"], "data:image/png;base64,b25l");
    assert_eq!(
        second["sequential_image_generation_options"],
        json!({ "max_images": 1 })
    );
    assert_eq!(second["prompt"], "a day of a cat");
}

#[tokio::test]
async fn of_a_group_the_good_ones_are_delivered_in_order() {
    let text = r#"{"data":[
        {"url":"https://tos.example/1.jpeg"},
        {"error":{"code":"OutputImageSensitiveContentDetected","message":"The output may hold sensitive content."}},
        {"url":"https://tos.example/3.jpeg"}],
        "error":{"code":"InternalServiceError","message":"broke off"}}"#;
    let (_vendor, booth) = ark(200, text).await;
    let refused = booth.draw(&group(4)).await.unwrap();
    assert_eq!(refused, [Moderated, Unavailable]);
    assert_eq!(
        booth.kept.urls(),
        ["https://tos.example/1.jpeg", "https://tos.example/3.jpeg"]
    );
    assert_eq!(booth.kept.progress_seen(), [33, 66, 100]);
}

#[tokio::test]
async fn a_picture_that_cannot_be_fetched_is_missing() {
    let text =
        r#"{"data":[{"url":"https://tos.example/1.jpeg"},{"url":"https://tos.example/2.jpeg"}]}"#;
    let gone = ProviderError::new(Failed, "it is gone");
    let (_vendor, booth) = ark(200, text).await;
    booth.kept.reasons.lock().unwrap().push(gone.clone());
    let refused = booth.draw(&group(2)).await.unwrap();
    assert_eq!((refused, booth.kept.things().len()), (vec![Failed], 1));

    let (_vendor, booth) = ark(200, text).await;
    booth
        .kept
        .reasons
        .lock()
        .unwrap()
        .extend([gone.clone(), gone]);
    assert_eq!(booth.draw(&group(2)).await.unwrap_err().kind, Failed);
}

async fn check_refusal(status: u16, text: &'static str, expected: UpstreamErrorKind) {
    let (_vendor, booth) = ark(status, text).await;
    let job = picture_of("seedream-4.5", "a cat", (2048, 2048));
    let pictures = booth.draw(&job).await.unwrap_err();
    assert_eq!(pictures.kind, expected, "{status} {text}: {pictures:?}");
    assert!(!pictures.message.is_empty() && !pictures.message.contains(KEY));
    let film = film(
        "seedance-1.5-pro",
        json!({ "prompt": "a cat", "seconds": 5 }),
    );
    let film = booth.film(&film).await.unwrap_err();
    assert_eq!(film.kind, expected, "{status} {text}: {film:?}");
}

#[tokio::test]
async fn refusals_are_told_apart() {
    for (status, text, expected) in [
        (
            400,
            r#"{"error":{"code":"InvalidParameter","message":"bad size","param":"size","type":"BadRequest"}}"#,
            Rejected,
        ),
        (
            400,
            r#"{"error":{"code":"InputTextSensitiveContentDetected","message":"no"}}"#,
            Moderated,
        ),
        (
            401,
            r#"{"error":{"code":"AuthenticationError","message":"the API key sk-test-0123456789abcdef is wrong"}}"#,
            KeyRejected,
        ),
        (
            403,
            r#"{"error":{"code":"AccountOverdueError","message":"overdue"}}"#,
            QuotaExhausted,
        ),
        (
            404,
            r#"{"error":{"code":"ModelNotOpen","message":"activate it"}}"#,
            ModelNotFound,
        ),
        (
            429,
            r#"{"error":{"code":"ModelAccountIpmRateLimitExceeded","message":"slow"}}"#,
            RateLimited,
        ),
        (
            429,
            r#"{"error":{"code":"SetLimitExceeded","message":"limit"}}"#,
            QuotaExhausted,
        ),
        (
            500,
            r#"{"error":{"code":"InternalServiceError","message":"oops"}}"#,
            Unavailable,
        ),
        (
            418,
            r#"{"error":{"code":"Teapot","message":"no"}}"#,
            Rejected,
        ),
        (502, "<html>Bad Gateway</html>", Unavailable),
        (200, "<html>sign in</html>", Unavailable),
        (200, "{}", OutcomeUnknown),
        (
            200,
            r#"{"error":{"code":"OutputImageRiskDetection","message":"no"}}"#,
            Moderated,
        ),
    ] {
        check_refusal(status, text, expected).await;
    }
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_no_connection_may_be_tried_again() {
    let vendor = Vendor::start(|| {
        let mut reply = answer(200, JSON, "");
        let cut = async { Err(std::io::Error::other("gone")) };
        *reply.body_mut() = Box::pin(futures_util::stream::once(cut));
        reply
    })
    .await;
    let job = picture_of("seedream-4.5", "a cat", (2048, 2048));
    let film = film("seedance-2.0", json!({ "prompt": "a cat", "seconds": 5 }));
    let booth = booth_at(&vendor.url("/api/v3"), "seedance-2.0");
    assert_eq!(booth.draw(&job).await.unwrap_err().kind, OutcomeUnknown);
    assert_eq!(booth.film(&film).await.unwrap_err().kind, OutcomeUnknown);
    let lost = booth.poll(TICKET).await.unwrap_err();
    assert_eq!(lost.kind, Unavailable);

    let booth = booth_at("http://127.0.0.1:1", "seedance-2.0");
    assert_eq!(booth.draw(&job).await.unwrap_err().kind, Unavailable);
    assert_eq!(booth.film(&film).await.unwrap_err().kind, Unavailable);
}

#[tokio::test]
async fn a_stopped_call_ends_at_once() {
    let (_vendor, booth) = ark(200, "{}").await;
    booth.cancel.cancel();
    let job = picture_of("seedream-4.5", "a cat", (2048, 2048));
    let error = booth.draw(&job).await.unwrap_err();
    assert_eq!(error.kind, Interrupted);
}

#[tokio::test]
async fn families_of_others_are_not_served() {
    let (vendor, booth) = ark(200, "{}").await;
    let job = picture_of("imagen-4", "a cat", (1024, 1024));
    assert_eq!(
        booth.draw(&job).await.unwrap_err().kind,
        UnsupportedByChannel
    );
    let film = film("sora-2", json!({ "prompt": "a cat", "seconds": 5 }));
    assert_eq!(
        booth.film(&film).await.unwrap_err().kind,
        UnsupportedByChannel
    );
    assert!(vendor.seen().is_empty());
}

#[tokio::test]
async fn a_film_is_asked_for_as_documented() {
    let (vendor, booth) = at("seedance-1.5-pro", 200, r#"{"id":"cgt-20261121-abcde"}"#).await;
    let mut job = film(
        "seedance-1.5-pro",
        json!({ "prompt": "a cat --dur 12 sleeps", "seconds": 5 }),
    );
    job.generate_audio = Some(false);
    job.camera_fixed = Some(true);
    job.return_last_frame = Some(true);
    job.seed = Some(-1);
    assert_eq!(booth.film(&job).await.unwrap(), TICKET);
    let adjusted = booth.kept.record_adjustment();
    assert_eq!(adjusted, [r#"prompt: "--dur 12" → null"#]);
    let seen = &vendor.seen()[0];
    assert_eq!(seen.line, "POST /api/v3/contents/generations/tasks");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(
        seen.json(),
        json!({
            "model": "doubao-seedance-1-5-pro-251215",
            "content": [{ "type": "text", "text": "a cat sleeps" }],
            "resolution": "720p",
            "ratio": "16:9",
            "duration": 5,
            "seed": -1,
            "generate_audio": false,
            "camera_fixed": true,
            "return_last_frame": true,
            "watermark": false,
        })
    );
}

/// The request for a film of `family` with `count` pictures that are `image_use` to it.
async fn film_of_pictures(
    (model, tier): (&str, &str),
    family: &str,
    image_use: ImageUse,
    count: usize,
) -> Result<Value, UpstreamErrorKind> {
    let (vendor, mut booth) = at(model, 200, r#"{"id":"cgt-20261121-abcde"}"#).await;
    let mut job = film(family, json!({ "prompt": "a cat", "seconds": 5 }));
    job.size.resolution = Some(tier.into());
    job.size.ratio = None;
    job.image_use = Some(image_use);
    job.generate_audio = Some(true);
    job.camera_fixed = Some(true);
    let name = format!("{model}-{count}.png");
    let picture = raw(&name, ImageFormat::Png, b"one");
    booth.references = vec![picture; count];
    match booth.film(&job).await {
        Ok(_) => Ok(vendor.seen()[0].json()),
        Err(error) => Err(error.kind),
    }
}

#[tokio::test]
async fn pictures_are_frames_or_references() {
    let picture = |role: &str| json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,b25l" }, "role": role });
    let text = json!({ "type": "text", "text": "a cat" });

    let sent = film_of_pictures(
        ("seedance-1.0-pro", "1080p"),
        "seedance-1.0",
        FirstAndLast,
        2,
    )
    .await
    .unwrap();
    assert_eq!(
        sent["content"],
        json!([text, picture("first_frame"), picture("last_frame")])
    );
    // The ratio is the picture's; 1.0 has no sound.
    assert_eq!(
        (&sent["ratio"], &sent["generate_audio"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(sent["camera_fixed"], true);
    assert_eq!(sent["resolution"], "1080p");

    let sent = film_of_pictures(("seedance-1.0-mini", "720p"), "seedance-1.0", References, 3)
        .await
        .unwrap();
    assert_eq!(sent["model"], "doubao-seedance-1-0-lite-i2v-250428");
    assert_eq!(sent["content"][1], picture("reference_image"));
    assert_eq!(
        (&sent["ratio"], &sent["resolution"]),
        (&"16:9".into(), &"720p".into())
    );
    assert_eq!(sent["camera_fixed"], Value::Null);

    let sent = film_of_pictures(("seedance-2.0-fast", "720p"), "seedance-2.0", References, 2)
        .await
        .unwrap();
    let expected = json!([text, picture("reference_image"), picture("reference_image")]);
    assert_eq!(sent["content"], expected);
    assert_eq!(
        (&sent["camera_fixed"], &sent["resolution"]),
        (&Value::Null, &"720p".into())
    );
    assert_eq!(sent["generate_audio"], true);

    // Nobody gets, and pays for, less than was asked.
    for (model, family, count) in [
        ("seedance-1.0-mini", "seedance-1.0", 3),
        ("seedance-2.0-fast", "seedance-2.0", 2),
    ] {
        let refused = film_of_pictures((model, "1080p"), family, References, count).await;
        assert_eq!(refused, Err(UnsupportedByChannel), "{model}");
    }

    let sent = film_of_pictures(("seedance-2.0", "1080p"), "seedance-2.0", FirstFrame, 1)
        .await
        .unwrap();
    assert_eq!(sent["content"], json!([text, picture("first_frame")]));
    assert_eq!(
        (&sent["ratio"], &sent["resolution"]),
        (&Value::Null, &"1080p".into())
    );
}

#[tokio::test]
async fn polls_say_how_far_it_is() {
    for status in ["queued", "running"] {
        let text = format!(r#"{{"id":"{TICKET}","status":"{status}","error":null}}"#);
        let (vendor, booth) = ark(200, text).await;
        let polled = booth.poll(TICKET).await.unwrap();
        assert!(matches!(polled, Polled::Pending(None)), "{polled:?}");
        let seen = &vendor.seen()[0];
        assert_eq!(
            seen.line,
            format!("GET /api/v3/contents/generations/tasks/{TICKET}")
        );
        assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    }
    let text = r#"{"status":"succeeded","content":{"video_url":"https://tos.example/a.mp4","last_frame_url":"https://tos.example/a.png"}}"#;
    let (_vendor, booth) = ark(200, text).await;
    let polled = booth.poll(TICKET).await.unwrap();
    assert!(matches!(polled, Polled::Completed(done) if done.failures.is_empty()));
    assert_eq!(
        booth.kept.urls(),
        ["https://tos.example/a.mp4", "https://tos.example/a.png"]
    );
}

#[tokio::test]
async fn a_film_that_cannot_be_fetched_now_is_fetched_at_the_next_poll() {
    let text = r#"{"status":"succeeded","content":{"video_url":"https://tos.example/a.mp4"}}"#;
    for (kind, is_asked_again) in [(Unavailable, true), (Interrupted, true), (Failed, false)] {
        let (_vendor, booth) = ark(200, text).await;
        let error = ProviderError::new(kind, "no");
        booth.kept.reasons.lock().unwrap().push(error);
        match booth.poll(TICKET).await {
            Err(error) => assert!(is_asked_again && error.kind == kind, "{kind:?}"),
            Ok(Polled::Failed(error)) => assert!(!is_asked_again && error.kind == kind),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn tasks_that_fail_say_why() {
    for (text, expected) in [
        (
            r#"{"status":"failed","error":{"code":"OutputVideoSensitiveContentDetected","message":"no"}}"#,
            Moderated,
        ),
        (
            r#"{"status":"failed","error":{"code":"InternalServiceError","message":"oops"}}"#,
            Unavailable,
        ),
        (
            r#"{"status":"failed","error":{"code":"Whatever","message":"no"}}"#,
            Failed,
        ),
        (r#"{"status":"failed","error":null}"#, Failed),
        (r#"{"status":"cancelled"}"#, Failed),
        (r#"{"status":"expired"}"#, Failed),
        (r#"{"status":"succeeded","content":{}}"#, Failed),
    ] {
        let (_vendor, booth) = ark(200, text).await;
        assert_eq!(booth.failure(TICKET).await.kind, expected, "{text}");
    }
    let gone = r#"{"error":{"code":"NotFound.Task","message":"no such task"}}"#;
    let (_vendor, booth) = ark(404, gone).await;
    assert_eq!(booth.failure(TICKET).await.kind, Failed);
}

#[tokio::test]
async fn polls_without_an_answer_are_repeated() {
    for (status, text, expected) in [
        (500, "oops", Unavailable),
        (200, "<html></html>", Unavailable),
        (200, r#"{"status":"dancing"}"#, Unavailable),
        (
            429,
            r#"{"error":{"code":"RequestBurstTooFast","message":"slow"}}"#,
            RateLimited,
        ),
        (
            401,
            r#"{"error":{"code":"AuthenticationError","message":"no"}}"#,
            KeyRejected,
        ),
    ] {
        let (_vendor, booth) = ark(status, text).await;
        let error = booth.poll(TICKET).await.unwrap_err();
        assert_eq!(error.kind, expected, "{status} {text}");
    }
    let (vendor, booth) = ark(200, "{}").await;
    assert!(booth.poll("../../models").await.is_err());
    assert!(vendor.seen().is_empty());
}

#[tokio::test]
async fn what_waits_is_called_off_and_what_runs_goes_on() {
    for (status, text) in [
        (200, "{}"),
        (
            409,
            r#"{"error":{"code":"InvalidAction.RunningTaskDeletion","message":"it runs"}}"#,
        ),
        (
            403,
            r#"{"error":{"code":"OperationDenied.InvalidState","message":"it runs"}}"#,
        ),
        (404, r#"{"error":{"code":"NotFound","message":"gone"}}"#),
    ] {
        let (vendor, booth) = ark(status, text).await;
        booth.call_off(TICKET).await.unwrap();
        let line = format!("DELETE /api/v3/contents/generations/tasks/{TICKET}");
        assert_eq!(vendor.seen()[0].line, line);
    }
    let (_vendor, booth) = ark(503, "").await;
    assert_eq!(booth.call_off(TICKET).await.unwrap_err().kind, Unavailable);
}
