//! Images in requests and in responses of models that generate them.

use serde_json::{Value, json};

use crate::hub::{Part, PartKind, Source};
use crate::media;

/// The URL or data URI of an image. `None` if this format does not accept its type.
pub(in crate::chat_completions) fn image_url(source: &Source) -> Option<String> {
    const ACCEPTED_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    match source {
        Source::Url { url, .. } if url.starts_with("http://") || url.starts_with("https://") => {
            Some(url.clone())
        }
        Source::Base64 { media_type, data } if ACCEPTED_TYPES.contains(&media_type.as_str()) => {
            Some(media::format_data_uri(media_type, data))
        }
        _ => None,
    }
}

/// Reads generated images, in the form that several vendors use.
pub(super) fn read_images(list: &Value) -> Vec<Part> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|image| {
        let url = image["image_url"]["url"].as_str()?;
        let source = if media::is_data_uri(url) {
            media::parse_inline_source(url, "image/png").ok()?
        } else {
            Source::Url {
                url: url.to_owned(),
                media_type: None,
            }
        };
        Some(Part::new(PartKind::Image {
            source,
            detail: None,
        }))
    })
    .collect()
}

/// Writes a generated image, in the form that several vendors use.
pub(super) fn write_generated_image(source: &Source, index: usize) -> Option<Value> {
    let url = image_url(source)?;
    Some(json!({"index": index, "type": "image_url", "image_url": {"url": url}}))
}
