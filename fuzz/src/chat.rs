//! Fuzz targets of the chat crate: the event decoder, and the parsers of requests, replies, streams and errors of every format.

use bytes::Bytes;
use tollgate_chat::hub::ModelCapabilities;
use tollgate_chat::sse::Decoder;
use tollgate_chat::{FORMATS, Format, RenderOptions, Target as RequestTarget};

use crate::corpus;
use crate::target::Target;

/// The targets: the event decoder, and each parser of each format.
pub(crate) fn targets() -> Vec<Target> {
    let mut targets = vec![target("sse".to_owned(), "/streams/", sse)];
    for format in FORMATS.iter().copied() {
        let name = format.name();
        targets.push(target(
            format!("{name}-request"),
            "/requests/",
            move |input, _| {
                request(format, input);
            },
        ));
        targets.push(target(
            format!("{name}-response"),
            "/replies/",
            move |input, _| {
                response(format, input);
            },
        ));
        targets.push(target(
            format!("{name}-stream"),
            "/streams/",
            move |input, cuts| {
                stream(format, input, cuts);
            },
        ));
    }
    targets
}

/// A target whose corpus is the golden cases whose path contains `part`.
fn target(name: String, part: &'static str, run: impl Fn(&[u8], u64) + 'static) -> Target {
    Target {
        name,
        corpus: Box::new(move || corpus::golden_chats(part)),
        run: Box::new(run),
    }
}

/// Asserts that the decoder returns the same events however the input is split.
fn sse(input: &[u8], cuts: u64) {
    let decode = |pieces: &[&[u8]]| {
        let mut events = Vec::new();
        let mut decoder = Decoder::default();
        let mut each = |event: tollgate_chat::sse::SseEvent<'_>| {
            events.push((event.name.to_owned(), event.data.to_owned()));
            Ok(())
        };
        let mut read = pieces
            .iter()
            .try_for_each(|piece| decoder.push(piece, &mut each));
        read = read.and_then(|()| decoder.finish(&mut each));
        (read.is_ok(), events)
    };
    assert_eq!(
        decode(&[input]),
        decode(&pieces(input, cuts)),
        "the cut changes the events"
    );
}

/// Asserts that a request which can be read is written as JSON in every format that supports it. Summarizing, forwarding and reading errors must not
/// panic.
fn request(format: &'static dyn Format, input: &[u8]) {
    let traits = ModelCapabilities::default();
    let target = RequestTarget {
        model: "m",
        stream: false,
        capabilities: &traits,
        default_max_tokens: 1_000,
    };
    if let Ok(summary) = format.summarize_request(input) {
        let _ = format.forward_request(&Bytes::copy_from_slice(input), &summary, &target);
    }
    if let Ok(read) = format.read_request(input) {
        for other in FORMATS {
            if let Ok(written) = other.write_request(&read, &target) {
                assert!(
                    serde_json::from_slice::<serde_json::Value>(&written.body).is_ok(),
                    "{} wrote no JSON",
                    other.name()
                );
            }
        }
    }
    let _ = format.read_error(500, input);
}

/// Asserts that a response which can be read is written as JSON in every format. Forwarding and reading errors must not panic.
fn response(format: &'static dyn Format, input: &[u8]) {
    let _ = format.forward_response(&Bytes::copy_from_slice(input), "m");
    if let Ok(read) = format.read_response(input) {
        for other in FORMATS {
            let written = other.write_response(&read, &rendering());
            assert!(
                serde_json::from_slice::<serde_json::Value>(&written).is_ok(),
                "{} wrote no JSON",
                other.name()
            );
        }
    }
    let _ = format.read_error(400, input);
}

/// Asserts that a stream gives the same events when read complete and in pieces. Writing those events in every format, and forwarding the stream,
/// must not panic.
fn stream(format: &'static dyn Format, input: &[u8], cuts: u64) {
    let read = |pieces: &[&[u8]]| {
        let mut reader = format.stream_reader();
        let mut events = Vec::new();
        let result = pieces
            .iter()
            .try_for_each(|piece| reader.push(piece, &mut events));
        let result = result.and_then(|()| reader.finish(&mut events));
        (result.is_ok(), events)
    };
    let (is_accepted, events) = read(&[input]);
    let (is_accepted_in_pieces, events_in_pieces) = read(&pieces(input, cuts));
    assert_eq!(
        is_accepted, is_accepted_in_pieces,
        "the cut changes whether the stream is accepted"
    );
    if is_accepted {
        assert_eq!(
            format!("{events:?}"),
            format!("{events_in_pieces:?}"),
            "the cut changes the events"
        );
    }
    for other in FORMATS {
        let mut writer = other.stream_writer(&rendering());
        let mut out = Vec::new();
        for event in &events {
            writer.write(event, &mut out);
        }
        writer.end(&mut out);
    }
    let mut forward = format.stream_forwarder(&rendering());
    for piece in pieces(input, cuts) {
        if forward.push(Bytes::copy_from_slice(piece)).is_err() {
            return;
        }
    }
    if forward.finish().is_ok() {
        forward.end();
    }
}

fn rendering() -> RenderOptions<'static> {
    RenderOptions {
        model: "m",
        created: 1,
        seed: "seed",
        include_usage: true,
        estimated_prompt_tokens: 1,
        request: None,
        json_array: false,
    }
}

/// Splits `input` into pieces whose length is derived from `cuts`.
pub(crate) fn pieces(input: &[u8], cuts: u64) -> Vec<&[u8]> {
    let length = 1 + usize::try_from(cuts % 97).unwrap_or(0);
    input.chunks(length).collect()
}
