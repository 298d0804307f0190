//! What a chat format can do: the trait that each of the four folders implements.

use bytes::Bytes;

use crate::error::{Bad, ErrorWords, Garbled, WireError};
use crate::hub;

/// One chat format. Stateless; streams have their own objects.
pub trait Format: Send + Sync {
    /// `chat-completions`, `responses`, `messages` or `generate-content`.
    fn name(&self) -> &'static str;

    /// A quick, allocation-light look at a request: the facts that routing, money and limits need. Refuses what SPEC.md's tables
    /// refuse (ranges, types, missing fields) without reading the conversation itself. `null` counts as absent.
    fn glance(&self, body: &[u8]) -> Result<Glance, Bad>;

    /// Reads a client's request into the hub's form, whole, lossless for everything that the format knows: what only this
    /// format has goes into `own` fields. Validates as [`Format::glance`] does, and the conversation too.
    /// `model` and `stream` stay empty where the format has them in the path.
    fn read_request(&self, body: &[u8]) -> Result<hub::Request, Bad>;

    /// Writes a request for an upstream of this format. What it cannot carry and only tunes is named in [`Written::dropped`];
    /// what it cannot carry and would change what the client receives is a [`Bad`] that names the client's field.
    fn write_request(&self, request: &hub::Request, target: &Target<'_>) -> Result<Written, Bad>;

    /// Whether an upstream of this format fetches what `part` names by URL itself; else the relay fetches it before
    /// [`Format::write_request`] and puts the bytes in its place.
    fn takes_url(&self, part: &hub::Kind, traits: &hub::ModelTraits) -> bool {
        let _ = (part, traits);
        true
    }

    /// The same request for an upstream of this same format: the client's bytes, with only the model's name changed, usage in
    /// streams asked for, and what `target` says this model refuses repaired. `glance` is of these bytes.
    fn forward_request(
        &self,
        body: &Bytes,
        glance: &Glance,
        target: &Target<'_>,
    ) -> Result<Bytes, Bad>;

    /// Reads an upstream's whole reply (HTTP 200) into the hub's form.
    fn read_reply(&self, body: &[u8]) -> Result<hub::Reply, Garbled>;

    /// Writes a whole reply for a client: the bare object of the format, as JSON text.
    fn write_reply(&self, reply: &hub::Reply, rendering: &Rendering<'_>) -> Vec<u8>;

    /// The data object of SPEC.md's envelope where it differs from the bare object (responses); else the bare object unchanged.
    fn spec_reply(&self, bare: Vec<u8>) -> Vec<u8> {
        bare
    }

    /// The upstream's whole reply for a client of the same format: its bytes, with only the model's name set to `model`.
    fn forward_reply(&self, body: &Bytes, model: &str) -> Result<Answer, Garbled>;

    /// Reads an upstream's stream.
    fn stream_reader(&self) -> Box<dyn StreamReader>;

    /// Writes a stream for a client.
    fn stream_writer(&self, rendering: &Rendering<'_>) -> Box<dyn StreamWriter>;

    /// Passes an upstream's stream on to a client of the same format.
    fn forward_stream(&self, rendering: &Rendering<'_>) -> Box<dyn StreamForward>;

    /// The body of an error answer, as JSON text. The HTTP status is [`WireError::status`].
    fn write_error(&self, error: &WireError) -> Vec<u8>;

    /// What an upstream's error answer says. Takes anything, HTML and nothing included; never fails.
    fn read_error(&self, status: u16, body: &[u8]) -> ErrorWords;
}

/// What [`Format::glance`] sees.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Glance {
    /// The model, where it is in the body.
    pub model: Option<String>,
    /// Whether a stream is asked for, where the body says so.
    pub stream: bool,
    /// Whether a client of chat-completions asked for usage in its stream.
    pub include_usage: bool,
    /// The cap on generated tokens of one reply, where the client gave one.
    pub max_tokens: Option<u64>,
    /// Replies asked for, at least 1.
    pub n: u32,
    /// The end user, for session affinity: `user`, `safety_identifier`, `prompt_cache_key` or `metadata.user_id`.
    pub user: Option<String>,
    /// How many pictures and files the conversation seems to hold (a count of the parts' type words; never too few).
    pub attachments: u32,
    /// Bytes of the request that are base64 payload rather than text, roughly; they are no tokens.
    pub payload_bytes: u64,
    /// Whether the client said anything about reasoning (`reasoning_effort`, `reasoning`, `thinking`, `thinkingConfig`).
    pub says_reasoning: bool,
    /// Which members there are, as bits that are the format's own to read; 0 where it does not note them.
    pub members: u32,
    /// Whether the bytes may go to an upstream of this format as they are. False where they hold spellings that only SPEC.md
    /// has (`max_tokens` and nested `function` tools of the responses format, `remote_mcp`): then they go through the hub.
    pub is_native: bool,
}

/// The upstream that a request is written for.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    /// The provider's id of the model.
    pub model: &'a str,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// What the model takes and refuses.
    pub traits: &'a hub::ModelTraits,
    /// The cap on generated tokens to send where the format requires one and the client gave none.
    pub default_max_tokens: u64,
}

/// A request as written for an upstream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Written {
    /// JSON text.
    pub body: Vec<u8>,
    /// The client's fields that were left out or weakened, as paths in the client's own words, each once, in order.
    pub dropped: Vec<String>,
    /// Tool names that had to be changed for this upstream: (sent, the client's). Applied backwards to the reply.
    pub renamed_tools: Vec<(String, String)>,
    /// The forced tool that stands in for JSON output, as sent; undone in the reply by [`crate::json_tool`].
    pub json_tool: Option<String>,
}

/// How a reply is to look to the client.
#[derive(Debug, Clone)]
pub struct Rendering<'a> {
    /// The model's name as the client knows it.
    pub model: &'a str,
    /// Unix seconds, for replies whose upstream has no such time.
    pub created: i64,
    /// For ids that must be made: unique text of letters and digits, the same for the whole reply.
    pub seed: &'a str,
    /// Whether usage goes into a chat-completions stream.
    pub include_usage: bool,
    /// Our estimate of the prompt's tokens, for formats that give the input count before the upstream did.
    pub prompt_estimate: u64,
    /// The request, for reply fields that echo it (responses: tools, tool_choice, instructions …); none where it was forwarded.
    pub request: Option<&'a hub::Request>,
    /// generate-content without `alt=sse`: one JSON array instead of events.
    pub json_array: bool,
}

/// A whole reply that was passed on.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What the client gets.
    pub body: Bytes,
    /// The upstream's usage, none where it gave none.
    pub usage: Option<hub::Usage>,
    /// Bytes of visible text and arguments in it, for an honest count where usage is missing.
    pub text_bytes: u64,
}

/// Reads one upstream stream. Splits lines in bytes, decodes whole lines; takes `\n`, `\r\n`, lone `\r`, `data:` with and
/// without a space, several events per chunk and events over many chunks.
pub trait StreamReader: Send {
    /// Takes bytes as they come; adds the events that they complete.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<hub::Event>) -> Result<(), Garbled>;

    /// The body ended. An end without a finish is [`Garbled::BrokeOff`].
    fn finish(&mut self, out: &mut Vec<hub::Event>) -> Result<(), Garbled>;
}

/// Writes one stream: a state machine that cannot emit an illegal order whatever events come.
pub trait StreamWriter: Send {
    /// Adds the bytes for `event`. After [`StreamWriter::end`] or [`StreamWriter::error`] nothing is written any more.
    fn write(&mut self, event: &hub::Event, out: &mut Vec<u8>);

    /// Keep-alive bytes that this format's SDKs accept at this point of the stream; maybe none.
    fn keep_alive(&mut self, out: &mut Vec<u8>);

    /// What ends the stream well: everything from the finish on (finish reason, usage, `[DONE]` / `message_stop` /
    /// `response.completed`). The relay sends it only after the charge is durable.
    fn end(&mut self, out: &mut Vec<u8>);

    /// Ends the stream with the format's own error event, open blocks closed first.
    fn error(&mut self, error: &WireError, out: &mut Vec<u8>);
}

/// What passing a piece of a stream on gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forwarded {
    /// For the client, now. Empty while an event is incomplete.
    pub now: Bytes,
    /// Whether the stream's good end has been seen; its bytes are held back and come from [`StreamForward::end`].
    pub ended: bool,
}

/// Passes one stream on between equal formats: the bytes as they are, whole events at a time, the model's name set,
/// usage read, a usage chunk that the client did not ask for taken out, and the end held back.
pub trait StreamForward: Send {
    /// Takes bytes as they come.
    fn push(&mut self, bytes: Bytes) -> Result<Forwarded, Garbled>;

    /// The body ended. Without a good end seen: [`Garbled::BrokeOff`].
    fn finish(&mut self) -> Result<(), Garbled>;

    /// The held-back end.
    fn end(&mut self) -> Bytes;

    /// The usage seen so far; complete once the end was seen.
    fn usage(&self) -> Option<hub::Usage>;

    /// Bytes of visible text, reasoning and arguments passed on so far, for an honest count where usage is missing.
    fn text_bytes(&self) -> u64;

    /// Keep-alive bytes, as [`StreamWriter::keep_alive`]. Only legal between two pushes.
    fn keep_alive(&mut self, out: &mut Vec<u8>);

    /// The format's own error event for this point of the stream, open blocks closed first.
    fn error(&mut self, error: &WireError, out: &mut Vec<u8>);
}
