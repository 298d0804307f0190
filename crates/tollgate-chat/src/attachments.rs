//! Estimates the tokens to hold for the attachments of a request, from their types and sizes, without parsing the body.
//!
//! The numbers are the highest of what the providers document: images by tiles or patches (OpenAI, Google) or by area
//! (Anthropic), PDF pages as text and image together, audio and video by the second.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::media;

/// The maximum number of tokens of one image, for all models except those that scale images up (gpt-4o-mini).
const MAX_IMAGE_TOKENS: u64 = 5_000;
/// Pixels per token of the model that charges most per pixel, and the fixed tokens of an image in addition to its pixels.
const PIXELS_PER_TOKEN: u64 = 400;
const BASE_IMAGE_TOKENS: u64 = 300;
/// Tokens of a PDF page: up to 3,000 tokens of text, and an image of the page.
const TOKENS_PER_PAGE: u64 = 4_600;
/// Assumed bytes per page if the pages cannot be counted because the PDF's objects are compressed.
const BYTES_PER_PAGE: u64 = 5_000;
/// Providers reject longer PDFs.
const MAX_PAGES: u64 = 1_000;
const TOKENS_PER_AUDIO_SECOND: u64 = 32;
/// Speech below 8 kbit/s is not intelligible.
const MIN_AUDIO_BYTES_PER_SECOND: u64 = 1_000;
const TOKENS_PER_VIDEO_SECOND: u64 = 300;
const MIN_VIDEO_BYTES_PER_SECOND: u64 = 8_000;
/// Tokens for a file that only the provider can read: one given by its id, or a link to anything but an image.
const REMOTE_FILE_TOKENS: u64 = 50_000;
/// Base64 text with fewer bytes than this is not counted as an attachment.
const MIN_PAYLOAD: usize = 64;

/// Members whose objects hold media in their member `data`. Any other `data` is part of the prompt's text.
const MEDIA_MEMBERS: [&[u8]; 4] = [b"source", b"inlineData", b"inline_data", b"input_audio"];

/// Members whose objects are JSON of the client, which a model reads as text: arguments and results of tools, schemas.
const FREE_MEMBERS: [&[u8]; 9] = [
    b"input",
    b"input_schema",
    b"args",
    b"response",
    b"parameters",
    b"parametersJsonSchema",
    b"responseSchema",
    b"responseJsonSchema",
    b"schema",
];

/// Standard and URL-safe alphabets are both decoded after replacing digits; padding may be missing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// What is held for the attachments of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldAttachments {
    /// The tokens to hold for all of them.
    pub tokens: u64,
    /// The bytes of the body for which these tokens are held: everything else is text.
    pub bytes: u64,
}

/// What to hold for all attachments in `body`, a chat request as JSON in any of the formats.
pub fn held_attachments(body: &[u8]) -> HeldAttachments {
    let mut held = HeldAttachments::default();
    let mut key: &[u8] = b"";
    let mut declared = "";
    let mut objects = MediaObjects::default();
    let mut strings = JsonStrings::new(body);
    loop {
        let from = strings.at;
        let Some((text, is_key)) = strings.next() else {
            break;
        };
        // The string with its quotes ends at `strings.at`.
        if objects.read_between(&body[from..strings.at - text.len() - 2]) {
            declared = "";
        }
        if is_key {
            (key, objects.member) = (text, text);
            continue;
        }
        objects.member = b"";
        if objects.free.is_some() {
            continue;
        }
        // Google's SDKs write the type after the data.
        let declared_type = |declared| match declared {
            "" => declared_after(&strings),
            _ => declared,
        };
        match key {
            b"mimeType" | b"mime_type" | b"media_type" => {
                declared = std::str::from_utf8(text).unwrap_or_default();
            }
            b"file_id" | b"fileUri" | b"file_uri" | b"file_url" => {
                let is_image = declared_type(declared).starts_with("image/");
                held.tokens += if is_image {
                    MAX_IMAGE_TOKENS
                } else {
                    REMOTE_FILE_TOKENS
                };
            }
            b"url" | b"image_url" if text.starts_with(b"http") => {
                let is_other = [&b".pdf"[..], b".mp4", b".mp3", b".wav"];
                let is_other = is_other.iter().any(|end| text.ends_with(end));
                held.tokens += if is_other {
                    REMOTE_FILE_TOKENS
                } else {
                    MAX_IMAGE_TOKENS
                };
            }
            b"data" if !objects.is_in_media() && !has_data_scheme(text) => {}
            b"image" | b"video" | b"audio" if !has_data_scheme(text) => {}
            b"url" | b"image_url" | b"file_data" | b"data" | b"video_url" | b"image" | b"video"
            | b"audio" => {
                if let Some(tokens) = inline_tokens(text, declared_type(declared)) {
                    held.tokens += tokens;
                    held.bytes += text.len() as u64;
                }
            }
            _ => {}
        }
    }
    held
}

/// The media type that the object declares after the current member. Empty if it declares none.
fn declared_after<'a>(strings: &JsonStrings<'a>) -> &'a str {
    // Objects with media have few members.
    const MAX_STRINGS: usize = 6;
    let mut strings = strings.clone();
    let mut key: &[u8] = b"";
    for _ in 0..MAX_STRINGS {
        let from = strings.at;
        let Some((text, is_key)) = strings.next() else {
            break;
        };
        let between = &strings.body[from..strings.at - text.len() - 2];
        if memchr::memchr2(b'{', b'}', between).is_some() {
            break;
        }
        match key {
            _ if is_key => key = text,
            b"mimeType" | b"mime_type" | b"media_type" => {
                return std::str::from_utf8(text).unwrap_or_default();
            }
            _ => {}
        }
    }
    ""
}

/// Whether an object that is the value of `member` holds media in its member `data`.
pub(crate) fn is_media_member(member: &[u8]) -> bool {
    MEDIA_MEMBERS.contains(&member)
}

/// Whether the member after `before` is in an object that holds media, as far as the text directly before it shows.
pub(crate) fn is_in_media_object(before: &[u8]) -> bool {
    // The other members of such objects are short: types and names.
    const MAX_HEAD: usize = 1024;
    let head = &before[before.len().saturating_sub(MAX_HEAD)..];
    let brace = memchr::memrchr2(b'{', b'}', head).filter(|at| head[*at] == b'{');
    let member = brace.and_then(|at| head[..at].trim_ascii_end().strip_suffix(b":"));
    let name = member.and_then(|text| text.trim_ascii_end().strip_suffix(b"\""));
    let is_name = |text: &[u8], member: &[u8]| {
        let quote = text
            .strip_suffix(member)
            .and_then(|rest| rest.strip_suffix(b"\""));
        // A quote after a backslash is part of a longer name.
        quote.is_some_and(|rest| !rest.ends_with(b"\\"))
    };
    name.is_some_and(|text| MEDIA_MEMBERS.iter().any(|member| is_name(text, member)))
}

fn has_data_scheme(text: &[u8]) -> bool {
    text.get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:"))
}

/// Follows which objects of a JSON text hold media, and which are free JSON.
#[derive(Default)]
struct MediaObjects<'a> {
    /// The member whose value comes next; empty if there is none.
    member: &'a [u8],
    depth: usize,
    /// The depths of the open objects that hold media.
    open: Vec<usize>,
    /// The depth of the outermost open object of [`FREE_MEMBERS`].
    free: Option<usize>,
}

impl MediaObjects<'_> {
    /// Reads the text between two strings. Returns whether an object begins or ends in it.
    fn read_between(&mut self, text: &[u8]) -> bool {
        let mut has_brace = false;
        for byte in text {
            match byte {
                b'{' => {
                    self.depth += 1;
                    if is_media_member(self.member) {
                        self.open.push(self.depth);
                    }
                    if self.free.is_none() && FREE_MEMBERS.contains(&self.member) {
                        self.free = Some(self.depth);
                    }
                    has_brace = true;
                }
                b'}' => {
                    if self.is_in_media() {
                        self.open.pop();
                    }
                    self.free = self.free.filter(|depth| *depth != self.depth);
                    self.depth = self.depth.saturating_sub(1);
                    has_brace = true;
                }
                b'[' => {}
                _ => continue,
            }
            self.member = b"";
        }
        has_brace
    }

    /// Whether the innermost open object holds media.
    fn is_in_media(&self) -> bool {
        self.open.last() == Some(&self.depth)
    }
}

/// The tokens of a data URI, or of base64 of the declared type. `None` if the text is too short for either.
fn inline_tokens(text: &[u8], declared: &str) -> Option<u64> {
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
        kind if kind.starts_with("image/") => image_tokens(&bytes),
        kind if kind.starts_with("video/") => {
            video_seconds(&bytes).unwrap_or(size / MIN_VIDEO_BYTES_PER_SECOND + 1)
                * TOKENS_PER_VIDEO_SECOND
        }
        kind if kind.starts_with("text/") => size,
        _ if bytes.starts_with(b"RIFF") || bytes.starts_with(b"ID3") => audio_tokens(&bytes),
        kind if kind.starts_with("audio/") => audio_tokens(&bytes),
        // An unknown type: text, or audio whose type is declared by another field.
        _ => size / 4,
    };
    Some(tokens)
}

/// The bytes of base64 text as it is written in JSON; `None` if it is no base64.
fn decode(data: &str) -> Option<Vec<u8>> {
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
            byte if byte.is_ascii_whitespace() => {}
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
    let count = |name: &str| memchr::memmem::find_iter(bytes, name).count() as u64;
    let seen = ["/Type /Page", "/Type/Page"].map(count).iter().sum::<u64>();
    let trees = ["/Type /Pages", "/Type/Pages"]
        .map(count)
        .iter()
        .sum::<u64>();
    let by_size = match count("/ObjStm") {
        0 => 1,
        _ => bytes.len() as u64 / BYTES_PER_PAGE + 1,
    };
    seen.saturating_sub(trees).max(by_size).min(MAX_PAGES)
}

fn audio_tokens(bytes: &[u8]) -> u64 {
    let is_wav = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE");
    let rate = bytes.get(28..32).filter(|_| is_wav);
    let rate = rate.map(|b| u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])));
    let rate = rate.unwrap_or(0).max(MIN_AUDIO_BYTES_PER_SECOND);
    (bytes.len() as u64 / rate + 1) * TOKENS_PER_AUDIO_SECOND
}

/// The duration in the movie header of an MP4 or QuickTime file.
fn video_seconds(bytes: &[u8]) -> Option<u64> {
    let header = bytes.get(memchr::memmem::find(bytes, b"mvhd")? + 4..)?;
    let be = |at: usize| {
        header
            .get(at..at + 4)
            .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    };
    let (scale, duration) = match header.first()? {
        0 => (be(12)?, u64::from(be(16)?)),
        _ => (be(20)?, u64::from(be(24)?) << 32 | u64::from(be(28)?)),
    };
    (scale > 0).then(|| duration / u64::from(scale) + 1)
}

/// Iterates over the strings of a JSON text as written, without quotes; the flag is true for the names of members.
#[derive(Clone)]
pub(crate) struct JsonStrings<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> JsonStrings<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self { body, at: 0 }
    }
}

impl<'a> Iterator for JsonStrings<'a> {
    type Item = (&'a [u8], bool);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at + memchr::memchr(b'"', self.body.get(self.at..)?)? + 1;
        let mut end = start;
        loop {
            end += memchr::memchr2(b'"', b'\\', self.body.get(end..)?)?;
            if self.body[end] == b'"' {
                break;
            }
            end += 2;
        }
        self.at = end + 1;
        let is_key = self.body[self.at..].trim_ascii_start().first() == Some(&b':');
        Some((&self.body[start..end], is_key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    fn held(part: &serde_json::Value) -> u64 {
        held_attachments(json!({"content": [part]}).to_string().as_bytes()).tokens
    }

    fn uri(media_type: &str, bytes: &[u8]) -> String {
        media::format_data_uri(media_type, &STANDARD.encode(bytes))
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    }

    #[test]
    fn image_tokens_are_estimated_from_pixels() {
        for (width, height, expected) in [(1, 1, 300), (512, 512, 955), (9000, 9000, 5_000)] {
            let url = uri("image/png", &png(width, height));
            assert_eq!(held(&json!({"image_url": {"url": url}})), expected);
            assert_eq!(
                held(&json!({"type": "input_image", "image_url": url})),
                expected
            );
        }
        assert_eq!(
            held(&json!({"image_url": {"url": "https://example.com/a.png"}})),
            5_000
        );
        assert_eq!(held(&json!({"text": "no attachment: \"url\" http://x"})), 0);
    }

    #[test]
    fn only_data_of_media_is_counted_as_media() {
        let mut image = png(512, 512);
        image.resize(100, 0);
        let image = STANDARD.encode(&image);
        let source = json!({"type": "base64", "media_type": "image/png", "data": image});
        let inline = json!({"mimeType": "image/png", "data": image});
        // Base64 too, but for its spaces, which are skipped.
        let prose = "only letters and spaces ".repeat(10);
        let messages = json!([
            {"type": "image", "source": source},
            {"type": "tool_use", "input": {"source": {"page": 1}, "data": prose}},
            {"type": "redacted_thinking", "data": prose},
        ]);
        assert_eq!(held(&messages), 955);
        let parts = json!([
            {"inlineData": inline},
            {"functionCall": {"args": {"inlineData": {}, "data": prose}}},
            {"functionResponse": {"response": {"list": ["inlineData", {"data": prose}]}}},
        ]);
        assert_eq!(held(&parts), 955);
        assert_eq!(held(&json!([inline, {"data": image}])), 0);
        for free in ["input", "args", "response"] {
            let part = json!({free: {"source": source, "inlineData": inline}});
            assert_eq!(held(&part), 0, "{free}");
        }
    }

    #[test]
    fn only_what_is_counted_is_not_held_as_text() {
        let mut image = png(512, 512);
        image.resize(100, 0);
        let image = STANDARD.encode(&image);
        let body = json!({
            "inlineData": {"data": image, "mimeType": "image/png"},
            "x\"source": {"data": "a".repeat(1000)},
            "input": {"source": {"data": image}},
        });
        let held = held_attachments(body.to_string().as_bytes());
        assert_eq!((held.tokens, held.bytes), (955, image.len() as u64));
    }

    #[test]
    fn the_type_may_follow_the_file() {
        let text = "0,1,2\n".repeat(100);
        let data = STANDARD.encode(&text);
        let before = json!({"inlineData": {"mimeType": "text/csv", "data": data}});
        // As Google's SDKs write it.
        let after =
            r#"[{"inlineData":{"data":"DATA","mimeType":"text/csv"}}]"#.replace("DATA", &data);
        let after = held_attachments(after.as_bytes()).tokens;
        assert_eq!((held(&before), after), (600, 600));
        let image =
            r#"[{"fileData":{"fileUri":"x","mimeType":"image/png"}},{"fileData":{"fileUri":"y"}}]"#;
        let tokens = held_attachments(image.as_bytes()).tokens;
        assert_eq!(tokens, MAX_IMAGE_TOKENS + REMOTE_FILE_TOKENS);
    }

    #[test]
    fn base64_may_have_escapes() {
        let mut image = png(512, 512);
        image.resize(200, 0xfb);
        let encoded = STANDARD.encode(&image);
        let lines: Vec<&str> = encoded
            .as_bytes()
            .chunks(76)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        for text in [
            lines.join("\\n"),
            lines.join("\\r\\n"),
            encoded.replace('/', "\\/").replace('+', "\\u002B"),
        ] {
            assert_eq!(decode(&text), Some(image.clone()), "{text}");
        }
        assert_eq!(decode("a \\\"quoted\\\" text"), None);
    }

    #[test]
    fn the_object_of_a_member_is_found_before_it() {
        for (before, expected) in [
            (r#"{"source": {"type":"base64","#, true),
            (r#"{"inlineData" : {"#, true),
            (r#"{"source":{"a":1},"#, false),
            (r#"{"source":{"a":{"#, false),
            (r#"{"resource":{"#, false),
            (r#"{"text":"\"source\":{"#, false),
            (r#"{"x\"source":{"#, false),
            ("{", false),
            ("", false),
        ] {
            assert_eq!(is_in_media_object(before.as_bytes()), expected, "{before}");
        }
    }

    #[test]
    fn document_tokens_are_estimated_from_pages() {
        let mut pdf = b"%PDF-1.4 /Type /Pages ".to_vec();
        for _ in 0..12 {
            pdf.extend(b"/Type /Page\n");
        }
        let data = STANDARD.encode(&pdf);
        let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
        assert_eq!(held(&json!({"source": source})), 12 * 4_600);
        pdf.extend(b"/Type /ObjStm");
        pdf.resize(100_000, 0);
        let data = json!({"file_data": uri("application/pdf", &pdf)});
        assert_eq!(held(&data), 21 * 4_600, "compressed: by the size");
        assert_eq!(held(&json!({"file_id": "file_1"})), 50_000);
    }

    #[test]
    fn audio_and_video_tokens_are_estimated_from_the_duration() {
        let mut wav = b"RIFF....WAVEfmt ".to_vec();
        wav.extend([16, 0, 0, 0, 1, 0, 1, 0]);
        wav.extend(16_000_u32.to_le_bytes());
        wav.extend(32_000_u32.to_le_bytes());
        wav.resize(320_000, 0);
        let audio = json!({"input_audio": {"data": STANDARD.encode(&wav), "format": "wav"}});
        assert_eq!(held(&audio), 11 * 32);
        let mut mp4 = b"....ftypisom....mvhd\0\0\0\0........".to_vec();
        mp4.extend(1_000_u32.to_be_bytes());
        mp4.extend(60_000_u32.to_be_bytes());
        mp4.resize(200, 0);
        let inline = json!({"mimeType": "video/mp4", "data": STANDARD.encode(&mp4)});
        assert_eq!(held(&json!({"inlineData": inline})), 61 * 300);
    }
}
