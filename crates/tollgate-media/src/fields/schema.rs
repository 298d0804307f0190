//! The JSON Schema (2020-12, for OpenAPI 3.1) of request bodies.

use serde_json::{Map, Value, json};

use super::field::{DefaultValue, Field, FieldKind};
use super::spec::RequestSpec;
use crate::input::limits::{InputLimits, format_names};

/// The schema of a request body.
pub(crate) fn body_schema(spec: &RequestSpec) -> Value {
    let mut properties = Map::new();
    let model = json!({
        "type": "string",
        "enum": spec.models,
        "description": "The model id. Configuration may add further ids.",
    });
    properties.insert(spec.model_field.to_owned(), model);
    let mut required = vec![spec.model_field];
    for field in spec.every_field() {
        let default = default(spec, field);
        properties.insert(field.name.to_owned(), field_schema(spec, field, default));
        if field.required {
            required.push(field.name);
        }
    }
    json!({
        "type": "object",
        "title": spec.title,
        "description": spec.about,
        "required": required,
        "properties": properties,
    })
}

/// A field's schema with its description and default.
fn field_schema(spec: &RequestSpec, field: &Field, default: Option<Value>) -> Value {
    let mut schema = value_schema(spec, field);
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
    format!("{} Also accepted as `{}`.", field.doc, others.join("`, `"))
}

/// The default of a member of an object. `None` if it has no default, or a top-level field with the same meaning has it.
pub(super) fn member_default(member: &Field) -> Option<Value> {
    member.default.map(DefaultValue::value)
}

/// The default of a field. `None` if it has no default, or the default depends on the request.
pub(super) fn default(spec: &RequestSpec, field: &Field) -> Option<Value> {
    let (tiers, tier) = spec.sizes.tiers();
    match field.kind {
        FieldKind::Size => spec.sizes.default().map(Value::from),
        FieldKind::Tier => tiers.get(tier).map(|name| (*name).into()),
        FieldKind::Duration { durations, text } => Some(if text {
            durations.default().to_string().into()
        } else {
            durations.default().into()
        }),
        _ => member_default(field),
    }
}

fn value_schema(spec: &RequestSpec, field: &Field) -> Value {
    match field.kind {
        FieldKind::Text { max_chars } => {
            let mut schema = json!({ "type": "string" });
            if let Some(max) = max_chars {
                schema["maxLength"] = max.into();
            }
            if field.required {
                schema["minLength"] = 1.into();
            }
            schema
        }
        FieldKind::Choice(values) => json!({ "type": "string", "enum": values }),
        FieldKind::Int { clamp: true, .. } => json!({ "type": "integer" }),
        FieldKind::Int { min, max, .. } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        FieldKind::Number { min, max } => {
            json!({ "type": "number", "minimum": min, "maximum": max })
        }
        FieldKind::Flag => json!({ "type": "boolean" }),
        FieldKind::Duration { durations, text } => durations.schema(text),
        FieldKind::Size => spec.sizes.schema(),
        FieldKind::Ratio => json!({ "type": "string", "enum": spec.sizes.ratios() }),
        FieldKind::Tier => json!({ "type": "string", "enum": spec.sizes.tiers().0 }),
        FieldKind::ImageUrls => image_urls(&spec.input_limits, field.required),
        FieldKind::MaskUrl => image_url(&spec.input_limits),
        FieldKind::WebhookUrl => json!({ "type": "string", "format": "uri", "maxLength": 2048 }),
        FieldKind::Image => any_image(&spec.input_limits),
        FieldKind::Images => {
            json!({ "type": "array", "items": any_image(&spec.input_limits), "maxItems": spec.input_limits.max_count })
        }
        FieldKind::Object(members) => object_schema(spec, members),
        FieldKind::Custom(custom) => (custom.schema)(),
    }
}

fn object_schema(spec: &RequestSpec, members: &[Field]) -> Value {
    let required: Vec<&str> = members
        .iter()
        .filter(|member| member.required)
        .map(|member| member.name)
        .collect();
    let properties: Map<String, Value> = members
        .iter()
        .map(|member| {
            let default = member_default(member);
            (member.name.to_owned(), field_schema(spec, member, default))
        })
        .collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

fn image_urls(limits: &InputLimits, required: bool) -> Value {
    let mut schema =
        json!({ "type": "array", "items": image_url(limits), "maxItems": limits.max_count });
    if required {
        schema["minItems"] = 1.into();
    }
    schema
}

fn image_url(limits: &InputLimits) -> Value {
    let description = if limits.data_uris.is_empty() {
        "An http or https URL.".to_owned()
    } else {
        let types = format_names(limits.data_uris);
        format!("An http or https URL, or a base64 data URI of {types}.")
    };
    let url = json!({ "type": "string", "format": "uri", "description": description });
    json!({ "anyOf": [
        url,
        { "type": "object", "required": ["url"], "properties": { "url": { "type": "string" } } },
    ] })
}

fn any_image(limits: &InputLimits) -> Value {
    let types = format_names(limits.data_uris);
    let text = format!("An http or https URL, a data URI or plain base64 of {types}.");
    json!({ "anyOf": [
        { "type": "string", "description": text },
        { "type": "object", "properties": {
            "url": { "type": "string" },
            "image_url": { "description": "A URL, or an object with `url`." },
        } },
    ] })
}
