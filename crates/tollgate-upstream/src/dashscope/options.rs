//! The options of a DashScope channel.

use http::HeaderValue;

use crate::channel::{Channel, known_options};

/// Checks the options of a channel.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    known_options(channel, &["workspace"], &[])?;
    workspace(channel).map(drop)
}

/// The workspace of the requests. `None` if the channel has no such option.
pub(super) fn workspace(channel: &Channel) -> Result<Option<HeaderValue>, String> {
    let Some(value) = channel.options.get("workspace") else {
        return Ok(None);
    };
    let id = value.as_str().filter(|id| !id.is_empty());
    let id = id.and_then(|id| HeaderValue::from_str(id).ok());
    let error = || format!("`workspace` must be the id of a workspace as a string, got {value}");
    id.map(Some).ok_or_else(error)
}
