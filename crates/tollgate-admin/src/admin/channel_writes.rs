//! `POST`, `PATCH` and `DELETE` of `/channels` for channels of the database; and actions on any channel: pause, wake, test.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use http::Method;
use serde_json::{Map, Value, json};
use tollgate_config::{Config, Setting};
use tollgate_core::clock::SECOND;
use tollgate_server::channel_test::{reach, send_test_request, tested_model};
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::provider_keys::StoredKey;
use tollgate_server::reloadable::Reloadable;
use tollgate_server::routing::{OpenChannel, key_fingerprint};
use tollgate_server::stored_channel::StoredChannel;
use tollgate_store::{ConfigurationChange, ConfigurationKind, PauseWrite};

use super::call::{Call, written};
use super::channels::{find, open_channel, show};
use super::configured::{self, SOURCE, Target};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields::{self, Fields};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::POST,
        path: "/channels",
        access: Access::Scope(Scope::ChannelsWrite),
        summary: "Creates a channel. `api_keys` also need `secrets:write`.",
        query: &[],
        body: Some("new_channel"),
        returns: Returns::Object("channel", 201),
        handler: handler!(create),
    },
    Endpoint {
        method: Method::PATCH,
        path: "/channels/{name}",
        access: Access::Scope(Scope::ChannelsWrite),
        summary: "Changes a channel. `api_keys`, and `kind` or `base_url` of a channel with keys, also need `secrets:write`.",
        query: &[SOURCE],
        body: Some("channel_patch"),
        returns: Returns::Object("channel", 200),
        handler: handler!(update),
    },
    Endpoint {
        method: Method::DELETE,
        path: "/channels/{name}",
        access: Access::Scope(Scope::ChannelsWrite),
        summary: "Deletes a channel. Running requests finish on it, and the gateway continues to poll jobs in its provider's queue.",
        query: &[SOURCE],
        body: None,
        returns: Returns::Nothing,
        handler: handler!(delete),
    },
    Endpoint {
        method: Method::POST,
        path: "/channels/{name}/pause",
        access: Access::Scope(Scope::ChannelsWrite),
        summary: "Pauses a channel on every node: it gets no new requests for `for_s` seconds, or until the pause is ended.",
        query: &[],
        body: Some("pause"),
        returns: Returns::Object("channel", 200),
        handler: handler!(pause),
    },
    Endpoint {
        method: Method::POST,
        path: "/channels/{name}/wake",
        access: Access::Scope(Scope::ChannelsWrite),
        summary: "Ends the pause of a channel, and the cooldowns of its keys and models on all nodes.",
        query: &[],
        body: Some("action"),
        returns: Returns::Object("channel", 200),
        handler: handler!(wake),
    },
    Endpoint {
        method: Method::POST,
        path: "/channels/{name}/test",
        access: Access::Scope(Scope::ChannelsWrite),
        summary: "Sends a small chat with each key of a channel. If the channel has no chat model, only checks that its server is reachable.",
        query: &[],
        body: Some("action"),
        returns: Returns::Object("channel_test", 200),
        handler: handler!(test),
    },
];

/// Members of a channel that a request cannot write.
const READ_ONLY: &[&str] = &[
    "source",
    "shadowed",
    "paused",
    "created_at",
    "updated_at",
    "version",
];
const API_KEYS: &str = "api_keys";
const REASON: &str = "reason";
/// Members that decide which server receives the keys of a channel.
const DESTINATION: &[&str] = &["kind", "base_url"];
/// The variables of the access keys of S3.
const S3_VARIABLES: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
];
/// The longest name, in characters.
const MAX_NAME: usize = 64;
/// The longest pause with an end, in seconds: a year.
const MAX_PAUSE_S: u64 = 366 * 86_400;

async fn create(call: Call) -> Result<Reply, AdminError> {
    check_secrets_scope(&call, &[API_KEYS])?;
    let mut fields = call.fields()?;
    let name = fields.required("name", channel_name)?;
    let keys = fields.nullable(API_KEYS, accept_any)?.flatten();
    let settings = fields.take_all_but(&[READ_ONLY, &[REASON]].concat());
    let request = call.write(fields, READ_ONLY)?;
    let channel = StoredChannel {
        settings: without_nulls(settings),
        keys: keys.map_or_else(
            || Ok(Vec::new()),
            |keys| read_keys(&call, &name, &keys, &[]),
        )?,
    };
    check(&call, &name, &channel)?;
    if call.app.reloadable.current().is_file_channel(&name) {
        return Err(configured::file_owned("channel").at("name"));
    }
    let change = ConfigurationChange::Create(channel.to_row());
    let id = (ConfigurationKind::Channel, name.as_str());
    configured::write_configuration(&call, &request, id, change, show(&call, false)).await
}

async fn update(call: Call) -> Result<Reply, AdminError> {
    check_secrets_scope(&call, &[API_KEYS])?;
    let found = find(&call).await?;
    let current = match &found.target {
        Target::Stored(row) => Some(StoredChannel::from_row(&row.body)),
        Target::Fixed(_) => None,
    };
    if current
        .as_ref()
        .is_some_and(|current| !current.keys.is_empty())
    {
        check_secrets_scope(&call, DESTINATION)?;
    }
    configured::check_query(&call)?;
    let mut fields = call.fields()?;
    let keys = fields.nullable(API_KEYS, accept_any)?;
    let read_only = [READ_ONLY, &["name"]].concat();
    let patch = fields.take_all_but(&[read_only.as_slice(), &[REASON]].concat());
    let request = call.write(fields, &read_only)?;
    let body = match current {
        Some(mut channel) => {
            configured::merge_patch(&mut channel.settings, patch);
            channel.settings = without_nulls(channel.settings);
            if let Some(keys) = keys {
                let keys = keys.unwrap_or_else(|| json!([]));
                channel.keys = read_keys(&call, call.id(), &keys, &channel.keys)?;
            }
            check(&call, call.id(), &channel)?;
            channel.to_row()
        }
        None => Value::Null,
    };
    let (_, version) = found.target.writable(&call, "channel")?;
    let change = ConfigurationChange::Replace(body, version);
    let id = (ConfigurationKind::Channel, call.id());
    configured::write_configuration(&call, &request, id, change, show(&call, found.is_paused)).await
}

async fn delete(call: Call) -> Result<Reply, AdminError> {
    let found = find(&call).await?;
    configured::check_query(&call)?;
    let request = call.action()?;
    let (_, version) = found.target.writable(&call, "channel")?;
    let change = ConfigurationChange::Delete(version);
    let id = (ConfigurationKind::Channel, call.id());
    configured::write_configuration(&call, &request, id, change, show(&call, found.is_paused)).await
}

async fn pause(call: Call) -> Result<Reply, AdminError> {
    let found = find(&call).await?;
    let mut fields = call.fields()?;
    let for_s = fields.optional("for_s", pause_seconds)?;
    let until = for_s.map(|for_s| call.now + for_s * SECOND);
    set_pause(&call, fields, found.shown(&call), Some(until)).await
}

async fn wake(call: Call) -> Result<Reply, AdminError> {
    let found = find(&call).await?;
    let reply = set_pause(&call, call.fields()?, found.shown(&call), None).await?;
    let reloadable = call.app.reloadable.current();
    // A channel that this node cannot open has no cooldowns on this node.
    if let Ok(open) = open_channel(&reloadable, &call) {
        open.lift_cooldowns();
    }
    Ok(reply)
}

async fn set_pause(
    call: &Call,
    fields: Fields,
    shown: (Value, i64),
    until: Option<Option<i64>>,
) -> Result<Reply, AdminError> {
    let request = call.write(fields, &[])?;
    let write = PauseWrite {
        channel: call.id().to_owned(),
        until,
        shown,
    };
    let result = call.app.store.pause_channel(&request, write).await;
    let reply = written(result, "channel")?;
    configured::apply_here(call).await;
    Ok(reply)
}

async fn test(call: Call) -> Result<Reply, AdminError> {
    find(&call).await?;
    let mut fields = call.fields()?;
    fields.optional(REASON, fields::parse_text)?;
    fields.finish(&[])?;
    let reloadable = call.app.reloadable.current();
    let results = match open_channel(&reloadable, &call) {
        Ok(open) => test_channel(&call, &reloadable, open).await,
        // The channel is in the database, but this node cannot open it.
        Err(_) => {
            let mut errors = reloadable.errors.iter();
            let error = errors.find(|error| error.contains(&format!("{:?}", call.id())));
            let error = error.map_or("the channel cannot be used on this node", String::as_str);
            vec![json!({ "key": null, "model": null, "ok": false, "ms": 0, "error": error })]
        }
    };
    let is_ok = results.iter().all(|result| result["ok"] == true);
    Ok(Reply::json(json!({ "ok": is_ok, "results": results })))
}

async fn test_channel(call: &Call, reloadable: &Reloadable, open: &OpenChannel) -> Vec<Value> {
    let app = &call.app;
    let result =
        |key: Option<usize>, model: Option<&str>, started: Instant, error: Option<String>| {
            let key = key.and_then(|key| open.channel.api_keys.get(key));
            json!({
                "key": key.map(key_fingerprint),
                "model": model,
                "ok": error.is_none(),
                "ms": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                "error": error,
            })
        };
    let model = tested_model(&reloadable.catalogue, open, None).ok();
    let Some(model) = model.filter(|_| open.provider.chat.is_some()) else {
        let started = Instant::now();
        let error = match reach(&app.egress, &open.channel).await {
            Some(Err(error)) => Some(error),
            Some(Ok(reached)) if reached.status >= 500 => {
                Some(format!("the server returned status {}", reached.status))
            }
            Some(Ok(_)) | None => None,
        };
        return vec![result(None, None, started, error)];
    };
    let tests = (0..open.channel.api_keys.len().max(1)).map(async |key| {
        let started = Instant::now();
        let error = send_test_request(&app.config, open, &model, key)
            .await
            .err();
        result(Some(key), Some(&model), started, error)
    });
    join_all(tests).await
}

/// Checks that the caller has the scope for writing secrets if the body has one of these members.
fn check_secrets_scope(call: &Call, members: &[&str]) -> Result<(), AdminError> {
    let body = call.body_members();
    if members.iter().any(|member| body.contains_key(*member)) {
        call.actor()?.check_scope(Scope::SecretsWrite, call.now)?;
    }
    Ok(())
}

/// Checks a channel with the same code as channels of the file.
fn check(call: &Call, name: &str, channel: &StoredChannel) -> Result<(), AdminError> {
    if channel.settings.contains_key("admin_key") {
        let message = "can be set in the configuration file only";
        return Err(AdminError::invalid("admin_key", message));
    }
    let file = Arc::clone(&call.app.reloadable.current().file);
    channel.to_channel(name, file.secrets_key.as_ref())?;
    Ok(())
}

/// Parses the keys that a body lists; `current` are the keys that the channel has now.
fn read_keys(
    call: &Call,
    channel: &str,
    keys: &Value,
    current: &[StoredKey],
) -> Result<Vec<StoredKey>, AdminError> {
    let file = Arc::clone(&call.app.reloadable.current().file);
    let secrets_key = file.secrets_key.as_ref();
    let one = |field: &str, value: &Value| match value {
        Value::String(text) if is_own_reference(&file, text) => {
            let name = text.trim_start_matches("env:");
            let message = format!("names {name}, a setting of the gateway");
            Err(AdminError::invalid(field, message))
        }
        Value::String(text) => StoredKey::new(text, channel, secrets_key)
            .map_err(|message| AdminError::invalid(field, message)),
        Value::Object(key) => {
            let fingerprint = key.get("fingerprint").and_then(Value::as_str);
            let mut current = current.iter();
            let found = current.find(|key| key.fingerprint().as_deref() == fingerprint);
            let kept = found.filter(|_| fingerprint.is_some()).cloned();
            kept.ok_or_else(|| {
                AdminError::invalid(field, "the channel has no key with this fingerprint")
            })
        }
        _ => {
            let message = "must be a key, env:NAME, or {\"fingerprint\": \"…\"} of a key to keep";
            Err(AdminError::invalid(field, message))
        }
    };
    fields::parse_list(one)(API_KEYS, keys)
}

/// Whether a text `env:NAME` names a secret of the gateway itself: the variable of a setting other than a channel's, or of the access keys of S3.
fn is_own_reference(file: &Config, text: &str) -> bool {
    let Some(name) = text.strip_prefix("env:") else {
        return false;
    };
    let is_setting = |setting: &Setting| setting.reference.as_deref() == Some(text);
    S3_VARIABLES.contains(&name) || file.settings().iter().any(is_setting)
}

fn without_nulls(mut settings: Map<String, Value>) -> Map<String, Value> {
    settings.retain(|_, value| !value.is_null());
    settings
}

/// `[a-z0-9][a-z0-9._-]{0,63}`
fn channel_name(field: &str, value: &Value) -> Result<String, AdminError> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let name = value.as_str().filter(|name| {
        let first = name.bytes().next();
        name.len() <= MAX_NAME
            && first.is_some_and(is_plain)
            && name.bytes().all(|b| is_plain(b) || b"._-".contains(&b))
    });
    name.map(str::to_owned).ok_or_else(|| {
        let message = format!(
            "must be 1 to {MAX_NAME} small letters, digits, dots, dashes and underscores, the first of them a letter or digit"
        );
        AdminError::invalid(field, message)
    })
}

fn pause_seconds(field: &str, value: &Value) -> Result<i64, AdminError> {
    let seconds = value
        .as_u64()
        .filter(|seconds| (1..=MAX_PAUSE_S).contains(seconds));
    let seconds = seconds.and_then(|seconds| i64::try_from(seconds).ok());
    let message = || format!("must be a whole number of seconds from 1 to {MAX_PAUSE_S}");
    seconds.ok_or_else(|| AdminError::invalid(field, message()))
}

fn accept_any(_: &str, value: &Value) -> Result<Value, AdminError> {
    Ok(value.clone())
}
