//! The [`Format`] trait that each chat format implements, with its stream readers, writers and forwarders.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{ErrorBody, InvalidRequest, MalformedResponse, UpstreamError};
use crate::hub;

/// One chat format. Stateless; each stream gets an object of its own.
pub trait Format: Send + Sync {
    /// `chat-completions`, `responses`, `messages` or `generate-content`.
    fn name(&self) -> &'static str;

    /// The properties of a client of this format: its name and the names of its fields.
    fn client_format(&self) -> &'static hub::ClientFormat;

    /// Members of a request, as JSON text, that make the provider add input to the prompt: searches, files that it stores, conversations that it
    /// stores. The size of such a prompt is limited only by the model's context window.
    fn prompt_extending_members(&self) -> &'static [&'static str];

    /// Whether models behind this format reason only if the request asks for reasoning, and then visibly. Otherwise they may generate reasoning that
    /// a stream does not show before its end.
    fn reasons_only_on_request(&self) -> bool {
        false
    }

    /// Whether the format's clients send signatures of reasoning back, so that signatures stay in responses whose thoughts are removed.
    fn keeps_reasoning_signatures(&self) -> bool {
        false
    }

    /// Whether upstreams of this format store replies unless the request has `store: false`.
    fn stores_replies(&self) -> bool {
        false
    }

    /// Returns the request with a limit of `cap` output tokens for each choice, and updates `summary` accordingly. The client set no limit, or
    /// `null`.
    ///
    /// `None` if `body` is not a JSON object.
    fn add_output_cap(&self, body: &Bytes, summary: &mut RequestSummary, cap: u64)
    -> Option<Bytes>;

    /// The fields whose mapping docs/chat/fields.md shows.
    fn field_probes(&self) -> FieldProbes;

    /// Reads only what routing, billing and limits need, with few allocations. Rejects values of wrong types and ranges and missing
    /// required fields, but does not validate the conversation itself. `null` counts as absent.
    fn summarize_request(&self, body: &[u8]) -> Result<RequestSummary, InvalidRequest>;

    /// Reads a client's complete request into the hub's types, without loss: what only this format has goes into `extra` fields.
    /// Validates what [`Format::summarize_request`] validates, and the conversation too.
    /// `model` and `stream` stay empty in formats that have them in the URL path.
    fn read_request(&self, body: &[u8]) -> Result<hub::Request, InvalidRequest>;

    /// Writes a request for an upstream of this format. Settings that the format does not have are left out and named in
    /// [`WrittenRequest::dropped`]. If leaving one out would change what the client receives (an attachment of an unsupported type, a
    /// tool that only another vendor runs), the request fails with an [`InvalidRequest`] that names the client's field.
    fn write_request(
        &self,
        request: &hub::Request,
        target: &Target<'_>,
    ) -> Result<WrittenRequest, InvalidRequest>;

    /// Whether an upstream of this format downloads the URL in `part` itself. If not, the gateway downloads it before
    /// [`Format::write_request`] and replaces the URL by the bytes.
    fn accepts_url(&self, part: &hub::PartKind, capabilities: &hub::ModelCapabilities) -> bool {
        let _ = (part, capabilities);
        true
    }

    /// Whether an upstream of this format searches the web for the model.
    fn runs_web_search(&self, capabilities: &hub::ModelCapabilities) -> bool {
        let _ = capabilities;
        true
    }

    /// The same request for an upstream of this same format: the client's bytes with the model's name replaced, usage
    /// requested in streams, and settings removed or changed that `target` does not support. `summary` is of these bytes.
    fn forward_request(
        &self,
        body: &Bytes,
        summary: &RequestSummary,
        target: &Target<'_>,
    ) -> Result<ForwardedRequest, InvalidRequest>;

    /// Reads an upstream's complete (non-streaming) response with HTTP status 200.
    fn read_response(&self, body: &[u8]) -> Result<hub::Response, MalformedResponse>;

    /// Writes a complete response for a client: the format's own object as JSON text, without envelope.
    fn write_response(&self, response: &hub::Response, options: &RenderOptions<'_>) -> Vec<u8>;

    /// The `data` object of the gateway's `{code, data}` envelope (docs/chat.md), from the output of [`Format::write_response`].
    /// Only the responses format changes anything.
    fn envelope_response(&self, body: Vec<u8>) -> Vec<u8> {
        body
    }

    /// The upstream's complete response for a client of the same format: its bytes with the model's name set to `model`.
    fn forward_response(
        &self,
        body: &Bytes,
        model: &str,
    ) -> Result<ForwardedResponse, MalformedResponse>;

    /// Reads an upstream's stream.
    fn stream_reader(&self) -> Box<dyn StreamReader>;

    /// Writes a stream for a client.
    fn stream_writer(&self, options: &RenderOptions<'_>) -> Box<dyn StreamWriter>;

    /// Passes an upstream's stream on to a client of the same format.
    fn stream_forwarder(&self, options: &RenderOptions<'_>) -> Box<dyn StreamForwarder>;

    /// The body of an error response as JSON text. The HTTP status is [`ErrorBody::status`].
    fn write_error(&self, error: &ErrorBody) -> Vec<u8>;

    /// Reads the status, code and message of an upstream's error response. Accepts any bytes, including HTML and an empty body; never fails.
    fn read_error(&self, status: u16, body: &[u8]) -> UpstreamError;
}

/// The requests of [`Format::field_probes`] with which the mapping of fields is determined.
#[derive(Debug, Clone, Deserialize)]
pub struct FieldProbes {
    /// A request whose only content is a text.
    pub plain_request: Value,
    /// Objects whose members are added to the request, one object at a time.
    pub fields: Vec<Value>,
}

impl FieldProbes {
    /// Reads the probes from the format's JSON file.
    pub(crate) fn from_json(text: &str) -> Self {
        serde_json::from_str(text).expect("the file has both members")
    }
}

/// The result of [`Format::summarize_request`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestSummary {
    /// The model. `None` if the format has it in the URL path.
    pub model: Option<String>,
    /// Whether the body requests a stream.
    pub stream: bool,
    /// Whether a chat-completions client requested usage in its stream (`stream_options.include_usage`).
    pub include_usage: bool,
    /// The client's limit of generated tokens for one choice. `None` if the client gave none.
    pub max_tokens: Option<u64>,
    /// The client's budget of reasoning tokens (messages and generate-content). `None` if the client gave none.
    pub thinking_budget: Option<u64>,
    /// Number of requested choices, at least 1.
    pub n: u32,
    /// The end user, for session affinity: `user`, `safety_identifier`, `prompt_cache_key` or `metadata.user_id`.
    pub user: Option<String>,
    /// Number of images, audio pieces and files in the conversation, estimated from the `type` strings; never too low.
    pub attachments: u32,
    /// Approximate number of bytes of base64 data in the body. They are not counted as text tokens.
    pub payload_bytes: u64,
    /// Whether the client set anything about reasoning (`reasoning_effort`, `reasoning`, `thinking`, `thinkingConfig`).
    pub has_reasoning_settings: bool,
    /// Which fields a chat-completions request has, as a bit set (`chat_completions/request_summary.rs`). 0 in other formats.
    pub members: u32,
    /// The stored conversation that the request creates or continues. `None` if the request contains its complete history.
    pub thread: Option<Thread>,
    /// The stored response that the request continues (`previous_response_id` of the responses format).
    pub previous_response: Option<String>,
    /// Whether the client lets the provider store the reply (`store` of the responses format, which is true by default).
    pub stores_reply: bool,
    /// Whether the upstream adds context that is not in the body: a thread that is continued, a stored response, conversation or
    /// prompt.
    pub has_stored_context: bool,
    /// Whether the bytes may go unchanged to an upstream of this format. False if they use spellings that only this gateway accepts
    /// (`max_tokens` and nested `function` tools in the responses format, `remote_mcp`); then the request is translated.
    pub is_native: bool,
}

/// A conversation that the upstream stores (`thread` of the messages format).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Thread {
    /// The conversation begins with this request.
    Create,
    /// The conversation continues after the response with this id, and the body contains only the new turns.
    Continue(String),
}

/// The upstream model that a request is written for.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    /// The provider's id of the model.
    pub model: &'a str,
    /// Whether a stream is requested.
    pub stream: bool,
    /// What the model supports.
    pub capabilities: &'a hub::ModelCapabilities,
    /// The limit of generated tokens to send if the format requires one and the client gave none.
    pub default_max_tokens: u64,
}

/// A request as written for an upstream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WrittenRequest {
    /// JSON text.
    pub body: Vec<u8>,
    /// The client's fields that were left out or weakened, as paths in the client's format, each once, in order.
    pub dropped: Vec<String>,
    /// Tool names that had to be changed for this upstream: (name sent, client's name). The response is changed back.
    pub renamed_tools: Vec<(String, String)>,
    /// Name of the forced tool that replaces JSON output on models without it. The response is changed back by
    /// [`crate::json_tool`].
    pub json_tool: Option<String>,
}

/// A request as forwarded to an upstream of the client's format.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForwardedRequest {
    /// JSON text.
    pub body: Bytes,
    /// The client's fields that were left out or weakened, as paths, each once.
    pub dropped: Vec<String>,
}

impl ForwardedRequest {
    /// The client's bytes, unchanged.
    pub(crate) fn unchanged(body: &Bytes) -> Self {
        Self {
            body: body.clone(),
            dropped: Vec::new(),
        }
    }
}

impl From<WrittenRequest> for ForwardedRequest {
    fn from(written: WrittenRequest) -> Self {
        Self {
            body: written.body.into(),
            dropped: written.dropped,
        }
    }
}

/// How a response is written for a client.
#[derive(Debug, Clone)]
pub struct RenderOptions<'a> {
    /// The model's name as the client sent it.
    pub model: &'a str,
    /// Unix time in seconds, for responses whose upstream gives none.
    pub created: i64,
    /// Unique letters and digits for generating missing ids; the same for the complete response.
    pub seed: &'a str,
    /// Whether a chat-completions stream includes usage.
    pub include_usage: bool,
    /// The gateway's estimate of the prompt's tokens, for formats that report the input count before the upstream has reported it.
    pub estimated_prompt_tokens: u64,
    /// The request, for response fields that echo it (responses: tools, tool_choice, instructions …). `None` if it was forwarded.
    pub request: Option<&'a hub::Request>,
    /// Whether to write one JSON array instead of events (generate-content without `alt=sse`).
    pub json_array: bool,
}

/// A complete response that was passed on.
#[derive(Debug, Clone, PartialEq)]
pub struct ForwardedResponse {
    /// The bytes to send to the client.
    pub body: Bytes,
    /// The response's id. `None` if the response has no id, and for formats whose providers store no conversations.
    pub id: Option<String>,
    /// The upstream's usage. `None` if it gave none.
    pub usage: Option<hub::Usage>,
    /// Bytes of visible text, reasoning and tool arguments, to estimate the tokens if usage is missing.
    pub text_bytes: u64,
}

/// Reads one upstream stream. Chunks may be cut anywhere; lines may end with `\n`, `\r\n` or `\r`.
pub trait StreamReader: Send {
    /// Takes the next bytes and appends the events that they complete.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<hub::Event>) -> Result<(), MalformedResponse>;

    /// Handles the end of the body. [`MalformedResponse::Truncated`] if no finish was seen.
    fn finish(&mut self, out: &mut Vec<hub::Event>) -> Result<(), MalformedResponse>;
}

/// Writes one stream: a state machine that emits events in a valid order, whatever events it receives.
pub trait StreamWriter: Send {
    /// Appends the bytes for `event`. Does nothing after [`StreamWriter::end`] or [`StreamWriter::error`].
    fn write(&mut self, event: &hub::Event, out: &mut Vec<u8>);

    /// Appends keep-alive bytes that this format's SDKs accept at this point of the stream; appends nothing if there are none.
    fn keep_alive(&mut self, out: &mut Vec<u8>);

    /// Appends the successful end: everything from the finish reason on (usage, `[DONE]`, `message_stop`,
    /// `response.completed`). The gateway sends it only after the charge is durable.
    fn end(&mut self, out: &mut Vec<u8>);

    /// Ends the stream with the format's own error event, after closing open blocks.
    fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>);
}

/// The result of [`StreamForwarder::push`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForwardedChunk {
    /// Bytes to send to the client now. Empty while an event is incomplete.
    pub bytes: Bytes,
    /// Whether the stream's successful end was seen. The bytes of the end are held back; [`StreamForwarder::end`] returns them.
    pub ended: bool,
}

/// Passes one stream on between equal formats, complete events at a time: the model's name is replaced, usage is read, a usage
/// chunk that the client did not request is removed, and the end is held back.
pub trait StreamForwarder: Send {
    /// Processes the next bytes of the upstream's body.
    fn push(&mut self, bytes: Bytes) -> Result<ForwardedChunk, MalformedResponse>;

    /// Handles the end of the body. [`MalformedResponse::Truncated`] if no successful end was seen.
    fn finish(&mut self) -> Result<(), MalformedResponse>;

    /// The bytes of the end that were held back.
    fn end(&mut self) -> Bytes;

    /// The usage seen so far; complete once the end was seen.
    fn usage(&self) -> Option<hub::Usage>;

    /// The response's id, once seen. Only formats whose providers store conversations have one.
    fn response_id(&self) -> Option<&str> {
        None
    }

    /// Bytes of visible text, reasoning and tool arguments passed on so far, to estimate the tokens if usage is missing.
    fn text_bytes(&self) -> u64;

    /// Appends keep-alive bytes as [`StreamWriter::keep_alive`] does. Only legal between two calls of [`StreamForwarder::push`].
    fn keep_alive(&mut self, out: &mut Vec<u8>);

    /// Appends the format's own error event for this point of the stream, after closing open blocks.
    fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>);
}
