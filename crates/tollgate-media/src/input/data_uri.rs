//! Pictures inside a request: `data:image/png;base64,…`, decoded strictly.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tollgate_core::ApiError;

use super::{InputRules, InputSource, names};
use crate::image::{ImageFacts, ImageFormat, facts};
use crate::text;

/// What every data URI begins with.
const SCHEME: &str = "data:";
/// No shorter text is taken for base64: no picture is that small, but a misspelt URL may be.
const BARE_MIN: usize = 64;

/// Whether `text` means to be a data URI.
pub(crate) fn is_data_uri(text: &str) -> bool {
    text.get(..SCHEME.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SCHEME))
}

/// Reads a data URI; 400 that names `field` for whatever is wrong with it.
pub(crate) fn read(rules: &InputRules, field: &str, uri: &str) -> Result<InputSource, ApiError> {
    let wrong = |problem: String| ApiError::invalid(format!("`{field}` {problem}"));
    if rules.data_uris.is_empty() {
        return Err(wrong(
            "must be a URL: this model takes no image data; upload the file with \
             POST /v1/uploads/images and send the URL it returns"
                .to_owned(),
        ));
    }
    let Some((media_type, data)) = uri
        .get(SCHEME.len()..)
        .and_then(|rest| rest.split_once(','))
        .and_then(|(head, data)| Some((head.strip_suffix(";base64")?, data)))
    else {
        return Err(wrong(format!(
            "must have the form data:image/png;base64,…, got {}",
            text::quote(uri)
        )));
    };
    let Some(format) = format_of(media_type).filter(|f| rules.data_uris.contains(f)) else {
        return Err(wrong(format!(
            "must be a data URI of {}, got {}",
            names(rules.data_uris),
            text::quote(media_type)
        )));
    };
    let (facts, bytes) = decode(rules, field, data)?;
    if facts.format != format {
        return Err(wrong(format!(
            "says {}, but its bytes are {}",
            format.media_type(),
            facts.format.media_type()
        )));
    }
    Ok(InputSource::Data { facts, bytes })
}

/// Whether `text` can be nothing but base64: long, and of no other characters.
pub(crate) fn is_bare(text: &str) -> bool {
    let digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    text.len() >= BARE_MIN && text.bytes().all(digit)
}

/// Reads base64 without a data URI's head; 400 that names `field` for whatever is wrong with it.
pub(crate) fn read_bare(
    rules: &InputRules,
    field: &str,
    data: &str,
) -> Result<InputSource, ApiError> {
    let (facts, bytes) = decode(rules, field, data)?;
    if !rules.data_uris.contains(&facts.format) {
        return Err(ApiError::invalid(format!(
            "`{field}` must be base64 of {}, got {}",
            names(rules.data_uris),
            facts.format.name()
        )));
    }
    Ok(InputSource::Data { facts, bytes })
}

/// A picture's facts and bytes from its base64.
fn decode(rules: &InputRules, field: &str, data: &str) -> Result<(ImageFacts, Vec<u8>), ApiError> {
    let wrong = |problem: String| ApiError::invalid(format!("`{field}` {problem}"));
    rules.check_bytes(field, decoded_bytes(data))?;
    let bytes = STANDARD
        .decode(data)
        .map_err(|error| wrong(format!("must hold valid base64, but has {}", place(&error))))?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let facts = facts::read(Cursor::new(&bytes), length)
        .map_err(|error| wrong(format!("must hold an image, but {error}")))?;
    Ok((facts, bytes))
}

/// The format of a media type; `image/jpg` is read as `image/jpeg`.
fn format_of(media_type: &str) -> Option<ImageFormat> {
    let named = |name: &str| media_type.eq_ignore_ascii_case(name);
    if named("image/jpg") {
        return Some(ImageFormat::Jpeg);
    }
    ImageFormat::ALL
        .into_iter()
        .find(|format| named(format.media_type()))
}

/// How many bytes well-formed base64 of that length holds, padding aside.
fn decoded_bytes(data: &str) -> u64 {
    let digits = data.trim_end_matches('=').len();
    u64::try_from(digits).unwrap_or(u64::MAX) / 4 * 3
}

/// A base64 error in words that hold nothing of the data.
fn place(error: &base64::DecodeError) -> String {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    match error {
        InvalidByte(at, _) => format!("an illegal character at position {at}"),
        InvalidLastSymbol(at, _) => format!("an illegal last character at position {at}"),
        InvalidLength(_) => "an impossible length".to_owned(),
        InvalidPadding => "wrong padding".to_owned(),
    }
}
