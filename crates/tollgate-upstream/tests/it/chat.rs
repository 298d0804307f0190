//! The sandbox's chats, in every format, whole and streamed: asked and read as the relay does it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_chat::hub::{
    Choice, Effort, Finish, Fold, Kind, OutputFormat, Part, Reasoning, Reply, Request, Role,
    Source, Tool, ToolChoice, ToolKind, Turn,
};
use tollgate_chat::{FORMATS, Format, Target, tokens};
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::provider::Settings;
use tollgate_upstream::{Channel, ChatErrorKind, ChatProvider, PROVIDERS};

use crate::vendor::{Ask, open};

fn sandbox() -> std::sync::Arc<dyn ChatProvider> {
    open(Channel::new("sandbox", "sandbox"))
}

fn user(text: &str) -> Turn {
    Turn {
        plain: true,
        ..Turn::of(Role::User, vec![Part::text(text)])
    }
}

fn saying(text: &str) -> Request {
    Request {
        turns: vec![user(text)],
        ..Request::default()
    }
}

/// The call that asks `request` in `format`.
fn ask(format: &'static dyn Format, stream: bool, request: &Request) -> Ask {
    let known = sandbox().model("gpt-5");
    let target = Target {
        model: &known.wire,
        stream,
        traits: &known.traits,
        default_max_tokens: 8_192,
    };
    let written = format.write_request(request, &target);
    let written = written.unwrap_or_else(|bad| panic!("{}: {bad}", format.name()));
    Ask {
        stream,
        model: "gpt-5",
        body: Bytes::from(written.body),
        ..Ask::of(format.name())
    }
}

/// The pieces of an answer, and whether it broke off.
async fn pieces(ask: &Ask) -> (Vec<Bytes>, bool) {
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
async fn reply(format: &'static dyn Format, stream: bool, request: &Request) -> Reply {
    let (pieces, broken) = pieces(&ask(format, stream, request)).await;
    assert!(!broken);
    read(format, stream, &pieces)
}

fn read(format: &dyn Format, stream: bool, pieces: &[Bytes]) -> Reply {
    if !stream {
        return format.read_reply(&pieces.concat()).unwrap();
    }
    let mut reader = format.stream_reader();
    let mut events = Vec::new();
    for piece in pieces {
        reader.push(piece, &mut events).unwrap();
    }
    reader.finish(&mut events).unwrap();
    let mut fold = Fold::default();
    for event in &events {
        fold.push(event);
    }
    assert!(fold.is_finished());
    fold.reply()
}

fn text(choice: &Choice) -> String {
    let texts = choice.parts.iter().filter_map(|part| match &part.kind {
        Kind::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Both ways of every format that `takes`.
fn ways(takes: impl Fn(&str) -> bool) -> Vec<(&'static dyn Format, bool)> {
    let formats = FORMATS.iter().filter(|format| takes(format.name()));
    formats
        .flat_map(|format| [(*format, false), (*format, true)])
        .collect()
}

fn every_way() -> Vec<(&'static dyn Format, bool)> {
    ways(|_| true)
}

#[tokio::test]
async fn an_answer_refers_to_what_was_said_and_counts_its_tokens() {
    for (format, stream) in every_way() {
        let request = saying("What is a tollgate?");
        let there = reply(format, stream, &request).await;
        let name = format.name();
        let said = text(&there.choices[0]);
        assert!(said.contains("What is a tollgate?"), "{name}: {said}");
        assert_eq!(there.choices[0].finish, Finish::End, "{name}");
        let usage = there.usage.unwrap();
        assert_eq!(usage.output, tokens::count(&said), "{name}");
        assert_eq!(usage.input, tokens::of_request(&request), "{name}");
        assert_eq!((usage.reasoning, usage.cache_read), (0, 0), "{name}");
        let again = reply(format, stream, &request).await;
        assert_eq!(text(&again.choices[0]), said, "{name}");
    }
}

#[tokio::test]
async fn streams_come_word_by_word() {
    let request = saying("[[sandbox:say=one two three four five]]");
    for (format, stream) in ways(|_| true) {
        let (all, _) = pieces(&ask(format, stream, &request)).await;
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
async fn what_it_is_told_it_says() {
    for (format, stream) in every_way() {
        let there = reply(
            format,
            stream,
            &saying("x [[sandbox:say=Zwei\nZeilen ≠ 猫]] y"),
        )
        .await;
        assert_eq!(
            text(&there.choices[0]),
            "Zwei\nZeilen ≠ 猫",
            "{}",
            format.name()
        );
        let there = reply(format, stream, &saying("[[sandbox:words=37]]")).await;
        let words = text(&there.choices[0]).split_whitespace().count();
        assert_eq!(words, 37, "{}", format.name());
    }
}

#[tokio::test]
async fn only_the_last_message_is_obeyed() {
    for (format, stream) in every_way() {
        let request = Request {
            turns: vec![
                Turn {
                    plain: true,
                    ..Turn::of(Role::System, vec![Part::text("[[sandbox:fail]]")])
                },
                user("[[sandbox:say=old]]"),
                Turn::of(Role::Assistant, vec![Part::text("[[sandbox:moderated]]")]),
                user("[[sandbox:say=new]]"),
            ],
            ..Request::default()
        };
        let there = reply(format, stream, &request).await;
        assert_eq!(text(&there.choices[0]), "new", "{}", format.name());
    }
}

#[tokio::test]
async fn the_cap_on_tokens_holds() {
    for (format, stream) in every_way() {
        let request = Request {
            max_tokens: Some(20),
            ..saying("[[sandbox:words=200]]")
        };
        let there = reply(format, stream, &request).await;
        let name = format.name();
        assert_eq!(tokens::count(&text(&there.choices[0])), 20, "{name}");
        assert_eq!(there.choices[0].finish, Finish::Length, "{name}");
        assert_eq!(there.usage.unwrap().output, 20, "{name}");
    }
}

#[tokio::test]
async fn stop_sequences_stop() {
    for (format, stream) in ways(|name| name != "responses") {
        let request = Request {
            stop: vec!["never".to_owned(), "three".to_owned()],
            ..saying("[[sandbox:say=one two three four]]")
        };
        let there = reply(format, stream, &request).await;
        let name = format.name();
        assert_eq!(text(&there.choices[0]), "one two ", "{name}");
        // Only messages can say that it was a stop sequence, and which.
        if name == "messages" {
            assert_eq!(there.choices[0].finish, Finish::StopSequence);
            assert_eq!(there.choices[0].stop_sequence.as_deref(), Some("three"));
        } else {
            assert_eq!(there.choices[0].finish, Finish::End, "{name}");
        }
    }
}

#[tokio::test]
async fn several_replies_where_a_format_has_them() {
    for (format, stream) in ways(|name| name == "chat-completions" || name == "generate-content") {
        let request = Request {
            n: Some(3),
            ..saying("[[sandbox:words=20]]")
        };
        let there = reply(format, stream, &request).await;
        assert_eq!(there.choices.len(), 3, "{}", format.name());
        let texts: Vec<_> = there.choices.iter().map(text).collect();
        assert_ne!(texts[0], texts[1]);
        let sum: u64 = texts.iter().map(|text| tokens::count(text)).sum();
        assert_eq!(there.usage.unwrap().output, sum, "{}", format.name());
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
        cache: None,
        own: tollgate_chat::hub::Own::NONE,
    }
}

fn calls(reply: &Reply) -> Vec<(String, Value)> {
    let parts = reply.choices[0].parts.iter();
    let calls = parts.filter_map(|part| match &part.kind {
        Kind::ToolCall {
            name, arguments, ..
        } => Some((name.clone(), serde_json::from_str(arguments).unwrap())),
        _ => None,
    });
    calls.collect()
}

#[tokio::test]
async fn tools_are_called_where_they_must_be() {
    let valid = ("weather".to_owned(), json!({"place": "text", "days": 2}));
    for (format, stream) in every_way() {
        let name = format.name();
        let with = |choice: ToolChoice, text: &str| Request {
            tools: vec![weather()],
            tool_choice: Some(choice),
            ..saying(text)
        };
        for choice in [ToolChoice::Required, ToolChoice::One("weather".to_owned())] {
            let there = reply(format, stream, &with(choice, "Is it raining?")).await;
            assert_eq!(calls(&there), std::slice::from_ref(&valid), "{name}");
            assert_eq!(there.choices[0].finish, Finish::ToolCall, "{name}");
            assert!(there.usage.unwrap().output > 0);
        }
        let free = with(ToolChoice::Auto, "Is it raining?");
        let there = reply(format, stream, &free).await;
        assert!(
            calls(&there).is_empty() && !text(&there.choices[0]).is_empty(),
            "{name}"
        );
        let told = with(
            ToolChoice::Auto,
            "[[sandbox:tool=weather]][[sandbox:tool=other]]",
        );
        let there = reply(format, stream, &told).await;
        let empty = |name: &str| (name.to_owned(), json!({}));
        assert_eq!(calls(&there), [empty("weather"), empty("other")], "{name}");
    }
}

#[tokio::test]
async fn a_tools_result_is_answered_with_text() {
    for (format, stream) in every_way() {
        let request = Request {
            tools: vec![weather()],
            turns: vec![
                user("[[sandbox:tool=weather]]"),
                Turn::of(
                    Role::Assistant,
                    vec![Part::of(Kind::ToolCall {
                        id: "call_1".to_owned(),
                        name: "weather".to_owned(),
                        arguments: "{}".to_owned(),
                        custom: false,
                        signature: None,
                    })],
                ),
                Turn::of(
                    Role::User,
                    vec![Part::of(Kind::ToolResult {
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
        let there = reply(format, stream, &request).await;
        assert!(calls(&there).is_empty(), "{}", format.name());
        let said = text(&there.choices[0]);
        assert!(said.contains("rain at noon"), "{}: {said}", format.name());
    }
}

#[tokio::test]
async fn json_is_of_its_schema() {
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "names": {"type": "array", "items": {"type": "string"}, "minItems": 1}},
        "required": ["ok", "names"],
        "additionalProperties": false
    });
    for (format, stream) in every_way() {
        let request = Request {
            output: Some(OutputFormat::Schema {
                name: Some("answer".to_owned()),
                description: None,
                schema: schema.clone(),
                strict: Some(true),
            }),
            ..saying("Is it?")
        };
        let there = reply(format, stream, &request).await;
        let said: Value = serde_json::from_str(&text(&there.choices[0])).unwrap();
        assert_eq!(
            said,
            json!({"ok": false, "names": ["text"]}),
            "{}",
            format.name()
        );
    }
}

#[tokio::test]
async fn thinking_is_shown_where_it_is_asked_for() {
    for (format, stream) in every_way() {
        let request = Request {
            max_tokens: Some(4_000),
            reasoning: Some(Reasoning {
                effort: Some(Effort::Medium),
                show: Some("auto".to_owned()),
                ..Reasoning::default()
            }),
            ..saying("Think about it")
        };
        let there = reply(format, stream, &request).await;
        let name = format.name();
        let thought = there.choices[0]
            .parts
            .iter()
            .find_map(|part| match &part.kind {
                Kind::Reasoning { text, .. } => Some(text.clone()),
                _ => None,
            });
        let thought = thought.unwrap_or_else(|| panic!("{name}: {there:?}"));
        assert!(thought.contains("Think about it"), "{name}: {thought}");
        let usage = there.usage.unwrap();
        assert_eq!(usage.reasoning, tokens::count(&thought), "{name}");
        assert!(usage.output > usage.reasoning, "{name}");
    }
}

#[tokio::test]
async fn pictures_are_seen() {
    let picture = image::RgbaImage::new(64, 48);
    let mut png = std::io::Cursor::new(Vec::new());
    image::DynamicImage::from(picture)
        .write_to(&mut png, image::ImageFormat::Png)
        .unwrap();
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.encode(png.into_inner());
    for (format, stream) in every_way() {
        let picture = Part::of(Kind::Image {
            source: Source::Base64 {
                media_type: "image/png".to_owned(),
                data: data.clone(),
            },
            detail: None,
        });
        let link = Part::of(Kind::Image {
            source: Source::Url {
                url: "https://example.com/a.png".to_owned(),
                media_type: Some("image/png".to_owned()),
            },
            detail: None,
        });
        let request = Request {
            turns: vec![Turn::of(
                Role::User,
                vec![Part::text("What are these?"), picture, link],
            )],
            ..Request::default()
        };
        let there = reply(format, stream, &request).await;
        let said = text(&there.choices[0]);
        let expected = "I see 2 pictures (64x48, of unknown size).";
        assert!(said.contains(expected), "{}: {said}", format.name());
        assert!(there.usage.unwrap().input >= 2 * tokens::IMAGE_TOKENS);
    }
}

#[tokio::test]
async fn failures_are_as_they_were_asked_for() {
    use ChatErrorKind::{QuotaExhausted, RateLimited, Rejected, Unavailable};
    for (format, stream) in every_way() {
        let fails = async |text: &str, failed_attempts: u32| {
            let ask = Ask {
                failed_attempts,
                ..ask(format, stream, &saying(text))
            };
            let error = ask.refused(&*sandbox()).await;
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
        let third = Ask {
            failed_attempts: 2,
            ..ask(
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
async fn a_request_that_is_none_is_rejected() {
    for format in FORMATS {
        let ask = Ask::of(format.name());
        let ask = Ask {
            body: Bytes::from_static(b"{\"stream\": 7}"),
            ..ask
        };
        let error = ask.refused(&*sandbox()).await;
        assert_eq!(
            (error.kind, error.status),
            (ChatErrorKind::Rejected, Some(400))
        );
    }
}

#[tokio::test]
async fn streams_break_off_after_as_many_pieces() {
    for format in FORMATS {
        let whole = ask(*format, true, &saying("[[sandbox:say=one two three four]]"));
        let (all, broken) = pieces(&whole).await;
        assert!(!broken);
        for cut in 0..4 {
            let message = format!("[[sandbox:say=one two three four]][[sandbox:cut={cut}]]");
            let (some, broken) = pieces(&ask(*format, true, &saying(&message))).await;
            assert!(broken && some.len() < all.len(), "{} {cut}", format.name());
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
        let (_, broken) = pieces(&ask(*format, true, &saying(message))).await;
        assert!(!broken, "{}", format.name());
    }
}

#[tokio::test]
async fn it_speaks_fewer_formats_where_it_is_told_to() {
    let names = |apis: &[&str]| {
        let apis = apis.iter().map(|name| (*name).to_owned()).collect();
        let channel = Channel {
            apis: Some(apis),
            ..Channel::new("sandbox", "sandbox")
        };
        let formats = open(channel).formats().to_vec();
        formats.iter().map(|f| f.name()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["messages", "responses"]), ["messages", "responses"]);
    assert_eq!(sandbox().formats().len(), FORMATS.len());
}

#[tokio::test]
async fn it_takes_its_time() {
    let entry = PROVIDERS.iter().find(|p| p.kind == "sandbox").unwrap();
    let settings = Settings {
        sandbox_chat: Duration::from_millis(300),
        ..Settings::default()
    };
    let egress = Client::new(ClientOptions::default());
    let channel = std::sync::Arc::new(Channel::new("sandbox", "sandbox"));
    let slow = (entry.open)(&channel, &settings, &egress).chat.unwrap();
    let timed = async |provider: &dyn ChatProvider, text: &str| {
        let begun = Instant::now();
        let mut ask = ask(FORMATS[0], true, &saying(text));
        ask.timeouts.first_byte = Duration::from_millis(600);
        let failed = ask.send(provider).await.err().map(|error| error.kind);
        (failed, begun.elapsed().as_millis())
    };
    let (failed, ms) = timed(&*slow, "hello").await;
    assert!(failed.is_none() && (300..600).contains(&ms), "{ms}");
    let (failed, ms) = timed(&*slow, "[[sandbox:delay=50]]").await;
    assert!(failed.is_none() && (50..300).contains(&ms), "{ms}");
    let (failed, ms) = timed(&*slow, "[[sandbox:fail]]").await;
    assert!(
        failed == Some(ChatErrorKind::Unavailable) && ms < 300,
        "{ms}"
    );
    let (failed, ms) = timed(&*slow, "[[sandbox:hang]]").await;
    assert!(failed == Some(ChatErrorKind::TimedOut) && ms >= 600, "{ms}");
    let (failed, _) = timed(&*slow, "[[sandbox:delay=5000]]").await;
    assert_eq!(failed, Some(ChatErrorKind::TimedOut));
}
