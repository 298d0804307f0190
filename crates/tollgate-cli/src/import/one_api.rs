//! Imports channels of new-api and one-api: the rows of their table `channels` as JSON.

use serde_json::{Map, Value};

use super::channels::{Imported, ImportedChannel};
use super::targets::{Target, Targets, Variant};

/// Settings of theirs that have no equivalent here.
const UNSUPPORTED: &[(&str, &str)] = &[
    (
        "openai_organization",
        "channels send no headers of their own",
    ),
    ("header_override", "channels send no headers of their own"),
    ("param_override", "what a request says is the client's"),
    (
        "status_code_mapping",
        "statuses of providers are mapped by docs/errors.md",
    ),
    ("system_prompt", "what a request says is the client's"),
];

/// Reads rows: a JSON array, one object a line, or the reply of `GET /api/channel`.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn parse_channels(
    text: &str,
    targets: &Targets,
    variant: Variant,
) -> Result<Imported, String> {
    let rows = read_rows(text)?;
    let priorities = rows.iter().filter_map(|row| row.get("priority")?.as_i64());
    let highest = priorities.max().unwrap_or(0);
    let mut imported = Imported::default();
    for row in &rows {
        let name = member(row, "name").unwrap_or("channel");
        let item = match row.get("id") {
            Some(id) => format!("channel {id} ({name})"),
            None => format!("channel {name}"),
        };
        if let Err(reason) = read_row(&mut imported, &item, row, (targets, variant), highest) {
            imported.leave_out(item, reason);
        }
    }
    Ok(imported)
}

fn read_rows(text: &str) -> Result<Vec<Map<String, Value>>, String> {
    let not_rows = || {
        "it has no rows of the table channels: it takes a JSON array, or one object a line"
            .to_owned()
    };
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut rows = Vec::new();
    for value in values {
        // The message of serde_json can contain a value.
        let value = value
            .map_err(|e| format!("line {}, column {}: it is not JSON", e.line(), e.column()))?;
        let list = match value {
            Value::Array(list) => list,
            Value::Object(object) if object.contains_key("type") => vec![Value::Object(object)],
            value => {
                let list = value.pointer("/data/items").or_else(|| value.get("data"));
                list.and_then(Value::as_array)
                    .cloned()
                    .ok_or_else(not_rows)?
            }
        };
        for row in list {
            let Value::Object(row) = row else {
                return Err(not_rows());
            };
            rows.push(row);
        }
    }
    match rows.is_empty() {
        true => Err(not_rows()),
        false => Ok(rows),
    }
}

/// Reads one channel. The error is the reason why it is left out.
fn read_row(
    imported: &mut Imported,
    item: &str,
    row: &Map<String, Value>,
    (targets, variant): (&Targets, Variant),
    highest: i64,
) -> Result<(), String> {
    if row.get("status").and_then(Value::as_i64).unwrap_or(1) != 1 {
        return Err("it is disabled".to_owned());
    }
    let number = row
        .get("type")
        .and_then(Value::as_i64)
        .ok_or("it has no type")?;
    let target = targets.of_type(variant, number);
    let target = target.ok_or_else(|| {
        format!("there is no kind of channel for the type {number}: docs/channels.md has the kinds")
    })?;
    let base_url = target.base_url(member(row, "base_url"))?;
    let models = models(row)?;
    let priority = row.get("priority").and_then(Value::as_i64).unwrap_or(0);
    let weight = row.get("weight").and_then(Value::as_i64).unwrap_or(1);
    let api_keys = keys(imported, item, row, target);
    if api_keys.is_empty() {
        return Err("it has no key: export the column `key`".to_owned());
    }
    imported.add(ImportedChannel {
        name: member(row, "name").unwrap_or(&target.kind).to_owned(),
        kind: target.kind.clone(),
        only_chat_completions: target.only_chat_completions,
        base_url,
        api_keys,
        models,
        // In these gateways a higher priority comes first, here a lower one.
        priority: (highest.saturating_sub(priority)).clamp(0, 1_000_000),
        weight: u32::try_from(weight.clamp(1, 1_000_000)).unwrap_or(1),
        max_concurrency: None,
    });
    leave_out_settings(imported, item, row);
    Ok(())
}

/// The member `name` if it is a text that is not empty.
fn member<'a>(row: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    row.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The member `name`, which is an object or its JSON text, depending on how the rows were exported.
fn object(row: &Map<String, Value>, name: &str) -> Option<Map<String, Value>> {
    match row.get(name)? {
        Value::Object(object) => Some(object.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

/// The models, each with the provider's name.
fn models(row: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let names = member(row, "models").unwrap_or_default();
    let names = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let mapping = match row.get("model_mapping") {
        Some(Value::String(text)) if text.is_empty() => Map::new(),
        Some(Value::String(_) | Value::Object(_)) => {
            object(row, "model_mapping").ok_or("model_mapping is not a JSON object")?
        }
        _ => Map::new(),
    };
    let mut models: Vec<(String, String)> = Vec::new();
    for name in names {
        let mut upstream = name;
        // A name may be mapped to a name that is mapped itself; the number of steps is limited in case the mapping is circular.
        for _ in 0..mapping.len() {
            match mapping.get(upstream).and_then(Value::as_str) {
                Some(next) => upstream = next,
                None => break,
            }
        }
        if models.iter().all(|(known, _)| known != name) {
            models.push((name.to_owned(), upstream.to_owned()));
        }
    }
    match models.is_empty() {
        true => Err("it has no models".to_owned()),
        false => Ok(models),
    }
}

/// The keys, of which each line of the member `key` has one, except those that are disabled.
fn keys(
    imported: &mut Imported,
    item: &str,
    row: &Map<String, Value>,
    target: &Target,
) -> Vec<String> {
    let info = object(row, "channel_info").unwrap_or_default();
    let disabled = |at: usize| {
        let status = info.get("multi_key_status_list");
        let status = status.and_then(|list| list.get(at.to_string()));
        status
            .and_then(Value::as_i64)
            .is_some_and(|status| status != 1)
    };
    let mut keys = Vec::new();
    let lines = member(row, "key").unwrap_or_default().lines();
    for (at, key) in lines.map(str::trim).enumerate() {
        if key.is_empty() {
            continue;
        }
        if disabled(at) {
            imported.leave_out(
                format!("{item}: its key number {}", at + 1),
                "it is disabled",
            );
            continue;
        }
        keys.push(target.key(key));
    }
    keys
}

/// Reports every setting of the channel that has no equivalent here. No value is repeated.
fn leave_out_settings(imported: &mut Imported, item: &str, row: &Map<String, Value>) {
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !["", "{}", "[]", "null"].contains(&text.trim()),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    };
    for (name, reason) in UNSUPPORTED {
        if row.get(*name).is_some_and(is_set) {
            imported.leave_out(format!("{item}: {name}"), *reason);
        }
    }
    for settings in ["setting", "settings", "config"] {
        for (name, value) in object(row, settings).unwrap_or_default() {
            let is_on = is_set(&value) && value != Value::Bool(false);
            if is_on {
                let reason = match name.as_str() {
                    "proxy" => {
                        "providers are reached directly, or through the network of the gateway"
                    }
                    _ => "channels have no such setting",
                };
                imported.leave_out(format!("{item}: {settings}.{name}"), reason);
            }
        }
    }
    let group = member(row, "group").unwrap_or("default");
    if group != "default" {
        let reason =
            "a channel serves every key: list the models in `models` of the keys that may use them";
        imported.leave_out(format!("{item}: group {group}"), reason);
    }
}
