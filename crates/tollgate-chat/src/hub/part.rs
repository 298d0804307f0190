//! A piece of a turn or of a reply.

use serde_json::Value;

use super::Own;

/// A piece of content with what is said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it is.
    pub kind: Kind,
    /// A prompt-cache marker behind it: lifetime `5m`, `1h`, `30m` …; empty where the client left the lifetime open.
    pub cache: Option<String>,
    /// What only its format knows of it.
    pub own: Own,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Visible text.
    Text {
        /// The text; never empty in what readers of requests give (empty text is left out).
        text: String,
        /// Where it comes from.
        citations: Vec<Citation>,
        /// A signature that sits on the text itself (generate-content).
        signature: Option<Opaque>,
    },
    /// A picture.
    Image {
        /// Where it is.
        source: Source,
        /// `low`, `high`, `auto`, `original`.
        detail: Option<String>,
    },
    /// Sound.
    Audio {
        /// Where it is; the media type is `audio/wav`, `audio/mp3` …
        source: Source,
    },
    /// A film.
    Video {
        /// Where it is.
        source: Source,
    },
    /// A document: PDF, plain text, …
    File {
        /// Where it is.
        source: Source,
        /// File name or title.
        name: Option<String>,
    },
    /// The model calls a tool.
    ToolCall {
        /// As the client's or upstream's format has it; minted by readers where the format gave none.
        id: String,
        /// The tool.
        name: String,
        /// JSON text as the model wrote it, for custom tools free text; may be empty or invalid JSON: see [`crate::hub`].
        arguments: String,
        /// A custom (free text) tool.
        custom: bool,
        /// The signature on this call (generate-content `thoughtSignature`).
        signature: Option<Opaque>,
    },
    /// What a tool gave back.
    ToolResult {
        /// The call's id.
        id: String,
        /// The tool, where the format says it.
        name: Option<String>,
        /// Text, pictures, files.
        content: Vec<Part>,
        /// Whether the content was one string rather than a list.
        plain: bool,
        /// Whether the tool failed.
        is_error: bool,
        /// Of a custom tool.
        custom: bool,
    },
    /// The model's thinking, or a summary of it.
    Reasoning {
        /// The text; may be empty beside a signature.
        text: String,
        /// What proves it.
        signature: Option<Opaque>,
        /// The item's id (responses).
        id: Option<String>,
        /// Whether it is a summary (responses `summary_text`, generate-content thoughts) rather than raw reasoning.
        summary: bool,
    },
    /// Thinking that only its vendor can read.
    Redacted(Opaque),
    /// The model refuses, in words.
    Refusal(String),
    /// A piece that only one format knows (hosted tools, search results, code execution …): its whole JSON.
    Foreign {
        /// The format.
        format: &'static str,
        /// The part, block or item.
        value: Value,
    },
}

/// Where bytes are.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// On the web.
    Url {
        /// `http` or `https`, or a vendor's own scheme (`gs://`).
        url: String,
        /// The media type, where the format says it.
        media_type: Option<String>,
    },
    /// In the request.
    Base64 {
        /// `image/jpeg`, …; what the bytes are, where they were sniffed.
        media_type: String,
        /// Standard base64 with padding, no line breaks.
        data: String,
    },
    /// Plain text in the request (documents).
    Text(String),
    /// An upload at the vendor: not portable.
    FileId(String),
}

/// Text that only its vendor understands: signatures, redacted and encrypted thinking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// `anthropic`, `gemini`, `openai`.
    pub vendor: String,
    /// As the vendor gave it.
    pub data: String,
}

/// Where a piece of text comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Citation {
    /// The page; empty for citations of documents.
    pub url: String,
    /// Its title.
    pub title: String,
    /// The first character of the text that it backs, counted in characters of the part's text.
    pub start: Option<u64>,
    /// One past the last.
    pub end: Option<u64>,
    /// The words that are cited.
    pub cited_text: Option<String>,
    /// What only its format knows of it.
    pub own: Own,
}

impl Part {
    /// A part without marker and own fields.
    pub fn of(kind: Kind) -> Self {
        Self {
            kind,
            cache: None,
            own: Own::NONE,
        }
    }

    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Kind::Text {
            text: text.into(),
            citations: Vec::new(),
            signature: None,
        })
    }
}

impl Opaque {
    /// Something of that vendor.
    pub fn new(vendor: impl Into<String>, data: impl Into<String>) -> Self {
        Self {
            vendor: vendor.into(),
            data: data.into(),
        }
    }

    /// As one text that formats of other vendors can carry in their own opaque fields: `tg1.VENDOR.BASE64URL`.
    pub fn wrapped(&self) -> String {
        use base64::Engine as _;
        let data = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&self.data);
        format!("{WRAPPED}{}.{data}", self.vendor)
    }

    /// What [`Opaque::wrapped`] made, or else `text` as `vendor`'s own.
    pub fn unwrapped(text: &str, vendor: &str) -> Self {
        use base64::Engine as _;
        let read = || {
            let (vendor, data) = text.strip_prefix(WRAPPED)?.split_once('.')?;
            let data = base64::engine::general_purpose::URL_SAFE_NO_PAD
                .decode(data)
                .ok()?;
            Some(Self::new(vendor, String::from_utf8(data).ok()?))
        };
        read().unwrap_or_else(|| Self::new(vendor, text))
    }
}

/// The words in a part of another format (search results and the like); none where it holds anything else.
pub fn text_in(value: &Value) -> Option<String> {
    let mut words = Vec::new();
    for name in ["title", "text", "data", "content", "output", "source"] {
        match &value[name] {
            // An address says nothing.
            Value::String(text) if name != "source" => words.push(text.clone()),
            Value::Array(list) => {
                words.extend(list.iter().map(text_in).collect::<Option<Vec<_>>>()?)
            }
            inner @ Value::Object(_) => words.push(text_in(inner)?),
            _ => {}
        }
    }
    let is_payload = value.get("type").is_some_and(|kind| kind == "base64");
    (!words.is_empty() && !is_payload).then(|| words.join("\n"))
}

const WRAPPED: &str = "tg1.";
