//! Imports channels of LiteLLM: `model_list` of its config.yaml (<https://docs.litellm.ai/docs/proxy/configs>).

use serde_json::{Map, Value};

use super::channels::{Imported, ImportedChannel, ImportedPrice};
use super::targets::{Target, Targets};

/// Members of `litellm_params` that are imported.
const READ: &[&str] = &[
    "model",
    "api_key",
    "api_base",
    "base_url",
    "custom_llm_provider",
    "weight",
    "order",
    "max_parallel_requests",
];
/// Members that need no setting here: they concern LiteLLM itself, or follow from the channel's kind.
const NEEDLESS: &[&str] = &[
    "api_version",
    "drop_params",
    "use_in_pass_through",
    "merge_reasoning_content_in_choices",
];
/// Prices of one token: LiteLLM's name and the gateway's.
const PRICES: &[(&str, &str)] = &[
    ("input_cost_per_token", "input_per_million"),
    ("output_cost_per_token", "output_per_million"),
    ("cache_read_input_token_cost", "cached_input_per_million"),
    ("cache_creation_input_token_cost", "cache_write_per_million"),
];

/// Reads the text of a config.yaml.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn parse_config(text: &str, targets: &Targets) -> Result<Imported, String> {
    let mut document: serde_norway::Value =
        serde_norway::from_str(text).map_err(|e| match e.location() {
            Some(at) => format!("line {}, column {}: it is not YAML", at.line(), at.column()),
            None => "it is not YAML".to_owned(),
        })?;
    document
        .apply_merge()
        .map_err(|_| "a merge key (<<) does not name a mapping".to_owned())?;
    let document =
        serde_json::to_value(document).map_err(|_| "a name in it is not a text".to_owned())?;
    let Some(models) = document.get("model_list").and_then(Value::as_array) else {
        return Err("it has no list `model_list`: is it the config.yaml of LiteLLM?".to_owned());
    };
    let mut imported = Imported::default();
    for (at, entry) in models.iter().enumerate() {
        let name = entry.get("model_name").and_then(Value::as_str);
        let item = match name {
            Some(name) => format!("model_list[{at}] ({name})"),
            None => format!("model_list[{at}]"),
        };
        if let Err(reason) = read_entry(&mut imported, targets, &item, entry) {
            imported.leave_out(item, reason);
        }
    }
    for (section, settings) in document.as_object().into_iter().flatten() {
        if section != "model_list" {
            leave_out_section(&mut imported, section, settings);
        }
    }
    Ok(imported)
}

/// Reads one entry of `model_list`. The error is the reason why it is left out.
fn read_entry(
    imported: &mut Imported,
    targets: &Targets,
    item: &str,
    entry: &Value,
) -> Result<(), String> {
    let name = text(entry, "model_name").ok_or("it has no model_name")?;
    let params = entry.get("litellm_params").and_then(Value::as_object);
    let params = params.ok_or("it has no litellm_params")?;
    let none = Map::new();
    let info = entry.get("model_info").and_then(Value::as_object);
    let info = info.unwrap_or(&none);
    let mode = info.get("mode").and_then(Value::as_str);
    if let Some(mode) = mode.filter(|mode| !["chat", "responses", "completion"].contains(mode)) {
        return Err(match mode {
            "image_generation" => "models of images have names of the catalogue here: write their channel by docs/models".to_owned(),
            mode => format!("the gateway has no API of the mode {mode}"),
        });
    }
    let (target, upstream) = find_target(targets, params)?;
    if upstream.contains('*') || name.contains('*') {
        return Err("a channel lists its models: name them instead of a pattern".to_owned());
    }
    let address = param(params, "api_base").or_else(|| param(params, "base_url"));
    let base_url = target.base_url(address.map(reference).as_deref())?;
    let price = read_price(imported, item, &[params, info]);
    let channel = ImportedChannel {
        name: target.name.replace('_', "-"),
        kind: target.kind.clone(),
        only_chat_completions: target.only_chat_completions,
        base_url,
        api_keys: key(target, params)?.into_iter().collect(),
        models: vec![(name.to_owned(), upstream)],
        priority: integer(params, "order")?.unwrap_or(0),
        weight: u32::try_from(integer(params, "weight")?.unwrap_or(1))
            .map_err(|_| "weight is negative")?
            .max(1),
        max_concurrency: integer(params, "max_parallel_requests")?
            .and_then(|max| u32::try_from(max).ok())
            .filter(|max| *max > 0),
    };
    imported.add(channel);
    if !price.is_empty() {
        let known = imported
            .prices
            .entry(name.to_owned())
            .or_insert_with(|| price.clone());
        if *known != price {
            let reason = "another entry of this model has other prices: a model has one price";
            imported.leave_out(format!("{item}: its prices"), reason);
        }
    }
    leave_out_params(imported, item, params);
    Ok(())
}

fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.is_empty())
}

fn param<'a>(params: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    params.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The provider, and the provider's name of the model.
fn find_target<'a>(
    targets: &'a Targets,
    params: &Map<String, Value>,
) -> Result<(&'a Target, String), String> {
    let model = param(params, "model").ok_or("litellm_params has no model")?;
    let find = |name: &str| {
        let found = targets.litellm.iter().find(|target| target.name == name);
        found.ok_or_else(|| no_kind(name))
    };
    if let Some(custom) = param(params, "custom_llm_provider") {
        let bare = model.strip_prefix(custom);
        let bare = bare.and_then(|rest| rest.strip_prefix('/'));
        return Ok((find(custom)?, bare.unwrap_or(model).to_owned()));
    }
    if let Some((name, rest)) = model.split_once('/') {
        // In LiteLLM, `responses/` selects an API; a channel here supports both APIs.
        let rest = rest.strip_prefix("responses/").unwrap_or(rest);
        return Ok((find(name)?, rest.to_owned()));
    }
    let mut bare = targets.bare.iter();
    let known = bare.find(|(start, _)| model.starts_with(start.as_str()));
    let (_, name) = known.ok_or("its model names no provider")?;
    Ok((find(name)?, model.to_owned()))
}

fn no_kind(provider: &str) -> String {
    format!(
        "there is no kind of channel for the provider {provider}: docs/channels.md has the kinds"
    )
}

/// Converts a value: `os.environ/NAME` becomes `env:NAME`.
fn reference(value: &str) -> String {
    match value.strip_prefix("os.environ/") {
        Some(name) => format!("env:{name}"),
        None => value.to_owned(),
    }
}

/// The key, or the variable that LiteLLM reads if the entry has no key. `None` for a server that needs no key.
fn key(target: &Target, params: &Map<String, Value>) -> Result<Option<String>, String> {
    match params.get("api_key") {
        Some(Value::String(key)) if !key.is_empty() => Ok(Some(reference(key))),
        None | Some(Value::Null | Value::String(_)) => {
            Ok(target.variable.as_ref().map(|name| format!("env:{name}")))
        }
        Some(_) => Err("its api_key is not a text".to_owned()),
    }
}

fn integer(params: &Map<String, Value>, name: &str) -> Result<Option<i64>, String> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_i64()
            .map(Some)
            .ok_or_else(|| format!("{name} is not an integer")),
    }
}

/// Converts prices of one token to prices of a million.
fn read_price(
    imported: &mut Imported,
    item: &str,
    sources: &[&Map<String, Value>],
) -> ImportedPrice {
    let mut price = ImportedPrice::new();
    for (theirs, ours) in PRICES {
        let Some(value) = sources.iter().find_map(|source| source.get(*theirs)) else {
            continue;
        };
        match value.as_f64().filter(|cost| (0.0..1.0).contains(cost)) {
            Some(cost) => {
                let text = format!("{:.9}", cost * 1e6);
                let text = text.trim_end_matches('0').trim_end_matches('.');
                price.insert(ours, text.to_owned());
            }
            None => imported.leave_out(format!("{item}: {theirs}"), "it is no price of a token"),
        }
    }
    price
}

/// Reports every member of `litellm_params` that has no setting here.
fn leave_out_params(imported: &mut Imported, item: &str, params: &Map<String, Value>) {
    for name in params.keys() {
        let name = name.as_str();
        let is_read = READ.contains(&name)
            || NEEDLESS.contains(&name)
            || PRICES.iter().any(|(theirs, _)| *theirs == name);
        if is_read {
            continue;
        }
        let reason = match name {
            "rpm" | "tpm" => {
                "limits of rates are those of keys and users; a channel has max_concurrency"
            }
            "timeout" | "stream_timeout" => "a channel has connect_s, first_byte_s and idle_s",
            "organization" | "extra_headers" | "headers" => "channels send no headers of their own",
            "temperature" | "max_tokens" | "top_p" | "stop" | "seed" => {
                "what a request says is the client's"
            }
            _ => "channels have no such setting",
        };
        imported.leave_out(format!("{item}: {name}"), reason);
    }
}

/// Reports the settings in other sections. Their values are left out, because some are secrets.
fn leave_out_section(imported: &mut Imported, section: &str, settings: &Value) {
    let Some(settings) = settings.as_object() else {
        imported.leave_out(section, "only model_list is imported");
        return;
    };
    for (name, value) in settings {
        let reason = match (section, name.as_str()) {
            ("general_settings", "master_key") => match value.as_str().map(reference) {
                Some(key) if key.starts_with("env:") => format!("set admin.key = \"{key}\""),
                _ => "set admin.key".to_owned(),
            },
            ("general_settings", "database_url") => {
                "the gateway has a database of its own: database.url".to_owned()
            }
            (_, "fallbacks" | "context_window_fallbacks" | "default_fallbacks") => {
                "a request fails over to channels of the same model, not to another model"
                    .to_owned()
            }
            ("router_settings", "model_group_alias") => "write aliases as [[model]]".to_owned(),
            (_, "redis_host" | "redis_port" | "redis_password" | "redis_url") => {
                "set limits.redis_url".to_owned()
            }
            ("environment_variables", _) => "set it in the environment of the gateway".to_owned(),
            _ => "only model_list is imported".to_owned(),
        };
        imported.leave_out(format!("{section}.{name}"), reason);
    }
}
