//! Tests a channel: sends one small chat with a key, or one request to its server.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use tollgate_chat::Target;
use tollgate_chat::hub::{self, Part, PartKind, Role, Turn};
use tollgate_config::Config;
use tollgate_config::providers::provider_of_kind;
use tollgate_core::{Clock as _, Millis, SystemClock};
use tollgate_media::Catalogue;
use tollgate_upstream::egress::{Client, Timeouts, body};
use tollgate_upstream::{Channel, ChatCall, ChatTimeouts};

use crate::chat::response_memory::ResponseBudget;
use crate::routing::OpenChannel;

/// Output tokens of a test: at least every provider's minimum.
const TEST_TOKENS: u64 = 16;
const TIMEOUTS: Timeouts = Timeouts {
    connect: Some(Duration::from_secs(5)),
    first_byte: Duration::from_secs(10),
    idle: Duration::from_secs(5),
};

/// A response of a provider's server, with any status.
pub struct Reached {
    /// The HTTP status.
    pub status: u16,
    /// Milliseconds until the response was received.
    pub ms: Millis,
    /// The server's clock minus this machine's, in milliseconds; a server reports whole seconds.
    pub difference: Option<Millis>,
}

/// Sends a request without a key to the server of a channel's base URL. `None` if the channel's provider is this process. The error states what
/// failed.
pub async fn reach(client: &Client, channel: &Channel) -> Option<Result<Reached, String>> {
    let url = (provider_of_kind(&channel.kind)?.base_url)(channel)?;
    let request = match Request::get(&url).body(body(Bytes::new())) {
        Ok(request) => request,
        Err(e) => return Some(Err(format!("{url}: {e}"))),
    };
    let started = SystemClock.now();
    let response = match client.send(request, TIMEOUTS).await {
        Ok(response) => response,
        Err(e) => return Some(Err(format!("{url}: {e}"))),
    };
    let ended = SystemClock.now();
    let date = response.headers().get(header::DATE);
    let date = date.and_then(|date| parse_http_date(date.to_str().ok()?));
    Some(Ok(Reached {
        status: response.status().as_u16(),
        ms: ended - started,
        // Assumes the middle of the reported second, and that the server read its clock halfway between request and response.
        difference: date.map(|date| date + 500 - (started + ended) / 2),
    }))
}

/// Parses `Mon, 23 Nov 2026 09:20:42 GMT` to Unix milliseconds.
fn parse_http_date(text: &str) -> Option<Millis> {
    let parsed = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text);
    parsed.ok().map(jiff::Timestamp::as_millisecond)
}

/// The model to test a channel with: the requested one, or the channel's first chat model.
///
/// # Errors
/// A sentence for the operator if there is none.
pub fn tested_model(
    catalogue: &Catalogue,
    open: &OpenChannel,
    requested: Option<&str>,
) -> Result<String, String> {
    let name = &open.channel.name;
    if let Some(model) = requested {
        let known = catalogue.check_chat_model(model);
        known.map_err(|e| e.to_string())?;
        return match open.channel.upstream_model(model) {
            Some(_) => Ok(model.to_owned()),
            None => Err(format!("channel {name:?} does not serve {model}")),
        };
    }
    let mut listed = open.channel.models.iter().map(|m| m.name.as_str());
    let first = listed.find(|model| catalogue.check_chat_model(model).is_ok());
    let serves_every_model = open.channel.models.is_empty()
        && open.channel.base_url.is_none()
        && open.channel.api_keys.is_empty();
    match first {
        Some(model) => Ok(model.to_owned()),
        // A channel without address and key is the sandbox, and it serves every model.
        None if serves_every_model => Ok("gpt-5-nano".to_owned()),
        None => Err(format!(
            "channel {name:?} lists no chat model: name one with --model"
        )),
    }
}

/// Sends one small chat with the key of that index; returns the reply's text and its tokens.
///
/// # Errors
/// What failed.
pub async fn send_test_request(
    config: &Config,
    open: &OpenChannel,
    model: &str,
    key: usize,
) -> Result<(String, u64), String> {
    let provider = open
        .provider
        .chat
        .as_ref()
        .ok_or("this kind of channel does not chat")?;
    let upstream_model = open
        .channel
        .upstream_model(model)
        .ok_or("the channel does not serve this model")?;
    let known = provider.model(upstream_model);
    let format = *provider
        .formats_for(upstream_model)
        .first()
        .ok_or("the channel speaks no chat format")?;
    let request = hub::Request {
        model: model.to_owned(),
        turns: vec![Turn::new(Role::User, vec![Part::text("hi")])],
        max_tokens: Some(TEST_TOKENS),
        ..hub::Request::default()
    };
    let target = Target {
        model: &known.upstream_id,
        stream: false,
        capabilities: &known.capabilities,
        default_max_tokens: TEST_TOKENS,
    };
    let written = format
        .write_request(&request, &target)
        .map_err(|e| e.to_string())?;
    let call = ChatCall {
        format,
        model: &known.upstream_id,
        stream: false,
        body: written.body.into(),
        key: open.channel.api_keys.get(key),
        headers: &HeaderMap::new(),
        request_id: "channel-test",
        trace: None,
        failed_attempts: 0,
        timeouts: ChatTimeouts {
            connect: config.time_limits.chat_connect,
            first_byte: Duration::from_secs(60).min(config.time_limits.chat_first_byte),
            idle: config.time_limits.chat_idle,
        },
    };
    let body = provider
        .send(call)
        .await
        .map_err(|e| format!("{} ({:?})", e.message, e.kind))?;
    let response = ResponseBudget::default().collect(body).await;
    let response = response.map_err(|e| e.message)?;
    let reply = format
        .read_response(&response.bytes)
        .map_err(|e| e.to_string())?;
    let parts = reply.choices.iter().flat_map(|choice| &choice.parts);
    let texts = parts.filter_map(|part| match &part.kind {
        PartKind::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    Ok((
        texts.collect(),
        reply.usage.map_or(0, |usage| usage.total()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates_are_read() {
        assert_eq!(
            parse_http_date("Thu, 01 Jan 1970 00:00:42 GMT"),
            Some(42_000)
        );
        assert_eq!(parse_http_date("yesterday"), None);
    }
}
