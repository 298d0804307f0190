//! What the sandbox sees of the pictures that come with a chat: how many, and their sizes.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tollgate_chat::hub::{Kind, Request, Source};
use tollgate_media::image::facts;

/// Base64 characters that are read at first: sizes stand near the beginning of a file. A multiple of four.
const HEAD: usize = 64 * 1024;

/// How many pictures the conversation has.
pub(super) fn count(request: &Request) -> u64 {
    all(request).count() as u64
}

/// A sentence about the pictures of the last turn that has any; none without pictures.
pub(super) fn sentence(request: &Request) -> Option<String> {
    let sources: Vec<_> = all(request).collect();
    let sizes: Vec<String> = sources.iter().map(|source| size(source)).collect();
    match sizes.as_slice() {
        [] => None,
        [one] => Some(format!("I see one picture ({one}).")),
        many => Some(format!(
            "I see {} pictures ({}).",
            many.len(),
            many.join(", ")
        )),
    }
}

/// Every picture, those in tools' results included.
fn all(request: &Request) -> impl Iterator<Item = &Source> {
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let flat = parts.flat_map(|part| match &part.kind {
        Kind::ToolResult { content, .. } => content.iter().collect(),
        _ => vec![part],
    });
    flat.filter_map(|part| match &part.kind {
        Kind::Image { source, .. } => Some(source),
        _ => None,
    })
}

fn size(source: &Source) -> String {
    let size = match source {
        Source::Base64 { data, .. } => size_in(data),
        _ => None,
    };
    size.unwrap_or_else(|| "of unknown size".to_owned())
}

fn size_in(data: &str) -> Option<String> {
    let read = |data: &[u8]| {
        let bytes = STANDARD.decode(data).ok()?;
        let length = bytes.len() as u64;
        let facts = facts::read(Cursor::new(bytes), length).ok()?;
        Some(format!("{}x{}", facts.size.width, facts.size.height))
    };
    let data = data.as_bytes();
    let head = data.get(..HEAD).and_then(read);
    head.or_else(|| read(data))
}
