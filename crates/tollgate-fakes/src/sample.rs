//! Generates a small value that a JSON Schema allows, in either dialect: the arguments and structured output of the fake models.

use serde_json::{Map, Value, json};

/// The maximum depth to which a schema is followed; at that depth a recursion ends with the smallest value.
const DEEPEST: usize = 8;

/// A value for `schema`. `turn` makes the values of several calls differ.
pub(crate) fn sample(schema: &Value, turn: usize) -> Value {
    Sampler { root: schema, turn }.value(schema, "value", 0)
}

struct Sampler<'a> {
    root: &'a Value,
    turn: usize,
}

impl Sampler<'_> {
    fn value(&self, schema: &Value, name: &str, depth: usize) -> Value {
        if let Some(target) = self.target(schema) {
            return if depth < DEEPEST {
                self.value(&target, name, depth + 1)
            } else {
                Value::Null
            };
        }
        if let Some(fixed) = schema.get("const") {
            return fixed.clone();
        }
        if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
            let choice = choices.get(self.turn % choices.len().max(1));
            return choice.cloned().unwrap_or(Value::Null);
        }
        for key in ["anyOf", "oneOf", "any_of"] {
            let first = schema.get(key).and_then(|list| list.get(0));
            if let Some(first) = first {
                return self.value(first, name, depth + 1);
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return self.value(&merged(parts), name, depth + 1);
        }
        match kind(schema).as_str() {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, name, depth),
            "integer" => json!(self.number(schema).round() as i64),
            "number" => json!(self.number(schema) + 0.5),
            "boolean" => json!(self.turn.is_multiple_of(2)),
            "null" => Value::Null,
            _ => Value::String(self.string(schema, name)),
        }
    }

    /// The schema that a `$ref` within this document refers to.
    fn target(&self, schema: &Value) -> Option<Value> {
        let path = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(path).cloned()
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        let needs = |name: &str| required.is_some_and(|list| list.iter().any(|n| n == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if needs(name) || depth < 3 {
                object.insert(name.clone(), self.value(property, name, depth + 1));
            }
        }
        Value::Object(object)
    }

    fn array(&self, schema: &Value, name: &str, depth: usize) -> Value {
        let nothing = json!({});
        let items = schema.get("items").unwrap_or(&nothing);
        let min = integer(schema, &["minItems", "min_items"]).unwrap_or(1);
        let max = if depth < DEEPEST { min.max(1) } else { min };
        let count = 0..max.min(100);
        Value::Array(count.map(|_| self.value(items, name, depth + 1)).collect())
    }

    fn number(&self, schema: &Value) -> f64 {
        let get = |key: &str| schema.get(key).and_then(Value::as_f64);
        let above = get("exclusiveMinimum").map(|n| n + 1.0);
        let low = get("minimum").or(above);
        let high = get("maximum").or_else(|| get("exclusiveMaximum").map(|n| n - 1.0));
        let preferred = 7.0 + self.turn as f64;
        let preferred = low.map_or(preferred, |low| preferred.max(low));
        high.map_or(preferred, |high| preferred.min(high))
    }

    /// A string with a quote and a letter outside ASCII, unless the format requires another.
    fn string(&self, schema: &Value, name: &str) -> String {
        let format = schema.get("format").and_then(Value::as_str);
        let text = match format.unwrap_or_default() {
            "date-time" => "2026-01-02T03:04:05Z".to_owned(),
            "date" => "2026-01-02".to_owned(),
            "time" => "03:04:05Z".to_owned(),
            "email" => "someone@example.org".to_owned(),
            "uri" => "https://example.org/".to_owned(),
            "uuid" => "00000000-0000-4000-8000-000000000000".to_owned(),
            _ => format!("{name} \"é\" {}", self.turn + 1),
        };
        let min = integer(schema, &["minLength", "min_length"]).unwrap_or(0);
        let max = integer(schema, &["maxLength", "max_length"]).unwrap_or(usize::MAX);
        let missing = min.saturating_sub(text.chars().count());
        let text = text + &"x".repeat(missing.min(10_000));
        text.chars().take(max).collect()
    }
}

fn integer(schema: &Value, keys: &[&str]) -> Option<usize> {
    let found = keys.iter().find_map(|key| schema.get(*key))?;
    let written = found.as_str().and_then(|text| text.parse().ok());
    found.as_u64().or(written).map(|n| n as usize)
}

/// The type in lower case; if there are several, the first that is not null.
fn kind(schema: &Value) -> String {
    let name = match schema.get("type") {
        Some(Value::String(name)) => name.as_str(),
        Some(Value::Array(names)) => {
            let mut names = names.iter().filter_map(Value::as_str);
            names.find(|name| *name != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    };
    name.to_ascii_lowercase()
}

/// Merges the parts of an `allOf` into one schema.
fn merged(parts: &[Value]) -> Value {
    let mut all = Map::new();
    for (key, value) in parts.iter().filter_map(Value::as_object).flatten() {
        match (all.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
            (Some(Value::Array(known)), Value::Array(more)) => known.extend(more.clone()),
            _ => {
                all.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(all)
}
