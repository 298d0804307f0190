//! Responses, OpenAI's newer chat format, with the alternative spellings that `/v1/responses`
//! accepts (`max_tokens`, nested `function` tools, `remote_mcp`).
//!
//! `X_read` converts JSON into the hub's form, `X_write` the hub's form into JSON, `forward` passes
//! bytes on between equal formats.

mod annotations;
mod constants;
mod encrypted_content;
mod error;
mod extra_fields;
mod field_names;
mod finish;
mod forward;
mod hub_events;
mod json;
mod output;
mod request_read;
mod request_summary;
mod request_write;
mod response_read;
mod response_write;
mod stream_events;
mod stream_read;
mod stream_write;
mod usage;

use bytes::Bytes;

use crate::error::{ErrorBody, InvalidRequest, MalformedResponse, UpstreamError};
use crate::format::{
    FieldProbes, Format, ForwardedRequest, ForwardedResponse, RenderOptions, RequestSummary,
    StreamForwarder, StreamReader, StreamWriter, Target, WrittenRequest,
};
use crate::hub;
use crate::openai_error;
use crate::output_cap;

/// OpenAI's Responses format.
pub struct Responses;

impl Format for Responses {
    fn name(&self) -> &'static str {
        constants::NAME
    }

    fn client_format(&self) -> &'static hub::ClientFormat {
        &field_names::CLIENT_FORMAT
    }

    fn prompt_extending_members(&self) -> &'static [&'static str] {
        &[
            r#""previous_response_id""#,
            r#""conversation""#,
            r#""prompt""#,
        ]
    }

    fn keeps_reasoning_signatures(&self) -> bool {
        true
    }

    fn stores_replies(&self) -> bool {
        true
    }

    fn add_output_cap(
        &self,
        body: &Bytes,
        summary: &mut RequestSummary,
        cap: u64,
    ) -> Option<Bytes> {
        output_cap::set_cap(body, summary, "max_output_tokens", &["max_tokens"], cap)
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

    fn forward_request(
        &self,
        body: &Bytes,
        _: &RequestSummary,
        target: &Target<'_>,
    ) -> Result<ForwardedRequest, InvalidRequest> {
        forward::forward_request(body, target)
    }

    fn read_response(&self, body: &[u8]) -> Result<hub::Response, MalformedResponse> {
        response_read::read_response(body)
    }

    fn write_response(&self, reply: &hub::Response, options: &RenderOptions<'_>) -> Vec<u8> {
        response_write::write_response(reply, options)
    }

    fn envelope_response(&self, bare: Vec<u8>) -> Vec<u8> {
        response_write::envelope_response(bare)
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
        openai_error::write_error(error)
    }

    fn read_error(&self, status: u16, body: &[u8]) -> UpstreamError {
        openai_error::read_error(status, body)
    }
}
