//! Checks that providers can be reached: sends one request without a key to each base URL.

use std::sync::Arc;

use futures_util::future::join_all;
use tollgate_config::Config;
use tollgate_core::SystemClock;
use tollgate_server::channel_test::{Reached, reach};
use tollgate_server::oidc::OidcProvider;
use tollgate_server::reloadable::Reloadable;
use tollgate_upstream::egress::{Client, ClientOptions};

use super::finding::Finding;
use super::local::{ClockDifference, UNUSABLE_CLOCK_DIFFERENCE};

/// Sends a request to every channel's provider at the same time. Returns the clocks of those whose responses have a date.
pub(super) async fn check_channels(
    reloadable: &Reloadable,
    found: &mut Vec<Finding>,
) -> Vec<ClockDifference> {
    if reloadable.routing.is_built_in() {
        found.push(Finding::warn(
            "channels",
            "none is configured: the sandbox serves every model",
            "run `tollgate init`, or add a [[channel]]: docs/channels.md",
        ));
        return Vec::new();
    }
    let client = Client::new(ClientOptions::default());
    let channels = reloadable.routing.channels();
    let results = channels.iter().map(|open| reach(&client, &open.channel));
    let results = join_all(results).await;
    let mut clocks = Vec::new();
    for (open, result) in channels.iter().zip(results) {
        let name = &open.channel.name;
        found.push(match result {
            None => Finding::ok("channel", format!("{name} needs no network")),
            Some(Ok(Reached { status: 500.., .. })) => Finding::warn(
                "channel",
                format!("{name} returns a server error"),
                "look at the provider's status page",
            ),
            Some(Ok(reached)) => {
                clocks.extend(reached.difference.map(|ms| ClockDifference {
                    of: format!("the server of channel {name}"),
                    ms,
                    unusable_from: UNUSABLE_CLOCK_DIFFERENCE,
                }));
                let message = format!("{name} responds in {} ms", reached.ms);
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

/// Checks that the OpenID provider responds. `None` if none is configured.
pub(super) async fn check_oidc(config: &Config) -> Option<Finding> {
    let settings = config.oidc.clone()?;
    let issuer = settings.issuer.clone();
    let client = Client::new(ClientOptions::default());
    let provider = OidcProvider::new(settings, ["", ""], client, Arc::new(SystemClock));
    Some(match provider.check().await {
        Ok(()) => Finding::ok("oidc", format!("{issuer} responds")),
        Err(e) => Finding::fail("oidc", e, "check `[oidc]`: docs/oidc.md"),
    })
}
