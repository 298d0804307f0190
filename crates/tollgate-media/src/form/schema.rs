//! The JSON Schema (2020-12, as OpenAPI 3.1 takes it) of a form.

use serde_json::{Map, Value, json};

use super::Form;
use super::field::{Field, Kind, Preset};
use crate::input::{InputRules, names};

/// The schema of a request body.
pub(crate) fn body_schema(form: &Form) -> Value {
    let mut properties = Map::new();
    let model = json!({
        "type": "string",
        "enum": form.models,
        "description": "The model id. Configuration may add further ids.",
    });
    properties.insert(form.model_field.to_owned(), model);
    let mut required = vec![form.model_field];
    for field in form.every_field() {
        let default = default(form, field);
        properties.insert(field.name.to_owned(), described(form, field, default));
        if field.required {
            required.push(field.name);
        }
    }
    json!({
        "type": "object",
        "title": form.title,
        "description": form.about,
        "required": required,
        "properties": properties,
    })
}

/// A field's schema with its description and default.
fn described(form: &Form, field: &Field, default: Option<Value>) -> Value {
    let mut schema = kind(form, field);
    schema["description"] = description(field).into();
    if let Some(default) = default {
        schema["default"] = default;
    }
    schema
}

fn description(field: &Field) -> String {
    let nested = field
        .in_metadata
        .then(|| format!("metadata.{}", field.name));
    let names = field.aliases.iter().map(|name| (*name).to_owned());
    let others: Vec<String> = names.chain(nested).collect();
    if others.is_empty() {
        return field.doc.to_owned();
    }
    format!("{} Also read as `{}`.", field.doc, others.join("`, `"))
}

/// What the absence of a member of an object means, where it is one value. Members that hold what other fields hold
/// too leave it to those.
pub(super) fn member_default(member: &Field) -> Option<Value> {
    member.default.map(Preset::value)
}

/// What the absence of a field means, where it is one value.
pub(super) fn default(form: &Form, field: &Field) -> Option<Value> {
    let (tiers, tier) = form.sizes.tiers();
    match field.kind {
        Kind::Size => form.sizes.default().map(Value::from),
        Kind::Tier => tiers.get(tier).map(|name| (*name).into()),
        Kind::Length { lengths, text } => Some(if text {
            lengths.default().to_string().into()
        } else {
            lengths.default().into()
        }),
        _ => member_default(field),
    }
}

fn kind(form: &Form, field: &Field) -> Value {
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
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Length { lengths, text } => lengths.schema(text),
        Kind::Size => form.sizes.schema(),
        Kind::Ratio => json!({ "type": "string", "enum": form.sizes.ratios() }),
        Kind::Tier => json!({ "type": "string", "enum": form.sizes.tiers().0 }),
        Kind::References => references(&form.inputs, field.required),
        Kind::Mask => image(&form.inputs),
        Kind::Callback => json!({ "type": "string", "format": "uri", "maxLength": 2048 }),
        Kind::Picture => picture(&form.inputs),
        Kind::Pictures => {
            json!({ "type": "array", "items": picture(&form.inputs), "maxItems": form.inputs.max_count })
        }
        Kind::Object(members) => object(form, members),
        Kind::Special(special) => (special.schema)(),
    }
}

fn object(form: &Form, members: &[Field]) -> Value {
    let required: Vec<&str> = members
        .iter()
        .filter(|member| member.required)
        .map(|member| member.name)
        .collect();
    let properties: Map<String, Value> = members
        .iter()
        .map(|member| {
            let default = member_default(member);
            (member.name.to_owned(), described(form, member, default))
        })
        .collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
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

fn picture(rules: &InputRules) -> Value {
    let types = names(rules.data_uris);
    let text = format!("An http or https URL, a data URI or plain base64 of {types}.");
    json!({ "anyOf": [
        { "type": "string", "description": text },
        { "type": "object", "properties": {
            "url": { "type": "string" },
            "image_url": { "description": "A URL, or an object with `url`." },
        } },
    ] })
}
