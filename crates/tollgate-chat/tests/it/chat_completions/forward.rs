//! What is passed on between equal formats.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_chat::chat_completions::ChatCompletions;
use tollgate_chat::hub::ModelCapabilities;
use tollgate_chat::{Format, MalformedResponse, RenderOptions};

use super::{DONE, body, capabilities, chunk, passed, rendering, target, user};

#[test]
fn what_needs_no_change_is_the_same_bytes() {
    let body = Bytes::from(r#"{ "model" : "up", "messages":[{"role":"user","content":"hi"}] }"#);
    let glance = ChatCompletions.summarize_request(&body).unwrap();
    let capabilities = capabilities();
    let sent = ChatCompletions
        .forward_request(&body, &glance, &target(&capabilities))
        .unwrap();
    assert_eq!(sent.as_ptr(), body.as_ptr());

    let reply = Bytes::from(r#"{"model":"mine","choices":[]}"#);
    let answer = ChatCompletions.forward_response(&reply, "mine").unwrap();
    assert_eq!(answer.body.as_ptr(), reply.as_ptr());
}

#[test]
fn a_request_is_spliced_and_the_rest_stays_as_it_is_spelled() {
    let odd = r#"{"\u006dodel":"gpt","messages":[{"role":"user","content":"\u00e9 \" model"}],"seed":1e2,"x":[1.0 , 2]}"#;
    let body = Bytes::from(odd);
    let glance = ChatCompletions.summarize_request(&body).unwrap_err();
    assert_eq!(glance.field, "seed");
    let odd = odd.replace("1e2", "100");
    let body = Bytes::from(odd);
    let glance = ChatCompletions.summarize_request(&body).unwrap();
    let capabilities = capabilities();
    let sent = ChatCompletions
        .forward_request(&body, &glance, &target(&capabilities))
        .unwrap();
    let expected = r#"{"model":"up","messages":[{"role":"user","content":"\u00e9 \" model"}],"seed":100,"x":[1.0 , 2]}"#;
    assert_eq!(sent, expected.as_bytes());
}

#[test]
fn usage_is_always_asked_for_in_streams() {
    for (options, expected) in [
        (json!({}), json!({"include_usage": true})),
        (
            json!({"stream_options": null}),
            json!({"include_usage": true}),
        ),
        (
            json!({"stream_options": {"include_usage": false}}),
            json!({"include_usage": true}),
        ),
        (
            json!({"stream_options": {"include_obfuscation": false}}),
            json!({"include_obfuscation": false, "include_usage": true}),
        ),
        (
            json!({"stream_options": {"include_usage": true}}),
            json!({"include_usage": true}),
        ),
    ] {
        let mut more = options;
        more["stream"] = json!(true);
        let bytes = body(json!([user("Hi")]), more);
        let sent = passed(&bytes, &capabilities(), true);
        assert_eq!(sent["stream_options"], expected);
        assert_eq!(sent["stream"], true);
    }
}

#[test]
fn what_a_model_cannot_do_is_refused_or_weakened() {
    let weak = ModelCapabilities {
        accepts_stop: false,
        supports_forced_tools: false,
        ..capabilities()
    };
    let bytes = Bytes::from(body(json!([user("Hi")]), json!({"stop": ["a"]})));
    let glance = ChatCompletions.summarize_request(&bytes).unwrap();
    let bad = ChatCompletions
        .forward_request(&bytes, &glance, &target(&weak))
        .unwrap_err();
    assert_eq!(bad.field, "stop");
    let bytes = body(
        json!([user("Hi")]),
        json!({"tool_choice": "required", "stop": []}),
    );
    assert_eq!(passed(&bytes, &weak, false)["tool_choice"], "auto");
}

#[test]
fn a_reply_keeps_all_but_the_models_name() {
    let body = Bytes::from(
        r#"{"id":"a","model":"up\/1","x":1,"choices":[{"index":0,"message":{"content":"Hi","tool_calls":[{"function":{"arguments":"{}"}}]}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
    );
    let answer = ChatCompletions.forward_response(&body, "mine").unwrap();
    let expected = String::from_utf8(body.to_vec())
        .unwrap()
        .replace(r"up\/1", "mine");
    assert_eq!(answer.body, expected);
    assert_eq!((answer.usage.unwrap().total(), answer.text_bytes), (3, 4));

    let reply = |text: &'static str| ChatCompletions.forward_response(&Bytes::from(text), "mine");
    assert!(matches!(
        reply("<html>"),
        Err(MalformedResponse::Invalid(_))
    ));
    assert!(matches!(reply("{}"), Err(MalformedResponse::Invalid(_))));
    assert!(matches!(reply("[]"), Err(MalformedResponse::Invalid(_))));
    let Err(MalformedResponse::Upstream(words)) =
        reply(r#"{"error":{"message":"busy","type":"server_error"}}"#)
    else {
        panic!("an error is told");
    };
    assert_eq!(words.status, Some(500));
}

fn usage_chunk() -> String {
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7});
    format!(
        "data: {}\n\n",
        json!({"id": "c1", "model": "up", "choices": [], "usage": usage})
    )
}

#[test]
fn whole_events_are_slices_and_the_end_is_held_back() {
    let mut forward = ChatCompletions.stream_forwarder(&RenderOptions {
        model: "up",
        ..rendering()
    });
    let first = Bytes::from(
        chunk(json!({"content": "a"}), None) + &chunk(json!({"content": "b"}), Some("stop")),
    );
    let passed = forward.push(first.clone()).unwrap();
    assert_eq!(
        (passed.bytes.as_ptr(), passed.bytes.len(), passed.ended),
        (first.as_ptr(), first.len(), false)
    );
    let last = forward
        .push(Bytes::from(usage_chunk() + DONE + "data: junk\n\n"))
        .unwrap();
    assert_eq!((last.bytes.len(), last.ended), (0, true));
    assert!(forward.push(Bytes::from("more")).unwrap().bytes.is_empty());
    assert_eq!(forward.finish(), Ok(()));
    assert_eq!(
        (forward.usage().unwrap().total(), forward.text_bytes()),
        (7, 2)
    );
    assert_eq!(forward.end(), DONE);
    assert!(forward.end().is_empty());
}

#[test]
fn trap_45_a_usage_chunk_goes_only_to_those_who_asked() {
    for include_usage in [false, true] {
        let mut forward = ChatCompletions.stream_forwarder(&RenderOptions {
            include_usage,
            ..rendering()
        });
        let out = forward
            .push(Bytes::from(
                chunk(json!({"content": "a"}), Some("stop")) + &usage_chunk() + DONE,
            ))
            .unwrap();
        let text = String::from_utf8(out.bytes.to_vec()).unwrap();
        assert_eq!(text.contains("usage"), include_usage);
        assert!(text.contains(r#""model":"mine""#) && !text.contains("up"));
        let whole: Result<Vec<Value>, _> = text
            .split_terminator("\n\n")
            .map(|e| serde_json::from_str(&e[6..]))
            .collect();
        assert_eq!(whole.unwrap().len(), 1 + usize::from(include_usage));
    }
}

#[test]
fn errors_before_any_word_are_told_at_once_and_later_ones_after_the_words() {
    let error = "data: {\"error\":{\"message\":\"busy\"}}\n\n";
    let role = chunk(json!({"role": "assistant", "content": ""}), None);
    let mut forward = ChatCompletions.stream_forwarder(&rendering());
    assert!(matches!(
        forward.push(Bytes::from(role.clone() + error)),
        Err(MalformedResponse::Upstream(_))
    ));

    let mut forward = ChatCompletions.stream_forwarder(&rendering());
    let words = forward
        .push(Bytes::from(
            role + &chunk(json!({"content": "a"}), None) + error,
        ))
        .unwrap();
    assert!(String::from_utf8_lossy(&words.bytes).contains("\"a\""));
    assert!(matches!(
        forward.finish(),
        Err(MalformedResponse::Upstream(_))
    ));
}

#[test]
fn broken_streams_are_told() {
    let run = |bytes: &[u8]| {
        let mut forward = ChatCompletions.stream_forwarder(&rendering());
        forward
            .push(Bytes::copy_from_slice(bytes))
            .map(|_| ())
            .and_then(|()| forward.finish())
    };
    assert_eq!(
        run(chunk(json!({"content": "a"}), None).as_bytes()),
        Err(MalformedResponse::Truncated)
    );
    assert_eq!(run(b""), Err(MalformedResponse::Truncated));
    assert!(matches!(
        run(b"data: {\"a\"\n\n"),
        Err(MalformedResponse::Invalid(_))
    ));
    assert!(matches!(
        run(b"data: {\"a\":\"\xff\"}\n\n"),
        Err(MalformedResponse::Invalid(_))
    ));
    assert_eq!(
        run(chunk(json!({"content": "a"}), Some("stop")).as_bytes()),
        Ok(())
    );
    // The last blank line may be missing.
    assert_eq!(
        run(chunk(json!({"content": "a"}), Some("stop"))
            .trim_end()
            .as_bytes()),
        Ok(())
    );
    assert_eq!(
        run(format!("{}data: [DONE]", chunk(json!({}), None)).as_bytes()),
        Ok(())
    );
}

#[test]
fn an_event_without_end_is_not_kept_for_ever() {
    let mut forward = ChatCompletions.stream_forwarder(&rendering());
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let refused = (0..20).find_map(|_| forward.push(piece.clone()).err());
    assert!(matches!(refused, Some(MalformedResponse::EventTooLarge(_))));
}
