//! `/channels`: lists channels of the file and of the database, with their health. Endpoints that change them are in `channel_writes`.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tollgate_config::Source;
use tollgate_config::providers::is_free_of_charge;
use tollgate_core::{Millis, Secret};
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::provider_keys::hint;
use tollgate_server::reloadable::Reloadable;
use tollgate_server::routing::{CooldownReport, OpenChannel, key_fingerprint};
use tollgate_server::stored_channel::StoredChannel;
use tollgate_store::{ConfigurationRow, ShowRow, StoredConfiguration, time_json};
use tollgate_upstream::Channel;

use super::call::Call;
use super::configured::{self, FIXED_VERSION, SOURCE, Target};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::list::{self, NamedObjects};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/channels",
        access: Access::Scope(Scope::ChannelsRead),
        summary: "Lists channels, by name. Provider keys are shown by fingerprint and last characters.",
        query: &[SOURCE],
        body: None,
        returns: Returns::List("channel"),
        handler: handler!(list_channels),
    },
    Endpoint {
        method: Method::GET,
        path: "/channels/{name}",
        access: Access::Scope(Scope::ChannelsRead),
        summary: "A channel.",
        query: &[SOURCE],
        body: None,
        returns: Returns::Object("channel", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::GET,
        path: "/channels/{name}/health",
        access: Access::Scope(Scope::ChannelsRead),
        summary: "A channel's circuit breaker, cooldowns and last calls on the node that handles the request.",
        query: &[],
        body: None,
        returns: Returns::CompleteList("channel_health"),
        handler: handler!(health),
    },
];

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
    let sources = configured::listed_sources(&call)?;
    let stored = call.app.store.stored_configuration().await?;
    let channels = all(&call.app.reloadable.current(), &stored, call.now);
    let listing = NamedObjects {
        columns: COLUMNS,
        objects: configured::list_items("name", channels, &sources),
    };
    list::reply(&call, listing).await
}

/// Every channel as JSON.
pub(super) fn all(
    reloadable: &Reloadable,
    stored: &StoredConfiguration,
    now: Millis,
) -> Vec<Value> {
    let open = reloadable.routing.channels().iter();
    let fixed = open.filter_map(|open| {
        let source = source_of(reloadable, &open.channel.name)?;
        Some(show_fixed(reloadable, open, source))
    });
    let rows = stored.channels.iter();
    let rows = rows.map(|row| {
        let open = reloadable.routing.by_name(&row.name);
        let is_paused = match open {
            Some(open) => open.is_paused(),
            None => stored.is_paused(&row.name, now),
        };
        show_row(reloadable, row, is_paused)
    });
    fixed.chain(rows).collect()
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let found = find(&call).await?;
    configured::check_query(&call)?;
    let (channel, version) = found.shown(&call);
    Ok(Reply::versioned(channel, version))
}

async fn health(call: Call) -> Result<Reply, AdminError> {
    let reloadable = call.app.reloadable.current();
    let open = open_channel(&reloadable, &call)?;
    call.check_query()?;
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
        "p50_ms": report.p50_ms,
        "error_rate": report.error_rate,
    });
    Ok(Reply::json(json!({ "data": [node], "next_cursor": null })))
}

/// The channel of the request's path, and whether it is paused.
pub(super) struct Found {
    pub(super) target: Target,
    pub(super) is_paused: bool,
}

impl Found {
    /// The channel as JSON, and its version.
    pub(super) fn shown(&self, call: &Call) -> (Value, i64) {
        match &self.target {
            Target::Fixed(channel) => (channel.clone(), FIXED_VERSION),
            Target::Stored(row) => {
                let reloadable = call.app.reloadable.current();
                (show_row(&reloadable, row, self.is_paused), row.version)
            }
        }
    }
}

/// Finds the channel of the request's path.
///
/// # Errors
/// 404.
pub(super) async fn find(call: &Call) -> Result<Found, AdminError> {
    let stored = call.app.store.stored_configuration().await?;
    let is_paused = stored.is_paused(call.id(), call.now);
    let mut rows = stored.channels.into_iter();
    let row = rows.find(|row| row.name == call.id());
    let reloadable = call.app.reloadable.current();
    let fixed = source_of(&reloadable, call.id()).and_then(|source| {
        let open = reloadable.routing.by_name(call.id())?;
        let mut channel = show_fixed(&reloadable, open, source);
        channel["paused"] = is_paused.into();
        Some((channel, source))
    });
    let target = Target::find(call, row, fixed);
    Ok(Found {
        target: target.ok_or_else(|| AdminError::not_found("channel"))?,
        is_paused,
    })
}

/// The open channel of this node with the name in the request's path.
///
/// # Errors
/// 404.
pub(super) fn open_channel<'a>(
    reloadable: &'a Reloadable,
    call: &Call,
) -> Result<&'a Arc<OpenChannel>, AdminError> {
    let found = reloadable.routing.by_name(call.id());
    found.ok_or_else(|| AdminError::not_found("channel"))
}

/// Where an open channel of this node is configured; `None` if in the database.
fn source_of(reloadable: &Reloadable, name: &str) -> Option<Source> {
    if reloadable.is_file_channel(name) {
        return Some(Source::File);
    }
    let serves = reloadable.routing.by_name(name).is_some();
    (reloadable.routing.is_built_in() && serves).then_some(Source::BuiltIn)
}

/// A function that converts a channel's row to JSON for the reply to a write.
pub(super) fn show(call: &Call, is_paused: bool) -> ShowRow {
    let reloadable = call.app.reloadable.current();
    Arc::new(move |row| show_row(&reloadable, row, is_paused))
}

fn show_row(reloadable: &Reloadable, row: &ConfigurationRow, is_paused: bool) -> Value {
    let stored = StoredChannel::from_row(&row.body);
    let keys = stored.keys.iter().map(|key| {
        json!({ "fingerprint": key.fingerprint(), "hint": key.hint(), "origin": key.origin() })
    });
    let about = About {
        source: Source::Database,
        is_shadowed: reloadable.is_file_channel(&row.name),
        is_paused,
        times: Some((row.created_at, row.updated_at)),
        version: row.version,
    };
    show_channel(&stored.without_keys(&row.name), keys.collect(), &about)
}

fn show_fixed(reloadable: &Reloadable, open: &OpenChannel, source: Source) -> Value {
    let channel = &open.channel;
    let origins = reloadable.key_origins.get(&channel.name);
    let keys = channel
        .api_keys
        .iter()
        .enumerate()
        .map(|(at, key): (_, &Secret)| {
            let origin = origins.and_then(|origins| origins.get(at));
            json!({
                "fingerprint": key_fingerprint(key),
                "hint": hint(key),
                "origin": origin.map_or("file", String::as_str),
            })
        });
    let about = About {
        source,
        is_shadowed: false,
        is_paused: open.is_paused(),
        times: None,
        version: FIXED_VERSION,
    };
    show_channel(channel, keys.collect(), &about)
}

/// The members of a channel's JSON that are not settings.
struct About {
    source: Source,
    is_shadowed: bool,
    is_paused: bool,
    /// When it was created and changed; `None` if it is not in the database.
    times: Option<(Millis, Millis)>,
    version: i64,
}

fn show_channel(channel: &Channel, api_keys: Vec<Value>, about: &About) -> Value {
    let models = channel.models.iter().map(|model| {
        let options = (!model.options.is_empty()).then_some(&model.options);
        json!({ "name": model.name, "upstream": model.upstream, "options": options })
    });
    let models: Vec<Value> = models.collect();
    let seconds = |limit: Option<Duration>| limit.map(|limit| limit.as_secs_f64());
    let poll_ms = channel.poll.map(|poll| poll.as_millis());
    let mut shown = json!({
        "name": channel.name,
        "kind": channel.kind,
        "source": about.source.name(),
        "shadowed": about.is_shadowed,
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
        "api_keys": api_keys,
        "paused": about.is_paused,
        "created_at": about.times.map(|(created_at, _)| time_json(created_at)),
        "updated_at": about.times.map(|(_, updated_at)| time_json(updated_at)),
        "version": about.version,
    });
    // Few channels have these members. The sandbox forwards every option, so its list is not shown.
    if !channel.allow.is_empty() && !is_free_of_charge(&channel.kind) {
        shown["allow"] = channel.allow.iter().map(|option| option.name()).collect();
    }
    if !channel.betas.is_empty() {
        shown["betas"] = json!(channel.betas);
    }
    if let Some(fetch_urls) = channel.fetch_urls {
        shown["fetch_urls"] = json!(fetch_urls);
    }
    if channel.trace_context {
        shown["trace_context"] = json!(true);
    }
    shown
}
