//! JSON schemas for structured output: the part of JSON Schema that the vendor's grammar takes.

use serde_json::{Map, Value, json};

/// Keywords that the grammar refuses; what they say is told to the model in the description instead.
const TOLD_INSTEAD: &[&str] = &[
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

/// Formats of strings that the grammar takes.
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

/// Members that hold one schema, a list of schemas, or schemas by name.
const SCHEMA: &[&str] = &["items", "additionalItems"];
const LISTS: &[&str] = &["anyOf", "allOf", "oneOf", "prefixItems"];
const MAPS: &[&str] = &["properties", "$defs", "definitions"];

/// `schema` as the grammar takes it, and whether it now allows or forbids something else than before.
pub(super) fn for_output(schema: &Value) -> (Value, bool) {
    let mut is_changed = false;
    (clean(schema, &mut is_changed), is_changed)
}

fn clean(schema: &Value, is_changed: &mut bool) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let mut out = Map::new();
    let mut told = Vec::new();
    for (name, value) in members {
        if is_told(name, value) {
            told.push(format!("{name}: {value}"));
            continue;
        }
        let (name, value) = clean_member(name, value, is_changed);
        out.insert(name.to_owned(), value);
    }
    if is_object(&out) {
        // Objects are closed; one that was open on purpose is not the same any more.
        *is_changed |= out
            .get("additionalProperties")
            .is_some_and(|value| value != false);
        out.insert("additionalProperties".to_owned(), json!(false));
    }
    if !told.is_empty() {
        *is_changed = true;
        let before = out.get("description").and_then(Value::as_str);
        let before = before.map(|text| format!("{text}\n\n")).unwrap_or_default();
        let text = format!("{before}{{{}}}", told.join(", "));
        out.insert("description".to_owned(), json!(text));
    }
    Value::Object(out)
}

fn is_told(name: &str, value: &Value) -> bool {
    match name {
        "minItems" => value.as_u64().is_none_or(|least| least > 1),
        "format" => value
            .as_str()
            .is_none_or(|format| !FORMATS.contains(&format)),
        name => TOLD_INSTEAD.contains(&name),
    }
}

fn clean_member<'a>(name: &'a str, value: &Value, is_changed: &mut bool) -> (&'a str, Value) {
    let value = match value {
        Value::Array(list) if LISTS.contains(&name) => {
            Value::Array(list.iter().map(|item| clean(item, is_changed)).collect())
        }
        Value::Object(map) if MAPS.contains(&name) => Value::Object(
            map.iter()
                .map(|(key, item)| (key.clone(), clean(item, is_changed)))
                .collect(),
        ),
        item if SCHEMA.contains(&name) => clean(item, is_changed),
        other => other.clone(),
    };
    // Exactly one of several is more than the grammar can say; any of them comes nearest.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_grammar_refuses_is_told_in_words() {
        let schema = json!({
            "type": "object",
            "properties": {
                "format": {"type": "string", "format": "phone", "minLength": 3, "description": "A number."},
                "list": {"type": "array", "minItems": 1, "items": {"oneOf": [{"type": "integer", "minimum": 0}]}},
            },
            "required": ["format"],
        });
        let (clean, is_changed) = for_output(&schema);
        assert!(is_changed);
        assert_eq!(
            clean,
            json!({
                "type": "object",
                "properties": {
                    "format": {"type": "string", "description": "A number.\n\n{format: \"phone\", minLength: 3}"},
                    "list": {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "integer", "description": "{minimum: 0}"}]}},
                },
                "required": ["format"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn closing_an_object_changes_nothing_that_was_said() {
        let (clean, is_changed) = for_output(&json!({"type": "object", "properties": {}}));
        assert_eq!(clean["additionalProperties"], false);
        assert!(!is_changed);
        assert!(for_output(&json!({"type": "object", "additionalProperties": true})).1);
    }
}
