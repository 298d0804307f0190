//! Tests how tests control a fake, and what the fake reports to them.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tollgate_fakes::{Bench, Options, Provider, Scenario};

use crate::client::{Client, Exchange};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

async fn chat_client(options: Options) -> Client {
    Client::start(Provider::OpenAi, options).await
}

fn chat(text: &str) -> Value {
    json!({"model": "gpt-4o", "messages": [{"role": "user", "content": text}]})
}

#[tokio::test]
async fn a_scenario_in_the_request_precedes_the_queue_and_the_queue_precedes_the_set_one() {
    let mut client = chat_client(Options::default()).await;
    client.fake.set(Scenario::Status(500, None));
    client.fake.queue(Scenario::Status(501, None));
    client.fake.queue(Scenario::Normal);
    let mut invalid = chat("hello");
    invalid["top_k"] = json!(1);
    assert_eq!(
        client.post(CHAT, &invalid).await.status,
        400,
        "it takes nothing from the queue"
    );
    let own = client
        .post(CHAT, &chat("please [[fake:status=418]] now"))
        .await;
    assert_eq!(own.status, 418);
    for status in [501, 200, 500, 500] {
        assert_eq!(client.post(CHAT, &chat("hello")).await.status, status);
    }
    client
        .headers
        .push(("x-fake".to_owned(), "Status=419".to_owned()));
    let own = client.post(CHAT, &chat("[[fake:status=418]]")).await;
    assert_eq!(own.status, 419, "the header comes before the text");
}

#[test]
fn names_of_scenarios_and_providers_are_parsed() {
    assert_eq!(Scenario::all().len(), 40);
    let key = Some("k".to_owned());
    for (name, scenario) in [
        ("reset_mid_body=4", Scenario::ResetMidBody { after: 4 }),
        ("ResetMidBody", Scenario::ResetMidBody { after: 2 }),
        ("rate-limited=9", Scenario::RateLimited { retry_after: 9 }),
        (
            "status=503,{}",
            Scenario::Status(503, Some("{}".to_owned())),
        ),
        ("key-refused=k", Scenario::KeyRefused { key }),
    ] {
        assert_eq!(name.parse(), Ok(scenario));
    }
    assert!("stall=many".parse::<Scenario>().is_err());
    for provider in Provider::all() {
        assert_eq!(provider.name().parse(), Ok(provider));
    }
}

#[tokio::test]
async fn received_requests_are_recorded() {
    let client = Client::start(Provider::Gemini, Options::default()).await;
    let base_url = client.fake.base_url();
    assert!(base_url.starts_with("http://127.0.0.1:") && !base_url.ends_with("/v1"));
    let path = "/v1beta/models/x:streamGenerateContent";
    let body = json!({"contents": [{"parts": [{"text": "hello"}]}]});
    client.post(&format!("{path}?alt=sse"), &body).await;
    let request = client.fake.requests().pop().expect("a request");
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", path)
    );
    assert_eq!((request.query.as_str(), &request.body), ("alt=sse", &body));
    assert_eq!(request.header("X-Goog-Api-Key"), Some("k"));
    client.fake.clear();
    assert!(client.fake.requests().is_empty());
    let client = chat_client(Options::default()).await;
    assert!(client.fake.base_url().ends_with("/v1"));
    let address = client.fake.address();
    client.fake.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn the_usage_report_has_the_sums_of_the_responses() {
    let mut client = Client::start(Provider::Anthropic, Options::default()).await;
    let mut billed = [0; 5];
    let cached = json!({"type": "ephemeral", "ttl": "1h"});
    for block in [
        json!({"type": "text", "text": "hello"}),
        json!({"type": "text", "text": "hello", "cache_control": cached}),
    ] {
        let messages = json!([{"role": "user", "content": [block]}]);
        let body = json!({"model": "claude-haiku-4-5", "max_tokens": 4000, "messages": messages});
        let reply = client.post(MESSAGES, &body).await.json();
        let written = &reply["usage"]["cache_creation"];
        assert_ne!(written["ephemeral_1h_input_tokens"], 0, "{reply}");
        add(&mut billed, &reply["usage"], "input_tokens");
    }
    client.headers = vec![("x-api-key".to_owned(), "sk-ant-admin-1".to_owned())];
    let today = jiff::Timestamp::now();
    let tomorrow = today + jiff::SignedDuration::from_hours(24);
    let path = "/v1/organizations/usage_report/messages?bucket_width=1d";
    let path = format!("{path}&starting_at={today:.0}&ending_at={tomorrow:.0}");
    let report = client.get(&path).await.json();
    let mut reported = [0; 5];
    let result = &report["data"][0]["results"][0];
    add(&mut reported, result, "uncached_input_tokens");
    assert_eq!(reported, billed, "{report}");
}

/// Adds the counts of an Anthropic usage: input, cached, written for five minutes and for one hour, output.
fn add(sums: &mut [u64; 5], usage: &Value, input: &str) {
    let written = &usage["cache_creation"];
    let counts = [
        &usage[input],
        &usage["cache_read_input_tokens"],
        &written["ephemeral_5m_input_tokens"],
        &written["ephemeral_1h_input_tokens"],
        &usage["output_tokens"],
    ];
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count.as_u64().expect("a count");
    }
}

#[tokio::test]
async fn the_seed_decides_how_streams_are_split() {
    let body = Exchange::chats()[5].body("a text of forty letters, more or less");
    let mut splits = Vec::new();
    for seed in [1, 1, 2] {
        let options = Options {
            seed,
            chunks: 40,
            delay: Duration::from_millis(1),
            ..Options::default()
        };
        let reply = Client::start(Provider::Anthropic, options)
            .await
            .post(MESSAGES, &body)
            .await;
        let complete = reply.pieces.iter().filter(|piece| piece.ends_with(b"\n\n"));
        assert!(
            complete.count() < reply.pieces.len(),
            "some events are sent in two pieces"
        );
        splits.push(reply.bytes().len());
    }
    assert_eq!(splits[0], splits[1]);
}

#[tokio::test]
async fn prepared_responses_have_the_requested_size() {
    let bench = Some(Bench {
        bytes: 1000,
        chunks: 10,
    });
    let client = chat_client(Options {
        bench,
        ..Options::default()
    })
    .await;
    for (path, text, events) in [
        (CHAT, "/choices/0/message/content", 13),
        (MESSAGES, "/content/0/text", 15),
    ] {
        let reply = client.post(path, &json!({"anything": 1})).await.json();
        let text = reply.pointer(text).and_then(Value::as_str);
        assert_eq!(text.map(str::len), Some(1000));
        let stream = client.post(path, &json!({"stream": true})).await.text();
        let done = stream.matches("data: [DONE]").count();
        assert_eq!(stream.matches("data: ").count() - done, events);
    }
}

#[test]
fn the_program_prints_its_listening_url() {
    // Read at run time, not at compile time: a shell between cargo and rustc does not pass on a variable with such a name.
    let program = std::env::var_os("CARGO_BIN_EXE_tollgate-fakes").expect("cargo says where it is");
    for (provider, end) in [("openai", "/v1\n"), ("gemini", "\n")] {
        let arguments = [
            "--provider",
            provider,
            "--port",
            "0",
            "--key",
            "k",
            "--chunks",
            "3",
        ];
        let mut program = Command::new(&program);
        let program = program.args(arguments).stdout(Stdio::piped()).spawn();
        let mut program = program.expect("the program runs");
        let mut line = String::new();
        let out = program.stdout.take().expect("its output");
        let read = BufReader::new(out).read_line(&mut line);
        program.kill().expect("it is stopped");
        program.wait().expect("it ends");
        read.expect("a line");
        assert!(line.starts_with("listening on http://127.0.0.1:") && line.ends_with(end));
    }
}
