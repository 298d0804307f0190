//! Tests that the schemas and docs pages agree with the declarations.

use serde_json::{Value, json};
use tollgate_media::fields::{Field, FieldKind};
use tollgate_media::image::FAMILIES;
use tollgate_media::{AnyFamily, RequestLayout};

use crate::{CATALOGUE, cases, parse, submit};

/// Every request layout of every family, with its fields.
fn layouts() -> Vec<(AnyFamily, RequestLayout, &'static [Field])> {
    let with_layouts = |family: AnyFamily| {
        let endpoints = family.endpoint().aliases().iter().copied();
        let endpoints = std::iter::once(family.endpoint()).chain(endpoints);
        endpoints.map(move |endpoint| {
            let layout = endpoint.request_layout();
            (family, layout, family.fields(layout))
        })
    };
    AnyFamily::all().flat_map(with_layouts).collect()
}

#[test]
fn schemas_have_every_field_of_every_layout() {
    for (family, layout, fields) in layouts() {
        let schema = family.schema(layout);
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(
            properties[layout.model_field()]["enum"],
            json!(family.models())
        );
        assert_eq!(properties["callback_url"]["maxLength"], 2048);
        for field in fields {
            let property = &properties[field.name];
            assert!(
                property["description"].is_string(),
                "{family:?} {}",
                field.name
            );
            let required = schema["required"].as_array().unwrap();
            assert_eq!(required.contains(&field.name.into()), field.required);
            if let FieldKind::Object(members) = field.kind {
                let described = property["properties"].as_object().unwrap();
                assert_eq!(described.len(), members.len());
                let needs_member = members.iter().any(|member| member.required);
                assert!(field.required || !needs_member, "{family:?} {}", field.name);
            }
        }
        // Every schema also has the model field and `callback_url`.
        assert_eq!(properties.len(), fields.len() + 2);
    }
}

#[test]
fn every_listed_value_is_valid() {
    for family in FAMILIES {
        let schema = AnyFamily::Image(family).schema(RequestLayout::Standard);
        for field in family.fields {
            let property = &schema["properties"][field.name];
            let (default, values) = (property.get("default"), property["enum"].as_array());
            if let (Some(default), Some(values)) = (default, values) {
                assert!(values.contains(default), "{} {}", family.name, field.name);
            }
            if !matches!(
                field.kind,
                FieldKind::Choice(_) | FieldKind::Size | FieldKind::Tier
            ) {
                continue;
            }
            let examples = property["examples"].as_array();
            let any_of = property["anyOf"][0]["enum"].as_array();
            for value in values.or(examples).or(any_of).unwrap() {
                let mut body = json!({ field.name: value });
                let needs_image = field.name == "size" && value == "auto";
                if needs_image || family.name == "grok-imagine-edit" {
                    body["image_urls"] = json!(["https://a/b"]);
                }
                submit(family.models[0], &body);
            }
        }
    }
}

/// `cases/schema_members.jsonl`: a family, a layout of its requests, a JSON pointer into the properties, and the expected value.
#[test]
fn schemas_state_types_limits_defaults_and_aliases() {
    type Row = (String, String, String, Value);
    for line in cases::read_file("schema_members.jsonl").lines() {
        let (family, layout, pointer, expected): Row = serde_json::from_str(line).unwrap();
        let layout = match layout.as_str() {
            "standard" => RequestLayout::Standard,
            "native" => RequestLayout::NativeSpeech,
            _ => RequestLayout::MultimodalSpeech,
        };
        let properties = AnyFamily::by_name(&family).unwrap().schema(layout)["properties"].take();
        let found = properties.pointer(&pointer).unwrap_or(&Value::Null);
        assert_eq!(*found, expected, "{family} {pointer}");
    }
    let schema = |family| {
        AnyFamily::by_name(family)
            .unwrap()
            .schema(RequestLayout::Standard)
    };
    let search = &schema("gemini-3.1-flash-image")["properties"]["engine_image_search"];
    let aliases = "`google_image_search`, `image_search`";
    assert!(search["description"].as_str().unwrap().contains(aliases));
    let sizes = &schema("gpt-image-2")["properties"]["size"]["enum"];
    assert_eq!(sizes.as_array().unwrap().len(), 1 + 15 + 45 + 2);
}

#[test]
fn response_schemas_describe_what_they_require() {
    for family in AnyFamily::all() {
        let format = family.response_format();
        for schema in [(format.receipt_schema)(), (format.record_schema)()] {
            assert_eq!(schema["type"], "object");
            let properties = schema["properties"].as_object().unwrap();
            for name in schema["required"].as_array().unwrap() {
                assert!(properties.contains_key(name.as_str().unwrap()));
            }
        }
    }
}

#[test]
fn pages_have_every_field_rule_and_endpoint_and_a_valid_example() {
    for (family, layout, fields) in layouts() {
        let page = family.page();
        assert!(page.starts_with(&format!("# {}\n\n", family.title())));
        let mut expected = vec![
            "| `callback_url`, `metadata.callback_url` |".to_owned(),
            format!("| `{}` | string | yes |", layout.model_field()),
            family.endpoint().path().to_owned(),
        ];
        expected.extend(family.models().iter().map(|id| format!("`{id}`")));
        expected.extend(fields.iter().map(|field| format!("| `{}`", field.name)));
        expected.extend(fields.iter().map(|field| field.doc.to_owned()));
        let aliases = family.endpoint().aliases().iter();
        expected.extend(aliases.map(|endpoint| endpoint.path().to_owned()));
        if let AnyFamily::Image(image) = family {
            expected.extend(image.rules.iter().map(|rule| rule.text.to_owned()));
            let headings = ["Request fields", "Sizes", "Responses", "Errors", "Example"];
            expected.extend(headings.map(|heading| format!("## {heading}")));
            expected.push(format!("valid for {} hours", family.link_ttl().hours()));
        }
        for text in expected {
            assert!(page.contains(&text), "{family:?}: {text}");
        }
        // Every row of a table has as many cells as its header.
        let mut cells = 0;
        for line in page.lines() {
            let bars = line.matches('|').count();
            assert!(cells == 0 || bars == 0 || bars == cells, "{line}");
            cells = bars;
        }
        let example = page
            .split("-d '")
            .nth(1)
            .unwrap()
            .split('\'')
            .next()
            .unwrap();
        let body: Value = serde_json::from_str(example).unwrap();
        let fields = body.as_object().unwrap();
        let model = CATALOGUE
            .requested_model(fields, family.endpoint())
            .unwrap();
        assert_eq!(model.name, family.models()[0]);
        assert_eq!(parse(model, &body, true).unwrap().adjustments, []);
    }
}
