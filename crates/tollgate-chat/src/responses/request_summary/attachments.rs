//! Counts images, files and base64 bytes in the raw text of a request.

use memchr::memmem;

use crate::attachments::JsonStrings;
use crate::error::InvalidRequest;
use crate::escaped_letters::count_escaped_letters;
use crate::media;
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

/// Bytes of base64 in the data URIs and bare files of attachments; text elsewhere is never counted. An image over the size limit is an error.
pub(crate) fn count_payload_bytes(body: &[u8]) -> Result<u64, InvalidRequest> {
    const MARK: &[u8] = b";base64,";
    const MAX_HEAD: usize = 256;
    let mut sum = 0;
    let mut key: &[u8] = b"";
    for (text, is_key) in JsonStrings::new(body) {
        if is_key {
            key = text;
            continue;
        }
        let is_file = key == b"file_data";
        if !is_file && !matches!(key, b"image_url" | b"url") {
            continue;
        }
        let is_uri = text
            .get(..5)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:"));
        let mark = memmem::find(&text[..text.len().min(MAX_HEAD)], MARK);
        let (head, data) = match mark {
            Some(at) if is_uri => text.split_at(at + MARK.len()),
            None if is_file && !is_uri => (&text[..0], text),
            _ => continue,
        };
        // Each byte of the text encodes at most 3/4 of a byte of the image.
        let may_be_too_large = data.len() as u64 / 4 * 3 > MAX_IMAGE_BYTES;
        if may_be_too_large
            && memmem::find(head, b"data:image").is_some()
            && media::decoded_bytes(data) > MAX_IMAGE_BYTES
        {
            return Err(InvalidRequest::new(
                "input",
                format!("holds an image of more than {MAX_IMAGE_BYTES} bytes (20 MB)"),
            ));
        }
        sum += data.len() as u64;
    }
    Ok(sum)
}
