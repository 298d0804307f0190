//! Bytes inside requests: data URIs, base64 in whatever spelling clients use, and what the bytes really are.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::hub::Source;

/// What a data URI says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataUri<'a> {
    /// The media type as written, without parameters; empty where none is given.
    pub media_type: &'a str,
    /// The base64 text as written.
    pub data: &'a str,
}

/// Whether `text` means to be a data URI.
pub fn is_data_uri(text: &str) -> bool {
    text.get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("data:"))
}

/// Takes a data URI apart; parameters such as `;charset=x` are skipped. None where it is none, or is not base64.
pub fn data_uri(text: &str) -> Option<DataUri<'_>> {
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

/// A data URI of `data`, which is clean base64.
pub fn to_data_uri(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Bytes of a client as a source: `text` is a data URI or bare base64, `declared` the type that is said elsewhere (may be empty).
/// The error continues a sentence that begins with the field's name.
pub fn inline(text: &str, declared: &str) -> Result<Source, String> {
    let (media_type, data) = match data_uri(text) {
        Some(uri) if uri.media_type.is_empty() => (declared, uri.data),
        Some(uri) => (uri.media_type, uri.data),
        None if is_data_uri(text) => {
            return Err("must be a data URI of the form data:image/png;base64,…".to_owned());
        }
        None => (declared, text),
    };
    let data = clean_base64(data)?.into_owned();
    let media_type = match sniff_base64(&data) {
        Some(seen) => seen.to_owned(),
        None => normal_type(media_type).into_owned(),
    };
    Ok(Source::Base64 { media_type, data })
}

/// Standard base64 with padding and without line breaks, from standard or URL-safe, padded or not, broken into lines or not.
pub fn clean_base64(data: &str) -> Result<Cow<'_, str>, String> {
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

fn is_standard_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

/// A media type in lower case, without parameters, aliases replaced; `application/octet-stream` for none.
pub fn normal_type(media_type: &str) -> Cow<'static, str> {
    let plain = media_type.split(';').next().unwrap_or_default().trim();
    match plain.to_ascii_lowercase().as_str() {
        "" => Cow::Borrowed("application/octet-stream"),
        "image/jpg" | "image/pjpeg" => Cow::Borrowed("image/jpeg"),
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Cow::Borrowed("audio/wav"),
        other => Cow::Owned(other.to_owned()),
    }
}

/// What base64 text holds, by its first bytes.
pub fn sniff_base64(data: &str) -> Option<&'static str> {
    // 32 digits are 24 bytes: every magic number fits.
    let head = &data.as_bytes()[..data.len().min(32)];
    let digits = head.iter().position(|&b| b == b'=').unwrap_or(head.len());
    let whole = digits - usize::from(digits % 4 == 1);
    let bytes = STANDARD_NO_PAD.decode(&head[..whole - whole % 4]).ok()?;
    sniff(&bytes)
}

/// Pictures and PDFs by their magic numbers. Sound and film keep the type that the client says.
pub fn sniff(bytes: &[u8]) -> Option<&'static str> {
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
    fn trap_52_the_bytes_say_what_a_picture_is() {
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
            assert_eq!(inline(&text, "image/gif"), Ok(png()), "{text}");
        }
        assert_eq!(normal_type("image/JPG; q=1"), "image/jpeg");
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in [
            "data:image/png,xx",
            "data:image/png;base64,",
            "a?b=",
            "abcde",
            "",
        ] {
            assert!(inline(text, "").is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_keeps_its_name() {
        for (bytes, declared, expected) in [
            ("AAAA", "audio/mp3", "audio/mp3"),
            ("aGVsbG8=", "", "application/octet-stream"),
            ("/9j/4AAQSkZJRg==", "image/jpg", "image/jpeg"),
            ("JVBERi0xLjQK", "", "application/pdf"),
        ] {
            let Ok(Source::Base64 { media_type, .. }) = inline(bytes, declared) else {
                panic!("{bytes}")
            };
            assert_eq!(media_type, expected);
        }
    }
}
