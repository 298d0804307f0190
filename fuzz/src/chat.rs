//! What is fuzzed: the event decoder, and of every format its requests, replies, streams and errors.

use bytes::Bytes;
use tollgate_chat::hub::ModelCapabilities;
use tollgate_chat::sse::Decoder;
use tollgate_chat::{FORMATS, Format, RenderOptions, Target as For};

use crate::{Target, corpus};

/// The decoder, and a target for each of a format's parsers.
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

/// A target that begins with the golden cases whose path contains `part`.
fn target(name: String, part: &'static str, run: impl Fn(&[u8], u64) + 'static) -> Target {
    Target {
        name,
        corpus: Box::new(move || corpus::golden_chats(part)),
        run: Box::new(run),
    }
}

/// However it is cut, the decoder sees the same events.
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

/// What is read can be written in every format; what a quick look takes is forwarded.
fn request(format: &'static dyn Format, input: &[u8]) {
    let traits = ModelCapabilities::default();
    let target = For {
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

/// A stream read whole and in pieces tells the same, and every format can write what it tells.
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
    let (good, events) = read(&[input]);
    let (good_in_pieces, events_in_pieces) = read(&pieces(input, cuts));
    assert_eq!(
        good, good_in_pieces,
        "the cut changes whether the stream is accepted"
    );
    if good {
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

/// `input` in pieces of a length that `cuts` decides.
pub(crate) fn pieces(input: &[u8], cuts: u64) -> Vec<&[u8]> {
    let length = 1 + usize::try_from(cuts % 97).unwrap_or(0);
    input.chunks(length).collect()
}
