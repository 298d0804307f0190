//! Channels of LiteLLM: `model_list` of its config.yaml (<https://docs.litellm.ai/docs/proxy/configs>).

use serde_json::{Map, Value};

use super::channels::{Imported, ImportedChannel, ImportedPrice};

/// What LiteLLM calls a provider, and where it is.
struct Provider {
    /// What `model` begins with.
    prefix: &'static str,
    kind: &'static str,
    /// `None` for the kind's own.
    base_url: Option<&'static str>,
    /// What is appended to an `api_base` that does not end with it.
    path: &'static str,
    /// The variable with the key if there is none in the file.
    variable: Option<&'static str>,
}

const fn openai_like(
    prefix: &'static str,
    base_url: &'static str,
    variable: &'static str,
) -> Provider {
    Provider {
        prefix,
        kind: "openai",
        base_url: Some(base_url),
        path: "",
        variable: Some(variable),
    }
}

/// A server that the operator runs.
const fn own_server(prefix: &'static str, path: &'static str) -> Provider {
    Provider {
        prefix,
        kind: "openai",
        base_url: None,
        path,
        variable: None,
    }
}

const fn own_kind(prefix: &'static str, kind: &'static str, variable: &'static str) -> Provider {
    Provider {
        prefix,
        kind,
        base_url: None,
        path: "",
        variable: Some(variable),
    }
}

const PROVIDERS: &[Provider] = &[
    own_kind("openai", "openai", "OPENAI_API_KEY"),
    own_kind("anthropic", "anthropic", "ANTHROPIC_API_KEY"),
    own_kind("gemini", "gemini", "GEMINI_API_KEY"),
    own_kind("xai", "xai", "XAI_API_KEY"),
    // Its API of version 1 is OpenAI's, with deployments as models.
    Provider {
        prefix: "azure",
        kind: "openai",
        base_url: None,
        path: "/openai/v1",
        variable: Some("AZURE_API_KEY"),
    },
    openai_like(
        "deepseek",
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
    ),
    openai_like("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    openai_like("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    openai_like(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
    ),
    openai_like(
        "together_ai",
        "https://api.together.xyz/v1",
        "TOGETHERAI_API_KEY",
    ),
    openai_like(
        "fireworks_ai",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_AI_API_KEY",
    ),
    openai_like(
        "perplexity",
        "https://api.perplexity.ai",
        "PERPLEXITYAI_API_KEY",
    ),
    openai_like("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    openai_like("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    openai_like(
        "nvidia_nim",
        "https://integrate.api.nvidia.com/v1",
        "NVIDIA_NIM_API_KEY",
    ),
    openai_like(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
    ),
    openai_like(
        "volcengine",
        "https://ark.cn-beijing.volces.com/api/v3",
        "VOLCENGINE_API_KEY",
    ),
    own_server("hosted_vllm", ""),
    own_server("openai_like", ""),
    own_server("lm_studio", ""),
    own_server("ollama_chat", "/v1"),
    own_server("ollama", "/v1"),
];

/// Ids without a provider that LiteLLM knows.
const BARE: &[(&str, &str)] = &[
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude-", "anthropic"),
];

/// Members of `litellm_params` that are read here.
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
/// Those that need no place: they are LiteLLM's own, or follow from the channel's kind.
const NEEDLESS: &[&str] = &[
    "api_version",
    "drop_params",
    "use_in_pass_through",
    "merge_reasoning_content_in_choices",
];
/// Prices of a token: LiteLLM's name and ours.
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
pub(super) fn read(text: &str) -> Result<Imported, String> {
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
        if let Err(reason) = read_entry(&mut imported, &item, entry) {
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

/// One entry of `model_list`. The error is why it is left out.
fn read_entry(imported: &mut Imported, item: &str, entry: &Value) -> Result<(), String> {
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
    let (provider, upstream) = find_provider(params)?;
    if upstream.contains('*') || name.contains('*') {
        return Err("a channel lists its models: name them instead of a pattern".to_owned());
    }
    let base_url = base_url(provider, params)?;
    let price = read_price(imported, item, &[params, info]);
    let channel = ImportedChannel {
        name: provider.prefix.replace('_', "-"),
        kind: provider.kind,
        only_chat_completions: provider.kind == "openai"
            && !["openai", "azure"].contains(&provider.prefix),
        base_url,
        api_keys: key(provider, params)?.into_iter().collect(),
        models: vec![(name.to_owned(), upstream)],
        priority: whole(params, "order")?.unwrap_or(0),
        weight: u32::try_from(whole(params, "weight")?.unwrap_or(1))
            .map_err(|_| "weight is negative")?
            .max(1),
        max_concurrency: whole(params, "max_parallel_requests")?
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

/// The provider, and the model as it calls it.
fn find_provider(params: &Map<String, Value>) -> Result<(&'static Provider, String), String> {
    let model = param(params, "model").ok_or("litellm_params has no model")?;
    let find = |prefix: &str| PROVIDERS.iter().find(|provider| provider.prefix == prefix);
    if let Some(custom) = param(params, "custom_llm_provider") {
        let provider = find(custom).ok_or_else(|| no_kind(custom))?;
        let bare = model
            .strip_prefix(custom)
            .and_then(|rest| rest.strip_prefix('/'));
        return Ok((provider, bare.unwrap_or(model).to_owned()));
    }
    if let Some((prefix, rest)) = model.split_once('/') {
        let provider = find(prefix).ok_or_else(|| no_kind(prefix))?;
        // `responses/` names an API there; a channel has both.
        let rest = rest.strip_prefix("responses/").unwrap_or(rest);
        return Ok((provider, rest.to_owned()));
    }
    let known = BARE.iter().find(|(start, _)| model.starts_with(start));
    let provider = known.and_then(|(_, prefix)| find(prefix));
    let provider = provider.ok_or("its model names no provider")?;
    Ok((provider, model.to_owned()))
}

fn no_kind(provider: &str) -> String {
    format!(
        "there is no kind of channel for the provider {provider}: docs/channels.md has the kinds"
    )
}

/// A value of the file as one of ours: `os.environ/NAME` is `env:NAME`.
fn reference(value: &str) -> String {
    match value.strip_prefix("os.environ/") {
        Some(name) => format!("env:{name}"),
        None => value.to_owned(),
    }
}

fn base_url(provider: &Provider, params: &Map<String, Value>) -> Result<Option<String>, String> {
    let written = param(params, "api_base").or_else(|| param(params, "base_url"));
    let Some(written) = written else {
        return match provider.base_url {
            Some(url) => Ok(Some(url.to_owned())),
            None if provider.variable.is_none() => Err("it has no api_base".to_owned()),
            None if provider.prefix == "azure" => Err("it has no api_base".to_owned()),
            None => Ok(None),
        };
    };
    let reference = reference(written);
    if reference.starts_with("env:") {
        return match provider.path {
            "" => Ok(Some(reference)),
            path => Err(format!(
                "its api_base comes from the environment: write base_url with {path} at its end"
            )),
        };
    }
    let url = reference.trim_end_matches('/');
    match provider.prefix {
        // Theirs may have the version and the path.
        "anthropic" => {
            let url = url.strip_suffix("/messages").unwrap_or(url);
            Ok(Some(url.strip_suffix("/v1").unwrap_or(url).to_owned()))
        }
        "azure" => {
            let parsed = url::Url::parse(url).map_err(|_| "its api_base is no URL")?;
            let host = parsed.host_str().unwrap_or_default();
            let is_azure = [".azure.com", ".azure.us", ".azure.cn"]
                .iter()
                .any(|end| host.ends_with(end));
            match is_azure {
                true => Ok(Some(format!("https://{host}{}", provider.path))),
                false => Err("its api_base is no address of Azure: write base_url for its version 1 of the API".to_owned()),
            }
        }
        _ if url.ends_with(provider.path) => Ok(Some(url.to_owned())),
        _ => Ok(Some(format!("{url}{}", provider.path))),
    }
}

/// The key, or the variable that LiteLLM reads without one. `None` for a server that needs none.
fn key(provider: &Provider, params: &Map<String, Value>) -> Result<Option<String>, String> {
    match params.get("api_key") {
        Some(Value::String(key)) if !key.is_empty() => Ok(Some(reference(key))),
        None | Some(Value::Null | Value::String(_)) => {
            Ok(provider.variable.map(|name| format!("env:{name}")))
        }
        Some(_) => Err("its api_key is not a text".to_owned()),
    }
}

fn whole(params: &Map<String, Value>, name: &str) -> Result<Option<i64>, String> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_i64()
            .map(Some)
            .ok_or_else(|| format!("{name} is not a whole number")),
    }
}

/// Prices for a token as those for a million.
fn read_price(
    imported: &mut Imported,
    item: &str,
    places: &[&Map<String, Value>],
) -> ImportedPrice {
    let mut price = ImportedPrice::new();
    for (theirs, ours) in PRICES {
        let Some(value) = places.iter().find_map(|place| place.get(*theirs)) else {
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

/// Names every member of `litellm_params` that has no place here.
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

/// Names what the other sections have. No value is repeated: some are secrets.
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
