//! Forwards a complete (non-streaming) response: sets the model's name and reads usage.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json_edits::{JsonEdits, json_string};
use super::text_bytes::TextBytes;
use crate::error::MalformedResponse;
use crate::format::ForwardedResponse;
use crate::hub::Usage;
use crate::responses::error::malformed;
use crate::responses::response_read::{reject_empty_response, reject_failed_response};
use crate::responses::usage::{complete_usage, count_web_searches, parse_usage};

#[derive(Deserialize)]
struct ReplyBody<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    error: Option<Value>,
    usage: Option<&'a RawValue>,
    output: Option<TextBytes>,
}

/// See [`crate::Format::forward_response`].
pub(crate) fn forward_response(
    body: &Bytes,
    model: &str,
) -> Result<ForwardedResponse, MalformedResponse> {
    let text = std::str::from_utf8(body)
        .map_err(|_| MalformedResponse::Invalid("the response is not UTF-8".to_owned()))?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(MalformedResponse::Invalid(
            "the response is not a JSON object".to_owned(),
        ));
    }
    let wire: ReplyBody<'_> = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    // A background response is returned before it is finished; only a client that requested one
    // gets here.
    let status = wire.status.as_deref();
    if !matches!(status, Some("queued" | "in_progress")) {
        let error = wire.error.unwrap_or(Value::Null);
        reject_failed_response(status, &serde_json::json!({"error": error}))?;
        let has_no_text = wire.output.as_ref().is_none_or(|bytes| bytes.0 == 0);
        if has_no_text && status != Some("incomplete") {
            let reply: Value = serde_json::from_str(text).map_err(|error| malformed(&error))?;
            reject_empty_response(&reply)?;
        }
        if wire.output.is_none() {
            return Err(MalformedResponse::Invalid(
                "a response without output".to_owned(),
            ));
        }
    }
    let mut edits = JsonEdits::new(text);
    if let Some(named) = wire.model {
        edits.replace(named, json_string(model));
    }
    if let Some(usage) = wire.usage
        && let Some(complete) = complete_usage(usage)
    {
        edits.replace(usage, complete);
    }
    Ok(ForwardedResponse {
        id: wire.id.map(Cow::into_owned),
        usage: wire.usage.and_then(parse_usage).map(|usage| Usage {
            web_searches: count_web_searches(body),
            ..usage
        }),
        text_bytes: wire.output.map_or(0, |bytes| bytes.0),
        body: edits.apply().map_or_else(|| body.clone(), Bytes::from),
    })
}
