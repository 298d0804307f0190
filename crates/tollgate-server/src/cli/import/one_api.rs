//! Channels of new-api and one-api: the rows of their table `channels` as JSON. The numbers of the types are in `constant/channel.go`
//! of new-api and `relay/channeltype/define.go` of one-api.

use serde_json::{Map, Value};

use super::channels::{Imported, ImportedChannel};

/// Which of the two, whose types have different numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    NewApi,
    OneApi,
}

/// Where a type of channel leads.
struct Target {
    /// The number of the type.
    number: i64,
    kind: &'static str,
    /// `None` for the kind's own.
    base_url: Option<&'static str>,
    /// What the gateway appends to the address: ours has it.
    path: &'static str,
}

const fn target(
    number: i64,
    kind: &'static str,
    base_url: Option<&'static str>,
    path: &'static str,
) -> Target {
    Target {
        number,
        kind,
        base_url,
        path,
    }
}

/// Types that are the same in both.
const BOTH: &[Target] = &[
    target(1, "openai", None, "/v1"),
    target(3, "openai", None, "/openai/v1"),
    target(14, "anthropic", None, ""),
    target(
        17,
        "openai",
        Some("https://dashscope.aliyuncs.com"),
        "/compatible-mode/v1",
    ),
    target(20, "openai", Some("https://openrouter.ai/api"), "/v1"),
    target(24, "gemini", None, ""),
    target(25, "openai", Some("https://api.moonshot.cn"), "/v1"),
    target(31, "openai", Some("https://api.lingyiwanwu.com"), "/v1"),
];
const NEW_API: &[Target] = &[
    target(4, "openai", Some("http://localhost:11434"), "/v1"),
    target(
        26,
        "openai",
        Some("https://open.bigmodel.cn"),
        "/api/paas/v4",
    ),
    target(27, "openai", Some("https://api.perplexity.ai"), ""),
    target(40, "openai", Some("https://api.siliconflow.cn"), "/v1"),
    target(42, "openai", Some("https://api.mistral.ai"), "/v1"),
    target(43, "openai", Some("https://api.deepseek.com"), "/v1"),
    target(
        45,
        "openai",
        Some("https://ark.cn-beijing.volces.com"),
        "/api/v3",
    ),
    target(47, "openai", None, "/v1"),
    target(48, "xai", None, "/v1"),
    target(50, "kling", None, ""),
    target(54, "ark", None, "/api/v3"),
    target(55, "openai", None, "/v1"),
    target(56, "replicate", None, "/v1"),
];
const ONE_API: &[Target] = &[
    target(28, "openai", Some("https://api.mistral.ai"), "/v1"),
    target(29, "openai", Some("https://api.groq.com/openai"), "/v1"),
    target(30, "openai", Some("http://localhost:11434"), "/v1"),
    target(32, "openai", Some("https://api.stepfun.com"), "/v1"),
    target(36, "openai", Some("https://api.deepseek.com"), "/v1"),
    target(39, "openai", Some("https://api.together.xyz"), "/v1"),
    target(
        40,
        "openai",
        Some("https://ark.cn-beijing.volces.com"),
        "/api/v3",
    ),
];
/// Types whose servers are known by their own address only.
const WITHOUT_ADDRESS: &[i64] = &[3, 47];
/// The type of channels of Azure in both.
const AZURE: i64 = 3;
/// Members that are settings without a place here, where they are set.
const WITHOUT_PLACE: &[(&str, &str)] = &[
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
pub(super) fn read(text: &str, variant: Variant) -> Result<Imported, String> {
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
        if let Err(reason) = read_row(&mut imported, &item, row, variant, highest) {
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
        // serde_json's own message can repeat a value.
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

/// One channel. The error is why it is left out.
fn read_row(
    imported: &mut Imported,
    item: &str,
    row: &Map<String, Value>,
    variant: Variant,
    highest: i64,
) -> Result<(), String> {
    if row.get("status").and_then(Value::as_i64).unwrap_or(1) != 1 {
        return Err("it is disabled".to_owned());
    }
    let number = row
        .get("type")
        .and_then(Value::as_i64)
        .ok_or("it has no type")?;
    let own = match variant {
        Variant::NewApi => NEW_API,
        Variant::OneApi => ONE_API,
    };
    let mut targets = BOTH.iter().chain(own);
    let target = targets.find(|target| target.number == number);
    let target = target.ok_or_else(|| {
        format!("there is no kind of channel for the type {number}: docs/channels.md has the kinds")
    })?;
    let base_url = base_url(target, member(row, "base_url"))?;
    let models = models(row)?;
    let priority = row.get("priority").and_then(Value::as_i64).unwrap_or(0);
    let weight = row.get("weight").and_then(Value::as_i64).unwrap_or(1);
    let api_keys = keys(imported, item, row, target.kind);
    if api_keys.is_empty() {
        return Err("it has no key: export the column `key`".to_owned());
    }
    imported.add(ImportedChannel {
        name: member(row, "name").unwrap_or(target.kind).to_owned(),
        kind: target.kind,
        only_chat_completions: target.kind == "openai" && ![1, AZURE, 55].contains(&number),
        base_url,
        api_keys,
        models,
        // Theirs is higher first, ours lower.
        priority: (highest.saturating_sub(priority)).clamp(0, 1_000_000),
        weight: u32::try_from(weight.clamp(1, 1_000_000)).unwrap_or(1),
        max_concurrency: None,
    });
    leave_out_settings(imported, item, row);
    Ok(())
}

/// A text that is not empty.
fn member<'a>(row: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    row.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// An object, or the text of one: both occur, by how the rows were exported.
fn object(row: &Map<String, Value>, name: &str) -> Option<Map<String, Value>> {
    match row.get(name)? {
        Value::Object(object) => Some(object.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

fn base_url(target: &Target, written: Option<&str>) -> Result<Option<String>, String> {
    let written = written.map(|url| url.trim_end_matches('/'));
    if target.number == AZURE {
        let url = written.and_then(|url| url::Url::parse(url).ok());
        let host = url.as_ref().and_then(url::Url::host_str);
        let host = host.ok_or("it has no base_url")?;
        return Ok(Some(format!("https://{host}{}", target.path)));
    }
    match written.or(target.base_url) {
        Some(url) if url.ends_with(target.path) => Ok(Some(url.to_owned())),
        Some(url) => Ok(Some(format!("{url}{}", target.path))),
        None if WITHOUT_ADDRESS.contains(&target.number) => Err("it has no base_url".to_owned()),
        None => Ok(None),
    }
}

/// The models with their names at the provider.
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
        // A name may lead to another one; a circle ends after as many steps as there are.
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

/// The keys, one a line there, but those that are disabled.
fn keys(imported: &mut Imported, item: &str, row: &Map<String, Value>, kind: &str) -> Vec<String> {
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
        keys.push(match kind {
            "kling" => key.replacen('|', ":", 1),
            _ => key.to_owned(),
        });
    }
    keys
}

/// Names every setting of the channel that has no place here. No value is repeated.
fn leave_out_settings(imported: &mut Imported, item: &str, row: &Map<String, Value>) {
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !["", "{}", "[]", "null"].contains(&text.trim()),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    };
    for (name, reason) in WITHOUT_PLACE {
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
