//! Writes one part of a content for a client. The writer for upstreams (request_write/parts.rs)
//! shares the helpers.

use serde_json::{Map, Value, json};

use super::call_ids;
use super::constants::NAME;
use super::fields::insert_at_path;
use super::signatures;
use crate::hub::{Part, PartKind, Source};

/// Writes a part for a client. `None` if this format has no such part.
pub(crate) fn write_part(part: &Part) -> Option<Value> {
    let mut value = match &part.kind {
        PartKind::Text {
            text, signature, ..
        } => {
            if text.is_empty() && signature.is_none() {
                return None;
            }
            with_signature(
                json!({"text": text}),
                signature.as_ref().map(signatures::for_client).as_deref(),
            )
        }
        PartKind::Refusal(text) => json!({"text": text}),
        PartKind::Reasoning {
            text, signature, ..
        } => {
            if text.is_empty() && signature.is_none() {
                return None;
            }
            let thought = json!({"text": text, "thought": true});
            with_signature(
                thought,
                signature.as_ref().map(signatures::for_client).as_deref(),
            )
        }
        PartKind::RedactedReasoning(opaque) => with_signature(
            json!({"text": "", "thought": true}),
            Some(&signatures::redacted_for_client(opaque)),
        ),
        PartKind::ToolCall {
            id,
            name,
            arguments,
            custom,
            signature,
        } => {
            let mut call = Map::new();
            if !call_ids::is_generated(id) {
                call.insert("id".to_owned(), json!(id));
            }
            call.insert("name".to_owned(), json!(name));
            call.insert(
                "args".to_owned(),
                parse_arguments_object(arguments, *custom),
            );
            with_signature(
                json!({"functionCall": call}),
                signature.as_ref().map(signatures::for_client).as_deref(),
            )
        }
        PartKind::Image { source, .. }
        | PartKind::Audio { source }
        | PartKind::Video { source }
        | PartKind::File { source, .. } => media_part(source),
        PartKind::FormatSpecific { format, value } if *format == NAME => value.clone(),
        PartKind::FormatSpecific { .. } | PartKind::ToolResult { .. } => return None,
    };
    if let Value::Object(members) = &mut value {
        for (path, value) in part.extra.for_format(NAME).into_iter().flatten() {
            insert_at_path(members, path.trim_start_matches('.'), value.clone());
        }
    }
    Some(value)
}

fn media_part(source: &Source) -> Value {
    match source {
        Source::Base64 { media_type, data } => {
            json!({"inlineData": {"mimeType": media_type, "data": data}})
        }
        Source::Text(text) => json!({"text": text}),
        Source::FileId(uri) => json!({"fileData": {"fileUri": uri}}),
        Source::Url {
            url,
            media_type: Some(media_type),
        } => {
            json!({"fileData": {"fileUri": url, "mimeType": media_type}})
        }
        Source::Url {
            url,
            media_type: None,
        } => json!({"fileData": {"fileUri": url}}),
    }
}

pub(super) fn with_signature(mut part: Value, signature: Option<&str>) -> Value {
    if let Some(signature) = signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

/// The arguments as the object that the format requires. Arguments that are not an object are wrapped in one.
pub(crate) fn parse_arguments_object(arguments: &str, custom: bool) -> Value {
    if custom {
        return json!({"input": arguments});
    }
    match serde_json::from_str::<Value>(arguments) {
        Ok(object @ Value::Object(_)) => object,
        Ok(Value::Null) => json!({}),
        _ if arguments.trim().is_empty() => json!({}),
        _ => json!({"_raw": arguments}),
    }
}
