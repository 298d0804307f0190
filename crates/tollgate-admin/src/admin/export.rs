//! Exports the configuration of file and database as one configuration file. Secrets are replaced by comments; `env:NAME` is kept.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tollgate_core::{Millis, id};
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::reloadable::Reloadable;
use tollgate_store::StoredConfiguration;

use super::call::Call;
use super::channels;
use super::custom_models;
use super::prices;

/// The media type of TOML.
pub(super) const MEDIA_TYPE: &str = "application/toml";
/// Settings of a channel, in the order in which they are written.
const CHANNEL_SETTINGS: &[&str] = &[
    "name",
    "kind",
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
    "fetch_urls",
    "trace_context",
    "allow",
    "betas",
    "options",
];
/// Members of a price's JSON that are not part of the price.
const ABOUT_PRICE: &[&str] = &["model", "source", "shadowed", "version"];
/// Members of a price that are strings in the file; all others are numbers there.
const PRICE_TEXTS: &[&str] = &["size", "resolution", "quality"];

/// Returns the configuration as TOML.
///
/// # Errors
/// The database's.
pub(super) async fn write_configuration(call: &Call) -> Result<String, AdminError> {
    let stored = call.app.store.stored_configuration().await?;
    let reloadable = call.app.reloadable.current();
    let mut text =
        "# The configuration of this gateway, from its file and its database.\n".to_owned();
    write_settings(&mut text, &reloadable);
    write_channels(&mut text, &reloadable, &stored);
    write_models(&mut text, &reloadable, &stored);
    write_prices(&mut text, &reloadable, &stored);
    Ok(text)
}

/// Settings that name a node itself, or a location on its machine: they may differ between nodes.
const OF_ONE_NODE: &[&str] = &[
    "admin.listen",
    "admin.public_url",
    "admin.tls.cert",
    "admin.tls.client_ca",
    "admin.tls.key",
    "data_dir",
    "database.replica_url",
    "database.url",
    "listen",
    "metrics.listen",
    "public_url",
    "storage.url",
    "tls.cert",
    "tls.key",
];

/// A hash of the configuration that a node applies: 16 hex digits. Nodes that serve in the same way have the same hash; secrets are not part of it.
pub fn configuration_fingerprint(reloadable: &Reloadable) -> String {
    let mut text = String::new();
    let settings = reloadable.file.settings().into_iter();
    for setting in settings.filter(|setting| !OF_ONE_NODE.contains(&setting.key.as_str())) {
        line(&mut text, &setting.key, &setting.value);
    }
    write_channels(&mut text, reloadable, &reloadable.stored);
    write_models(&mut text, reloadable, &reloadable.stored);
    write_prices(&mut text, reloadable, &reloadable.stored);
    id::hex(&Sha256::digest(&text)[..8])
}

fn write_settings(text: &mut String, reloadable: &Reloadable) {
    let settings = reloadable.file.settings().into_iter();
    for setting in settings.filter(|setting| setting.source == "file") {
        let key = &setting.key;
        match setting.reference {
            Some(reference) => line(text, key, &json!(reference)),
            None if setting.is_hidden => comment(text, &format!("{key} is set, and not shown")),
            None => line(text, key, &setting.value),
        }
    }
}

fn write_channels(text: &mut String, reloadable: &Reloadable, stored: &StoredConfiguration) {
    // The pauses, which depend on the time, are not written.
    for channel in channels::all(reloadable, stored, Millis::MAX) {
        if channel["source"] == "builtin" {
            continue;
        }
        if channel["shadowed"] == true {
            comment(
                text,
                &format!("channel {} of the database is shadowed", channel["name"]),
            );
            continue;
        }
        text.push_str("\n[[channel]]\n");
        for name in CHANNEL_SETTINGS {
            line(text, name, &channel[*name]);
        }
        let keys = channel["api_keys"].as_array().cloned().unwrap_or_default();
        let mut references = Vec::new();
        for key in &keys {
            match key["origin"].as_str() {
                Some(origin) if origin.starts_with("env:") => references.push(origin),
                origin => {
                    let origin = match origin {
                        Some("sealed") => "sealed",
                        _ => "in the file",
                    };
                    let hint = key["hint"]
                        .as_str()
                        .map(|hint| format!(", ends with {hint}"));
                    let hint = hint.unwrap_or_default();
                    comment(
                        text,
                        &format!("api_keys: a key {origin}, {}{hint}", key["fingerprint"]),
                    );
                }
            }
        }
        if !references.is_empty() {
            line(text, "api_keys", &json!(references));
        }
        let name = channel["name"].as_str().unwrap_or_default();
        let admin_keys = &reloadable.file.admin_key_origins;
        // Only channels of the file have such a key.
        match admin_keys.get(name).filter(|_| channel["source"] == "file") {
            Some(origin) if origin.starts_with("env:") => line(text, "admin_key", &json!(origin)),
            Some(_) => comment(text, "admin_key is set, and not shown"),
            None => {}
        }
    }
}

fn write_models(text: &mut String, reloadable: &Reloadable, stored: &StoredConfiguration) {
    for model in custom_models::all(reloadable, stored) {
        if model["shadowed"] == true {
            comment(
                text,
                &format!("model {} of the database is shadowed", model["name"]),
            );
            continue;
        }
        text.push_str("\n[[model]]\n");
        line(text, "name", &model["name"]);
        line(text, "like", &model["like"]);
    }
}

fn write_prices(text: &mut String, reloadable: &Reloadable, stored: &StoredConfiguration) {
    for price in prices::all(reloadable, stored) {
        if price["source"] == "builtin" {
            continue;
        }
        if price["shadowed"] == true {
            comment(
                text,
                &format!("price {} of the database is shadowed", price["model"]),
            );
            continue;
        }
        let _ = writeln!(text, "\n[price.{}]", price["model"]);
        let members = price.as_object().cloned().unwrap_or_default();
        let members = members
            .into_iter()
            .filter(|(name, _)| !ABOUT_PRICE.contains(&name.as_str()));
        for (name, value) in members {
            let _ = writeln!(text, "{} = {}", bare(&name), price_value(&name, &value));
        }
    }
}

/// A member of a price as TOML: amounts are numbers in the file.
fn price_value(name: &str, value: &Value) -> String {
    match value {
        Value::String(amount) if !PRICE_TEXTS.contains(&name) => amount.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| price_value(name, item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => table(members, price_value),
        value => value.to_string(),
    }
}

fn line(text: &mut String, name: &str, value: &Value) {
    let is_empty = value.as_object().is_some_and(Map::is_empty);
    if !value.is_null() && !is_empty {
        let _ = writeln!(text, "{name} = {}", toml_value("", value));
    }
}

fn comment(text: &mut String, what: &str) {
    let _ = writeln!(text, "# {what}");
}

/// A JSON value as TOML. Strings have the same syntax in both.
fn toml_value(_: &str, value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| toml_value("", item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => table(members, toml_value),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        value => value.to_string(),
    }
}

fn table(members: &Map<String, Value>, write: fn(&str, &Value) -> String) -> String {
    let members = members.iter().filter(|(_, value)| !value.is_null());
    let members = members.map(|(name, value)| format!("{} = {}", bare(name), write(name, value)));
    format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
}

/// A name as a TOML key, in quotes if it needs them.
fn bare(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => json!(name).to_string(),
    }
}
