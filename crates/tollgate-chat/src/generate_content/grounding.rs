//! Converts citations: `groundingMetadata` counts offsets in UTF-8 bytes, the hub in characters.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::hub::{Citation, ExtraFields};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Grounding {
    grounding_chunks: Option<Vec<GroundingChunk>>,
    grounding_supports: Option<Vec<Support>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GroundingChunk {
    web: Option<SourcePage>,
    retrieved_context: Option<SourcePage>,
    maps: Option<SourcePage>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SourcePage {
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

/// A citation and the part that it belongs to.
pub(crate) struct LocatedCitation {
    /// The part's index in the content.
    pub(crate) part: usize,
    /// The citation.
    pub(crate) citation: Citation,
}

/// Reads the citations of `metadata`. `text_of` returns the text of a part by its index. Returns no citations if the metadata is malformed.
pub(crate) fn read_citations<'t>(
    metadata: &Value,
    text_of: impl Fn(usize) -> Option<&'t str>,
) -> Vec<LocatedCitation> {
    let grounding = Grounding::deserialize(metadata).unwrap_or_default();
    let pages: Vec<SourcePage> = grounding
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
        let citations = pages.iter().map(|page| LocatedCitation {
            part: 0,
            citation: citation(page, None, None, None),
        });
        return citations
            .filter(|found| !found.citation.url.is_empty())
            .collect();
    }
    let mut found = Vec::new();
    for support in supports {
        let part = support.segment.part_index.unwrap_or(0);
        let text = text_of(part).unwrap_or_default();
        let start = byte_to_char_offset(text, support.segment.start_index.unwrap_or(0));
        let end = support
            .segment
            .end_index
            .map(|end| byte_to_char_offset(text, end));
        for at in support.grounding_chunk_indices.into_iter().flatten() {
            let Some(page) = pages.get(at) else { continue };
            let text = support.segment.text.clone();
            let citation = citation(page, end.map(|_| start), end, text);
            found.push(LocatedCitation { part, citation });
        }
    }
    found
}

fn citation(
    page: &SourcePage,
    start: Option<u64>,
    end: Option<u64>,
    text: Option<String>,
) -> Citation {
    Citation {
        url: page.uri.clone().unwrap_or_default(),
        title: page.title.clone().unwrap_or_default(),
        start,
        end,
        cited_text: text,
        extra: ExtraFields::NONE,
    }
}

/// The number of characters in the first `bytes` bytes.
fn byte_to_char_offset(text: &str, bytes: usize) -> u64 {
    let starts = text
        .as_bytes()
        .iter()
        .take(bytes)
        .filter(|byte| **byte & 0xc0 != 0x80);
    starts.count() as u64
}

/// The number of bytes in the first `characters` characters.
fn char_to_byte_offset(text: &str, characters: u64) -> usize {
    let nth = usize::try_from(characters).unwrap_or(usize::MAX);
    text.char_indices()
        .nth(nth)
        .map_or(text.len(), |(at, _)| at)
}

/// Writes citations, each with the index and text of its part. `None` if no citation has a URL.
pub(crate) fn write_grounding<'a>(
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
            char_to_byte_offset(text, citation.start.unwrap_or(0)),
            char_to_byte_offset(text, end),
        );
        let cited = text.get(start..end).unwrap_or_default();
        let mut segment = json!({"startIndex": start, "endIndex": end, "text": cited});
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
