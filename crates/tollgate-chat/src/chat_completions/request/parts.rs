//! Content parts, both ways.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::super::wire::NAME;
use super::tools::put;
use super::value::{left, need_object, need_text, object, take, take_text, text};
use crate::error::Bad;
use crate::hub::{Kind, Own, Part, Request, Source, text_in};
use crate::media;

/// Reads one part of a content list; none for empty text.
pub(super) fn read(value: Value, path: &str) -> Result<Option<Part>, Bad> {
    let mut map = object(value, path)?;
    let kind = need_text(&mut map, "type", path)?;
    let cache = take_cache(&mut map);
    let kind = match kind.as_str() {
        "text" => match need_text(&mut map, "text", path)? {
            text if text.is_empty() => return Ok(None),
            text => Part::text(text).kind,
        },
        "refusal" => Kind::Refusal(need_text(&mut map, "refusal", path)?),
        "image_url" => image(&mut map, path)?,
        "input_audio" => audio(&mut map, path)?,
        "file" => file(&mut map, path)?,
        // An extension of several vendors.
        "video_url" => video(&mut map, path)?,
        _ => {
            return Err(Bad::new(
                format!("{path}.type"),
                "must be \"text\", \"image_url\", \"input_audio\", \"file\" or \"refusal\"",
            ));
        }
    };
    Ok(Some(Part {
        kind,
        cache,
        own: Own::of(NAME, left(map)),
    }))
}

/// A cache marker, in this format's spelling or in the one that clients of messages bring along.
pub(super) fn take_cache(map: &mut Map<String, Value>) -> Option<String> {
    let life = |marker: Value, usual: &str| {
        let ttl = marker.get("ttl").and_then(Value::as_str).unwrap_or(usual);
        ttl.to_owned()
    };
    let own = take(map, "prompt_cache_breakpoint").map(|marker| life(marker, "30m"));
    own.or(take(map, "cache_control").map(|marker| life(marker, "")))
}

/// The marker again: lifetimes of this format in its own spelling.
pub(super) fn put_cache(map: &mut Map<String, Value>, life: &str) {
    let (name, marker) = match life {
        "30m" | "12h" => (
            "prompt_cache_breakpoint",
            json!({"mode": "explicit", "ttl": life}),
        ),
        "" => ("cache_control", json!({"type": "ephemeral"})),
        _ => ("cache_control", json!({"type": "ephemeral", "ttl": life})),
    };
    map.insert(name.to_owned(), marker);
}

fn image(map: &mut Map<String, Value>, path: &str) -> Result<Kind, Bad> {
    let (url, detail) = url_of(map, "image_url", path)?;
    let field = format!("{path}.image_url.url");
    let source = source_of(url, "", &field)?;
    match &source {
        Source::Base64 { media_type, .. } if !media_type.starts_with("image/") => Err(Bad::new(
            field,
            format!("must hold an image, but its bytes are {media_type}"),
        )),
        _ => Ok(Kind::Image { source, detail }),
    }
}

fn video(map: &mut Map<String, Value>, path: &str) -> Result<Kind, Bad> {
    let (url, _) = url_of(map, "video_url", path)?;
    let source = source_of(url, "video/mp4", &format!("{path}.video_url.url"))?;
    Ok(Kind::Video { source })
}

/// `{url, detail}`, or the bare string of the responses format.
fn url_of(
    map: &mut Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<(String, Option<String>), Bad> {
    let path = format!("{path}.{name}");
    match take(map, name) {
        Some(Value::String(url)) => Ok((url, None)),
        Some(value) => {
            let mut inner = object(value, &path)?;
            Ok((
                need_text(&mut inner, "url", &path)?,
                take_text(&mut inner, "detail", &path)?,
            ))
        }
        None => Err(Bad::new(path, "is required")),
    }
}

/// A web address, a data URI, or bare base64 of something that is known by its first bytes.
fn source_of(url: String, declared: &str, field: &str) -> Result<Source, Bad> {
    if media::is_data_uri(&url) {
        return media::inline(&url, declared).map_err(|why| Bad::new(field, why));
    }
    if url.contains("://") {
        return Ok(Source::Url {
            url,
            media_type: None,
        });
    }
    if media::sniff_base64(&url).is_some() {
        return media::inline(&url, declared).map_err(|why| Bad::new(field, why));
    }
    Err(Bad::new(
        field,
        "must be an http or https URL or a data URI",
    ))
}

fn audio(map: &mut Map<String, Value>, path: &str) -> Result<Kind, Bad> {
    let mut inner = need_object(map, "input_audio", path)?;
    let path = format!("{path}.input_audio");
    let data = need_text(&mut inner, "data", &path)?;
    let format = need_text(&mut inner, "format", &path)?;
    let source = media::inline(&data, &format!("audio/{format}"))
        .map_err(|why| Bad::new(format!("{path}.data"), why))?;
    Ok(Kind::Audio { source })
}

fn file(map: &mut Map<String, Value>, path: &str) -> Result<Kind, Bad> {
    let mut inner = need_object(map, "file", path)?;
    let path = format!("{path}.file");
    let name = take_text(&mut inner, "filename", &path)?;
    if let Some(id) = take_text(&mut inner, "file_id", &path)? {
        let source = Source::FileId(id);
        return Ok(Kind::File { source, name });
    }
    let Some(data) = take(&mut inner, "file_data") else {
        return Err(Bad::new(path, "must have `file_data` or `file_id`"));
    };
    let field = format!("{path}.file_data");
    let declared = name.as_deref().map_or("", type_by_name);
    let source =
        media::inline(&text(data, &field)?, declared).map_err(|why| Bad::new(field, why))?;
    Ok(Kind::File { source, name })
}

fn type_by_name(name: &str) -> &'static str {
    match name
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
        .as_str()
    {
        "pdf" => "application/pdf",
        "txt" | "md" => "text/plain",
        "csv" => "text/csv",
        "html" => "text/html",
        "json" => "application/json",
        _ => "",
    }
}

/// Writes one part of a user's content list. `path` is the client's, for errors.
pub(super) fn write(part: &Part, request: &Request, path: &str) -> Result<Value, Bad> {
    let is_ours = request.client == NAME;
    let mut map = match &part.kind {
        Kind::Text { text, .. } => members(json!({"type": "text", "text": text})),
        Kind::Refusal(text) => members(json!({"type": "refusal", "refusal": text})),
        Kind::Image { source, detail } => {
            let url = image_url(source).ok_or_else(|| {
                Bad::new(
                    path,
                    "must be a JPEG, PNG, GIF or WebP image by URL or base64 for this model",
                )
            })?;
            let mut image = Map::from_iter([("url".to_owned(), url.into())]);
            put(&mut image, "detail", detail.clone());
            members(json!({"type": "image_url", "image_url": image}))
        }
        Kind::Audio { source } => {
            let (data, format) = wav_or_mp3(source, is_ours).ok_or_else(|| {
                Bad::new(path, "must be WAV or MP3 audio in base64 for this model")
            })?;
            members(json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}))
        }
        Kind::File { source, name } => {
            file_part(source, name.as_deref(), request).ok_or_else(|| {
                Bad::new(
                    path,
                    "must be a file in base64 or text: this model takes none by URL or id",
                )
            })?
        }
        Kind::Video { source } if is_ours => match source {
            Source::Url { url, .. } => {
                members(json!({"type": "video_url", "video_url": {"url": url}}))
            }
            Source::Base64 { media_type, data } => {
                let url = media::to_data_uri(media_type, data);
                members(json!({"type": "video_url", "video_url": {"url": url}}))
            }
            _ => return Err(Bad::new(path, "must be a video by URL or base64")),
        },
        Kind::Video { .. } => {
            return Err(Bad::new(path, "is video, which this model does not take"));
        }
        Kind::Foreign { value, .. } => match text_in(value) {
            Some(text) => members(json!({"type": "text", "text": text})),
            None => {
                return Err(Bad::new(
                    path,
                    "is a kind of content that this model does not take",
                ));
            }
        },
        _ => return Err(Bad::new(path, "may not stand in a user's turn")),
    };
    if let Some(life) = part.cache.as_deref().filter(|_| is_ours) {
        put_cache(&mut map, life);
    }
    map.extend(part.own.for_format(NAME).cloned().unwrap_or_default());
    Ok(map.into())
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The URL of a picture that this format takes.
pub(in super::super) fn image_url(source: &Source) -> Option<String> {
    const TAKEN: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    match source {
        Source::Url { url, .. } if url.starts_with("http://") || url.starts_with("https://") => {
            Some(url.clone())
        }
        Source::Base64 { media_type, data } if TAKEN.contains(&media_type.as_str()) => {
            Some(media::to_data_uri(media_type, data))
        }
        _ => None,
    }
}

/// Base64 and the word of `format`. A client of this format may name whatever its upstream knows.
fn wav_or_mp3(source: &Source, is_ours: bool) -> Option<(&str, &str)> {
    let Source::Base64 { media_type, data } = source else {
        return None;
    };
    let format = match media_type.as_str() {
        "audio/wav" => "wav",
        "audio/mp3" | "audio/mpeg" => "mp3",
        other if is_ours => other.strip_prefix("audio/")?,
        _ => return None,
    };
    Some((data, format))
}

fn file_part(source: &Source, name: Option<&str>, request: &Request) -> Option<Map<String, Value>> {
    let mut file = Map::new();
    match source {
        Source::Text(text) => return Some(titled(name, text)),
        // Files by id live at OpenAI, which speaks both of these formats.
        Source::FileId(id) if [NAME, "responses"].contains(&request.client) => {
            file.insert("file_id".to_owned(), id.as_str().into());
        }
        Source::Base64 { media_type, data } => {
            let text = || String::from_utf8(STANDARD.decode(data).ok()?).ok();
            if media_type.starts_with("text/") && request.client != NAME {
                return Some(titled(name, &text()?));
            }
            file.insert(
                "file_data".to_owned(),
                media::to_data_uri(media_type, data).into(),
            );
        }
        _ => return None,
    }
    let named = match (name, source) {
        (None, Source::Base64 { media_type, .. }) if request.client != NAME => {
            // OpenAI refuses file data without a name.
            Some(if media_type == "application/pdf" {
                "document.pdf"
            } else {
                "document"
            })
        }
        (name, _) => name,
    };
    put(&mut file, "filename", named);
    Some(members(json!({"type": "file", "file": file})))
}

fn titled(name: Option<&str>, text: &str) -> Map<String, Value> {
    let text = match name {
        Some(name) => format!("{name}\n\n{text}"),
        None => text.to_owned(),
    };
    members(json!({"type": "text", "text": text}))
}
