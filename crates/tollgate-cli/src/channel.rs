//! `tollgate channel list` and `tollgate channel test`.

use std::time::Instant;

use clap::Subcommand;
use serde_json::{Value, json};
use tollgate_config::{Config, Overrides};
use tollgate_media::Catalogue;
use tollgate_server::channel_test::{send_test_request, tested_model};
use tollgate_server::routing::Routing;
use tollgate_upstream as upstream;
use tollgate_upstream::egress::{Client, ClientOptions};

use super::common::{Common, Failed};

#[derive(Subcommand)]
pub(super) enum Channel {
    /// List the channels
    List,
    /// Send the cheapest possible real request with every key of a channel and print the response
    Test {
        /// The channel's name
        name: String,
        /// The model to send it to [default: the channel's first chat model]
        #[arg(long)]
        model: Option<String>,
    },
}

impl Channel {
    pub(super) async fn run(&self, common: &Common) -> Result<(), Failed> {
        let config = common.configuration(Overrides::default())?;
        let egress = Client::new(ClientOptions::default());
        let routing = Routing::open(
            &config.channels,
            &config.provider_settings(),
            &egress,
            &config.fairness,
        )?;
        match self {
            Self::List => list(common, &routing),
            Self::Test { name, model } => {
                test(common, &config, &routing, name, model.as_deref()).await
            }
        }
    }
}

fn list(common: &Common, routing: &Routing) -> Result<(), Failed> {
    let channels: Vec<&upstream::Channel> =
        routing.channels().iter().map(|c| &*c.channel).collect();
    let records: Value = channels.iter().map(|c| record(c)).collect();
    let lines = || {
        channels
            .iter()
            .map(|c| line(c))
            .collect::<Vec<_>>()
            .join("\n")
    };
    common.print(&records, lines)
}

async fn test(
    common: &Common,
    config: &Config,
    routing: &Routing,
    name: &str,
    model: Option<&str>,
) -> Result<(), Failed> {
    let Some(open) = routing.by_name(name) else {
        let names: Vec<&str> = routing
            .channels()
            .iter()
            .map(|c| c.channel.name.as_str())
            .collect();
        return Err(Failed::from(format!(
            "there is no channel {name:?}; there are: {}",
            names.join(", ")
        )));
    };
    let model = tested_model(&Catalogue::new(&config.models)?, open, model)?;
    let keys = open.channel.api_keys.len();
    let mut failed = false;
    let mut records = Vec::new();
    let mut lines = Vec::new();
    for key in 0..keys.max(1) {
        let started = Instant::now();
        let outcome = send_test_request(config, open, &model, key).await;
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let whose = if keys > 1 {
            format!(" with key {}", key + 1)
        } else {
            String::new()
        };
        let (record, line) = match outcome {
            Ok((text, tokens)) => (
                json!({ "key": key + 1, "ok": true, "model": model, "text": text, "tokens": tokens, "ms": ms }),
                format!("{name}{whose}: {model} responded in {ms} ms ({tokens} tokens): {text:?}"),
            ),
            Err(why) => {
                failed = true;
                let record =
                    json!({ "key": key + 1, "ok": false, "model": model, "error": why, "ms": ms });
                (
                    record,
                    format!("{name}{whose}: {model} failed after {ms} ms: {why}"),
                )
            }
        };
        records.push(record);
        lines.push(line);
    }
    common.print(&Value::Array(records), || lines.join("\n"))?;
    if failed {
        Err(Failed::silently())
    } else {
        Ok(())
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
