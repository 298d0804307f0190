//! Images, sound and files in messages, as both formats of OpenAI take them.

use super::words::{invalid, invalid_value};
use crate::media::{self, Media};
use crate::refusal::{Judged, Refusal};

const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// An address of the web, or a data URI with an image in it.
pub(super) fn image(url: &str, param: &str) -> Judged<Media> {
    if media::is_web(url) {
        let what = format!("image {url}");
        return Ok(Media { what, bytes: None });
    }
    let bad = |message: &str| -> Box<Refusal> {
        let refusal = invalid("image", message).code("invalid_image");
        Box::new(refusal.param(param))
    };
    if !url.starts_with("data:") {
        let message = format!(
            "Invalid '{param}'. Expected a valid URL, but got a value with an invalid format."
        );
        return Err(Box::new(invalid_value("image-url", param, message)));
    }
    let Some((media_type, bytes)) = media::data_uri(url) else {
        return Err(bad("Invalid base64 image_url."));
    };
    if !media_type.starts_with("image/") {
        return Err(bad("Invalid MIME type. Only image types are supported."));
    }
    let what = media::sniff(&bytes).filter(|what| IMAGES.contains(what));
    let Some(what) = what else {
        return Err(bad(
            "You uploaded an unsupported image. Please make sure your image has of one the \
             following formats: ['png', 'jpeg', 'gif', 'webp'].",
        ));
    };
    Ok(Media {
        what: what.to_owned(),
        bytes: Some(bytes.len()),
    })
}

/// Bare base64 of a sound.
pub(super) fn audio(data: &str, format: &str, param: &str) -> Judged<Media> {
    let bytes = media::decode(data).filter(|bytes| !bytes.is_empty());
    let bytes = bytes.ok_or_else(|| {
        let message = format!("Invalid '{param}.data': expected base64-encoded audio.");
        Box::new(invalid_value("audio", param, message))
    })?;
    Ok(Media {
        what: format!("audio/{format}"),
        bytes: Some(bytes.len()),
    })
}

/// A file as a data URI.
pub(super) fn file(data: &str, param: &str) -> Judged<Media> {
    let (what, bytes) = media::data_uri(data).ok_or_else(|| {
        let message = format!(
            "Invalid '{param}.file_data': expected a base64-encoded data URL with an \
             application/pdf MIME type."
        );
        Box::new(invalid_value("file", param, message))
    })?;
    Ok(Media {
        what,
        bytes: Some(bytes.len()),
    })
}
