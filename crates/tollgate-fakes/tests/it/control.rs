//! How tests steer a fake and what it tells them.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tollgate_fakes::{Bench, Options, Provider, Scenario};

use crate::client::{CHAT, GENERATE, MESSAGES, WIRES, send};

#[tokio::test]
async fn the_queue_comes_before_what_is_set() {
    let fake = CHAT.start().await;
    fake.set(Scenario::Status(500, None));
    fake.queue(Scenario::Status(501, None));
    fake.queue(Scenario::Normal);
    let mut wrong = (CHAT.body)("hello");
    wrong["top_k"] = json!(1);
    assert_eq!(
        CHAT.post(&fake, &wrong).await.status,
        400,
        "refused, and takes no turn"
    );
    for status in [501, 200, 500, 500] {
        assert_eq!(CHAT.post(&fake, &(CHAT.body)("hello")).await.status, status);
    }
}

#[tokio::test]
async fn requests_bring_behaviours_of_their_own() {
    let fake = CHAT.start().await;
    fake.set(Scenario::Overloaded);
    fake.queue(Scenario::ModelMissing);
    let reply = CHAT
        .post(&fake, &(CHAT.body)("please [[fake:status=418]] now"))
        .await;
    assert_eq!(reply.status, 418);
    let mut headers = CHAT.headers.to_vec();
    headers.push(("x-fake", "Status=419"));
    let body = (CHAT.body)("[[fake:status=418]]").to_string();
    let reply = send(&fake, "POST", CHAT.path, &headers, &body)
        .await
        .expect("an answer");
    assert_eq!(reply.status, 419);
    let reply = CHAT.post(&fake, &(CHAT.body)("[[fake:nonsense]]")).await;
    assert_eq!(
        (reply.status, reply.header("x-fake-rule")),
        (400, "scenario")
    );
    assert_eq!(
        CHAT.post(&fake, &(CHAT.body)("hello")).await.status,
        404,
        "the queue waits"
    );
}

#[test]
fn names() {
    assert_eq!(Scenario::all().len(), 39);
    for (name, scenario) in [
        ("reset_mid_body=4", Scenario::ResetMidBody { after: 4 }),
        ("ResetMidBody", Scenario::ResetMidBody { after: 2 }),
        ("rate-limited=9", Scenario::RateLimited { retry_after: 9 }),
        (
            "status=503,{}",
            Scenario::Status(503, Some("{}".to_owned())),
        ),
        (
            "key-refused=k",
            Scenario::KeyRefused {
                key: Some("k".to_owned()),
            },
        ),
    ] {
        assert_eq!(name.parse(), Ok(scenario));
    }
    assert!("stall=many".parse::<Scenario>().is_err());
    for provider in Provider::all() {
        assert_eq!(provider.name().parse(), Ok(provider));
    }
}

#[tokio::test]
async fn requests_are_remembered() {
    let fake = GENERATE.start().await;
    assert!(fake.base_url().starts_with("http://127.0.0.1:") && !fake.base_url().ends_with("/v1"));
    let wire = GENERATE.at("/v1beta/models/x:streamGenerateContent?alt=sse");
    wire.post(&fake, &(wire.body)("hello")).await;
    let seen = fake.requests().pop().expect("a request");
    assert_eq!(
        (seen.method.as_str(), seen.query.as_str()),
        ("POST", "alt=sse")
    );
    assert_eq!(seen.path, "/v1beta/models/x:streamGenerateContent");
    assert_eq!(seen.header("X-Goog-Api-Key"), Some("k"));
    assert_eq!(seen.body, (wire.body)("hello"));
    fake.clear();
    assert!(fake.requests().is_empty());
    assert!(CHAT.start().await.base_url().ends_with("/v1"));
}

#[tokio::test]
async fn a_stopped_fake_is_gone() {
    let fake = MESSAGES.start().await;
    let address = fake.address();
    fake.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn the_seed_decides_how_streams_are_cut() {
    let mut cuts = Vec::new();
    for seed in [1, 1, 2] {
        let options = Options {
            seed,
            chunks: 40,
            delay: Duration::from_millis(1),
            ..Options::default()
        };
        let fake = MESSAGES.start_with(options).await;
        let (wire, body) =
            MESSAGES.streamed((MESSAGES.body)("a text of forty letters, more or less"));
        let reply = wire.post(&fake, &body).await;
        let whole = reply.pieces.iter().filter(|piece| piece.ends_with(b"\n\n"));
        assert!(
            whole.count() < reply.pieces.len(),
            "some events are cut in two"
        );
        cuts.push(reply.bytes().len());
    }
    assert_eq!(cuts[0], cuts[1]);
}

#[tokio::test]
async fn answers_for_measuring() {
    let options = Options {
        bench: Some(Bench {
            bytes: 1000,
            chunks: 10,
        }),
        ..Options::default()
    };
    let fake = CHAT.start_with(options).await;
    let reply = CHAT.post(&fake, &json!({"anything": 1})).await.json();
    let text = reply["choices"][0]["message"]["content"].as_str();
    assert_eq!(text.map(str::len), Some(1000));
    let events = CHAT.post(&fake, &json!({"stream": true})).await.events();
    assert_eq!(events.len(), 13);
    let reply = MESSAGES.post(&fake, &json!({})).await.json();
    assert_eq!(
        reply["content"][0]["text"].as_str().map(str::len),
        Some(1000)
    );
    let events = MESSAGES
        .post(&fake, &json!({"stream": true}))
        .await
        .events();
    assert_eq!(events.len(), 15);
}

#[tokio::test]
async fn bodies_are_json() {
    for wire in WIRES {
        let fake = wire.start().await;
        for body in ["", "[]", "{\"model\": "] {
            let reply = send(&fake, "POST", wire.path, wire.headers, body).await;
            let reply = reply.expect("an answer");
            assert_eq!((reply.status, reply.header("x-fake-rule")), (400, "json"));
        }
    }
}

#[test]
fn the_program_says_where_it_listens() {
    // Asked for here, not at compile time: a shell stands between cargo and rustc, and passes on no such name.
    let program = std::env::var_os("CARGO_BIN_EXE_tollgate-fakes").expect("cargo says where it is");
    for (provider, end) in [("openai", "/v1\n"), ("gemini", "\n")] {
        let mut program = Command::new(&program)
            .args([
                "--provider",
                provider,
                "--port",
                "0",
                "--key",
                "k",
                "--chunks",
                "3",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut line = String::new();
        let out = program.stdout.take().expect("its output");
        let read = BufReader::new(out).read_line(&mut line);
        program.kill().expect("it is stopped");
        program.wait().expect("it ends");
        read.expect("a line");
        assert!(line.starts_with("listening on http://127.0.0.1:") && line.ends_with(end));
    }
}
