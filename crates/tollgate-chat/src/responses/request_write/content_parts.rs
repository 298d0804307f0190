//! Writes content parts: text, refusals, images, files and audio.

use serde_json::{Map, Value, json};

use super::input_items::InputWriter;
use super::tools::type_of_foreign;
use crate::error::InvalidRequest;
use crate::hub::{Citation, Part, PartKind, RequestField, Role, Source, extract_text};
use crate::media::format_data_uri;
use crate::responses::annotations::write_annotation;
use crate::responses::constants::{IMAGE_TYPES, text_part_type};
use crate::responses::extra_fields::write_extra_fields;

impl InputWriter<'_> {
    /// Writes a content part. `path` gives its field path for errors.
    pub(crate) fn content_part(
        &mut self,
        part: &Part,
        role: Role,
        path: &dyn Fn() -> String,
    ) -> Result<Value, InvalidRequest> {
        let unsupported = |why: String| {
            let why = format!("{why}, which the upstream of this model does not accept");
            InvalidRequest::new(path(), why)
        };
        let mut value = match &part.kind {
            PartKind::Text {
                text,
                citations,
                signature,
            } => {
                if signature.is_some() {
                    self.dropped_fields.push(RequestField::PastReasoning);
                }
                let part = text_part(text, citations, role);
                let annotations = part.get("annotations").and_then(Value::as_array);
                if annotations.map_or(0, Vec::len) < citations.len() {
                    self.dropped_fields.push(RequestField::Citations);
                }
                part
            }
            PartKind::Refusal(text) => part_of_type("refusal", [("refusal", text.as_str().into())]),
            PartKind::Image { source, detail } => {
                let mut value = self.image_part(source).map_err(unsupported)?;
                if let Some(detail) = detail {
                    value.insert("detail".to_owned(), detail.as_str().into());
                }
                value
            }
            PartKind::File { source, name } => self
                .file_part(source, name.as_deref())
                .map_err(unsupported)?,
            PartKind::Audio {
                source: Source::Base64 { media_type, data },
            } if self.is_own => {
                let format = media_type.strip_prefix("audio/").unwrap_or(media_type);
                let audio = json!({"data": data, "format": format});
                part_of_type("input_audio", [("input_audio", audio)])
            }
            PartKind::Audio { .. } => return Err(unsupported("is audio".to_owned())),
            PartKind::Video { .. } => return Err(unsupported("is a video".to_owned())),
            PartKind::FormatSpecific { value, .. } => match extract_text(value) {
                Some(text) => text_part(&text, &[], role),
                None => return Err(unsupported(format!("is a `{}`", type_of_foreign(value)))),
            },
            _ => return Err(unsupported("is not allowed here".to_owned())),
        };
        if let Some(ttl) = &part.cache_ttl {
            match self.cache_marker(ttl) {
                Some(marker) => _ = value.insert("prompt_cache_breakpoint".to_owned(), marker),
                None => self.dropped_fields.push(RequestField::Cache),
            }
        }
        write_extra_fields(&part.extra, &mut value);
        Ok(Value::Object(value))
    }

    pub(crate) fn image_part(&self, source: &Source) -> Result<Map<String, Value>, String> {
        let (member, value) = match source {
            Source::Url { url, .. } => ("image_url", url.clone()),
            Source::Base64 { media_type, data } if IMAGE_TYPES.contains(&media_type.as_str()) => {
                ("image_url", format_data_uri(media_type, data))
            }
            Source::Base64 { media_type, .. } => {
                return Err(format!("is an image of type {media_type}"));
            }
            Source::FileId(id) if self.has_openai_uploads() => ("file_id", id.clone()),
            _ => return Err("is an image stored at another vendor".to_owned()),
        };
        Ok(part_of_type("input_image", [(member, value.into())]))
    }

    pub(crate) fn file_part(
        &self,
        source: &Source,
        name: Option<&str>,
    ) -> Result<Map<String, Value>, String> {
        let (member, value) = match source {
            Source::Url { url, .. } => ("file_url", url.clone()),
            Source::Base64 { media_type, data } => ("file_data", format_data_uri(media_type, data)),
            Source::FileId(id) if self.has_openai_uploads() => ("file_id", id.clone()),
            Source::FileId(_) => return Err("is a file stored at another vendor".to_owned()),
            Source::Text(text) => return Ok(plain_document(text, name)),
        };
        let mut file = part_of_type("input_file", [(member, value.into())]);
        let name = match (name, source) {
            (Some(name), _) => Some(name.to_owned()),
            (None, Source::Base64 { media_type, .. }) if !self.is_own => {
                Some(file_name(media_type))
            }
            _ => None,
        };
        if let Some(name) = name {
            file.insert("filename".to_owned(), name.into());
        }
        Ok(file)
    }

    /// Whether file ids of this client refer to uploads at OpenAI.
    pub(crate) fn has_openai_uploads(&self) -> bool {
        self.is_own || self.request.client_format.name == "chat-completions"
    }

    /// A cache breakpoint, if the client's format has OpenAI's cache ttls.
    pub(crate) fn cache_marker(&self, ttl: &str) -> Option<Value> {
        match ttl {
            "" if self.is_own => Some(json!({"mode": "explicit"})),
            _ if self.is_own || (self.has_openai_uploads() && matches!(ttl, "30m" | "12h")) => {
                Some(json!({"mode": "explicit", "ttl": ttl}))
            }
            _ => None,
        }
    }
}

/// A part of that `type` with these members.
fn part_of_type<const N: usize>(kind: &str, members: [(&str, Value); N]) -> Map<String, Value> {
    let kind = std::iter::once(("type", Value::from(kind)));
    let members = kind.chain(members);
    members
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn text_part(text: &str, citations: &[Citation], role: Role) -> Map<String, Value> {
    let mut value = part_of_type(text_part_type(role), [("text", text.into())]);
    if role == Role::Assistant {
        let list = citations
            .iter()
            .filter_map(|citation| write_annotation(citation, text));
        value.insert("annotations".to_owned(), Value::Array(list.collect()));
    }
    value
}

/// A plain text document as a text part: not every upstream accepts text files.
fn plain_document(text: &str, name: Option<&str>) -> Map<String, Value> {
    let text = match name {
        Some(name) => format!("{name}\n\n{text}"),
        None => text.to_owned(),
    };
    part_of_type("input_text", [("text", text.into())])
}

/// A file name for a file without one: OpenAI requires it.
fn file_name(media_type: &str) -> String {
    let ending = match media_type {
        "application/pdf" => "pdf",
        "text/plain" => "txt",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/markdown" => "md",
        "application/json" => "json",
        _ => "bin",
    };
    format!("document.{ending}")
}
