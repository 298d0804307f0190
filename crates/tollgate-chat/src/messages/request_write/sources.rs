//! Writes the `source` of images and documents.

use serde_json::{Value, json};

use super::writer::RequestWriter;
use crate::error::InvalidRequest;
use crate::hub::{PartKind, Source};
use crate::messages::constants::IMAGE_TYPES;

/// The `source` of an image.
pub(crate) fn write_image_source(
    writer: &RequestWriter<'_>,
    source: &Source,
    position: (usize, usize),
) -> Result<Value, InvalidRequest> {
    match source {
        Source::Base64 { media_type, data } if IMAGE_TYPES.contains(&media_type.as_str()) => {
            Ok(json!({"type": "base64", "media_type": media_type, "data": data}))
        }
        Source::Base64 { media_type, .. } => {
            let why =
                format!("must be a JPEG, PNG, GIF or WebP image for this model, got {media_type}");
            Err(writer.invalid_part(position, why))
        }
        Source::Url { url, .. } => write_url_source(writer, url, position),
        Source::FileId(id) => write_file_id_source(writer, id, position),
        Source::Text(_) => Err(writer.invalid_part(position, "must be an image, got text")),
    }
}

/// A document block. An image that the client sent as a file becomes an image block.
pub(crate) fn write_document(
    writer: &RequestWriter<'_>,
    source: &Source,
    position: (usize, usize),
) -> Result<Value, InvalidRequest> {
    let source = match source {
        Source::Text(text) => text_source(text),
        Source::Base64 { media_type, data } if media_type == "application/pdf" => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        Source::Base64 { media_type, data } if IMAGE_TYPES.contains(&media_type.as_str()) => {
            let source = json!({"type": "base64", "media_type": media_type, "data": data});
            return Ok(json!({"type": "image", "source": source}));
        }
        Source::Base64 { media_type, data } => match decode_text(media_type, data) {
            Some(text) => text_source(&text),
            None => {
                let why = format!("must be a PDF or plain text for this model, got {media_type}");
                return Err(writer.invalid_part(position, why));
            }
        },
        Source::Url { url, .. } => write_url_source(writer, url, position)?,
        Source::FileId(id) => write_file_id_source(writer, id, position)?,
    };
    Ok(json!({"type": "document", "source": source}))
}

fn text_source(text: &str) -> Value {
    json!({"type": "text", "media_type": "text/plain", "data": text})
}

/// The text of a text file.
fn decode_text(media_type: &str, data: &str) -> Option<String> {
    use base64::Engine as _;
    let is_text = media_type.starts_with("text/")
        || matches!(
            media_type,
            "application/json" | "application/xml" | "application/x-yaml" | "application/yaml"
        );
    let bytes = base64::engine::general_purpose::STANDARD.decode(data);
    bytes
        .ok()
        .filter(|_| is_text)
        .and_then(|bytes| String::from_utf8(bytes).ok())
}

/// Whether the API downloads the URL of a part: images and PDFs over https.
pub(crate) fn accepts_url(part: &PartKind) -> bool {
    let (source, is_file) = match part {
        PartKind::Image { source, .. } => (source, false),
        PartKind::File { source, .. } => (source, true),
        _ => return true,
    };
    match source {
        Source::Url { url, media_type } => {
            let is_pdf = match media_type.as_deref() {
                Some(kind) => kind == "application/pdf",
                None => url
                    .split(['?', '#'])
                    .next()
                    .is_some_and(|path| path.ends_with(".pdf")),
            };
            url.starts_with("https://") && (is_pdf || !is_file)
        }
        _ => true,
    }
}

fn write_url_source(
    writer: &RequestWriter<'_>,
    url: &str,
    position: (usize, usize),
) -> Result<Value, InvalidRequest> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    if is_web || writer.is_native {
        return Ok(json!({"type": "url", "url": url}));
    }
    Err(writer.invalid_part(
        position,
        "must be an https URL or base64 data for this model",
    ))
}

/// The source of an uploaded file. Only the vendor that stores the file can read it.
fn write_file_id_source(
    writer: &RequestWriter<'_>,
    id: &str,
    position: (usize, usize),
) -> Result<Value, InvalidRequest> {
    if writer.is_native {
        return Ok(json!({"type": "file", "file_id": id}));
    }
    let why = "names an upload of another vendor; send its bytes or its URL instead";
    Err(writer.invalid_part(position, why))
}
