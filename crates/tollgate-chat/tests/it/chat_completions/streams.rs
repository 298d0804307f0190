//! Streams: what upstreams send, and what clients get.

use serde_json::{Value, json};
use tollgate_chat::chat_completions::ChatCompletions;
use tollgate_chat::hub::{
    Event, FinishReason, PartKind, ResponseBuilder, Usage, events_from_response,
};
use tollgate_chat::{ErrorBody, Format, MalformedResponse, RenderOptions, StreamWriter};

use super::{DONE, chunk, events, fragment, rendering};

/// The calls of a stream: id, name, arguments; and its finish.
fn calls(sse: &str) -> (Vec<(String, String, String)>, FinishReason) {
    let mut fold = ResponseBuilder::default();
    for event in events(sse).unwrap() {
        fold.push(&event);
    }
    let choice = fold.build().choices.remove(0);
    let parts = choice.parts.into_iter().filter_map(|part| match part.kind {
        PartKind::ToolCall {
            id,
            name,
            arguments,
            ..
        } => Some((id, name, arguments)),
        _ => None,
    });
    (parts.collect(), choice.finish)
}

fn stop(reason: &str) -> String {
    chunk(json!({}), Some(reason)) + DONE
}

#[test]
fn trap_29_a_call_makes_the_finish_a_call_whatever_the_upstream_says() {
    let call = fragment(json!(0), json!("a"), json!("f"), "{}");
    for (reason, finish) in [
        ("stop", FinishReason::ToolCall),
        ("tool_calls", FinishReason::ToolCall),
        ("whatever", FinishReason::ToolCall),
        ("length", FinishReason::Length),
        ("content_filter", FinishReason::Refusal),
    ] {
        assert_eq!(calls(&(call.clone() + &stop(reason))).1, finish, "{reason}");
    }
    let twice = call + &chunk(json!({}), Some("tool_calls")) + &stop("stop");
    assert_eq!(calls(&twice).1, FinishReason::ToolCall);
}

#[test]
fn trap_30_every_finish_has_its_word() {
    for (finish, word) in [
        (FinishReason::EndTurn, "stop"),
        (FinishReason::StopSequence, "stop"),
        (FinishReason::Length, "length"),
        (FinishReason::ContextFull, "length"),
        (FinishReason::ToolCall, "tool_calls"),
        (FinishReason::Refusal, "content_filter"),
        (FinishReason::PromptBlocked, "content_filter"),
        (FinishReason::Pause, "length"),
        (FinishReason::InvalidToolCall, "stop"),
        (FinishReason::Other, "stop"),
    ] {
        let (written, _) = write(&rendering(), &[finished(finish)]);
        assert_eq!(
            written.last().unwrap()["choices"][0]["finish_reason"],
            word,
            "{finish:?}"
        );
    }
    for (word, finish) in [
        ("stop", FinishReason::EndTurn),
        ("length", FinishReason::Length),
        ("tool_calls", FinishReason::ToolCall),
        ("function_call", FinishReason::ToolCall),
        ("content_filter", FinishReason::Refusal),
        ("new_word", FinishReason::Other),
    ] {
        assert_eq!(calls(&stop(word)).1, finish, "{word}");
    }
}

#[test]
fn trap_32_calls_that_share_index_0_are_told_apart() {
    let google = fragment(json!(0), json!(""), json!("f"), "{\"a\":1}")
        + &fragment(json!(0), json!(""), json!("f"), "{\"a\":2}")
        + &fragment(json!(0), json!(""), json!("g"), "{}")
        + &stop("stop");
    let (found, _) = calls(&google);
    let arguments: Vec<&str> = found.iter().map(|call| call.2.as_str()).collect();
    assert_eq!(arguments, ["{\"a\":1}", "{\"a\":2}", "{}"]);
    let ids: std::collections::HashSet<&String> = found.iter().map(|call| &call.0).collect();
    assert_eq!(ids.len(), 3);

    let with_ids = fragment(json!(0), json!("a"), json!("f"), "{\"a\"")
        + &fragment(json!(0), json!(null), json!(null), ":1}")
        + &fragment(json!(0), json!("b"), json!("f"), "{}")
        + &stop("tool_calls");
    let (found, _) = calls(&with_ids);
    assert_eq!(found[0].2, "{\"a\":1}");
    assert_eq!(found[1], ("b".to_owned(), "f".to_owned(), "{}".to_owned()));
}

#[test]
fn indexes_that_begin_at_one_or_are_missing_do_no_harm() {
    for index in [json!(1), json!(null), json!(7)] {
        let sse = fragment(index.clone(), json!("a"), json!("f"), "{\"a\"")
            + &fragment(index, json!(null), json!(null), ":1}")
            + &stop("tool_calls");
        assert_eq!(
            calls(&sse).0,
            [("a".to_owned(), "f".to_owned(), "{\"a\":1}".to_owned())]
        );
    }
}

#[test]
fn trap_46_names_and_ids_sent_again_or_empty_are_no_new_calls() {
    for (id, name) in [("", ""), ("a", "f"), ("a", ""), ("", "f"), ("other", "")] {
        let sse = fragment(json!(0), json!("a"), json!("f"), "{\"a\"")
            + &fragment(json!(0), json!(id), json!(name), ":1}")
            + &stop("stop");
        assert_eq!(
            calls(&sse).0,
            [("a".to_owned(), "f".to_owned(), "{\"a\":1}".to_owned())],
            "{id} {name}"
        );
    }
}

#[test]
fn trap_47_an_empty_id_is_replaced_and_stays_the_same() {
    let sse = fragment(json!(0), json!(""), json!("f"), "{}") + &stop("stop");
    let (found, _) = calls(&sse);
    assert!(found[0].0.starts_with("call_") && found[0].0.len() <= 40);
    assert_eq!(found, calls(&sse).0);
}

#[test]
fn trap_44_characters_survive_every_cut() {
    let sse = chunk(json!({"content": "é猫🐈"}), None) + &stop("stop");
    for cut in 0..sse.len() {
        let mut reader = ChatCompletions.stream_reader();
        let mut out = Vec::new();
        reader.push(&sse.as_bytes()[..cut], &mut out).unwrap();
        reader.push(&sse.as_bytes()[cut..], &mut out).unwrap();
        reader.finish(&mut out).unwrap();
        assert!(out.contains(&Event::Text {
            choice: 0,
            text: "é猫🐈".to_owned()
        }));
    }
}

#[test]
fn trap_39_40_errors_and_ends_that_are_none_are_no_good_ends() {
    let hi = chunk(json!({"role": "assistant", "content": "Hi"}), None);
    let Err(MalformedResponse::Upstream(words)) = events(
        &(hi.clone()
            + "data: {\"error\":{\"message\":\"busy\",\"code\":\"rate_limit_exceeded\"}}\n\n"),
    ) else {
        panic!("an error must be told");
    };
    assert_eq!((words.status, words.message.as_str()), (Some(429), "busy"));
    assert_eq!(events(&hi), Err(MalformedResponse::Truncated));
    assert_eq!(events(""), Err(MalformedResponse::Truncated));
    // Some gateways say [DONE] whatever happened.
    assert_eq!(
        events(&(hi.clone() + DONE)),
        Err(MalformedResponse::Truncated)
    );
    assert!(matches!(
        events("data: {nonsense\n\n"),
        Err(MalformedResponse::Invalid(_))
    ));
    // Without [DONE], but with a finish for every choice that began.
    assert!(events(&(hi + &chunk(json!({}), Some("stop")))).is_ok());
}

#[test]
fn trap_25_all_tokens_spent_on_thinking_is_an_honest_end() {
    let sse = chunk(json!({"role": "assistant", "content": ""}), None) + &stop("length");
    assert_eq!(calls(&sse).1, FinishReason::Length);
}

#[test]
fn trap_26_thinking_is_never_text() {
    let sse = chunk(json!({"reasoning": "Hm", "reasoning_content": "Hm"}), None)
        + &chunk(json!({"content": "42"}), None)
        + &stop("stop");
    let (written, _) = write(&rendering(), &events(&sse).unwrap());
    let joined = |name: &str| -> String {
        written
            .iter()
            .filter_map(|c| c["choices"][0]["delta"][name].as_str())
            .collect()
    };
    assert_eq!(
        (
            joined("content").as_str(),
            joined("reasoning_content").as_str()
        ),
        ("42", "Hm")
    );
}

#[test]
fn trap_45_usage_comes_only_to_those_who_asked_and_last() {
    let usage = Usage {
        input: 3,
        output: 4,
        ..Usage::default()
    };
    let told = [
        Event::Usage(usage),
        text("Hi"),
        finished(FinishReason::EndTurn),
    ];
    let (written, _) = write(&rendering(), &told);
    assert!(
        written
            .iter()
            .all(|chunk| chunk.get("usage").is_none() && chunk["choices"][0].is_object())
    );
    let asked = RenderOptions {
        include_usage: true,
        ..rendering()
    };
    let (written, _) = write(&asked, &told);
    let (last, before) = written.split_last().unwrap();
    assert_eq!(
        (&last["choices"], &last["usage"]["total_tokens"]),
        (&json!([]), &json!(7))
    );
    assert!(
        before
            .iter()
            .all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some())
    );
}

#[test]
fn errors_are_the_last_event_and_nothing_follows_the_end() {
    let error = ErrorBody {
        status: 502,
        message: "gone".to_owned(),
        param: None,
        code: None,
        bare: true,
    };
    let mut writer = ChatCompletions.stream_writer(&rendering());
    let mut out = Vec::new();
    writer.write(&text("Hi"), &mut out);
    writer.keep_alive(&mut out);
    assert!(out.ends_with(b": keep-alive\n\n"));
    writer.error(&error, &mut out);
    let length = out.len();
    assert!(out.ends_with(b"\"code\":null}}\n\n"));
    writer.write(&text("more"), &mut out);
    writer.end(&mut out);
    writer.error(&error, &mut out);
    writer.keep_alive(&mut out);
    assert_eq!(out.len(), length);
}

#[test]
fn a_reply_and_the_same_reply_as_a_stream_say_the_same() {
    let body = json!({"id": "x", "created": 3, "model": "up", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": "Hi", "reasoning_content": "Hm", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"b\":1}"}}]}}]});
    let reply = ChatCompletions
        .read_response(body.to_string().as_bytes())
        .unwrap();
    let (_, sse) = write(&rendering(), &events_from_response(&reply));
    let mut fold = ResponseBuilder::default();
    events(&sse)
        .unwrap()
        .iter()
        .for_each(|event| fold.push(event));
    assert_eq!(fold.build().choices, reply.choices);
}

pub(super) fn text(text: &str) -> Event {
    Event::Text {
        choice: 0,
        text: text.to_owned(),
    }
}

fn finished(finish: FinishReason) -> Event {
    Event::Finish {
        choice: 0,
        finish,
        stop_sequence: None,
    }
}

/// The chunks of a stream, and its text.
pub(super) fn write(rendering: &RenderOptions<'_>, events: &[Event]) -> (Vec<Value>, String) {
    let mut writer: Box<dyn StreamWriter> = ChatCompletions.stream_writer(rendering);
    let mut out = Vec::new();
    events
        .iter()
        .for_each(|event| writer.write(event, &mut out));
    writer.end(&mut out);
    let sse = String::from_utf8(out).unwrap();
    let chunks = sse.strip_suffix(DONE).expect("the end is [DONE]");
    let chunks = chunks.split_terminator("\n\n").map(|event| {
        let data = event
            .strip_prefix("data: ")
            .unwrap_or_else(|| panic!("{event}"));
        serde_json::from_str(data).unwrap()
    });
    (chunks.collect(), sse)
}
