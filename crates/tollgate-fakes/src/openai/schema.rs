//! Schemas as OpenAI takes them: objects at the root, and the subset of strict mode.

use serde_json::Value;

use crate::openai::invalid;
use crate::rejection::Checked;

/// Keywords that strict mode does not take.
const NOT_STRICT: &[&str] = &[
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
];

/// Checks the schema of a function or of an answer, which `of` names.
pub(super) fn check(schema: &Value, of: &str, param: &str, strict: bool) -> Checked {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("None");
    if kind != "object" {
        let message = format!(
            "Invalid schema for {of}: schema must be a JSON Schema of 'type: \"object\"', got \
             'type: \"{kind}\"'."
        );
        let rejection = invalid("schema-root", message).code("invalid_function_parameters");
        return Err(Box::new(rejection.param(param)));
    }
    if !strict {
        return Ok(());
    }
    if schema.get("anyOf").is_some() {
        return fail(
            of,
            param,
            &[],
            "schema must not have 'anyOf' at the top level",
        );
    }
    strictly(schema, of, param, &mut Vec::new())
}

fn strictly<'a>(schema: &'a Value, of: &str, param: &str, at: &mut Vec<&'a str>) -> Checked {
    let Some(object) = schema.as_object() else {
        return fail(of, param, at, "schema must be an object");
    };
    for word in NOT_STRICT {
        if object.contains_key(*word) {
            return fail(of, param, at, &format!("'{word}' is not permitted"));
        }
    }
    if object.contains_key("properties") || is(schema, "object") {
        own_object(schema, of, param, at)?;
    }
    if is(schema, "array") && !object.contains_key("items") {
        return fail(of, param, at, "array schema missing items");
    }
    for key in ["properties", "$defs", "definitions"] {
        for (name, value) in object
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            at.extend([key, name]);
            strictly(value, of, param, at)?;
            at.truncate(at.len() - 2);
        }
    }
    if let Some(items) = object.get("items") {
        at.push("items");
        strictly(items, of, param, at)?;
        at.pop();
    }
    for value in object
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        at.push("anyOf");
        strictly(value, of, param, at)?;
        at.pop();
    }
    Ok(())
}

fn is(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => false,
    }
}

/// Every object is closed, and all its properties are required.
fn own_object(schema: &Value, of: &str, param: &str, at: &[&str]) -> Checked {
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        let what = "'additionalProperties' is required to be supplied and to be false";
        return fail(of, param, at, what);
    }
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in properties.into_iter().flatten().map(|(name, _)| name) {
        let listed = required.is_some_and(|list| list.iter().any(|known| known == name));
        if !listed {
            let what = format!(
                "'required' is required to be supplied and to be an array including every key in \
                 properties. Missing '{name}'"
            );
            return fail(of, param, at, &what);
        }
    }
    Ok(())
}

fn fail(of: &str, param: &str, at: &[&str], what: &str) -> Checked {
    let context = at.join("', '");
    let message = format!("Invalid schema for {of}: In context=('{context}'), {what}.");
    let rejection = invalid("strict-schema", message).code("invalid_json_schema");
    Err(Box::new(rejection.param(param)))
}
