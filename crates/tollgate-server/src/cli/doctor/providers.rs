//! Whether providers can be reached: one request without a key to each base URL.

use futures_util::future::join_all;
use tollgate_upstream::egress::{Client, ClientOptions};

use super::finding::Finding;
use super::local::ClockDifference;
use crate::channel_test::{Reached, reach};
use crate::config::Config;

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
