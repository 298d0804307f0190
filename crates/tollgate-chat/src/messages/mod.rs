//! Anthropic's Messages format, the strictest of the four: roles alternate, calls and results pair up, blocks of a stream come one
//! after the other.
//!
//! `X_read` converts JSON into the hub's form, `X_write` the hub's form into JSON, `forward` passes bytes on between equal formats.

mod block_read;
mod block_write;
mod citations;
mod constants;
mod content_checks;
mod error;
mod field_names;
mod fields;
mod finish;
mod forward;
mod ids;
mod notes;
mod request_read;
mod request_summary;
mod request_write;
mod response_read;
mod response_write;
mod stream_read;
mod stream_write;
mod thread;
mod usage;

use bytes::Bytes;

use crate::error::{ErrorBody, InvalidRequest, MalformedResponse, UpstreamError};
use crate::format::{
    FieldProbes, Format, ForwardedRequest, ForwardedResponse, RenderOptions, RequestSummary,
    StreamForwarder, StreamReader, StreamWriter, Target, WrittenRequest,
};
use crate::hub;
use crate::output_cap;

/// Anthropic's Messages format.
pub struct Messages;

impl Format for Messages {
    fn name(&self) -> &'static str {
        constants::NAME
    }

    fn client_format(&self) -> &'static hub::ClientFormat {
        &field_names::CLIENT_FORMAT
    }

    fn prompt_extending_members(&self) -> &'static [&'static str] {
        &[r#""mcp_servers""#, r#""container""#]
    }

    fn reasons_only_on_request(&self) -> bool {
        true
    }

    fn add_output_cap(
        &self,
        body: &Bytes,
        summary: &mut RequestSummary,
        cap: u64,
    ) -> Option<Bytes> {
        output_cap::set_cap(body, summary, "max_tokens", &[], cap)
    }

    fn field_probes(&self) -> FieldProbes {
        FieldProbes::from_json(include_str!("field_probes.json"))
    }

    fn summarize_request(&self, body: &[u8]) -> Result<RequestSummary, InvalidRequest> {
        request_summary::summarize_request(body)
    }

    fn read_request(&self, body: &[u8]) -> Result<hub::Request, InvalidRequest> {
        request_read::read_request(body)
    }

    fn write_request(
        &self,
        request: &hub::Request,
        target: &Target<'_>,
    ) -> Result<WrittenRequest, InvalidRequest> {
        request_write::write_request(request, target)
    }

    fn accepts_url(&self, part: &hub::PartKind, _: &hub::ModelCapabilities) -> bool {
        request_write::accepts_url(part)
    }

    fn forward_request(
        &self,
        body: &Bytes,
        summary: &RequestSummary,
        target: &Target<'_>,
    ) -> Result<ForwardedRequest, InvalidRequest> {
        forward::forward_request(body, summary, target)
    }

    fn read_response(&self, body: &[u8]) -> Result<hub::Response, MalformedResponse> {
        response_read::read_response(body)
    }

    fn write_response(&self, response: &hub::Response, options: &RenderOptions<'_>) -> Vec<u8> {
        response_write::write_response(response, options)
    }

    fn forward_response(
        &self,
        body: &Bytes,
        model: &str,
    ) -> Result<ForwardedResponse, MalformedResponse> {
        forward::forward_response(body, model)
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::new(stream_read::Reader::default())
    }

    fn stream_writer(&self, options: &RenderOptions<'_>) -> Box<dyn StreamWriter> {
        Box::new(stream_write::Writer::new(options))
    }

    fn stream_forwarder(&self, options: &RenderOptions<'_>) -> Box<dyn StreamForwarder> {
        Box::new(forward::Forwarder::new(options))
    }

    fn write_error(&self, error: &ErrorBody) -> Vec<u8> {
        error::write_error(error)
    }

    fn read_error(&self, status: u16, body: &[u8]) -> UpstreamError {
        error::read_error(status, body)
    }
}

/// Reads the body of a `count_tokens` request: a request without `max_tokens`, which [`Messages::read_request`] accepts too.
pub fn read_count_request(body: &[u8]) -> Result<hub::Request, InvalidRequest> {
    request_read::read_request(body)
}

/// The response to a `count_tokens` request.
pub fn write_count_response(tokens: u64) -> Vec<u8> {
    serde_json::json!({"input_tokens": tokens})
        .to_string()
        .into_bytes()
}
