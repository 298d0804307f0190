//! Runs the tables in `tests/cases/FORMAT/OPERATION.json`.
//!
//! A case has a name that states what it proves, the input of one operation of the format, and the expected result: everything that the operation
//! returns. Streams are also checked for a legal order of events, and read again one byte at a time.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tollgate_chat::hub::{ModelCapabilities, Request};
use tollgate_chat::{
    FORMATS, Format, MalformedResponse, StreamForwarder, StreamReader, json_tool, messages,
};

use crate::harness::{
    blesses, bytes, capabilities, compact, error_body, event, files, format, malformed, options,
    parse, rejected, target, written,
};
use crate::stream_order;

type Operation = fn(&dyn Format, &Value) -> Value;

#[test]
fn requests_are_summarized() {
    run("summarize_request", summarize_request);
}

#[test]
fn requests_are_read() {
    run("read_request", |format, case| {
        match format.read_request(&bytes(&case["body"])) {
            Ok(request) => json!(compact(&request)),
            Err(error) => rejected(&error),
        }
    });
}

#[test]
fn requests_of_other_formats_and_for_limited_models_are_written() {
    run("write_request", |to, case| {
        let from = format(&case["from"]);
        let request = match from.read_request(&bytes(&case["body"])) {
            Ok(request) => request,
            Err(error) => return rejected(&error),
        };
        let capabilities = capabilities(&case["target"]["capabilities"]);
        written(to.write_request(&request, &target(case, &capabilities)))
    });
}

#[test]
fn requests_are_forwarded() {
    run("forward_request", |format, case| {
        let body = Bytes::from(bytes(&case["body"]));
        let capabilities: ModelCapabilities = capabilities(&case["target"]["capabilities"]);
        let summary = match format.summarize_request(&body) {
            Ok(summary) => summary,
            Err(error) => return rejected(&error),
        };
        match format.forward_request(&body, &summary, &target(case, &capabilities)) {
            Ok(sent) => {
                let mut outcome = forwarded(&sent.body, &body);
                if !sent.dropped.is_empty() {
                    outcome["dropped"] = json!(sent.dropped);
                }
                outcome
            }
            Err(error) => rejected(&error),
        }
    });
}

#[test]
fn responses_are_read() {
    run("read_response", |format, case| {
        match format.read_response(&bytes(&case["body"])) {
            Ok(response) => json!(compact(&response)),
            Err(error) => malformed(&error),
        }
    });
}

#[test]
fn responses_are_written() {
    run("write_response", |to, case| {
        let from = format(&case["from"]);
        let mut response = from.read_response(&bytes(&case["body"])).unwrap();
        if let Some(name) = case["json_tool"].as_str() {
            json_tool::restore_in_response(&mut response, name);
        }
        parse(&to.write_response(&response, &options(case, echoed_request(case).as_ref())))
    });
}

#[test]
fn responses_are_put_into_the_envelope() {
    run("envelope_response", |format, case| {
        let body = format.envelope_response(bytes(&case["body"]));
        json!(String::from_utf8(body).unwrap())
    });
}

#[test]
fn responses_are_forwarded() {
    run("forward_response", |format, case| {
        let body = Bytes::from(bytes(&case["body"]));
        match format.forward_response(&body, case["model"].as_str().unwrap()) {
            Ok(sent) => json!({
                "body": forwarded(&sent.body, &body),
                "usage": compact(&sent.usage),
                "text_bytes": sent.text_bytes,
            }),
            Err(error) => malformed(&error),
        }
    });
}

#[test]
fn errors_are_written() {
    run("write_error", |format, case| {
        let body = format.write_error(&error_body(&case["error"]));
        json!(String::from_utf8(body).unwrap())
    });
}

#[test]
fn errors_are_read() {
    run("read_error", |format, case| {
        let status = u16::try_from(case["status"].as_u64().unwrap()).unwrap();
        json!(compact(&format.read_error(status, &bytes(&case["body"]))))
    });
}

#[test]
fn streams_are_read() {
    run("read_stream", |format, case| {
        let pieces: Vec<Vec<u8>> = case["pieces"]
            .as_array()
            .unwrap()
            .iter()
            .map(bytes)
            .collect();
        let outcome = read_stream(&mut *format.stream_reader(), &pieces);
        let single: Vec<Vec<u8>> = pieces.concat().chunks(1).map(<[u8]>::to_vec).collect();
        if single.len() < 100_000 {
            assert_eq!(
                outcome,
                read_stream(&mut *format.stream_reader(), &single),
                "one byte at a time"
            );
        }
        outcome
    });
}

#[test]
fn streams_are_written_in_a_legal_order() {
    run("write_stream", |format, case| {
        let mut writer = format.stream_writer(&options(case, echoed_request(case).as_ref()));
        let (mut all, mut steps, mut failed) = (Vec::new(), Vec::new(), false);
        let mut ended = false;
        for step in case["steps"].as_array().unwrap() {
            let start = all.len();
            match step.as_str() {
                Some("end") => writer.end(&mut all),
                Some("keep_alive") => writer.keep_alive(&mut all),
                _ if step["error"].is_object() => {
                    writer.error(&error_body(&step["error"]), &mut all)
                }
                _ => writer.write(&event(step), &mut all),
            }
            assert!(
                !ended || all.len() == start,
                "nothing follows the end: {step}"
            );
            failed |= !ended && step["error"].is_object();
            ended |= step == "end" || step["error"].is_object();
            steps.push(json!(std::str::from_utf8(&all[start..]).unwrap()));
        }
        if ended {
            stream_order::check(format.name(), &all, &case["options"], failed);
        }
        Value::Array(steps)
    });
}

#[test]
fn streams_are_forwarded() {
    run("forward_stream", |format, case| {
        let mut forwarder = format.stream_forwarder(&options(case, None));
        let steps = case["steps"].as_array().unwrap().iter();
        let mut out: Vec<Value> = steps
            .map(|step| forward_step(&mut *forwarder, step))
            .collect();
        out.push(
            json!({"usage": compact(&forwarder.usage()), "text_bytes": forwarder.text_bytes()}),
        );
        Value::Array(out)
    });
}

/// No format reads a request with so many stop sequences.
#[test]
fn too_many_stop_sequences_are_rejected_with_the_clients_field_name() {
    let body = br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    let from = format(&json!("chat-completions"));
    let mut request = from.read_request(body).unwrap();
    request.stop = vec!["a".to_owned(); 6];
    let capabilities = ModelCapabilities::default();
    let to = format(&json!("generate-content"));
    let written = to.write_request(&request, &target(&Value::Null, &capabilities));
    assert_eq!(written.unwrap_err().field, "stop");
}

/// Without such an item the model would receive other turns or settings than the client sent.
#[test]
fn items_that_replace_or_steer_turns_are_rejected_by_other_formats() {
    let from = format(&json!("responses"));
    let capabilities = ModelCapabilities::default();
    for kind in [
        "item_reference",
        "compaction",
        "compaction_trigger",
        "configuration_update",
        "additional_tools",
    ] {
        let item = json!({"type": kind, "id": "item_1"});
        let body = json!({"model": "m", "input": [item, {"role": "user", "content": "x"}]});
        let request = from.read_request(&bytes(&body)).unwrap();
        for to in FORMATS {
            let sent = to.write_request(&request, &target(&Value::Null, &capabilities));
            let outcome = written(sent);
            if to.name() == from.name() {
                assert_eq!(outcome["body"]["input"][0], item, "{outcome}");
            } else {
                let field = &outcome["rejected"]["field"];
                assert_eq!(field, "input[0].content[0]", "{kind}, {}", to.name());
            }
        }
    }
}

#[test]
fn a_count_tokens_request_needs_no_max_tokens() {
    let body = br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(messages::read_count_request(body).unwrap().max_tokens, None);
    assert_eq!(
        messages::write_count_response(12),
        br#"{"input_tokens":12}"#
    );
}

fn summarize_request(format: &dyn Format, case: &Value) -> Value {
    let summary = match format.summarize_request(&bytes(&case["body"])) {
        Ok(summary) => summary,
        Err(error) => return rejected(&error),
    };
    let mut out = Map::new();
    let members = [
        ("model", json!(summary.model)),
        ("stream", json!(summary.stream)),
        ("include_usage", json!(summary.include_usage)),
        ("max_tokens", json!(summary.max_tokens)),
        ("n", json!(summary.n)),
        ("user", json!(summary.user)),
        ("attachments", json!(summary.attachments)),
        ("payload_bytes", json!(summary.payload_bytes)),
        (
            "has_reasoning_settings",
            json!(summary.has_reasoning_settings),
        ),
        ("is_native", json!(summary.is_native)),
        ("thinking_budget", json!(summary.thinking_budget)),
    ];
    let is_set = |value: &Value| !value.is_null() && *value != 0 && *value != false;
    out.extend(
        members
            .into_iter()
            .filter(|member| is_set(&member.1))
            .map(|(name, value)| (name.to_owned(), value)),
    );
    Value::Object(out)
}

/// The request that a response echoes.
fn echoed_request(case: &Value) -> Option<Request> {
    let request = &case["options"]["request"];
    let read = || {
        format(&request["from"])
            .read_request(&bytes(&request["body"]))
            .unwrap()
    };
    request.is_object().then(read)
}

/// Forwarded bytes as JSON: the bytes, and whether they were copied.
fn forwarded(sent: &Bytes, from: &Bytes) -> Value {
    let is_slice = from.as_ptr_range().contains(&sent.as_ptr()) && !sent.is_empty();
    match (is_slice, is_slice && sent.len() == from.len()) {
        (_, true) => json!("unchanged"),
        (true, _) => json!({"slice": String::from_utf8_lossy(sent)}),
        _ => json!({"copy": String::from_utf8_lossy(sent)}),
    }
}

fn read_stream(reader: &mut dyn StreamReader, pieces: &[Vec<u8>]) -> Value {
    let mut events = Vec::new();
    let pushed = pieces
        .iter()
        .try_for_each(|piece| reader.push(piece, &mut events));
    let outcome = pushed.and_then(|()| reader.finish(&mut events));
    let events: Vec<String> = events.iter().map(compact).collect();
    json!({"events": events, "outcome": outcome_of(outcome)})
}

fn outcome_of(outcome: Result<(), MalformedResponse>) -> Value {
    outcome.map_or_else(|error| malformed(&error), |()| json!("ok"))
}

fn forward_step(forwarder: &mut dyn StreamForwarder, step: &Value) -> Value {
    let mut out = Vec::new();
    match step.as_str() {
        Some("finish") => return outcome_of(forwarder.finish()),
        Some("end") => out.extend_from_slice(&forwarder.end()),
        Some("keep_alive") => forwarder.keep_alive(&mut out),
        _ if step["error"].is_object() => forwarder.error(&error_body(&step["error"]), &mut out),
        _ => {
            let pushed = Bytes::from(bytes(&step["push"]));
            return match forwarder.push(pushed.clone()) {
                Err(error) => malformed(&error),
                Ok(chunk) if chunk.ended => {
                    json!({"sent": forwarded(&chunk.bytes, &pushed), "ended": true})
                }
                Ok(chunk) => json!({"sent": forwarded(&chunk.bytes, &pushed)}),
            };
        }
    }
    json!(String::from_utf8(out).unwrap())
}

/// Runs the cases of one operation in every format.
fn run(operation: &str, outcome: Operation) {
    let mut failures = Vec::new();
    for format in FORMATS {
        for path in files(&format!("cases/{}", format.name())) {
            if path.file_stem().is_some_and(|stem| stem == operation) {
                run_file(&path, *format, outcome, &mut failures);
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} cases differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn run_file(path: &Path, format: &dyn Format, outcome: Operation, failures: &mut Vec<String>) {
    let text = fs::read_to_string(path).unwrap();
    let mut cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    for case in &mut cases {
        let name = format!("{}: {}", path.display(), case["name"]);
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| outcome(format, case))) else {
            failures.push(format!("{name}: panicked (above)"));
            continue;
        };
        if outcome != case["expect"] && !blesses() {
            failures.push(format!(
                "{name}\n  expected {}\n  actual   {outcome}",
                case["expect"]
            ));
        }
        case["expect"] = outcome;
    }
    let rendered = render(&cases);
    if blesses() && rendered != text {
        fs::write(path, rendered).unwrap();
    }
}

/// The table as text: a line for each member of a case.
fn render(cases: &[Value]) -> String {
    let member = |(name, value): (&String, &Value)| format!("    {}: {value}", json!(name));
    let case = |case: &Value| {
        let members: Vec<String> = case.as_object().unwrap().iter().map(member).collect();
        format!("  {{\n{}\n  }}", members.join(",\n"))
    };
    let cases: Vec<String> = cases.iter().map(case).collect();
    format!("[\n{}\n]\n", cases.join(",\n"))
}
