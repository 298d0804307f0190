//! Speech: three endpoints, two ways to poll, one kind of task; charged per character.

use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider, start};

use crate::harness::*;

on_both!(
    three_endpoints_generate_the_same_speech,
    speech_is_charged_by_the_character
);
on_sqlite!(
    failed_speech_is_not_charged,
    speech_is_visible_to_its_user_alone,
    the_sandbox_generates_speech,
    rejected_fields_are_named_in_the_error,
);

const SPEECH: &str = "/v1/audio/speech";
const NATIVE: &str = "/native/v1/audio/tts";
const MULTIMODAL: &str = "/v1/multimodal/audio/generations";

fn receipt() -> Value {
    json!({
        "id": "<string>", "task_id": "<string>", "object": "audio", "model": "native-v3", "status": "queued", "progress": 0,
        "created_at": "<now>",
    })
}

/// A gateway with a fake as the provider of speech.
async fn start_gateway(backend: Backend) -> (TestGateway, Fake) {
    let fake = start(Provider::Kling, Options::default()).await.unwrap();
    let price = "[price.\"native-v3\"]\nper_thousand_characters = 2\n";
    let channel = ChannelConfig::new("kling", "kling").url(&fake.base_url());
    let channel = channel.keys(&["access:hidden-half"]).models(&["native-v3"]);
    let setup = Setup::new(backend).config(price).config(&channel.text());
    (setup.start().await, fake)
}

fn speech(text: &str) -> Value {
    json!({ "model": "native-v3", "input": text })
}

async fn three_endpoints_generate_the_same_speech(backend: Backend) {
    let (gateway, fake) = start_gateway(backend).await;
    let client = gateway.unlimited_client().await;
    let (text, voice) = ("The tide is coming in.", "genshin_vindi2");
    let upstream =
        json!({ "text": text, "voice_id": voice, "voice_language": "en", "voice_speed": 1.2 });
    let usual = json!({
        "model": "native-v3", "input": text, "voice": voice, "speed": 1.2, "language": "en",
        "metadata": { "external_task_id": "mine-1" },
    });
    let mut native = upstream.clone();
    native["model_name"] = "native-v3".into();
    native["external_task_id"] = "mine-1".into();
    let multimodal = json!({
        "model": "native-v3", "task_type": "tts", "external_task_id": "mine-1", "metadata": upstream,
    });
    for (path, body) in [(SPEECH, usual), (NATIVE, native), (MULTIMODAL, multimodal)] {
        fake.clear();
        let reply = client.post(path, &body).await.expect(200).json();
        let mut expected = receipt();
        expected["external_task_id"] = "mine-1".into();
        assert_shape(&reply, expected);
        let id = task_id(&reply);
        assert_eq!(reply["task_id"], id, "{reply}");
        check_completed(&client, &client.wait_for_end(&id).await).await;
        let requests = fake.requests();
        let posts: Vec<_> = requests.iter().filter(|r| r.method == "POST").collect();
        assert_eq!(posts.len(), 1, "{path}");
        assert_eq!(posts[0].rejected_by, None);
        assert_eq!(posts[0].body, upstream, "{path}");
    }
    gateway.close().await;
}

/// Checks a completed record and its file.
async fn check_completed(client: &Client, record: &Value) {
    let id = &record["id"];
    let url = record["metadata"]["url"].as_str().expect("a link");
    let expected = json!({
        "id": id, "task_id": id, "object": "audio", "model": "native-v3", "status": "completed", "progress": 100, "cost": 0.044,
        "external_task_id": "mine-1", "error": null, "created_at": "<now>", "completed_at": "<now>", "expires_at": "<now+86400>",
        "metadata": record["metadata"],
    });
    assert_shape(record, expected);
    let native = format!("{NATIVE}/{}", id.as_str().unwrap());
    assert_eq!(client.get_json(&native).await, *record, "both ways to poll");
    let is_ours = url.starts_with(&client.url("/files/"));
    assert!(is_ours && url.ends_with(".mp3"), "{url}");
    let file = client.fetch(url).await.expect(200);
    assert_eq!(file.header("content-type"), "audio/mpeg");
    let is_frame = file.body[0] == 0xff && file.body[1] & 0xe0 == 0xe0;
    assert!(is_frame || file.body.starts_with(b"ID3"), "MPEG audio");
    let part = client.fetch_with(http::Method::GET, url, &[("range", "bytes=0-99")]);
    assert!(part.await.expect(206).body == file.body[..100]);
}

async fn speech_is_charged_by_the_character(backend: Backend) {
    let (gateway, _fake) = start_gateway(backend).await;
    let client = gateway.funded_client("10").await;
    let reply = client.post(SPEECH, &speech("é")).await.expect(200).json();
    assert_shape(&reply, receipt());
    client.wait_for_end(&task_id(&reply)).await;
    client.check_balances(10.0 - 0.002, 0.002).await;
    cases::check(&client, "speech_prices", &[]).await;
    client.check_balances(10.0 - 1.502, 1.502).await;
    let poor = gateway.user_client("poor", &["--balance", "1"]).await;
    let reply = poor.post(SPEECH, &speech(&"a".repeat(501))).await;
    reply.rejected(402, "");
    assert_eq!(poor.balances().await, (1.0, 0.0));
    gateway.close().await;
}

async fn failed_speech_is_not_charged(backend: Backend) {
    let (gateway, _fake) = start_gateway(backend).await;
    let client = gateway.funded_client("10").await;
    for (text, code) in [
        ("[[fake:blocked]] hello", "moderated"),
        ("[[fake:fail]] hello", "provider_error"),
    ] {
        let record = client.run(SPEECH, &speech(text)).await;
        let expected = json!({
            "id": "<string>", "task_id": "<string>", "object": "audio", "model": "native-v3", "status": "failed",
            "progress": "<integer>", "cost": 0.0, "error": { "code": code, "message": "<string>" },
            "created_at": "<now>", "completed_at": null, "expires_at": null,
        });
        assert_shape(&record, expected);
        assert_eq!(client.balances().await, (10.0, 0.0));
    }
    gateway.close().await;
}

async fn speech_is_visible_to_its_user_alone(backend: Backend) {
    let (gateway, _fake) = start_gateway(backend).await;
    let owner = gateway.unlimited_client().await;
    let other = gateway.unlimited_client().await;
    let record = owner.run(SPEECH, &speech("hello")).await;
    let id = record["id"].as_str().unwrap();
    for path in [NATIVE, "/v1/tasks"] {
        let reply = other.get(&format!("{path}/{id}")).await;
        reply.rejected(404, "");
    }
    // The endpoints of videos do not return speech.
    let video = owner.get(&format!("/v1/videos/{id}")).await;
    video.rejected(404, "");
    gateway.close().await;
}

async fn the_sandbox_generates_speech(backend: Backend) {
    let prices = "[price.\"native-v3\"]\nper_thousand_characters = 2\n";
    let gateway = Setup::new(backend).config(prices).start().await;
    let client = gateway.funded_client("10").await;
    let mut lengths = Vec::new();
    for text in [
        "Hello.",
        "Good morning, and a long and pleasant day to all of you.",
    ] {
        let record = client.run(SPEECH, &speech(text)).await;
        assert_eq!(status(&record), "completed", "{record}");
        let url = record["metadata"]["url"].as_str().expect("a link");
        let file = client.fetch(url).await.expect(200);
        assert_eq!(file.header("content-type"), "audio/wav");
        lengths.push(wav_ms(&file.body));
    }
    let plausible = 300 < lengths[0] && 2 * lengths[0] < lengths[1] && lengths[1] < 15_000;
    assert!(plausible, "{lengths:?}");
    let before = client.balances().await;
    for (directive, code) in [("moderated", "moderated"), ("fail", "provider_error")] {
        let body = speech(&format!("Hello. [[sandbox:{directive}]]"));
        let record = client.run(SPEECH, &body).await;
        assert_eq!(record["error"]["code"], code, "{record}");
    }
    assert_eq!(client.balances().await, before, "failures are free");
    gateway.close().await;
}

/// The duration of a WAV file in milliseconds; the file must be complete, and not silent.
fn wav_ms(file: &[u8]) -> u32 {
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!((&file[..4], &file[8..16]), (&b"RIFF"[..], &b"WAVEfmt "[..]));
    assert_eq!(number(4) as usize, file.len() - 8);
    let at = file.windows(4).position(|four| four == b"data");
    let at = at.expect("samples");
    let (samples, per_second) = (number(at + 4), number(28));
    assert_eq!(samples as usize, file.len() - at - 8);
    let loud = |pair: &[u8]| i16::from_le_bytes([pair[0], pair[1]]).unsigned_abs() > 1_000;
    assert!(file[at + 8..].chunks_exact(2).any(loud), "it is audible");
    samples * 1000 / per_second
}

async fn rejected_fields_are_named_in_the_error(backend: Backend) {
    let (gateway, fake) = start_gateway(backend).await;
    let client = gateway.unlimited_client().await;
    cases::check(&client, "speech_rejected", &[]).await;
    assert!(fake.requests().is_empty(), "nothing is sent upstream");
    gateway.close().await;
}
