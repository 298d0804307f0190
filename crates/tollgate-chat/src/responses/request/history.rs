//! The turns as items of `input`.

use serde_json::{Map, Value, json};

use super::items::text_type;
use super::pairs::Item;
use super::tools::foreign_name;
use crate::error::Bad;
use crate::hub::{Citation, Field, Kind, Part, Request, Role, Source, ToolNames, Turn, text_in};
use crate::media::to_data_uri;
use crate::responses::opaque::{Sealed, VENDOR, without_id};
use crate::responses::wire::{IMAGE_TYPES, MINTED, NAME, put_back};

/// Writes turns one after another.
pub(super) struct History<'a> {
    request: &'a Request,
    names: &'a ToolNames,
    /// The client speaks this format: every form is kept as it came.
    is_own: bool,
    pub(super) items: Vec<Item>,
    /// Fields of the client that some part did without.
    pub(super) weakened: Vec<Field>,
    /// Parts of other formats that were left out, by their names.
    pub(super) lost: Vec<String>,
}

/// What is gathered of a message until another item begins.
struct Gathering<'a> {
    turn: &'a Turn,
    content: Vec<Value>,
    /// Whether the content can be one string.
    is_plain: bool,
    wrote: bool,
}

impl<'a> History<'a> {
    pub(super) fn new(request: &'a Request, names: &'a ToolNames) -> Self {
        Self {
            request,
            names,
            is_own: request.client == NAME,
            items: Vec::new(),
            weakened: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Adds the items of one turn; `at` is its place among the turns.
    pub(super) fn turn(&mut self, at: usize, turn: &'a Turn) -> Result<(), Bad> {
        let mut message = Gathering {
            turn,
            content: Vec::new(),
            is_plain: turn.plain,
            wrote: false,
        };
        // Results stand right behind their calls; what a person adds comes after them.
        let is_result = |part: &Part| matches!(part.kind, Kind::ToolResult { .. });
        let parts = turn.parts.iter().enumerate();
        let (results, rest): (Vec<_>, Vec<_>) = match self.is_own {
            true => (Vec::new(), parts.collect()),
            false => parts.partition(|(_, part)| is_result(part)),
        };
        for (i, part) in results.into_iter().chain(rest) {
            let request = self.request;
            self.part(part, &mut message, &|| request.path_of(at, i))?;
        }
        self.flush(&mut message);
        if !message.wrote && turn.parts.is_empty() && self.is_own {
            self.message(turn, Vec::new(), turn.plain);
        }
        Ok(())
    }

    fn part(
        &mut self,
        part: &'a Part,
        message: &mut Gathering<'a>,
        path: &dyn Fn() -> String,
    ) -> Result<(), Bad> {
        let role = message.turn.role;
        match &part.kind {
            Kind::ToolCall { .. } => {
                self.flush(message);
                message.wrote = true;
                self.call(part);
            }
            Kind::ToolResult { .. } => {
                self.flush(message);
                message.wrote = true;
                self.result(part, path)?;
            }
            Kind::Reasoning { .. } | Kind::Redacted(_) => {
                self.flush(message);
                message.wrote = true;
                self.reasoning(part);
            }
            Kind::Foreign { format, value } if *format == NAME => {
                self.flush(message);
                message.wrote = true;
                self.items.push(Item::Other {
                    value: value.clone(),
                    ends_calls: false,
                });
            }
            // What a model's hosted tool once did may go; what the user shows must be seen, and so must what stands for turns.
            Kind::Foreign { value, .. }
                if role == Role::Assistant && value["type"] != "compaction" =>
            {
                self.lost.push(foreign_name(value).to_owned());
            }
            Kind::Image { .. } | Kind::File { .. } if role == Role::Assistant && !self.is_own => {
                // The model's own pictures have no place in its messages here.
                self.flush(message);
                message.wrote = true;
                let value = self.content(part, Role::User, path)?;
                let value = json!({"role": "user", "content": [value]});
                self.items.push(Item::Other {
                    value,
                    ends_calls: true,
                });
            }
            // Empty text is only there for the signature on it.
            Kind::Text {
                text, signature, ..
            } if text.is_empty() && signature.is_some() => {
                self.weakened.push(Field::PastReasoning);
            }
            kind => {
                let value = self.content(part, role, path)?;
                message.is_plain &= matches!(kind, Kind::Text { .. }) && part.cache.is_none();
                message.content.push(value);
            }
        }
        Ok(())
    }

    fn flush(&mut self, message: &mut Gathering<'_>) {
        if !message.content.is_empty() {
            let content = std::mem::take(&mut message.content);
            self.message(message.turn, content, message.is_plain);
            (message.wrote, message.is_plain) = (true, message.turn.plain);
        }
    }

    fn message(&mut self, turn: &Turn, mut content: Vec<Value>, is_plain: bool) {
        let role = match turn.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            // OpenAI reads both as the developer's words.
            Role::System if self.is_own => "system",
            Role::System => "developer",
        };
        let content = match content.as_mut_slice() {
            [] if is_plain => Value::from(""),
            [only] if is_plain => only["text"].take(),
            _ => Value::Array(content),
        };
        let mut value = Map::from_iter([
            ("role".to_owned(), Value::from(role)),
            ("content".to_owned(), content),
        ]);
        put_back(&turn.own, &mut value);
        if turn.name.is_some() {
            self.weakened.push(Field::Turns);
        }
        self.items.push(Item::Other {
            value: Value::Object(value),
            ends_calls: turn.role != Role::Assistant,
        });
    }

    fn call(&mut self, part: &Part) {
        let Kind::ToolCall {
            id,
            name,
            arguments,
            custom,
            signature,
        } = &part.kind
        else {
            return;
        };
        if signature.is_some() {
            self.weakened.push(Field::PastReasoning);
        }
        let (kind, member) = match custom {
            true => ("custom_tool_call", "input"),
            false => ("function_call", "arguments"),
        };
        let arguments = match arguments.trim() {
            "" if !custom && !self.is_own => "{}",
            _ => arguments,
        };
        let mut value = Map::from_iter([
            ("type".to_owned(), Value::from(kind)),
            ("call_id".to_owned(), Value::from(id.as_str())),
            ("name".to_owned(), Value::from(self.names.sent(name))),
            (member.to_owned(), Value::from(arguments)),
        ]);
        put_back(&part.own, &mut value);
        self.items.push(Item::Call {
            id: id.clone(),
            custom: *custom,
            value: Value::Object(value),
        });
    }

    fn result(&mut self, part: &Part, path: &dyn Fn() -> String) -> Result<(), Bad> {
        let Kind::ToolResult {
            id,
            name,
            content,
            plain,
            is_error,
            custom,
        } = &part.kind
        else {
            return Ok(());
        };
        let output = self.output(content, *plain, *is_error, path)?;
        let kind = match custom {
            true => "custom_tool_call_output",
            false => "function_call_output",
        };
        let mut value = Map::from_iter([
            ("type".to_owned(), Value::from(kind)),
            ("call_id".to_owned(), Value::from(id.as_str())),
            ("output".to_owned(), output),
        ]);
        if let Some(name) = name.as_ref().filter(|_| self.is_own) {
            value.insert("name".to_owned(), Value::from(self.names.sent(name)));
        }
        put_back(&part.own, &mut value);
        self.items.push(Item::Result {
            id: id.clone(),
            value: Value::Object(value),
        });
        Ok(())
    }

    /// A string wherever it can be one: not every upstream takes lists (litellm#34978).
    fn output(
        &mut self,
        content: &[Part],
        plain: bool,
        is_error: bool,
        path: &dyn Fn() -> String,
    ) -> Result<Value, Bad> {
        let text = |part: &Part| match &part.kind {
            Kind::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        let texts: Option<Vec<String>> = content.iter().map(text).collect();
        let prefix = if is_error { "Error: " } else { "" };
        if let Some(texts) = texts.filter(|_| plain || !self.is_own) {
            return Ok(Value::String(prefix.to_owned() + &texts.join("\n")));
        }
        let mut parts = Vec::with_capacity(content.len() + 1);
        if is_error {
            parts.push(json!({"type": "input_text", "text": prefix.trim_end()}));
        }
        for part in content {
            parts.push(self.content(part, Role::User, path)?);
        }
        Ok(Value::Array(parts))
    }

    /// Consecutive thinking without a proof between is one item. Only what the vendor itself signed, or kept under an id, may go
    /// to it.
    fn reasoning(&mut self, part: &Part) {
        let sealed = match &part.kind {
            Kind::Reasoning { signature, .. } => signature.clone().map(Sealed::Signature),
            Kind::Redacted(opaque) => Some(Sealed::Redacted(opaque.clone())),
            _ => None,
        };
        let vendor = match &sealed {
            Some(Sealed::Signature(opaque) | Sealed::Redacted(opaque)) => Some(&opaque.vendor),
            _ => None,
        };
        let is_vendors = vendor.map(|vendor| vendor == VENDOR);
        let mut value = Map::from_iter([
            ("type".to_owned(), Value::from("reasoning")),
            ("summary".to_owned(), Value::Array(Vec::new())),
        ]);
        let mut id_of = None;
        if let Kind::Reasoning {
            text,
            id,
            summary,
            signature,
        } = &part.kind
        {
            let kept = || signature.as_ref().and_then(|s| without_id(s).0);
            id_of = id
                .as_deref()
                .filter(|id| !id.contains(MINTED))
                .or_else(kept);
            if let Some(id) = id_of {
                value.insert("id".to_owned(), id.into());
            }
            if !text.is_empty() {
                // Text that OpenAI sealed was a summary, whatever the client's format calls it; it takes no other.
                let (list, kind) = match *summary || !self.is_own {
                    true => ("summary", "summary_text"),
                    false => ("content", "reasoning_text"),
                };
                value.insert(list.to_owned(), json!([{"type": kind, "text": text}]));
            }
        }
        if let Some(sealed) = sealed {
            value.insert("encrypted_content".to_owned(), sealed.seal().into());
        }
        put_back(&part.own, &mut value);
        let is_known = is_vendors.unwrap_or(id_of.is_some());
        self.items.push(Item::Reasoning {
            is_known,
            value: Value::Object(value),
        });
    }

    /// A content part.
    fn content(
        &mut self,
        part: &Part,
        role: Role,
        path: &dyn Fn() -> String,
    ) -> Result<Value, Bad> {
        let refuse = |why: String| {
            let why = format!("{why}, which the upstream of this model does not take");
            Bad::new(path(), why)
        };
        let mut value = match &part.kind {
            Kind::Text {
                text,
                citations,
                signature,
            } => {
                if signature.is_some() {
                    self.weakened.push(Field::PastReasoning);
                }
                text_part(text, citations, role)
            }
            Kind::Refusal(text) => of_type("refusal", [("refusal", text.as_str().into())]),
            Kind::Image { source, detail } => {
                let mut value = self.image(source).map_err(refuse)?;
                if let Some(detail) = detail {
                    value.insert("detail".to_owned(), detail.as_str().into());
                }
                value
            }
            Kind::File { source, name } => self.file(source, name.as_deref()).map_err(refuse)?,
            Kind::Audio {
                source: Source::Base64 { media_type, data },
            } if self.is_own => {
                let format = media_type.strip_prefix("audio/").unwrap_or(media_type);
                let audio = json!({"data": data, "format": format});
                of_type("input_audio", [("input_audio", audio)])
            }
            Kind::Audio { .. } => return Err(refuse("is sound".to_owned())),
            Kind::Video { .. } => return Err(refuse("is a film".to_owned())),
            Kind::Foreign { value, .. } => match text_in(value) {
                Some(text) => text_part(&text, &[], role),
                None => return Err(refuse(format!("is a `{}`", foreign_name(value)))),
            },
            _ => return Err(refuse("is out of place".to_owned())),
        };
        if let Some(ttl) = &part.cache {
            match self.cache_marker(ttl) {
                Some(marker) => _ = value.insert("prompt_cache_breakpoint".to_owned(), marker),
                None => self.weakened.push(Field::Cache),
            }
        }
        put_back(&part.own, &mut value);
        Ok(Value::Object(value))
    }

    fn image(&self, source: &Source) -> Result<Map<String, Value>, String> {
        let (member, value) = match source {
            Source::Url { url, .. } => ("image_url", url.clone()),
            Source::Base64 { media_type, data } if IMAGE_TYPES.contains(&media_type.as_str()) => {
                ("image_url", to_data_uri(media_type, data))
            }
            Source::Base64 { media_type, .. } => {
                return Err(format!("is a picture of type {media_type}"));
            }
            Source::FileId(id) if self.is_vendors() => ("file_id", id.clone()),
            _ => return Err("is a picture kept at another vendor".to_owned()),
        };
        Ok(of_type("input_image", [(member, value.into())]))
    }

    fn file(&self, source: &Source, name: Option<&str>) -> Result<Map<String, Value>, String> {
        let (member, value) = match source {
            Source::Url { url, .. } => ("file_url", url.clone()),
            Source::Base64 { media_type, data } => ("file_data", to_data_uri(media_type, data)),
            Source::FileId(id) if self.is_vendors() => ("file_id", id.clone()),
            Source::FileId(_) => return Err("is a file kept at another vendor".to_owned()),
            Source::Text(text) => return Ok(plain_document(text, name)),
        };
        let mut file = of_type("input_file", [(member, value.into())]);
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

    /// Whether ids of uploads are ids at the vendor of this format.
    fn is_vendors(&self) -> bool {
        self.is_own || self.request.client == "chat-completions"
    }

    /// A cache marker, where it comes from a client that knows those of this vendor.
    fn cache_marker(&self, ttl: &str) -> Option<Value> {
        match ttl {
            "" if self.is_own => Some(json!({"mode": "explicit"})),
            _ if self.is_own || (self.is_vendors() && matches!(ttl, "30m" | "12h")) => {
                Some(json!({"mode": "explicit", "ttl": ttl}))
            }
            _ => None,
        }
    }
}

/// A part of that type with these members.
fn of_type<const N: usize>(kind: &str, members: [(&str, Value); N]) -> Map<String, Value> {
    let kind = std::iter::once(("type", Value::from(kind)));
    let members = kind.chain(members);
    members
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn text_part(text: &str, citations: &[Citation], role: Role) -> Map<String, Value> {
    let mut value = of_type(text_type(role), [("text", text.into())]);
    if role == Role::Assistant {
        let list = citations
            .iter()
            .filter_map(|citation| write_annotation(citation, text));
        value.insert("annotations".to_owned(), Value::Array(list.collect()));
    }
    value
}

/// A text document as a text part: only some upstreams take text files.
fn plain_document(text: &str, name: Option<&str>) -> Map<String, Value> {
    let text = match name {
        Some(name) => format!("{name}\n\n{text}"),
        None => text.to_owned(),
    };
    of_type("input_text", [("text", text.into())])
}

/// A name for a file without one: OpenAI wants one.
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

/// A citation of `text` as an annotation; none for sources that are no links. Without an end it is of all the text.
pub(in crate::responses) fn write_annotation(citation: &Citation, text: &str) -> Option<Value> {
    let own = citation.own.for_format(NAME);
    if own.is_some_and(|own| own.contains_key("type")) {
        return own.cloned().map(Value::Object);
    }
    if citation.url.is_empty() {
        return None;
    }
    let start = citation.start.unwrap_or(0);
    let all = || text.chars().count() as u64;
    let end = citation.end.unwrap_or_else(all);
    let mut value = Map::from_iter([
        ("type".to_owned(), Value::from("url_citation")),
        ("url".to_owned(), Value::from(citation.url.as_str())),
        ("title".to_owned(), Value::from(citation.title.as_str())),
        ("start_index".to_owned(), Value::from(start)),
        ("end_index".to_owned(), Value::from(end)),
    ]);
    put_back(&citation.own, &mut value);
    Some(Value::Object(value))
}
