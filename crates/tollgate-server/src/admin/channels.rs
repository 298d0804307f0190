//! `GET /channels`, `/channels/{name}` and `/channels/{name}/health`: the channels that serve now, read-only.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tollgate_core::Secret;

use super::call::Call;
use super::endpoints::{Access, Endpoint, Returns, handler};
use super::error::AdminError;
use super::list::{self, NamedObjects};
use super::reply::Reply;
use super::scope::Scope;
use crate::reloadable::Reloadable;
use crate::routing::{CooldownReport, OpenChannel, key_fingerprint};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/channels",
        access: Access::Scope(Scope::ChannelsRead),
        summary: "Lists channels, by name. Provider keys are shown by fingerprint and last characters.",
        query: &[],
        body: None,
        returns: Returns::List("channel"),
        handler: handler!(list_channels),
    },
    Endpoint {
        method: Method::GET,
        path: "/channels/{name}",
        access: Access::Scope(Scope::ChannelsRead),
        summary: "A channel.",
        query: &[],
        body: None,
        returns: Returns::Object("channel", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::GET,
        path: "/channels/{name}/health",
        access: Access::Scope(Scope::ChannelsRead),
        summary: "A channel's circuit and cooldowns on the node that replies.",
        query: &[],
        body: None,
        returns: Returns::List("channel_health"),
        handler: handler!(health),
    },
];

/// Channels of the file and built-in ones do not change here.
const VERSION: i64 = 1;
/// Last characters of a provider key that are shown, and the length from which they are.
const HINT_CHARACTERS: usize = 4;
const HINT_MIN_LENGTH: usize = 16;

const COLUMNS: &[&str] = &[
    "name",
    "kind",
    "source",
    "shadowed",
    "base_url",
    "models",
    "priority",
    "weight",
    "max_concurrency",
    "connect_s",
    "first_byte_s",
    "idle_s",
    "apis",
    "poll_ms",
    "options",
    "api_keys",
    "paused",
    "created_at",
    "updated_at",
    "version",
];

async fn list_channels(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let reloadable = call.app.reloadable.current();
    let channels = reloadable.routing.channels().iter();
    let channels = channels.map(|open| (open.channel.name.clone(), to_json(&reloadable, open)));
    let mut channels: Vec<(String, Value)> = channels.collect();
    channels.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let listing = NamedObjects {
        columns: COLUMNS,
        objects: channels,
    };
    list::reply(&call, listing).await
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let reloadable = call.app.reloadable.current();
    let open = find(&reloadable, &call)?;
    call.check_query()?;
    Ok(Reply::versioned(to_json(&reloadable, open), VERSION))
}

async fn health(call: Call) -> Result<Reply, AdminError> {
    let reloadable = call.app.reloadable.current();
    let open = find(&reloadable, &call)?;
    // One entry for each node, not a list with pages.
    call.query.allow(&[])?;
    let report = open.health_report();
    let cooldowns = report.cooldowns.iter().map(|cooldown| {
        let CooldownReport { key, model, left } = cooldown;
        let key = key.and_then(|key| open.channel.api_keys.get(key));
        json!({ "key": key.map(key_fingerprint), "model": model, "left_s": left.as_secs_f64() })
    });
    let node = json!({
        "node": call.app.heartbeat.node,
        "circuit": report.circuit,
        "cooldowns": cooldowns.collect::<Vec<_>>(),
        "in_flight": open.calls_in_flight(),
        "p50_ms": null,
        "error_rate": null,
    });
    Ok(Reply::json(json!({ "data": [node], "next_cursor": null })))
}

fn find<'a>(reloadable: &'a Reloadable, call: &Call) -> Result<&'a OpenChannel, AdminError> {
    let found = reloadable.routing.by_name(call.id());
    found
        .map(AsRef::as_ref)
        .ok_or_else(|| AdminError::not_found("channel"))
}

fn to_json(reloadable: &Reloadable, open: &OpenChannel) -> Value {
    let channel = &open.channel;
    let is_built_in = reloadable.routing.is_built_in();
    let models = channel.models.iter().map(|model| {
        let options = (!model.options.is_empty()).then_some(&model.options);
        json!({ "name": model.name, "upstream": model.upstream, "options": options })
    });
    let models: Vec<Value> = models.collect();
    let origins = reloadable.key_origins.get(&channel.name);
    let keys = channel.api_keys.iter().enumerate().map(|(at, key)| {
        let origin = origins.and_then(|origins| origins.get(at));
        json!({
            "fingerprint": key_fingerprint(key),
            "hint": hint(key),
            "origin": origin.map_or("file", String::as_str),
        })
    });
    let seconds = |limit: Option<Duration>| limit.map(|limit| limit.as_secs_f64());
    let poll_ms = channel.poll.map(|poll| poll.as_millis());
    json!({
        "name": channel.name,
        "kind": channel.kind,
        "source": if is_built_in { "builtin" } else { "file" },
        "shadowed": false,
        "base_url": channel.base_url,
        "models": (!models.is_empty()).then_some(models),
        "priority": channel.priority,
        "weight": channel.weight,
        "max_concurrency": channel.max_concurrency,
        "connect_s": seconds(channel.time_limits.connect),
        "first_byte_s": seconds(channel.time_limits.first_byte),
        "idle_s": seconds(channel.time_limits.idle),
        "apis": channel.apis,
        "poll_ms": poll_ms.and_then(|ms| u64::try_from(ms).ok()),
        "options": channel.options,
        "api_keys": keys.collect::<Vec<_>>(),
        "paused": false,
        "created_at": null,
        "updated_at": null,
        "version": VERSION,
    })
}

/// The last characters of a key. `None` if the key is so short that they would give much of it away.
fn hint(key: &Secret) -> Option<String> {
    let characters: Vec<char> = key.expose().chars().collect();
    let start = characters.len().checked_sub(HINT_CHARACTERS)?;
    (characters.len() >= HINT_MIN_LENGTH).then(|| characters[start..].iter().collect())
}
