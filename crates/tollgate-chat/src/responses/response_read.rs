//! Reads an upstream's complete (non-streaming) response into the hub's form.

use serde_json::{Value, json};

use super::error::{malformed, upstream_failure};
use super::hub_events::HubEventBuilder;
use crate::error::MalformedResponse;
use crate::hub::{Response, ResponseBuilder};

/// See [`crate::Format::read_response`].
pub(super) fn read_response(body: &[u8]) -> Result<Response, MalformedResponse> {
    let response: Value = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
    reject_failed_response(response["status"].as_str(), &response)?;
    if !response["output"].is_array() {
        return Err(MalformedResponse::Invalid(
            "a response without output".to_owned(),
        ));
    }
    if response["status"] != "incomplete" {
        reject_empty_response(&response)?;
    }
    let (mut builder, mut events) = (HubEventBuilder::default(), Vec::new());
    builder.read_metadata(&response);
    builder.response_done(&response, response["status"] == "incomplete", &mut events)?;
    let mut fold = ResponseBuilder::default();
    for event in &events {
        fold.push(event);
    }
    let mut reply = fold.build();
    reply.service_tier = response["service_tier"].as_str().map(str::to_owned);
    Ok(reply)
}

/// Returns an error for a completed response without output and without output tokens: the provider's server failed.
pub(super) fn reject_empty_response(response: &Value) -> Result<(), MalformedResponse> {
    let is_empty = response["output"].as_array().is_some_and(Vec::is_empty);
    let tokens = response["usage"]["output_tokens"].as_f64();
    if is_empty && tokens.unwrap_or(0.0) == 0.0 {
        let why = "a response with an empty output".to_owned();
        return Err(MalformedResponse::Invalid(why));
    }
    Ok(())
}

/// Returns an error for a response that failed, was cancelled or is not finished.
pub(super) fn reject_failed_response(
    status: Option<&str>,
    response: &Value,
) -> Result<(), MalformedResponse> {
    let has_error = !response["error"].is_null();
    match status {
        Some("failed" | "cancelled") => {}
        _ if has_error => {}
        Some("queued" | "in_progress") => {
            return Err(MalformedResponse::Invalid(
                "a response that is not finished".to_owned(),
            ));
        }
        _ => return Ok(()),
    }
    Err(upstream_failure(
        json!({"object": "response", "error": response["error"]}),
    ))
}
