//! fal: what models are sent by their mapping, and what becomes of requests (fal.ai's queue documents).

use serde_json::{Value, json};
use tollgate_core::TaskKind::{Image, Speech, Video};
use tollgate_fakes::{Fake, Options, Provider};
use tollgate_upstream::{Channel, Polled, UpstreamErrorKind};

use crate::desk::{
    Asked, Desk, Desktop, KEY, Pictures, Reply, channel, check, failure, fake, image_job,
    provider_job_id, raw, refused, reply, rules_broken, speech_job, video_job, with_header,
};

fn at(desk: &Desk, upstream: &str, options: Value) -> Channel {
    let mut channel = channel("fal", desk.url(""), "m", upstream);
    channel.models[0].options = options.as_object().cloned().unwrap();
    channel
}

fn simple(desk: &Desk) -> Desktop {
    let options = json!({ "input": { "prompt": "prompt", "n": "num_images" } });
    Desktop::open(at(desk, "fal-ai/x/y", options))
}

/// As fal answers a submission; the sub-path of the model is not in the URLs.
fn accepted(id: &str) -> Reply {
    let place = format!("https://queue.fal.run/fal-ai/x/requests/{id}");
    reply(
        200,
        json!({ "request_id": id, "status": "IN_QUEUE", "queue_position": 0, "response_url": place,
            "status_url": format!("{place}/status"), "cancel_url": format!("{place}/cancel") }),
    )
}

const TICKET: &str = r#"["/fal-ai/x/requests/r-1"]"#;

#[tokio::test]
async fn a_request_is_the_models_input_itself() {
    let desk = Desk::saying([accepted("r-1")]).await;
    let open = simple(&desk);
    let started = open.image(&image_job(json!({ "n": 2 })), &[], None).await;
    assert_eq!(provider_job_id(started), TICKET);
    let asked = &desk.asked()[0];
    assert_eq!(asked.line, "POST /fal-ai/x/y");
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(
        asked.header("authorization"),
        Some(format!("Key {KEY}").as_str())
    );
    assert_eq!(
        asked.json(),
        json!({ "prompt": "a red boat", "num_images": 2 })
    );
}

#[tokio::test]
async fn well_known_models_need_no_options() {
    let desk = Desk::saying([accepted("r-1")]).await;
    let pictures = Pictures::new();
    let open = |name: &str| Desktop::open(at(&desk, name, json!({})));
    let files = [pictures.file("image_urls[0]", b"one")];
    let job = image_job(json!({
        "n": 2,
        "size": { "pixels": { "width": 2560, "height": 1440 }, "ratio": "16:9", "tier": "2K" },
    }));
    open("doubao-seedream-4-5")
        .image(&job, &[], None)
        .await
        .unwrap();
    open("doubao-seedream-4-5")
        .image(&job, &files, None)
        .await
        .unwrap();
    let job = video_job(json!({ "seconds": 8, "seed": 5 }));
    open("veo-3.1-flash").video(&job, &[]).await.unwrap();
    open("veo-3.1-flash").video(&job, &files).await.unwrap();
    let job = speech_job(json!({ "voice": "Wise_Woman", "speed": 1.5 }));
    open("native-v3").speech(&job).await.unwrap();
    let picture = "data:image/png;base64,b25l";
    let size = json!({ "width": 2560, "height": 1440 });
    let film = json!({ "prompt": "a red boat", "duration": "8s", "resolution": "720p", "aspect_ratio": "16:9", "seed": 5 });
    let mut film_of_frame = film.clone();
    film_of_frame["image_url"] = picture.into();
    let expected = [
        (
            "POST /fal-ai/bytedance/seedream/v4.5/text-to-image",
            json!({ "prompt": "a red boat", "image_size": size, "max_images": 2 }),
        ),
        (
            "POST /fal-ai/bytedance/seedream/v4.5/edit",
            json!({ "prompt": "a red boat", "image_size": size, "max_images": 2, "image_urls": [picture] }),
        ),
        ("POST /fal-ai/veo3.1/fast", film),
        ("POST /fal-ai/veo3.1/fast/image-to-video", film_of_frame),
        (
            "POST /fal-ai/minimax/speech-02-hd",
            json!({ "text": "Hello.", "voice_setting": { "voice_id": "Wise_Woman", "speed": 1.5 }, "output_format": "url" }),
        ),
    ];
    let asked = desk.asked();
    assert_eq!(asked.len(), expected.len());
    for (asked, (line, input)) in asked.iter().zip(expected) {
        assert_eq!(asked.line, line);
        assert_eq!(asked.json(), input, "{line}");
    }
}

#[tokio::test]
async fn what_a_model_is_not_asked_for_is_told() {
    let desk = Desk::saying([accepted("r-1")]).await;
    let open = Desktop::open(at(&desk, "veo-3.1-pro", json!({})));
    let job = video_job(json!({
        "family": "veo-3.1", "seconds": 7, "seed": 5, "person_generation": "dont_allow",
        "size": { "pixels": { "width": 960, "height": 960 }, "ratio": "1:1", "resolution": "720p" },
    }));
    open.video(&job, &[]).await.unwrap();
    assert_eq!(
        open.shelf.record_adjustment(),
        [
            r#"size: "1:1" → "16:9""#,
            "seconds: 7 → 6",
            r#"person_generation: "dont_allow" → null"#,
        ]
    );
    let film = json!({ "prompt": "a red boat", "duration": "6s", "resolution": "720p", "aspect_ratio": "16:9", "seed": 5 });
    assert_eq!(desk.asked()[0].json(), film);
}

/// The example of docs/providers/mapping.md.
#[tokio::test]
async fn the_worked_example_does_what_it_says() {
    let desk = Desk::saying([accepted("r-1")]).await;
    let options = json!({
        "input": {
            "prompt": "prompt", "negative_prompt": "negative_prompt", "seed": "seed",
            "n": { "to": "num_images", "most": 4 }, "size": { "to": "image_size", "as": "object" },
            "references": { "to": "image_urls", "most": 4 },
        },
        "with_images": { "upstream": "fal-ai/wan/v2.7/edit" },
    });
    let open = Desktop::open(at(&desk, "fal-ai/wan/v2.7/text-to-image", options));
    let pictures = Pictures::new();
    let files = [pictures.file("image_urls[0]", b"one")];
    let job = image_job(json!({
        "family": "wan2.7", "n": 2, "seed": 5, "negative_prompt": "fog", "watermark": false,
        "extra": { "enable_sequential": false, "thinking_mode": true },
        "size": { "pixels": { "width": 2048, "height": 2048 }, "ratio": "1:1", "tier": "2K" },
    }));
    open.image(&job, &[], None).await.unwrap();
    open.image(&job, &files, None).await.unwrap();
    let mut input = json!({ "prompt": "a red boat", "negative_prompt": "fog", "seed": 5, "num_images": 2,
        "image_size": { "width": 2048, "height": 2048 } });
    let asked = desk.asked();
    assert_eq!(asked[0].line, "POST /fal-ai/wan/v2.7/text-to-image");
    assert_eq!(asked[0].json(), input);
    input["image_urls"] = json!(["data:image/png;base64,b25l"]);
    assert_eq!(asked[1].line, "POST /fal-ai/wan/v2.7/edit");
    assert_eq!(asked[1].json(), input);
    assert_eq!(
        open.shelf.record_adjustment(),
        ["thinking_mode: true → null"; 2]
    );
}

#[tokio::test]
async fn pictures_that_fal_would_not_use_go_elsewhere() {
    let pictures = Pictures::new();
    let frames = [
        pictures.file("images[0]", b"1"),
        pictures.file("images[1]", b"2"),
    ];
    let many: Vec<_> = (0..11).map(|_| pictures.file("image_urls", b"1")).collect();
    let desk = Desk::saying([accepted("r-1")]).await;
    let open = |name: &str| Desktop::open(at(&desk, name, json!({})));
    let film = video_job(json!({ "image_use": "first_and_last" }));
    for (failed, words) in [
        (
            open("seedance-1.0-pro").video(&film, &frames).await,
            "takes no `first_frame`, 1 came",
        ),
        (
            open("seedance-1.0-fast").video(&film, &frames).await,
            "takes no `last_frame`, 1 came",
        ),
        (
            open("doubao-seedream-4.5")
                .image(&image_job(json!({})), &many, None)
                .await,
            "takes 10 of `references`, 11 came",
        ),
    ] {
        let error = failed.unwrap_err();
        assert_eq!(error.kind, UpstreamErrorKind::UnsupportedByChannel);
        assert!(error.message.contains(words), "{error}");
    }
    assert!(desk.asked().is_empty());
}

/// Answers the state with `state` and the response with `response`.
async fn following(state: Reply, response: Reply) -> Desk {
    Desk::answering(move |asked: &Asked| match asked.line.as_str() {
        "GET /fal-ai/x/requests/r-1/status" => state.clone(),
        "GET /fal-ai/x/requests/r-1" => response.clone(),
        _ => None,
    })
    .await
}

fn completed() -> Reply {
    reply(200, json!({ "status": "COMPLETED", "request_id": "r-1" }))
}

#[tokio::test]
async fn a_request_is_followed_to_its_end() {
    for status in ["IN_QUEUE", "IN_PROGRESS"] {
        let desk = following(reply(202, json!({ "status": status })), None).await;
        let polled = simple(&desk).poll(TICKET, Image, 1).await;
        assert!(matches!(polled, Ok(Polled::Pending(None))), "{polled:?}");
    }
    for (kind, output, expected) in [
        (
            Image,
            json!({ "images": [{ "url": "https://f/a" }, { "url": "https://f/b" }] }),
            &["https://f/a", "https://f/b"][..],
        ),
        (
            Video,
            json!({ "video": { "url": "https://f/v", "content_type": "video/mp4" } }),
            &["https://f/v"],
        ),
        (
            Speech,
            json!({ "audio": { "url": "https://f/s" }, "duration_ms": 5 }),
            &["https://f/s"],
        ),
    ] {
        let desk = following(completed(), reply(200, output)).await;
        let open = simple(&desk);
        assert_eq!(refused(open.poll(TICKET, kind, 2).await), []);
        assert_eq!(open.shelf.links(), expected);
        assert_eq!(
            desk.asked()[1].header("authorization"),
            Some(format!("Key {KEY}").as_str())
        );
    }
    // One of two is black.
    let output = json!({ "images": [{ "url": "https://f/a" }, { "url": "https://f/b" }], "has_nsfw_concepts": [true, false] });
    let desk = following(completed(), reply(200, output)).await;
    let open = simple(&desk);
    assert_eq!(
        refused(open.poll(TICKET, Image, 2).await),
        [UpstreamErrorKind::Moderated]
    );
    assert_eq!(open.shelf.links(), ["https://f/b"]);
    let early = reply(400, json!({ "detail": "Request is still in progress" }));
    let desk = following(completed(), early).await;
    let polled = simple(&desk).poll(TICKET, Image, 1).await;
    assert!(matches!(polled, Ok(Polled::Pending(None))), "{polled:?}");
}

#[tokio::test]
async fn requests_end_badly_in_many_ways() {
    use UpstreamErrorKind::*;
    let detail = |kind: &str| json!({ "detail": [{ "loc": ["body", "prompt"], "msg": "in words", "type": kind }] });
    let error = |more: Value| {
        let mut whole = json!({ "status": "COMPLETED", "error": "in words" });
        whole
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap());
        reply(200, whole)
    };
    for (state, response, expected, words) in [
        (error(json!({})), None, Failed, "in words"),
        (
            error(json!({ "error_type": "content_policy_violation" })),
            None,
            Moderated,
            "in words",
        ),
        (
            error(json!({ "error_type": "runner_disconnected" })),
            None,
            Unavailable,
            "in words",
        ),
        (
            completed(),
            reply(422, detail("content_policy_violation")),
            Moderated,
            "prompt: in words",
        ),
        (
            completed(),
            reply(422, detail("image_load_error")),
            Rejected,
            "prompt: in words",
        ),
        (
            completed(),
            with_header(
                reply(500, json!({ "detail": "oops" })),
                "x-fal-request-id",
                "r",
            ),
            Unavailable,
            "oops",
        ),
        (
            completed(),
            with_header(
                reply(503, json!({ "detail": "oops" })),
                "x-fal-request-id",
                "r",
            ),
            Unavailable,
            "oops",
        ),
        (
            completed(),
            reply(404, json!({ "detail": "gone" })),
            Failed,
            "gone",
        ),
        (
            completed(),
            reply(200, json!({ "images": [] })),
            Failed,
            "the upstream's task ended without a result",
        ),
        (
            reply(404, json!({ "detail": "unknown" })),
            None,
            Failed,
            "unknown",
        ),
    ] {
        let desk = following(state, response).await;
        let error = failure(simple(&desk).poll(TICKET, Image, 1).await);
        assert_eq!((error.kind, error.message.as_str()), (expected, words));
    }
    for (state, response, expected) in [
        (
            completed(),
            raw(503, "text/html", "<html>nginx</html>"),
            Unavailable,
        ),
        (completed(), raw(200, "text/html", "<html>"), Unavailable),
        (completed(), None, Unavailable),
        (
            completed(),
            reply(429, json!({ "detail": "x" })),
            RateLimited,
        ),
        (raw(502, "text/html", ""), None, Unavailable),
        (reply(401, json!({ "detail": "x" })), None, KeyRejected),
        (None, None, Unavailable),
    ] {
        let desk = following(state, response).await;
        let error = simple(&desk).poll(TICKET, Image, 1).await.unwrap_err();
        assert_eq!(error.kind, expected);
    }
}

#[tokio::test]
async fn every_refusal_has_its_kind() {
    use UpstreamErrorKind::*;
    let said = |status: u16, words: &str| reply(status, json!({ "detail": words }));
    let moderated =
        json!({ "detail": [{ "loc": ["body"], "msg": "no", "type": "content_policy_violation" }] });
    for (answer, expected, words) in [
        (said(400, "in words"), Rejected, "in words"),
        (said(422, "in words"), Rejected, "in words"),
        (reply(422, moderated), Moderated, "no"),
        (said(401, "in words"), KeyRejected, "in words"),
        (said(403, "in words"), KeyRejected, "in words"),
        (
            said(403, "User is locked. Reason: Exhausted balance."),
            QuotaExhausted,
            "User is locked. Reason: Exhausted balance.",
        ),
        (said(404, "in words"), ModelNotFound, "in words"),
        (said(408, "in words"), Unavailable, "in words"),
        (said(429, "in words"), RateLimited, "in words"),
        (said(500, "in words"), Unavailable, "in words"),
        (said(504, "in words"), Unavailable, "in words"),
        (
            raw(200, "text/html", "<html>"),
            Unavailable,
            "the upstream answered with HTTP status 200",
        ),
        (
            None,
            OutcomeUnknown,
            "the connection to the upstream was lost before its answer was complete",
        ),
    ] {
        let desk = Desk::saying([answer]).await;
        let error = simple(&desk)
            .image(&image_job(json!({})), &[], None)
            .await
            .unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (expected, words));
        assert_eq!(desk.asked().len(), 1);
    }
}

#[tokio::test]
async fn what_waits_can_be_cancelled() {
    let desk = Desk::saying([
        reply(202, json!({ "status": "CANCELLATION_REQUESTED" })),
        reply(400, json!({ "status": "ALREADY_COMPLETED" })),
        reply(404, json!({ "status": "NOT_FOUND" })),
        reply(401, json!({ "detail": "x" })),
    ])
    .await;
    let open = simple(&desk);
    for _ in 0..3 {
        open.cancel(TICKET, Image).await.unwrap();
    }
    assert!(open.cancel(TICKET, Image).await.is_err());
    assert_eq!(desk.lines()[0], "PUT /fal-ai/x/requests/r-1/cancel");
}

#[test]
fn options_are_checked_at_the_start() {
    let mut channel = channel("fal", "https://x".to_owned(), "m", "fal-ai/veo3.1");
    assert_eq!(check(&channel), Ok(()));
    channel.models[0].upstream = "a/b".to_owned();
    assert!(
        check(&channel)
            .unwrap_err()
            .contains("`options.input` must say")
    );
    assert!(
        check(&Channel::new("main", "fal"))
            .unwrap_err()
            .contains("must name its `models`")
    );
}

async fn faked(upstream: &str, options: Value) -> (Fake, Desktop) {
    let fake = fake(Provider::Fal, Options::default()).await;
    let mut channel = channel("fal", fake.base_url(), "m", upstream);
    channel.models[0].options = options.as_object().cloned().unwrap();
    (fake, Desktop::open(channel))
}

#[tokio::test]
async fn a_fake_takes_every_preset() {
    let pictures = Pictures::new();
    let files = [
        pictures.real("image_urls[0]"),
        pictures.real("image_urls[1]"),
    ];
    let wide =
        json!({ "pixels": { "width": 2560, "height": 1440 }, "ratio": "16:9", "tier": "2K" });
    for (name, references) in [
        ("doubao-seedream-4.5", 2),
        ("gemini-2.5-flash-image-preview", 1),
        ("gemini-3-pro-image-preview", 2),
        ("grok-imagine-1.0-partner", 0),
    ] {
        for files in [&files[..0], &files[..references]] {
            let (fake, open) = faked(name, json!({})).await;
            let job =
                image_job(json!({ "n": 3, "size": wide, "seed": 5, "prompt": "[[fake:polls=2]]" }));
            let provider_job_id = provider_job_id(open.image(&job, files, None).await);
            assert_eq!(
                refused(open.end(&provider_job_id, Image, 3).await),
                [],
                "{name}"
            );
            assert_eq!(open.shelf.links().len(), 3, "{name}");
            assert_eq!(rules_broken(&fake), [] as [&str; 0], "{name}");
        }
    }
    for (name, frames) in [
        ("seedance-1.0-fast", 1),
        ("seedance-1.0-pro", 0),
        ("veo-3.1-flash", 1),
        ("veo-3.1-pro", 1),
    ] {
        for files in [&files[..0], &files[..frames]] {
            let (fake, open) = faked(name, json!({})).await;
            let job = video_job(
                json!({ "seconds": 8, "seed": 5, "camera_fixed": true, "generate_audio": true }),
            );
            let provider_job_id = provider_job_id(open.video(&job, files).await);
            assert_eq!(
                refused(open.end(&provider_job_id, Video, 1).await),
                [],
                "{name}"
            );
            assert_eq!(open.shelf.links().len(), 1, "{name}");
            assert_eq!(rules_broken(&fake), [] as [&str; 0], "{name}");
        }
    }
    let any = json!({ "input": { "prompt": "text", "voice": "voice", "speed": "speed", "language": "language" } });
    for (name, options) in [("native-v3", json!({})), ("fal-ai/any/speech", any)] {
        let (fake, open) = faked(name, options).await;
        let job = speech_job(json!({ "voice": "v", "speed": 1.5, "language": "en" }));
        let provider_job_id = provider_job_id(open.speech(&job).await);
        assert_eq!(refused(open.end(&provider_job_id, Speech, 1).await), []);
        assert_eq!(rules_broken(&fake), [] as [&str; 0]);
    }
}
