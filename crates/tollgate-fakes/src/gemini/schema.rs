//! Schemas in Gemini's two dialects: its own, and a part of JSON Schema.

use serde_json::Value;

use super::{SPEC, invalid, violation};
use crate::rejection::{Checked, Rejection};
use crate::tables::path::camel;
use crate::tables::schema::{field, list_of, text_of};

/// Whether a list of the tables has this name.
fn is_listed(table: &str, name: &str) -> bool {
    SPEC.tables[table]
        .as_array()
        .is_some_and(|list| list.iter().any(|known| known == name))
}

const TYPES: &[&str] = &[
    "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL",
];

/// Checks a schema of Gemini's own dialect.
pub(super) fn own(schema: &Value, place: &str, newer: bool) -> Checked {
    let Some(object) = schema.as_object() else {
        return Err(no_list(place, "schema"));
    };
    for (key, value) in object {
        let name = camel(key);
        let known = is_listed("own_schema", &name) || (newer && is_listed("newer_schema", &name));
        if !known {
            return Err(unknown(key, place));
        }
        if value.is_array()
            && !matches!(
                name.as_str(),
                "enum" | "required" | "anyOf" | "propertyOrdering"
            )
        {
            return Err(no_list(place, key));
        }
    }
    let kind = text_of(schema, "type")
        .unwrap_or_default()
        .to_ascii_uppercase();
    if !kind.is_empty() && !TYPES.contains(&kind.as_str()) {
        let what = format!(
            "Invalid value at '{place}.type' (type.googleapis.com/google.ai.\
            generativelanguage.v1beta.Type), \"{kind}\""
        );
        return Err(Box::new(violation("schema-type", place, &what)));
    }
    enumeration(schema, &kind, place)?;
    format(schema, &kind, place)?;
    children(schema, &kind, place, newer)
}

fn enumeration(schema: &Value, kind: &str, place: &str) -> Checked {
    let values = list_of(schema, "enum");
    if let Some(value) = values.iter().find(|value| !value.is_string()) {
        let what = format!("Invalid value at '{place}.enum[0]' (TYPE_STRING), {value}");
        return Err(Box::new(violation("schema-enum", place, &what)));
    }
    if !values.is_empty() && kind != "STRING" {
        return Err(wrong(place, "enum: only allowed for STRING type"));
    }
    if values.iter().any(|value| value == "") {
        return Err(wrong(place, "enum[0]: cannot be empty"));
    }
    Ok(())
}

fn format(schema: &Value, kind: &str, place: &str) -> Checked {
    let Some(format) = text_of(schema, "format") else {
        return Ok(());
    };
    let allowed: &[&str] = match kind {
        "STRING" => &["enum", "date-time"],
        "INTEGER" => &["int32", "int64"],
        "NUMBER" => &["float", "double"],
        _ => return Ok(()),
    };
    if allowed.contains(&format) {
        return Ok(());
    }
    let names = allowed.join("' and '");
    Err(wrong(
        place,
        &format!("format: only '{names}' are supported for {kind} type"),
    ))
}

fn children(schema: &Value, kind: &str, place: &str, newer: bool) -> Checked {
    let properties = field(schema, "properties");
    let count = properties
        .and_then(Value::as_object)
        .map_or(0, serde_json::Map::len);
    if kind == "OBJECT" && properties.is_some() && count == 0 {
        return Err(wrong(
            place,
            "properties: should be non-empty for OBJECT type",
        ));
    }
    if kind == "ARRAY" && field(schema, "items").is_none() {
        return Err(wrong(place, "items: missing field."));
    }
    for (at, name) in list_of(schema, "required").iter().enumerate() {
        let known = name.as_str().and_then(|name| properties?.get(name));
        if known.is_none() {
            return Err(wrong(
                place,
                &format!("required[{at}]: property is not defined"),
            ));
        }
    }
    for (name, value) in properties.and_then(Value::as_object).into_iter().flatten() {
        own(value, &format!("{place}.properties[{name}].value"), newer)?;
    }
    if let Some(items) = field(schema, "items") {
        own(items, &format!("{place}.items"), newer)?;
    }
    let mut choices = list_of(schema, "anyOf").iter().enumerate();
    choices.try_for_each(|(at, value)| own(value, &format!("{place}.any_of[{at}]"), newer))
}

/// Checks a schema of the JSON Schema dialect.
pub(super) fn json(schema: &Value, place: &str) -> Checked {
    let Some(object) = schema.as_object() else {
        return match schema {
            Value::Bool(_) => Ok(()),
            _ => Err(Box::new(invalid(
                "schema",
                format!("{place}: not a schema"),
            ))),
        };
    };
    for (key, value) in object {
        if !is_listed("json_schema", key) {
            return Err(unknown(key, place));
        }
        let inner = format!("{place}.{key}");
        match key.as_str() {
            "properties" | "$defs" => {
                let mut values = value.as_object().into_iter().flatten();
                values.try_for_each(|(name, value)| json(value, &format!("{inner}[{name}]")))?;
            }
            "anyOf" | "oneOf" | "prefixItems" => {
                let mut values = value.as_array().into_iter().flatten();
                values.try_for_each(|value| json(value, &inner))?;
            }
            "items" | "additionalProperties" => json(value, &inner)?,
            "enum" => {
                let mut values = value.as_array().into_iter().flatten();
                let simple = values.all(|v| v.is_string() || v.is_number());
                if !simple {
                    return Err(wrong(place, "enum: only strings and numbers are supported"));
                }
            }
            _ => {}
        }
    }
    let beside = object.keys().any(|key| !key.starts_with('$'));
    if object.contains_key("$ref") && beside {
        return Err(wrong(
            place,
            "$ref: only fields that begin with $ may stand beside it",
        ));
    }
    Ok(())
}

fn unknown(key: &str, place: &str) -> Box<Rejection> {
    let what = format!(
        "Invalid JSON payload received. Unknown name \"{key}\" at '{place}': Cannot find field."
    );
    Box::new(violation("schema-unknown", place, &what))
}

fn no_list(place: &str, key: &str) -> Box<Rejection> {
    let what = format!(
        "Invalid JSON payload received. Unknown name \"{key}\" at '{place}': Proto field is not \
         repeating, cannot start list."
    );
    Box::new(violation("schema-list", place, &what))
}

fn wrong(place: &str, what: &str) -> Box<Rejection> {
    Box::new(invalid(
        "schema",
        format!("* GenerateContentRequest.{place}.{what}\n"),
    ))
}
