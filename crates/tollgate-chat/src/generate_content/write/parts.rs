//! Parts of turns.

use serde_json::{Map, Value, json};

use super::super::fields::insert_at;
use super::super::read::guess_type;
use super::super::{NAME, ids, sign};
use super::{Writer, takes_url};
use crate::error::Bad;
use crate::hub::{Field, Kind, Part, Role, Source};

/// A part as it will stand in a content, with what pairing calls and answers needs.
pub(super) enum Piece {
    /// Text, media and the like.
    Said(Value),
    /// A call.
    Call {
        /// The call's id.
        id: String,
        /// The function, as the upstream knows it.
        name: String,
        /// The part.
        part: Value,
    },
    /// What a tool gave back.
    Answer(Answer),
}

/// What a tool gave back.
pub(super) struct Answer {
    /// The call's id.
    pub(super) id: String,
    /// The function, as the upstream knows it; empty where only the call knows.
    pub(super) name: String,
    /// The object.
    pub(super) response: Value,
    /// Members of `functionResponse` beside name, id and response.
    pub(super) rest: Map<String, Value>,
    /// Pictures and files that stand behind the answers.
    pub(super) behind: Vec<Value>,
}

impl Writer<'_> {
    /// The piece that `part` is; none where there is nothing to carry. `path` is the client's.
    pub(super) fn piece(
        &mut self,
        part: &Part,
        role: Role,
        path: &dyn Fn() -> String,
    ) -> Result<Option<Piece>, Bad> {
        if part.cache.is_some() {
            self.drop_field(Field::Cache);
        }
        self.drop_own(&part.own);
        let mut value = match &part.kind {
            Kind::Text {
                text,
                citations,
                signature,
            } => {
                if !citations.is_empty() {
                    self.drop_field(Field::Citations);
                }
                let signature = sign::for_upstream(signature.as_ref());
                if text.is_empty() && signature.is_none() {
                    return Ok(None);
                }
                signed(json!({"text": text}), signature)
            }
            Kind::Refusal(text) => json!({"text": text}),
            Kind::Reasoning {
                text, signature, ..
            } => {
                let signature = sign::for_upstream(signature.as_ref());
                if text.is_empty() && signature.is_none() {
                    self.drop_field(Field::PastReasoning);
                    return Ok(None);
                }
                signed(json!({"text": text, "thought": true}), signature)
            }
            Kind::Redacted(opaque) => match sign::for_upstream(Some(opaque)) {
                Some(data) => signed(json!({"text": "", "thought": true}), Some(data)),
                None => {
                    self.drop_field(Field::PastReasoning);
                    return Ok(None);
                }
            },
            Kind::ToolCall { .. } => return Ok(Some(self.call(part))),
            Kind::ToolResult { .. } => {
                return self.answer(part, path).map(|a| Some(Piece::Answer(a)));
            }
            Kind::Foreign { format, value } => match self.foreign(format, value, role, path)? {
                Some(value) => value,
                None => return Ok(None),
            },
            Kind::Image { .. } | Kind::Audio { .. } | Kind::Video { .. } | Kind::File { .. } => {
                self.media(&part.kind, path)?
            }
        };
        self.add_own(part, &mut value);
        Ok(Some(Piece::Said(value)))
    }

    /// What this format's clients said of the part beside what the hub knows.
    fn add_own(&self, part: &Part, value: &mut Value) {
        let Value::Object(members) = value else {
            return;
        };
        for (path, value) in part.own.for_format(NAME).into_iter().flatten() {
            // A spelling's path begins with a dot.
            insert_at(members, path.trim_start_matches('.'), value.clone());
        }
    }

    fn call(&mut self, part: &Part) -> Piece {
        let Kind::ToolCall {
            id,
            name,
            arguments,
            custom,
            signature,
        } = &part.kind
        else {
            return Piece::Said(Value::Null);
        };
        let name = self.names.sent(name).to_owned();
        let mut call = Map::new();
        if !ids::is_minted(id) {
            call.insert("id".to_owned(), json!(id));
        }
        call.insert("name".to_owned(), json!(name));
        if !(self.native && arguments.is_empty()) {
            call.insert("args".to_owned(), arguments_object(arguments, *custom));
        }
        let mut value = signed(
            json!({"functionCall": call}),
            sign::for_upstream(signature.as_ref()),
        );
        self.add_own(part, &mut value);
        Piece::Call {
            id: id.clone(),
            name,
            part: value,
        }
    }

    fn answer(&mut self, part: &Part, path: &dyn Fn() -> String) -> Result<Answer, Bad> {
        let Kind::ToolResult {
            id,
            name,
            content,
            is_error,
            ..
        } = &part.kind
        else {
            return Err(Bad::new(path(), "is no tool result"));
        };
        let mut texts: Vec<&str> = Vec::new();
        let mut media = Vec::new();
        for inner in content {
            match &inner.kind {
                Kind::Text { text, .. } | Kind::Refusal(text) => texts.push(text),
                Kind::File {
                    source: Source::Text(text),
                    ..
                } => texts.push(text),
                _ => {
                    if let Some(Piece::Said(value)) = self.piece(inner, Role::User, path)? {
                        media.push(value);
                    }
                }
            }
        }
        let mut own = json!({"functionResponse": {}});
        self.add_own(part, &mut own);
        let mut rest = match own["functionResponse"].take() {
            Value::Object(rest) => rest,
            _ => Map::new(),
        };
        // Newer models take pictures inside the answer, others behind it.
        let inside = self.native || self.traits.needs_signatures;
        if inside && !media.is_empty() {
            rest.insert("parts".to_owned(), Value::Array(std::mem::take(&mut media)));
        }
        let response = match texts.is_empty() && self.native {
            true => Value::Null,
            false => response_object(&texts.join("\n"), *is_error),
        };
        Ok(Answer {
            id: id.clone(),
            name: name
                .as_deref()
                .map(|name| self.names.sent(name).to_owned())
                .unwrap_or_default(),
            response,
            rest,
            behind: media,
        })
    }

    /// Pieces of other formats: what the user shows must be seen, what a model's hosted tool once did may go.
    fn foreign(
        &mut self,
        format: &str,
        value: &Value,
        role: Role,
        path: &dyn Fn() -> String,
    ) -> Result<Option<Value>, Bad> {
        if format == NAME {
            return Ok(Some(value.clone()));
        }
        let kind = value.get("type").and_then(Value::as_str).unwrap_or("part");
        let holds_history = matches!(kind, "item_reference" | "compaction");
        if role != Role::Assistant || holds_history {
            let why = format!("of type `{kind}` cannot be carried to this model's provider");
            return Err(Bad::new(path(), why));
        }
        self.drop_name(kind);
        Ok(None)
    }

    fn media(&mut self, kind: &Kind, path: &dyn Fn() -> String) -> Result<Value, Bad> {
        let source = match kind {
            Kind::Image { source, detail } => {
                if detail.as_ref().is_some_and(|detail| detail != "auto") {
                    self.drop_name("detail");
                }
                source
            }
            Kind::File { source, name } => {
                if name.is_some() && !matches!(source, Source::Text(_)) {
                    self.drop_name("filename");
                }
                source
            }
            Kind::Audio { source } | Kind::Video { source } => source,
            _ => {
                return Err(Bad::new(
                    path(),
                    "cannot be carried to this model's provider",
                ));
            }
        };
        match source {
            Source::Base64 { media_type, data } => {
                Ok(json!({"inlineData": {"mimeType": media_type, "data": data}}))
            }
            Source::Text(text) => Ok(json!({"text": text})),
            Source::FileId(uri) if self.native => Ok(json!({"fileData": {"fileUri": uri}})),
            Source::FileId(_) => {
                let why =
                    "is an upload at another provider, which this model's provider cannot read";
                Err(Bad::new(path(), why))
            }
            Source::Url { url, media_type } if takes_url(kind, self.traits) => {
                let mut file = Map::new();
                file.insert("fileUri".to_owned(), json!(url));
                // Links of other formats have no type, but this one wants one.
                let guessed = (!self.native).then(|| guess_type(url).to_owned());
                let media_type = media_type.clone().or(guessed);
                file.extend(media_type.map(|t| ("mimeType".to_owned(), json!(t))));
                Ok(json!({"fileData": file}))
            }
            Source::Url { .. } => {
                let why = "is a link that this model cannot open, and that was not fetched for it";
                Err(Bad::new(path(), why))
            }
        }
    }
}

fn signed(mut part: Value, signature: Option<&str>) -> Value {
    if let Some(signature) = signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

/// Arguments as the object that the wire wants. What is no object is wrapped, never lost.
pub(in super::super) fn arguments_object(arguments: &str, custom: bool) -> Value {
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

/// A result as the object that the wire wants.
fn response_object(text: &str, is_error: bool) -> Value {
    if is_error {
        return json!({"error": text});
    }
    match serde_json::from_str::<Value>(text) {
        Ok(object @ Value::Object(_)) => object,
        _ => json!({"output": text}),
    }
}
