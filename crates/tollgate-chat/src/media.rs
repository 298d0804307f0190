//! Media data inside requests: data URIs, base64 in the variants that clients send, and media types recognised from the bytes.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::hub::Source;

/// A parsed data URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataUri<'a> {
    /// The media type as written, without parameters; empty if there is none.
    pub media_type: &'a str,
    /// The base64 text as written.
    pub data: &'a str,
}

/// Whether `text` begins with `data:`.
pub fn is_data_uri(text: &str) -> bool {
    text.get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("data:"))
}

/// Parses a data URI; parameters such as `;charset=x` are skipped. `None` if it is no data URI or not base64.
pub fn parse_data_uri(text: &str) -> Option<DataUri<'_>> {
    let (head, data) = text
        .get(5..)
        .filter(|_| is_data_uri(text))?
        .split_once(',')?;
    let mut parameters = head.split(';').map(str::trim);
    let media_type = parameters.next().unwrap_or_default();
    parameters
        .any(|parameter| parameter.eq_ignore_ascii_case("base64"))
        .then_some(DataUri { media_type, data })
}

/// The data URI of `data`, which must be standard base64.
pub fn format_data_uri(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// The bytes that a client sent in `text`, which is a data URI or base64. `declared` is the media type from another field; it may be
/// empty. Media types recognised from the bytes take precedence. The error continues a sentence "`field` …".
pub fn parse_inline_source(text: &str, declared: &str) -> Result<Source, String> {
    let (media_type, data) = match parse_data_uri(text) {
        Some(uri) if uri.media_type.is_empty() => (declared, uri.data),
        Some(uri) => (uri.media_type, uri.data),
        None if is_data_uri(text) => {
            return Err("must be a data URI of the form data:image/png;base64,…".to_owned());
        }
        None => (declared, text),
    };
    let data = normalize_base64(data)?.into_owned();
    let media_type = match sniff_base64_media_type(&data) {
        Some(seen) => seen.to_owned(),
        None => normalize_media_type(media_type).into_owned(),
    };
    Ok(Source::Base64 { media_type, data })
}

/// Converts base64 to the standard alphabet with padding and without line breaks. Accepts the URL-safe alphabet, missing padding and
/// white space. The error continues a sentence "`field` …".
pub fn normalize_base64(data: &str) -> Result<Cow<'_, str>, String> {
    let digits = data.trim_end_matches('=');
    let is_clean = data.len().is_multiple_of(4) && digits.bytes().all(is_standard_digit);
    if is_clean && data.len() - digits.len() <= 2 && !digits.is_empty() {
        return Ok(Cow::Borrowed(data));
    }
    let mut clean = String::with_capacity(data.len() + 3);
    for c in data.trim_end().trim_end_matches('=').chars() {
        match c {
            '-' => clean.push('+'),
            '_' => clean.push('/'),
            c if c.is_ascii_whitespace() => {}
            c if u8::try_from(c).is_ok_and(is_standard_digit) => clean.push(c),
            _ => return Err("must hold valid base64, but has an illegal character".to_owned()),
        }
    }
    match clean.len() % 4 {
        _ if clean.is_empty() => return Err("must hold base64, but is empty".to_owned()),
        1 => return Err("must hold valid base64, but is cut short".to_owned()),
        2 => clean.push_str("=="),
        3 => clean.push('='),
        _ => {}
    }
    Ok(Cow::Owned(clean))
}

/// The number of bytes that base64 text encodes: three for four digits. Padding and line breaks do not count as digits, nor do the backslashes of
/// escapes in the text of a JSON string.
pub fn decoded_bytes(data: &[u8]) -> u64 {
    let mut digits = 0;
    let mut bytes = data.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            // `/` is the only escaped character that is a digit.
            b'\\' => digits += u64::from(bytes.next() == Some(&b'/')),
            byte => digits += u64::from(is_standard_digit(*byte)),
        }
    }
    digits * 3 / 4
}

fn is_standard_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

/// The media type in lower case, without parameters and with aliases replaced; `application/octet-stream` if it is empty.
pub fn normalize_media_type(media_type: &str) -> Cow<'static, str> {
    let plain = media_type.split(';').next().unwrap_or_default().trim();
    match plain.to_ascii_lowercase().as_str() {
        "" => Cow::Borrowed("application/octet-stream"),
        "image/jpg" | "image/pjpeg" => Cow::Borrowed("image/jpeg"),
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Cow::Borrowed("audio/wav"),
        other => Cow::Owned(other.to_owned()),
    }
}

/// The media type of base64 data, from the magic number in its first bytes. `None` if it has no known one.
pub fn sniff_base64_media_type(data: &str) -> Option<&'static str> {
    // 32 digits are 24 bytes: every magic number fits.
    let head = &data.as_bytes()[..data.len().min(32)];
    let digits = head.iter().position(|&b| b == b'=').unwrap_or(head.len());
    let decode = |digits: usize| STANDARD_NO_PAD.decode(&head[..digits]).ok();
    // The last digits of the text may encode less than three bytes.
    let bytes = decode(digits).or_else(|| decode(digits - digits % 4))?;
    sniff_media_type(&bytes)
}

/// The media type of an image or PDF, from its magic number. `None` for anything else: audio and video keep the declared type.
pub fn sniff_media_type(bytes: &[u8]) -> Option<&'static str> {
    let at = |from: usize, magic: &[u8]| bytes.get(from..).is_some_and(|b| b.starts_with(magic));
    let brand = |name: &[u8]| at(4, b"ftyp") && at(8, name);
    const HEIC: [&[u8]; 4] = [b"heic", b"heix", b"hevc", b"heim"];
    const HEIF: [&[u8]; 2] = [b"mif1", b"msf1"];
    Some(match () {
        () if at(0, b"\x89PNG\r\n\x1a\n") => "image/png",
        () if at(0, b"\xff\xd8\xff") => "image/jpeg",
        () if at(0, b"GIF87a") || at(0, b"GIF89a") => "image/gif",
        () if at(0, b"RIFF") && at(8, b"WEBP") => "image/webp",
        () if at(0, b"%PDF-") => "application/pdf",
        () if HEIC.iter().any(|b| brand(b)) => "image/heic",
        () if HEIF.iter().any(|b| brand(b)) => "image/heif",
        () if brand(b"avif") => "image/avif",
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";

    fn png() -> Source {
        Source::Base64 {
            media_type: "image/png".to_owned(),
            data: PNG.to_owned(),
        }
    }

    #[test]
    fn image_types_are_recognised_from_the_bytes_not_the_declaration() {
        let broken = PNG
            .as_bytes()
            .chunks(20)
            .map(|c| std::str::from_utf8(c).unwrap());
        let broken = broken.collect::<Vec<_>>().join("\r\n");
        for text in [
            format!("data:image/jpeg;base64,{PNG}"),
            format!("data:image/jpg;charset=x;base64,{PNG}"),
            format!("DATA:;base64,{broken}"),
            format!("data:image/png;base64,{}", PNG.trim_end_matches('=')),
            PNG.replace('+', "-").replace('/', "_"),
        ] {
            assert_eq!(parse_inline_source(&text, "image/gif"), Ok(png()), "{text}");
        }
        assert_eq!(normalize_media_type("image/JPG; q=1"), "image/jpeg");
    }

    #[test]
    fn padding_and_line_breaks_are_not_counted() {
        for (data, bytes) in [
            ("", 0),
            ("QQ==", 1),
            ("QUI=", 2),
            ("QUJD", 3),
            ("QU\r\nJD", 3),
            (r"QU\r\nJD", 3),
            (r"\/\/\/\/", 3),
        ] {
            assert_eq!(decoded_bytes(data.as_bytes()), bytes, "{data}");
        }
    }

    #[test]
    fn invalid_base64_is_rejected() {
        for text in [
            "data:image/png,xx",
            "data:image/png;base64,",
            "a?b=",
            "abcde",
            "",
        ] {
            assert!(parse_inline_source(text, "").is_err(), "{text}");
        }
    }

    #[test]
    fn unrecognised_bytes_keep_the_declared_type() {
        for (bytes, declared, expected) in [
            ("AAAA", "audio/mp3", "audio/mp3"),
            ("aGVsbG8=", "", "application/octet-stream"),
            ("/9j/4AAQSkZJRg==", "image/jpg", "image/jpeg"),
            ("JVBERi0xLjQK", "", "application/pdf"),
        ] {
            let Ok(Source::Base64 { media_type, .. }) = parse_inline_source(bytes, declared) else {
                panic!("{bytes}")
            };
            assert_eq!(media_type, expected);
        }
    }
}
