//! Converts JSON schemas of structured output to the subset of JSON Schema that the API accepts.
//! Source: <https://docs.anthropic.com/en/docs/build-with-claude/structured-outputs>

use serde_json::{Map, Value, json};

/// Keywords that the API rejects. They are added to the description instead.
const DESCRIBED_KEYWORDS: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "patternProperties",
    "unevaluatedProperties",
    "if",
    "then",
    "else",
    "not",
    "dependentRequired",
    "dependentSchemas",
];

/// String formats that the API accepts.
const FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Members that contain one schema, a list of schemas, or schemas by name.
const SCHEMA: &[&str] = &["items", "additionalItems"];

const LISTS: &[&str] = &["anyOf", "allOf", "oneOf", "prefixItems"];

const MAPS: &[&str] = &["properties", "$defs", "definitions"];

/// The schema in the form that the API accepts, and whether it now accepts other values than before.
pub(crate) fn convert_schema(schema: &Value) -> (Value, bool) {
    let mut is_changed = false;
    (convert(schema, &mut is_changed), is_changed)
}

fn convert(schema: &Value, is_changed: &mut bool) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let mut out = Map::new();
    let mut described = Vec::new();
    for (name, value) in members {
        if is_described(name, value) {
            described.push(format!("{name}: {value}"));
            continue;
        }
        let (name, value) = convert_member(name, value, is_changed);
        out.insert(name.to_owned(), value);
    }
    if is_object(&out) {
        // Objects must not have additional properties. A schema that allowed them explicitly is changed, and one without properties, which only has
        // additional ones.
        *is_changed |= match out.get("additionalProperties") {
            Some(value) => value != false,
            None => !out.contains_key("properties"),
        };
        out.insert("additionalProperties".to_owned(), json!(false));
    }
    if !described.is_empty() {
        *is_changed = true;
        let before = out.get("description").and_then(Value::as_str);
        let before = before.map(|text| format!("{text}\n\n")).unwrap_or_default();
        let text = format!("{before}{{{}}}", described.join(", "));
        out.insert("description".to_owned(), json!(text));
    }
    Value::Object(out)
}

fn is_described(name: &str, value: &Value) -> bool {
    match name {
        "minItems" => value.as_u64().is_none_or(|min| min > 1),
        "format" => value
            .as_str()
            .is_none_or(|format| !FORMATS.contains(&format)),
        name => DESCRIBED_KEYWORDS.contains(&name),
    }
}

fn convert_member<'a>(name: &'a str, value: &Value, is_changed: &mut bool) -> (&'a str, Value) {
    let value = match value {
        Value::Array(list) if LISTS.contains(&name) => {
            Value::Array(list.iter().map(|item| convert(item, is_changed)).collect())
        }
        Value::Object(map) if MAPS.contains(&name) => Value::Object(
            map.iter()
                .map(|(key, item)| (key.clone(), convert(item, is_changed)))
                .collect(),
        ),
        item if SCHEMA.contains(&name) => convert(item, is_changed),
        other => other.clone(),
    };
    // The API does not support `oneOf`; `anyOf` is the closest.
    let name = if name == "oneOf" { "anyOf" } else { name };
    (name, value)
}

fn is_object(schema: &Map<String, Value>) -> bool {
    let names_object = match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => false,
    };
    names_object || schema.contains_key("properties")
}
