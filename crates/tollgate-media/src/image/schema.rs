//! The JSON Schema (2020-12, as OpenAPI 3.1 takes it) of a family's requests.

use serde_json::{Map, Value, json};

use super::family::Family;
use super::field::{Field, Kind};
use super::input::{InputRules, names};
use super::size::{FreeSizes, PixelsAsked, RatioSizes, Sizes};

/// The schema of a request body for `family`.
pub fn schema(family: &Family) -> Value {
    let mut properties = Map::new();
    let model = json!({
        "type": "string",
        "enum": family.models,
        "description": "The model id. Configuration may add further ids.",
    });
    properties.insert("model".to_owned(), model);
    let mut required = vec!["model"];
    for field in family.fields {
        properties.insert(field.name.to_owned(), described(family, field));
        if field.required {
            required.push(field.name);
        }
    }
    json!({
        "type": "object",
        "title": family.title,
        "description": family.about,
        "required": required,
        "properties": properties,
    })
}

/// A field's schema with its description and default.
fn described(family: &Family, field: &Field) -> Value {
    let mut schema = kind(family, field);
    schema["description"] = description(field).into();
    if let Some(default) = default(family, field) {
        schema["default"] = default;
    }
    schema
}

fn description(field: &Field) -> String {
    if field.aliases.is_empty() {
        return field.doc.to_owned();
    }
    format!(
        "{} Also read as `{}`.",
        field.doc,
        field.aliases.join("`, `")
    )
}

/// What the absence of a field means, where it is one value.
pub(super) fn default(family: &Family, field: &Field) -> Option<Value> {
    let (tiers, tier) = family.sizes.tiers();
    match field.kind {
        Kind::Size => family.sizes.default().map(Value::from),
        Kind::Tier => tiers.get(tier).map(|name| (*name).into()),
        _ => field.default.map(super::field::Preset::value),
    }
}

fn kind(family: &Family, field: &Field) -> Value {
    match field.kind {
        Kind::Text { max_chars } => {
            let mut schema = json!({ "type": "string" });
            if let Some(max) = max_chars {
                schema["maxLength"] = max.into();
            }
            if field.required {
                schema["minLength"] = 1.into();
            }
            schema
        }
        Kind::Choice(values) => json!({ "type": "string", "enum": values }),
        Kind::Int { clamp: true, .. } => json!({ "type": "integer" }),
        Kind::Int { min, max, .. } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Size => size(&family.sizes),
        Kind::Tier => json!({ "type": "string", "enum": family.sizes.tiers().0 }),
        Kind::References => references(&family.inputs, field.required),
        Kind::Mask => image(&family.inputs),
        Kind::Object(members) => {
            let members: Map<String, Value> = members
                .iter()
                .map(|member| (member.name.to_owned(), described(family, member)))
                .collect();
            json!({ "type": "object", "properties": members })
        }
        Kind::Special(special) => (special.schema)(),
    }
}

fn references(rules: &InputRules, required: bool) -> Value {
    let mut schema = json!({ "type": "array", "items": image(rules), "maxItems": rules.max_count });
    if required {
        schema["minItems"] = 1.into();
    }
    schema
}

fn image(rules: &InputRules) -> Value {
    let form = if rules.data_uris.is_empty() {
        "An http or https URL.".to_owned()
    } else {
        let types = names(rules.data_uris);
        format!("An http or https URL, or a base64 data URI of {types}.")
    };
    json!({ "type": "string", "format": "uri", "description": form })
}

fn size(sizes: &Sizes) -> Value {
    match sizes {
        Sizes::Ratios(sizes) => ratio_size(sizes),
        Sizes::Listed(sizes) => {
            let all: Vec<String> = sizes.all().map(|size| size.to_string()).collect();
            json!({ "type": "string", "enum": all })
        }
        Sizes::Free(sizes) => free_size(sizes),
    }
}

fn ratio_size(sizes: &RatioSizes) -> Value {
    let mut values: Vec<String> = sizes.ratios().map(str::to_owned).collect();
    if sizes.pixels != PixelsAsked::No {
        let also = sizes.also.iter().map(|(size, _)| *size);
        let pixels = sizes.cells().map(|(_, _, size)| size).chain(also);
        values.extend(pixels.map(|size| size.to_string()));
    }
    if sizes.fallback.is_some() {
        return json!({ "type": "string", "examples": values });
    }
    json!({ "type": "string", "enum": values })
}

fn free_size(sizes: &FreeSizes) -> Value {
    let tiers = sizes.tiers.iter().map(|(name, _)| *name);
    let ratios = sizes.following.ratios.iter().map(|(ratio, _)| *ratio);
    let names: Vec<&str> = tiers.chain(ratios).collect();
    json!({
        "type": "string",
        "anyOf": [{ "enum": names }, { "pattern": "^[1-9][0-9]*[x*][1-9][0-9]*$" }],
    })
}
