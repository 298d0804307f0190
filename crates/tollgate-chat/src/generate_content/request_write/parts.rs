//! Writes the parts of turns for an upstream.

use serde_json::{Map, Value, json};

use super::writer::RequestWriter;
use crate::error::InvalidRequest;
use crate::generate_content::constants::NAME;
use crate::generate_content::fields::insert_at_path;
use crate::generate_content::file_uri::{guess_media_type, is_google_upload, is_youtube};
use crate::generate_content::part_write::{parse_arguments_object, with_signature};
use crate::generate_content::{call_ids, signatures};
use crate::hub::{
    ModelCapabilities, Part, PartKind, RequestField, Role, Source, is_essential_item,
};

/// A written part, with what pairing calls and results needs.
pub(crate) enum Piece {
    /// Text, media and other parts.
    Part(Value),
    /// A function call.
    Call {
        /// The call's id.
        id: String,
        /// The function's name at the upstream.
        name: String,
        /// The part's JSON.
        part: Value,
    },
    /// The result of a call.
    Result(ToolResult),
}

/// The result of a call.
pub(crate) struct ToolResult {
    /// The call's id.
    pub(crate) id: String,
    /// The function's name at the upstream; empty if only the call has it.
    pub(crate) name: String,
    /// `functionResponse.response`.
    pub(crate) response: Value,
    /// Members of `functionResponse` other than name, id and response.
    pub(crate) rest: Map<String, Value>,
    /// Images and files that are written after all results.
    pub(crate) trailing_parts: Vec<Value>,
}

impl RequestWriter<'_> {
    /// Writes `part`. `None` if nothing of it can be sent. `path` gives its field path for errors.
    pub(crate) fn piece(
        &mut self,
        part: &Part,
        role: Role,
        path: &dyn Fn() -> String,
    ) -> Result<Option<Piece>, InvalidRequest> {
        if part.cache_ttl.is_some() {
            self.drop_field(RequestField::Cache);
        }
        self.drop_extra(&part.extra);
        let mut value = match &part.kind {
            PartKind::Text {
                text,
                citations,
                signature,
            } => {
                if !citations.is_empty() {
                    self.drop_field(RequestField::Citations);
                }
                let signature = signatures::for_upstream(signature.as_ref());
                if text.is_empty() && signature.is_none() {
                    return Ok(None);
                }
                with_signature(json!({"text": text}), signature)
            }
            PartKind::Refusal(text) => json!({"text": text}),
            PartKind::Reasoning {
                text, signature, ..
            } => {
                let signature = signatures::for_upstream(signature.as_ref());
                if text.is_empty() && signature.is_none() {
                    self.drop_field(RequestField::PastReasoning);
                    return Ok(None);
                }
                with_signature(json!({"text": text, "thought": true}), signature)
            }
            PartKind::RedactedReasoning(opaque) => match signatures::for_upstream(Some(opaque)) {
                Some(data) => with_signature(json!({"text": "", "thought": true}), Some(data)),
                None => {
                    self.drop_field(RequestField::PastReasoning);
                    return Ok(None);
                }
            },
            PartKind::ToolCall { .. } => return Ok(Some(self.tool_call(part))),
            PartKind::ToolResult { .. } => {
                return self.tool_result(part, path).map(|a| Some(Piece::Result(a)));
            }
            PartKind::FormatSpecific { format, value } => {
                match self.format_specific_part(format, value, role, path)? {
                    Some(value) => value,
                    None => return Ok(None),
                }
            }
            PartKind::Image { .. }
            | PartKind::Audio { .. }
            | PartKind::Video { .. }
            | PartKind::File { .. } => self.media_part(&part.kind, path)?,
        };
        self.add_extra(part, &mut value);
        Ok(Some(Piece::Part(value)))
    }

    /// Adds the members that only clients of this format send.
    fn add_extra(&self, part: &Part, value: &mut Value) {
        let Value::Object(members) = value else {
            return;
        };
        for (path, value) in part.extra.for_format(NAME).into_iter().flatten() {
            // A leading dot marks members that other formats need not report as dropped.
            insert_at_path(members, path.trim_start_matches('.'), value.clone());
        }
    }

    fn tool_call(&mut self, part: &Part) -> Piece {
        let PartKind::ToolCall {
            id,
            name,
            arguments,
            custom,
            signature,
        } = &part.kind
        else {
            return Piece::Part(Value::Null);
        };
        let name = self.names.upstream_name(name).to_owned();
        let mut call = Map::new();
        if !call_ids::is_generated(id) {
            call.insert("id".to_owned(), json!(id));
        }
        call.insert("name".to_owned(), json!(name));
        if !(self.is_native_client && arguments.is_empty()) {
            call.insert(
                "args".to_owned(),
                parse_arguments_object(arguments, *custom),
            );
        }
        let mut value = with_signature(
            json!({"functionCall": call}),
            signatures::for_upstream(signature.as_ref()),
        );
        self.add_extra(part, &mut value);
        Piece::Call {
            id: id.clone(),
            name,
            part: value,
        }
    }

    fn tool_result(
        &mut self,
        part: &Part,
        path: &dyn Fn() -> String,
    ) -> Result<ToolResult, InvalidRequest> {
        let PartKind::ToolResult {
            id,
            name,
            content,
            is_error,
            ..
        } = &part.kind
        else {
            return Err(InvalidRequest::new(path(), "is no tool result"));
        };
        let mut texts: Vec<&str> = Vec::new();
        let mut media = Vec::new();
        for inner in content {
            match &inner.kind {
                PartKind::Text {
                    text, citations, ..
                } => {
                    if !citations.is_empty() {
                        self.drop_field(RequestField::Citations);
                    }
                    texts.push(text);
                }
                PartKind::Refusal(text) => texts.push(text),
                PartKind::File {
                    source: Source::Text(text),
                    ..
                } => texts.push(text),
                _ => {
                    if let Some(Piece::Part(value)) = self.piece(inner, Role::User, path)? {
                        media.push(value);
                    }
                }
            }
        }
        let mut extra = json!({"functionResponse": {}});
        self.add_extra(part, &mut extra);
        let mut rest = match extra["functionResponse"].take() {
            Value::Object(rest) => rest,
            _ => Map::new(),
        };
        // Newer models accept images inside the result, older ones only after it.
        let media_in_response = self.is_native_client || self.capabilities.requires_signatures;
        if media_in_response && !media.is_empty() {
            rest.insert("parts".to_owned(), Value::Array(std::mem::take(&mut media)));
        }
        let response = match texts.is_empty() && self.is_native_client {
            true => Value::Null,
            false => response_object(&texts.join("\n"), *is_error),
        };
        Ok(ToolResult {
            id: id.clone(),
            name: name
                .as_deref()
                .map(|name| self.names.upstream_name(name).to_owned())
                .unwrap_or_default(),
            response,
            rest,
            trailing_parts: media,
        })
    }

    /// Writes parts that only other formats have. Content of the user must be sent or rejected; past output of a model's hosted tool may be dropped.
    fn format_specific_part(
        &mut self,
        format: &str,
        value: &Value,
        role: Role,
        path: &dyn Fn() -> String,
    ) -> Result<Option<Value>, InvalidRequest> {
        if format == NAME {
            return Ok(Some(value.clone()));
        }
        let kind = value.get("type").and_then(Value::as_str).unwrap_or("part");
        if role != Role::Assistant || is_essential_item(value) {
            let why = format!("of type `{kind}` is not supported by this model's provider");
            return Err(InvalidRequest::new(path(), why));
        }
        self.drop_name(kind);
        Ok(None)
    }

    fn media_part(
        &mut self,
        kind: &PartKind,
        path: &dyn Fn() -> String,
    ) -> Result<Value, InvalidRequest> {
        let source = match kind {
            PartKind::Image { source, detail } => {
                if detail.as_ref().is_some_and(|detail| detail != "auto") {
                    self.drop_name("detail");
                }
                source
            }
            PartKind::File { source, name } => {
                if name.is_some() && !matches!(source, Source::Text(_)) {
                    self.drop_field(RequestField::FileName);
                }
                source
            }
            PartKind::Audio { source } | PartKind::Video { source } => source,
            _ => {
                return Err(InvalidRequest::new(
                    path(),
                    "is not supported by this model's provider",
                ));
            }
        };
        match source {
            Source::Base64 { media_type, data } => {
                Ok(json!({"inlineData": {"mimeType": media_type, "data": data}}))
            }
            Source::Text(text) => Ok(json!({"text": text})),
            Source::FileId(uri) if self.is_native_client => {
                Ok(json!({"fileData": {"fileUri": uri}}))
            }
            Source::FileId(_) => {
                let why =
                    "is an upload at another provider, which this model's provider cannot read";
                Err(InvalidRequest::new(path(), why))
            }
            Source::Url { url, media_type } if accepts_url(kind, self.capabilities) => {
                let mut file = Map::new();
                file.insert("fileUri".to_owned(), json!(url));
                // This format requires a media type; links of other formats have none.
                let guessed = (!self.is_native_client).then(|| guess_media_type(url).to_owned());
                let media_type = media_type.clone().or(guessed);
                file.extend(media_type.map(|t| ("mimeType".to_owned(), json!(t))));
                Ok(json!({"fileData": file}))
            }
            Source::Url { .. } => {
                let why = "is a URL that this model cannot fetch";
                Err(InvalidRequest::new(path(), why))
            }
        }
    }
}

/// A result as the object that the format requires.
fn response_object(text: &str, is_error: bool) -> Value {
    if is_error {
        return json!({"error": text});
    }
    match serde_json::from_str::<Value>(text) {
        Ok(object @ Value::Object(_)) => object,
        _ => json!({"output": text}),
    }
}

/// Whether an upstream downloads the link of `part` itself: links to Google's own stores always, other links only with newer models.
pub(crate) fn accepts_url(part: &PartKind, capabilities: &ModelCapabilities) -> bool {
    let (PartKind::Image { source, .. }
    | PartKind::Audio { source }
    | PartKind::Video { source }
    | PartKind::File { source, .. }) = part
    else {
        return true;
    };
    match source {
        Source::Url { url, .. } => capabilities.accepts_urls || is_fetched_by_google(url),
        _ => true,
    }
}

fn is_fetched_by_google(url: &str) -> bool {
    url.starts_with("gs://") || is_google_upload(url) || is_youtube(url)
}
