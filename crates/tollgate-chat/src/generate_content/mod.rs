//! generateContent, the chat format of Google's Gemini API.
//!
//! Model and method are in the path ([`path`]), so [`RequestSummary::model`] is `None` and
//! [`RequestSummary::stream`] is false. Names are lowerCamelCase; requests may use snake_case. Where the
//! format's peculiarities are handled:
//!
//! | | |
//! |---|---|
//! | two dialects of schemas | `schema` |
//! | function responses: one content, one per call, same order, always objects | `request_write/contents.rs` |
//! | signatures on parts | `signatures.rs` |
//! | calls without ids | `call_ids.rs` |
//! | a tool call ends with STOP; a blocked prompt has no candidates | `finish.rs` |
//! | citation offsets in bytes | `grounding.rs` |
//! | SDKs parse streams line by line; only an empty line is safe as keep-alive | `stream_write.rs` |
//! | the last finish reason is known only when the body ends | `stream_read.rs`, `forward/stream.rs` |

mod call_ids;
mod constants;
mod count_tokens;
mod error;
mod field_names;
mod fields;
mod file_uri;
mod finish;
mod forward;
mod grounding;
mod logprobs;
mod part_read;
mod part_write;
pub mod path;
mod request_read;
mod request_summary;
mod request_write;
mod response_chunk;
mod response_read;
mod response_write;
mod schema;
mod signatures;
mod stream_framing;
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

pub use count_tokens::{extract_counted_request, write_count_response};

/// Google's generateContent format.
pub struct GenerateContent;

impl Format for GenerateContent {
    fn name(&self) -> &'static str {
        constants::NAME
    }

    fn client_format(&self) -> &'static hub::ClientFormat {
        &field_names::CLIENT_FORMAT
    }

    fn prompt_extending_members(&self) -> &'static [&'static str] {
        &[r#""cachedContent""#, r#""cached_content""#]
    }

    fn add_output_cap(
        &self,
        body: &Bytes,
        summary: &mut RequestSummary,
        cap: u64,
    ) -> Option<Bytes> {
        forward::add_output_cap(body, summary, cap)
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

    fn accepts_url(&self, part: &hub::PartKind, capabilities: &hub::ModelCapabilities) -> bool {
        request_write::accepts_url(part, capabilities)
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

    fn write_response(&self, reply: &hub::Response, options: &RenderOptions<'_>) -> Vec<u8> {
        response_write::write_response(reply, options)
    }

    fn forward_response(
        &self,
        body: &Bytes,
        model: &str,
    ) -> Result<ForwardedResponse, MalformedResponse> {
        forward::forward_response(body, model)
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::<stream_read::Reader>::default()
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
