//! Whether providers can be reached: one request without a key to each base URL.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, header};
use tollgate_core::{Clock as _, Millis, SystemClock};
use tollgate_upstream::Channel;
use tollgate_upstream::egress::{Client, ClientOptions, Timeouts, body};

use super::finding::Finding;
use super::local::ClockDifference;
use crate::config::Config;
use crate::providers::provider_of_kind;

const TIMEOUTS: Timeouts = Timeouts {
    connect: Some(Duration::from_secs(5)),
    first_byte: Duration::from_secs(10),
    idle: Duration::from_secs(5),
};

/// An answer of a provider's server, whatever it says.
pub(in crate::cli) struct Reached {
    /// The HTTP status.
    pub(in crate::cli) status: u16,
    /// Milliseconds until it came.
    pub(in crate::cli) ms: Millis,
    /// The server's time less this machine's, in milliseconds; a server tells whole seconds.
    difference: Option<Millis>,
}

/// Asks the server of a channel's base URL for anything, without a key. `None` if the channel's provider is this process.
pub(in crate::cli) async fn reach(
    client: &Client,
    channel: &Channel,
) -> Option<Result<Reached, String>> {
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
        // In the middle of its second, which was somewhere between the question and the answer.
        difference: date.map(|date| date + 500 - (started + ended) / 2),
    }))
}

/// Unix milliseconds of `Mon, 23 Nov 2026 09:20:42 GMT`.
fn parse_http_date(text: &str) -> Option<Millis> {
    let parsed = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text);
    parsed.ok().map(jiff::Timestamp::as_millisecond)
}

/// Reaches every channel's provider at the same time. Returns the clocks of those that tell the time.
pub(super) async fn check_channels(
    config: &Config,
    found: &mut Vec<Finding>,
) -> Vec<ClockDifference> {
    if config.channels.is_empty() {
        found.push(Finding::warn(
            "channels",
            "none is configured: the sandbox serves every model",
            "run `tollgate init`, or add a [[channel]]: docs/channels.md",
        ));
        return Vec::new();
    }
    let client = Client::new(ClientOptions::default());
    let answers = config
        .channels
        .iter()
        .map(|channel| reach(&client, channel));
    let answers = join_all(answers).await;
    let mut clocks = Vec::new();
    for (channel, answer) in config.channels.iter().zip(answers) {
        let name = &channel.name;
        found.push(match answer {
            None => Finding::ok("channel", format!("{name} needs no network")),
            Some(Ok(Reached { status: 500.., .. })) => Finding::warn(
                "channel",
                format!("{name} answers with a server error"),
                "look at the provider's status page",
            ),
            Some(Ok(reached)) => {
                clocks.extend(reached.difference.map(|ms| ClockDifference {
                    of: format!("the server of channel {name}"),
                    ms,
                }));
                let message = format!("{name} answers in {} ms", reached.ms);
                Finding::ok("channel", message)
            }
            Some(Err(why)) => Finding::fail(
                "channel",
                format!("{name} cannot be reached: {why}"),
                "check base_url, the network and its firewall, and the certificates of a proxy",
            ),
        });
    }
    clocks
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
