//! Speech in its three request shapes.

use serde_json::{Value, json};
use tollgate_core::{ApiError, ErrorKind};
use tollgate_media::speech::SpeechJob;
use tollgate_media::{Endpoint, Job, MediaJob as _, RequestLayout, Submission, Units};

use crate::{CATALOGUE, adjustment_values};

fn read(endpoint: Endpoint, body: &Value, strict: bool) -> Result<Submission, ApiError> {
    let body = body.as_object().unwrap();
    let model = CATALOGUE.requested_model(body, endpoint)?;
    tollgate_media::parse_request(model, endpoint.request_layout(), body, strict)
}

fn submit(endpoint: Endpoint, body: &Value) -> Submission {
    read(endpoint, body, false).unwrap_or_else(|error| panic!("{endpoint} {body}: {error}"))
}

fn speech(submission: &Submission) -> &SpeechJob {
    match submission.job() {
        Job::Speech(job) => job,
        other => panic!("no speech: {other:?}"),
    }
}

fn rejection(endpoint: Endpoint, body: &Value) -> String {
    let error = read(endpoint, body, false).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidRequest, "{error}");
    error.message
}

#[test]
fn three_shapes_make_one_job() {
    let usual = json!({
        "model": "native-v3", "input": "Hallo 世界", "voice": "v1", "speed": 1.25, "language": "zh",
        "instructions": "softly", "metadata": { "external_task_id": "x-1", "callback_url": "https://a.example/done" },
    });
    let native = json!({
        "model_name": "native-v3", "text": "Hallo 世界", "voice_id": "v1", "voice_speed": 1.25, "voice_language": "zh",
        "instructions": "softly", "external_task_id": "x-1", "callback_url": "https://a.example/done",
    });
    let multimodal = json!({
        "model": "native-v3", "task_type": "tts", "metadata": {
            "text": "Hallo 世界", "voice_id": "v1", "voice_speed": 1.25, "voice_language": "zh",
            "instructions": "softly", "external_task_id": "x-1", "callback_url": "https://a.example/done",
        },
    });
    let expected = SpeechJob {
        model: "native-v3".to_owned(),
        family: "native-v3".to_owned(),
        text: "Hallo 世界".to_owned(),
        voice: Some("v1".to_owned()),
        speed: Some(1.25),
        language: Some("zh".to_owned()),
        instructions: Some("softly".to_owned()),
        external_task_id: Some("x-1".to_owned()),
        extra: serde_json::Map::new(),
    };
    for (endpoint, body) in [
        (Endpoint::AudioSpeech, usual),
        (Endpoint::NativeSpeech, native),
        (Endpoint::MultimodalAudio, multimodal),
    ] {
        let submission = read(endpoint, &body, true).unwrap();
        assert_eq!(speech(&submission), &expected, "{endpoint}");
        assert_eq!(submission.adjustments, []);
        assert_eq!(
            submission.callback_url.as_deref(),
            Some("https://a.example/done")
        );
        assert_eq!(submission.job().units(), Units::Characters(8));
        assert_eq!(
            Value::Object(submission.job().echoed_fields()),
            json!({ "external_task_id": "x-1" })
        );
        let text = submission.job().to_text().unwrap();
        assert_eq!(
            &Job::from_text(submission.job().kind(), &text).unwrap(),
            submission.job()
        );
    }
}

#[test]
fn little_is_required() {
    let submission = submit(
        Endpoint::AudioSpeech,
        &json!({ "model": "kling-v3", "input": "a" }),
    );
    let job = speech(&submission);
    assert_eq!(
        (job.model.as_str(), job.family.as_str()),
        ("kling-v3", "native-v3")
    );
    assert_eq!((&job.voice, job.speed, &job.language), (&None, None, &None));
    assert_eq!(job.echoed_fields(), serde_json::Map::new());
    assert_eq!(job.to_owned().characters(), 1);
}

#[test]
fn the_formats_have_no_effect() {
    let body = json!({ "model": "native-v3", "input": "a", "response_format": "wav", "stream_format": "sse", "text": "b" });
    let submission = submit(Endpoint::AudioSpeech, &body);
    let said = [
        ("response_format", json!("wav")),
        ("stream_format", json!("sse")),
        ("text", json!("b")),
    ];
    let said = said.map(|(field, asked)| (field.to_owned(), asked, Value::Null));
    assert_eq!(adjustment_values(&submission.adjustments), said);
    assert_eq!(speech(&submission).text, "a");
    let error = read(Endpoint::AudioSpeech, &body, true).unwrap_err();
    assert!(error.message.contains("`response_format`"), "{error}");
}

#[test]
fn errors_name_the_field_as_it_was_written() {
    let usual = |more: Value| merged(json!({ "model": "native-v3", "input": "a" }), more);
    let native = |more: Value| merged(json!({ "model_name": "native-v3", "text": "a" }), more);
    let metadata = |more: Value| {
        let metadata = merged(json!({ "text": "a" }), more);
        json!({ "model": "native-v3", "task_type": "tts", "metadata": metadata })
    };
    let long = "é".repeat(4097);
    for (endpoint, body, message) in [
        (
            Endpoint::AudioSpeech,
            usual(json!({ "input": null })),
            "`input` is required and must not be empty, got none",
        ),
        (
            Endpoint::AudioSpeech,
            usual(json!({ "input": " \n" })),
            "`input` is required and must not be empty, got \" \\n\"",
        ),
        (
            Endpoint::AudioSpeech,
            usual(json!({ "input": 5 })),
            "`input` must be a string, got 5",
        ),
        (
            Endpoint::AudioSpeech,
            usual(json!({ "input": long })),
            "`input` must be at most 4096 characters, got 4097",
        ),
        (
            Endpoint::AudioSpeech,
            usual(json!({ "speed": 0.2 })),
            "`speed` must be a number from 0.25 to 4, got 0.2",
        ),
        (
            Endpoint::AudioSpeech,
            usual(json!({ "speed": 4.01 })),
            "`speed` must be a number from 0.25 to 4, got 4.01",
        ),
        (
            Endpoint::AudioSpeech,
            usual(json!({ "speed": "1" })),
            "`speed` must be a number from 0.25 to 4, sent as a JSON number without quotes, got \"1\"",
        ),
        (
            Endpoint::AudioSpeech,
            json!({ "input": "a" }),
            "`model` is required: GET /v1/models lists the models",
        ),
        (
            Endpoint::AudioSpeech,
            json!({ "model": 3 }),
            "`model` must be a string that names a model, got 3",
        ),
        (
            Endpoint::AudioSpeech,
            usual(json!({ "external_task_id": "a", "metadata": { "external_task_id": "b" } })),
            "`external_task_id` and `metadata.external_task_id` are one field but differ: \"a\" and \"b\"; send one of them",
        ),
        (
            Endpoint::NativeSpeech,
            native(json!({ "text": "" })),
            "`text` is required and must not be empty, got \"\"",
        ),
        (
            Endpoint::NativeSpeech,
            native(json!({ "voice_speed": 9 })),
            "`voice_speed` must be a number from 0.25 to 4, got 9",
        ),
        (
            Endpoint::NativeSpeech,
            native(json!({ "voice_id": [] })),
            "`voice_id` must be a string, got []",
        ),
        (
            Endpoint::NativeSpeech,
            json!({ "text": "a" }),
            "`model_name` is required: GET /v1/models lists the models",
        ),
        (
            Endpoint::MultimodalAudio,
            metadata(json!({ "text": "" })),
            "`metadata.text` is required and must not be empty, got \"\"",
        ),
        (
            Endpoint::MultimodalAudio,
            metadata(json!({ "voice_language": 1 })),
            "`metadata.voice_language` must be a string, got 1",
        ),
        (
            Endpoint::MultimodalAudio,
            json!({ "model": "native-v3", "task_type": "tts" }),
            "`metadata.text` is required and must not be empty, got none",
        ),
        (
            Endpoint::MultimodalAudio,
            json!({ "model": "native-v3", "task_type": "sfx", "metadata": { "text": "a" } }),
            "`task_type` must be tts, the only value, got \"sfx\"",
        ),
        (
            Endpoint::MultimodalAudio,
            json!({ "model": "native-v3", "metadata": { "text": "a" } }),
            "`task_type` is required and must not be empty, got none",
        ),
        (
            Endpoint::MultimodalAudio,
            json!({ "model": "native-v3", "task_type": "tts", "metadata": "a" }),
            "`metadata` must be an object, got \"a\"",
        ),
    ] {
        assert_eq!(rejection(endpoint, &body), message);
    }
    assert_eq!(RequestLayout::NativeSpeech.model_field(), "model_name");
}

fn merged(mut body: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}
