//! Tests the sandbox's chat provider in every format, complete and streaming.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;
use tollgate_chat::hub::{Choice, PartKind, Request, Response, ResponseBuilder};
use tollgate_chat::{FORMATS, Format, Target, by_name, tokens};
use tollgate_upstream::{Channel, ChatProvider, UpstreamErrorKind};

use crate::harness::{Chat, chat_provider};

fn sandbox() -> Arc<dyn ChatProvider> {
    chat_provider(Channel::new("sandbox", "sandbox"), Duration::ZERO)
}

/// A request in the format of chat completions, which can express everything that the tests need.
fn request(fields: &Value) -> Request {
    let format = FORMATS
        .iter()
        .find(|format| format.name() == "chat-completions");
    let format = format.expect("a known format");
    format.read_request(fields.to_string().as_bytes()).unwrap()
}

fn saying(text: &str) -> Request {
    request(&json!({"model": "gpt-5", "messages": [{"role": "user", "content": text}]}))
}

/// The call for `request` in `format`.
fn chat_call(format: &'static dyn Format, stream: bool, request: &Request) -> Chat {
    let known = sandbox().model("gpt-5");
    let target = Target {
        model: &known.upstream_id,
        stream,
        capabilities: &known.capabilities,
        default_max_tokens: 8_192,
    };
    let written = format.write_request(request, &target);
    let written = written.unwrap_or_else(|error| panic!("{}: {error}", format.name()));
    Chat::new(format, stream, written.body)
}

/// The pieces of a response, and whether the response broke off.
async fn pieces(chat: &Chat) -> (Vec<Bytes>, bool) {
    let mut body = chat.send(&*sandbox()).await.unwrap();
    let mut all = Vec::new();
    loop {
        match body.chunk().await {
            Ok(Some(piece)) => all.push(piece),
            Ok(None) => return (all, false),
            Err(_) => return (all, true),
        }
    }
}

fn read_response(format: &dyn Format, stream: bool, pieces: &[Bytes]) -> Response {
    if !stream {
        return format.read_response(&pieces.concat()).unwrap();
    }
    let (mut reader, mut events) = (format.stream_reader(), Vec::new());
    for piece in pieces {
        reader.push(piece, &mut events).unwrap();
    }
    reader.finish(&mut events).unwrap();
    let mut builder = ResponseBuilder::default();
    events.iter().for_each(|event| builder.push(event));
    assert!(builder.is_finished());
    builder.build()
}

/// The text, the thoughts and the tool calls of a choice.
fn parts(choice: &Choice) -> (String, String, Vec<Value>) {
    let mut parts = (String::new(), String::new(), Vec::new());
    for part in &choice.parts {
        match &part.kind {
            PartKind::Text { text, .. } => parts.0 += text,
            PartKind::Reasoning { text, .. } => parts.1 += text,
            PartKind::ToolCall {
                name, arguments, ..
            } => {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                parts.2.push(json!([name, arguments]));
            }
            _ => {}
        }
    }
    parts
}

/// Every format, complete and streaming.
fn modes() -> impl Iterator<Item = (&'static dyn Format, bool)> {
    FORMATS
        .iter()
        .flat_map(|format| [(*format, false), (*format, true)])
}

/// Each line of `tests/chats.jsonl` is a request and the expected properties of its responses: `text`, `contains`, `words`, `tokens` (of the text),
/// `calls`, `finish`, `stop`, `choices` (different ones), `thinks` (words of the thought), `input` (the minimum of input tokens); in `formats`, or in
/// all.
#[tokio::test]
async fn responses_have_the_expected_properties() {
    for line in include_str!("../chats.jsonl").lines() {
        let line: Value = serde_json::from_str(line).expect("a case");
        let mut request = request(&line["request"]);
        if let Some(reasoning) = &mut request.reasoning {
            // Without it, not every format returns thoughts.
            reasoning.display = Some("auto".to_owned());
        }
        let formats = line["formats"].as_array();
        let formats = modes().filter(|(format, _)| {
            formats.is_none_or(|formats| formats.iter().any(|name| name == format.name()))
        });
        for (format, stream) in formats {
            let call = chat_call(format, stream, &request);
            let (all, cut_off) = pieces(&call).await;
            assert!(!cut_off);
            let shown = format!("{} {line} {all:?}", format.name());
            check(
                &read_response(format, stream, &all),
                &request,
                &line["response"],
                &shown,
            );
            let again = pieces(&call).await.0;
            let texts =
                [&all, &again].map(|all| parts(&read_response(format, stream, all).choices[0]).0);
            assert_eq!(texts[0], texts[1], "{shown}");
        }
    }
}

fn check(response: &Response, request: &Request, expected: &Value, shown: &str) {
    let choice = &response.choices[0];
    let (text, thought, calls) = parts(choice);
    let usage = response.usage.unwrap();
    let count = tokens::estimate_text(&text);
    for (name, expected) in expected.as_object().expect("what is expected") {
        let found = match name.as_str() {
            "text" => json!(text),
            "words" => json!(text.split_whitespace().count()),
            "tokens" => json!(count),
            "calls" => json!(calls),
            "finish" => json!(format!("{:?}", choice.finish)),
            "stop" => json!(choice.stop_sequence),
            "choices" => {
                let mut texts: Vec<_> = response.choices.iter().map(|one| parts(one).0).collect();
                let sum: u64 = texts.iter().map(|text| tokens::estimate_text(text)).sum();
                assert_eq!(usage.output, sum, "{shown}");
                texts.sort();
                texts.dedup();
                json!(texts.len())
            }
            "contains" => json!(expected.as_str().filter(|part| text.contains(*part))),
            "thinks" => json!(expected.as_str().filter(|part| thought.contains(*part))),
            "input" => json!(expected.as_u64().filter(|min| usage.input >= *min)),
            _ => panic!("nothing is known of `{name}`"),
        };
        assert_eq!(&found, expected, "{name}: {shown}");
    }
    if calls.is_empty() && response.choices.len() == 1 {
        assert_eq!(usage.reasoning, tokens::estimate_text(&thought), "{shown}");
        assert_eq!(usage.output, usage.reasoning + count, "{shown}");
    }
    if calls.is_empty() && expected.get("input").is_none() {
        assert_eq!(usage.input, tokens::estimate_request(request), "{shown}");
    }
}

/// Each line of `tests/format_requests.jsonl` is what it proves, a format, a request in that format's fields, and the expected properties: `thinks`,
/// `calls` (a tool's name), `has_text`, or `rejected` (words of the error's message).
#[tokio::test]
async fn fields_of_each_format_are_applied_or_rejected() {
    for line in include_str!("../format_requests.jsonl").lines() {
        let (proves, name, body, expected): (String, String, Value, Value) =
            serde_json::from_str(line).expect("a case");
        let format = by_name(&name).expect("a format");
        if let Some(words) = expected["rejected"].as_str() {
            let call = Chat::new(format, false, body.to_string());
            let error = call.error(&*sandbox()).await;
            assert_eq!(error.kind, UpstreamErrorKind::Rejected, "{proves}: {error}");
            assert!(error.message.contains(words), "{proves}: {error}");
            continue;
        }
        let mut texts = Vec::new();
        for stream in [false, true] {
            let mut body = body.clone();
            if name != "generate-content" {
                body["stream"] = stream.into();
            }
            let (all, _) = pieces(&Chat::new(format, stream, body.to_string())).await;
            let (text, thought, calls) = parts(&read_response(format, stream, &all).choices[0]);
            let shown = format!("{proves}: {name} {stream} {all:?}");
            if let Some(thinks) = expected["thinks"].as_bool() {
                assert_eq!(!thought.is_empty(), thinks, "{shown}");
            }
            if let Some(tool) = expected["calls"].as_str() {
                assert!(calls.iter().any(|call| call[0] == tool), "{shown}");
            }
            assert!(
                expected["has_text"].is_null() || !text.is_empty(),
                "{shown}"
            );
            texts.push(text);
        }
        assert_eq!(texts[0], texts[1], "{proves}: {name}");
    }
}

#[tokio::test]
async fn streams_are_sent_word_by_word() {
    let request = saying("[[sandbox:say=one two three four five]]");
    for (format, stream) in modes() {
        let (all, _) = pieces(&chat_call(format, stream, &request)).await;
        if !stream {
            assert_eq!(all.len(), 1);
            continue;
        }
        let words = |piece: &&Bytes| {
            let piece = String::from_utf8_lossy(piece);
            let words = ["one ", "two ", "three ", "four "];
            words.iter().filter(|word| piece.contains(**word)).count() == 1
        };
        assert!(
            all.iter().filter(words).count() >= 4,
            "{}: {all:?}",
            format.name()
        );
        assert!(
            all.iter().all(|piece| piece.ends_with(b"\n\n")),
            "{}",
            format.name()
        );
    }
}

#[tokio::test]
async fn failure_directives_give_the_documented_errors() {
    use UpstreamErrorKind::{QuotaExhausted, RateLimited, Rejected, Unavailable};
    for (format, stream) in modes() {
        let chat = |text: &str, failed_attempts: u32| Chat {
            failed_attempts,
            ..chat_call(format, stream, &saying(text))
        };
        for (text, attempts, kind, status) in [
            ("[[sandbox:moderated]]", 0, Rejected, Some(400)),
            ("[[sandbox:fail]]", 7, Unavailable, None),
            ("[[sandbox:fail=2]]", 1, Unavailable, None),
            ("[[sandbox:status=429]]", 0, RateLimited, Some(429)),
            ("[[sandbox:status=402]]", 0, QuotaExhausted, Some(402)),
            ("[[sandbox:status=422]]", 0, Rejected, Some(422)),
            (
                "[[sandbox:fail=1]][[sandbox:status=500]]",
                0,
                Unavailable,
                Some(500),
            ),
        ] {
            let error = chat(text, attempts).error(&*sandbox()).await;
            assert_eq!((error.kind, error.status), (kind, status), "{text}");
            let is_review = error
                .message
                .starts_with("prompt rejected by safety review");
            assert_eq!(is_review, text.contains("moderated"), "{error}");
        }
        let (all, _) = pieces(&chat("[[sandbox:fail=2]][[sandbox:say=at last]]", 2)).await;
        assert_eq!(
            parts(&read_response(format, stream, &all).choices[0]).0,
            "at last"
        );
        let invalid = Chat::new(format, false, &b"{\"stream\": 7}"[..]);
        let error = invalid.error(&*sandbox()).await;
        assert_eq!((error.kind, error.status), (Rejected, Some(400)));
    }
}

#[tokio::test]
async fn cut_ends_the_stream_after_n_content_events() {
    for format in FORMATS {
        let uncut = chat_call(*format, true, &saying("[[sandbox:say=one two three four]]"));
        let (all, cut_off) = pieces(&uncut).await;
        assert!(!cut_off);
        for cut in 0..4 {
            let message = format!("[[sandbox:say=one two three four]][[sandbox:cut={cut}]]");
            let (some, cut_off) = pieces(&chat_call(*format, true, &saying(&message))).await;
            assert!(cut_off && some.len() < all.len(), "{} {cut}", format.name());
            let sent = String::from_utf8(some.concat()).unwrap();
            let words = ["one ", "two ", "three ", "four"];
            let found = words.iter().filter(|word| sent.contains(**word)).count();
            // A writer may hold back one piece until the next, but no more.
            assert!(
                found <= cut && found + 1 >= cut,
                "{} {cut}: {sent}",
                format.name()
            );
        }
        let message = "[[sandbox:say=one two]][[sandbox:cut=9]]";
        let (_, cut_off) = pieces(&chat_call(*format, true, &saying(message))).await;
        assert!(!cut_off, "{}", format.name());
    }
}

#[tokio::test]
async fn the_apis_option_restricts_the_formats() {
    let names = |apis: &[&str]| {
        let apis = apis.iter().map(|name| (*name).to_owned()).collect();
        let channel = Channel {
            apis: Some(apis),
            ..Channel::new("sandbox", "sandbox")
        };
        let formats = chat_provider(channel, Duration::ZERO).formats().to_vec();
        formats.iter().map(|f| f.name()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["messages", "responses"]), ["messages", "responses"]);
    assert_eq!(sandbox().formats().len(), FORMATS.len());
}

#[tokio::test(start_paused = true)]
async fn the_first_byte_takes_the_configured_time_or_the_delay() {
    let channel = Channel::new("sandbox", "sandbox");
    let slow = chat_provider(channel, Duration::from_millis(300));
    let timed = async |provider: &dyn ChatProvider, text: &str| {
        let started = Instant::now();
        let mut chat = chat_call(FORMATS[0], true, &saying(text));
        chat.first_byte = Duration::from_millis(600);
        let failed = chat.send(provider).await.err().map(|error| error.kind);
        (failed, started.elapsed().as_millis())
    };
    let (failed, ms) = timed(&*slow, "hello").await;
    assert!(failed.is_none() && (300..600).contains(&ms), "{ms}");
    let (failed, ms) = timed(&*slow, "[[sandbox:delay=50]]").await;
    assert!(failed.is_none() && (50..300).contains(&ms), "{ms}");
    let (failed, ms) = timed(&*slow, "[[sandbox:fail]]").await;
    assert!(
        failed == Some(UpstreamErrorKind::Unavailable) && ms < 300,
        "{ms}"
    );
    let (failed, ms) = timed(&*slow, "[[sandbox:hang]]").await;
    assert!(
        failed == Some(UpstreamErrorKind::TimedOut) && ms >= 600,
        "{ms}"
    );
    let (failed, _) = timed(&*slow, "[[sandbox:delay=5000]]").await;
    assert_eq!(failed, Some(UpstreamErrorKind::TimedOut));
}
