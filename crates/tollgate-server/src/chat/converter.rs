//! Converts the upstream's stream to the client's, and counts its contents.

use bytes::Bytes;
use tollgate_chat::hub::{Choice, Event, ResponseBuilder};
use tollgate_chat::{
    ErrorBody, Format, MalformedResponse, RenderOptions, StreamForwarder, StreamReader,
    StreamWriter, custom_tool, json_tool, thoughts, tokens,
};

use crate::chat::billing::Delivered;
use crate::chat::endpoint::Endpoint;
use crate::chat::translate::{PreparedRequest, restore_tool_name};

/// Converts the upstream's stream to the client's.
pub enum StreamConverter {
    /// The upstream's and the client's format are the same.
    Forward(Box<dyn StreamForwarder>),
    /// The stream is translated through the hub.
    Translate(Box<Translation>),
}

/// Reads the upstream's format and writes the client's.
pub struct Translation {
    /// Reads the upstream's format.
    reader: Box<dyn StreamReader>,
    /// Writes the client's format.
    writer: Box<dyn StreamWriter>,
    /// Tools that were renamed for the upstream: (name that was sent, client's name).
    renamed_tools: Vec<(String, String)>,
    /// Converts calls of the tool that replaces JSON output back to text.
    json_tool: Option<json_tool::StreamRestorer>,
    /// Converts calls of the functions that replace free-text tools back.
    custom_tools: Option<custom_tool::StreamRestorer>,
    /// The client's format, if thoughts are omitted from the stream.
    hides_thoughts_in: Option<&'static dyn Format>,
    /// Collects tool calls with their signatures, for the signature cache.
    tool_calls: ResponseBuilder,
    events: Vec<Event>,
    delivered: Delivered,
}

impl Translation {
    /// Writes the events that were read, in the client's format.
    fn write_events(&mut self, out: &mut Vec<u8>) {
        let mut events = std::mem::take(&mut self.events);
        if let Some(json_tool) = &mut self.json_tool {
            json_tool.restore_events(&mut events);
        }
        for event in &mut events {
            if let Event::ToolStart { name, .. } = event {
                restore_tool_name(&self.renamed_tools, name);
            }
        }
        if let Some(custom_tools) = &mut self.custom_tools {
            custom_tools.restore_events(&mut events);
        }
        for event in &events {
            match event {
                Event::Text { text, .. }
                | Event::Refusal { text, .. }
                | Event::Reasoning { text, .. } => {
                    self.delivered.text_bytes += text.len() as u64;
                }
                Event::ToolStart { name, .. } => {
                    self.delivered.text_bytes += name.len() as u64;
                }
                Event::ToolArguments { json, .. } => self.delivered.text_bytes += json.len() as u64,
                Event::RedactedReasoning { data, .. } => {
                    self.delivered.text_bytes += data.data.len() as u64;
                }
                Event::Part { part, .. } => {
                    self.delivered.text_bytes += tokens::generated_bytes(&part.kind);
                }
                Event::Usage(usage)
                | Event::Start {
                    usage: Some(usage), ..
                } => self.delivered.usage = Some(*usage),
                _ => {}
            }
            if has_signature_or_tool_call(event) {
                self.tool_calls.push(event);
            }
        }
        if let Some(format) = self.hides_thoughts_in {
            thoughts::hide_in_events(&mut events, format);
        }
        for event in &events {
            self.writer.write(event, out);
        }
        events.clear();
        self.events = events;
    }
}

fn restore_custom_tools(prepared: &PreparedRequest) -> Option<custom_tool::StreamRestorer> {
    let names = &prepared.custom_tools;
    (!names.is_empty()).then(|| custom_tool::StreamRestorer::new(names.clone()))
}

/// Whether the signature cache needs an event. Text is not collected, so that a stream takes little memory.
fn has_signature_or_tool_call(event: &Event) -> bool {
    matches!(
        event,
        Event::ReasoningEnd { .. }
            | Event::Reasoning { .. }
            | Event::RedactedReasoning { .. }
            | Event::ToolStart { .. }
            | Event::ToolEnd { .. }
    )
}

impl StreamConverter {
    /// A converter from the upstream's format in `prepared` to the client's format at `endpoint`.
    pub fn new(
        endpoint: Endpoint,
        prepared: &PreparedRequest,
        options: &RenderOptions<'_>,
    ) -> Self {
        if prepared.forward {
            return Self::Forward(endpoint.format.stream_forwarder(options));
        }
        let json_tool = prepared.json_tool.as_deref();
        Self::Translate(Box::new(Translation {
            reader: prepared.format.stream_reader(),
            writer: endpoint.format.stream_writer(options),
            renamed_tools: prepared.renamed_tools.clone(),
            json_tool: json_tool.map(json_tool::StreamRestorer::new),
            custom_tools: restore_custom_tools(prepared),
            hides_thoughts_in: prepared.hides_thoughts.then_some(endpoint.format),
            tool_calls: ResponseBuilder::default(),
            events: Vec::new(),
            delivered: Delivered::default(),
        }))
    }

    /// Converts a piece of the upstream's stream.
    ///
    /// # Errors
    /// The stream is malformed, or contains an error of the upstream.
    pub fn push(&mut self, bytes: Bytes) -> Result<Bytes, MalformedResponse> {
        match self {
            Self::Forward(forwarder) => Ok(forwarder.push(bytes)?.bytes),
            Self::Translate(t) => {
                let mut out = Vec::new();
                let read = t.reader.push(&bytes, &mut t.events);
                t.write_events(&mut out);
                // The output before the error is sent first; the reader returns the error again at the next piece.
                match read {
                    Err(error) if out.is_empty() => Err(error),
                    _ => Ok(out.into()),
                }
            }
        }
    }

    /// Converts the remaining output when the upstream's body has ended.
    ///
    /// # Errors
    /// As [`StreamConverter::push`], and if the stream has no end.
    pub fn finish(&mut self) -> Result<Bytes, MalformedResponse> {
        match self {
            Self::Forward(forwarder) => forwarder.finish().map(|()| Bytes::new()),
            Self::Translate(t) => {
                let mut out = Vec::new();
                let read = t.reader.finish(&mut t.events);
                t.write_events(&mut out);
                read?;
                Ok(out.into())
            }
        }
    }

    /// Takes the tool calls that were read, with their signatures, for the signature cache. Each call is returned once.
    pub fn take_tool_calls(&mut self) -> Vec<Choice> {
        match self {
            Self::Forward(_) => Vec::new(),
            Self::Translate(t) => std::mem::take(&mut t.tool_calls).build().choices,
        }
    }

    /// Returns the bytes that end the client's stream.
    pub fn end(&mut self) -> Bytes {
        match self {
            Self::Forward(forwarder) => forwarder.end(),
            Self::Translate(t) => {
                let mut out = Vec::new();
                t.writer.end(&mut out);
                out.into()
            }
        }
    }

    /// Appends keep-alive bytes.
    pub fn keep_alive(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Forward(forwarder) => forwarder.keep_alive(out),
            Self::Translate(t) => t.writer.keep_alive(out),
        }
    }

    /// Appends the error event that ends the client's stream.
    pub fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        match self {
            Self::Forward(forwarder) => forwarder.error(error, out),
            Self::Translate(t) => t.writer.error(error, out),
        }
    }

    /// What was received so far. `complete` states whether the upstream's end was received.
    pub fn delivered(&self, complete: bool) -> Delivered {
        match self {
            Self::Forward(forwarder) => Delivered {
                usage: forwarder.usage(),
                text_bytes: forwarder.text_bytes(),
                complete,
            },
            Self::Translate(t) => Delivered {
                complete,
                ..t.delivered
            },
        }
    }
}
