//! The mapping of each field in each pair of formats, found by translating a request with the field and without it:
//! docs/chat/fields.md (`cargo xtask docs`).
//!
//! A field may be dropped only if the request means the same without it: [`REASONS`] has the reason for each dropped field.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::error::InvalidRequest;
use crate::format::{FieldProbes, Format, Target, WrittenRequest};
use crate::formats::FORMATS;
use crate::hub::ModelCapabilities;

/// How a field is mapped to another format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldMapping {
    /// The field's values are in the translated request, perhaps under another name.
    Supported,
    /// The translated request expresses the field in another way.
    Changed,
    /// The request is rejected with 400; the error names the field.
    Rejected,
    /// The field is left out and listed in `x-tollgate-dropped`.
    Dropped,
    /// The translated request is the same with and without the field: the field only states what is the case anyway.
    Implied,
}

/// A field of a client's format, and its mapping to each of the other formats.
#[derive(Debug, Clone)]
pub struct Row {
    /// The client's format.
    pub client: &'static str,
    /// The field with its value, as JSON text.
    pub field: String,
    /// The names of the other formats, each with the field's mapping.
    pub mappings: Vec<(&'static str, FieldMapping)>,
}

/// By the name in `x-tollgate-dropped`: the reason why the request means the same without the field.
pub const REASONS: &[(&str, &str)] = &[
    (
        "inference_geo",
        "the operator's channels decide where a model runs",
    ),
    (
        "toolConfig.functionCallingConfig.mode",
        "the model is given the same schema, without the guarantee",
    ),
    (
        "logit_bias",
        "weights single tokens of one vendor's tokenizer",
    ),
    ("prediction", "speeds up the same reply"),
    ("seed", "no vendor guarantees repeatable replies with it"),
    (
        "generationConfig.seed",
        "no vendor guarantees repeatable replies with it",
    ),
    ("frequency_penalty", "adjusts the sampling of tokens"),
    ("presence_penalty", "adjusts the sampling of tokens"),
    (
        "generationConfig.frequencyPenalty",
        "adjusts the sampling of tokens",
    ),
    (
        "generationConfig.presencePenalty",
        "adjusts the sampling of tokens",
    ),
    ("top_k", "adjusts the sampling of tokens"),
    ("generationConfig.topK", "adjusts the sampling of tokens"),
    (
        "temperature",
        "the messages format has at most 1, which replaces a larger value",
    ),
    (
        "generationConfig.temperature",
        "the messages format has at most 1, which replaces a larger value",
    ),
    ("verbosity", "a preference for the length of the reply"),
    ("text.verbosity", "a preference for the length of the reply"),
    ("metadata", "only for the vendor's records"),
    ("labels", "only for the vendor's records"),
    ("user", "only for the vendor's records"),
    ("metadata.user_id", "only for the vendor's records"),
    (
        "store",
        "a later request that needs the stored reply is rejected",
    ),
    ("prompt_cache_key", "lowers the price of the same reply"),
    (
        "prompt_cache_retention",
        "lowers the price of the same reply",
    ),
    ("cache_control", "lowers the price of the same reply"),
    ("service_tier", "selects speed and price"),
    ("serviceTier", "selects speed and price"),
    ("speed", "selects speed and price"),
    ("safety_identifier", "only for the vendor's records"),
    ("moderation", "the provider applies its own safety rules"),
    (
        "safetySettings",
        "the provider applies its own safety rules",
    ),
    (
        "truncation",
        "a conversation that is too long is rejected instead of being truncated",
    ),
    (
        "max_tool_calls",
        "limits the number, and so the cost, of searches",
    ),
    ("include", "requests details of tools that the vendor runs"),
    (
        "context_management",
        "shortens long conversations; one that is too long is rejected",
    ),
    (
        "parallel_tool_calls",
        "each tool call of a reply is complete, and the client may send the results one by one",
    ),
    (
        "tool_choice.disable_parallel_tool_use",
        "each tool call of a reply is complete, and the client may send the results one by one",
    ),
    (
        "strict",
        "the model is given the same schema, without the guarantee",
    ),
    ("max_uses", "limits the cost of a search"),
    ("googleSearch", "other settings of the search are hints"),
    ("user_location", "a hint for search results"),
    ("search_context_size", "a hint for search results"),
    (
        "detail",
        "selects the resolution at which the model sees an image",
    ),
    (
        "generationConfig.mediaResolution",
        "selects the resolution at which the model sees an image",
    ),
    ("filename", "the file itself is sent"),
    ("title", "the file itself is sent"),
    ("name", "names one of several users; the text is sent"),
    (
        "messages[0].name",
        "names one of several users; the text is sent",
    ),
    ("messages", "names one of several users; the text is sent"),
];

/// Every probed field of every format.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for client in FORMATS {
        for (field, request) in probes(*client) {
            let others = FORMATS.iter().filter(|to| to.name() != client.name());
            let mappings = others.map(|to| (to.name(), field_mapping(*client, *to, &request)));
            rows.push(Row {
                client: client.name(),
                field: field.to_string(),
                mappings: mappings.collect(),
            });
        }
    }
    rows
}

/// The names in `x-tollgate-dropped` for the probed fields.
pub fn dropped_names() -> Vec<String> {
    let mut names = Vec::new();
    for client in FORMATS {
        let without = translate_all(*client, &client.field_probes().plain_request);
        for (_, request) in probes(*client) {
            for (before, after) in without.iter().zip(translate_all(*client, &request)) {
                let (Ok(before), Ok(after)) = (before, after) else {
                    continue;
                };
                let new = after
                    .dropped
                    .into_iter()
                    .filter(|n| !before.dropped.contains(n));
                names.extend(new);
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The page docs/chat/fields.md, without its first line.
pub fn page() -> String {
    let mut text = "# Fields in other formats\n\nHow a client's field is translated when its model is served through another format: **supported** (possibly under another name), **changed** \
(sent as another field with the same meaning), **rejected** (400 that names the field), **dropped** (named in `x-tollgate-dropped`; 400 with \
`x-tollgate-strict: true`), **implied** (it requests what is the case anyway). The tables are computed for a model that supports everything; \
[the providers' pages](../channels.md) list what single models do not support. Fields that are not listed and that no format knows are dropped.\n"
        .to_owned();
    let rows = rows();
    for client in FORMATS.iter().map(|format| format.name()) {
        let others: Vec<&str> = FORMATS
            .iter()
            .map(|f| f.name())
            .filter(|n| *n != client)
            .collect();
        let _ = write!(
            text,
            "\n## From {client}\n\n| field | {} |\n|---|{}\n",
            others.join(" | "),
            "---|".repeat(others.len())
        );
        for row in rows.iter().filter(|row| row.client == client) {
            let mappings: Vec<String> = row
                .mappings
                .iter()
                .map(|(_, mapping)| format!("{mapping:?}").to_lowercase())
                .collect();
            let _ = writeln!(
                text,
                "| `{}` | {} |",
                row.field.replace('|', "\\|"),
                mappings.join(" | ")
            );
        }
    }
    text += "\n## Why a field may be dropped\n\nThe request means the same without it:\n\n| name in the header | reason |\n|---|---|\n";
    let reasons: BTreeMap<&str, &str> = REASONS.iter().copied().collect();
    for name in dropped_names() {
        let why = reasons.get(name.as_str()).copied().unwrap_or_default();
        let _ = writeln!(text, "| `{name}` | {why} |");
    }
    text
}

fn translate(
    client: &dyn Format,
    to: &dyn Format,
    request: &Value,
) -> Result<WrittenRequest, InvalidRequest> {
    let capabilities = ModelCapabilities::default();
    let target = Target {
        model: "m",
        stream: false,
        capabilities: &capabilities,
        default_max_tokens: 8192,
    };
    let read = client.read_request(request.to_string().as_bytes())?;
    to.write_request(&read, &target)
}

fn translate_all(
    client: &dyn Format,
    request: &Value,
) -> Vec<Result<WrittenRequest, InvalidRequest>> {
    let others = FORMATS.iter().filter(|to| to.name() != client.name());
    others.map(|to| translate(client, *to, request)).collect()
}

fn field_mapping(client: &dyn Format, to: &dyn Format, request: &Value) -> FieldMapping {
    let base = client.field_probes().plain_request;
    let (Ok(before), Ok(after)) = (translate(client, to, &base), translate(client, to, request))
    else {
        return FieldMapping::Rejected;
    };
    if after
        .dropped
        .iter()
        .any(|name| !before.dropped.contains(name))
    {
        return FieldMapping::Dropped;
    }
    if before.body == after.body {
        return FieldMapping::Implied;
    }
    let sent: Vec<String> = leaves(&serde_json::from_slice(&after.body).unwrap_or_default());
    let given = leaves(request);
    let known = leaves(&base);
    let is_supported = given
        .iter()
        .filter(|leaf| !known.contains(leaf))
        .all(|leaf| sent.contains(leaf));
    match is_supported && given.len() > known.len() {
        true => FieldMapping::Supported,
        false => FieldMapping::Changed,
    }
}

/// The texts, numbers and flags in a JSON value.
fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members.values().flat_map(leaves).collect(),
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        other => vec![other.to_string()],
    }
}

/// The fields of a format, each with a request that has it.
fn probes(client: &dyn Format) -> Vec<(Value, Value)> {
    let FieldProbes {
        plain_request,
        fields,
    } = client.field_probes();
    let probe = |field: Value| {
        let mut request = plain_request.clone();
        for (name, value) in field.as_object().into_iter().flatten() {
            request[name.as_str()] = value.clone();
        }
        (field, request)
    };
    fields.into_iter().map(probe).collect()
}
