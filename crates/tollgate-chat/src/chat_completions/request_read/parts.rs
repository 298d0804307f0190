//! Reads content parts: text, images, audio, video, files, cache markers.

use serde_json::{Map, Value};

use crate::chat_completions::constants::NAME;
use crate::chat_completions::json_fields::{
    expect_object, expect_string, remaining_fields, require_object, require_string, take_field,
    take_string,
};
use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, Part, PartKind, Source};
use crate::media;

/// Reads one part of a content list. `None` for empty text.
pub(in crate::chat_completions) fn read_part(
    value: Value,
    path: &str,
) -> Result<Option<Part>, InvalidRequest> {
    let mut map = expect_object(value, path)?;
    let kind = require_string(&mut map, "type", path)?;
    let cache_ttl = take_cache_ttl(&mut map);
    let kind = match kind.as_str() {
        "text" => match require_string(&mut map, "text", path)? {
            text if text.is_empty() => return Ok(None),
            text => Part::text(text).kind,
        },
        "refusal" => PartKind::Refusal(require_string(&mut map, "refusal", path)?),
        "image_url" => read_image(&mut map, path)?,
        "input_audio" => read_audio(&mut map, path)?,
        "file" => read_file(&mut map, path)?,
        // An extension of several vendors.
        "video_url" => read_video(&mut map, path)?,
        _ => {
            return Err(InvalidRequest::new(
                format!("{path}.type"),
                "must be \"text\", \"image_url\", \"input_audio\", \"file\" or \"refusal\"",
            ));
        }
    };
    Ok(Some(Part {
        kind,
        cache_ttl,
        extra: ExtraFields::new(NAME, remaining_fields(map)),
    }))
}

/// The ttl of a cache marker, in OpenAI's spelling or in that of Anthropic's messages, which some clients send here.
pub(in crate::chat_completions) fn take_cache_ttl(map: &mut Map<String, Value>) -> Option<String> {
    let ttl_of = |marker: Value, default: &str| {
        let ttl = marker.get("ttl").and_then(Value::as_str).unwrap_or(default);
        ttl.to_owned()
    };
    let ttl = take_field(map, "prompt_cache_breakpoint").map(|marker| ttl_of(marker, "30m"));
    ttl.or(take_field(map, "cache_control").map(|marker| ttl_of(marker, "")))
}

fn read_image(map: &mut Map<String, Value>, path: &str) -> Result<PartKind, InvalidRequest> {
    let (url, detail) = take_url(map, "image_url", path)?;
    let field = format!("{path}.image_url.url");
    let source = parse_source(url, "", &field)?;
    match &source {
        Source::Base64 { media_type, .. } if !media_type.starts_with("image/") => {
            Err(InvalidRequest::new(
                field,
                format!("must hold an image, but its bytes are {media_type}"),
            ))
        }
        _ => Ok(PartKind::Image { source, detail }),
    }
}

fn read_video(map: &mut Map<String, Value>, path: &str) -> Result<PartKind, InvalidRequest> {
    let (url, _) = take_url(map, "video_url", path)?;
    let source = parse_source(url, "video/mp4", &format!("{path}.video_url.url"))?;
    Ok(PartKind::Video { source })
}

/// `{url, detail}`, or the bare string of the responses format.
fn take_url(
    map: &mut Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<(String, Option<String>), InvalidRequest> {
    let path = format!("{path}.{name}");
    match take_field(map, name) {
        Some(Value::String(url)) => Ok((url, None)),
        Some(value) => {
            let mut inner = expect_object(value, &path)?;
            Ok((
                require_string(&mut inner, "url", &path)?,
                take_string(&mut inner, "detail", &path)?,
            ))
        }
        None => Err(InvalidRequest::new(path, "is required")),
    }
}

/// A URL, a data URI, or base64 of a media type that is recognised from its first bytes.
fn parse_source(url: String, declared: &str, field: &str) -> Result<Source, InvalidRequest> {
    if media::is_data_uri(&url) {
        return media::parse_inline_source(&url, declared)
            .map_err(|problem| InvalidRequest::new(field, problem));
    }
    if url.contains("://") {
        return Ok(Source::Url {
            url,
            media_type: None,
        });
    }
    if media::sniff_base64_media_type(&url).is_some() {
        return media::parse_inline_source(&url, declared)
            .map_err(|problem| InvalidRequest::new(field, problem));
    }
    Err(InvalidRequest::new(
        field,
        "must be an http or https URL or a data URI",
    ))
}

fn read_audio(map: &mut Map<String, Value>, path: &str) -> Result<PartKind, InvalidRequest> {
    let mut inner = require_object(map, "input_audio", path)?;
    let path = format!("{path}.input_audio");
    let data = require_string(&mut inner, "data", &path)?;
    let format = require_string(&mut inner, "format", &path)?;
    let source = media::parse_inline_source(&data, &format!("audio/{format}"))
        .map_err(|problem| InvalidRequest::new(format!("{path}.data"), problem))?;
    Ok(PartKind::Audio { source })
}

fn read_file(map: &mut Map<String, Value>, path: &str) -> Result<PartKind, InvalidRequest> {
    let mut inner = require_object(map, "file", path)?;
    let path = format!("{path}.file");
    let name = take_string(&mut inner, "filename", &path)?;
    if let Some(id) = take_string(&mut inner, "file_id", &path)? {
        let source = Source::FileId(id);
        return Ok(PartKind::File { source, name });
    }
    let Some(data) = take_field(&mut inner, "file_data") else {
        return Err(InvalidRequest::new(
            path,
            "must have `file_data` or `file_id`",
        ));
    };
    let field = format!("{path}.file_data");
    let declared = name.as_deref().map_or("", media_type_by_extension);
    let source = media::parse_inline_source(&expect_string(data, &field)?, declared)
        .map_err(|problem| InvalidRequest::new(field, problem))?;
    Ok(PartKind::File { source, name })
}

fn media_type_by_extension(name: &str) -> &'static str {
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
