//! Decodes base64 and data URIs, and detects media types by the first bytes.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use memchr::memmem;

/// Decodes base64 of the standard alphabet, strictly.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Decodes base64 of either alphabet, padded or not.
pub(crate) fn decode_any(text: &str) -> Option<Vec<u8>> {
    let engines = [&STANDARD, &URL_SAFE, &STANDARD_NO_PAD, &URL_SAFE_NO_PAD];
    engines.iter().find_map(|engine| engine.decode(text).ok())
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The media type and the bytes of `data:TYPE;base64,…`. `None` if the URI has another form.
pub(crate) fn data_uri(uri: &str) -> Option<(String, Vec<u8>)> {
    let (head, data) = uri.strip_prefix("data:")?.split_once(',')?;
    let head = head.strip_suffix(";base64")?;
    let media_type = head.split(';').next()?.to_owned();
    Some((media_type, decode(data)?))
}

/// The media type of the bytes, detected by their beginning. `None` if it is not one of these formats.
pub(crate) fn sniff(bytes: &[u8]) -> Option<&'static str> {
    let begins = |magic: &[u8]| bytes.starts_with(magic);
    let at = |from: usize, magic: &[u8]| bytes.get(from..).is_some_and(|b| b.starts_with(magic));
    if begins(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if begins(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if begins(b"GIF87a") || begins(b"GIF89a") {
        Some("image/gif")
    } else if begins(b"RIFF") && at(8, b"WEBP") {
        Some("image/webp")
    } else if begins(b"RIFF") && at(8, b"WAVE") {
        Some("audio/wav")
    } else if begins(b"ID3") || begins(b"\xff\xfb") || begins(b"\xff\xf3") {
        Some("audio/mp3")
    } else if at(4, b"ftyphei") || at(4, b"ftypmif1") {
        Some("image/heic")
    } else if memmem::find(&bytes[..bytes.len().min(1024)], b"%PDF-").is_some() {
        Some("application/pdf")
    } else {
        None
    }
}

/// Whether the URL is an http or https URL.
pub(crate) fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}
