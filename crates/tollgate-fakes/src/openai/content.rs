//! Images, audio and files in messages, as both formats of OpenAI take them.

use crate::encoding::{self, Attachment};
use crate::openai::{invalid, invalid_value};
use crate::rejection::{OrRejected, Rejection};

const IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// An address of the web, or a data URI with an image in it.
pub(super) fn image(url: &str, param: &str) -> OrRejected<Attachment> {
    if encoding::is_web(url) {
        let what = format!("image {url}");
        return Ok(Attachment { what, bytes: None });
    }
    let bad = |message: &str| -> Box<Rejection> {
        let rejection = invalid("image", message).code("invalid_image");
        Box::new(rejection.param(param))
    };
    if !url.starts_with("data:") {
        let message = format!(
            "Invalid '{param}'. Expected a valid URL, but got a value with an invalid format."
        );
        return Err(Box::new(invalid_value("image-url", param, message)));
    }
    let Some((media_type, bytes)) = encoding::data_uri(url) else {
        return Err(bad("Invalid base64 image_url."));
    };
    if !media_type.starts_with("image/") {
        return Err(bad("Invalid MIME type. Only image types are supported."));
    }
    let what = encoding::sniff(&bytes).filter(|what| IMAGES.contains(what));
    let Some(what) = what else {
        return Err(bad(
            "You uploaded an unsupported image. Please make sure your image has of one the \
             following formats: ['png', 'jpeg', 'gif', 'webp'].",
        ));
    };
    Ok(Attachment {
        what: what.to_owned(),
        bytes: Some(bytes.len()),
    })
}

/// Bare base64 of a audio.
pub(super) fn audio(data: &str, format: &str, param: &str) -> OrRejected<Attachment> {
    let bytes = encoding::decode(data).filter(|bytes| !bytes.is_empty());
    let bytes = bytes.ok_or_else(|| {
        let message = format!("Invalid '{param}.data': expected base64-encoded audio.");
        Box::new(invalid_value("audio", param, message))
    })?;
    Ok(Attachment {
        what: format!("audio/{format}"),
        bytes: Some(bytes.len()),
    })
}

/// A file as a data URI.
pub(super) fn file(data: &str, param: &str) -> OrRejected<Attachment> {
    let (what, bytes) = encoding::data_uri(data).ok_or_else(|| {
        let message = format!(
            "Invalid '{param}.file_data': expected a base64-encoded data URL with an \
             application/pdf MIME type."
        );
        Box::new(invalid_value("file", param, message))
    })?;
    Ok(Attachment {
        what,
        bytes: Some(bytes.len()),
    })
}
