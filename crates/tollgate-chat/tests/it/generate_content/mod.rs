//! Tests of the generateContent format through the crate's public interface.

mod request_write;
mod requests;
mod streams;

use bytes::Bytes;
use proptest::prelude::*;
use tollgate_chat::generate_content::{GenerateContent, extract_counted_request, path};
use tollgate_chat::hub::ModelCapabilities;
use tollgate_chat::{Format, RenderOptions, Target};

pub(crate) const FORMAT: GenerateContent = GenerateContent;

pub(crate) fn rendering(json_array: bool) -> RenderOptions<'static> {
    RenderOptions {
        model: "client-model",
        created: 0,
        seed: "seed",
        include_usage: true,
        estimated_prompt_tokens: 5,
        request: None,
        json_array,
    }
}

pub(crate) fn target(capabilities: &ModelCapabilities) -> Target<'_> {
    Target {
        model: "m",
        stream: false,
        capabilities,
        default_max_tokens: 10,
    }
}

/// A golden case with some bytes changed, removed or repeated.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/generate-content");
    let mut cases = Vec::new();
    for kind in ["requests", "replies", "streams"] {
        for entry in std::fs::read_dir(format!("{root}/{kind}")).unwrap() {
            cases.push(std::fs::read(entry.unwrap().path()).unwrap());
        }
    }
    let change = (
        any::<prop::sample::Index>(),
        any::<u8>(),
        0..4u8,
        0..12usize,
    );
    (
        prop::sample::select(cases),
        prop::collection::vec(change, 0..6),
    )
        .prop_map(|(mut bytes, changes)| {
            for (at, byte, kind, length) in changes {
                if bytes.is_empty() {
                    break;
                }
                let at = at.index(bytes.len());
                let end = (at + length).min(bytes.len());
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes.truncate(at),
                    2 => drop(bytes.drain(at..end)),
                    _ => {
                        let again = bytes[at..end].to_vec();
                        bytes.splice(at..at, again);
                    }
                }
            }
            bytes
        })
}

proptest! {
    #[test]
    fn nothing_panics(bytes in mutated(), json_array: bool) {
        let body = Bytes::from(bytes);
        let capabilities = ModelCapabilities { requires_signatures: true, supports_json_schema: false, ..ModelCapabilities::default() };
        if let Ok(summary) = FORMAT.summarize_request(&body) {
            let _ = FORMAT.forward_request(&body, &summary, &target(&capabilities));
        }
        if let Ok(request) = FORMAT.read_request(&body) {
            let _ = FORMAT.write_request(&request, &target(&capabilities));
            prop_assert!(FORMAT.summarize_request(&body).is_ok());
        }
        let _ = extract_counted_request(&body);
        let _ = FORMAT.forward_response(&body, "m");
        let _ = FORMAT.read_error(500, &body);
        if let Ok(reply) = FORMAT.read_response(&body) {
            let written = FORMAT.write_response(&reply, &rendering(false));
            prop_assert!(FORMAT.read_response(&written).is_ok());
        }
        let (mut reader, mut events) = (FORMAT.stream_reader(), Vec::new());
        let _ = reader.push(&body, &mut events).and_then(|()| reader.finish(&mut events));
        let mut forward = FORMAT.stream_forwarder(&rendering(json_array));
        let _ = forward.push(body.clone()).and_then(|_| forward.finish());
        forward.end();
        let _ = path::parse_method_path(&String::from_utf8_lossy(&body));
    }
}
