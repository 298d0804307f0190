//! The golden matrix: every case of every format, written in every format.
//!
//! A case is a file `tests/golden/FORMAT/{requests,replies,streams}/NAME.{json,sse}` as that format's client or upstream sends it.
//! It is read by FORMAT and written by each format, and the outcome is compared with
//! `tests/golden/snapshots/FROM-to-TO/KIND/NAME.*`. Streams are also read one byte at a time, and must give the same bytes. If both
//! sides are the same format, what is forwarded without the hub is compared too (`forwards`).

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_chat::hub::{Event, ModelCapabilities};
use tollgate_chat::{FORMATS, Format, MalformedResponse, RenderOptions};

use crate::harness::{blesses, client_error, files, options, parse, rejected, target, written};
use crate::stream_order;

#[test]
fn requests_are_translated_into_every_format() {
    let capabilities = ModelCapabilities::default();
    run("requests", |from, to, input| {
        let outcome = match from.read_request(input) {
            Err(error) => json!({"unreadable": rejected(&error)["rejected"]}),
            Ok(request) => {
                let case = json!({"target": {"model": "upstream-model", "stream": request.stream}});
                written(to.write_request(&request, &target(&case, &capabilities)))
            }
        };
        pretty(&outcome)
    });
}

#[test]
fn responses_are_translated_into_every_format() {
    run("replies", |from, to, input| {
        match from.read_response(input) {
            Err(error) => pretty(&json!({"malformed": error.to_string()})),
            Ok(response) => pretty(&parse(
                &to.write_response(&response, &rendering(&settings())),
            )),
        }
    });
}

#[test]
fn streams_are_translated_into_every_format() {
    run("streams", |from, to, input| {
        let complete = translate(from, to, &[input]);
        let pieces: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(complete, translate(from, to, &pieces), "one byte at a time");
        complete
    });
}

#[test]
fn streams_are_forwarded_within_a_format() {
    run("forwards", |from, to, input| {
        if from.name() != to.name() {
            return String::new();
        }
        let complete = forward(from, &[input]);
        let pieces: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(complete, forward(from, &pieces), "one byte at a time");
        complete
    });
}

/// A format reads back the request that it wrote, and forwarding sends the same as translating. Cases named `broken-…` are excepted: writers repair
/// them.
#[test]
fn requests_are_unchanged_after_a_round_trip_in_their_format() {
    let capabilities = ModelCapabilities::default();
    for (format, case, input) in intact_cases("requests") {
        let Ok(request) = format.read_request(&input) else {
            continue;
        };
        let settings = json!({"target": {"model": "upstream-model", "stream": request.stream}});
        let target = target(&settings, &capabilities);
        let written = format.write_request(&request, &target).unwrap();
        let mut again = format
            .read_request(&written.body)
            .unwrap_or_else(|error| panic!("{case:?}: {error}"));
        // Usage is always requested upstream.
        (again.model, again.include_usage) = (request.model.clone(), request.include_usage);
        assert_eq!(again, request, "{case:?}");
        assert_eq!(written.dropped, Vec::<String>::new(), "{case:?}");
        let summary = format
            .summarize_request(&input)
            .unwrap_or_else(|error| panic!("{case:?}: {error}"));
        if summary.is_native {
            let sent = format
                .forward_request(&Bytes::from(input), &summary, &target)
                .unwrap();
            assert_eq!(
                format.read_request(&sent.body).unwrap().turns,
                request.turns,
                "{case:?}"
            );
        }
    }
}

/// A format reads back the response that it wrote.
#[test]
fn responses_are_unchanged_after_a_round_trip_in_their_format() {
    for (format, case, input) in intact_cases("replies") {
        let Ok(response) = format.read_response(&input) else {
            continue;
        };
        let again = format
            .read_response(&format.write_response(&response, &rendering(&settings())))
            .unwrap();
        assert_eq!(
            (&again.choices, again.usage),
            (&response.choices, response.usage),
            "{case:?}"
        );
    }
}

fn intact_cases(
    kind: &'static str,
) -> impl Iterator<Item = (&'static dyn Format, PathBuf, Vec<u8>)> {
    let is_broken = |case: &PathBuf| {
        case.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("broken-"))
    };
    FORMATS.iter().flat_map(move |format| {
        let cases = files(&format!("golden/{}/{kind}", format.name())).into_iter();
        cases
            .filter(move |case| !is_broken(case))
            .map(move |case| (*format, case.clone(), fs::read(&case).unwrap()))
    })
}

fn translate(from: &dyn Format, to: &dyn Format, pieces: &[&[u8]]) -> String {
    let (mut reader, settings) = (from.stream_reader(), settings());
    let mut writer = to.stream_writer(&rendering(&settings));
    let (mut events, mut out) = (Vec::new(), Vec::new());
    let read = pieces
        .iter()
        .try_for_each(|piece| reader.push(piece, &mut events));
    let outcome = read.and_then(|()| reader.finish(&mut events));
    check_events(&events);
    events
        .iter()
        .for_each(|event| writer.write(event, &mut out));
    match &outcome {
        Ok(()) => writer.end(&mut out),
        Err(error) => writer.error(&client_error(error), &mut out),
    }
    stream_order::check(to.name(), &out, &settings["options"], outcome.is_err());
    String::from_utf8(out).unwrap()
}

fn forward(format: &dyn Format, pieces: &[&[u8]]) -> String {
    let mut forwarder = format.stream_forwarder(&rendering(&settings()));
    let mut out = Vec::new();
    let mut read = || -> Result<(), MalformedResponse> {
        for piece in pieces {
            out.extend_from_slice(&forwarder.push(Bytes::copy_from_slice(piece))?.bytes);
        }
        forwarder.finish()
    };
    match read() {
        Ok(()) => out.extend_from_slice(&forwarder.end()),
        Err(error) => forwarder.error(&client_error(&error), &mut out),
    }
    let note = match forwarder.usage() {
        Some(usage) => format!(
            "({} + {} tokens, {} bytes)\n",
            usage.input,
            usage.output,
            forwarder.text_bytes()
        ),
        None => format!("(no usage, {} bytes)\n", forwarder.text_bytes()),
    };
    String::from_utf8(out).unwrap() + &note
}

/// What every reader guarantees (`hub/event.rs`).
fn check_events(events: &[Event]) {
    let mut calls: Vec<(u32, u32, bool)> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(
            matches!(event, Event::Start { .. }),
            at == 0,
            "start first and once: {events:?}"
        );
        match event {
            Event::ToolStart {
                choice,
                call,
                id,
                name,
                ..
            } => {
                assert!(!id.is_empty() && !name.is_empty(), "{event:?}");
                let before = calls.iter().filter(|known| known.0 == *choice).count();
                assert_eq!(
                    before, *call as usize,
                    "calls count from 0 without gaps: {events:?}"
                );
                calls.push((*choice, *call, true));
            }
            Event::ToolArguments { choice, call, .. } => {
                assert!(
                    calls.contains(&(*choice, *call, true)),
                    "{event:?} is of no open call"
                );
            }
            Event::ToolEnd { choice, call, .. } => {
                let open = calls
                    .iter_mut()
                    .find(|known| **known == (*choice, *call, true));
                open.unwrap_or_else(|| panic!("{event:?} ends no open call"))
                    .2 = false;
            }
            Event::Finish { choice, .. } => {
                assert!(
                    !calls.iter().any(|known| known.0 == *choice && known.2),
                    "a call is open at the finish: {events:?}"
                );
            }
            _ => {}
        }
    }
}

fn run(kind: &str, outcome: impl Fn(&dyn Format, &dyn Format, &[u8]) -> String) {
    let mut failures = Vec::new();
    for from in FORMATS {
        let inputs = if kind == "forwards" { "streams" } else { kind };
        let inputs = files(&format!("golden/{}/{inputs}", from.name()));
        for to in FORMATS {
            let folder = format!("golden/snapshots/{}-to-{}/{kind}", from.name(), to.name());
            let mut expected = BTreeSet::new();
            for case in &inputs {
                let input = fs::read(case).unwrap();
                let Ok(actual) = catch_unwind(AssertUnwindSafe(|| outcome(*from, *to, &input)))
                else {
                    failures.push(format!(
                        "{} to {}: panicked (above)",
                        case.display(),
                        to.name()
                    ));
                    continue;
                };
                if actual.is_empty() && kind == "forwards" {
                    continue;
                }
                let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("tests")
                    .join(&folder);
                let snapshot = folder.join(case.file_name().unwrap());
                compare(&snapshot, &actual, &mut failures);
                expected.insert(snapshot);
            }
            for file in files(&folder)
                .into_iter()
                .filter(|file| !expected.contains(file))
            {
                match blesses() {
                    true => fs::remove_file(&file).unwrap(),
                    false => failures.push(format!("{} has no case", file.display())),
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} {kind} differ; first:\n{}",
        failures.len(),
        failures[..failures.len().min(3)].join("\n")
    );
}

fn compare(snapshot: &Path, actual: &str, failures: &mut Vec<String>) {
    let expected = fs::read_to_string(snapshot).unwrap_or_default();
    if expected == actual {
        return;
    }
    if blesses() {
        fs::create_dir_all(snapshot.parent().unwrap()).unwrap();
        fs::write(snapshot, actual).unwrap();
        return;
    }
    let line = expected
        .lines()
        .zip(actual.lines())
        .position(|(a, b)| a != b);
    let at = line.unwrap_or_else(|| expected.lines().count().min(actual.lines().count()));
    let nth = |text: &str| text.lines().nth(at).unwrap_or("(end)").to_owned();
    failures.push(format!(
        "{}:{}\n  expected {}\n  actual   {}",
        snapshot.display(),
        at + 1,
        nth(&expected),
        nth(actual)
    ));
}

fn settings() -> Value {
    json!({"options": {"model": "client-model", "created": 1_700_000_000, "seed": "seed0123456789", "include_usage": true}})
}

fn rendering(settings: &Value) -> RenderOptions<'_> {
    options(settings, None)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}
