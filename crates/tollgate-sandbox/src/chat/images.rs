//! Describes the images of a chat request: their number and sizes.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tollgate_chat::hub::{PartKind, Request, Source};
use tollgate_media::image::ImageMetadata;

/// The number of base64 characters that are decoded first, because the size is near the start of a file. A multiple of four.
const HEAD: usize = 64 * 1024;

/// The number of images in the conversation.
pub(super) fn count_images(request: &Request) -> u64 {
    images(request).count() as u64
}

/// A sentence about the images in the conversation. `None` if there are none.
pub(super) fn describe_images(request: &Request) -> Option<String> {
    let sizes: Vec<String> = images(request).map(describe_size).collect();
    match sizes.as_slice() {
        [] => None,
        [one] => Some(format!("I see one image ({one}).")),
        many => Some(format!(
            "I see {} images ({}).",
            many.len(),
            many.join(", ")
        )),
    }
}

/// Every image, including those in tool results.
fn images(request: &Request) -> impl Iterator<Item = &Source> {
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let flat = parts.flat_map(|part| match &part.kind {
        PartKind::ToolResult { content, .. } => content.iter().collect(),
        _ => vec![part],
    });
    flat.filter_map(|part| match &part.kind {
        PartKind::Image { source, .. } => Some(source),
        _ => None,
    })
}

/// `WIDTHxHEIGHT` of an image, or that its size is unknown: that of a link, of an uploaded file, and of a file that is not an image.
fn describe_size(source: &Source) -> String {
    let size = match source {
        Source::Base64 { data, .. } => decode_size(data),
        _ => None,
    };
    size.unwrap_or_else(|| "of unknown size".to_owned())
}

/// `WIDTHxHEIGHT` of a base64-encoded image. `None` if it is not valid base64 or not an image.
fn decode_size(data: &str) -> Option<String> {
    let read = |data: &[u8]| {
        let bytes = STANDARD.decode(data).ok()?;
        let length = bytes.len() as u64;
        let metadata = ImageMetadata::read(Cursor::new(bytes), length).ok()?;
        Some(format!("{}x{}", metadata.size.width, metadata.size.height))
    };
    let data = data.as_bytes();
    let head = data.get(..HEAD).and_then(read);
    head.or_else(|| read(data))
}
