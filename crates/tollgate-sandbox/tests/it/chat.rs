//! The sandbox's chat provider in every format, complete and streaming.

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_chat::hub::{
    Choice, Effort, FinishReason, OutputFormat, Part, PartKind, Reasoning, Request, Response,
    ResponseBuilder, Role, Source, Tool, ToolChoice, ToolKind, Turn,
};
use tollgate_chat::{FORMATS, Format, Target, tokens};
use tollgate_upstream::{Channel, ChatProvider, UpstreamErrorKind};

use crate::harness::{Chat, chat_provider};

fn sandbox() -> std::sync::Arc<dyn ChatProvider> {
    chat_provider(Channel::new("sandbox", "sandbox"), Duration::ZERO)
}

fn user(text: &str) -> Turn {
    Turn {
        plain: true,
        ..Turn::new(Role::User, vec![Part::text(text)])
    }
}

fn saying(text: &str) -> Request {
    Request {
        turns: vec![user(text)],
        ..Request::default()
    }
}

/// The call that asks `request` in `format`.
fn chat_call(format: &'static dyn Format, stream: bool, request: &Request) -> Chat {
    let known = sandbox().model("gpt-5");
    let target = Target {
        model: &known.upstream_id,
        stream,
        capabilities: &known.traits,
        default_max_tokens: 8_192,
    };
    let written = format.write_request(request, &target);
    let written = written.unwrap_or_else(|bad| panic!("{}: {bad}", format.name()));
    Chat::new(format, stream, written.body)
}

/// The pieces of an answer, and whether it broke off.
async fn pieces(ask: &Chat) -> (Vec<Bytes>, bool) {
    let mut body = ask.send(&*sandbox()).await.unwrap();
    let mut all = Vec::new();
    loop {
        match body.chunk().await {
            Ok(Some(piece)) => all.push(piece),
            Ok(None) => return (all, false),
            Err(_) => return (all, true),
        }
    }
}

/// What a client of `format` reads.
async fn reply(format: &'static dyn Format, stream: bool, request: &Request) -> Response {
    let (pieces, cut_off) = pieces(&chat_call(format, stream, request)).await;
    assert!(!cut_off);
    read(format, stream, &pieces)
}

fn read(format: &dyn Format, stream: bool, pieces: &[Bytes]) -> Response {
    if !stream {
        return format.read_response(&pieces.concat()).unwrap();
    }
    let mut reader = format.stream_reader();
    let mut events = Vec::new();
    for piece in pieces {
        reader.push(piece, &mut events).unwrap();
    }
    reader.finish(&mut events).unwrap();
    let mut fold = ResponseBuilder::default();
    for event in &events {
        fold.push(event);
    }
    assert!(fold.is_finished());
    fold.build()
}

fn text(choice: &Choice) -> String {
    let texts = choice.parts.iter().filter_map(|part| match &part.kind {
        PartKind::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Both ways of every format that `takes`.
fn modes(takes: impl Fn(&str) -> bool) -> Vec<(&'static dyn Format, bool)> {
    let formats = FORMATS.iter().filter(|format| takes(format.name()));
    formats
        .flat_map(|format| [(*format, false), (*format, true)])
        .collect()
}

fn every_mode() -> Vec<(&'static dyn Format, bool)> {
    modes(|_| true)
}

#[tokio::test]
async fn a_response_quotes_the_message_and_counts_its_tokens() {
    for (format, stream) in every_mode() {
        let request = saying("What is a tollgate?");
        let response = reply(format, stream, &request).await;
        let name = format.name();
        let said = text(&response.choices[0]);
        assert!(said.contains("What is a tollgate?"), "{name}: {said}");
        assert_eq!(response.choices[0].finish, FinishReason::EndTurn, "{name}");
        let usage = response.usage.unwrap();
        assert_eq!(usage.output, tokens::estimate_text(&said), "{name}");
        assert_eq!(usage.input, tokens::estimate_request(&request), "{name}");
        assert_eq!((usage.reasoning, usage.cache_read), (0, 0), "{name}");
        let again = reply(format, stream, &request).await;
        assert_eq!(text(&again.choices[0]), said, "{name}");
    }
}

#[tokio::test]
async fn streams_come_word_by_word() {
    let request = saying("[[sandbox:say=one two three four five]]");
    for (format, stream) in modes(|_| true) {
        let (all, _) = pieces(&chat_call(format, stream, &request)).await;
        if !stream {
            assert_eq!(all.len(), 1);
            continue;
        }
        let with_a_word = all.iter().filter(|piece| {
            let piece = String::from_utf8_lossy(piece);
            ["one ", "two ", "three ", "four "]
                .iter()
                .filter(|word| piece.contains(**word))
                .count()
                == 1
        });
        assert!(with_a_word.count() >= 4, "{}: {all:?}", format.name());
        for piece in &all {
            assert!(piece.ends_with(b"\n\n"), "{}: {piece:?}", format.name());
        }
    }
}

#[tokio::test]
async fn say_and_words_directives_set_the_text() {
    for (format, stream) in every_mode() {
        let response = reply(
            format,
            stream,
            &saying("x [[sandbox:say=Zwei\nZeilen ≠ 猫]] y"),
        )
        .await;
        assert_eq!(
            text(&response.choices[0]),
            "Zwei\nZeilen ≠ 猫",
            "{}",
            format.name()
        );
        let response = reply(format, stream, &saying("[[sandbox:words=37]]")).await;
        let words = text(&response.choices[0]).split_whitespace().count();
        assert_eq!(words, 37, "{}", format.name());
    }
}

#[tokio::test]
async fn only_directives_of_the_last_user_message_apply() {
    for (format, stream) in every_mode() {
        let request = Request {
            turns: vec![
                Turn {
                    plain: true,
                    ..Turn::new(Role::System, vec![Part::text("[[sandbox:fail]]")])
                },
                user("[[sandbox:say=old]]"),
                Turn::new(Role::Assistant, vec![Part::text("[[sandbox:moderated]]")]),
                user("[[sandbox:say=new]]"),
            ],
            ..Request::default()
        };
        let response = reply(format, stream, &request).await;
        assert_eq!(text(&response.choices[0]), "new", "{}", format.name());
    }
}

#[tokio::test]
async fn max_tokens_truncates_the_text() {
    for (format, stream) in every_mode() {
        let request = Request {
            max_tokens: Some(20),
            ..saying("[[sandbox:words=200]]")
        };
        let response = reply(format, stream, &request).await;
        let name = format.name();
        assert_eq!(
            tokens::estimate_text(&text(&response.choices[0])),
            20,
            "{name}"
        );
        assert_eq!(response.choices[0].finish, FinishReason::Length, "{name}");
        assert_eq!(response.usage.unwrap().output, 20, "{name}");
    }
}

#[tokio::test]
async fn stop_sequences_end_the_text() {
    for (format, stream) in modes(|name| name != "responses") {
        let request = Request {
            stop: vec!["never".to_owned(), "three".to_owned()],
            ..saying("[[sandbox:say=one two three four]]")
        };
        let response = reply(format, stream, &request).await;
        let name = format.name();
        assert_eq!(text(&response.choices[0]), "one two ", "{name}");
        // Only messages can say that it was a stop sequence, and which.
        if name == "messages" {
            assert_eq!(response.choices[0].finish, FinishReason::StopSequence);
            assert_eq!(response.choices[0].stop_sequence.as_deref(), Some("three"));
        } else {
            assert_eq!(response.choices[0].finish, FinishReason::EndTurn, "{name}");
        }
    }
}

#[tokio::test]
async fn n_gives_n_different_choices() {
    for (format, stream) in modes(|name| name == "chat-completions" || name == "generate-content") {
        let request = Request {
            n: Some(3),
            ..saying("[[sandbox:words=20]]")
        };
        let response = reply(format, stream, &request).await;
        assert_eq!(response.choices.len(), 3, "{}", format.name());
        let texts: Vec<_> = response.choices.iter().map(text).collect();
        assert_ne!(texts[0], texts[1]);
        let sum: u64 = texts.iter().map(|text| tokens::estimate_text(text)).sum();
        assert_eq!(response.usage.unwrap().output, sum, "{}", format.name());
    }
}

fn weather() -> Tool {
    Tool {
        kind: ToolKind::Function {
            name: "weather".to_owned(),
            description: Some("Tells the weather".to_owned()),
            parameters: Some(json!({
                "type": "object",
                "properties": {
                    "place": {"type": "string"},
                    "days": {"type": "integer", "minimum": 2},
                    "unit": {"type": "string", "enum": ["C", "F"]}
                },
                "required": ["place", "days"]
            })),
            strict: None,
        },
        cache_ttl: None,
        extra: tollgate_chat::hub::ExtraFields::NONE,
    }
}

fn calls(reply: &Response) -> Vec<(String, Value)> {
    let parts = reply.choices[0].parts.iter();
    let calls = parts.filter_map(|part| match &part.kind {
        PartKind::ToolCall {
            name, arguments, ..
        } => Some((name.clone(), serde_json::from_str(arguments).unwrap())),
        _ => None,
    });
    calls.collect()
}

#[tokio::test]
async fn required_tools_are_called_with_valid_arguments() {
    let valid = ("weather".to_owned(), json!({"place": "text", "days": 2}));
    for (format, stream) in every_mode() {
        let name = format.name();
        let with = |choice: ToolChoice, text: &str| Request {
            tools: vec![weather()],
            tool_choice: Some(choice),
            ..saying(text)
        };
        for choice in [ToolChoice::Required, ToolChoice::Tool("weather".to_owned())] {
            let response = reply(format, stream, &with(choice, "Is it raining?")).await;
            assert_eq!(calls(&response), std::slice::from_ref(&valid), "{name}");
            assert_eq!(response.choices[0].finish, FinishReason::ToolCall, "{name}");
            assert!(response.usage.unwrap().output > 0);
        }
        let free = with(ToolChoice::Auto, "Is it raining?");
        let response = reply(format, stream, &free).await;
        assert!(
            calls(&response).is_empty() && !text(&response.choices[0]).is_empty(),
            "{name}"
        );
        let with_directives = with(
            ToolChoice::Auto,
            "[[sandbox:tool=weather]][[sandbox:tool=other]]",
        );
        let response = reply(format, stream, &with_directives).await;
        let empty = |name: &str| (name.to_owned(), json!({}));
        assert_eq!(
            calls(&response),
            [empty("weather"), empty("other")],
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_tool_result_is_answered_with_text() {
    for (format, stream) in every_mode() {
        let request = Request {
            tools: vec![weather()],
            turns: vec![
                user("[[sandbox:tool=weather]]"),
                Turn::new(
                    Role::Assistant,
                    vec![Part::new(PartKind::ToolCall {
                        id: "call_1".to_owned(),
                        name: "weather".to_owned(),
                        arguments: "{}".to_owned(),
                        custom: false,
                        signature: None,
                    })],
                ),
                Turn::new(
                    Role::User,
                    vec![Part::new(PartKind::ToolResult {
                        id: "call_1".to_owned(),
                        name: Some("weather".to_owned()),
                        content: vec![Part::text("rain at noon")],
                        plain: true,
                        is_error: false,
                        custom: false,
                    })],
                ),
            ],
            ..Request::default()
        };
        let response = reply(format, stream, &request).await;
        assert!(calls(&response).is_empty(), "{}", format.name());
        let said = text(&response.choices[0]);
        assert!(said.contains("rain at noon"), "{}: {said}", format.name());
    }
}

#[tokio::test]
async fn structured_output_is_valid_for_its_schema() {
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "names": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
        "required": ["ok", "names"],
        "additionalProperties": false
    });
    for (format, stream) in every_mode() {
        let request = Request {
            output: Some(OutputFormat::Schema {
                name: Some("answer".to_owned()),
                description: None,
                schema: schema.clone(),
                strict: Some(true),
            }),
            ..saying("Is it?")
        };
        let response = reply(format, stream, &request).await;
        let said: Value = serde_json::from_str(&text(&response.choices[0])).unwrap();
        assert_eq!(
            said,
            json!({"ok": false, "names": ["text"]}),
            "{}",
            format.name()
        );
    }
}

#[tokio::test]
async fn reasoning_is_included_and_counted_if_requested() {
    for (format, stream) in every_mode() {
        let request = Request {
            max_tokens: Some(4_000),
            reasoning: Some(Reasoning {
                effort: Some(Effort::Medium),
                display: Some("auto".to_owned()),
                ..Reasoning::default()
            }),
            ..saying("Think about it")
        };
        let response = reply(format, stream, &request).await;
        let name = format.name();
        let thought = response.choices[0]
            .parts
            .iter()
            .find_map(|part| match &part.kind {
                PartKind::Reasoning { text, .. } => Some(text.clone()),
                _ => None,
            });
        let thought = thought.unwrap_or_else(|| panic!("{name}: {response:?}"));
        assert!(thought.contains("Think about it"), "{name}: {thought}");
        let usage = response.usage.unwrap();
        assert_eq!(usage.reasoning, tokens::estimate_text(&thought), "{name}");
        assert!(usage.output > usage.reasoning, "{name}");
    }
}

#[tokio::test]
async fn the_response_tells_number_and_sizes_of_images() {
    let image = image::RgbaImage::new(64, 48);
    let mut png = std::io::Cursor::new(Vec::new());
    image::DynamicImage::from(image)
        .write_to(&mut png, image::ImageFormat::Png)
        .unwrap();
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.encode(png.into_inner());
    for (format, stream) in every_mode() {
        let image = Part::new(PartKind::Image {
            source: Source::Base64 {
                media_type: "image/png".to_owned(),
                data: data.clone(),
            },
            detail: None,
        });
        let link = Part::new(PartKind::Image {
            source: Source::Url {
                url: "https://example.com/a.png".to_owned(),
                media_type: Some("image/png".to_owned()),
            },
            detail: None,
        });
        let request = Request {
            turns: vec![Turn::new(
                Role::User,
                vec![Part::text("What are these?"), image, link],
            )],
            ..Request::default()
        };
        let response = reply(format, stream, &request).await;
        let said = text(&response.choices[0]);
        let expected = "I see 2 images (64x48, of unknown size).";
        assert!(said.contains(expected), "{}: {said}", format.name());
        assert!(response.usage.unwrap().input >= 2 * tokens::IMAGE_TOKENS);
    }
}

#[tokio::test]
async fn failure_directives_give_the_documented_errors() {
    use UpstreamErrorKind::{QuotaExhausted, RateLimited, Rejected, Unavailable};
    for (format, stream) in every_mode() {
        let fails = async |text: &str, failed_attempts: u32| {
            let ask = Chat {
                failed_attempts,
                ..chat_call(format, stream, &saying(text))
            };
            let error = ask.error(&*sandbox()).await;
            (error.kind, error.status, error.message)
        };
        let (kind, status, message) = fails("[[sandbox:moderated]]", 0).await;
        assert_eq!((kind, status), (Rejected, Some(400)));
        assert!(message.starts_with("prompt rejected by safety review"));
        for (text, attempts, kind, status) in [
            ("[[sandbox:fail]]", 7, Unavailable, 500),
            ("[[sandbox:fail=2]]", 1, Unavailable, 503),
            ("[[sandbox:status=429]]", 0, RateLimited, 429),
            ("[[sandbox:status=402]]", 0, QuotaExhausted, 402),
            ("[[sandbox:status=422]]", 0, Rejected, 422),
            (
                "[[sandbox:fail=1]][[sandbox:status=500]]",
                0,
                Unavailable,
                500,
            ),
        ] {
            let error = fails(text, attempts).await;
            assert_eq!((error.0, error.1), (kind, Some(status)), "{text}");
        }
        let third = Chat {
            failed_attempts: 2,
            ..chat_call(
                format,
                stream,
                &saying("[[sandbox:fail=2]][[sandbox:say=at last]]"),
            )
        };
        let (all, _) = pieces(&third).await;
        assert_eq!(text(&read(format, stream, &all).choices[0]), "at last");
    }
}

#[tokio::test]
async fn an_invalid_request_is_rejected() {
    for format in FORMATS {
        let ask = Chat::new(*format, false, &b"{\"stream\": 7}"[..]);
        let error = ask.error(&*sandbox()).await;
        assert_eq!(
            (error.kind, error.status),
            (UpstreamErrorKind::Rejected, Some(400))
        );
    }
}

#[tokio::test]
async fn cut_breaks_the_stream_off_after_n_content_events() {
    for format in FORMATS {
        let whole = chat_call(*format, true, &saying("[[sandbox:say=one two three four]]"));
        let (all, cut_off) = pieces(&whole).await;
        assert!(!cut_off);
        for cut in 0..4 {
            let message = format!("[[sandbox:say=one two three four]][[sandbox:cut={cut}]]");
            let (some, cut_off) = pieces(&chat_call(*format, true, &saying(&message))).await;
            assert!(cut_off && some.len() < all.len(), "{} {cut}", format.name());
            let said = String::from_utf8(some.concat()).unwrap();
            let words = ["one ", "two ", "three ", "four"];
            let heard = words.iter().filter(|word| said.contains(**word)).count();
            // A writer may hold a piece back until the next, never more.
            assert!(
                heard <= cut && heard + 1 >= cut,
                "{} {cut}: {said}",
                format.name()
            );
        }
        let message = "[[sandbox:say=one two]][[sandbox:cut=9]]";
        let (_, cut_off) = pieces(&chat_call(*format, true, &saying(message))).await;
        assert!(!cut_off, "{}", format.name());
    }
}

#[tokio::test]
async fn apis_restricts_the_formats() {
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

#[tokio::test]
async fn the_first_byte_takes_the_configured_time_or_the_delay() {
    let channel = Channel::new("sandbox", "sandbox");
    let slow = chat_provider(channel, Duration::from_millis(300));
    let timed = async |provider: &dyn ChatProvider, text: &str| {
        let started = Instant::now();
        let mut ask = chat_call(FORMATS[0], true, &saying(text));
        ask.first_byte = Duration::from_millis(600);
        let failed = ask.send(provider).await.err().map(|error| error.kind);
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
