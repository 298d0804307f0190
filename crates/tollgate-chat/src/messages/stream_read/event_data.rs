//! The data of stream events as JSON.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::MalformedResponse;
use crate::messages::error::parse_error;
use crate::messages::fields::JsonString;

/// The data of any event. Each event has some of the members.
#[derive(Deserialize)]
pub(crate) struct EventData<'a> {
    /// The event's type.
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<JsonString<'a>>,
    /// In `message_start`.
    #[serde(borrow)]
    pub(crate) message: Option<&'a RawValue>,
    /// Index of the block.
    pub(crate) index: Option<u64>,
    /// In `content_block_start`.
    #[serde(borrow)]
    pub(crate) content_block: Option<&'a RawValue>,
    /// In `content_block_delta` and `message_delta`.
    #[serde(borrow)]
    pub(crate) delta: Option<Delta<'a>>,
    /// In `message_delta`.
    #[serde(borrow)]
    pub(crate) usage: Option<&'a RawValue>,
    /// In `error`.
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

/// A `delta` of a block or of the message.
#[derive(Deserialize, Default)]
pub(crate) struct Delta<'a> {
    #[serde(borrow)]
    pub(crate) text: Option<JsonString<'a>>,
    #[serde(borrow)]
    pub(crate) partial_json: Option<JsonString<'a>>,
    #[serde(borrow)]
    pub(crate) thinking: Option<JsonString<'a>>,
    #[serde(borrow)]
    pub(crate) signature: Option<JsonString<'a>>,
    #[serde(borrow)]
    pub(crate) citation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) stop_reason: Option<JsonString<'a>>,
    #[serde(borrow)]
    pub(crate) stop_sequence: Option<JsonString<'a>>,
}

/// The `message` in `message_start`.
#[derive(Deserialize, Default)]
pub(crate) struct MessageHead<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<JsonString<'a>>,
    #[serde(borrow)]
    pub(crate) model: Option<JsonString<'a>>,
    #[serde(borrow)]
    pub(crate) usage: Option<&'a RawValue>,
}

/// Parses the data of one event.
pub(crate) fn parse_event(data: &str) -> Result<EventData<'_>, MalformedResponse> {
    serde_json::from_str(data)
        .map_err(|error| MalformedResponse::Invalid(format!("an event is not valid: {error}")))
}

/// The error in an error event.
pub(crate) fn parse_stream_error(error: &RawValue) -> MalformedResponse {
    let value: Value = serde_json::from_str(error.get()).unwrap_or_default();
    MalformedResponse::Upstream(parse_error(&json!({"error": value})))
}
