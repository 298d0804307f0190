//! Speech: three ways in, two ways to ask, one kind of task; charged by the character.

use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider, start};

use crate::gate::{Backend, Client, Gate, Setup, on_both, on_one, status};
use crate::records::{about, names, now};

on_both!(
    three_ways_in_make_the_same,
    speech_is_charged_by_the_character
);
on_one!(
    what_is_not_spoken_costs_nothing,
    others_hear_nothing_of_it,
    the_sandbox_speaks,
    wrong_fields_are_named,
);

const DAY: i64 = 86_400;
const USUAL: &str = "/v1/audio/speech";
const NATIVE: &str = "/native/v1/audio/tts";
const MULTIMODAL: &str = "/v1/multimodal/audio/generations";

const RECEIPT: [&str; 7] = [
    "created_at",
    "id",
    "model",
    "object",
    "progress",
    "status",
    "task_id",
];
const RECORD: [&str; 11] = [
    "completed_at",
    "cost",
    "created_at",
    "error",
    "expires_at",
    "id",
    "model",
    "object",
    "progress",
    "status",
    "task_id",
];

/// A gateway whose speech comes from a fake.
async fn choir(backend: Backend) -> (Gate, Fake) {
    let fake = start(Provider::Kling, Options::default()).await.unwrap();
    let config = format!(
        "[price.\"native-v3\"]\nper_thousand_characters = 2\n\
         [[channel]]\nname = \"kling\"\nkind = \"kling\"\nbase_url = \"{}\"\napi_keys = [\"access:hidden-half\"]\n\
         models = [\"native-v3\"]\n",
        fake.base_url()
    );
    (Setup::new(backend).config(&config).start().await, fake)
}

async fn order(client: &Client, path: &str, body: &Value) -> Value {
    client.post(path, body).await.expect(200).json()
}

fn id(receipt: &Value) -> String {
    receipt["task_id"].as_str().expect("an id").to_owned()
}

/// The names of a list and one more.
fn and<'a>(names: &[&'a str], one: &'a str) -> Vec<&'a str> {
    let mut names = [names, &[one]].concat();
    names.sort_unstable();
    names
}

async fn three_ways_in_make_the_same(backend: Backend) {
    let (gate, fake) = choir(backend).await;
    let client = gate.somebody().await;
    let (text, voice) = ("The tide is coming in.", "genshin_vindi2");
    let orders = [
        (
            USUAL,
            json!({
                "model": "native-v3", "input": text, "voice": voice, "speed": 1.2, "language": "en",
                "metadata": { "external_task_id": "mine-1" },
            }),
        ),
        (
            NATIVE,
            json!({
                "model_name": "native-v3", "text": text, "voice_id": voice, "voice_speed": 1.2,
                "voice_language": "en", "external_task_id": "mine-1",
            }),
        ),
        (
            MULTIMODAL,
            json!({
                "model": "native-v3", "task_type": "tts", "external_task_id": "mine-1",
                "metadata": { "text": text, "voice_id": voice, "voice_speed": 1.2, "voice_language": "en" },
            }),
        ),
    ];
    for (path, body) in orders {
        fake.clear();
        let receipt = order(&client, path, &body).await;
        let id = id(&receipt);
        assert_eq!(names(&receipt), and(&RECEIPT, "external_task_id"), "{path}");
        assert_eq!(receipt["id"], id, "{receipt}");
        for (name, value) in [
            ("object", json!("audio")),
            ("model", json!("native-v3")),
            ("status", json!("queued")),
            ("progress", json!(0)),
            ("external_task_id", json!("mine-1")),
        ] {
            assert_eq!(receipt[name], value, "{path}: {receipt}");
        }
        assert!(about(&receipt["created_at"], now()), "{receipt}");

        let record = client.ended(&id).await;
        assert_eq!(status(&record), "completed", "{path}: {record}");
        spoken(&client, &record).await;

        let asked = fake.requests();
        let asked: Vec<_> = asked.iter().filter(|one| one.method == "POST").collect();
        assert_eq!(asked.len(), 1, "{path}");
        assert_eq!(asked[0].rejected_by, None);
        let expected = json!({
            "text": text, "voice_id": voice, "voice_language": "en", "voice_speed": 1.2,
        });
        assert_eq!(asked[0].body, expected, "{path}");
    }
    gate.close().await;
}

/// Looks at a record of speech, and listens.
async fn spoken(client: &Client, record: &Value) {
    let id = record["id"].as_str().unwrap();
    let mut expected = and(&RECORD, "external_task_id");
    expected = and(&expected, "metadata");
    assert_eq!(names(record), expected, "{record}");
    assert_eq!(record["task_id"], id);
    assert_eq!(record["progress"], 100);
    assert_eq!(record["external_task_id"], "mine-1");
    assert!(record["error"].is_null(), "{record}");
    assert!(about(&record["completed_at"], now()), "{record}");
    assert!(about(&record["expires_at"], now() + DAY), "{record}");
    let native = client.get(&format!("{NATIVE}/{id}")).await;
    assert_eq!(native.expect(200).json(), *record, "both ways to ask");

    let url = record["metadata"]["url"].as_str().expect("a link");
    assert!(url.starts_with(&client.url("/files/")), "{url}");
    let sound = client.fetch(url).await.expect(200);
    assert_eq!(sound.header("content-type"), "audio/mpeg");
    assert!(url.ends_with(".mp3"), "{url}");
    let (first, second) = (sound.body[0], sound.body[1]);
    let is_frame = first == 0xff && second & 0xe0 == 0xe0;
    assert!(is_frame || sound.body.starts_with(b"ID3"), "MPEG audio");
    let head = client.fetch_with(http::Method::GET, url, &[("range", "bytes=0-99")]);
    assert!(head.await.expect(206).body == sound.body[..100]);
}

async fn speech_is_charged_by_the_character(backend: Backend) {
    let (gate, _fake) = choir(backend).await;
    let client = gate.somebody_with("payer", &["--balance", "10"]).await;
    let mut spent = 0.0;
    // Characters are Unicode scalar values, not bytes.
    for (text, price) in [
        ("a".repeat(250), 0.5),
        ("猫".repeat(500), 1.0),
        ("é".into(), 0.002),
    ] {
        let body = json!({ "model": "native-v3", "input": text });
        let receipt = order(&client, USUAL, &body).await;
        assert_eq!(names(&receipt), RECEIPT, "{receipt}");
        let record = client.ended(&id(&receipt)).await;
        assert_eq!(status(&record), "completed", "{record}");
        assert_eq!(record["cost"], price, "{record}");
        spent += price;
        let (remains, used) = client.purse().await;
        let off = (remains - (10.0 - spent)).abs() + (used - spent).abs();
        assert!(off < 1e-9, "{remains} {used}");
    }
    let poor = gate.somebody_with("poor", &["--balance", "1"]).await;
    let body = json!({ "model": "native-v3", "input": "a".repeat(501) });
    poor.post(USUAL, &body).await.error(402, "payment_required");
    assert_eq!(poor.purse().await, (1.0, 0.0));
    gate.close().await;
}

async fn what_is_not_spoken_costs_nothing(backend: Backend) {
    let (gate, _fake) = choir(backend).await;
    let client = gate.somebody_with("payer", &["--balance", "10"]).await;
    for (text, code) in [
        ("[[fake:blocked]] hello", "moderated"),
        ("[[fake:fail]] hello", "provider_error"),
    ] {
        let body = json!({ "model": "native-v3", "input": text });
        let record = client.ended(&id(&order(&client, USUAL, &body).await)).await;
        assert_eq!(names(&record), RECORD, "{record}");
        assert_eq!(status(&record), "failed", "{record}");
        assert_eq!(record["error"]["code"], code, "{record}");
        assert_eq!(record["cost"], 0.0, "{record}");
        assert_eq!(client.purse().await, (10.0, 0.0));
    }
    gate.close().await;
}

async fn others_hear_nothing_of_it(backend: Backend) {
    let (gate, _fake) = choir(backend).await;
    let (owner, other) = (gate.somebody().await, gate.somebody().await);
    let body = json!({ "model": "native-v3", "input": "hello" });
    let id = id(&order(&owner, USUAL, &body).await);
    owner.ended(&id).await;
    for path in [format!("{NATIVE}/{id}"), format!("/v1/tasks/{id}")] {
        other.get(&path).await.error(404, "not_found_error");
    }
    // Speech is no film.
    let film = owner.get(&format!("/v1/videos/{id}")).await;
    film.error(404, "not_found_error");
    gate.close().await;
}

async fn the_sandbox_speaks(backend: Backend) {
    let setup = Setup::new(backend).env("TOLLGATE_SANDBOX__SPEECH_MS", "0");
    let prices = "[price.\"native-v3\"]\nper_thousand_characters = 2\n";
    let gate = setup.config(prices).start().await;
    let client = gate.somebody_with("payer", &["--balance", "10"]).await;
    let say = async |text: &str| {
        let body = json!({ "model": "native-v3", "input": text });
        client.ended(&id(&order(&client, USUAL, &body).await)).await
    };
    let mut lengths = Vec::new();
    for text in [
        "Hello.",
        "Good morning, and a long and pleasant day to all of you.",
    ] {
        let record = say(text).await;
        assert_eq!(status(&record), "completed", "{record}");
        let url = record["metadata"]["url"].as_str().expect("a link");
        let sound = client.fetch(url).await.expect(200);
        assert_eq!(sound.header("content-type"), "audio/wav");
        lengths.push(wav_ms(&sound.body));
    }
    assert!(
        300 < lengths[0] && 2 * lengths[0] < lengths[1] && lengths[1] < 15_000,
        "{lengths:?}"
    );
    let (left, spent) = client.purse().await;
    for (directive, code) in [("moderated", "moderated"), ("fail", "provider_error")] {
        let record = say(&format!("Hello. [[sandbox:{directive}]]")).await;
        assert_eq!(record["error"]["code"], code, "{record}");
    }
    assert_eq!(client.purse().await, (left, spent), "nothing for nothing");
    gate.close().await;
}

/// How long a WAV file sounds, in milliseconds; it must be whole, and not silent.
fn wav_ms(file: &[u8]) -> u32 {
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!((&file[..4], &file[8..16]), (&b"RIFF"[..], &b"WAVEfmt "[..]));
    assert_eq!(number(4) as usize, file.len() - 8);
    let at = file
        .windows(4)
        .position(|four| four == b"data")
        .expect("samples");
    let (samples, per_second) = (number(at + 4), number(28));
    assert_eq!(samples as usize, file.len() - at - 8);
    let loud = |pair: &[u8]| i16::from_le_bytes([pair[0], pair[1]]).unsigned_abs() > 1_000;
    assert!(file[at + 8..].chunks_exact(2).any(loud), "it can be heard");
    samples * 1000 / per_second
}

async fn wrong_fields_are_named(backend: Backend) {
    let (gate, fake) = choir(backend).await;
    let client = gate.somebody().await;
    for (path, body, field) in [
        (USUAL, json!({ "model": "native-v3" }), "`input`"),
        (
            USUAL,
            json!({ "model": "native-v3", "input": " " }),
            "`input`",
        ),
        (
            USUAL,
            json!({ "model": "native-v3", "input": "x".repeat(4097) }),
            "`input`",
        ),
        (
            USUAL,
            json!({ "model": "native-v3", "input": "x", "speed": 4.1 }),
            "`speed`",
        ),
        (
            USUAL,
            json!({ "model": "native-v3", "input": "x", "speed": "1" }),
            "`speed`",
        ),
        (NATIVE, json!({ "model_name": "native-v3" }), "`text`"),
        (NATIVE, json!({ "text": "x" }), "`model_name`"),
        (
            MULTIMODAL,
            json!({ "model": "native-v3", "metadata": { "text": "x" } }),
            "`task_type`",
        ),
        (
            MULTIMODAL,
            json!({ "model": "native-v3", "task_type": "sing", "metadata": { "text": "x" } }),
            "`task_type`",
        ),
        (
            MULTIMODAL,
            json!({ "model": "native-v3", "task_type": "tts" }),
            "text",
        ),
    ] {
        let message = client.post(path, &body).await;
        let message = message.error(400, "invalid_request_error");
        assert!(message.contains(field), "{body}: {message}");
    }
    assert!(fake.requests().is_empty(), "nothing went out");
    gate.close().await;
}
