//! Parts of contents.

use serde_json::{Map, Value};

use super::super::fields::{Fields, keep_under};
use super::super::{NAME, ids, sign};
use crate::error::Bad;
use crate::hub::{Kind, Opaque, Own, Part, Role, Source};
use crate::media;

/// What a part can hold; it holds one of them.
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

/// The calls of a conversation, so that answers without ids find theirs.
#[derive(Debug, Default)]
pub(in super::super) struct Calls {
    /// What minted ids are made from: distinct for each content or reply.
    seed: String,
    contents: usize,
    minted: usize,
    /// Calls of the last model turn that have no answer yet.
    open: Vec<(String, String)>,
}

impl Calls {
    /// The calls of a reply of that id.
    pub(in super::super) fn of_reply(id: &str) -> Self {
        Self {
            seed: format!("reply {id}"),
            ..Self::default()
        }
    }

    /// A content of `role` begins.
    pub(super) fn begin(&mut self, role: Role) {
        self.contents += 1;
        self.seed = format!("content {}", self.contents);
        self.minted = 0;
        if role == Role::Assistant {
            self.open.clear();
        }
    }

    fn mint(&mut self) -> String {
        self.minted += 1;
        ids::mint(&self.seed, self.minted)
    }

    fn called(&mut self, id: Option<String>, name: &str) -> String {
        let id = id.unwrap_or_else(|| self.mint());
        self.open.push((id.clone(), name.to_owned()));
        id
    }

    /// The id of the call that an answer belongs to: its own where such a call is open, else that of the first open call of its name.
    /// SDKs that call functions themselves leave ids out, even those that the calls had.
    fn answered(&mut self, id: Option<String>, name: &str) -> String {
        let by_id = |call: &(String, String)| Some(&call.0) == id.as_ref();
        let takes_any = |call: &(String, String)| id.is_none() || ids::is_minted(&call.0);
        let by_name = |call: &(String, String)| takes_any(call) && call.1 == name;
        let at = self
            .open
            .iter()
            .position(by_id)
            .or_else(|| self.open.iter().position(by_name));
        match at {
            Some(at) => self.open.remove(at).0,
            None => id.unwrap_or_else(|| self.mint()),
        }
    }
}

/// Reads a part; none where it is an empty text without a signature.
pub(in super::super) fn read_part(
    mut part: Fields,
    calls: &mut Calls,
) -> Result<Option<Part>, Bad> {
    let thought = part.boolean("thought")?.unwrap_or(false);
    let signature = part
        .string("thoughtSignature")?
        .filter(|text| !text.is_empty());
    let Some((kind, value)) = content_of(&mut part)? else {
        return signature_alone(&part, thought, signature).map(Some);
    };
    let mut own = Map::new();
    let kind = match kind {
        "text" => {
            let text = match value {
                Value::String(text) => text,
                _ => return Err(part.bad("text", "must be a string")),
            };
            let signature = signature.map(sign::read);
            match (text.is_empty() && signature.is_none(), thought) {
                (true, _) => return Ok(None),
                (_, true) => sign::thinking(text, signature),
                (_, false) => said(text, signature),
            }
        }
        "functionCall" => {
            let call = Fields::of(value, part.path(kind))?;
            function_call(call, signature, calls, &mut own)?
        }
        kind => {
            if let Some(signature) = signature {
                // Nobody else misses it.
                own.insert(".thoughtSignature".to_owned(), Value::String(signature));
            }
            let path = part.path(kind);
            match kind {
                "inlineData" => inline_data(Fields::of(value, path)?, &mut own)?,
                "fileData" => file_data(Fields::of(value, path)?, &mut own)?,
                "functionResponse" => function_response(Fields::of(value, path)?, calls, &mut own)?,
                kind => foreign(kind, value),
            }
        }
    };
    own.extend(part.rest());
    Ok(Some(Part {
        own: Own::of(NAME, own),
        ..Part::of(kind)
    }))
}

/// What the part holds.
fn content_of(part: &mut Fields) -> Result<Option<(&'static str, Value)>, Bad> {
    let mut content = None;
    for kind in KINDS {
        let Some(value) = part.take(kind) else {
            continue;
        };
        if content.replace((*kind, value)).is_some() {
            let why = "must hold one kind of content, but holds several";
            return Err(Bad::new(part.at(), why));
        }
    }
    Ok(content)
}

/// A signature may come in a part of its own.
fn signature_alone(part: &Fields, thought: bool, signature: Option<String>) -> Result<Part, Bad> {
    let Some(signature) = signature.map(sign::read) else {
        let kinds = KINDS[..5].join("`, `");
        return Err(Bad::new(part.at(), format!("must hold one of `{kinds}`")));
    };
    Ok(Part::of(match thought {
        true => sign::thinking(String::new(), Some(signature)),
        false => said(String::new(), Some(signature)),
    }))
}

fn said(text: String, signature: Option<Opaque>) -> Kind {
    Kind::Text {
        text,
        citations: Vec::new(),
        signature,
    }
}

fn foreign(kind: &str, value: Value) -> Kind {
    let mut members = Map::new();
    members.insert(kind.to_owned(), value);
    Kind::Foreign {
        format: NAME,
        value: Value::Object(members),
    }
}

fn inline_data(mut blob: Fields, own: &mut Map<String, Value>) -> Result<Kind, Bad> {
    let declared = blob.required("mimeType")?;
    let data = blob.required("data")?;
    let source = media::inline(&data, &declared).map_err(|why| blob.bad("data", &why))?;
    let media_type = match &source {
        Source::Base64 { media_type, .. } => media_type.clone(),
        _ => declared,
    };
    keep_under(own, "inlineData", blob.rest());
    Ok(of_type(&media_type, source))
}

fn file_data(mut file: Fields, own: &mut Map<String, Value>) -> Result<Kind, Bad> {
    let url = file.required("fileUri")?;
    let declared = file.string("mimeType")?.filter(|text| !text.is_empty());
    keep_under(own, "fileData", file.rest());
    let guessed = declared
        .clone()
        .unwrap_or_else(|| guess_type(&url).to_owned());
    let source = if is_upload(&url) {
        // The upload's type has no other place; the upload itself is not portable.
        if let Some(declared) = declared {
            own.insert(".fileData.mimeType".to_owned(), Value::String(declared));
        }
        Source::FileId(url)
    } else {
        Source::Url {
            url,
            media_type: declared,
        }
    };
    Ok(of_type(&guessed, source))
}

/// Whether `url` names a file of the vendor's own store.
pub(in super::super) fn is_upload(url: &str) -> bool {
    url.starts_with("files/")
        || url
            .strip_prefix("https://generativelanguage.googleapis.com/")
            .is_some_and(|path| path.contains("/files/"))
}

/// A type for a link by its looks.
pub(in super::super) fn guess_type(url: &str) -> &'static str {
    const BY_ENDING: &[(&str, &str)] = &[
        (".png", "image/png"),
        (".jpg", "image/jpeg"),
        (".jpeg", "image/jpeg"),
        (".webp", "image/webp"),
        (".gif", "image/gif"),
        (".heic", "image/heic"),
        (".heif", "image/heif"),
        (".mp3", "audio/mp3"),
        (".wav", "audio/wav"),
        (".mp4", "video/mp4"),
        (".mov", "video/quicktime"),
        (".webm", "video/webm"),
        (".txt", "text/plain"),
    ];
    if is_youtube(url) {
        return "video/mp4";
    }
    let plain = url
        .split(['?', '#'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let known = BY_ENDING.iter().find(|(ending, _)| plain.ends_with(ending));
    known.map_or("application/pdf", |(_, media_type)| media_type)
}

/// Links that the vendor resolves itself on every model.
pub(in super::super) fn is_youtube(url: &str) -> bool {
    const HOSTS: [&str; 4] = [
        "www.youtube.com",
        "youtube.com",
        "m.youtube.com",
        "youtu.be",
    ];
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    HOSTS.contains(&host.split('/').next().unwrap_or_default())
}

fn of_type(media_type: &str, source: Source) -> Kind {
    match media_type.split('/').next() {
        Some("image") => Kind::Image {
            source,
            detail: None,
        },
        Some("audio") => Kind::Audio { source },
        Some("video") => Kind::Video { source },
        _ => Kind::File { source, name: None },
    }
}

fn function_call(
    mut call: Fields,
    signature: Option<String>,
    calls: &mut Calls,
    own: &mut Map<String, Value>,
) -> Result<Kind, Bad> {
    let name = call.required("name")?;
    let arguments = match call.take("args") {
        None => String::new(),
        Some(args @ Value::Object(_)) => args.to_string(),
        Some(_) => return Err(call.bad("args", "must be an object")),
    };
    let id = call.string("id")?.filter(|id| !id.is_empty());
    keep_under(own, "functionCall", call.rest());
    Ok(Kind::ToolCall {
        id: calls.called(id, &name),
        name,
        arguments,
        custom: false,
        signature: signature.map(sign::read),
    })
}

fn function_response(
    mut answer: Fields,
    calls: &mut Calls,
    own: &mut Map<String, Value>,
) -> Result<Kind, Bad> {
    let name = answer.required("name")?;
    let id = answer.string("id")?.filter(|id| !id.is_empty());
    let (text, is_error) = match answer.take("response") {
        None => (None, false),
        Some(Value::Object(response)) => {
            let (text, is_error) = answer_text(response);
            (Some(text), is_error)
        }
        Some(_) => return Err(answer.bad("response", "must be an object")),
    };
    let plain = text.is_some();
    let mut content: Vec<Part> = text.map(Part::text).into_iter().collect();
    for (at, part) in answer.list("parts")?.into_iter().flatten().enumerate() {
        let path = format!("{}[{at}]", answer.path("parts"));
        content.extend(read_part(Fields::of(part, path)?, calls)?);
    }
    keep_under(own, "functionResponse", answer.rest());
    Ok(Kind::ToolResult {
        id: calls.answered(id, &name),
        name: Some(name),
        plain: plain && content.len() == 1,
        content,
        is_error,
        custom: false,
    })
}

/// The answer as text, and whether it is an error: what stands alone in `output` or `error`, else the whole object. A text that would be
/// taken for an object when written back stays wrapped.
fn answer_text(mut response: Map<String, Value>) -> (String, bool) {
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
