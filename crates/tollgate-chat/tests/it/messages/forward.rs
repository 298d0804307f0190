//! What is passed on between equal formats.

use bytes::Bytes;
use serde_json::json;
use tollgate_chat::messages::Messages;
use tollgate_chat::{ErrorBody, Format, MalformedResponse, StreamForwarder};

use super::order::accumulate;
use super::{head, rendering, sse, tail, text_block};

fn forward() -> Box<dyn StreamForwarder> {
    Messages.stream_forwarder(&rendering())
}

fn push(forward: &mut dyn StreamForwarder, text: &str) -> Result<String, MalformedResponse> {
    let given = forward.push(Bytes::copy_from_slice(text.as_bytes()))?;
    Ok(String::from_utf8(given.bytes.to_vec()).unwrap())
}

#[test]
fn whole_events_are_slices_of_what_came() {
    let mut forward = forward();
    push(&mut *forward, &(head() + &text_block(0, "a"))).unwrap();
    let bytes = Bytes::from(text_block(1, "hello"));
    let given = forward.push(bytes.clone()).unwrap().bytes;
    assert_eq!((given.as_ptr(), given.len()), (bytes.as_ptr(), bytes.len()));
    // What is cut waits for its rest.
    let event = text_block(2, "there");
    let (first, rest) = event.split_at(event.len() - 3);
    let first = push(&mut *forward, first).unwrap();
    let second = push(&mut *forward, rest).unwrap();
    assert_eq!(first + &second, event);
    assert_eq!(forward.text_bytes(), 11);
}

#[test]
fn the_end_is_held_back_and_usage_is_read() {
    let whole = head() + &text_block(0, "hi") + &tail("end_turn");
    let mut forward = forward();
    let given = forward.push(Bytes::from(whole.clone())).unwrap();
    assert!(given.ended);
    forward.finish().unwrap();
    let usage = forward.usage().unwrap();
    assert_eq!((usage.input, usage.output), (5, 9));
    let mut out = given.bytes.to_vec();
    assert!(!String::from_utf8_lossy(&out).contains("message_stop"));
    out.extend_from_slice(&forward.end());
    assert!(forward.end().is_empty());
    assert_eq!(
        String::from_utf8(out).unwrap(),
        whole.replacen("\"up\"", "\"mine\"", 1)
    );
}

#[test]
fn trap_40_an_error_before_the_first_block_can_still_be_answered_elsewhere() {
    let error = sse(
        "error",
        json!({"error": {"type": "overloaded_error", "message": "no"}}),
    );
    for before in [String::new(), head(), head() + &sse("ping", json!({}))] {
        let mut forward = forward();
        assert_eq!(push(&mut *forward, &before), Ok(String::new()));
        let bad = push(&mut *forward, &error).unwrap_err();
        assert!(matches!(bad, MalformedResponse::Upstream(words) if words.status == Some(529)));
    }
    // Behind a block it comes behind the block, and what is open is closed.
    let mut forward = forward();
    let open = sse(
        "content_block_start",
        json!({"index": 0, "content_block": {"type": "text", "text": ""}}),
    );
    let given = push(&mut *forward, &(head() + &open + &error)).unwrap();
    assert!(given.ends_with(&open));
    assert!(forward.push(Bytes::new()).is_err());
    let mut out = given.into_bytes();
    let error = ErrorBody {
        status: 529,
        message: "no".to_owned(),
        param: None,
        code: None,
        bare: true,
    };
    forward.error(&error, &mut out);
    forward.error(&error, &mut out);
    assert!(accumulate(&String::from_utf8(out).unwrap()).error.is_some());
}

#[test]
fn a_stream_that_breaks_off_is_told() {
    let mut forward = forward();
    push(&mut *forward, &(head() + &text_block(0, "hi"))).unwrap();
    assert_eq!(forward.finish(), Err(MalformedResponse::Truncated));
}

#[test]
fn what_is_no_event_of_the_format_is_malformed() {
    for broken in [&b"data: {]\n\n"[..], b"data: \xff\n\n"] {
        let mut forward = forward();
        let bad = forward.push(Bytes::copy_from_slice(broken)).unwrap_err();
        assert!(matches!(bad, MalformedResponse::Invalid(_)));
    }
    let mut forward = forward();
    let endless = Bytes::from(vec![b'x'; 9 * 1024 * 1024]);
    forward.push(endless.clone()).unwrap();
    assert!(matches!(
        forward.push(endless),
        Err(MalformedResponse::EventTooLarge(_))
    ));
}

#[test]
fn trap_42_a_client_that_waits_sees_the_start_and_pings() {
    let mut forward = forward();
    let mut out = Vec::new();
    forward.keep_alive(&mut out);
    assert!(out.is_empty());
    push(&mut *forward, &head()).unwrap();
    forward.keep_alive(&mut out);
    let given = push(&mut *forward, &(text_block(0, "hi") + &tail("end_turn"))).unwrap();
    out.extend_from_slice(given.as_bytes());
    out.extend_from_slice(&forward.end());
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("event: message_start") && text.contains("event: ping"));
    assert_eq!(accumulate(&text).stop_reason, "end_turn");
}

#[test]
fn events_without_names_get_them() {
    let whole = head() + &text_block(0, "hi") + &tail("end_turn");
    let nameless: String = whole
        .lines()
        .filter(|line| !line.starts_with("event:"))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut forward = forward();
    let given = push(&mut *forward, &nameless).unwrap();
    let end = String::from_utf8(forward.end().to_vec()).unwrap();
    assert_eq!(accumulate(&(given + &end)).content[0]["text"], "hi");
}
