//! Messages, Anthropic's format: the strictest of the four. Turns alternate, calls and results pair up, blocks of a stream come one
//! after the other.

mod blocks;
mod error;
mod fields;
mod forward;
mod forward_stream;
mod glance;
mod reply;
mod request;
mod stream_read;
mod stream_write;
mod usage;
mod wire;

use bytes::Bytes;

use crate::error::{Bad, ErrorWords, Garbled, WireError};
use crate::format::{
    Answer, Format, Glance, Rendering, StreamForward, StreamReader, StreamWriter, Target, Written,
};
use crate::hub;

/// Messages, Anthropic's format.
pub struct Messages;

impl Format for Messages {
    fn name(&self) -> &'static str {
        wire::NAME
    }
    fn glance(&self, body: &[u8]) -> Result<Glance, Bad> {
        glance::glance(body)
    }
    fn read_request(&self, body: &[u8]) -> Result<hub::Request, Bad> {
        request::read(body)
    }
    fn write_request(&self, request: &hub::Request, target: &Target<'_>) -> Result<Written, Bad> {
        request::write(request, target)
    }
    fn takes_url(&self, part: &hub::Kind, _: &hub::ModelTraits) -> bool {
        request::takes_url(part)
    }
    fn forward_request(
        &self,
        body: &Bytes,
        glance: &Glance,
        target: &Target<'_>,
    ) -> Result<Bytes, Bad> {
        forward::request(body, glance, target)
    }
    fn read_reply(&self, body: &[u8]) -> Result<hub::Reply, Garbled> {
        reply::read(body)
    }
    fn write_reply(&self, reply: &hub::Reply, rendering: &Rendering<'_>) -> Vec<u8> {
        reply::write(reply, rendering)
    }
    fn forward_reply(&self, body: &Bytes, model: &str) -> Result<Answer, Garbled> {
        forward::reply(body, model)
    }
    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::new(stream_read::Reader::default())
    }
    fn stream_writer(&self, rendering: &Rendering<'_>) -> Box<dyn StreamWriter> {
        Box::new(stream_write::Writer::new(rendering))
    }
    fn forward_stream(&self, rendering: &Rendering<'_>) -> Box<dyn StreamForward> {
        Box::new(forward_stream::Forward::new(rendering))
    }
    fn write_error(&self, error: &WireError) -> Vec<u8> {
        error::write(error).to_string().into_bytes()
    }
    fn read_error(&self, status: u16, body: &[u8]) -> ErrorWords {
        error::read(status, body)
    }
}

/// Reads the body of a `count_tokens` request: a request whose cap may be missing, as it may anywhere here.
pub fn read_count(body: &[u8]) -> Result<hub::Request, Bad> {
    request::read(body)
}

/// The answer to a `count_tokens` request.
pub fn count_reply(tokens: u64) -> Vec<u8> {
    serde_json::json!({"input_tokens": tokens})
        .to_string()
        .into_bytes()
}
