//! `thread`: a conversation that Anthropic stores, so that later requests contain only the new turns.
//! Source: the tool runners of Anthropic's SDKs (beta `message-threads`).

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::InvalidRequest;
use crate::format::Thread;

#[derive(Deserialize)]
struct ThreadBody {
    #[serde(rename = "type")]
    kind: Option<String>,
    previous_message_id: Option<String>,
}

/// Reads `thread`. `None` if the request contains its complete history.
pub(super) fn read_thread(raw: Option<&RawValue>) -> Result<Option<Thread>, InvalidRequest> {
    let Some(raw) = raw else { return Ok(None) };
    let body: ThreadBody = serde_json::from_str(raw.get()).map_err(|_| {
        let why = "must be an object with a string `type`, and a string `previous_message_id`";
        InvalidRequest::new("thread", why)
    })?;
    match (body.kind.as_deref(), body.previous_message_id) {
        (Some("create"), _) => Ok(Some(Thread::Create)),
        (Some("continue"), Some(id)) if !id.is_empty() => Ok(Some(Thread::Continue(id))),
        (Some("continue"), _) => {
            let why = "is required with `type` `continue`: the id of the reply before";
            Err(InvalidRequest::new("thread.previous_message_id", why))
        }
        _ => Err(InvalidRequest::new(
            "thread.type",
            "must be `create` or `continue`",
        )),
    }
}
