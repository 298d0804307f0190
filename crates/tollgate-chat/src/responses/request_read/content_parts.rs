//! Reads content parts: `input_text`, `input_image`, `input_file`, `input_audio`, `output_text`, `refusal`.

use serde_json::{Map, Value};

use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, Part, PartKind, Role, Source};
use crate::media;
use crate::responses::annotations::read_annotations;
use crate::responses::constants::{IMAGE_TYPES, MAX_IMAGE_BYTES, NAME, text_part_type};
use crate::responses::extra_fields::spelling_note;
use crate::responses::json::{
    invalid_value, is_web_url, optional_string, required_string, take_member,
};

/// The members that are not `null`, as the part's extra fields; other formats do not report the members in `notes` as dropped.
pub(crate) fn keep_members(members: Map<String, Value>, notes: &[&str]) -> Map<String, Value> {
    let kept = members.into_iter().filter(|(_, value)| !value.is_null());
    kept.map(|(name, value)| match notes.contains(&name.as_str()) {
        true => (spelling_note(&name), value),
        false => (name, value),
    })
    .collect()
}

pub(crate) fn read_parts(
    parts: Vec<Value>,
    path: &str,
    role: Role,
) -> Result<Vec<Part>, InvalidRequest> {
    let mut out = Vec::with_capacity(parts.len());
    for (i, part) in parts.into_iter().enumerate() {
        let path = format!("{path}[{i}]");
        let Value::Object(part) = part else {
            return Err(invalid_value(&path, "an object", &part));
        };
        out.extend(read_part(part, &path, role)?);
    }
    Ok(out)
}

/// Reads one content part. `None` for an empty text.
fn read_part(
    mut part: Map<String, Value>,
    path: &str,
    role: Role,
) -> Result<Option<Part>, InvalidRequest> {
    const TYPES: &str =
        "one of input_text, input_image, input_file, input_audio, output_text, refusal";
    let cache_ttl = take_member(&mut part, "prompt_cache_breakpoint").map(|marker| {
        let ttl = marker.get("ttl").and_then(Value::as_str);
        ttl.unwrap_or_default().to_owned()
    });
    let word = take_member(&mut part, "type").unwrap_or(Value::Null);
    let mut extra = Map::new();
    let kind = match word.as_str() {
        Some("input_text" | "output_text" | "text") => {
            let text = required_string(&mut part, "text", path)?;
            if text.is_empty() {
                return Ok(None);
            }
            if word != text_part_type(role) && word != "text" {
                extra.insert(spelling_note("type"), word);
            }
            let citations = read_annotations(take_member(&mut part, "annotations"));
            PartKind::Text {
                text,
                citations,
                signature: None,
            }
        }
        Some("refusal") => PartKind::Refusal(required_string(&mut part, "refusal", path)?),
        Some("input_image") => read_image(&mut part, path)?,
        Some("input_file") => read_file(&mut part, path)?,
        Some("input_audio") => read_audio(&mut part, path)?,
        _ => return Err(invalid_value(&format!("{path}.type"), TYPES, &word)),
    };
    extra.extend(keep_members(part, &["logprobs"]));
    let extra = ExtraFields::new(NAME, extra);
    Ok(Some(Part {
        kind,
        cache_ttl,
        extra,
    }))
}

fn read_image(part: &mut Map<String, Value>, path: &str) -> Result<PartKind, InvalidRequest> {
    let field = format!("{path}.image_url");
    let detail = optional_string(part, "detail", path)?;
    let source = match optional_string(part, "image_url", path)? {
        Some(text) if media::is_data_uri(&text) => read_data_uri_image(&text, &field)?,
        Some(url) if is_web_url(&url) => Source::Url {
            url,
            media_type: None,
        },
        Some(_) => {
            return Err(InvalidRequest::new(
                field,
                "must be a public http or https URL, or a data URI",
            ));
        }
        None => match optional_string(part, "file_id", path)? {
            Some(id) => Source::FileId(id),
            None => {
                return Err(InvalidRequest::new(
                    field,
                    "is required: a URL or a data URI",
                ));
            }
        },
    };
    Ok(PartKind::Image { source, detail })
}

fn read_data_uri_image(text: &str, field: &str) -> Result<Source, InvalidRequest> {
    let source =
        media::parse_inline_source(text, "").map_err(|why| InvalidRequest::new(field, why))?;
    if let Source::Base64 { media_type, data } = &source {
        let seen = media::sniff_base64_media_type(data);
        if seen.is_none() || !IMAGE_TYPES.contains(&media_type.as_str()) {
            let why = format!(
                "must be an image of one of the types {}",
                IMAGE_TYPES.join(", ")
            );
            return Err(InvalidRequest::new(field, why));
        }
        if media::decoded_bytes(data.as_bytes()) > MAX_IMAGE_BYTES {
            return Err(InvalidRequest::new(
                field,
                format!("must be an image of at most {MAX_IMAGE_BYTES} bytes (20 MB)"),
            ));
        }
    }
    Ok(source)
}

fn read_file(part: &mut Map<String, Value>, path: &str) -> Result<PartKind, InvalidRequest> {
    let name = optional_string(part, "filename", path)?;
    let data = optional_string(part, "file_data", path)?;
    let url = optional_string(part, "file_url", path)?;
    let id = optional_string(part, "file_id", path)?;
    let source = match (data, url, id) {
        (Some(data), _, _) => media::parse_inline_source(&data, "")
            .map_err(|why| InvalidRequest::new(format!("{path}.file_data"), why))?,
        (_, Some(url), _) if is_web_url(&url) => Source::Url {
            url,
            media_type: None,
        },
        (_, Some(_), _) => {
            let field = format!("{path}.file_url");
            return Err(InvalidRequest::new(
                field,
                "must be a public http or https URL",
            ));
        }
        (_, _, Some(id)) => Source::FileId(id),
        _ => {
            let why = "needs one of `file_data`, `file_url`, `file_id`";
            return Err(InvalidRequest::new(path, why));
        }
    };
    Ok(PartKind::File { source, name })
}

fn read_audio(part: &mut Map<String, Value>, path: &str) -> Result<PartKind, InvalidRequest> {
    let field = format!("{path}.input_audio");
    let Some(Value::Object(mut audio)) = take_member(part, "input_audio") else {
        return Err(InvalidRequest::new(
            field,
            "is required: an object with `data` and `format`",
        ));
    };
    let data = required_string(&mut audio, "data", &field)?;
    let format = required_string(&mut audio, "format", &field)?;
    let source = media::parse_inline_source(&data, &format!("audio/{format}"))
        .map_err(|why| InvalidRequest::new(format!("{field}.data"), why))?;
    Ok(PartKind::Audio { source })
}
