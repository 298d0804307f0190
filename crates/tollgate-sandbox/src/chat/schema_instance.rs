//! Generates a minimal JSON value that is valid for a JSON schema.
//!
//! Supports types, enums, required members, bounds, formats, references and combinations, as schemas of tools and structured
//! outputs use them. Ignores `pattern`, `not`, `if` and `uniqueItems`: a value may violate those.

use serde_json::{Map, Number, Value, json};

/// The maximum number of values in one instance. For a schema that requires more, the instance is invalid.
const VALUES_MAX: usize = 4_096;
/// The maximum number of schema values that are copied: constants, long names, and what is merged of `allOf`, `anyOf` and `oneOf`. Otherwise the
/// instance of an array could contain thousands of copies of one long constant.
const COPIES_MAX: usize = 100_000;
/// The maximum number of characters of one string.
const TEXT_MAX: u64 = 4_096;
/// The maximum nesting depth. A schema that requires itself has no finite instance.
const DEPTH_MAX: usize = 24;

/// A value that is valid for `schema`; an empty object if every value is valid.
pub(super) fn minimal(schema: &Value) -> Value {
    let mut builder = Builder {
        root: schema,
        left: VALUES_MAX,
        copies: COPIES_MAX,
    };
    match builder.value(schema, 0) {
        Value::Null if accepts_everything(schema) => json!({}),
        value => value,
    }
}

/// Whether the schema has none of the keywords that [`Builder::value`] supports, so that every value is valid.
fn accepts_everything(schema: &Value) -> bool {
    const RESTRICTING: &[&str] = &["const", "enum", "$ref", "allOf", "anyOf", "oneOf"];
    let restricts =
        |schema: &Map<String, Value>| RESTRICTING.iter().any(|word| schema.contains_key(*word));
    type_of(schema.as_object()).is_none() && !schema.as_object().is_some_and(restricts)
}

struct Builder<'a> {
    /// The complete schema, to which references are relative.
    root: &'a Value,
    /// The number of values that may still be generated.
    left: usize,
    /// The number of schema values that may still be copied.
    copies: usize,
}

impl<'a> Builder<'a> {
    /// A value for `schema`; null if the schema has no type or a limit is reached.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let Value::Object(schema) = schema else {
            return Value::Null;
        };
        if self.left == 0 || depth > DEPTH_MAX {
            return Value::Null;
        }
        self.left -= 1;
        if let Some(only) = schema.get("const") {
            return self.copy(only);
        }
        if let Some(first) = schema.get("enum").and_then(|list| list.get(0)) {
            return self.copy(first);
        }
        if let Some(target) = self.referenced(schema) {
            return self.value(target, depth + 1);
        }
        if let Some(flat) = self.flattened(schema) {
            return self.value(&flat, depth + 1);
        }
        match type_of(Some(schema)) {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(schema, depth),
            Some("string") => text(schema).into(),
            Some("integer") => number(schema, true),
            Some("number") => number(schema, false),
            Some("boolean") => false.into(),
            _ => Value::Null,
        }
    }

    /// A copy of `value`; null if the limit of copies is reached.
    fn copy(&mut self, value: &Value) -> Value {
        self.copies -= weight_of([value].into_iter(), self.copies);
        match self.copies {
            0 => Value::Null,
            _ => value.clone(),
        }
    }

    /// `schema` merged with its `allOf` and with the first of its `anyOf` and of its `oneOf` that is not of type null (if all are, with the first).
    /// `None` if it has none of these keywords, or if the limit of copies is reached.
    fn flattened(&mut self, schema: &Map<String, Value>) -> Option<Value> {
        let is_null_type = |schema: &&Value| schema.get("type").is_some_and(|t| t == "null");
        let mut chosen: Vec<&Value> = list(schema, "allOf").collect();
        for word in ["anyOf", "oneOf"] {
            let not_null = list(schema, word).find(|one| !is_null_type(one));
            chosen.extend(not_null.or_else(|| list(schema, word).next()));
        }
        if chosen.is_empty() {
            return None;
        }
        let mut flat = Map::new();
        let beside = schema
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "allOf" | "anyOf" | "oneOf"));
        let parts = chosen.into_iter().filter_map(Value::as_object);
        let parts = parts.map(|part| {
            let target = self.referenced(part).and_then(Value::as_object);
            target.unwrap_or(part)
        });
        let members: Vec<_> = beside.chain(parts.flatten()).collect();
        for (name, value) in members {
            self.copies -= weight_of([value].into_iter(), self.copies);
            if self.copies == 0 {
                return None;
            }
            merge(&mut flat, name, value);
        }
        Some(flat.into())
    }

    /// The schema that `$ref` names. `None` if there is no `$ref`, or it does not lead to a value of this schema.
    fn referenced(&self, schema: &Map<String, Value>) -> Option<&'a Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let none = Map::new();
        let members = schema.get("properties").and_then(Value::as_object);
        let members = members.unwrap_or(&none);
        let others = schema.get("additionalProperties").unwrap_or(&Value::Null);
        let required: Vec<&str> = list(schema, "required").filter_map(Value::as_str).collect();
        let mut object = Map::new();
        // In the order of the schema, as models write them.
        for (name, member) in members
            .iter()
            .filter(|(name, _)| required.contains(&name.as_str()))
        {
            self.insert(&mut object, name, member, depth);
        }
        for name in required {
            if !object.contains_key(name) && self.left > 0 {
                self.insert(&mut object, name, others, depth);
            }
        }
        let min = non_negative(schema, "minProperties") as usize;
        for (name, member) in members {
            if object.len() >= min {
                break;
            }
            if !object.contains_key(name) {
                self.insert(&mut object, name, member, depth);
            }
        }
        let mut number = object.len();
        while object.len() < min && self.left > 0 {
            number += 1;
            let name = format!("member{number}");
            if !object.contains_key(&name) {
                self.left -= 1;
                object.insert(name, self.value(others, depth + 1));
            }
        }
        object.into()
    }

    /// Adds a member with a value for `schema`, unless its name exceeds the limit of copies.
    fn insert(
        &mut self,
        object: &mut Map<String, Value>,
        name: &str,
        schema: &Value,
        depth: usize,
    ) {
        let weight = name.len() / 64;
        if weight <= self.copies {
            self.copies -= weight;
            object.insert(name.to_owned(), self.value(schema, depth + 1));
        }
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let min = non_negative(schema, "minItems");
        let mut items = Vec::new();
        let first: Vec<&Value> = list(schema, "prefixItems").collect();
        let rest = schema.get("items").unwrap_or(&Value::Null);
        while (items.len() as u64) < min && self.left > 0 {
            let item = first.get(items.len()).copied().unwrap_or(rest);
            // An item without a schema counts too.
            self.left = self.left.saturating_sub(usize::from(!item.is_object()));
            items.push(self.value(item, depth + 1));
        }
        items.into()
    }
}

/// The number of values, nested ones included, counted up to `max`. Long strings and names count as several.
fn weight_of<'v>(values: impl Iterator<Item = &'v Value>, max: usize) -> usize {
    let mut sum = 0;
    for value in values {
        if sum >= max {
            return max;
        }
        sum += 1;
        let remaining = max.saturating_sub(sum);
        sum += match value {
            Value::String(text) => text.len() / 64,
            Value::Array(list) => weight_of(list.iter(), remaining),
            Value::Object(map) => {
                let names: usize = map.keys().map(|name| name.len() / 64).sum();
                names + weight_of(map.values(), remaining)
            }
            _ => 0,
        };
    }
    sum.min(max)
}

/// Adds a keyword: objects are merged, the lists of `required` are joined, any other value is replaced.
fn merge(flat: &mut Map<String, Value>, name: &str, value: &Value) {
    match (flat.get_mut(name), value) {
        (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
        (Some(Value::Array(known)), Value::Array(more)) if name == "required" => {
            known.extend(more.iter().cloned());
        }
        _ => {
            flat.insert(name.to_owned(), value.clone());
        }
    }
}

/// The type that a schema states (the first that is not null), or that its other keywords imply. `None` if they imply none.
fn type_of(schema: Option<&Map<String, Value>>) -> Option<&str> {
    let schema = schema?;
    match schema.get("type") {
        Some(Value::String(name)) => return Some(name),
        Some(Value::Array(names)) => {
            let mut names = names.iter().filter_map(Value::as_str);
            let first = names.clone().find(|name| *name != "null");
            return first.or_else(|| names.next());
        }
        _ => {}
    }
    const IMPLYING_KEYWORDS: &[(&str, &[&str])] = &[
        ("object", &["properties", "required", "minProperties"]),
        ("array", &["items", "prefixItems", "minItems"]),
        ("string", &["minLength", "maxLength", "pattern", "format"]),
        (
            "number",
            &[
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
            ],
        ),
    ];
    let has_any = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    let implied = IMPLYING_KEYWORDS
        .iter()
        .find(|(_, keywords)| has_any(keywords));
    implied.map(|(name, _)| *name)
}

/// A text of the schema's format, extended to `minLength` and truncated to `maxLength`, which may make its format invalid.
fn text(schema: &Map<String, Value>) -> String {
    let format = schema.get("format").and_then(Value::as_str);
    let mut text = match format.unwrap_or_default() {
        "date-time" => "2026-01-01T00:00:00Z",
        "date" => "2026-01-01",
        "time" => "00:00:00Z",
        "duration" => "P1D",
        "email" | "idn-email" => "a@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "iri" | "uri-reference" => "https://example.com/",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        _ => "text",
    }
    .to_owned();
    let min = non_negative(schema, "minLength").min(TEXT_MAX);
    while (text.len() as u64) < min {
        text.push('a');
    }
    if let Some(max) = schema.get("maxLength").and_then(Value::as_u64) {
        text.truncate(usize::try_from(max).unwrap_or(usize::MAX));
    }
    text
}

/// The number nearest to 0 within the bounds that is a multiple of `multipleOf`, or a whole number if `is_integer`.
fn number(schema: &Map<String, Value>, is_integer: bool) -> Value {
    let given = |name: &str| schema.get(name).and_then(Value::as_f64);
    let multiple = given("multipleOf").filter(|step| *step > 0.0);
    let step = multiple.unwrap_or(1.0);
    let open = (given("exclusiveMinimum"), given("exclusiveMaximum"));
    let low = given("minimum").into_iter().chain(open.0).reduce(f64::max);
    let high = given("maximum").into_iter().chain(open.1).reduce(f64::min);
    let on_grid = multiple.is_some() || is_integer;
    let is_open = |bound: f64, open: Option<f64>| open.is_some_and(|open| open == bound);
    let value = match (low, high) {
        (Some(low), high) if low > 0.0 || is_open(low, open.0) && low == 0.0 => {
            let next = if on_grid {
                (low / step).ceil() * step
            } else {
                low
            };
            match (next == low && is_open(low, open.0), high) {
                (false, _) => next,
                (true, Some(high)) if !on_grid => f64::midpoint(low, high),
                (true, _) => next + step,
            }
        }
        (low, Some(high)) if high < 0.0 || is_open(high, open.1) && high == 0.0 => {
            let next = if on_grid {
                (high / step).floor() * step
            } else {
                high
            };
            match (next == high && is_open(high, open.1), low) {
                (false, _) => next,
                (true, Some(low)) if !on_grid => f64::midpoint(low, high),
                (true, _) => next - step,
            }
        }
        _ => 0.0,
    };
    // Integers are written without a fraction. Larger floats have none anyway.
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return (value as i64).into();
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn list<'a>(schema: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    let list = schema.get(name).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn non_negative(schema: &Map<String, Value>, name: &str) -> u64 {
    schema.get(name).and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_valid_and_small() {
        let rows = include_str!("../../tests/schema_instances.jsonl");
        for row in rows.lines() {
            let row: Value = serde_json::from_str(row).expect("a schema and its instance");
            assert_eq!(minimal(&row[0]), row[1], "{}", row[0]);
        }
    }

    #[test]
    fn instances_of_recursive_and_huge_schemas_are_bounded() {
        let huge = 4_000_000_000_u64;
        let long = "a".repeat(100_000);
        let both = json!({"type": "object", "properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}, "required": ["l", "r"]});
        for schema in [
            json!({"type": "object", "properties": {"me": {"$ref": "#"}}, "required": ["me"]}),
            json!({"type": "array", "minItems": huge, "items":
                {"type": "array", "minItems": huge, "items": {"type": "string", "minLength": 9}}}),
            json!({"type": "array", "minItems": huge}),
            json!({"type": "string", "minLength": huge}),
            json!({"type": "object", "minProperties": huge}),
            both,
        ] {
            assert!(minimal(&schema).to_string().len() < 200_000, "{schema}");
        }
        for item in [
            json!({"const": long}),
            json!({"enum": [{long.clone(): 1}]}),
            json!({"required": [long]}),
        ] {
            let many = json!({"type": "array", "minItems": huge, "items": item});
            let length = minimal(&many).to_string().len();
            assert!((100_000..7_000_000).contains(&length), "{length}");
        }
    }
}
