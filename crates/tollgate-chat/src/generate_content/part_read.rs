//! Reads one part of a content: text, thinking, media, function call, function response. Used for requests, responses and streams.

use serde_json::{Map, Value};

use super::call_ids::CallIds;
use super::constants::NAME;
use super::fields::{Fields, insert_with_prefix};
use super::file_uri::{guess_media_type, is_google_upload};
use super::signatures;
use crate::error::{InvalidRequest, MalformedResponse};
use crate::hub::{ExtraFields, Opaque, Part, PartKind, Source};
use crate::media;

/// The kinds of content that a part can hold; it holds exactly one.
const KINDS: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

/// Reads a part. `None` for an empty text without a signature.
pub(crate) fn read_part(
    mut part: Fields,
    calls: &mut CallIds,
) -> Result<Option<Part>, InvalidRequest> {
    let thought = part.take_bool("thought")?.unwrap_or(false);
    let signature = part
        .take_string("thoughtSignature")?
        .filter(|text| !text.is_empty());
    let Some((kind, value)) = take_content(&mut part)? else {
        return signature_only_part(&part, thought, signature).map(Some);
    };
    let mut extra = Map::new();
    let kind = match kind {
        "text" => {
            let text = match value {
                Value::String(text) => text,
                _ => return Err(part.invalid("text", "must be a string")),
            };
            let signature = signature.map(signatures::read_signature);
            match (text.is_empty() && signature.is_none(), thought) {
                (true, _) => return Ok(None),
                (_, true) => signatures::reasoning_kind(text, signature),
                (_, false) => text_kind(text, signature),
            }
        }
        "functionCall" => {
            let call = Fields::new(value, part.member_path(kind))?;
            function_call(call, signature, calls, &mut extra)?
        }
        kind => {
            if let Some(signature) = signature {
                // Stored with a leading dot: other formats need not report it as dropped.
                extra.insert(".thoughtSignature".to_owned(), Value::String(signature));
            }
            let path = part.member_path(kind);
            match kind {
                "inlineData" => inline_data(Fields::new(value, path)?, &mut extra)?,
                "fileData" => file_data(Fields::new(value, path)?, &mut extra)?,
                "functionResponse" => {
                    function_response(Fields::new(value, path)?, calls, &mut extra)?
                }
                kind => format_specific_kind(kind, value),
            }
        }
    };
    extra.extend(part.into_rest());
    Ok(Some(Part {
        extra: ExtraFields::new(NAME, extra),
        ..Part::new(kind)
    }))
}

/// Reads a part of a response, where missing arguments mean an empty object.
pub(crate) fn read_response_part(
    value: Value,
    at: usize,
    calls: &mut CallIds,
) -> Result<Option<Part>, MalformedResponse> {
    let malformed = |error: InvalidRequest| {
        MalformedResponse::Invalid(format!(
            "a part of the response is malformed: {}",
            error.field
        ))
    };
    let fields = Fields::new(value, format!("parts[{at}]")).map_err(malformed)?;
    let mut part = match fields.is_empty() {
        true => return Ok(None),
        false => read_part(fields, calls).map_err(malformed)?,
    };
    if let Some(Part {
        kind: PartKind::ToolCall { arguments, .. },
        ..
    }) = &mut part
        && arguments.is_empty()
    {
        arguments.push_str("{}");
    }
    Ok(part)
}

/// Takes out the content of a part, with its kind.
fn take_content(part: &mut Fields) -> Result<Option<(&'static str, Value)>, InvalidRequest> {
    let mut content = None;
    for kind in KINDS {
        let Some(value) = part.take(kind) else {
            continue;
        };
        if content.replace((*kind, value)).is_some() {
            let why = "must hold one kind of content, but holds several";
            return Err(InvalidRequest::new(part.path(), why));
        }
    }
    Ok(content)
}

/// A part that holds only a signature.
fn signature_only_part(
    part: &Fields,
    thought: bool,
    signature: Option<String>,
) -> Result<Part, InvalidRequest> {
    let Some(signature) = signature.map(signatures::read_signature) else {
        let kinds = KINDS[..5].join("`, `");
        return Err(InvalidRequest::new(
            part.path(),
            format!("must hold one of `{kinds}`"),
        ));
    };
    Ok(Part::new(match thought {
        true => signatures::reasoning_kind(String::new(), Some(signature)),
        false => text_kind(String::new(), Some(signature)),
    }))
}

fn text_kind(text: String, signature: Option<Opaque>) -> PartKind {
    PartKind::Text {
        text,
        citations: Vec::new(),
        signature,
    }
}

fn format_specific_kind(kind: &str, value: Value) -> PartKind {
    let mut members = Map::new();
    members.insert(kind.to_owned(), value);
    PartKind::FormatSpecific {
        format: NAME,
        value: Value::Object(members),
    }
}

fn inline_data(
    mut blob: Fields,
    extra: &mut Map<String, Value>,
) -> Result<PartKind, InvalidRequest> {
    let declared = blob.take_required_string("mimeType")?;
    let data = blob.take_required_string("data")?;
    let source =
        media::parse_inline_source(&data, &declared).map_err(|why| blob.invalid("data", &why))?;
    let media_type = match &source {
        Source::Base64 { media_type, .. } => media_type.clone(),
        _ => declared,
    };
    insert_with_prefix(extra, "inlineData", blob.into_rest());
    Ok(kind_for_media_type(&media_type, source))
}

fn file_data(mut file: Fields, extra: &mut Map<String, Value>) -> Result<PartKind, InvalidRequest> {
    let url = file.take_required_string("fileUri")?;
    let declared = file
        .take_string("mimeType")?
        .filter(|text| !text.is_empty());
    insert_with_prefix(extra, "fileData", file.into_rest());
    let guessed = declared
        .clone()
        .unwrap_or_else(|| guess_media_type(&url).to_owned());
    let source = if is_google_upload(&url) {
        // The hub has no other field for the declared type of an upload.
        if let Some(declared) = declared {
            extra.insert(".fileData.mimeType".to_owned(), Value::String(declared));
        }
        Source::FileId(url)
    } else {
        Source::Url {
            url,
            media_type: declared,
        }
    };
    Ok(kind_for_media_type(&guessed, source))
}

fn kind_for_media_type(media_type: &str, source: Source) -> PartKind {
    match media_type.split('/').next() {
        Some("image") => PartKind::Image {
            source,
            detail: None,
        },
        Some("audio") => PartKind::Audio { source },
        Some("video") => PartKind::Video { source },
        _ => PartKind::File { source, name: None },
    }
}

fn function_call(
    mut call: Fields,
    signature: Option<String>,
    calls: &mut CallIds,
    extra: &mut Map<String, Value>,
) -> Result<PartKind, InvalidRequest> {
    let name = call.take_required_string("name")?;
    let arguments = match call.take("args") {
        None => String::new(),
        Some(args @ Value::Object(_)) => args.to_string(),
        Some(_) => return Err(call.invalid("args", "must be an object")),
    };
    let id = call.take_string("id")?.filter(|id| !id.is_empty());
    insert_with_prefix(extra, "functionCall", call.into_rest());
    Ok(PartKind::ToolCall {
        id: calls.call_id(id, &name),
        name,
        arguments,
        custom: false,
        signature: signature.map(signatures::read_signature),
    })
}

fn function_response(
    mut response: Fields,
    calls: &mut CallIds,
    extra: &mut Map<String, Value>,
) -> Result<PartKind, InvalidRequest> {
    let name = response.take_required_string("name")?;
    let id = response.take_string("id")?.filter(|id| !id.is_empty());
    let (text, is_error) = match response.take("response") {
        None => (None, false),
        Some(Value::Object(response)) => {
            let (text, is_error) = response_text(response);
            (Some(text), is_error)
        }
        Some(_) => return Err(response.invalid("response", "must be an object")),
    };
    let plain = text.is_some();
    let mut content: Vec<Part> = text.map(Part::text).into_iter().collect();
    for (at, part) in response
        .take_array("parts")?
        .into_iter()
        .flatten()
        .enumerate()
    {
        let path = format!("{}[{at}]", response.member_path("parts"));
        content.extend(read_part(Fields::new(part, path)?, calls)?);
    }
    insert_with_prefix(extra, "functionResponse", response.into_rest());
    Ok(PartKind::ToolResult {
        id: calls.result_id(id, &name),
        name: Some(name),
        plain: plain && content.len() == 1,
        content,
        is_error,
        custom: false,
    })
}

/// The text of a function response, and whether it is an error: the string in `output` or `error`
/// if that is the only member, otherwise the JSON of the object. A string that is itself a JSON
/// object stays wrapped, so that it is written back unchanged.
fn response_text(mut response: Map<String, Value>) -> (String, bool) {
    if response.len() == 1 {
        if let Some(Value::String(text)) = response.get_mut("error") {
            return (std::mem::take(text), true);
        }
        if let Some(Value::String(text)) = response.get_mut("output") {
            let is_object = serde_json::from_str::<Map<String, Value>>(text).is_ok();
            if !is_object {
                return (std::mem::take(text), false);
            }
        }
    }
    (Value::Object(response).to_string(), false)
}
