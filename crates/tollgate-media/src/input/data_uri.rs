//! Decodes images inside a request: data URIs (`data:image/png;base64,…`) and plain base64, strictly. Line breaks in the base64 are skipped.

use std::borrow::Cow;
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
/// The minimum length, in bytes, of a text that is read as base64 whatever its first letters. No image is shorter, but a misspelt URL may be.
const MIN_BASE64: usize = 64;
/// The first letters of JPEG, PNG, WebP and GIF files in base64.
const IMAGE_STARTS: [&str; 4] = ["/9j/", "iVBORw0KGgo", "UklGR", "R0lGOD"];

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
    let Some((media_type, data)) = split_data_uri(uri) else {
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
            "declares {}, but its bytes are {}",
            format.media_type(),
            metadata.format.media_type()
        )));
    }
    Ok(InputSource::Data { metadata, bytes })
}

/// Media type and data of a data URI in base64; parameters such as `;charset=utf-8` are skipped. `None` if the URI has another form.
fn split_data_uri(uri: &str) -> Option<(&str, &str)> {
    let (head, data) = uri.get(SCHEME.len()..)?.split_once(',')?;
    let (head, encoding) = head.rsplit_once(';')?;
    let media_type = head.split(';').next()?.trim();
    let is_base64 = encoding.trim().eq_ignore_ascii_case("base64");
    is_base64.then_some((media_type, data))
}

/// Whether `text` must be base64: it has no other characters, and it is long enough or begins like an image file.
pub(crate) fn is_base64(text: &str) -> bool {
    let digit =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=') || is_line_break(b);
    let is_image = IMAGE_STARTS.iter().any(|start| text.starts_with(start));
    (text.len() >= MIN_BASE64 || is_image) && text.bytes().all(digit)
}

fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
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
            "`{field}` must be base64 of an image ({}), got {}",
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
    let data = without_line_breaks(data);
    limits.check_bytes(field, decoded_bytes(&data))?;
    let bytes = STANDARD.decode(data.as_bytes()).map_err(|error| {
        invalid(format!(
            "must hold valid base64, but has {}",
            describe_error(&error)
        ))
    })?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let metadata = ImageMetadata::read(Cursor::new(&bytes), length).map_err(|error| {
        let formats = format_names(limits.data_uris);
        invalid(format!("must hold an image ({formats}), but {error}"))
    })?;
    Ok((metadata, bytes))
}

fn without_line_breaks(data: &str) -> Cow<'_, str> {
    if data.bytes().any(is_line_break) {
        return data.replace(['\r', '\n'], "").into();
    }
    data.into()
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

/// The number of bytes that well-formed base64 encodes: three for four digits; padding is not a digit.
fn decoded_bytes(data: &str) -> u64 {
    let digits = data.trim_end_matches('=').len();
    u64::try_from(digits).unwrap_or(u64::MAX).saturating_mul(3) / 4
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
