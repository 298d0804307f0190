//! OpenAI's chat-completions format, also used by most compatible vendors.

mod constants;
mod error;
mod field_names;
mod finish;
mod forward;
mod ids;
mod images;
mod json_fields;
mod model_limits;
mod reasoning;
mod request_read;
mod request_summary;
mod request_write;
mod response_read;
mod response_write;
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

pub(crate) use request_summary::has_plain_fields_only;

/// OpenAI's chat-completions format.
pub struct ChatCompletions;

impl Format for ChatCompletions {
    fn name(&self) -> &'static str {
        constants::NAME
    }

    fn client_format(&self) -> &'static hub::ClientFormat {
        &field_names::CLIENT_FORMAT
    }

    fn prompt_extending_members(&self) -> &'static [&'static str] {
        &[r#""web_search_options""#, r#""plugins""#]
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

    /// Only images and videos may be URLs.
    fn accepts_url(&self, part: &hub::PartKind, _: &hub::ModelCapabilities) -> bool {
        matches!(
            part,
            hub::PartKind::Image { .. } | hub::PartKind::Video { .. }
        )
    }

    fn forward_request(
        &self,
        body: &Bytes,
        summary: &RequestSummary,
        target: &Target<'_>,
    ) -> Result<ForwardedRequest, InvalidRequest> {
        forward::forward_request(body, summary, target)
    }

    fn runs_web_search(&self, capabilities: &hub::ModelCapabilities) -> bool {
        capabilities.supports_chat_search
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
        openai_error::write_error(error)
    }

    fn read_error(&self, status: u16, body: &[u8]) -> UpstreamError {
        openai_error::read_error(status, body)
    }
}
