//! Writes content parts of user turns: text, images, audio, video, files, cache markers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::chat_completions::constants::NAME;
use crate::chat_completions::images::image_url;
use crate::chat_completions::json_fields::insert_some;
use crate::error::InvalidRequest;
use crate::hub::{Part, PartKind, Request, Source, extract_text};
use crate::media;

/// Inserts a cache marker. Ttls that only OpenAI supports are written in OpenAI's spelling.
pub(in crate::chat_completions) fn insert_cache_marker(map: &mut Map<String, Value>, ttl: &str) {
    let (name, marker) = match ttl {
        "30m" | "12h" => (
            "prompt_cache_breakpoint",
            json!({"mode": "explicit", "ttl": ttl}),
        ),
        "" => ("cache_control", json!({"type": "ephemeral"})),
        _ => ("cache_control", json!({"type": "ephemeral", "ttl": ttl})),
    };
    map.insert(name.to_owned(), marker);
}

/// Writes one part of a user's content list. `path` is its JSON path in the client's request, for errors.
pub(in crate::chat_completions) fn write_part(
    part: &Part,
    request: &Request,
    path: &str,
) -> Result<Value, InvalidRequest> {
    let is_same_format = request.client_format.name == NAME;
    let mut map = match &part.kind {
        PartKind::Text { text, .. } => object_from(json!({"type": "text", "text": text})),
        PartKind::Refusal(text) => object_from(json!({"type": "refusal", "refusal": text})),
        PartKind::Image { source, detail } => {
            let url = image_url(source).ok_or_else(|| {
                InvalidRequest::new(
                    path,
                    "must be a JPEG, PNG, GIF or WebP image by URL or base64 for this model",
                )
            })?;
            let mut image = Map::from_iter([("url".to_owned(), url.into())]);
            insert_some(&mut image, "detail", detail.clone());
            object_from(json!({"type": "image_url", "image_url": image}))
        }
        PartKind::Audio { source } => {
            let (data, format) = wav_or_mp3(source, is_same_format).ok_or_else(|| {
                InvalidRequest::new(path, "must be WAV or MP3 audio in base64 for this model")
            })?;
            object_from(
                json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}),
            )
        }
        PartKind::File { source, name } => write_file(source, name.as_deref(), request)
            .ok_or_else(|| {
                InvalidRequest::new(
                    path,
                    "must be a file in base64 or text: this model accepts none by URL or id",
                )
            })?,
        PartKind::Video { source } if is_same_format => match source {
            Source::Url { url, .. } => {
                object_from(json!({"type": "video_url", "video_url": {"url": url}}))
            }
            Source::Base64 { media_type, data } => {
                let url = media::format_data_uri(media_type, data);
                object_from(json!({"type": "video_url", "video_url": {"url": url}}))
            }
            _ => {
                return Err(InvalidRequest::new(
                    path,
                    "must be a video by URL or base64",
                ));
            }
        },
        PartKind::Video { .. } => {
            return Err(InvalidRequest::new(
                path,
                "is video, which this model does not support",
            ));
        }
        PartKind::FormatSpecific { value, .. } => match extract_text(value) {
            Some(text) => object_from(json!({"type": "text", "text": text})),
            None => {
                return Err(InvalidRequest::new(
                    path,
                    "is a kind of content that this model does not support",
                ));
            }
        },
        _ => {
            return Err(InvalidRequest::new(
                path,
                "is not allowed in a user message",
            ));
        }
    };
    if let Some(ttl) = part.cache_ttl.as_deref().filter(|_| is_same_format) {
        insert_cache_marker(&mut map, ttl);
    }
    map.extend(part.extra.for_format(NAME).cloned().unwrap_or_default());
    Ok(map.into())
}

fn object_from(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Base64 data and `format`. If the client uses this format too, any audio format is passed on.
fn wav_or_mp3(source: &Source, is_same_format: bool) -> Option<(&str, &str)> {
    let Source::Base64 { media_type, data } = source else {
        return None;
    };
    let format = match media_type.as_str() {
        "audio/wav" => "wav",
        "audio/mp3" | "audio/mpeg" => "mp3",
        other if is_same_format => other.strip_prefix("audio/")?,
        _ => return None,
    };
    Some((data, format))
}

fn write_file(
    source: &Source,
    name: Option<&str>,
    request: &Request,
) -> Option<Map<String, Value>> {
    let mut file = Map::new();
    match source {
        Source::Text(text) => return Some(text_with_title(name, text)),
        // Files given by id are stored at OpenAI, which offers both of these formats.
        Source::FileId(id) if [NAME, "responses"].contains(&request.client_format.name) => {
            file.insert("file_id".to_owned(), id.as_str().into());
        }
        Source::Base64 { media_type, data } => {
            let text = || String::from_utf8(STANDARD.decode(data).ok()?).ok();
            if media_type.starts_with("text/") && request.client_format.name != NAME {
                return Some(text_with_title(name, &text()?));
            }
            file.insert(
                "file_data".to_owned(),
                media::format_data_uri(media_type, data).into(),
            );
        }
        _ => return None,
    }
    let file_name = match (name, source) {
        (None, Source::Base64 { media_type, .. }) if request.client_format.name != NAME => {
            // OpenAI rejects file data without a name.
            Some(if media_type == "application/pdf" {
                "document.pdf"
            } else {
                "document"
            })
        }
        (name, _) => name,
    };
    insert_some(&mut file, "filename", file_name);
    Some(object_from(json!({"type": "file", "file": file})))
}

fn text_with_title(name: Option<&str>, text: &str) -> Map<String, Value> {
    let text = match name {
        Some(name) => format!("{name}\n\n{text}"),
        None => text.to_owned(),
    };
    object_from(json!({"type": "text", "text": text}))
}
