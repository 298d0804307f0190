//! Property tests: malformed input never panics.

use bytes::Bytes;
use proptest::prelude::*;

use super::{rendering, target};
use tollgate_chat::format::Format;
use tollgate_chat::hub::ModelCapabilities;
use tollgate_chat::responses::Responses;

const REQUESTS: [&str; 3] = [
    include_str!("../../golden/responses/requests/reasoning.json"),
    include_str!("../../golden/responses/requests/tool-results.json"),
    include_str!("../../golden/responses/requests/spec-spelling.json"),
];

const RESPONSES: [&str; 3] = [
    include_str!("../../golden/responses/replies/tools.json"),
    include_str!("../../golden/responses/replies/citations.json"),
    include_str!("../../golden/responses/replies/reasoning.json"),
];

const STREAMS: [&str; 3] = [
    include_str!("../../golden/responses/streams/tools.sse"),
    include_str!("../../golden/responses/streams/reasoning.sse"),
    include_str!("../../golden/responses/streams/citations.sse"),
];

/// JSON values of the wrong type, to replace others.
const VALUES: [&str; 9] = [
    "null",
    "true",
    "-1",
    "1e400",
    "\"\"",
    "[]",
    "{}",
    "[{}]",
    "\"tg1.x.y\"",
];

/// One of `texts` with some bytes changed, some values replaced, and possibly cut off.
fn mutated(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let bytes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let values = proptest::collection::vec((any::<prop::sample::Index>(), 0..VALUES.len()), 0..3);
    let cut = proptest::option::weighted(0.2, any::<prop::sample::Index>());
    (prop::sample::select(texts), bytes, values, cut).prop_map(|(text, bytes, values, cut)| {
        let mut text = text.to_owned();
        for (at, with) in values {
            let places: Vec<usize> = text.match_indices("\":").map(|m| m.0 + 2).collect();
            let start = places[at.index(places.len())];
            let end = text[start..]
                .find([',', '}', '\n'])
                .map_or(text.len(), |e| start + e);
            text.replace_range(start..end, VALUES[with]);
        }
        let mut out = text.into_bytes();
        for (at, byte) in bytes {
            let at = at.index(out.len());
            out[at] = byte;
        }
        if let Some(cut) = cut {
            out.truncate(cut.index(out.len()));
        }
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn mutated_requests_never_panic(body in mutated(&REQUESTS)) {
        let summary = Responses.summarize_request(&body);
        let capabilities = ModelCapabilities::default();
        if let Ok(request) = Responses.read_request(&body) {
            prop_assert!(summary.is_ok());
            let written = Responses.write_request(&request, &target(&capabilities));
            if let Ok(written) = written {
                let again = Responses.read_request(&written.body);
                prop_assert!(again.is_ok(), "{again:?}");
            }
        }
        if let Ok(summary) = summary {
            let _ = Responses.forward_request(&Bytes::from(body), &summary, &target(&capabilities));
        }
    }

    #[test]
    fn mutated_responses_never_panic(body in mutated(&RESPONSES)) {
        if let Ok(reply) = Responses.read_response(&body) {
            let bare = Responses.write_response(&reply, &rendering());
            prop_assert!(Responses.read_response(&bare).is_ok() || reply.choices.is_empty() || !bare.is_empty());
        }
        let _ = Responses.forward_response(&Bytes::from(body.clone()), "m");
        let _ = Responses.read_error(500, &body);
        let _ = Responses.envelope_response(body);
    }

    #[test]
    fn mutated_streams_never_panic(body in mutated(&STREAMS)) {
        let (mut reader, mut events) = (Responses.stream_reader(), Vec::new());
        let _ = reader.push(&body, &mut events).and_then(|()| reader.finish(&mut events));
        let mut forward = Responses.stream_forwarder(&rendering());
        let _ = forward.push(Bytes::from(body)).and_then(|_| forward.finish());
        let _ = forward.end();
    }
}
