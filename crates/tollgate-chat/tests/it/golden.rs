//! The golden matrix: every case of every format, written in every format.
//!
//! A case is a file `tests/golden/FORMAT/{requests,replies,streams}/NAME.{json,sse}` as that format's client or upstream sends it.
//! It is read by FORMAT and written by each format, and the outcome is compared with
//! `tests/golden/snapshots/FROM-to-TO/KIND/NAME.*`. `TOLLGATE_BLESS=1 cargo test -p tollgate-chat` rewrites the snapshots
//! (`TOLLGATE_BLESS=messages` only those written by that format); read the diff before committing it.
//!
//! Streams are read whole and again one byte at a time, and must give the same bytes. Where both sides are the same format, what is
//! forwarded without the hub is compared too (`forwards`).

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_chat::hub::{Event, ModelCapabilities, Response};
use tollgate_chat::{ErrorBody, FORMATS, Format, MalformedResponse, RenderOptions, Target};

#[test]
fn requests() {
    run("requests", |from, to, input| {
        let outcome = match from.read_request(input) {
            Err(bad) => json!({"unreadable": {"field": bad.field, "message": bad.message}}),
            Ok(request) => match to.write_request(&request, &target(request.stream)) {
                Err(bad) => json!({"bad": {"field": bad.field, "message": bad.message}}),
                Ok(written) => json!({
                    "body": parse(&written.body),
                    "dropped": written.dropped,
                    "renamed_tools": written.renamed_tools,
                }),
            },
        };
        pretty(&outcome)
    });
}

#[test]
fn replies() {
    run("replies", |from, to, input| {
        match from.read_response(input) {
            Err(error) => pretty(&json!({"garbled": error.to_string()})),
            Ok(reply) => {
                let bare = to.write_response(&reply, &rendering());
                pretty(&parse(&bare))
            }
        }
    });
}

#[test]
fn streams() {
    run("streams", |from, to, input| {
        let whole = translate(from, to, &[input]);
        let pieces: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(whole, translate(from, to, &pieces), "one byte at a time");
        whole
    });
}

#[test]
fn forwards() {
    run("forwards", |from, to, input| {
        if from.name() != to.name() {
            return String::new();
        }
        let whole = forward(from, &[input]);
        let pieces: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(whole, forward(from, &pieces), "one byte at a time");
        whole
    });
}

/// A request's own format reads back what it wrote, and forwarding sends what translating would. Not so for cases that are named
/// `broken-…`: writers repair them.
#[test]
fn requests_survive_their_own_format() {
    for (format, case) in FORMATS
        .iter()
        .flat_map(|f| cases(*f, "requests").into_iter().map(move |c| (*f, c)))
    {
        if is_broken(&case) {
            continue;
        }
        let input = fs::read(&case).unwrap();
        let Ok(request) = format.read_request(&input) else {
            continue;
        };
        let glance = format
            .summarize_request(&input)
            .unwrap_or_else(|bad| panic!("{case:?}: {bad}"));
        let written = format
            .write_request(&request, &target(request.stream))
            .unwrap();
        let mut again = format
            .read_request(&written.body)
            .unwrap_or_else(|bad| panic!("{case:?}: {bad}"));
        // Usage is always asked for upstream.
        (again.model, again.include_usage) = (request.model.clone(), request.include_usage);
        assert_eq!(again, request, "{case:?}");
        assert_eq!(written.dropped, Vec::<String>::new(), "{case:?}");
        if glance.is_native {
            let sent = format
                .forward_request(&Bytes::from(input), &glance, &target(glance.stream))
                .unwrap();
            let again = format.read_request(&sent).unwrap();
            assert_eq!(again.turns, request.turns, "{case:?}");
        }
    }
}

fn translate(from: &dyn Format, to: &dyn Format, pieces: &[&[u8]]) -> String {
    let (mut reader, mut writer) = (from.stream_reader(), to.stream_writer(&rendering()));
    let (mut events, mut out) = (Vec::new(), Vec::new());
    let mut read = || -> Result<(), MalformedResponse> {
        for piece in pieces {
            reader.push(piece, &mut events)?;
        }
        reader.finish(&mut events)
    };
    let outcome = read();
    promises(&events);
    for event in &events {
        writer.write(event, &mut out);
    }
    match outcome {
        Ok(()) => writer.end(&mut out),
        Err(error) => writer.error(&wire(&error), &mut out),
    }
    String::from_utf8(out).unwrap()
}

fn forward(format: &dyn Format, pieces: &[&[u8]]) -> String {
    let mut forward = format.stream_forwarder(&rendering());
    let mut out = Vec::new();
    let mut read = || -> Result<(), MalformedResponse> {
        for piece in pieces {
            out.extend_from_slice(&forward.push(Bytes::copy_from_slice(piece))?.bytes);
        }
        forward.finish()
    };
    match read() {
        Ok(()) => out.extend_from_slice(&forward.end()),
        Err(error) => forward.error(&wire(&error), &mut out),
    }
    let note = match forward.usage() {
        Some(usage) => format!(
            "({} + {} tokens, {} bytes)\n",
            usage.input,
            usage.output,
            forward.text_bytes()
        ),
        None => format!("(no usage, {} bytes)\n", forward.text_bytes()),
    };
    String::from_utf8(out).unwrap() + &note
}

/// What every reader promises: see `hub/event.rs`.
fn promises(events: &[Event]) {
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
                let before = calls.iter().filter(|c| c.0 == *choice).count();
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
                let open = calls.iter_mut().find(|c| **c == (*choice, *call, true));
                open.unwrap_or_else(|| panic!("{event:?} ends no open call"))
                    .2 = false;
            }
            Event::Finish { choice, .. } => {
                assert!(
                    !calls.iter().any(|c| c.0 == *choice && c.2),
                    "a call is open at the finish: {events:?}"
                );
            }
            _ => {}
        }
    }
}

fn run(kind: &str, outcome: impl Fn(&dyn Format, &dyn Format, &[u8]) -> String) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for from in FORMATS.iter().copied().filter(|f| is_written(*f)) {
        let inputs = cases(from, if kind == "forwards" { "streams" } else { kind });
        for to in FORMATS.iter().copied().filter(|f| is_written(*f)) {
            let folder = root()
                .join("snapshots")
                .join(format!("{}-to-{}", from.name(), to.name()))
                .join(kind);
            let mut expected = BTreeSet::new();
            for case in &inputs {
                let input = fs::read(case).unwrap();
                let made = catch_unwind(AssertUnwindSafe(|| outcome(from, to, &input)));
                let Ok(made) = made else {
                    wrong.push(format!(
                        "{} to {}: panicked (above)",
                        case.display(),
                        to.name()
                    ));
                    continue;
                };
                if made.is_empty() && kind == "forwards" {
                    continue;
                }
                count += 1;
                let snapshot = folder.join(case.file_name().unwrap());
                expected.insert(snapshot.clone());
                compare(&snapshot, &made, to.name(), &mut wrong);
            }
            sweep(&folder, &expected, to.name(), &mut wrong);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} {kind} differ; first:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(3)].join("\n")
    );
}

fn compare(snapshot: &Path, made: &str, to: &str, wrong: &mut Vec<String>) {
    let there = fs::read_to_string(snapshot).unwrap_or_default();
    if there == made {
        return;
    }
    if blesses(to) {
        fs::create_dir_all(snapshot.parent().unwrap()).unwrap();
        fs::write(snapshot, made).unwrap();
        return;
    }
    let line = there.lines().zip(made.lines()).position(|(a, b)| a != b);
    let at = line.unwrap_or_else(|| there.lines().count().min(made.lines().count()));
    let nth = |text: &str| text.lines().nth(at).unwrap_or("(end)").to_owned();
    wrong.push(format!(
        "{}:{}\n  expected {}\n  made     {}",
        snapshot.display(),
        at + 1,
        nth(&there),
        nth(made)
    ));
}

/// Snapshots whose case is gone.
fn sweep(folder: &Path, expected: &BTreeSet<PathBuf>, to: &str, wrong: &mut Vec<String>) {
    for file in list(folder) {
        if expected.contains(&file) {
            continue;
        }
        if blesses(to) {
            fs::remove_file(&file).unwrap();
        } else {
            wrong.push(format!("{} has no case", file.display()));
        }
    }
}

fn is_broken(case: &Path) -> bool {
    let name = case.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("broken-"))
}

fn blesses(to: &str) -> bool {
    std::env::var("TOLLGATE_BLESS").is_ok_and(|what| what == "1" || what == to)
}

fn cases(format: &dyn Format, kind: &str) -> Vec<PathBuf> {
    list(&root().join(format.name()).join(kind))
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Whether the format is there at all.
fn is_written(format: &dyn Format) -> bool {
    catch_unwind(AssertUnwindSafe(|| format.read_error(500, b""))).is_ok()
}

fn target(stream: bool) -> Target<'static> {
    static TRAITS: std::sync::LazyLock<ModelCapabilities> =
        std::sync::LazyLock::new(ModelCapabilities::default);
    Target {
        model: "upstream-model",
        stream,
        capabilities: &TRAITS,
        default_max_tokens: 8192,
    }
}

fn rendering() -> RenderOptions<'static> {
    RenderOptions {
        model: "client-model",
        created: 1_700_000_000,
        seed: "seed0123456789",
        include_usage: true,
        estimated_prompt_tokens: 11,
        request: None,
        json_array: false,
    }
}

fn wire(error: &MalformedResponse) -> ErrorBody {
    let status = match error {
        MalformedResponse::Upstream(words) => words.status.unwrap_or(502),
        _ => 502,
    };
    ErrorBody {
        status,
        message: error.to_string(),
        param: None,
        code: None,
        bare: true,
    }
}

fn parse(body: &[u8]) -> Value {
    serde_json::from_slice(body)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(body)))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

/// The reply that a format writes is one that it reads.
#[test]
fn replies_survive_their_own_format() {
    for (format, case) in FORMATS
        .iter()
        .flat_map(|f| cases(*f, "replies").into_iter().map(move |c| (*f, c)))
    {
        if is_broken(&case) {
            continue;
        }
        let Ok(reply) = format.read_response(&fs::read(&case).unwrap()) else {
            continue;
        };
        let again: Response = format
            .read_response(&format.write_response(&reply, &rendering()))
            .unwrap();
        assert_eq!(again.choices, reply.choices, "{case:?}");
        assert_eq!(again.usage, reply.usage, "{case:?}");
    }
}
