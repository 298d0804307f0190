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

use crate::error::{ErrorBody, InvalidRequest, MalformedResponse, UpstreamError};
use crate::format::{
    Format, ForwardedResponse, RenderOptions, RequestSummary, StreamForwarder, StreamReader,
    StreamWriter, Target, WrittenRequest,
};
use crate::hub;

/// Messages, Anthropic's format.
pub struct Messages;

impl Format for Messages {
    fn name(&self) -> &'static str {
        wire::NAME
    }
    fn summarize_request(&self, body: &[u8]) -> Result<RequestSummary, InvalidRequest> {
        glance::glance(body)
    }
    fn read_request(&self, body: &[u8]) -> Result<hub::Request, InvalidRequest> {
        request::read(body)
    }
    fn write_request(
        &self,
        request: &hub::Request,
        target: &Target<'_>,
    ) -> Result<WrittenRequest, InvalidRequest> {
        request::write(request, target)
    }
    fn accepts_url(&self, part: &hub::PartKind, _: &hub::ModelCapabilities) -> bool {
        request::accepts_url(part)
    }
    fn forward_request(
        &self,
        body: &Bytes,
        glance: &RequestSummary,
        target: &Target<'_>,
    ) -> Result<Bytes, InvalidRequest> {
        forward::request(body, glance, target)
    }
    fn read_response(&self, body: &[u8]) -> Result<hub::Response, MalformedResponse> {
        reply::read(body)
    }
    fn write_response(&self, reply: &hub::Response, rendering: &RenderOptions<'_>) -> Vec<u8> {
        reply::write(reply, rendering)
    }
    fn forward_response(
        &self,
        body: &Bytes,
        model: &str,
    ) -> Result<ForwardedResponse, MalformedResponse> {
        forward::reply(body, model)
    }
    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::new(stream_read::Reader::default())
    }
    fn stream_writer(&self, rendering: &RenderOptions<'_>) -> Box<dyn StreamWriter> {
        Box::new(stream_write::Writer::new(rendering))
    }
    fn stream_forwarder(&self, rendering: &RenderOptions<'_>) -> Box<dyn StreamForwarder> {
        Box::new(forward_stream::Forward::new(rendering))
    }
    fn write_error(&self, error: &ErrorBody) -> Vec<u8> {
        error::write(error).to_string().into_bytes()
    }
    fn read_error(&self, status: u16, body: &[u8]) -> UpstreamError {
        error::read(status, body)
    }
}

/// Reads the body of a `count_tokens` request: a request whose cap may be missing, as it may anywhere here.
pub fn read_count_request(body: &[u8]) -> Result<hub::Request, InvalidRequest> {
    request::read(body)
}

/// The answer to a `count_tokens` request.
pub fn write_count_response(tokens: u64) -> Vec<u8> {
    serde_json::json!({"input_tokens": tokens})
        .to_string()
        .into_bytes()
}
