//! Pictures, films and speech of OpenAI and of servers like it: what goes over the wire, and what each answer means.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_media::image::ImageFormat;
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::{Polled, UpstreamErrorKind};

use crate::booth::{
    Booth, Part, Thing, base64, breaks_off, bytes_of, film, form_of, json_of, picture, reference,
    says, speech,
};
use crate::vendor::{KEY, Vendor, answer, channel};

use UpstreamErrorKind::{
    Failed, Interrupted, KeyRejected, ModelNotFound, Moderated, OutcomeUnknown, QuotaExhausted,
    RateLimited, Rejected, Unavailable, UnsupportedByChannel,
};

/// An answer with these pictures.
fn pictures(all: &[&[u8]]) -> Value {
    let data: Vec<_> = all
        .iter()
        .map(|bytes| json!({"b64_json": base64(bytes)}))
        .collect();
    json!({"created": 1, "output_format": "png", "data": data, "usage": {"total_tokens": 7}})
}

fn openai(vendor: &Vendor, name: &str) -> Booth {
    Booth::at(vendor, "openai", name)
}

/// A channel whose entry for the model has these options.
fn with_options(vendor: &Vendor, name: &str, upstream: &str, options: Value) -> Booth {
    let mut model = ChannelModel::new(name, upstream);
    model.options = options.as_object().unwrap().clone();
    let mut channel = channel("openai", vendor.url("/v1"));
    channel.models = vec![model.clone()];
    Booth::of(channel, model)
}

#[tokio::test]
async fn pictures_are_asked_for_in_json_and_come_as_base64() {
    let vendor = Vendor::answering(|_| says(200, &pictures(&[b"one", b"two"]))).await;
    let booth = openai(&vendor, "gpt-image-2-official");
    let job = picture(
        "gpt-image-2",
        2,
        json!({"quality": "high", "background": "auto", "moderation": "low", "output_format": "webp",
            "output_compression": 60}),
    );
    assert_eq!(booth.draw(&job).await.unwrap(), []);
    assert_eq!(booth.kept.files(), ["one", "two"].map(Bytes::from));
    let [seen] = <[_; 1]>::try_from(vendor.seen()).unwrap();
    assert_eq!(seen.line, "POST /v1/images/generations");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    let expected = json!({
        "model": "gpt-image-2", "prompt": "a cat, 猫", "size": "1024x1024", "quality": "high",
        "background": "auto", "moderation": "low", "output_format": "webp", "output_compression": 60, "n": 2,
    });
    assert_eq!(json_of(&seen), expected);
}

#[tokio::test]
async fn references_and_mask_go_as_a_form() {
    let vendor = Vendor::answering(|_| says(200, &pictures(&[b"one"]))).await;
    let mut booth = openai(&vendor, "gpt-image-1.5-official");
    let (png, jpeg) = (ImageFormat::Png, ImageFormat::Jpeg);
    let first = reference("edit", png, (32, 32));
    let second = reference("edit", jpeg, (16, 16));
    let job = picture("gpt-image-1", 1, json!({"quality": "auto"}));
    let texts = || {
        vec![
            Part::text("model", "gpt-image-1.5"),
            Part::text("prompt", "a cat, 猫"),
            Part::text("size", "1024x1024"),
            Part::text("quality", "auto"),
            Part::text("output_format", "png"),
            Part::text("n", "1"),
        ]
    };
    booth.references = vec![first.clone()];
    booth.mask = Some(reference("mask", png, (32, 32)));
    booth.draw(&job).await.unwrap();
    booth.references.push(second.clone());
    booth.mask = None;
    booth.draw(&job).await.unwrap();
    let [one, two] = <[_; 2]>::try_from(vendor.seen()).unwrap();
    assert_eq!(one.line, "POST /v1/images/edits");
    let length: usize = one.headers["content-length"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(length, one.body.len());
    let mut expected = texts();
    expected.push(Part::file(
        "image",
        "image-1.png",
        "image/png",
        bytes_of(&first),
    ));
    let mask = bytes_of(&reference("mask", png, (32, 32)));
    expected.push(Part::file("mask", "mask.png", "image/png", mask));
    assert_eq!(form_of(&one), expected);
    let mut expected = texts();
    expected.push(Part::file(
        "image[]",
        "image-1.png",
        "image/png",
        bytes_of(&first),
    ));
    expected.push(Part::file(
        "image[]",
        "image-2.jpg",
        "image/jpeg",
        bytes_of(&second),
    ));
    assert_eq!(form_of(&two), expected);
}

#[tokio::test]
async fn a_gif_goes_as_png() {
    let vendor = Vendor::answering(|_| says(200, &pictures(&[b"one"]))).await;
    let mut booth = openai(&vendor, "gpt-image-2-official");
    booth.references = vec![reference("moving", ImageFormat::Gif, (24, 8))];
    booth
        .draw(&picture("gpt-image-2", 1, json!({})))
        .await
        .unwrap();
    let parts = form_of(&vendor.seen()[0]);
    let part = parts.last().unwrap();
    assert_eq!(part.file_name.as_deref(), Some("image-1.png"));
    let there = image::load_from_memory(&part.bytes).unwrap();
    assert_eq!((there.width(), there.height()), (24, 8));
}

#[tokio::test]
async fn servers_like_it_are_sent_the_least_and_may_answer_with_links() {
    let vendor = Vendor::answering(|_| {
        let uri = format!("data:image/png;base64,{}", base64(b"three"));
        says(
            200,
            &json!({"data": [{"url": "https://cdn.example/1.png"}, {"url": "/files/2.png"}, {"url": uri}]}),
        )
    })
    .await;
    let booth = openai(&vendor, "my-flux");
    let job = picture(
        "seedream-4.5",
        3,
        json!({"quality": "high", "watermark": false, "seed": 4}),
    );
    assert_eq!(booth.draw(&job).await.unwrap(), []);
    let expected = json!({"model": "my-flux", "prompt": "a cat, 猫", "size": "1024x1024", "n": 3});
    assert_eq!(json_of(&vendor.seen()[0]), expected);
    let things = booth.kept.things();
    let Thing::Link {
        url,
        headers,
        is_own,
    } = &things[0]
    else {
        panic!("{things:?}");
    };
    assert_eq!(url, "https://cdn.example/1.png");
    assert!(headers.is_empty() && !is_own);
    let Thing::Link {
        url,
        headers,
        is_own,
    } = &things[1]
    else {
        panic!("{things:?}");
    };
    assert_eq!(*url, vendor.url("/files/2.png"));
    assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
    assert!(headers["authorization"].is_sensitive() && *is_own);
    assert_eq!(things[2], Thing::Bytes("three".into()));
}

#[tokio::test]
async fn the_option_says_which_fields_a_model_takes() {
    let vendor = Vendor::answering(|_| says(200, &pictures(&[b"one"]))).await;
    let job = picture("gpt-image-2", 1, json!({"quality": "high"}));
    let options = json!({"images": "generic"});
    let booth = with_options(&vendor, "gpt-image-2-official", "sdxl", options);
    booth.draw(&job).await.unwrap();
    let sent = json_of(&vendor.seen()[0]);
    let expected = json!({"model": "sdxl", "prompt": "a cat, 猫", "size": "1024x1024", "n": 1});
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn n_is_split_where_a_server_makes_fewer_at_once() {
    let vendor = Vendor::answering(|seen| {
        let body: Value = serde_json::from_slice(&seen.body).unwrap();
        let one: &[&[u8]] = match body["n"].as_u64() {
            Some(2) => &[b"one", b"two"],
            _ => &[b"three"],
        };
        says(200, &pictures(one))
    })
    .await;
    let options = json!({"images_per_call": 2});
    let booth = with_options(&vendor, "seedream", "sdxl", options);
    let job = picture("seedream-4.5", 5, json!({}));
    assert_eq!(booth.draw(&job).await.unwrap(), []);
    assert_eq!(vendor.seen().len(), 3);
    let expected = ["one", "one", "three", "two", "two"];
    assert_eq!(booth.kept.files(), expected.map(Bytes::from));
}

#[tokio::test]
async fn k_of_n_is_what_there_is() {
    let job = picture("gpt-image-2", 4, json!({}));
    // Fewer than asked for, without a word.
    let vendor = Vendor::answering(|_| says(200, &pictures(&[b"one", b"two"]))).await;
    let booth = openai(&vendor, "gpt-image-2-official");
    assert_eq!(booth.draw(&job).await.unwrap(), []);
    assert_eq!(booth.kept.files().len(), 2);
    // Some with an error of their own.
    let vendor = Vendor::answering(|_| {
        let mut all = pictures(&[b"one"]);
        let data = all["data"].as_array_mut().unwrap();
        data.push(json!({"error": {"code": "moderation_blocked", "message": "no"}}));
        data.push(json!({"error": {"code": "server_error", "message": "sorry"}}));
        says(200, &all)
    })
    .await;
    let booth = openai(&vendor, "gpt-image-2-official");
    assert_eq!(booth.draw(&job).await.unwrap(), [Moderated, Unavailable]);
    // More than asked for.
    let vendor = Vendor::answering(|_| says(200, &pictures(&[b"1", b"2", b"3", b"4", b"5"]))).await;
    let booth = openai(&vendor, "gpt-image-2-official");
    assert_eq!(booth.draw(&job).await.unwrap(), []);
    assert_eq!(booth.kept.files().len(), 4);
    // One that is no picture.
    let vendor = Vendor::answering(|_| says(200, &pictures(&[b"1", b"2"]))).await;
    let booth = openai(&vendor, "gpt-image-2-official");
    *booth.kept.refuses.lock().unwrap() = 1;
    assert_eq!(booth.draw(&job).await.unwrap(), [Failed]);
    assert_eq!(booth.kept.files(), [Bytes::from("2")]);
}

#[tokio::test]
async fn a_call_that_fails_while_others_succeed_is_refused_items() {
    let vendor = Vendor::answering(|seen| {
        let body: Value = serde_json::from_slice(&seen.body).unwrap();
        match body["n"].as_u64() {
            Some(3) => says(200, &pictures(&[b"1", b"2", b"3"])),
            _ => says(
                429,
                &json!({"error": {"message": "slow", "code": "rate_limit_exceeded"}}),
            ),
        }
    })
    .await;
    let booth = with_options(&vendor, "s", "sdxl", json!({"images_per_call": 3}));
    let job = picture("seedream-4.5", 5, json!({}));
    assert_eq!(booth.draw(&job).await.unwrap(), [RateLimited, RateLimited]);
    assert_eq!(booth.kept.files().len(), 3);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_asked_again_blindly() {
    let job = picture("gpt-image-2", 2, json!({}));
    let whole = pictures(&[b"one one", b"two two"]).to_string();
    let (cut, _) = whole.split_at(whole.find(&base64(b"two two")).unwrap() + 3);
    let cut = cut.to_owned();
    let vendor = Vendor::answering(move |_| breaks_off(cut.clone())).await;
    let booth = openai(&vendor, "gpt-image-2-official");
    assert_eq!(booth.draw(&job).await.unwrap(), [OutcomeUnknown]);
    assert_eq!(booth.kept.files(), [Bytes::from("one one")]);
    let vendor = Vendor::answering(|_| breaks_off("{\"data\":[{\"b64_json\":\"AAAA".into())).await;
    let booth = openai(&vendor, "gpt-image-2-official");
    assert_eq!(booth.draw(&job).await.unwrap_err().kind, OutcomeUnknown);
    assert!(booth.kept.things().is_empty());
    assert_eq!(vendor.seen().len(), 1);
}

#[tokio::test]
async fn an_answer_that_ends_in_the_middle_of_a_picture_brings_none() {
    let cut = "{\"data\":[{\"b64_json\":\"QUJD";
    let vendor = Vendor::answering(move |_| answer(200, "application/json", cut)).await;
    let booth = openai(&vendor, "gpt-image-2-official");
    let job = picture("gpt-image-2", 1, json!({}));
    assert_eq!(booth.draw(&job).await.unwrap_err().kind, OutcomeUnknown);
    assert!(booth.kept.things().is_empty());
}

#[tokio::test]
async fn every_refusal_has_its_kind() {
    let error = |code: &str, message: &str| json!({"error": {"message": message, "type": "x", "param": null, "code": code}});
    let job = picture("gpt-image-2", 2, json!({}));
    for (status, body, expected) in [
        (400, error("invalid_value", "Invalid size"), Rejected),
        (
            400,
            error("unknown_parameter", "Unknown parameter: 'y'."),
            UnsupportedByChannel,
        ),
        (
            400,
            error(
                "moderation_blocked",
                "Rejected by the safety system. safety_violations=[violence].",
            ),
            Moderated,
        ),
        (
            401,
            error("invalid_api_key", "Incorrect API key provided"),
            KeyRejected,
        ),
        (
            403,
            error(
                "",
                "Your organization must be verified to use the model `gpt-image-2`.",
            ),
            ModelNotFound,
        ),
        (
            404,
            error("model_not_found", "The model does not exist"),
            ModelNotFound,
        ),
        (
            429,
            error("rate_limit_exceeded", "Rate limit reached"),
            RateLimited,
        ),
        (
            429,
            error("insufficient_quota", "You exceeded your current quota"),
            QuotaExhausted,
        ),
        (
            500,
            error("server_error", "The server had an error"),
            Unavailable,
        ),
        (503, error("slow_down", "Slow down"), Unavailable),
        (200, error("insufficient_quota", "no money"), QuotaExhausted),
        (200, json!({"data": []}), Unavailable),
        (200, json!({"created": 1}), Unavailable),
    ] {
        let name = body.to_string();
        let vendor = Vendor::answering(move |_| says(status, &body)).await;
        let booth = openai(&vendor, "gpt-image-2-official");
        let refused = booth.draw(&job).await.unwrap_err();
        assert_eq!(refused.kind, expected, "{status} {name}");
        assert!(booth.kept.things().is_empty());
    }
    for page in ["<html>502</html>", ""] {
        for status in [200, 502] {
            let vendor = Vendor::answering(move |_| answer(status, "text/html", page)).await;
            let booth = openai(&vendor, "gpt-image-2-official");
            assert_eq!(booth.draw(&job).await.unwrap_err().kind, Unavailable);
        }
    }
}

#[tokio::test]
async fn a_refusal_keeps_the_words_the_wait_and_the_request_but_no_key() {
    let vendor = Vendor::answering(|_| {
        let message = format!("Slow down, {KEY}");
        let mut reply = says(
            429,
            &json!({"error": {"message": message, "code": "rate_limit_exceeded"}}),
        );
        reply
            .headers_mut()
            .insert("retry-after", "7".parse().unwrap());
        reply
            .headers_mut()
            .insert("x-request-id", "req_12".parse().unwrap());
        reply
    })
    .await;
    let booth = openai(&vendor, "gpt-image-2-official");
    let refused = booth
        .draw(&picture("gpt-image-2", 1, json!({})))
        .await
        .unwrap_err();
    assert_eq!(
        refused.message,
        "Slow down, *** (the upstream's request req_12)"
    );
    assert_eq!(refused.retry_after, Some(std::time::Duration::from_secs(7)));
    assert_eq!(refused.status, Some(429));
}

#[tokio::test]
async fn a_cancelled_attempt_ends_at_once() {
    let vendor = Vendor::answering(|_| {
        let mut reply = answer(200, "application/json", "");
        *reply.body_mut() = Box::pin(futures_util::stream::pending());
        reply
    })
    .await;
    let booth = openai(&vendor, "gpt-image-2-official");
    let cancel = booth.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        cancel.cancel();
    });
    let job = picture("gpt-image-2", 1, json!({}));
    assert_eq!(booth.draw(&job).await.unwrap_err().kind, Interrupted);
}

#[tokio::test]
async fn films_are_submitted_with_seconds_and_size() {
    let vendor =
        Vendor::answering(|_| says(200, &json!({"id": "video_1", "status": "queued"}))).await;
    let mut booth = openai(&vendor, "sora-2");
    assert_eq!(
        booth.film(&film("sora-2", json!({}))).await.unwrap(),
        "video_1"
    );
    booth.references = vec![reference("start", ImageFormat::Jpeg, (640, 640))];
    booth
        .film(&film("sora-2", json!({"seconds": 12})))
        .await
        .unwrap();
    booth
        .references
        .push(reference("other", ImageFormat::Png, (64, 64)));
    let refused = booth.film(&film("sora-2", json!({}))).await.unwrap_err();
    assert_eq!(refused.kind, UnsupportedByChannel);
    let [plain, after_picture] = <[_; 2]>::try_from(vendor.seen()).unwrap();
    assert_eq!(plain.line, "POST /v1/videos");
    assert_eq!(plain.headers["authorization"], format!("Bearer {KEY}"));
    let expected =
        json!({"model": "sora-2", "prompt": "a cat runs", "seconds": "8", "size": "1280x720"});
    assert_eq!(json_of(&plain), expected);
    let mut parts = form_of(&after_picture);
    let file = parts.pop().unwrap();
    let texts = [
        ("model", "sora-2"),
        ("prompt", "a cat runs"),
        ("seconds", "12"),
        ("size", "1280x720"),
    ];
    assert_eq!(parts, texts.map(|(name, text)| Part::text(name, text)));
    assert_eq!(file.name, "input_reference");
    assert_eq!(file.file_name.as_deref(), Some("reference.jpg"));
    assert_eq!(file.content_type.as_deref(), Some("image/jpeg"));
    let there = image::load_from_memory(&file.bytes).unwrap();
    assert_eq!((there.width(), there.height()), (1280, 720));
}

#[tokio::test]
async fn other_film_models_are_asked_for_the_size_as_it_is() {
    let vendor = Vendor::answering(|_| says(200, &json!({"task_id": "task_9"}))).await;
    let booth = openai(&vendor, "seedance-1.0-pro");
    let size = json!({"size": {"pixels": {"width": 1920, "height": 1088}, "ratio": "16:9", "resolution": "1080p"}});
    assert_eq!(
        booth.film(&film("seedance-1.0", size)).await.unwrap(),
        "task_9"
    );
    let expected = json!({"model": "seedance-1.0-pro", "prompt": "a cat runs", "seconds": "8", "size": "1920x1088"});
    assert_eq!(json_of(&vendor.seen()[0]), expected);
}

#[tokio::test]
async fn a_film_whose_acceptance_is_lost_is_unknown() {
    let vendor = Vendor::answering(|_| breaks_off("{\"id\":".into())).await;
    let booth = openai(&vendor, "sora-2");
    assert_eq!(
        booth
            .film(&film("sora-2", json!({})))
            .await
            .unwrap_err()
            .kind,
        OutcomeUnknown
    );
    let vendor =
        Vendor::answering(|_| says(429, &json!({"error": {"code": "insufficient_quota"}}))).await;
    let booth = openai(&vendor, "sora-2");
    assert_eq!(
        booth
            .film(&film("sora-2", json!({})))
            .await
            .unwrap_err()
            .kind,
        QuotaExhausted
    );
}

#[tokio::test]
async fn polls_tell_how_far_a_film_is() {
    let waiting =
        |status: &str, progress: Value| json!({"id": "v", "status": status, "progress": progress});
    for (json, expected) in [
        (waiting("queued", json!(0)), Some(0)),
        (waiting("in_progress", json!(33)), Some(33)),
        (waiting("in_progress", json!("40%")), Some(40)),
        (waiting("in_progress", Value::Null), None),
    ] {
        let vendor = Vendor::answering(move |_| says(200, &json)).await;
        let polled = openai(&vendor, "sora-2").poll("video/1?x").await.unwrap();
        assert!(
            matches!(polled, Polled::Pending(percent) if percent == expected),
            "{polled:?}"
        );
        assert_eq!(vendor.seen()[0].line, "GET /v1/videos/video%2F1%3Fx");
    }
}

#[tokio::test]
async fn a_finished_film_lies_beside_its_record() {
    let done = json!({"id": "video_1", "status": "completed", "progress": 100, "metadata": {"url": "https://cdn.example/a.mp4"}});
    let vendor = Vendor::answering(move |_| says(200, &done)).await;
    let booth = openai(&vendor, "sora-2");
    let polled = booth.poll("video_1").await.unwrap();
    assert!(matches!(polled, Polled::Completed(done) if done.failures.is_empty()));
    let [
        Thing::Link {
            url,
            headers,
            is_own: true,
        },
    ] = &booth.kept.things()[..]
    else {
        panic!("{:?}", booth.kept.things());
    };
    assert_eq!(*url, vendor.url("/v1/videos/video_1/content"));
    assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
    // Where it does not, the record's link is tried.
    *booth.kept.refuses.lock().unwrap() = 1;
    booth.poll("video_1").await.unwrap();
    let Some(Thing::Link {
        url,
        headers,
        is_own: false,
    }) = booth.kept.things().pop()
    else {
        panic!("{:?}", booth.kept.things());
    };
    assert_eq!(url, "https://cdn.example/a.mp4");
    assert!(headers.is_empty());
    *booth.kept.refuses.lock().unwrap() = 2;
    let polled = booth.poll("video_1").await.unwrap();
    assert!(matches!(polled, Polled::Failed(error) if error.kind == Failed));
}

#[tokio::test]
async fn a_film_that_failed_says_why() {
    let failed = |error: Value| json!({"id": "v", "status": "failed", "error": error});
    for (status, body, expected) in [
        (
            200,
            failed(json!({"code": "moderation_blocked", "message": "no"})),
            Moderated,
        ),
        (
            200,
            failed(json!({"code": "server_error", "message": "sorry"})),
            Unavailable,
        ),
        (
            200,
            failed(json!({"code": "video_generation_failed"})),
            Failed,
        ),
        (200, failed(Value::Null), Failed),
        (200, json!({"id": "v", "status": "cancelled"}), Failed),
        (
            404,
            json!({"error": {"message": "Video not found"}}),
            Failed,
        ),
    ] {
        let name = body.to_string();
        let vendor = Vendor::answering(move |_| says(status, &body)).await;
        let polled = openai(&vendor, "sora-2").poll("v").await.unwrap();
        let Polled::Failed(error) = polled else {
            panic!("{name}: {polled:?}");
        };
        assert_eq!(error.kind, expected, "{name}");
    }
    for (status, body, expected) in [
        (500, json!({}), Unavailable),
        (401, json!({}), KeyRejected),
        (200, json!({"status": "dreaming"}), Unavailable),
        (200, json!("<html>"), Unavailable),
    ] {
        let vendor = Vendor::answering(move |_| says(status, &body)).await;
        let error = openai(&vendor, "sora-2").poll("v").await.unwrap_err();
        assert_eq!(error.kind, expected);
    }
}

#[tokio::test]
async fn speech_is_asked_for_in_json_and_comes_as_sound() {
    let vendor = Vendor::answering(|_| answer(200, "audio/mpeg", "ID3...")).await;
    let booth = openai(&vendor, "native-v3");
    let job =
        speech(json!({"voice": "nova", "speed": 1.5, "language": "en", "instructions": "softly"}));
    booth.speak(&job).await.unwrap();
    assert_eq!(booth.kept.files(), [Bytes::from("ID3...")]);
    let [seen] = <[_; 1]>::try_from(vendor.seen()).unwrap();
    assert_eq!(seen.line, "POST /v1/audio/speech");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(seen.headers["accept"], "*/*");
    let expected = json!({"model": "gpt-4o-mini-tts", "input": "Hello.", "voice": "nova", "speed": 1.5,
        "instructions": "softly"});
    assert_eq!(json_of(&seen), expected);
}

#[tokio::test]
async fn voices_are_mapped_and_have_a_default() {
    let vendor = Vendor::answering(|_| answer(200, "audio/wav", "RIFF")).await;
    let options = json!({"voice": "ash", "voices": {"genshin_vindi2": "onyx"}});
    let booth = with_options(&vendor, "native-v3", "tts-1", options);
    booth.speak(&speech(json!({}))).await.unwrap();
    booth
        .speak(&speech(
            json!({"voice": "genshin_vindi2", "instructions": "softly"}),
        ))
        .await
        .unwrap();
    let sent: Vec<_> = vendor.seen().iter().map(json_of).collect();
    assert_eq!(
        sent[0],
        json!({"model": "tts-1", "input": "Hello.", "voice": "ash"})
    );
    assert_eq!(
        sent[1],
        json!({"model": "tts-1", "input": "Hello.", "voice": "onyx"})
    );
}

#[tokio::test]
async fn refused_speech_has_its_kind_whatever_its_status() {
    for (status, kind, text, expected) in [
        (
            400,
            "application/json",
            "{\"error\":{\"code\":\"invalid_value\",\"message\":\"voice\"}}",
            Rejected,
        ),
        (
            401,
            "application/json",
            "{\"error\":{\"code\":\"invalid_api_key\"}}",
            KeyRejected,
        ),
        (
            429,
            "application/json",
            "{\"error\":{\"code\":\"insufficient_quota\"}}",
            QuotaExhausted,
        ),
        (
            200,
            "application/json",
            "{\"error\":{\"code\":\"model_not_found\",\"message\":\"no\"}}",
            ModelNotFound,
        ),
        (200, "text/html", "<html>", Unavailable),
        (500, "text/plain", "oops", Unavailable),
    ] {
        let vendor = Vendor::answering(move |_| answer(status, kind, text)).await;
        let booth = openai(&vendor, "native-v3");
        let refused = booth.speak(&speech(json!({}))).await.unwrap_err();
        assert_eq!(refused.kind, expected, "{status} {text}");
        assert!(booth.kept.things().is_empty());
    }
    // It leaves nothing behind: it may be asked for again.
    let vendor = Vendor::answering(|_| {
        let mut reply = breaks_off("ID3".into());
        reply
            .headers_mut()
            .insert("content-type", "audio/mpeg".parse().unwrap());
        reply
    })
    .await;
    let booth = openai(&vendor, "native-v3");
    assert_eq!(
        booth.speak(&speech(json!({}))).await.unwrap_err().kind,
        Unavailable
    );
}
