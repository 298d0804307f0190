//! Reads images in requests: links, data URIs, bare base64; their type and size.

use std::io::Cursor;

use serde_json::{Value, json};

use crate::encoding;

/// The description of an image: that it is a link, or its type, its size in pixels and its bytes. The error is the broken rule and the problem.
pub(crate) type Image = Result<Value, (&'static str, String)>;

/// Reads an http or https link, or a data URI that declares its media type.
pub(crate) fn link_or_data(text: &str) -> Image {
    if encoding::is_web(text) {
        return Ok(json!({"link": true}));
    }
    if !text.starts_with("data:") {
        let begin: String = text.chars().take(24).collect();
        let problem = format!("expected an http(s) URL or a data URI, got `{begin}`");
        return Err(("image-url", problem));
    }
    let problem = || ("image-data", "the data URI holds no base64".to_owned());
    let (declared, bytes) = encoding::data_uri(text).ok_or_else(problem)?;
    declared_as(&declared, decode_image(&bytes)?)
}

/// Reads base64 without a prefix.
pub(crate) fn base64(text: &str) -> Image {
    if text.starts_with("data:") {
        return Err((
            "data-uri",
            "expected base64 without a `data:` prefix".to_owned(),
        ));
    }
    let bytes = encoding::decode(text).ok_or_else(|| ("image-data", "not base64".to_owned()))?;
    decode_image(&bytes)
}

/// Reads bytes that must be an image; `alpha` is true for a PNG whose pixels can be transparent.
pub(crate) fn decode_image(bytes: &[u8]) -> Image {
    let problem = || ("image-data", "the bytes are no image".to_owned());
    let media_type = match bytes {
        [b'B', b'M', ..] => "image/bmp",
        _ => encoding::sniff(bytes).ok_or_else(problem)?,
    };
    let reader = image::ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let size = reader.ok().and_then(|reader| reader.into_dimensions().ok());
    let (width, height) = size
        .filter(|size| size.0 > 0 && size.1 > 0)
        .ok_or_else(problem)?;
    let (short, long) = (width.min(height), width.max(height));
    // The colour type follows size and depth.
    let alpha = media_type == "image/png" && bytes.get(25).is_some_and(|kind| kind & 4 == 4);
    Ok(json!({
        "type": media_type, "width": width, "height": height, "bytes": bytes.len(), "short": short,
        "long": long, "stretch": f64::from(long) / f64::from(short), "alpha": alpha,
    }))
}

/// The image, if its media type is the declared one.
pub(crate) fn declared_as(declared: &str, image: Value) -> Image {
    let expected = if declared == "image/jpg" {
        "image/jpeg"
    } else {
        declared
    };
    if image["type"] == expected {
        return Ok(image);
    }
    let found = image["type"].as_str().unwrap_or_default();
    Err((
        "image-type",
        format!("declared as {expected}, but it is {found}"),
    ))
}
