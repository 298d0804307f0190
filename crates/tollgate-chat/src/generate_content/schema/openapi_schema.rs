//! Converts JSON Schema into the OpenAPI dialect: no references, one type per node, only strings in
//! `enum`.

use serde_json::{Map, Value, json};

use super::json_schema::narrow_to_supported;

/// Converts `schema` into the OpenAPI dialect. References are replaced by their target; a recursive
/// one becomes an object without properties.
pub(crate) fn to_openapi_schema(schema: &Value) -> Value {
    // Reduced first: afterwards there is no `const`, `allOf` or exclusive bound, and all definitions are in `$defs`.
    let (root, _) = narrow_to_supported(schema);
    let mut writer = OpenApiWriter {
        root: &root,
        references: Vec::new(),
        nodes: 0,
    };
    writer.write_node(&root, 0)
}

struct OpenApiWriter<'a> {
    root: &'a Value,
    /// The references that are being replaced, outermost first.
    references: Vec<&'a str>,
    nodes: usize,
}

/// References can make a schema grow exponentially; real schemas stay far below these limits.
const MAX_NODES: usize = 4096;
const MAX_DEPTH: usize = 64;

impl<'a> OpenApiWriter<'a> {
    fn write_node(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.nodes += 1;
        let Value::Object(members) = schema else {
            return json!({});
        };
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            return json!({"type": "OBJECT"});
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return self.resolve_reference(reference, depth);
        }
        let mut out = Map::new();
        let nullable = self.write_type(members, &mut out, depth);
        for (name, value) in members {
            match name.as_str() {
                "description" | "minItems" | "maxItems" | "minimum" | "maximum"
                | "propertyOrdering" => {
                    out.insert(name.clone(), value.clone());
                }
                "format" if is_known_format(value, &out) => {
                    out.insert(name.clone(), value.clone());
                }
                "items" => {
                    out.insert(name.clone(), self.write_node(value, depth + 1));
                }
                _ => {}
            }
        }
        self.write_properties(members, &mut out, depth);
        let texts = members.get("enum").and_then(Value::as_array);
        let are_texts =
            |texts: &&Vec<Value>| !texts.is_empty() && texts.iter().all(Value::is_string);
        if let Some(texts) = texts.filter(are_texts) {
            out.insert("type".to_owned(), json!("STRING"));
            out.insert("enum".to_owned(), json!(texts));
        }
        if nullable {
            out.insert("nullable".to_owned(), json!(true));
        }
        if out.get("type").is_some_and(|t| t == "ARRAY") && !out.contains_key("items") {
            out.insert("items".to_owned(), json!({"type": "STRING"}));
        }
        Value::Object(out)
    }

    fn resolve_reference(&mut self, reference: &'a str, depth: usize) -> Value {
        let target = reference
            .strip_prefix('#')
            .and_then(|path| self.root.pointer(path));
        match target {
            Some(target) if !self.references.contains(&reference) => {
                self.references.push(reference);
                let node = self.write_node(target, depth + 1);
                self.references.pop();
                node
            }
            _ => json!({"type": "OBJECT"}),
        }
    }

    /// Writes `type`, or `anyOf` if there are several. Returns whether `null` is allowed.
    fn write_type(
        &mut self,
        members: &'a Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> bool {
        let types: Vec<&str> = match members.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => inferred_type(members).into_iter().collect(),
        };
        let mut nullable = types.len() > 1 && types.contains(&"null");
        let named: Vec<String> = types
            .iter()
            .filter(|name| !(nullable && **name == "null"))
            .map(|name| name.to_ascii_uppercase())
            .collect();
        let listed = ["anyOf", "oneOf"]
            .into_iter()
            .find_map(|name| members.get(name)?.as_array());
        let mut variants: Vec<Value> = Vec::new();
        for variant in listed.into_iter().flatten() {
            match variant.get("type").is_some_and(|t| t == "null") {
                true => nullable = true,
                false => variants.push(self.write_node(variant, depth + 1)),
            }
        }
        match (named.as_slice(), variants.len()) {
            ([one], 0) => {
                out.insert("type".to_owned(), json!(one));
            }
            ([_, _, ..], 0) => {
                let several: Vec<Value> = named.iter().map(|one| json!({"type": one})).collect();
                out.insert("anyOf".to_owned(), Value::Array(several));
            }
            (_, 0) => {}
            // A single variant replaces the node itself.
            (_, 1) => {
                if let Some(Value::Object(only)) = variants.pop() {
                    out.extend(only);
                }
            }
            _ => {
                out.insert("anyOf".to_owned(), Value::Array(variants));
            }
        }
        nullable
    }

    fn write_properties(
        &mut self,
        members: &'a Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) {
        let Some(Value::Object(properties)) = members.get("properties") else {
            return;
        };
        if properties.is_empty() {
            return;
        }
        let mut written = Map::new();
        for (name, property) in properties {
            written.insert(name.clone(), self.write_node(property, depth + 1));
        }
        let required = members.get("required").and_then(Value::as_array);
        let known = |name: &&Value| {
            name.as_str()
                .is_some_and(|name| properties.contains_key(name))
        };
        let required: Vec<&Value> = required.into_iter().flatten().filter(known).collect();
        out.insert("properties".to_owned(), Value::Object(written));
        if !required.is_empty() {
            out.insert("required".to_owned(), json!(required));
        }
    }
}

fn inferred_type(members: &Map<String, Value>) -> Option<&'static str> {
    [
        ("properties", "object"),
        ("items", "array"),
        ("prefixItems", "array"),
    ]
    .into_iter()
    .find(|(name, _)| members.contains_key(*name))
    .map(|(_, kind)| kind)
}

fn is_known_format(format: &Value, written: &Map<String, Value>) -> bool {
    let known: &[&str] = match written.get("type").and_then(Value::as_str) {
        Some("STRING") => &["enum", "date-time"],
        Some("INTEGER") => &["int32", "int64"],
        Some("NUMBER") => &["float", "double"],
        _ => &[],
    };
    format
        .as_str()
        .is_some_and(|format| known.contains(&format))
}

/// Whether a schema uses only keywords of the OpenAPI dialect.
#[cfg(test)]
pub(crate) fn is_openapi_schema(schema: &Value) -> bool {
    const KNOWN: [&str; 13] = [
        "type",
        "format",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "propertyOrdering",
        "required",
        "minimum",
        "maximum",
    ];
    let Value::Object(members) = schema else {
        return false;
    };
    let inner =
        super::json_schema::each_member(members.get("properties").unwrap_or(&Value::Null), |p| {
            json!(is_openapi_schema(p))
        });
    members
        .keys()
        .all(|name| KNOWN.contains(&name.as_str()) || name == "anyOf")
        && members.get("type").is_none_or(Value::is_string)
        && members.get("items").is_none_or(is_openapi_schema)
        && members
            .get("anyOf")
            .and_then(Value::as_array)
            .is_none_or(|list| list.iter().all(is_openapi_schema))
        && inner
            .as_object()
            .is_some_and(|inner| inner.values().all(|is| is == &json!(true)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn type_lists_become_nullable_or_any_of() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": ["string", "null"], "format": "email"},
            "b": {"anyOf": [{"type": "integer", "format": "int32"}, {"type": "null"}]},
            "c": {"type": ["string", "integer"]},
            "d": {"type": "integer", "exclusiveMinimum": 0},
            "e": {"const": "x"},
            "f": {"enum": [1, 2], "type": "integer"},
            "g": {"$ref": "#/$defs/node"},
            "h": {"oneOf": [{"type": "string"}, {"type": "boolean"}]},
        }, "required": ["a", "zzz"], "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}});
        let expected = json!({"type": "OBJECT", "properties": {
            "a": {"type": "STRING", "nullable": true},
            "b": {"type": "INTEGER", "format": "int32", "nullable": true},
            "c": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
            "d": {"type": "INTEGER", "minimum": 1},
            "e": {"type": "STRING", "enum": ["x"]},
            "f": {"type": "INTEGER"},
            "g": {"type": "OBJECT", "properties": {"next": {"type": "OBJECT"}}},
            "h": {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}]},
        }, "required": ["a"]});
        assert_eq!(to_openapi_schema(&schema), expected);
    }

    #[test]
    fn nested_references_do_not_grow_the_schema_without_bound() {
        let mut defs = Map::new();
        for n in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            let node = json!({"type": "object", "properties": {"a": next, "b": next, "c": next}});
            defs.insert(format!("d{n}"), node);
        }
        let schema = json!({"$ref": "#/$defs/d0", "$defs": defs});
        assert!(to_openapi_schema(&schema).to_string().len() < 1_000_000);
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let word = prop::sample::select(vec![
            "type",
            "title",
            "properties",
            "items",
            "anyOf",
            "oneOf",
            "allOf",
            "$ref",
            "$defs",
            "enum",
            "const",
            "not",
            "required",
            "exclusiveMinimum",
            "format",
            "nullable",
            "x",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            prop::sample::select(vec![
                "string",
                "object",
                "null",
                "array",
                "#/$defs/x",
                "email"
            ])
            .prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((word.clone(), inner), 0..5).prop_map(|members| {
                    let members = members
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value));
                    Value::Object(members.collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_schema_is_written_with_known_keywords_only(schema in any_schema()) {
            let openapi = to_openapi_schema(&schema);
            prop_assert!(is_openapi_schema(&openapi), "{openapi}");
            super::super::json_schema::to_json_schema(&schema);
            let (narrowed, _) = narrow_to_supported(&schema);
            prop_assert_eq!(narrow_to_supported(&narrowed), (narrowed.clone(), false));
        }
    }
}
