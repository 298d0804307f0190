//! Schemas of tools and of answers.

use serde_json::Value;

use super::invalid;
use crate::rejection::Checked;
use crate::tables::path::JsonPath;
use crate::tables::schema::text_of;

/// The schema of a tool is that of an object.
pub(super) fn of_tool(tool: &Value, place: &JsonPath) -> Checked {
    let schema = &tool["input_schema"];
    let at = place.field("custom").field("input_schema");
    match text_of(schema, "type") {
        None => {
            let message = format!("{}: Field required", at.field("type").write());
            return Err(Box::new(invalid("schema-root", message)));
        }
        Some("object") => {}
        Some(_) => {
            let message = format!("{}: Input should be 'object'", at.field("type").write());
            return Err(Box::new(invalid("schema-root", message)));
        }
    }
    for word in ["oneOf", "allOf", "anyOf"] {
        if schema.get(word).is_some() {
            let message = format!(
                "{}: input_schema does not support oneOf, allOf, or anyOf at the top level",
                at.write()
            );
            return Err(Box::new(invalid("schema-root", message)));
        }
    }
    if tool.get("strict") == Some(&Value::Bool(true)) {
        return closed(schema, &at.write());
    }
    Ok(())
}

/// Every object says that it has no other properties.
pub(super) fn closed(schema: &Value, at: &str) -> Checked {
    match schema {
        Value::Object(object) => {
            let is_object = text_of(schema, "type") == Some("object");
            let open = object.get("additionalProperties") != Some(&Value::Bool(false));
            if is_object && open {
                let message = format!(
                    "{at}: For 'object' type, 'additionalProperties' must be explicitly set to false"
                );
                return Err(Box::new(invalid("open-schema", message)));
            }
            let named = ["properties", "$defs", "definitions"];
            for (key, value) in object {
                if named.contains(&key.as_str()) {
                    let values = value.as_object().into_iter().flatten();
                    values
                        .into_iter()
                        .try_for_each(|(_, value)| closed(value, at))?;
                } else if matches!(key.as_str(), "items" | "anyOf" | "allOf" | "oneOf") {
                    closed(value, at)?;
                }
            }
            Ok(())
        }
        Value::Array(list) => list.iter().try_for_each(|value| closed(value, at)),
        _ => Ok(()),
    }
}
