//! Counts images, files and base64 bytes in the raw text of a request.

use memchr::{memchr, memmem};

use crate::error::InvalidRequest;
use crate::media;
use crate::open_ended::count_escaped_letters;
use crate::responses::constants::MAX_IMAGE_BYTES;

/// The number of images, files and audio parts; never too low.
pub(crate) fn count_attachments(body: &[u8]) -> u32 {
    const TYPES: [&[u8]; 4] = [
        b"\"input_image\"",
        b"\"input_file\"",
        b"\"input_audio\"",
        b"\"computer_screenshot\"",
    ];
    let count = |word: &&[u8]| memmem::find_iter(body, *word).count();
    // An escaped letter (`\u006d`) could be part of such a type.
    let hidden = count_escaped_letters(body);
    let plain: usize = TYPES.iter().map(count).sum();
    u32::try_from(plain + hidden).unwrap_or(u32::MAX)
}

/// Bytes of base64 in data URIs and bare `file_data`. An image over the size limit is an error.
pub(crate) fn count_payload_bytes(body: &[u8]) -> Result<u64, InvalidRequest> {
    const URI: &[u8] = b";base64,";
    const FILE: &[u8] = b"\"file_data\"";
    let mut sum = 0;
    for at in memmem::find_iter(body, URI) {
        let data = &body[at + URI.len()..];
        let length = length_to_quote(data);
        let head = &body[at.saturating_sub(64)..at];
        // Each byte of the text encodes at most 3/4 of a byte of the image.
        let may_be_too_large = length / 4 * 3 > MAX_IMAGE_BYTES;
        if may_be_too_large
            && memmem::rfind(head, b"data:image").is_some()
            && media::decoded_bytes(&data[..length as usize]) > MAX_IMAGE_BYTES
        {
            return Err(InvalidRequest::new(
                "input",
                format!("holds an image of more than {MAX_IMAGE_BYTES} bytes (20 MB)"),
            ));
        }
        sum += length;
    }
    for at in memmem::find_iter(body, FILE) {
        let rest = body[at + FILE.len()..].trim_ascii_start();
        let value = rest
            .strip_prefix(b":")
            .unwrap_or_default()
            .trim_ascii_start();
        if let Some(value) = value
            .strip_prefix(b"\"")
            .filter(|v| !v.starts_with(b"data:"))
        {
            sum += length_to_quote(value);
        }
    }
    Ok(sum)
}

fn length_to_quote(text: &[u8]) -> u64 {
    memchr(b'"', text).unwrap_or(text.len()) as u64
}
