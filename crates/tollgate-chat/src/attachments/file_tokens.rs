//! Estimates the tokens of a file from its type and size.
//!
//! The numbers are the highest of what the providers document: images by tiles or patches (OpenAI, Google) or by area
//! (Anthropic), PDF pages as text and image together, audio and video by the second.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::media;

/// The maximum number of tokens of one image, for all models except those that scale images up (gpt-4o-mini).
pub(super) const MAX_IMAGE_TOKENS: u64 = 5_000;
/// Pixels per token of the model that charges most per pixel, and the fixed tokens of an image in addition to its pixels.
const PIXELS_PER_TOKEN: u64 = 400;
const BASE_IMAGE_TOKENS: u64 = 300;
/// Tokens of a PDF page: up to 3,000 tokens of text, and an image of the page.
const TOKENS_PER_PAGE: u64 = 4_600;
/// Assumed bytes per page if the pages cannot be counted because the PDF's objects are compressed.
const BYTES_PER_PAGE: u64 = 5_000;
/// Office documents are compressed XML: ten bytes of it for each byte of the file if its size cannot be read, four bytes per token.
const DOCUMENT_TOKENS_PER_100_BYTES: u64 = 250;
/// No model reads more of a file.
const MAX_FILE_TOKENS: u64 = 1_048_576;
/// Providers reject longer PDFs.
const MAX_PAGES: u64 = 1_000;
const TOKENS_PER_AUDIO_SECOND: u64 = 32;
/// Speech below 8 kbit/s is not intelligible.
const MIN_AUDIO_BYTES_PER_SECOND: u64 = 1_000;
/// Eight channels of 16 bits at 96 kHz.
const MAX_AUDIO_BYTES_PER_SECOND: u64 = 1_536_000;
const TOKENS_PER_VIDEO_SECOND: u64 = 300;
const MIN_VIDEO_BYTES_PER_SECOND: u64 = 8_000;
/// 20 Mbit/s: a file that is larger than its header's duration allows is as long as this gives.
const MAX_VIDEO_BYTES_PER_SECOND: u64 = 2_500_000;
/// The maximum of `videoMetadata.fps` (generate-content), which multiplies the tokens of a second.
const MAX_FRAMES_PER_SECOND: u64 = 24;
/// Tokens for a file that only the provider can read: one given by its id, or a link to anything but an image.
pub(super) const REMOTE_FILE_TOKENS: u64 = 50_000;
/// Types of files that a provider reads as text, besides `text/…`.
const TEXT_SUBTYPES: [&str; 14] = [
    "json",
    "ld+json",
    "x-ndjson",
    "xml",
    "xhtml+xml",
    "yaml",
    "x-yaml",
    "javascript",
    "x-javascript",
    "typescript",
    "x-python",
    "x-sh",
    "sql",
    "rtf",
];
/// Base64 text with fewer bytes than this is not counted as an attachment.
const MIN_PAYLOAD: usize = 64;

/// Standard and URL-safe alphabets are both decoded after replacing digits; padding may be missing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The tokens of a data URI, or of base64 of the declared type. `None` if the text is too short for either. `has_frame_rate` tells whether the request
/// sets the frames per second that are read of a video.
pub(super) fn inline_tokens(text: &[u8], declared: &str, has_frame_rate: bool) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (media_type, data) = match media::parse_data_uri(text) {
        Some(uri) => (uri.media_type, uri.data),
        None if text.len() < MIN_PAYLOAD => return None,
        None => (declared, text),
    };
    // Text that is not base64 is part of the prompt.
    let Some(bytes) = decode(data) else {
        return Some(data.len() as u64);
    };
    let size = bytes.len() as u64;
    let tokens = match media::sniff_media_type(&bytes).unwrap_or(media_type) {
        "application/pdf" => pdf_pages(&bytes) * TOKENS_PER_PAGE,
        kind if is_of_kind(kind, "image") => image_tokens(&bytes),
        kind if is_of_kind(kind, "video") => video_tokens(&bytes, has_frame_rate),
        _ if bytes.starts_with(b"RIFF") || bytes.starts_with(b"ID3") => audio_tokens(&bytes),
        kind if is_of_kind(kind, "audio") => audio_tokens(&bytes),
        _ if bytes.starts_with(b"PK\x03\x04") => document_tokens(&bytes),
        _ if std::str::from_utf8(&bytes).is_ok() => size,
        // An unknown type.
        _ => size / 4,
    };
    // Whatever the first bytes are: a provider reads a file that is declared as text as text.
    let tokens = match declares_text(media_type) {
        true => tokens.max(size),
        false => tokens,
    };
    Some(tokens.min(MAX_FILE_TOKENS))
}

/// Whether a media type, as it is written in JSON, is one of text.
pub(super) fn declares_text(media_type: &str) -> bool {
    let subtype = media_type.rsplit('/').next().unwrap_or_default();
    let subtype = subtype.split(';').next().unwrap_or_default().trim();
    let is_text = |text: &&str| text.eq_ignore_ascii_case(subtype);
    is_of_kind(media_type, "text")
        || is_of_kind(media_type, "application") && TEXT_SUBTYPES.iter().any(is_text)
}

/// Whether a media type, as it is written in JSON, is `kind/…`. The slash may be escaped.
pub(super) fn is_of_kind(media_type: &str, kind: &str) -> bool {
    let (start, rest) = media_type.split_at_checked(kind.len()).unwrap_or_default();
    start.eq_ignore_ascii_case(kind) && rest.starts_with(['/', '\\'])
}

/// The tokens of a file that the provider fetches, if the link does not show that it is another file than an image.
pub(super) fn link_tokens(link: &[u8], is_image: bool) -> u64 {
    let path = link.split(|byte| matches!(byte, b'?' | b'#')).next();
    let path = path.unwrap_or_default();
    let has_other_extension = [".pdf", ".mp4", ".mp3", ".wav"].iter().any(|extension| {
        let end = path.len().checked_sub(extension.len());
        end.is_some_and(|end| path[end..].eq_ignore_ascii_case(extension.as_bytes()))
    });
    match is_image && !has_other_extension {
        true => MAX_IMAGE_TOKENS,
        false => REMOTE_FILE_TOKENS,
    }
}

/// Whether `text` is a data URI.
pub(super) fn has_data_scheme(text: &[u8]) -> bool {
    text.get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:"))
}

/// Whether `text` is a link to a file: a URL of any scheme but `data`.
pub(super) fn is_link(text: &[u8]) -> bool {
    const MAX_SCHEME: usize = 16;
    let text = text.trim_ascii_start();
    let head = &text[..text.len().min(MAX_SCHEME)];
    let Some(end) = head.iter().position(|byte| *byte == b':') else {
        return false;
    };
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    // Slashes may be escaped.
    let has_slash = matches!(text.get(end + 1), Some(b'/' | b'\\'));
    head[0].is_ascii_alphabetic()
        && head[..end].iter().all(is_scheme)
        && has_slash
        && !has_data_scheme(text)
}

/// The bytes of base64 text as it is written in JSON, which may have line breaks; `None` if it is no base64, such as text with spaces.
pub(super) fn decode(data: &str) -> Option<Vec<u8>> {
    let mut digits = Vec::with_capacity(data.len());
    let mut rest = data.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let byte = match byte {
            b'\\' => {
                let (&escape, after) = rest.split_first()?;
                rest = after;
                match escape {
                    b'u' => {
                        let (code, after) = rest.split_at_checked(4)?;
                        rest = after;
                        u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()?
                    }
                    b'/' => b'/',
                    b'n' | b'r' | b't' => continue,
                    _ => return None,
                }
            }
            byte => byte,
        };
        match byte {
            b'-' => digits.push(b'+'),
            b'_' => digits.push(b'/'),
            byte => digits.push(byte),
        }
    }
    BASE64.decode(&digits).ok()
}

fn image_tokens(bytes: &[u8]) -> u64 {
    let pixels = image_size(bytes).map(|(width, height)| u64::from(width) * u64::from(height));
    pixels.map_or(MAX_IMAGE_TOKENS, |pixels| {
        (pixels / PIXELS_PER_TOKEN + BASE_IMAGE_TOKENS).min(MAX_IMAGE_TOKENS)
    })
}

/// Width and height of a PNG, GIF or JPEG. `None` for other types.
fn image_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let be = |at: usize| {
        bytes
            .get(at..at + 4)
            .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    };
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some((be(16)?, be(20)?)),
        [b'G', b'I', b'F', _, _, _, w0, w1, h0, h1, ..] => Some((
            u16::from_le_bytes([*w0, *w1]).into(),
            u16::from_le_bytes([*h0, *h1]).into(),
        )),
        [0xff, 0xd8, ..] => jpeg_size(bytes),
        _ => None,
    }
}

/// The size in a JPEG's first frame header.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let segment = bytes.get(at..at + 9)?;
        if segment[0] != 0xff {
            return None;
        }
        let word = |at: usize| u32::from(u16::from_be_bytes([segment[at], segment[at + 1]]));
        match segment[1] {
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((word(7), word(5)));
            }
            _ => at += 2 + word(2) as usize,
        }
    }
}

/// The number of pages of a PDF, counted or else estimated at the maximum; at least 1.
fn pdf_pages(bytes: &[u8]) -> u64 {
    const NAME: &[u8] = b"/Page";
    let is_page = |at: &usize| {
        // Not `/Pages` or another longer name.
        let after = bytes.get(at + NAME.len());
        let before = bytes[..*at].trim_ascii_end();
        !after.is_some_and(u8::is_ascii_alphanumeric) && before.ends_with(b"/Type")
    };
    let pages = memchr::memmem::find_iter(bytes, NAME)
        .filter(is_page)
        .count() as u64;
    let is_compressed = || memchr::memmem::find(bytes, b"/ObjStm").is_some();
    let by_size = match pages == 0 || is_compressed() {
        true => bytes.len() as u64 / BYTES_PER_PAGE + 1,
        false => 1,
    };
    pages.max(by_size).min(MAX_PAGES)
}

/// The tokens of a Word, Excel or PowerPoint file: of the XML in it, by the sizes in the archive's directory.
fn document_tokens(bytes: &[u8]) -> u64 {
    let xml_size = |at: usize| {
        let entry = bytes.get(at..)?;
        let size = entry.get(24..28)?;
        let length = entry.get(28..30)?;
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let name = entry.get(46..46 + length)?;
        let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
        name.ends_with(b".xml").then_some(u64::from(size))
    };
    let entries = memchr::memmem::find_iter(bytes, b"PK\x01\x02");
    let tokens = match entries.filter_map(xml_size).sum::<u64>() {
        0 => bytes.len() as u64 * DOCUMENT_TOKENS_PER_100_BYTES / 100,
        xml => xml / 4,
    };
    tokens.min(MAX_FILE_TOKENS)
}

fn audio_tokens(bytes: &[u8]) -> u64 {
    let rate = wav_bytes_per_second(bytes).unwrap_or(0);
    let rate = rate.clamp(MIN_AUDIO_BYTES_PER_SECOND, MAX_AUDIO_BYTES_PER_SECOND);
    (bytes.len() as u64 / rate + 1) * TOKENS_PER_AUDIO_SECOND
}

/// The rate in the format of a WAV file. `None` for other types.
fn wav_bytes_per_second(bytes: &[u8]) -> Option<u64> {
    const MAX_HEAD: usize = 1024;
    if !bytes.starts_with(b"RIFF") || bytes.get(8..12) != Some(b"WAVE") {
        return None;
    }
    let head = &bytes[..bytes.len().min(MAX_HEAD)];
    let format = head.get(memchr::memmem::find(head, b"fmt ")?..)?;
    let rate = format.get(16..20)?;
    Some(u32::from_le_bytes([rate[0], rate[1], rate[2], rate[3]]).into())
}

fn video_tokens(bytes: &[u8], has_frame_rate: bool) -> u64 {
    let size = bytes.len() as u64;
    let seconds = match video_seconds(bytes) {
        Some(seconds) => seconds.max(size / MAX_VIDEO_BYTES_PER_SECOND + 1),
        None => size / MIN_VIDEO_BYTES_PER_SECOND + 1,
    };
    let frames = match has_frame_rate {
        true => MAX_FRAMES_PER_SECOND,
        false => 1,
    };
    seconds.saturating_mul(TOKENS_PER_VIDEO_SECOND * frames)
}

/// The duration in the movie header of an MP4 or QuickTime file. `None` if it is not known, as in a file of fragments.
fn video_seconds(bytes: &[u8]) -> Option<u64> {
    let header = bytes.get(memchr::memmem::find(bytes, b"mvhd")? + 4..)?;
    let be = |at: usize| {
        header
            .get(at..at + 4)
            .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    };
    let (scale, duration, unknown) = match header.first()? {
        0 => (be(12)?, u64::from(be(16)?), u64::from(u32::MAX)),
        _ => {
            let duration = u64::from(be(24)?) << 32 | u64::from(be(28)?);
            (be(20)?, duration, u64::MAX)
        }
    };
    let is_known = scale > 0 && duration > 0 && duration != unknown;
    is_known.then(|| (duration / u64::from(scale)).saturating_add(1))
}
