//! `tollgate channel list`, `channel test`.

use std::time::{Duration, Instant};

use clap::Subcommand;
use http::HeaderMap;
use serde_json::{Value, json};
use tollgate_chat::Target;
use tollgate_chat::hub::{self, Part, PartKind, Role, Turn};
use tollgate_media::Catalogue;
use tollgate_upstream as upstream;
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::{ChatCall, ChatTimeouts};

use super::{Common, Failed};
use crate::chat::answer_memory::AnswerBudget;
use crate::config::{Config, Overrides};
use crate::routing::{OpenChannel, Routing};

/// What a test may generate: enough for every provider's least.
const TEST_TOKENS: u64 = 16;

#[derive(Subcommand)]
pub(super) enum Channel {
    /// List the channels
    List,
    /// Send the cheapest real call with every key of a channel and print what comes back
    Test {
        /// The channel's name
        name: String,
        /// The model to ask [default: the channel's first chat model]
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
            None,
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
    let model = tested_model(config, open, model)?;
    let keys = open.channel.api_keys.len();
    let mut failed = false;
    let mut records = Vec::new();
    let mut lines = Vec::new();
    for key in 0..keys.max(1) {
        let started = Instant::now();
        let said = ask(config, open, &model, key).await;
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let whose = if keys > 1 {
            format!(" with key {}", key + 1)
        } else {
            String::new()
        };
        let (record, line) = match said {
            Ok((text, tokens)) => (
                json!({ "key": key + 1, "ok": true, "model": model, "text": text, "tokens": tokens, "ms": ms }),
                format!("{name}{whose}: {model} answered in {ms} ms ({tokens} tokens): {text:?}"),
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

/// The model to try a channel with: the requested one, or its first chat model.
pub(super) fn tested_model(
    config: &Config,
    open: &OpenChannel,
    asked: Option<&str>,
) -> Result<String, Failed> {
    let catalogue = Catalogue::new(&config.models)?;
    let name = &open.channel.name;
    if let Some(model) = asked {
        catalogue.check_chat_model(model)?;
        return match open.channel.upstream_model(model) {
            Some(_) => Ok(model.to_owned()),
            None => Err(Failed::from(format!(
                "channel {name:?} does not serve {model}"
            ))),
        };
    }
    let mut listed = open.channel.models.iter().map(|m| m.name.as_str());
    let first = listed.find(|model| catalogue.check_chat_model(model).is_ok());
    let any = open.channel.models.is_empty()
        && open.channel.base_url.is_none()
        && open.channel.api_keys.is_empty();
    match first {
        Some(model) => Ok(model.to_owned()),
        // Only the sandbox has neither address nor key, and it serves everything.
        None if any => Ok("gpt-5-nano".to_owned()),
        None => Err(Failed::from(format!(
            "channel {name:?} lists no chat model: name one with --model"
        ))),
    }
}

/// One small question; the reply's text and what it took.
pub(super) async fn ask(
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
        capabilities: &known.traits,
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
    let answer = AnswerBudget::default().collect(body).await;
    let answer = answer.map_err(|e| e.message)?;
    let reply = format
        .read_response(&answer.bytes)
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
