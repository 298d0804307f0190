//! Tests of the Responses format through the crate's public interface.

mod forward;
mod malformed_input;
mod request_summary;
mod requests;
mod response_write;
mod stream_order;
mod streams;

use serde_json::Value;

use tollgate_chat::format::{Format, RenderOptions, Target, WrittenRequest};
use tollgate_chat::hub::{ModelCapabilities, Request};
use tollgate_chat::responses::Responses;

pub(crate) fn rendering() -> RenderOptions<'static> {
    RenderOptions {
        model: "client-model",
        created: 1_700_000_000,
        seed: "seed",
        include_usage: false,
        estimated_prompt_tokens: 0,
        request: None,
        json_array: false,
    }
}

pub(crate) fn target(capabilities: &ModelCapabilities) -> Target<'_> {
    Target {
        model: "upstream-model",
        stream: false,
        capabilities,
        default_max_tokens: 4096,
    }
}

pub(crate) fn read(body: &Value) -> Request {
    let body = body.to_string();
    Responses
        .read_request(body.as_bytes())
        .unwrap_or_else(|bad| panic!("{bad}: {body}"))
}

/// Writes `request` for an upstream without restrictions.
pub(crate) fn written(request: &Request) -> (Value, WrittenRequest) {
    written_for(request, &ModelCapabilities::default())
}

pub(crate) fn written_for(
    request: &Request,
    capabilities: &ModelCapabilities,
) -> (Value, WrittenRequest) {
    let written = Responses
        .write_request(request, &target(capabilities))
        .unwrap();
    (serde_json::from_slice(&written.body).unwrap(), written)
}
