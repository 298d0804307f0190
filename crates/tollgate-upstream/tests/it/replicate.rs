//! Replicate: what models are sent by their mapping, and what becomes of predictions (replicate.com/docs).

use serde_json::{Value, json};
use tollgate_core::TaskKind::{Image, Speech, Video};
use tollgate_fakes::{Fake, Options, Provider};
use tollgate_upstream::{Channel, Polled, UpstreamErrorKind};

use crate::desk::{
    Asked, Desk, Desktop, KEY, Pictures, Reply, channel, check, failure, fake, image_job,
    provider_job_id, raw, refused, reply, rules_broken, speech_job, video_job, with_header,
};

fn at(desk: &Desk, name: &str, upstream: &str, options: Value) -> Channel {
    let mut channel = channel("replicate", desk.url("/v1"), name, upstream);
    channel.models[0].options = options.as_object().cloned().unwrap();
    channel
}

fn open(desk: &Desk, upstream: &str, options: Value) -> Desktop {
    Desktop::open(at(desk, "m", upstream, options))
}

fn simple(desk: &Desk) -> Desktop {
    open(desk, "a/b", json!({ "input": { "prompt": "prompt" } }))
}

fn prediction(id: &str, more: Value) -> Reply {
    let mut whole = json!({
        "id": id, "status": "starting", "output": null, "error": null,
        "urls": { "get": "https://api.replicate.com/v1/predictions/x" },
    });
    let more = more.as_object().cloned().unwrap();
    whole.as_object_mut().unwrap().extend(more);
    reply(201, whole)
}

#[tokio::test]
async fn a_prediction_is_asked_for_where_its_model_is() {
    for (upstream, line, version) in [
        ("a/b", "POST /v1/models/a/b/predictions", None),
        ("a/b:0f0f", "POST /v1/predictions", Some("a/b:0f0f")),
        ("0f0f", "POST /v1/predictions", Some("0f0f")),
        (
            "deployments/me/x",
            "POST /v1/deployments/me/x/predictions",
            None,
        ),
    ] {
        let desk = Desk::saying([prediction("p-1", json!({}))]).await;
        let options = json!({ "input": { "prompt": "text" }, "constants": { "steps": 4 } });
        let open = open(&desk, upstream, options);
        let started = open.image(&image_job(json!({})), &[], None).await;
        assert_eq!(provider_job_id(started), r#"["p-1"]"#);
        let asked = &desk.asked()[0];
        assert_eq!(asked.line, line);
        assert_eq!(asked.header("content-type"), Some("application/json"));
        assert_eq!(
            asked.header("authorization"),
            Some(format!("Bearer {KEY}").as_str())
        );
        let mut expected = json!({ "input": { "steps": 4, "text": "a red boat" } });
        if let Some(version) = version {
            expected["version"] = version.into();
        }
        assert_eq!(asked.json(), expected);
    }
}

#[tokio::test]
async fn well_known_models_need_no_options() {
    let desk = Desk::saying([prediction("p-1", json!({}))]).await;
    let pictures = Pictures::new();
    let files = [
        pictures.file("image_urls[0]", b"one"),
        pictures.file("image_urls[1]", b"two"),
    ];
    let open = |name: &str| Desktop::open(at(&desk, name, name, json!({})));
    let job = image_job(json!({
        "n": 3, "extra": { "sequential_image_generation": "auto" },
        "size": { "pixels": { "width": 5404, "height": 3040 }, "ratio": "16:9", "tier": "4K" },
    }));
    open("doubao-seedream-4.5")
        .image(&job, &files, None)
        .await
        .unwrap();
    let frame = [pictures.file("images[0]", b"f")];
    let job = video_job(json!({ "seconds": 7, "negative_prompt": "fog", "generate_audio": false }));
    open("veo-3.1-pro").video(&job, &frame).await.unwrap();
    let job = speech_job(json!({ "voice": "Wise_Woman", "speed": 1.5, "language": "EN" }));
    open("native-v3").speech(&job).await.unwrap();
    let asked = desk.asked();
    let expected = [
        (
            "POST /v1/models/bytedance/seedream-4.5/predictions",
            json!({ "prompt": "a red boat", "size": "4K", "aspect_ratio": "16:9", "max_images": 3,
                "sequential_image_generation": "auto",
                "image_input": ["data:image/png;base64,b25l", "data:image/png;base64,dHdv"] }),
        ),
        (
            "POST /v1/models/google/veo-3.1/predictions",
            json!({ "prompt": "a red boat", "negative_prompt": "fog", "image": "data:image/png;base64,Zg==",
                "duration": 6, "resolution": "720p", "aspect_ratio": "16:9", "generate_audio": false }),
        ),
        (
            "POST /v1/models/minimax/speech-02-hd/predictions",
            json!({ "text": "Hello.", "voice_id": "Wise_Woman", "speed": 1.5, "language_boost": "English" }),
        ),
    ];
    for (asked, (line, input)) in asked.iter().zip(expected) {
        assert_eq!(asked.line, line);
        assert_eq!(asked.json(), json!({ "input": input }));
    }
}

#[tokio::test]
async fn what_a_model_is_not_asked_for_is_told() {
    let desk = Desk::saying([prediction("p-1", json!({}))]).await;
    let open = Desktop::open(at(&desk, "native-v3", "native-v3", json!({})));
    let job = speech_job(json!({
        "speed": 4.0, "language": "tlh", "instructions": "softly", "external_task_id": "mine",
    }));
    open.speech(&job).await.unwrap();
    assert_eq!(
        open.shelf.record_adjustment(),
        [
            "speed: 4.0 → 2",
            r#"language: "tlh" → null"#,
            r#"instructions: "softly" → null"#,
        ]
    );
    let input = json!({ "text": "Hello.", "speed": 2 });
    assert_eq!(desk.asked()[0].json(), json!({ "input": input }));
}

#[tokio::test]
async fn models_that_make_one_picture_are_asked_several_times() {
    let desk = Desk::answering(
        |asked: &Asked| match asked.json()["input"]["seed"].as_u64() {
            Some(8) => reply(
                422,
                json!({ "title": "Input validation failed", "detail": "seed: bad" }),
            ),
            Some(seed) => prediction(&format!("p-{seed}"), json!({})),
            None => None,
        },
    )
    .await;
    let options = json!({ "input": { "prompt": "prompt", "seed": "seed" } });
    let open = open(&desk, "a/b", options);
    let started = open
        .image(&image_job(json!({ "n": 3, "seed": 7 })), &[], None)
        .await;
    let provider_job_id = provider_job_id(started);
    let entries: Value = serde_json::from_str(&provider_job_id).unwrap();
    assert_eq!(
        entries,
        json!(["p-7", { "refused": "seed: bad", "moderated": false }, "p-9"])
    );

    let state = |status: &str, name: &str| {
        prediction(
            "p",
            json!({ "status": status, "output": [format!("https://d/{name}.png")] }),
        )
    };
    let asking = |first: &'static str, second: &'static str| {
        Desk::answering(move |asked: &Asked| match asked.line.as_str() {
            "GET /v1/predictions/p-7" => state(first, "a"),
            "GET /v1/predictions/p-9" => state(second, "b"),
            _ => None,
        })
    };
    let desk = asking("processing", "succeeded").await;
    let polled = simple(&desk).poll(&provider_job_id, Image, 3).await;
    assert!(matches!(polled, Ok(Polled::Pending(None))), "{polled:?}");
    assert_eq!(desk.asked().len(), 1, "the others need not be asked for");
    let desk = asking("succeeded", "processing").await;
    let polled = simple(&desk).poll(&provider_job_id, Image, 3).await;
    assert!(
        matches!(polled, Ok(Polled::Pending(Some(66)))),
        "{polled:?}"
    );
    let desk = asking("succeeded", "succeeded").await;
    let open = simple(&desk);
    assert_eq!(
        refused(open.poll(&provider_job_id, Image, 3).await),
        [UpstreamErrorKind::Failed]
    );
    assert_eq!(open.shelf.links(), ["https://d/a.png", "https://d/b.png"]);
    open.cancel(&provider_job_id, Image).await.unwrap_err();
    assert_eq!(
        desk.lines().last().unwrap(),
        "POST /v1/predictions/p-7/cancel"
    );
}

#[tokio::test]
async fn a_number_of_pictures_is_shared_out_among_calls() {
    let desk = Desk::saying([prediction("p", json!({}))]).await;
    let options = json!({ "input": { "prompt": "p", "n": { "to": "num_outputs", "most": 4 } } });
    let open = open(&desk, "a/b", options);
    open.image(&image_job(json!({ "n": 10 })), &[], None)
        .await
        .unwrap();
    let mut numbers: Vec<u64> = desk
        .asked()
        .iter()
        .filter_map(|asked| asked.json()["input"]["num_outputs"].as_u64())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 4, 4]);
}

#[tokio::test]
async fn a_picture_that_the_model_cannot_take_is_not_left_out() {
    let pictures = Pictures::new();
    let files = [pictures.file("a", b"1"), pictures.file("b", b"2")];
    for (input, words) in [
        (json!({ "prompt": "p" }), "takes no `references`, 2 came"),
        (
            json!({ "prompt": "p", "references": { "to": "image", "as": "first" } }),
            "takes 1 of `references`, 2 came",
        ),
    ] {
        let desk = Desk::saying([prediction("p", json!({}))]).await;
        let open = open(&desk, "a/b", json!({ "input": input }));
        let error = open
            .image(&image_job(json!({})), &files, None)
            .await
            .unwrap_err();
        assert_eq!(error.kind, UpstreamErrorKind::UnsupportedByChannel);
        assert!(error.message.contains(words), "{error}");
        assert!(desk.asked().is_empty());
    }
}

#[tokio::test]
async fn every_refusal_has_its_kind() {
    use UpstreamErrorKind::*;
    let said = |status: u16| {
        reply(
            status,
            json!({ "title": "T", "detail": "in words", "status": status }),
        )
    };
    for (answer, expected, words) in [
        (said(400), Rejected, "in words"),
        (said(422), Rejected, "in words"),
        (said(401), KeyRejected, "in words"),
        (said(402), QuotaExhausted, "in words"),
        (said(403), ModelNotFound, "in words"),
        (said(404), ModelNotFound, "in words"),
        (
            with_header(said(429), "retry-after", "9"),
            RateLimited,
            "in words",
        ),
        (said(500), Unavailable, "in words"),
        (
            reply(503, json!({ "title": "Only a title" })),
            Unavailable,
            "Only a title",
        ),
        (
            raw(502, "text/html", "<html>"),
            Unavailable,
            "the upstream answered with HTTP status 502",
        ),
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
        let wait = error.retry_after.map(|wait| wait.as_secs());
        assert_eq!(wait, (expected == RateLimited).then_some(9));
        assert_eq!(desk.asked().len(), 1);
    }
}

#[tokio::test]
async fn predictions_end_in_many_ways() {
    use UpstreamErrorKind::*;
    let poll = async |answer: Reply| {
        let desk = Desk::saying([answer]).await;
        let open = simple(&desk);
        let polled = open.poll(r#"["p-1"]"#, Video, 1).await;
        (polled, open.shelf.links())
    };
    for status in ["starting", "processing"] {
        let (polled, _) = poll(prediction("p-1", json!({ "status": status }))).await;
        assert!(matches!(polled, Ok(Polled::Pending(None))), "{polled:?}");
    }
    for output in [
        json!("https://d/a.mp4"),
        json!(["https://d/a.mp4"]),
        json!({ "video": "https://d/a.mp4" }),
    ] {
        let answer = prediction("p-1", json!({ "status": "succeeded", "output": output }));
        let (polled, links) = poll(answer).await;
        assert_eq!(
            (refused(polled), links),
            (vec![], vec!["https://d/a.mp4".to_owned()])
        );
    }
    let failed = |error: &str| json!({ "status": "failed", "error": error });
    for (more, expected) in [
        (failed("NSFW content detected"), Moderated),
        (
            failed("The input was flagged as sensitive. (E005)"),
            Moderated,
        ),
        (
            failed("Prediction interrupted; please retry (code: PA)"),
            Unavailable,
        ),
        (failed("CUDA out of memory"), Failed),
        (json!({ "status": "failed" }), Failed),
        (json!({ "status": "canceled" }), Failed),
        (json!({ "status": "aborted" }), Unavailable),
        (
            json!({ "status": "succeeded", "output": null, "data_removed": true }),
            Failed,
        ),
    ] {
        let (polled, _) = poll(prediction("p-1", more.clone())).await;
        assert_eq!(failure(polled).kind, expected, "{more}");
    }
    let (polled, _) = poll(reply(404, json!({ "detail": "not found" }))).await;
    assert_eq!(failure(polled).kind, Failed);
    for (answer, expected) in [
        (raw(502, "text/html", ""), Unavailable),
        (reply(401, json!({ "detail": "x" })), KeyRejected),
        (None, Unavailable),
    ] {
        let (polled, _) = poll(answer).await;
        assert_eq!(polled.unwrap_err().kind, expected);
    }
}

#[tokio::test]
async fn a_configured_output_is_where_the_results_are() {
    let output = json!({ "video": "https://d/preview", "final": [{ "u": "https://d/a" }, { "u": "https://d/b" }] });
    let desk = Desk::saying([prediction(
        "p",
        json!({ "status": "succeeded", "output": output }),
    )])
    .await;
    let options = json!({ "input": { "prompt": "p" }, "output": "final[].u" });
    let open = open(&desk, "a/b", options);
    assert_eq!(refused(open.poll(r#"["p"]"#, Image, 2).await), []);
    assert_eq!(open.shelf.links(), ["https://d/a", "https://d/b"]);
}

#[tokio::test]
async fn what_runs_can_be_cancelled() {
    let desk = Desk::saying([
        prediction("p-1", json!({ "status": "canceled" })),
        reply(404, json!({ "detail": "x" })),
    ])
    .await;
    let open = simple(&desk);
    open.cancel(r#"["p-1","p/2"]"#, Speech).await.unwrap();
    assert_eq!(
        desk.lines(),
        [
            "POST /v1/predictions/p-1/cancel",
            "POST /v1/predictions/p%2F2/cancel"
        ]
    );
}

#[test]
fn options_are_checked_at_the_start() {
    let with = |upstream: &str, options: Value| {
        let mut channel = channel("replicate", "https://x".to_owned(), "m", upstream);
        channel.models[0].options = options.as_object().cloned().unwrap();
        check(&channel)
    };
    assert_eq!(with("google/veo-3.1", json!({})), Ok(()));
    for (upstream, options, words) in [
        (
            "a/b",
            json!({}),
            "`options.input` must say which fields \"a/b\" has",
        ),
        ("a/b", json!({ "inputs": {} }), "unknown option \"inputs\""),
        (
            "a/b",
            json!({ "input": { "size": { "to": "s", "as": "pixels" } } }),
            "`options.input.size.as` must be",
        ),
    ] {
        let error = with(upstream, options).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let none = Channel::new("main", "replicate");
    assert!(check(&none).unwrap_err().contains("must name its `models`"));
}

async fn faked(upstream: &str, options: Value) -> (Fake, Desktop) {
    let fake = fake(Provider::Replicate, Options::default()).await;
    let mut channel = channel("replicate", fake.base_url(), "m", upstream);
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
        ("imagen-4.0-partner", 0),
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
        ("seedance-1.0-mini", 2),
        ("seedance-1.0-pro", 2),
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
    let (name, options) = ("native-v3", json!({}));
    let (fake, open) = faked(name, options).await;
    let job = speech_job(json!({ "voice": "v", "speed": 1.5, "language": "en" }));
    let provider_job_id = provider_job_id(open.speech(&job).await);
    assert_eq!(refused(open.end(&provider_job_id, Speech, 1).await), []);
    assert_eq!(rules_broken(&fake), [] as [&str; 0]);
}
