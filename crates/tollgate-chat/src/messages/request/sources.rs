//! Where the bytes of pictures and documents are, in the vendor's words.

use serde_json::{Value, json};

use super::draft::Draft;
use crate::error::InvalidRequest;
use crate::hub::{PartKind, Source};
use crate::messages::wire::IMAGE_TYPES;

/// The `source` of a picture.
pub(super) fn image_source(
    draft: &Draft<'_>,
    source: &Source,
    place: (usize, usize),
) -> Result<Value, InvalidRequest> {
    match source {
        Source::Base64 { media_type, data } if IMAGE_TYPES.contains(&media_type.as_str()) => {
            Ok(json!({"type": "base64", "media_type": media_type, "data": data}))
        }
        Source::Base64 { media_type, .. } => {
            let why = format!(
                "must be a JPEG, PNG, GIF or WebP picture for this model, got {media_type}"
            );
            Err(draft.bad(place, why))
        }
        Source::Url { url, .. } => web(draft, url, place),
        Source::FileId(id) => upload(draft, id, place),
        Source::Text(_) => Err(draft.bad(place, "must be a picture, got text")),
    }
}

/// The `source` of a document, in its block; a picture that came as a file is a picture.
pub(super) fn document(
    draft: &Draft<'_>,
    source: &Source,
    place: (usize, usize),
) -> Result<Value, InvalidRequest> {
    let source = match source {
        Source::Text(text) => plain_text(text),
        Source::Base64 { media_type, data } if media_type == "application/pdf" => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        Source::Base64 { media_type, data } if IMAGE_TYPES.contains(&media_type.as_str()) => {
            let source = json!({"type": "base64", "media_type": media_type, "data": data});
            return Ok(json!({"type": "image", "source": source}));
        }
        Source::Base64 { media_type, data } => match text_of(media_type, data) {
            Some(text) => plain_text(&text),
            None => {
                let why = format!("must be a PDF or plain text for this model, got {media_type}");
                return Err(draft.bad(place, why));
            }
        },
        Source::Url { url, .. } => web(draft, url, place)?,
        Source::FileId(id) => upload(draft, id, place)?,
    };
    Ok(json!({"type": "document", "source": source}))
}

fn plain_text(text: &str) -> Value {
    json!({"type": "text", "media_type": "text/plain", "data": text})
}

/// The text of a file that is one.
fn text_of(media_type: &str, data: &str) -> Option<String> {
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

/// Whether the vendor fetches what a part names: pictures and PDFs over https.
pub(in crate::messages) fn accepts_url(part: &PartKind) -> bool {
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

fn web(draft: &Draft<'_>, url: &str, place: (usize, usize)) -> Result<Value, InvalidRequest> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    if is_web || draft.is_native {
        return Ok(json!({"type": "url", "url": url}));
    }
    Err(draft.bad(place, "must be an https URL or base64 data for this model"))
}

/// Uploads are the vendor's at which they were made.
fn upload(draft: &Draft<'_>, id: &str, place: (usize, usize)) -> Result<Value, InvalidRequest> {
    if draft.is_native {
        return Ok(json!({"type": "file", "file_id": id}));
    }
    let why = "names an upload of another vendor; send its bytes or its URL instead";
    Err(draft.bad(place, why))
}
