//! Kling: films by its older APIs, and what is asked for otherwise than the job says.

use serde_json::{Value, json};
use tollgate_core::Secret;
use tollgate_core::TaskKind::Video;
use tollgate_fakes::{Fake, Options, Provider};
use tollgate_media::Job;
use tollgate_upstream::{Channel, Found, Polled, UpstreamErrorKind};

use crate::desk::{
    Desk, Desktop, EXTERNAL_ID, Pictures, Reply, channel, failure, provider_job_id, raw, refused,
    reply, rules_broken, speech_job, video_job,
};

/// An access key with its secret.
const PAIR: &str = "access-key-1:secret-key-1";

/// A channel whose key signs tokens.
fn signing(base: String, upstream: &str) -> Channel {
    Channel {
        api_keys: vec![Secret::new(PAIR)],
        ..channel("kling", base, "m", upstream)
    }
}

fn film(desk: &Desk, upstream: &str) -> Desktop {
    Desktop::open(signing(desk.url(""), upstream))
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

fn state(status: &str, more: &Value) -> Reply {
    let mut state = json!({
        "task_id": "8612", "task_status": status, "task_info": { "external_task_id": EXTERNAL_ID },
    });
    let more = more.as_object().cloned().unwrap_or_default();
    state.as_object_mut().unwrap().extend(more);
    enveloped(state)
}

fn submitted() -> Reply {
    state("submitted", &json!({}))
}

#[tokio::test]
async fn a_pair_of_keys_asks_the_older_apis() {
    let desk = Desk::saying([submitted()]).await;
    let open = film(&desk, "kling-3.0");
    let job = video_job(json!({
        "family": "veo-3.1", "generate_audio": true, "watermark": false, "seconds": 7,
        "negative_prompt": "fog",
    }));
    assert_eq!(
        provider_job_id(open.video(&job, &[]).await),
        "text2video/8612"
    );
    let asked = &desk.asked()[0];
    assert_eq!(asked.line, "POST /v1/videos/text2video");
    let token = asked.header("authorization").unwrap();
    assert_eq!(token.split('.').count(), 3, "a signed token");
    let expected = json!({
        "model_name": "kling-v3", "prompt": "a red boat", "negative_prompt": "fog", "mode": "std",
        "duration": "7", "aspect_ratio": "16:9", "sound": "on",
        "watermark_info": { "enabled": false }, "external_task_id": EXTERNAL_ID,
    });
    assert_eq!(asked.json(), expected);

    let pictures = Pictures::new();
    let frames = [
        pictures.file("images[0]", b"one"),
        pictures.file("images[1]", b"two"),
    ];
    let open = film(&desk, "kling-v2-6");
    let started = open.video(&video_job(json!({})), &frames).await;
    assert_eq!(provider_job_id(started), "image2video/8612");
    let asked = &desk.asked()[1];
    assert_eq!(asked.line, "POST /v1/videos/image2video");
    let expected = json!({
        "model_name": "kling-v2-6", "prompt": "a red boat", "image": "b25l", "image_tail": "dHdv",
        "mode": "pro", "duration": "5", "external_task_id": EXTERNAL_ID,
    });
    assert_eq!(asked.json(), expected);

    // Only the newer APIs have it.
    let open = film(&desk, "kling-3.0-turbo");
    let error = open.video(&video_job(json!({})), &[]).await.unwrap_err();
    assert_eq!(error.kind, UpstreamErrorKind::ModelNotFound);
    assert_eq!(desk.asked().len(), 2);
}

#[tokio::test]
async fn a_name_of_the_older_apis_leads_there_with_any_key() {
    let desk = Desk::saying([submitted()]).await;
    let open = Desktop::open(channel("kling", desk.url(""), "m", "kling-v1-6"));
    let started = open.video(&video_job(json!({})), &[]).await;
    assert_eq!(provider_job_id(started), "text2video/8612");
    assert_eq!(desk.lines(), ["POST /v1/videos/text2video"]);
}

#[tokio::test]
async fn a_film_is_followed_where_it_was_made() {
    use UpstreamErrorKind::{Failed, KeyRejected, Moderated, Rejected, Unavailable};
    let videos = json!({ "task_result": { "videos": [
        { "id": "v", "url": "https://cdn.example/v.mp4", "duration": "5",
          "watermark_url": "https://cdn.example/marked.mp4" } ] } });
    let because = |words: &str| json!({ "task_status_msg": words });
    let desk = Desk::saying([
        submitted(),
        state("processing", &json!({})),
        state("succeed", &videos),
        state("succeed", &videos),
        state(
            "failed",
            &because("Failure to pass the risk control system"),
        ),
        state("failed", &because("Image pixel is invalid")),
        state("failed", &because("Server internal error")),
        state("failed", &because("no")),
        refusal(404, 1203),
        refusal(400, 1201),
        refusal(500, 5000),
        refusal(401, 1002),
    ])
    .await;
    // Whatever the channel's keys and models are by now.
    let open = Desktop::open(channel("kling", desk.url(""), "m", "kling-3.0"));
    for _ in 0..2 {
        let polled = open.poll("image2video/8612", Video, 1).await;
        assert!(matches!(polled, Ok(Polled::Pending(None))), "{polled:?}");
    }
    assert_eq!(refused(open.poll("image2video/8612", Video, 1).await), []);
    let marked = open.poll("text2video/8612+mark", Video, 1).await;
    assert_eq!(refused(marked), []);
    let links = [
        "https://cdn.example/v.mp4",
        "https://cdn.example/marked.mp4",
    ];
    assert_eq!(open.shelf.links(), links);
    for expected in [Moderated, Rejected, Unavailable, Failed, Failed, Failed] {
        let polled = open.poll("text2video/8612", Video, 1).await;
        assert_eq!(failure(polled).kind, expected);
    }
    for expected in [Unavailable, KeyRejected] {
        let error = open.poll("text2video/8612", Video, 1).await.unwrap_err();
        assert_eq!(error.kind, expected);
    }
    let lines = desk.lines();
    assert_eq!(lines[0], "GET /v1/videos/image2video/8612");
    assert_eq!(lines[3], "GET /v1/videos/text2video/8612");
}

#[tokio::test]
async fn a_mark_is_delivered_where_it_is_wanted() {
    let accepted = enveloped(json!({ "id": "f-1", "status": "submitted" }));
    let done = enveloped(json!([{ "id": "f-1", "status": "succeeded", "outputs": [
        { "type": "video", "url": "https://cdn.example/v.mp4",
          "watermark_url": "https://cdn.example/marked.mp4" } ] }]));
    for (mark, expected) in [
        (json!(true), "https://cdn.example/marked.mp4"),
        (json!(false), "https://cdn.example/v.mp4"),
        (Value::Null, "https://cdn.example/v.mp4"),
    ] {
        let desk = Desk::saying([accepted.clone(), done.clone()]).await;
        let open = Desktop::open(channel("kling", desk.url(""), "m", "kling-3.0"));
        let job = video_job(json!({ "watermark": mark }));
        let provider_job_id = provider_job_id(open.video(&job, &[]).await);
        assert_eq!(refused(open.poll(&provider_job_id, Video, 1).await), []);
        assert_eq!(open.shelf.links(), [expected]);
    }
}

/// A film that follows a picture.
fn from_image() -> Job {
    let image = json!({ "field": "image", "source": { "stored": "f" } });
    Job::Video(video_job(json!({ "images": [image] })))
}

#[tokio::test]
async fn a_film_is_looked_for_where_it_would_have_been_made() {
    let desk = Desk::saying([
        submitted(),
        submitted(),
        refusal(404, 1203),
        refusal(400, 1201),
        refusal(503, 5001),
        refusal(401, 1002),
        raw(404, "text/html", "<html>"),
        enveloped(json!({})),
    ])
    .await;
    let open = film(&desk, "kling-3.0");
    let from_text = Job::Video(video_job(json!({ "watermark": true })));
    for (job, expected) in [
        (from_text.clone(), "text2video/8612+mark"),
        (from_image(), "image2video/8612"),
    ] {
        let found = open.find(&job).await.unwrap();
        assert_eq!(found, Found::Accepted(expected.to_owned()));
    }
    for _ in 0..2 {
        assert_eq!(open.find(&from_text).await.unwrap(), Found::Nothing);
    }
    for expected in [
        UpstreamErrorKind::Unavailable,
        UpstreamErrorKind::KeyRejected,
        // Not the provider's own words.
        UpstreamErrorKind::ModelNotFound,
    ] {
        assert_eq!(open.find(&from_text).await.unwrap_err().kind, expected);
    }
    assert_eq!(open.find(&from_text).await.unwrap(), Found::CannotTell);
    let lines = desk.lines();
    assert_eq!(lines[0], format!("GET /v1/videos/text2video/{EXTERNAL_ID}"));
    assert_eq!(
        lines[1],
        format!("GET /v1/videos/image2video/{EXTERNAL_ID}")
    );
}

#[tokio::test]
async fn what_is_asked_for_otherwise_is_told_before_and_when_it_is_found() {
    let job = video_job(json!({ "family": "seedance-1.5-pro", "seconds": 8, "seed": 7 }));
    let expected = ["seed: 7 → null", "seconds: 8 → 10"];
    let found = Job::Video(job.clone());
    for upstream in ["kling-2.6", "kling-v2-6"] {
        let desk = Desk::saying([refusal(400, 1301)]).await;
        let open = Desktop::open(channel("kling", desk.url(""), "m", upstream));
        let error = open.video(&job, &[]).await.unwrap_err();
        assert_eq!(error.kind, UpstreamErrorKind::Moderated);
        assert_eq!(open.shelf.record_adjustment(), expected, "{upstream}");

        let newer = enveloped(json!([{ "id": "8612" }]));
        let desk = match upstream {
            "kling-2.6" => Desk::saying([enveloped(json!([])), newer]).await,
            _ => Desk::saying([refusal(404, 1203), submitted()]).await,
        };
        let open = Desktop::open(channel("kling", desk.url(""), "m", upstream));
        assert_eq!(open.find(&found).await.unwrap(), Found::Nothing);
        assert_eq!(
            open.shelf.record_adjustment(),
            [] as [&str; 0],
            "of nothing"
        );
        assert!(matches!(open.find(&found).await, Ok(Found::Accepted(_))));
        assert_eq!(open.shelf.record_adjustment(), expected, "{upstream}");
    }

    let desk = Desk::saying([refusal(400, 1301)]).await;
    let open = Desktop::open(channel("kling", desk.url(""), "m", "native-v3"));
    let job = speech_job(json!({
        "speed": 3.3, "language": "en-US", "instructions": "whisper", "voice": "oversea_male1",
        "external_task_id": "mine",
    }));
    assert!(open.speech(&job).await.is_err());
    let expected = [
        r#"instructions: "whisper" → null"#,
        r#"language: "en-US" → "en""#,
        "speed: 3.3 → 2.0",
    ];
    assert_eq!(open.shelf.record_adjustment(), expected);
}

async fn faked(upstream: &str) -> (Fake, Desktop) {
    let options = Options {
        keys: vec![PAIR.to_owned()],
        ..Options::default()
    };
    let fake = tollgate_fakes::start(Provider::Kling, options).await;
    let fake = fake.unwrap();
    let opened = Desktop::open(signing(fake.base_url(), upstream));
    (fake, opened)
}

#[tokio::test]
async fn a_fake_takes_every_kind_of_film_with_signed_tokens() {
    let pictures = Pictures::new();
    let frames = [pictures.real("images[0]"), pictures.real("images[1]")];
    let sounding = json!({ "generate_audio": true, "seconds": 8, "watermark": true });
    for (upstream, given, images) in [
        ("kling-3.0", sounding.clone(), 0),
        ("kling-v3", sounding.clone(), 2),
        ("kling-2.6", sounding.clone(), 0),
        ("kling-v2-6", sounding.clone(), 2),
        ("kling-v2-5-turbo", sounding.clone(), 1),
        ("kling-v2-1-master", sounding.clone(), 0),
        ("kling-v2-1", sounding.clone(), 2),
        ("kling-v2-master", sounding.clone(), 1),
        ("kling-v1-6", json!({ "negative_prompt": "fog" }), 0),
        ("kling-v1-5", json!({ "prompt": "" }), 1),
        ("kling-v1", sounding.clone(), 2),
    ] {
        let (fake, open) = faked(upstream).await;
        let mut job = video_job(given);
        let provider_job_id = provider_job_id(open.video(&job, &frames[..images]).await);
        if images > 0 {
            let Job::Video(other) = from_image() else {
                unreachable!("it is a film");
            };
            job.images = other.images;
        }
        let found = open.find(&Job::Video(job)).await.unwrap();
        assert_eq!(
            found,
            Found::Accepted(provider_job_id.clone()),
            "{upstream}"
        );
        assert_eq!(refused(open.end(&provider_job_id, Video, 1).await), []);
        assert_eq!(open.shelf.links().len(), 1);
        assert_eq!(rules_broken(&fake), [] as [&str; 0], "{upstream}");
    }
}
