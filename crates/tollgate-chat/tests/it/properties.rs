//! Tests properties that hold for any input in every format.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use tollgate_chat::hub::{
    Event, FinishReason, ModelCapabilities, PartKind, Response, ResponseBuilder,
    events_from_response,
};
use tollgate_chat::{FORMATS, Format, MalformedResponse, RequestSummary, StreamWriter};

use crate::generators::{any_event, any_format, damaged_case, from_template};
use crate::harness::{capabilities, error_body, files, options, parse, target};
use crate::stream_order;

fn written(writer: &mut dyn StreamWriter, events: &[Event]) -> Vec<u8> {
    let mut out = Vec::new();
    events
        .iter()
        .for_each(|event| writer.write(event, &mut out));
    writer.end(&mut out);
    out
}

fn read_events(format: &dyn Format, stream: &[u8]) -> (Vec<Event>, Result<(), MalformedResponse>) {
    let (mut reader, mut events) = (format.stream_reader(), Vec::new());
    let outcome = reader
        .push(stream, &mut events)
        .and_then(|()| reader.finish(&mut events));
    (events, outcome)
}

fn build(events: &[Event]) -> Response {
    let mut builder = ResponseBuilder::default();
    events.iter().for_each(|event| builder.push(event));
    builder.build()
}

/// The visible text of the first choice.
fn visible_text(events: &[Event]) -> String {
    let mut out = String::new();
    for event in events {
        match event {
            Event::Text { choice: 0, text } | Event::Refusal { choice: 0, text } => {
                out.push_str(text)
            }
            Event::Part { choice: 0, part } => {
                if let PartKind::Text { text, .. } = &part.kind {
                    out.push_str(text);
                }
            }
            _ => {}
        }
    }
    out
}

/// Capabilities of a model for which every adaptation is needed.
fn limited() -> ModelCapabilities {
    capabilities(&json!({
        "max_output_tokens": 10, "sampling": "None", "thinking": {"budget": {"min": 512, "max": 1000, "can_disable": false}},
        "supports_json_schema": false, "supports_tools_with_json": false, "supports_forced_tools": false, "requires_signatures": true,
        "requires_past_reasoning": true, "rejects_unknown_fields": true, "uses_max_completion_tokens": true,
    }))
}

/// Whether `body` is JSON, with numbers of any size.
fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

/// Reads, writes and forwards `body` as a request. Returns an error message if the outcomes contradict each other.
fn exercise_request(format: &dyn Format, body: &Bytes) -> Result<(), String> {
    let settings = json!({"target": {"stream": true}});
    let summary: Result<RequestSummary, _> = format.summarize_request(body);
    let request = format.read_request(body);
    if let (Err(error), Ok(_)) = (&summary, &request) {
        return Err(format!("only the summary rejects it: {error}"));
    }
    for capabilities in [ModelCapabilities::default(), limited()] {
        let target = target(&settings, &capabilities);
        if let Ok(summary) = &summary
            && let Ok(sent) = format.forward_request(body, summary, &target)
            && format.name() == "messages"
            && !is_json(&sent.body)
        {
            return Err(format!("the forwarded request is no JSON: {:?}", sent.body));
        }
        for to in FORMATS {
            if let Ok(request) = &request
                && let Ok(written) = to.write_request(request, &target)
                && to.name() == format.name()
                && let Err(error) = to.read_request(&written.body)
            {
                return Err(format!("{} cannot read what it wrote: {error}", to.name()));
            }
        }
    }
    Ok(())
}

#[test]
fn parallel_calls_without_arguments_each_get_an_empty_object() {
    let start = |call: u32| Event::ToolStart {
        choice: 0,
        call,
        id: format!("call_{call}"),
        name: "look".to_owned(),
        custom: false,
    };
    let end = |call: u32| Event::ToolEnd {
        choice: 0,
        call,
        signature: None,
    };
    let finish = Event::Finish {
        choice: 0,
        finish: FinishReason::ToolCall,
        stop_sequence: None,
    };
    let events = [start(0), start(1), end(0), end(1), finish];
    let format = tollgate_chat::by_name("chat-completions").unwrap();
    let stream = written(
        &mut *format.stream_writer(&options(&Value::Null, None)),
        &events,
    );
    let text = String::from_utf8(stream).unwrap();
    for index in 0..2 {
        let arguments = format!(r#"{{"index":{index},"function":{{"arguments":"{{}}"}}}}"#);
        assert_eq!(text.matches(&arguments).count(), 1, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_events_are_written_as_a_legal_stream(
        format in any_format(), events in prop::collection::vec(any_event(), 0..40), cut: Index, flags: [bool; 3],
    ) {
        let [fails, include_usage, json_array] = flags;
        let case = json!({"options": {"include_usage": include_usage, "json_array": json_array}});
        let mut writer = format.stream_writer(&options(&case, None));
        let mut out = Vec::new();
        let cut = cut.index(events.len() + 1);
        for event in &events[..cut] {
            writer.write(event, &mut out);
            writer.keep_alive(&mut out);
        }
        let error = error_body(&json!({"status": 503, "message": "busy", "bare": true}));
        if fails { writer.error(&error, &mut out) } else { writer.end(&mut out) }
        let length = out.len();
        events[cut..].iter().for_each(|event| writer.write(event, &mut out));
        writer.end(&mut out);
        writer.error(&error, &mut out);
        writer.keep_alive(&mut out);
        prop_assert_eq!(out.len(), length, "nothing follows the end");
        stream_order::check(format.name(), &out, &case["options"], fails);
    }

    #[test]
    fn no_text_is_lost_in_a_stream(format in any_format(), mut events in prop::collection::vec(any_event(), 0..40)) {
        // Some formats write images as text or leave out a refusal as a part, and some ignore what follows a finish.
        events.retain(|event| match event {
            Event::Part { part, .. } => matches!(part.kind, PartKind::Text { .. }),
            other => !matches!(other, Event::Finish { .. }),
        });
        let out = written(&mut *format.stream_writer(&options(&Value::Null, None)), &events);
        let (again, outcome) = read_events(&*format, &out);
        prop_assert!(!matches!(outcome, Err(MalformedResponse::Invalid(_))), "{outcome:?}");
        prop_assert_eq!(visible_text(&again), visible_text(&events));
    }

    #[test]
    fn malformed_input_never_panics((format, bytes) in damaged_case()) {
        let body = Bytes::from(bytes);
        // The request written from a damaged one need not be a valid request: its parts may all be empty.
        let _ = exercise_request(&*format, &body);
        let case = Value::Null;
        if let Ok(response) = format.read_response(&body) {
            let written = format.write_response(&response, &options(&case, None));
            // Of a damaged response nothing may be left, and responses rejects a response without output.
            let is_empty = format.name() == "responses" && parse(&written)["output"] == json!([]);
            prop_assert!(is_empty || format.read_response(&written).is_ok(), "{}", String::from_utf8_lossy(&written));
            prop_assert!(is_json(&format.envelope_response(written)));
        }
        let _ = format.forward_response(&body, "x");
        let _ = format.read_error(500, &body);
        let _ = format.envelope_response(body.to_vec());
        let _ = tollgate_chat::generate_content::extract_counted_request(&body);
        let _ = tollgate_chat::generate_content::path::parse_method_path(&String::from_utf8_lossy(&body));
        let (events, outcome) = read_events(&*format, &body);
        let mut forwarder = format.stream_forwarder(&options(&case, None));
        let forwarded = forwarder.push(body).map(|_| ()).and_then(|()| forwarder.finish());
        forwarder.end();
        if outcome.is_ok() && ["chat-completions", "messages"].contains(&format.name()) {
            prop_assert!(forwarded.is_ok(), "what can be read can be forwarded: {forwarded:?}");
        }
        let stream = written(&mut *format.stream_writer(&options(&case, None)), &events);
        // Damaged items of the responses format are passed on as they are.
        if format.name() != "responses" {
            stream_order::check(format.name(), &stream, &case, false);
        }
    }

    #[test]
    fn a_request_is_unchanged_after_reading_and_writing((format, body) in from_template("request")) {
        let text = body.to_string();
        let request = format.read_request(text.as_bytes()).unwrap();
        let capabilities = ModelCapabilities::default();
        let written = format.write_request(&request, &target(&Value::Null, &capabilities)).unwrap();
        prop_assert_eq!(parse(&written.body), body);
        prop_assert!(written.dropped.is_empty() && written.renamed_tools.is_empty());
        let bytes = Bytes::from(text);
        let summary = format.summarize_request(&bytes).unwrap();
        let sent = format.forward_request(&bytes, &summary, &target(&Value::Null, &capabilities)).unwrap();
        // A request that uses spellings of this gateway is translated through the hub.
        prop_assert!(sent.body == bytes || !summary.is_native);
        prop_assert_eq!(sent.dropped, Vec::<String>::new());
    }

    #[test]
    fn a_request_is_written_or_rejected_for_every_model((format, body) in from_template("request")) {
        prop_assert_eq!(exercise_request(&*format, &Bytes::from(body.to_string())), Ok(()));
    }

    #[test]
    fn a_response_has_the_same_content_complete_and_streamed((format, body) in from_template("response")) {
        let response = format.read_response(body.to_string().as_bytes()).unwrap();
        let case = json!({"options": {"include_usage": true}});
        let again = format.read_response(&format.write_response(&response, &options(&case, None))).unwrap();
        prop_assert_eq!((&again.choices, again.usage), (&response.choices, response.usage));
        let stream = written(&mut *format.stream_writer(&options(&case, None)), &events_from_response(&response));
        stream_order::check(format.name(), &stream, &case["options"], false);
        let streamed = build(&read_events(&*format, &stream).0);
        prop_assert_eq!((&streamed.choices, streamed.usage), (&response.choices, response.usage));
        if format.name() == "messages" {
            let message = stream_order::messages::accumulate(std::str::from_utf8(&stream).unwrap());
            prop_assert_eq!((&message.content, &message.usage), (body["content"].as_array().unwrap(), &body["usage"]));
        }
    }

    #[test]
    fn forwarding_a_stream_does_not_depend_on_its_chunk_borders(
        format in any_format(), case: Index, cuts in prop::collection::vec(any::<Index>(), 0..6), line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        flags: [bool; 2],
    ) {
        let cases = files(&format!("golden/{}/streams", format.name()));
        let text = std::fs::read_to_string(&cases[case.index(cases.len())]).unwrap();
        let text = if text.contains('\r') { text } else { text.replace('\n', line_end) };
        let settings = json!({"options": {"include_usage": flags[0], "json_array": flags[1], "model": "another"}});
        let run = |pieces: &[&[u8]]| {
            let mut forwarder = format.stream_forwarder(&options(&settings, None));
            let mut out = Vec::new();
            let mut push = |piece: &&[u8]| forwarder.push(Bytes::copy_from_slice(piece)).map(|chunk| out.extend_from_slice(&chunk.bytes));
            let outcome = pieces.iter().try_for_each(&mut push).and_then(|()| forwarder.finish());
            if outcome.is_ok() {
                out.extend_from_slice(&forwarder.end());
            }
            (out, outcome, forwarder.usage(), forwarder.text_bytes())
        };
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &text.as_bytes()[ends[0]..ends[1]]).collect();
        let (cut, complete) = (run(&pieces), run(&[text.as_bytes()]));
        prop_assert_eq!(&cut.1, &complete.1);
        if complete.1.is_ok() {
            prop_assert_eq!(cut, complete);
        }
    }
}
