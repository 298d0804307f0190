//! `tollgate channel list`.

use clap::Subcommand;
use serde_json::{Value, json};
use tollgate_upstream as upstream;

use super::{Common, Failed};
use crate::config::Overrides;
use crate::routing::Routing;

#[derive(Subcommand)]
pub(super) enum Channel {
    /// List the channels
    List,
}

impl Channel {
    pub(super) fn run(&self, common: &Common) -> Result<(), Failed> {
        let Self::List = self;
        let config = common.configuration(Overrides::default())?;
        let routing = Routing::open(&config.channels, &config.provider_settings())?;
        let channels: Vec<&upstream::Channel> =
            routing.channels().iter().map(|c| &*c.channel).collect();
        let records: Value = channels.iter().map(|c| record(c)).collect();
        common.print(&records, || {
            channels
                .iter()
                .map(|c| line(c))
                .collect::<Vec<_>>()
                .join("\n")
        })
    }
}

fn record(channel: &upstream::Channel) -> Value {
    let models: Vec<Value> = channel
        .models
        .iter()
        .map(|m| json!({ "name": m.name, "upstream": m.upstream }))
        .collect();
    json!({
        "name": channel.name,
        "kind": channel.kind,
        "base_url": channel.base_url,
        "api_keys": channel.api_keys.len(),
        "models": if models.is_empty() { json!("all") } else { json!(models) },
        "priority": channel.priority,
        "weight": channel.weight,
        "max_concurrency": channel.max_concurrency,
    })
}

fn line(channel: &upstream::Channel) -> String {
    let models: Vec<&str> = channel.models.iter().map(|m| m.name.as_str()).collect();
    let models = if models.is_empty() {
        "all models".to_owned()
    } else {
        models.join(", ")
    };
    format!(
        "{}  {}  priority {}, weight {}  {models}",
        channel.name, channel.kind, channel.priority, channel.weight
    )
}
