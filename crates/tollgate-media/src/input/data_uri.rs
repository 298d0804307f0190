//! Images inside a request: data URIs (`data:image/png;base64,…`) and plain base64, decoded strictly.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tollgate_core::ApiError;

use super::input_image::InputSource;
use super::limits::{InputLimits, format_names};
use crate::image::format::ImageFormat;
use crate::image::metadata::ImageMetadata;
use crate::text;

/// The scheme of data URIs.
const SCHEME: &str = "data:";
/// The shortest text, in bytes, that is read as base64. No image is smaller, but a misspelt URL may be.
const MIN_BASE64: usize = 64;

/// Whether `text` starts with the scheme of data URIs.
pub(crate) fn is_data_uri(text: &str) -> bool {
    text.get(..SCHEME.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SCHEME))
}

/// Decodes a data URI and reads the image's header.
///
/// # Errors
/// 400 that names `field` if it is not a base64 data URI of an accepted format, or the bytes are not such an image.
pub(crate) fn parse_data_uri(
    limits: &InputLimits,
    field: &str,
    uri: &str,
) -> Result<InputSource, ApiError> {
    let invalid = |problem: String| ApiError::invalid(format!("`{field}` {problem}"));
    if limits.data_uris.is_empty() {
        return Err(invalid(
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
        return Err(invalid(format!(
            "must have the form data:image/png;base64,…, got {}",
            text::show_text(uri)
        )));
    };
    let Some(format) = media_type_format(media_type).filter(|f| limits.data_uris.contains(f))
    else {
        return Err(invalid(format!(
            "must be a data URI of {}, got {}",
            format_names(limits.data_uris),
            text::show_text(media_type)
        )));
    };
    let (metadata, bytes) = decode(limits, field, data)?;
    if metadata.format != format {
        return Err(invalid(format!(
            "says {}, but its bytes are {}",
            format.media_type(),
            metadata.format.media_type()
        )));
    }
    Ok(InputSource::Data { metadata, bytes })
}

/// Whether `text` must be base64: long enough, and without other characters.
pub(crate) fn is_base64(text: &str) -> bool {
    let digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    text.len() >= MIN_BASE64 && text.bytes().all(digit)
}

/// Decodes an image in plain base64, without the head of a data URI.
///
/// # Errors
/// 400 that names `field` if it is not valid base64 of an image in an accepted format.
pub(crate) fn parse_base64(
    limits: &InputLimits,
    field: &str,
    data: &str,
) -> Result<InputSource, ApiError> {
    let (metadata, bytes) = decode(limits, field, data)?;
    if !limits.data_uris.contains(&metadata.format) {
        return Err(ApiError::invalid(format!(
            "`{field}` must be base64 of {}, got {}",
            format_names(limits.data_uris),
            metadata.format.name()
        )));
    }
    Ok(InputSource::Data { metadata, bytes })
}

/// Decodes base64 and reads the header of the image in it.
fn decode(
    limits: &InputLimits,
    field: &str,
    data: &str,
) -> Result<(ImageMetadata, Vec<u8>), ApiError> {
    let invalid = |problem: String| ApiError::invalid(format!("`{field}` {problem}"));
    limits.check_bytes(field, decoded_bytes(data))?;
    let bytes = STANDARD.decode(data).map_err(|error| {
        invalid(format!(
            "must hold valid base64, but has {}",
            describe_error(&error)
        ))
    })?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let metadata = ImageMetadata::read(Cursor::new(&bytes), length)
        .map_err(|error| invalid(format!("must hold an image, but {error}")))?;
    Ok((metadata, bytes))
}

/// The format of a media type; `image/jpg` is read as `image/jpeg`.
fn media_type_format(media_type: &str) -> Option<ImageFormat> {
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

/// A base64 error as text that quotes none of the data.
fn describe_error(error: &base64::DecodeError) -> String {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    match error {
        InvalidByte(at, _) => format!("an illegal character at position {at}"),
        InvalidLastSymbol(at, _) => format!("an illegal last character at position {at}"),
        InvalidLength(_) => "an impossible length".to_owned(),
        InvalidPadding => "wrong padding".to_owned(),
    }
}
