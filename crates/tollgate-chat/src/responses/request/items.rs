//! The items of `input` read into turns: one item is one turn.

use serde_json::{Map, Value};

use super::read::{taken, wrong};
use crate::error::Bad;
use crate::hub::{Citation, Kind, Opaque, Own, Part, Role, Source, Turn};
use crate::media;
use crate::responses::glance::is_web_url;
use crate::responses::opaque::Sealed;
use crate::responses::wire::{IMAGE_MAX, IMAGE_TYPES, NAME, note};

/// Reads the list.
pub(super) fn read_items(items: Vec<Value>) -> Result<Vec<Turn>, Bad> {
    let mut turns = Vec::with_capacity(items.len());
    for (i, item) in items.into_iter().enumerate() {
        let path = format!("input[{i}]");
        let Value::Object(item) = item else {
            return Err(wrong(&path, "an object", &item));
        };
        read_item(item, &path, &mut turns)?;
    }
    Ok(turns)
}

fn read_item(item: Map<String, Value>, path: &str, turns: &mut Vec<Turn>) -> Result<(), Bad> {
    let kind = match item.get("type").unwrap_or(&Value::Null) {
        Value::String(kind) => kind.clone(),
        Value::Null if item.contains_key("role") => "message".to_owned(),
        Value::Null if item.contains_key("id") => "item_reference".to_owned(),
        Value::Null => return Err(Bad::new(format!("{path}.role"), ROLES)),
        odd => return Err(wrong(&format!("{path}.type"), "a string", odd)),
    };
    let turn = match kind.as_str() {
        "message" => read_message(item, path)?,
        "function_call" => one(Role::Assistant, read_call(item, path, false)?),
        "custom_tool_call" => one(Role::Assistant, read_call(item, path, true)?),
        "function_call_output" => one(Role::User, read_result(item, path, false)?),
        "custom_tool_call_output" => one(Role::User, read_result(item, path, true)?),
        "reasoning" => return read_reasoning(item, path, turns),
        _ => {
            let role = match kind.ends_with("_output") || kind.ends_with("_response") {
                true => Role::User,
                false => Role::Assistant,
            };
            let value = Value::Object(item);
            one(
                role,
                Part::of(Kind::Foreign {
                    format: NAME,
                    value,
                }),
            )
        }
    };
    turns.push(turn);
    Ok(())
}

const ROLES: &str = "is required: one of user, assistant, system, developer";

fn one(role: Role, part: Part) -> Turn {
    Turn::of(role, vec![part])
}

fn read_message(mut item: Map<String, Value>, path: &str) -> Result<Turn, Bad> {
    let role_path = format!("{path}.role");
    let word = taken(&mut item, "role").unwrap_or(Value::Null);
    let role = match word.as_str() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system" | "developer") => Role::System,
        _ => {
            let allowed = "one of user, assistant, system, developer";
            return Err(wrong(&role_path, allowed, &word));
        }
    };
    let mut own = Map::new();
    if word == "developer" {
        own.insert(note("role"), word);
    }
    let content = taken(&mut item, "content").unwrap_or(Value::Null);
    let path = format!("{path}.content");
    let plain = content.is_string();
    let parts = match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Part::text(text)],
        Value::Array(parts) => read_parts(parts, &path, role)?,
        odd => return Err(wrong(&path, "a string or an array of parts", &odd)),
    };
    own.extend(formal(item, &["type", "id", "status", "phase"]));
    Ok(Turn {
        plain,
        own: Own::of(NAME, own),
        ..Turn::of(role, parts)
    })
}

/// Members to keep; those in `notes` under a note's name.
fn formal(members: Map<String, Value>, notes: &[&str]) -> Map<String, Value> {
    let kept = members.into_iter().filter(|(_, value)| !value.is_null());
    kept.map(|(name, value)| match notes.contains(&name.as_str()) {
        true => (note(&name), value),
        false => (name, value),
    })
    .collect()
}

fn read_parts(parts: Vec<Value>, path: &str, role: Role) -> Result<Vec<Part>, Bad> {
    let mut out = Vec::with_capacity(parts.len());
    for (i, part) in parts.into_iter().enumerate() {
        let path = format!("{path}[{i}]");
        let Value::Object(part) = part else {
            return Err(wrong(&path, "an object", &part));
        };
        out.extend(read_part(part, &path, role)?);
    }
    Ok(out)
}

/// One content part; none for an empty text.
fn read_part(mut part: Map<String, Value>, path: &str, role: Role) -> Result<Option<Part>, Bad> {
    const TYPES: &str =
        "one of input_text, input_image, input_file, input_audio, output_text, refusal";
    let cache = taken(&mut part, "prompt_cache_breakpoint").map(|marker| {
        let ttl = marker.get("ttl").and_then(Value::as_str);
        ttl.unwrap_or_default().to_owned()
    });
    let word = taken(&mut part, "type").unwrap_or(Value::Null);
    let mut own = Map::new();
    let kind = match word.as_str() {
        Some("input_text" | "output_text" | "text") => {
            let text = text_member(&mut part, "text", path)?;
            if text.is_empty() {
                return Ok(None);
            }
            if word != text_type(role) && word != "text" {
                own.insert(note("type"), word);
            }
            let citations = read_annotations(taken(&mut part, "annotations"));
            Kind::Text {
                text,
                citations,
                signature: None,
            }
        }
        Some("refusal") => Kind::Refusal(text_member(&mut part, "refusal", path)?),
        Some("input_image") => read_image(&mut part, path)?,
        Some("input_file") => read_file(&mut part, path)?,
        Some("input_audio") => read_audio(&mut part, path)?,
        _ => return Err(wrong(&format!("{path}.type"), TYPES, &word)),
    };
    own.extend(formal(part, &["logprobs"]));
    let own = Own::of(NAME, own);
    Ok(Some(Part { kind, cache, own }))
}

/// What a text part is called in a turn of `role`.
pub(super) fn text_type(role: Role) -> &'static str {
    match role {
        Role::Assistant => "output_text",
        Role::System | Role::User => "input_text",
    }
}

fn text_member(part: &mut Map<String, Value>, name: &str, path: &str) -> Result<String, Bad> {
    match taken(part, name).unwrap_or(Value::Null) {
        Value::String(text) => Ok(text),
        odd => Err(wrong(&format!("{path}.{name}"), "a string", &odd)),
    }
}

fn optional(part: &mut Map<String, Value>, name: &str, path: &str) -> Result<Option<String>, Bad> {
    match taken(part, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(odd) => Err(wrong(&format!("{path}.{name}"), "a string", &odd)),
    }
}

fn read_image(part: &mut Map<String, Value>, path: &str) -> Result<Kind, Bad> {
    let field = format!("{path}.image_url");
    let detail = optional(part, "detail", path)?;
    let source = match optional(part, "image_url", path)? {
        Some(text) if media::is_data_uri(&text) => read_picture(&text, &field)?,
        Some(url) if is_web_url(&url) => Source::Url {
            url,
            media_type: None,
        },
        Some(_) => {
            return Err(Bad::new(
                field,
                "must be a public http or https URL, or a data URI",
            ));
        }
        None => match optional(part, "file_id", path)? {
            Some(id) => Source::FileId(id),
            None => return Err(Bad::new(field, "is required: a URL or a data URI")),
        },
    };
    Ok(Kind::Image { source, detail })
}

fn read_picture(text: &str, field: &str) -> Result<Source, Bad> {
    let source = media::inline(text, "").map_err(|why| Bad::new(field, why))?;
    if let Source::Base64 { media_type, data } = &source {
        let seen = media::sniff_base64(data);
        if seen.is_none() || !IMAGE_TYPES.contains(&media_type.as_str()) {
            let why = format!(
                "must hold a picture of one of the types {}",
                IMAGE_TYPES.join(", ")
            );
            return Err(Bad::new(field, why));
        }
        if data.len() as u64 / 4 * 3 > IMAGE_MAX {
            return Err(Bad::new(field, "must hold a picture of at most 20 MB"));
        }
    }
    Ok(source)
}

fn read_file(part: &mut Map<String, Value>, path: &str) -> Result<Kind, Bad> {
    let name = optional(part, "filename", path)?;
    let data = optional(part, "file_data", path)?;
    let url = optional(part, "file_url", path)?;
    let id = optional(part, "file_id", path)?;
    let source = match (data, url, id) {
        (Some(data), _, _) => {
            media::inline(&data, "").map_err(|why| Bad::new(format!("{path}.file_data"), why))?
        }
        (_, Some(url), _) if is_web_url(&url) => Source::Url {
            url,
            media_type: None,
        },
        (_, Some(_), _) => {
            let field = format!("{path}.file_url");
            return Err(Bad::new(field, "must be a public http or https URL"));
        }
        (_, _, Some(id)) => Source::FileId(id),
        _ => {
            let why = "needs one of `file_data`, `file_url`, `file_id`";
            return Err(Bad::new(path, why));
        }
    };
    Ok(Kind::File { source, name })
}

fn read_audio(part: &mut Map<String, Value>, path: &str) -> Result<Kind, Bad> {
    let field = format!("{path}.input_audio");
    let Some(Value::Object(mut audio)) = taken(part, "input_audio") else {
        return Err(Bad::new(
            field,
            "is required: an object with `data` and `format`",
        ));
    };
    let data = text_member(&mut audio, "data", &field)?;
    let format = text_member(&mut audio, "format", &field)?;
    let source = media::inline(&data, &format!("audio/{format}"))
        .map_err(|why| Bad::new(format!("{field}.data"), why))?;
    Ok(Kind::Audio { source })
}

/// `annotations` as citations: links in the hub's own fields, the rest as it is.
pub(in crate::responses) fn read_annotations(list: Option<Value>) -> Vec<Citation> {
    let Some(Value::Array(list)) = list else {
        return Vec::new();
    };
    list.into_iter().filter_map(read_annotation).collect()
}

/// One annotation; none where it is no object.
pub(in crate::responses) fn read_annotation(value: Value) -> Option<Citation> {
    let Value::Object(mut members) = value else {
        return None;
    };
    let is_link = members
        .get("type")
        .is_some_and(|kind| kind == "url_citation");
    let mut citation = Citation {
        url: String::new(),
        title: String::new(),
        start: None,
        end: None,
        cited_text: None,
        own: Own::NONE,
    };
    if is_link {
        members.shift_remove("type");
        let mut text = |name: &str| match taken(&mut members, name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        (citation.url, citation.title) = (text("url"), text("title"));
        let mut place = |name: &str| taken(&mut members, name).and_then(|at| at.as_u64());
        (citation.start, citation.end) = (place("start_index"), place("end_index"));
    } else if let Some(name) = members.get("filename").and_then(Value::as_str) {
        citation.title = name.to_owned();
    }
    citation.own = Own::of(NAME, members);
    Some(citation)
}

fn read_call(mut item: Map<String, Value>, path: &str, custom: bool) -> Result<Part, Bad> {
    let mut named = |name: &str| match text_member(&mut item, name, path)? {
        text if text.is_empty() => Err(Bad::new(format!("{path}.{name}"), "must not be empty")),
        text => Ok(text),
    };
    let (id, name) = (named("call_id")?, named("name")?);
    let arguments = text_member(&mut item, if custom { "input" } else { "arguments" }, path)?;
    item.shift_remove("type");
    let kind = Kind::ToolCall {
        id,
        name,
        arguments,
        custom,
        signature: None,
    };
    let own = Own::of(NAME, formal(item, &["id", "status"]));
    Ok(Part {
        own,
        ..Part::of(kind)
    })
}

fn read_result(mut item: Map<String, Value>, path: &str, custom: bool) -> Result<Part, Bad> {
    let id = text_member(&mut item, "call_id", path)?;
    if id.is_empty() {
        return Err(Bad::new(format!("{path}.call_id"), "must not be empty"));
    }
    let name = optional(&mut item, "name", path)?;
    let output = taken(&mut item, "output").unwrap_or(Value::Null);
    let plain = output.is_string();
    let path = format!("{path}.output");
    let content = match output {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Part::text(text)],
        Value::Array(parts) => read_parts(parts, &path, Role::User)?,
        odd => return Err(wrong(&path, "a string or an array of parts", &odd)),
    };
    item.shift_remove("type");
    let kind = Kind::ToolResult {
        id,
        name,
        content,
        plain,
        is_error: false,
        custom,
    };
    let own = Own::of(NAME, formal(item, &["id", "status"]));
    Ok(Part {
        own,
        ..Part::of(kind)
    })
}

/// A reasoning item: one part per summary and per raw text, what proves them on the last. What was sealed into an item of its own
/// because it has no other place goes back to where it belongs.
fn read_reasoning(
    mut item: Map<String, Value>,
    path: &str,
    turns: &mut Vec<Turn>,
) -> Result<(), Bad> {
    let id = optional(&mut item, "id", path)?;
    let sealed = optional(&mut item, "encrypted_content", path)?.map(|text| Sealed::open(&text));
    let mut parts = Vec::new();
    for (list, is_summary) in [("summary", true), ("content", false)] {
        for text in read_texts(taken(&mut item, list), &format!("{path}.{list}"))? {
            parts.push(reasoning(text, is_summary, &id));
        }
    }
    match sealed {
        Some(Sealed::OnCall(call, opaque)) => {
            sign_call(turns, &call, opaque);
            return Ok(());
        }
        Some(Sealed::OnText(opaque)) => {
            sign_text(turns, opaque);
            return Ok(());
        }
        Some(Sealed::Redacted(opaque)) => parts.push(Part::of(Kind::Redacted(opaque))),
        Some(Sealed::Signature(opaque)) => {
            if parts.is_empty() {
                parts.push(reasoning(String::new(), true, &id));
            }
            if let Some(Kind::Reasoning { signature, .. }) = parts.last_mut().map(|p| &mut p.kind) {
                *signature = Some(opaque);
            }
        }
        None if parts.is_empty() => parts.push(reasoning(String::new(), true, &id)),
        None => {}
    }
    item.shift_remove("type");
    if let Some(first) = parts.first_mut() {
        first.own = Own::of(NAME, formal(item, &["status"]));
    }
    turns.push(Turn::of(Role::Assistant, parts));
    Ok(())
}

fn reasoning(text: String, summary: bool, id: &Option<String>) -> Part {
    Part::of(Kind::Reasoning {
        text,
        signature: None,
        id: id.clone(),
        summary,
    })
}

fn read_texts(list: Option<Value>, path: &str) -> Result<Vec<String>, Bad> {
    let list = match list {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(odd) => return Err(wrong(path, "an array of texts", &odd)),
    };
    let text = |(i, entry): (usize, &Value)| match entry.get("text") {
        Some(Value::String(text)) => Ok(text.clone()),
        other => {
            let odd = other.unwrap_or(&Value::Null);
            Err(wrong(&format!("{path}[{i}].text"), "a string", odd))
        }
    };
    list.iter().enumerate().map(text).collect()
}

fn sign_call(turns: &mut [Turn], call: &str, opaque: Opaque) {
    for part in turns
        .iter_mut()
        .rev()
        .flat_map(|turn| turn.parts.iter_mut().rev())
    {
        if let Kind::ToolCall { id, signature, .. } = &mut part.kind
            && id == call
        {
            *signature = Some(opaque);
            return;
        }
    }
}

fn sign_text(turns: &mut [Turn], opaque: Opaque) {
    let last = turns
        .iter_mut()
        .rev()
        .find(|turn| turn.role == Role::Assistant);
    let parts = last
        .into_iter()
        .flat_map(|turn| turn.parts.iter_mut().rev());
    for part in parts {
        if let Kind::Text { signature, .. } = &mut part.kind {
            *signature = Some(opaque);
            return;
        }
    }
}
