//! Tests of adapters that create tokens from their keys: Kling's pairs of keys and Google's service accounts. Also tests of Kling and Google that
//! cannot be written as a case.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
use tollgate_core::{Secret, TaskKind};
use tollgate_media::Job;
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::error::UpstreamErrorKind::{self, *};
use tollgate_upstream::{Channel, Polled, Started};

use crate::adapter::{Adapter, channel, entry, members};
use crate::fixture_server::{
    FixtureServer, ReceivedRequest, Reply, broken_off, chunked, reply, reply_json, with_header,
};
use crate::jobs;

fn speech(text: &str) -> Job {
    jobs::job(TaskKind::Speech, &members(&json!({ "text": text })))
}

/// Speech that Kling has finished.
fn speech_reply(url: &str) -> Reply {
    let result = json!({ "audios": [{ "id": "a-1", "url": url, "duration": "1.5" }] });
    let data = json!({ "task_id": "t-1", "task_status": "succeed", "task_result": result });
    reply_json(
        200,
        &json!({ "code": 0, "message": "SUCCEED", "request_id": "r", "data": data }),
    )
}

fn decoded(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// The claims of a request's token. Asserts that its signature is valid.
fn kling_claims(request: &ReceivedRequest) -> Value {
    let token = request.header("authorization").strip_prefix("Bearer ");
    let (signed, signature) = token.unwrap().rsplit_once('.').unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"secret-key-1");
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    ring::hmac::verify(&key, signed.as_bytes(), &signature).expect("the signature is right");
    let (header, claims) = signed.split_once('.').unwrap();
    assert_eq!(decoded(header), json!({ "alg": "HS256", "typ": "JWT" }));
    decoded(claims)
}

#[tokio::test]
async fn klings_tokens_use_the_providers_clock() {
    let requests = AtomicUsize::new(0);
    let later = SystemTime::now() + Duration::from_secs(7200);
    let server = FixtureServer::start(move |_| {
        if requests.fetch_add(1, Ordering::Relaxed) > 0 {
            return speech_reply("https://cdn.example/a.mp3");
        }
        let rejected = json!({ "code": 1004, "message": "expired", "request_id": "r" });
        let date = httpdate::fmt_http_date(later);
        with_header(reply_json(401, &rejected), "date", &date)
    })
    .await;
    let mut channel = channel("kling", server.url(""), "native-v3");
    channel.api_keys = vec![Secret::new("access-key-1:secret-key-1")];
    let adapter = Adapter::open(channel);
    for _ in 0..2 {
        adapter.start(&speech("Hello.")).await.unwrap();
    }
    let received = server.received();
    assert_eq!(received.len(), 3, "the second speech knows the clock");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    for (request, ahead) in received.iter().zip([0, 7200, 7200]) {
        let claims = kling_claims(request);
        let [exp, nbf] = ["exp", "nbf"].map(|name| claims[name].as_u64().unwrap());
        assert_eq!(
            claims,
            json!({ "iss": "access-key-1", "exp": exp, "nbf": nbf })
        );
        assert_eq!(exp - nbf, 1805);
        assert!(
            (exp - 1800).abs_diff(now.as_secs() + ahead) <= 3,
            "{claims}"
        );
    }
}

#[tokio::test]
async fn requests_that_kling_rejects_at_the_same_time_are_all_sent_again() {
    let server = FixtureServer::start(|request| {
        let now = SystemTime::now() + Duration::from_secs(7200);
        let seconds = now.duration_since(UNIX_EPOCH).unwrap().as_secs();
        if kling_claims(request)["exp"].as_u64().unwrap() > seconds {
            return speech_reply("https://cdn.example/a.mp3");
        }
        let rejected = json!({ "code": 1004, "message": "expired", "request_id": "r" });
        let date = httpdate::fmt_http_date(now);
        with_header(reply_json(401, &rejected), "date", &date)
    })
    .await;
    let mut channel = channel("kling", server.url(""), "native-v3");
    channel.api_keys = vec![Secret::new("access-key-1:secret-key-1")];
    let adapter = Adapter::open(channel);
    let job = speech("Hello.");
    let starts = (0..4).map(|_| adapter.start(&job));
    for started in futures_util::future::join_all(starts).await {
        started.unwrap();
    }
    assert_eq!(server.received().len(), 8);
}

#[tokio::test]
async fn klings_fake_checks_the_signature() {
    let options = tollgate_fakes::Options {
        keys: vec!["access-1:secret-1".to_owned()],
        ..tollgate_fakes::Options::default()
    };
    let fake = tollgate_fakes::start(tollgate_fakes::Provider::Kling, options).await;
    let fake = fake.unwrap();
    for (key, expected) in [
        ("access-1:secret-1", None),
        ("access-1:secret-2", Some(KeyRejected)),
        ("access-2:secret-1", Some(KeyRejected)),
    ] {
        let mut channel = channel("kling", fake.base_url(), "native-v3");
        channel.api_keys = vec![Secret::new(key)];
        let started = Adapter::open(channel).start(&speech("Hello.")).await;
        assert_eq!(started.err().map(|error| error.kind), expected, "{key}");
    }
}

/// A frame of MPEG 1, 128 kbit/s, 44100 Hz.
fn mp3_frame(fill: u8) -> Vec<u8> {
    let mut frame = vec![fill; 417];
    frame[..4].copy_from_slice(&[0xff, 0xfb, 0x90, 0x00]);
    frame
}

/// The file that Kling's adapter delivers for a text of three parts with these files. An empty file cannot be fetched.
async fn long_speech(
    files: [Vec<u8>; 3],
) -> (Result<Started, UpstreamErrorKind>, Vec<String>, Vec<u8>) {
    let server = FixtureServer::start(move |request| {
        if let Some(number) = request.line.strip_prefix("GET /files/") {
            let file: usize = number.parse().unwrap();
            let status = if files[file].is_empty() { 503 } else { 200 };
            return reply(status, "audio/mpeg", files[file].clone());
        }
        let body = request.json();
        let starts = |word: &&str| body["text"].as_str().unwrap().starts_with(word);
        let number = ["One", "Two", "Three"].iter().position(starts).unwrap();
        speech_reply(&format!("http://{}/files/{number}", request.header("host")))
    })
    .await;
    let adapter = Adapter::open(channel("kling", server.url(""), "native-v3"));
    let parts = ["One", "Two", "Three"].map(|word| format!("{word}{}.", " la".repeat(300)));
    let started = adapter.start(&speech(&parts.join(" "))).await;
    let sent = server
        .received()
        .into_iter()
        .filter(|request| !request.body.is_empty());
    let sent = sent.map(|request| request.json()["text"].as_str().unwrap().to_owned());
    let sent: Vec<String> = sent.collect();
    assert!(sent.iter().zip(&parts).all(|(sent, part)| sent == part));
    let file = match adapter.sink.results().first() {
        Some(result) => result.fetch().await,
        None => Vec::new(),
    };
    (started.map_err(|error| error.kind), sent, file)
}

#[tokio::test]
async fn klings_parts_of_a_long_text_become_one_file_if_they_are_mp3() {
    let mut counting = mp3_frame(0);
    counting[36..40].copy_from_slice(b"Info");
    let files = [
        [counting, mp3_frame(1)].concat(),
        [b"ID3\x04\x00\x00\x00\x00\x00\x02xx".to_vec(), mp3_frame(2)].concat(),
        mp3_frame(3),
    ];
    let (started, sent, file) = long_speech(files).await;
    assert!(started.is_ok() && sent.len() == 3);
    assert!(file == [mp3_frame(1), mp3_frame(2), mp3_frame(3)].concat());

    let wav = || b"RIFF....WAVE".to_vec();
    let (started, _, _) = long_speech([wav(), wav(), wav()]).await;
    assert_eq!(started.unwrap_err(), Failed);
}

#[tokio::test]
async fn klings_parts_are_not_generated_again_if_one_cannot_be_fetched() {
    let files = [mp3_frame(1), Vec::new(), mp3_frame(3)];
    let (started, sent, _) = long_speech(files).await;
    assert_eq!((started.unwrap_err(), sent.len()), (OutcomeUnknown, 3));
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

/// Header and claims of the token with which an access token is requested. Asserts that its signature is valid.
fn google_claims(request: &ReceivedRequest) -> (Value, Value) {
    let form: Vec<_> = url::form_urlencoded::parse(&request.body).collect();
    assert_eq!(form[0].1, "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let (signed, signature) = form[1].1.rsplit_once('.').unwrap();
    let pem = include_bytes!("data/service_account_key.pem");
    let key = PrivatePkcs8KeyDer::from_pem_slice(pem).unwrap();
    let key = RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap();
    let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public_key());
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    public
        .verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &signature)
        .expect("the signature is right");
    let (header, claims) = signed.split_once('.').unwrap();
    (decoded(header), decoded(claims))
}

/// A server that issues access tokens, and an adapter of `model` at `base` whose key file names that server.
async fn service_account(
    base: String,
    model: &str,
    handler: impl Fn() -> Reply + Send + Sync + 'static,
) -> (FixtureServer, String, Adapter) {
    let (service, roots) = FixtureServer::start_tls("localhost", move |_| handler()).await;
    let host = service.host();
    let uri = format!(
        "https://localhost:{}/token",
        host.rsplit(':').next().unwrap()
    );
    let channel = Channel {
        api_keys: vec![key_file(&uri)],
        options: members(&json!({ "platform": "vertex" })),
        ..channel("gemini", base, model)
    };
    let egress = Client::trusting(roots, ClientOptions::default());
    (service, uri, Adapter::open_with(&egress, channel))
}

fn google_job(kind: TaskKind, family: &str) -> Job {
    jobs::job(kind, &members(&json!({ "family": family })))
}

#[tokio::test]
async fn a_service_accounts_token_is_used_until_it_is_rejected() {
    // The first token is rejected after it was accepted once.
    let server = FixtureServer::start(|request| {
        let models = "/v1/projects/of-the-key/locations/us-central1/publishers/google/models/";
        let is_video = request.line.starts_with(&format!("POST {models}veo"));
        if is_video && request.header("authorization") == "Bearer ya29.1" {
            let error = json!({ "code": 401, "status": "UNAUTHENTICATED", "message": "expired" });
            return reply_json(401, &json!({ "error": error }));
        }
        let image = json!({ "bytesBase64Encoded": "Y2F0" });
        reply_json(
            200,
            &json!({ "predictions": [image], "name": "operations/1" }),
        )
    })
    .await;
    let tokens = AtomicUsize::new(0);
    let token = move || {
        let number = tokens.fetch_add(1, Ordering::Relaxed) + 1;
        let token = format!("ya29.{number}");
        let token = json!({ "access_token": token, "expires_in": 3599, "token_type": "Bearer" });
        reply_json(200, &token)
    };
    let opened = service_account(server.url(""), "imagen-4.0-partner", token).await;
    let (service, uri, mut adapter) = opened;
    let image = google_job(TaskKind::Image, "imagen-4");
    for _ in 0..2 {
        adapter.start(&image).await.unwrap();
    }
    assert_eq!(service.received().len(), 1, "a token is fetched once");
    assert_eq!(
        server.received()[1].header("authorization"),
        "Bearer ya29.1"
    );
    let request = &service.received()[0];
    assert_eq!(request.line, "POST /token");
    assert_eq!(
        request.header("content-type"),
        "application/x-www-form-urlencoded"
    );
    let (header, claims) = google_claims(request);
    assert_eq!(
        header,
        json!({ "alg": "RS256", "typ": "JWT", "kid": "key-1" })
    );
    let [iat, exp] = ["iat", "exp"].map(|name| claims[name].as_u64().unwrap());
    let expected = json!({
        "iss": "gateway@of-the-key.iam.example", "aud": uri, "iat": iat, "exp": iat + 3600,
        "scope": "https://www.googleapis.com/auth/cloud-platform",
    });
    assert_eq!((claims, exp), (expected, iat + 3600));

    adapter.model = ChannelModel::new("veo-3.1-pro", "veo-3.1-pro");
    let video = google_job(TaskKind::Video, "veo-3.1");
    assert_eq!(adapter.start(&video).await.unwrap_err().kind, KeyRejected);
    adapter.start(&video).await.unwrap();
    assert_eq!(
        service.received().len(),
        2,
        "a rejected token is not used again"
    );
}

#[tokio::test]
async fn errors_of_the_token_service_are_classified() {
    for (status, text, expected) in [
        (
            400,
            r#"{"error":"invalid_grant","error_description":"account not found"}"#,
            KeyRejected,
        ),
        (500, "oops", Unavailable),
        (200, "{}", Unavailable),
    ] {
        let nowhere = "http://127.0.0.1:1".to_owned();
        let handler = move || reply(status, "application/json", text);
        let (_service, _, adapter) = service_account(nowhere, "imagen-4.0-partner", handler).await;
        let job = google_job(TaskKind::Image, "imagen-4");
        let error = adapter.start(&job).await.unwrap_err();
        assert_eq!(error.kind, expected, "{status} {text}");
    }
}

#[tokio::test]
async fn requests_that_wait_for_a_token_share_the_error_of_its_fetch() {
    let nowhere = "http://127.0.0.1:1".to_owned();
    let handler = || reply(500, "application/json", "oops");
    let (service, _, adapter) = service_account(nowhere, "imagen-4.0-partner", handler).await;
    let job = google_job(TaskKind::Image, "imagen-4");
    for fetches in [1, 2] {
        let starts = (0..3).map(|_| adapter.start(&job));
        for started in futures_util::future::join_all(starts).await {
            assert_eq!(started.unwrap_err().kind, Unavailable);
        }
        assert_eq!(service.received().len(), fetches);
    }
}

#[test]
fn invalid_keys_are_rejected_without_being_printed() {
    let vertex = json!({ "platform": "vertex", "project": "p" });
    for (options, key, expected) in [
        (
            json!({}),
            key_file("https://x.example"),
            "needs `platform = \"vertex\"`",
        ),
        (
            vertex.clone(),
            key_file("http://x.example"),
            "must be an https URL",
        ),
        (
            vertex.clone(),
            Secret::new("{"),
            "api_keys[0]: the key begins with {",
        ),
        (
            vertex.clone(),
            Secret::new("{\"private_key\":\"MII\"}"),
            "not an RSA key",
        ),
        (
            vertex,
            Secret::new("{\"type\":\"authorized_user\"}"),
            "`private_key` is missing",
        ),
    ] {
        let channel = Channel {
            api_keys: vec![key],
            options: members(&options),
            ..Channel::new("main", "gemini")
        };
        let error = (entry("gemini").check)(&channel).unwrap_err();
        assert!(
            error.contains(expected) && !error.contains("MII"),
            "{error}"
        );
    }
}

const OPERATION: &str =
    "projects/p/locations/l/publishers/google/models/veo-3.1-generate-001/operations/1";

/// Polls on the Agent Platform; returns the outcome and the delivered files.
async fn poll_platform(
    handler: impl Fn() -> Reply + Send + Sync + 'static,
) -> (Result<Polled, UpstreamErrorKind>, Vec<Vec<u8>>) {
    let server = FixtureServer::start(move |_| handler()).await;
    let mut channel = channel("gemini", server.url(""), "veo-3.1-pro");
    let options = json!({ "platform": "vertex", "project": "p", "location": "l" });
    channel.options = members(&options);
    let adapter = Adapter::open(channel);
    let polled = adapter.poll(OPERATION, TaskKind::Video, 1).await;
    let request = &server.received()[0];
    let path = OPERATION.split("/operations/").next().unwrap();
    assert_eq!(
        request.line,
        format!("POST /v1/{path}:fetchPredictOperation")
    );
    assert_eq!(request.json(), json!({ "operationName": OPERATION }));
    let mut files = Vec::new();
    for result in adapter.sink.results() {
        files.push(result.fetch().await);
    }
    (polled.map_err(|error| error.kind), files)
}

#[tokio::test]
async fn a_video_in_the_agent_platforms_response_is_decoded_across_chunks() {
    let video: Vec<u8> = (0..3_000_001_u32).map(|n| (n % 251) as u8).collect();
    let start = r#"{"done":true,"response":{"videos":[{"bytesBase64Encoded":""#;
    let end = r#"","mimeType":"video/mp4"}]}}"#;
    let text = Bytes::from([start, &STANDARD.encode(&video), end].concat());
    let (polled, files) = poll_platform(move || {
        let starts = (0..text.len()).step_by(99_991);
        let chunk = |at: usize| Ok(text.slice(at..text.len().min(at + 99_991)));
        let chunks: Vec<_> = starts.map(chunk).collect();
        chunked(200, "application/json", stream::iter(chunks).boxed())
    })
    .await;
    assert!(matches!(polled, Ok(Polled::Completed(_))), "{polled:?}");
    assert!(files == [video]);

    // A video whose transfer breaks off is fetched again at the next poll.
    let beginning = format!("{start}AAAA");
    let (polled, files) =
        poll_platform(move || broken_off("application/json", beginning.clone())).await;
    assert_eq!(polled.unwrap_err(), Unavailable);
    assert!(files.is_empty());
}
