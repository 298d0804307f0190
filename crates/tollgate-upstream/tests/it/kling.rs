//! Kling: speech and films as its documents have them (kling.ai › document-api).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tollgate_core::Secret;
use tollgate_core::TaskKind::Video;
use tollgate_fakes::{Fake, Options, Provider};
use tollgate_media::Job;
use tollgate_upstream::{Channel, Completed, Found, Polled, Started, UpstreamErrorKind};

use crate::desk::{
    Asked, Desk, Desktop, EXTERNAL_ID, KEY, Pictures, Reply, channel, check, failure, fake,
    provider_job_id, raw, refused, reply, rules_broken, says_all, speech_job, video_job,
    with_header,
};

fn at(desk: &Desk, upstream: &str) -> Channel {
    channel("kling", desk.url(""), "m", upstream)
}

fn voice(desk: &Desk) -> Desktop {
    Desktop::open(at(desk, "native-v3"))
}

fn film(desk: &Desk) -> Desktop {
    Desktop::open(at(desk, "kling-3.0"))
}

fn a_film() -> Job {
    Job::Video(video_job(json!({})))
}

fn some_speech() -> Job {
    Job::Speech(speech_job(json!({})))
}

fn enveloped(data: Value) -> Reply {
    reply(
        200,
        json!({ "code": 0, "message": "SUCCEED", "request_id": "r", "data": data }),
    )
}

fn refusal(status: u16, code: i64) -> Reply {
    reply(
        status,
        json!({ "code": code, "message": "in words", "request_id": "r" }),
    )
}

fn spoken(url: &str) -> Reply {
    enveloped(json!({
        "task_id": "t-1", "task_status": "succeed",
        "task_result": { "audios": [{ "id": "a-1", "url": url, "duration": "1.5" }] },
    }))
}

#[tokio::test]
async fn a_text_is_spoken_within_the_call() {
    let desk = Desk::saying([spoken("https://cdn.example/a.mp3")]).await;
    let open = voice(&desk);
    let job = speech_job(json!({
        "text": "Hello there.", "voice": "oversea_male1", "speed": 3.3, "language": "en-US",
        "instructions": "whisper", "external_task_id": "mine",
    }));
    let started = open.speech(&job).await;
    assert!(
        matches!(started, Ok(Started::Completed(Completed { failures: ref refused })) if refused.is_empty())
    );
    assert_eq!(open.shelf.links(), ["https://cdn.example/a.mp3"]);
    let asked = &desk.asked()[0];
    assert_eq!(asked.line, "POST /v1/audio/tts");
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(
        asked.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    let expected = json!({
        "text": "Hello there.", "voice_id": "oversea_male1", "voice_language": "en", "voice_speed": 2.0,
    });
    assert_eq!(asked.json(), expected);
}

#[tokio::test]
async fn a_voice_that_nobody_named_is_the_channels() {
    for (options, text, expected) in [
        (json!({}), "Hello.", ("oversea_male1", "en")),
        (json!({}), "你好。", ("genshin_vindi2", "zh")),
        (
            json!({ "voices": { "zh": "mine" } }),
            "你好。",
            ("mine", "zh"),
        ),
    ] {
        let desk = Desk::saying([spoken("https://cdn.example/a.mp3")]).await;
        let mut channel = at(&desk, "native-v3");
        channel.options = options.as_object().cloned().unwrap();
        let open = Desktop::open(channel);
        open.speech(&speech_job(json!({ "text": text })))
            .await
            .unwrap();
        let (voice, language) = expected;
        let body = json!({ "text": text, "voice_id": voice, "voice_language": language });
        assert_eq!(desk.asked()[0].json(), body);
    }
}

/// A frame of MPEG 1, 128 kbit/s, 44100 Hz.
fn frame(fill: u8) -> Vec<u8> {
    let mut frame = vec![fill; 417];
    frame[..4].copy_from_slice(&[0xff, 0xfb, 0x90, 0x00]);
    frame
}

#[tokio::test]
async fn a_long_text_is_spoken_in_parts_that_become_one_file() {
    let mut counting = frame(0);
    counting[36..40].copy_from_slice(b"Info");
    let files = [
        [counting, frame(1)].concat(),
        [b"ID3\x04\x00\x00\x00\x00\x00\x02xx".to_vec(), frame(2)].concat(),
        frame(3),
    ];
    let desk = Desk::answering(move |asked: &Asked| {
        if let Some(number) = asked.line.strip_prefix("GET /files/") {
            return raw(
                200,
                "audio/mpeg",
                files[number.parse::<usize>().unwrap()].clone(),
            );
        }
        let host = asked.header("host").unwrap();
        let text = asked.json()["text"].as_str().unwrap().to_owned();
        let number = ["One", "Two", "Three"]
            .iter()
            .position(|word| text.starts_with(word));
        spoken(&format!("http://{host}/files/{}", number.unwrap()))
    })
    .await;
    let long = |word: &str| format!("{word} {}.", "la ".repeat(300).trim_end());
    let text = ["One", "Two", "Three"].map(long).join(" ");
    let open = voice(&desk);
    open.speech(&speech_job(json!({ "text": text })))
        .await
        .unwrap();
    assert_eq!(
        open.shelf.files(),
        [[frame(1), frame(2), frame(3)].concat()]
    );
    let bodies: Vec<Value> = desk.asked()[..3].iter().map(Asked::json).collect();
    for (body, word) in bodies.iter().zip(["One", "Two", "Three"]) {
        assert_eq!(body["text"], long(word));
        assert_eq!(body["voice_id"], "oversea_male1");
    }
}

#[tokio::test]
async fn parts_that_are_no_mp3_are_not_put_together() {
    let desk = Desk::answering(|asked: &Asked| match asked.line.starts_with("GET") {
        true => raw(200, "audio/wav", "RIFF....WAVE"),
        false => spoken(&format!("http://{}/a", asked.header("host").unwrap())),
    })
    .await;
    let open = voice(&desk);
    let text = "word ".repeat(300);
    let error = open.speech(&speech_job(json!({ "text": text }))).await;
    assert_eq!(error.unwrap_err().kind, UpstreamErrorKind::Failed);
}

#[tokio::test]
async fn speech_that_is_not_finished_at_once_is_waited_for() {
    let processing = || enveloped(json!({ "task_id": "t/1", "task_status": "processing" }));
    let desk = Desk::saying([processing(), spoken("https://cdn.example/a.mp3")]).await;
    let open = voice(&desk);
    open.speech(&speech_job(json!({}))).await.unwrap();
    assert_eq!(
        desk.lines(),
        ["POST /v1/audio/tts", "GET /v1/audio/tts/t%2F1"]
    );
    // What was accepted is not made again when the rest goes wrong.
    let desk = Desk::saying([processing(), raw(502, "text/html", "")]).await;
    let error = voice(&desk).speech(&speech_job(json!({}))).await;
    assert_eq!(error.unwrap_err().kind, UpstreamErrorKind::OutcomeUnknown);
    assert_eq!(desk.asked().len(), 2);
}

#[tokio::test]
async fn every_refusal_has_its_kind() {
    use UpstreamErrorKind::*;
    for (answer, expected) in [
        (refusal(401, 1000), KeyRejected),
        (refusal(401, 1002), KeyRejected),
        (refusal(401, 1004), KeyRejected),
        (refusal(429, 1100), QuotaExhausted),
        (refusal(429, 1101), QuotaExhausted),
        (refusal(429, 1102), QuotaExhausted),
        (refusal(403, 1103), ModelNotFound),
        (refusal(400, 1200), Rejected),
        (refusal(400, 1201), Rejected),
        (refusal(404, 1202), UnsupportedByChannel),
        (refusal(404, 1203), ModelNotFound),
        (refusal(400, 1300), Moderated),
        (refusal(400, 1301), Moderated),
        (refusal(429, 1302), RateLimited),
        (refusal(429, 1303), RateLimited),
        (refusal(429, 1304), KeyRejected),
        (refusal(500, 5000), Unavailable),
        (refusal(503, 5001), Unavailable),
        (refusal(504, 5002), Unavailable),
        // A success that is none.
        (refusal(200, 1301), Moderated),
        (raw(200, "text/html", "<html>"), Unavailable),
        (raw(502, "text/html", "<html>"), Unavailable),
        (None, OutcomeUnknown),
    ] {
        let said = answer.as_ref().map(|a| a.body().clone());
        let desk = Desk::saying([answer]).await;
        let error = voice(&desk).speech(&speech_job(json!({}))).await;
        assert_eq!(error.unwrap_err().kind, expected, "{said:?}");
        // A film that a success without a word may have made can be looked for.
        let error = film(&desk)
            .video(&video_job(json!({})), &[])
            .await
            .unwrap_err();
        let expected = match error.status {
            Some(200) if expected == Unavailable => OutcomeUnknown,
            _ => expected,
        };
        assert_eq!(error.kind, expected, "{said:?}");
        assert_eq!(desk.asked().len(), 2);
    }
    for (words, expected) in [
        ("Failure to pass the risk control system", Moderated),
        ("内容审核不通过", Moderated),
        ("the model broke down", Failed),
        ("", Failed),
    ] {
        let failed = json!({ "task_id": "t", "task_status": "failed", "task_status_msg": words });
        let desk = Desk::saying([enveloped(failed)]).await;
        let error = voice(&desk).speech(&speech_job(json!({}))).await;
        assert_eq!(error.unwrap_err().kind, expected, "{words}");
    }
    let desk = Desk::saying([spoken("x")]).await;
    let error = voice(&desk)
        .speech(&speech_job(json!({ "language": "fr" })))
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, UnsupportedByChannel);
    assert!(error.message.contains("zh or en") && error.message.contains("\"fr\""));
    assert!(desk.asked().is_empty());
}

/// The claims of a request's token, whose signature another program can check.
fn claims(asked: &Asked) -> Value {
    let token = asked.header("authorization").unwrap();
    let token = token.strip_prefix("Bearer ").unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"secret-key-1");
    let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
    let signed = format!("{}.{}", parts[0], parts[1]);
    ring::hmac::verify(&key, signed.as_bytes(), &signature).expect("the signature is right");
    let read = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(read(parts[0]), json!({ "alg": "HS256", "typ": "JWT" }));
    read(parts[1])
}

#[tokio::test]
async fn a_pair_of_keys_signs_tokens_by_the_providers_clock() {
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(since.as_secs()).unwrap()
    };
    let later = SystemTime::now() + Duration::from_secs(7200);
    let date = httpdate::fmt_http_date(later);
    let desk = Desk::saying([
        with_header(refusal(401, 1004), "date", &date),
        spoken("https://cdn.example/a.mp3"),
    ])
    .await;
    let mut channel = at(&desk, "native-v3");
    channel.api_keys = vec![Secret::new("access-key-1:secret-key-1")];
    let open = Desktop::open(channel);
    open.speech(&speech_job(json!({}))).await.unwrap();
    open.speech(&speech_job(json!({}))).await.unwrap();
    let asked = desk.asked();
    assert_eq!(asked.len(), 3, "the second speech knows the clock");
    for (asked, ahead) in asked.iter().zip([0, 7200, 7200]) {
        let claims = claims(asked);
        assert_eq!(claims["iss"], "access-key-1");
        let (exp, nbf) = (
            claims["exp"].as_i64().unwrap(),
            claims["nbf"].as_i64().unwrap(),
        );
        assert_eq!(exp - nbf, 1805);
        assert!((exp - 1800 - now() - ahead).abs() <= 3, "{claims}");
        assert_eq!(claims.as_object().unwrap().len(), 3);
    }
}

#[tokio::test]
async fn films_are_asked_for_with_the_model_in_the_path() {
    let accepted = || enveloped(json!({ "id": "f-1", "status": "submitted" }));
    let desk = Desk::saying([accepted()]).await;
    let open = film(&desk);
    let job = video_job(json!({ "generate_audio": true, "watermark": false, "seconds": 7 }));
    assert_eq!(provider_job_id(open.video(&job, &[]).await), "f-1");
    let asked = &desk.asked()[0];
    assert_eq!(asked.line, "POST /text-to-video/kling-3.0");
    let expected = json!({
        "prompt": "a red boat",
        "settings": { "resolution": "720p", "duration": 7, "audio": "native", "aspect_ratio": "16:9" },
        "options": { "external_task_id": EXTERNAL_ID, "watermark_info": { "enabled": false } },
    });
    assert_eq!(asked.json(), expected);

    let pictures = Pictures::new();
    let frames = [
        pictures.file("images[0]", b"one"),
        pictures.file("images[1]", b"two"),
    ];
    open.video(&video_job(json!({})), &frames).await.unwrap();
    let asked = &desk.asked()[1];
    assert_eq!(asked.line, "POST /image-to-video/kling-3.0");
    let expected = json!({
        "contents": [
            { "type": "prompt", "text": "a red boat" },
            { "type": "first_frame", "url": "b25l" },
            { "type": "last_frame", "url": "dHdv" },
        ],
        "settings": { "resolution": "720p", "duration": 5 },
        "options": { "external_task_id": EXTERNAL_ID },
    });
    assert_eq!(asked.json(), expected);

    let three = [frames[0].clone(), frames[0].clone(), frames[1].clone()];
    let error = open.video(&video_job(json!({})), &three).await.unwrap_err();
    assert_eq!(error.kind, UpstreamErrorKind::UnsupportedByChannel);
    let references = video_job(json!({ "image_use": "references" }));
    let error = open.video(&references, &frames).await.unwrap_err();
    assert_eq!(error.kind, UpstreamErrorKind::UnsupportedByChannel);
    assert_eq!(desk.asked().len(), 2);
    let desk = Desk::saying([enveloped(json!({}))]).await;
    let error = film(&desk).video(&video_job(json!({})), &[]).await;
    assert_eq!(error.unwrap_err().kind, UpstreamErrorKind::OutcomeUnknown);
}

#[tokio::test]
async fn films_are_followed_found_and_fetched() {
    let task = |more: Value| {
        let mut task = json!({ "id": "f-1", "external_id": EXTERNAL_ID });
        task.as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap());
        enveloped(json!([task]))
    };
    let desk = Desk::saying([
        task(json!({ "status": "submitted" })),
        task(json!({ "status": "processing" })),
        task(json!({ "status": "succeeded", "outputs": [
            { "type": "audio", "url": "https://cdn.example/a.mp3" },
            { "type": "video", "id": "v", "url": "https://cdn.example/v.mp4", "duration": "5" } ] })),
        task(json!({ "status": "failed", "message": "content violates the policy" })),
        task(json!({ "status": "failed", "message": "no machine left" })),
        enveloped(json!([])),
        refusal(404, 1203),
        refusal(500, 5000),
    ])
    .await;
    let open = film(&desk);
    for _ in 0..2 {
        let polled = open.poll("f-1", Video, 1).await;
        assert!(matches!(polled, Ok(Polled::Pending(None))), "{polled:?}");
    }
    assert_eq!(refused(open.poll("f-1", Video, 1).await), []);
    assert_eq!(open.shelf.links(), ["https://cdn.example/v.mp4"]);
    for expected in [
        UpstreamErrorKind::Moderated,
        UpstreamErrorKind::Failed,
        UpstreamErrorKind::Failed,
        UpstreamErrorKind::Failed,
    ] {
        assert_eq!(failure(open.poll("f-1", Video, 1).await).kind, expected);
    }
    let error = open.poll("f-1", Video, 1).await.unwrap_err();
    assert_eq!(error.kind, UpstreamErrorKind::Unavailable);
    assert_eq!(desk.lines()[0], "GET /tasks?task_ids=f-1");

    let desk = Desk::saying([
        task(json!({ "status": "submitted" })),
        enveloped(json!([])),
        refusal(503, 5001),
    ])
    .await;
    let open = film(&desk);
    assert_eq!(
        open.find(&a_film()).await.unwrap(),
        Found::Accepted("f-1".to_owned())
    );
    assert_eq!(open.find(&a_film()).await.unwrap(), Found::Nothing);
    assert!(open.find(&a_film()).await.is_err());
    assert_eq!(open.find(&some_speech()).await.unwrap(), Found::CannotTell);
    let line = format!("GET /tasks?external_task_ids={EXTERNAL_ID}");
    assert_eq!(desk.lines(), vec![line; 3]);
}

#[test]
fn it_says_what_becomes_of_every_field() {
    says_all("kling");
}

#[test]
fn its_options_are_checked() {
    let with = |options: Value| {
        let options = options.as_object().cloned().unwrap();
        check(&Channel {
            options,
            ..Channel::new("main", "kling")
        })
    };
    assert_eq!(with(json!({ "voices": { "zh": "a", "en": "b" } })), Ok(()));
    for options in [
        json!({ "voices": "a" }),
        json!({ "voices": { "fr": "a" } }),
        json!({ "voices": { "zh": "" } }),
        json!({ "voices": { "zh": 5 } }),
    ] {
        let error = with(options).unwrap_err();
        assert!(error.contains("`voices` must be a table"), "{error}");
    }
    assert!(
        with(json!({ "voice": "a" }))
            .unwrap_err()
            .contains("voices")
    );
}

async fn faked(upstream: &str) -> (Fake, Desktop) {
    let fake = fake(Provider::Kling, Options::default()).await;
    let opened = Desktop::open(channel("kling", fake.base_url(), "m", upstream));
    (fake, opened)
}

#[tokio::test]
async fn a_fake_takes_every_kind_of_job() {
    let (fake, open) = faked("native-v3").await;
    let long = "A sentence that goes on for a while. ".repeat(80);
    for given in [
        json!({ "text": "Hello." }),
        json!({ "text": "你好，世界。", "speed": 0.25 }),
        json!({ "text": long, "voice": "my-voice", "speed": 4.0, "language": "en" }),
        json!({ "text": "[[fake:polls=2]]" }),
    ] {
        open.speech(&speech_job(given)).await.unwrap();
    }
    assert_eq!(open.shelf.links().len(), 3);
    // What was put together is one file of sound: it begins with a frame.
    let files = open.shelf.files();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0][0], 0xff);
    assert_eq!(rules_broken(&fake), [] as [&str; 0]);

    let pictures = Pictures::new();
    let frames = [pictures.real("images[0]"), pictures.real("images[1]")];
    for (upstream, given, images) in [
        (
            "kling-3.0",
            json!({ "seconds": 15, "generate_audio": true, "watermark": false }),
            0,
        ),
        (
            "kling-3.0-turbo",
            json!({ "seconds": 2, "generate_audio": false }),
            1,
        ),
        ("kling-3.0", json!({ "seconds": 2 }), 2),
        (
            "kling-2.6",
            json!({ "seconds": 8, "generate_audio": true }),
            2,
        ),
        (
            "kling-2.5-turbo",
            json!({ "seconds": 8, "generate_audio": true }),
            2,
        ),
        (
            "kling-2.6",
            json!({ "seconds": 8, "generate_audio": true }),
            1,
        ),
        ("kling-2.6", json!({ "prompt": "" }), 1),
    ] {
        let (fake, open) = faked(upstream).await;
        let started = open.video(&video_job(given), &frames[..images]).await;
        let provider_job_id = provider_job_id(started);
        assert_eq!(
            open.find(&a_film()).await.unwrap(),
            Found::Accepted(provider_job_id.clone())
        );
        assert_eq!(refused(open.end(&provider_job_id, Video, 1).await), []);
        assert_eq!(open.shelf.links().len(), 1);
        assert_eq!(rules_broken(&fake), [] as [&str; 0]);
    }
}

#[tokio::test]
async fn a_fake_takes_signed_tokens() {
    let keys = vec!["access-1:secret-1".to_owned()];
    let options = Options {
        keys,
        ..Options::default()
    };
    let fake = tollgate_fakes::start(Provider::Kling, options)
        .await
        .unwrap();
    let mut channel = channel("kling", fake.base_url(), "m", "native-v3");
    for (key, expected) in [
        ("access-1:secret-1", None),
        ("access-1:secret-2", Some(UpstreamErrorKind::KeyRejected)),
        ("access-2:secret-1", Some(UpstreamErrorKind::KeyRejected)),
    ] {
        channel.api_keys = vec![Secret::new(key)];
        let open = Desktop::open(channel.clone());
        let started = open.speech(&speech_job(json!({}))).await;
        assert_eq!(started.err().map(|error| error.kind), expected, "{key}");
    }
}
