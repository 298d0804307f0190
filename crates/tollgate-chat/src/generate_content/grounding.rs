//! Citations: `groundingMetadata` counts in bytes of UTF-8, the hub in characters.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::hub::{Citation, Own};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Grounding {
    grounding_chunks: Option<Vec<Chunk>>,
    grounding_supports: Option<Vec<Support>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Chunk {
    web: Option<Page>,
    retrieved_context: Option<Page>,
    maps: Option<Page>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Page {
    uri: Option<String>,
    title: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Support {
    segment: Segment,
    grounding_chunk_indices: Option<Vec<usize>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Segment {
    part_index: Option<usize>,
    start_index: Option<usize>,
    end_index: Option<usize>,
    text: Option<String>,
}

/// A citation and the number of the part, among the parts of the wire, that it is in.
pub(super) struct Found {
    /// The part's number.
    pub(super) part: usize,
    /// The citation.
    pub(super) citation: Citation,
}

/// The citations that `metadata` tells. `text_of` gives the text of a part. What is malformed tells none.
pub(super) fn read<'t>(metadata: &Value, text_of: impl Fn(usize) -> Option<&'t str>) -> Vec<Found> {
    let grounding = Grounding::deserialize(metadata).unwrap_or_default();
    let pages: Vec<Page> = grounding
        .grounding_chunks
        .into_iter()
        .flatten()
        .map(|chunk| {
            chunk
                .web
                .or(chunk.retrieved_context)
                .or(chunk.maps)
                .unwrap_or_default()
        })
        .collect();
    let supports = grounding.grounding_supports.unwrap_or_default();
    if supports.is_empty() {
        let whole = pages.iter().map(|page| Found {
            part: 0,
            citation: citation(page, None, None, None),
        });
        return whole
            .filter(|found| !found.citation.url.is_empty())
            .collect();
    }
    let mut found = Vec::new();
    for support in supports {
        let part = support.segment.part_index.unwrap_or(0);
        let text = text_of(part).unwrap_or_default();
        let start = characters_to(text, support.segment.start_index.unwrap_or(0));
        let end = support
            .segment
            .end_index
            .map(|end| characters_to(text, end));
        for at in support.grounding_chunk_indices.into_iter().flatten() {
            let Some(page) = pages.get(at) else { continue };
            let words = support.segment.text.clone();
            let citation = citation(page, end.map(|_| start), end, words);
            found.push(Found { part, citation });
        }
    }
    found
}

fn citation(page: &Page, start: Option<u64>, end: Option<u64>, words: Option<String>) -> Citation {
    Citation {
        url: page.uri.clone().unwrap_or_default(),
        title: page.title.clone().unwrap_or_default(),
        start,
        end,
        cited_text: words,
        own: Own::NONE,
    }
}

/// Characters in the first `bytes` bytes.
fn characters_to(text: &str, bytes: usize) -> u64 {
    let starts = text
        .as_bytes()
        .iter()
        .take(bytes)
        .filter(|byte| **byte & 0xc0 != 0x80);
    starts.count() as u64
}

/// Bytes in the first `characters` characters.
fn bytes_to(text: &str, characters: u64) -> usize {
    let nth = usize::try_from(characters).unwrap_or(usize::MAX);
    text.char_indices()
        .nth(nth)
        .map_or(text.len(), |(at, _)| at)
}

/// Citations of parts on the wire: each part's number and text, and what is cited there. None where no page is cited.
pub(super) fn write<'a>(
    cited: impl IntoIterator<Item = (usize, &'a str, &'a Citation)>,
) -> Option<Value> {
    let mut pages: Vec<(&str, &str)> = Vec::new();
    let mut supports = Vec::new();
    for (part, text, citation) in cited {
        if citation.url.is_empty() {
            continue;
        }
        let page = (citation.url.as_str(), citation.title.as_str());
        let at = pages
            .iter()
            .position(|known| *known == page)
            .unwrap_or_else(|| {
                pages.push(page);
                pages.len() - 1
            });
        let Some(end) = citation.end else { continue };
        let (start, end) = (
            bytes_to(text, citation.start.unwrap_or(0)),
            bytes_to(text, end),
        );
        let words = text.get(start..end).unwrap_or_default();
        let mut segment = json!({"startIndex": start, "endIndex": end, "text": words});
        if part > 0 {
            segment["partIndex"] = json!(part);
        }
        supports.push(json!({"segment": segment, "groundingChunkIndices": [at]}));
    }
    let chunks: Vec<Value> = pages
        .iter()
        .map(|(uri, title)| json!({"web": {"uri": uri, "title": title}}))
        .collect();
    (!chunks.is_empty()).then(|| json!({"groundingChunks": chunks, "groundingSupports": supports}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_bytes_here_and_characters_in_the_hub() {
        let text = "Zürich ist schön. Bern auch.";
        let metadata = json!({
            "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}, {"web": {"uri": "https://b.example"}}],
            "groundingSupports": [
                {"segment": {"endIndex": 19, "text": "Zürich ist schön."}, "groundingChunkIndices": [0, 1, 7]},
                {"segment": {"startIndex": 20, "endIndex": 30}, "groundingChunkIndices": [0]},
            ],
        });
        let found = read(&metadata, |part| (part == 0).then_some(text));
        let spans: Vec<_> = found
            .iter()
            .map(|f| (f.citation.url.as_str(), f.citation.start, f.citation.end))
            .collect();
        assert_eq!(
            spans,
            [
                ("https://a.example", Some(0), Some(17)),
                ("https://b.example", Some(0), Some(17)),
                ("https://a.example", Some(18), Some(28)),
            ]
        );
        let written = write(found.iter().map(|f| (0, text, &f.citation))).unwrap();
        let again = read(&written, |_| Some(text));
        let citations = |found: &[Found]| -> Vec<_> {
            found
                .iter()
                .map(|f| (f.citation.url.clone(), f.citation.start, f.citation.end))
                .collect()
        };
        assert_eq!(citations(&again), citations(&found));
    }

    #[test]
    fn odd_metadata_tells_nothing() {
        for odd in [
            json!(1),
            json!({}),
            json!({"groundingChunks": 1}),
            json!({"groundingSupports": [{"segment": {"endIndex": -1}}]}),
        ] {
            assert!(read(&odd, |_| Some("x")).is_empty(), "{odd}");
        }
        assert!(write([]).is_none());
    }
}
