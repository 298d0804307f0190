//! Conversions into JSON Schema: from the OpenAPI dialect, and from full JSON Schema to the
//! keywords that the API supports.

use serde_json::{Map, Number, Value, json};

use crate::generate_content::fields::to_camel_case;

/// Converts a schema of the OpenAPI dialect, with names in either spelling, into JSON Schema.
pub(crate) fn to_json_schema(schema: &Value) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let mut out = Map::new();
    let mut nullable = false;
    for (name, value) in members {
        let name = match name.starts_with('$') {
            true => name.clone(),
            false => to_camel_case(name),
        };
        match name.as_str() {
            "nullable" => nullable = value == &Value::Bool(true),
            "propertyOrdering" => {}
            "type" => out.extend(lower_type(value).map(|t| (name, t))),
            "example" => {
                out.insert("examples".to_owned(), json!([value]));
            }
            "properties" => {
                out.insert(name, each_member(value, to_json_schema));
            }
            "defs" | "$defs" => {
                out.insert("$defs".to_owned(), each_member(value, to_json_schema));
            }
            "ref" => {
                out.insert("$ref".to_owned(), value.clone());
            }
            "anyOf" => {
                out.insert(name, each_item(value, to_json_schema));
            }
            "items" | "additionalProperties" => {
                out.insert(name, to_json_schema(value));
            }
            "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minLength"
            | "maxLength" => {
                out.insert(name, parse_int64(value));
            }
            _ => {
                out.insert(name, value.clone());
            }
        }
    }
    if nullable {
        allow_null(&mut out);
    }
    Value::Object(out)
}

fn lower_type(value: &Value) -> Option<Value> {
    match value {
        Value::String(word) if word.eq_ignore_ascii_case("TYPE_UNSPECIFIED") => None,
        Value::String(word) => Some(Value::String(word.to_ascii_lowercase())),
        other => Some(other.clone()),
    }
}

/// 64-bit integers may be strings in Google's JSON.
fn parse_int64(value: &Value) -> Value {
    let number = value.as_str().and_then(|text| text.parse::<i64>().ok());
    number.map_or_else(|| value.clone(), |number| json!(number))
}

fn allow_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(variants)) = schema.get_mut("anyOf") {
        variants.push(json!({"type": "null"}));
        return;
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
    if let Some(one @ Value::String(_)) = schema.get_mut("type") {
        *one = json!([one.take(), "null"]);
    }
}

/// Keywords that restrict no values, so that nothing is lost if they are left out.
const ANNOTATIONS: [&str; 12] = [
    "$schema",
    "$comment",
    "$vocabulary",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "propertyOrdering",
];

/// Reduces a JSON Schema to the keywords that the API supports; others become the nearest equivalent or are left out. Also returns whether the result
/// may accept other values than the schema.
pub(crate) fn narrow_to_supported(schema: &Value) -> (Value, bool) {
    let mut is_changed = false;
    (narrow(schema, &mut is_changed), is_changed)
}

fn narrow(schema: &Value, is_changed: &mut bool) -> Value {
    let Value::Object(members) = schema else {
        // Both `true` and `false` become a schema that allows anything.
        *is_changed |= schema == &Value::Bool(false);
        return json!({});
    };
    let members = with_all_of_merged(members, is_changed);
    let is_reference = members.contains_key("$ref");
    let mut out = Map::new();
    for (name, value) in &members {
        // Only names with a dollar sign are allowed beside a reference.
        if is_reference && !name.starts_with('$') && name != "definitions" {
            *is_changed |= !ANNOTATIONS.contains(&name.as_str());
            continue;
        }
        match name.as_str() {
            "$id" | "$anchor" | "type" | "format" | "title" | "description" | "minItems"
            | "maxItems" | "minimum" | "maximum" | "required" | "propertyOrdering" => {
                out.insert(name.clone(), value.clone());
            }
            "$ref" => {
                out.insert(name.clone(), moved_reference(value));
            }
            "$defs" | "definitions" => {
                let schemas = each_member(value, |schema| narrow(schema, is_changed));
                out.insert("$defs".to_owned(), schemas);
            }
            "properties" => {
                let schemas = each_member(value, |schema| narrow(schema, is_changed));
                out.insert(name.clone(), schemas);
            }
            "prefixItems" | "anyOf" | "oneOf" => {
                let schemas = each_item(value, |schema| narrow(schema, is_changed));
                out.insert(name.clone(), schemas);
            }
            "items" => out.extend(narrow_items(value, is_changed)),
            "additionalProperties" => {
                let value = if value.is_boolean() {
                    value.clone()
                } else {
                    narrow(value, is_changed)
                };
                out.insert(name.clone(), value);
            }
            // These are written below.
            "enum" | "const" | "exclusiveMinimum" | "exclusiveMaximum" => {}
            name => *is_changed |= !ANNOTATIONS.contains(&name),
        }
    }
    if !is_reference {
        *is_changed |= !narrow_values(&members, &mut out);
        *is_changed |= !narrow_bounds(&members, &mut out);
    }
    Value::Object(out)
}

fn narrow_items(value: &Value, is_changed: &mut bool) -> Option<(String, Value)> {
    match value {
        Value::Object(_) => Some(("items".to_owned(), narrow(value, is_changed))),
        // An array is an older spelling of a tuple.
        Value::Array(_) => Some((
            "prefixItems".to_owned(),
            each_item(value, |schema| narrow(schema, is_changed)),
        )),
        _ => {
            *is_changed |= value == &Value::Bool(false);
            None
        }
    }
}

/// `enum` of strings and numbers; `const` becomes an enum of one. Other values cannot be listed,
/// but `null` becomes a type. Returns whether the same values are allowed.
fn narrow_values(members: &Map<String, Value>, out: &mut Map<String, Value>) -> bool {
    let listed = members
        .get("enum")
        .and_then(Value::as_array)
        .map(Vec::as_slice);
    let values = match (listed, members.get("const")) {
        (Some(values), _) => values,
        (None, Some(value)) => std::slice::from_ref(value),
        (None, None) => return true,
    };
    let can_be_listed = |v: &Value| v.is_string() || v.is_number();
    if !values.iter().all(|v| can_be_listed(v) || v.is_null()) {
        return false;
    }
    let kept: Vec<Value> = values
        .iter()
        .filter(|v| can_be_listed(v))
        .cloned()
        .collect();
    let has_null = kept.len() < values.len();
    if !kept.is_empty() {
        out.insert("enum".to_owned(), Value::Array(kept));
    }
    if let (true, Some(one @ Value::String(_))) = (has_null, out.get_mut("type"))
        && one != "null"
    {
        *one = json!([one.take(), "null"]);
    }
    !has_null || out.get("type").is_some_and(allows_null)
}

fn allows_null(kind: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    is_null(kind)
        || kind
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(is_null))
}

/// Exclusive bounds: exact for integers, the bound itself for other numbers. Returns whether the same values are allowed.
fn narrow_bounds(members: &Map<String, Value>, out: &mut Map<String, Value>) -> bool {
    let mut is_exact = true;
    let is_integer = members.get("type").is_some_and(|t| t == "integer");
    for (exclusive, bound, step) in [
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ] {
        let Some(Value::Number(value)) = members.get(exclusive) else {
            continue;
        };
        is_exact &= is_integer && value.is_i64() && !out.contains_key(bound);
        if !out.contains_key(bound) {
            out.insert(bound.to_owned(), inclusive(value, is_integer, step));
        }
    }
    is_exact
}

fn inclusive(bound: &Number, is_integer: bool, step: i64) -> Value {
    match bound.as_i64() {
        Some(integer) if is_integer => json!(integer.saturating_add(step)),
        _ => Value::Number(bound.clone()),
    }
}

/// Merges `allOf` into the members: properties and `required` are joined; of other members the
/// first wins.
fn with_all_of_merged(members: &Map<String, Value>, is_changed: &mut bool) -> Map<String, Value> {
    let mut out = members.clone();
    let Some(Value::Array(all)) = out.shift_remove("allOf") else {
        return out;
    };
    for part in &all {
        let Value::Object(part) = part else {
            *is_changed |= part == &Value::Bool(false);
            continue;
        };
        for (name, value) in with_all_of_merged(part, is_changed) {
            let is_annotation = ANNOTATIONS.contains(&name.as_str());
            match (out.get_mut(&name), value) {
                (None, value) => {
                    out.insert(name, value);
                }
                (Some(Value::Object(there)), Value::Object(more)) if name != "items" => {
                    for (name, value) in more {
                        *is_changed |= there.get(&name).is_some_and(|first| *first != value);
                        there.entry(name).or_insert(value);
                    }
                }
                (Some(Value::Array(there)), Value::Array(more)) if name == "required" => {
                    there.extend(more);
                }
                (Some(there), value) => *is_changed |= !is_annotation && *there != value,
            }
        }
    }
    out
}

fn moved_reference(value: &Value) -> Value {
    let moved = value
        .as_str()
        .and_then(|text| text.strip_prefix("#/definitions/"));
    moved.map_or_else(
        || value.clone(),
        |rest| Value::String(format!("#/$defs/{rest}")),
    )
}

/// Whether a schema allows no arguments: then it is left out.
pub(crate) fn is_empty(schema: &Value) -> bool {
    const CONSTRAINTS: [&str; 6] = [
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "additionalProperties",
        "patternProperties",
    ];
    let Value::Object(members) = schema else {
        return true;
    };
    let properties = members.get("properties").and_then(Value::as_object);
    let is_constraint = |name: &&str| members.get(*name).is_some_and(|value| !value.is_boolean());
    properties.is_none_or(Map::is_empty) && !CONSTRAINTS.iter().any(is_constraint)
}

pub(crate) fn each_member(value: &Value, mut convert: impl FnMut(&Value) -> Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), convert(value)))
            .collect::<Map<_, _>>()
            .into(),
        _ => json!({}),
    }
}

pub(crate) fn each_item(value: &Value, convert: impl FnMut(&Value) -> Value) -> Value {
    let items = value.as_array().into_iter().flatten();
    Value::Array(items.map(convert).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_openapi_dialect_is_converted_to_json_schema() {
        let openapi = json!({
            "type": "OBJECT", "property_ordering": ["name"], "required": ["name"],
            "properties": {
                "name": {"type": "STRING", "nullable": true, "min_length": "2"},
                "nullable": {"type": "BOOLEAN"},
                "kind": {"type": "STRING", "enum": ["a"], "nullable": true, "example": "a"},
                "list": {"type": "array", "items": {"type": "Integer"}, "maxItems": "3"},
                "either": {"any_of": [{"type": "STRING"}, {"type": "NUMBER"}], "nullable": true},
            },
        });
        let expected = json!({
            "type": "object", "required": ["name"],
            "properties": {
                "name": {"type": ["string", "null"], "minLength": 2},
                "nullable": {"type": "boolean"},
                "kind": {"type": ["string", "null"], "enum": ["a", null], "examples": ["a"]},
                "list": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
                "either": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
            },
        });
        assert_eq!(to_json_schema(&openapi), expected);
    }

    #[test]
    fn unknown_keywords_are_removed_but_properties_with_their_names_are_kept() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
            "properties": {
                "title": {"type": "string", "title": "T", "default": "x", "minLength": 1, "$comment": "c"},
                "default": {"const": "a"},
                "format": {"type": "string", "format": "email", "pattern": "x"},
                "$schema": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
                "ratio": {"type": "number", "exclusiveMinimum": 0.5},
                "not": {"type": "object", "patternProperties": {"x": {}}, "propertyNames": {}, "properties": {"allOf": {"type": "null"}}},
                "deep": {"type": "array", "items": {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                                                              {"properties": {"b": true}, "required": ["b"]}]}},
                "maybe": {"type": "string", "enum": ["a", null]},
                "flag": {"const": true},
                "node": {"$ref": "#/definitions/node", "description": "dropped"},
            },
            "definitions": {"node": {"type": "object", "if": {}, "properties": {"next": {"$ref": "#/definitions/node"}}}},
            "required": ["title"],
        });
        let expected = json!({
            "type": "object", "additionalProperties": false,
            "properties": {
                "title": {"type": "string", "title": "T"},
                "default": {"enum": ["a"]},
                "format": {"type": "string", "format": "email"},
                "$schema": {"type": "integer", "minimum": 1, "maximum": 9},
                "ratio": {"type": "number", "minimum": 0.5},
                "not": {"type": "object", "properties": {"allOf": {"type": "null"}}},
                "deep": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]}},
                "maybe": {"type": ["string", "null"], "enum": ["a"]},
                "flag": {},
                "node": {"$ref": "#/$defs/node"},
            },
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
            "required": ["title"],
        });
        assert_eq!(narrow_to_supported(&schema), (expected.clone(), true));
        assert_eq!(
            narrow_to_supported(&expected),
            (expected.clone(), false),
            "narrowing twice changes nothing"
        );
    }

    #[test]
    fn only_lost_restrictions_count_as_changes() {
        for (schema, is_changed) in [
            (
                json!({"type": "string", "default": "x", "examples": ["y"], "$schema": "s"}),
                false,
            ),
            (json!({"type": "string", "minLength": 1}), true),
            (json!({"type": "string", "pattern": "x"}), true),
            (
                json!({"properties": {"pattern": {"type": "string"}}}),
                false,
            ),
            (
                json!({"properties": {"a": {"type": "array", "items": {"multipleOf": 2}}}}),
                true,
            ),
            (json!({"type": "integer", "exclusiveMinimum": 0}), false),
            (json!({"type": "number", "exclusiveMinimum": 0.5}), true),
            (json!({"const": "a"}), false),
            (json!({"const": true}), true),
            (json!({"type": "string", "enum": ["a", null]}), false),
            (json!({"enum": ["a", null]}), true),
            (
                json!({"allOf": [{"title": "a", "required": ["a"]}, {"title": "b", "required": ["b"]}]}),
                false,
            ),
            (json!({"allOf": [{"minimum": 1}, {"minimum": 2}]}), true),
            (json!({"$ref": "#/$defs/a", "description": "d"}), false),
            (json!({"$ref": "#/$defs/a", "minimum": 1}), true),
            (json!({"properties": {"a": false}}), true),
        ] {
            assert_eq!(narrow_to_supported(&schema).1, is_changed, "{schema}");
        }
    }

    #[test]
    fn schemas_without_properties_count_as_empty() {
        assert!(is_empty(&json!({"type": "object", "properties": {}})));
        assert!(is_empty(
            &json!({"type": "object", "additionalProperties": false})
        ));
        assert!(is_empty(&Value::Null));
        assert!(!is_empty(
            &json!({"type": "object", "properties": {"a": {}}})
        ));
        assert!(!is_empty(&json!({"$ref": "#/$defs/a"})));
    }
}
