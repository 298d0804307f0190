//! The schemas and docs pages say what the declarations say.

use serde_json::{Value, json};
use tollgate_media::fields::{Field, FieldKind};
use tollgate_media::image::{FAMILIES, Family, page};

use tollgate_media::{AnyFamily, RequestLayout};

use crate::submit;

/// The JSON Schema of an image family's requests.
fn schema(family: &'static Family) -> Value {
    AnyFamily::Image(family).schema(RequestLayout::Standard)
}

#[test]
fn schemas_hold_every_field() {
    for family in FAMILIES {
        let schema = schema(family);
        assert_eq!(schema["properties"]["model"]["enum"], json!(family.models));
        for field in family.fields {
            let property = &schema["properties"][field.name];
            assert!(
                property["description"].is_string(),
                "{} {}",
                family.name,
                field.name
            );
            let required = schema["required"].as_array().unwrap();
            assert_eq!(required.contains(&field.name.into()), field.required);
        }
        let count = schema["properties"].as_object().unwrap().len();
        // The model and the callback are in every one.
        assert_eq!(count, family.fields.len() + 2);
    }
}

#[test]
fn schemas_agree_with_validation() {
    for family in FAMILIES {
        let schema = schema(family);
        for field in family.fields {
            let property = &schema["properties"][field.name];
            if let (Some(default), Some(values)) =
                (property.get("default"), property["enum"].as_array())
            {
                assert!(values.contains(default), "{} {}", family.name, field.name);
            }
            if !matches!(
                field.kind,
                FieldKind::Choice(_) | FieldKind::Size | FieldKind::Tier
            ) {
                continue;
            }
            let listed = property["enum"]
                .as_array()
                .or(property["examples"].as_array());
            let any_of = property["anyOf"][0]["enum"].as_array();
            for value in listed.or(any_of).unwrap() {
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

/// Every request shape of every family, with its fields.
fn shapes() -> Vec<(AnyFamily, RequestLayout, &'static [Field])> {
    AnyFamily::all()
        .flat_map(|family| {
            let ways = std::iter::once(family.endpoint())
                .chain(family.endpoint().aliases().iter().copied());
            ways.map(move |way| {
                (
                    family,
                    way.request_layout(),
                    family.fields(way.request_layout()),
                )
            })
        })
        .collect()
}

#[test]
fn schemas_of_every_kind_and_shape() {
    for (family, shape, fields) in shapes() {
        let schema = family.schema(shape);
        let model = &schema["properties"][shape.model_field()];
        assert_eq!(model["enum"], json!(family.models()));
        assert_eq!(schema["properties"]["callback_url"]["maxLength"], 2048);
        for field in fields {
            let property = &schema["properties"][field.name];
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
            }
        }
        assert_eq!(
            schema["properties"].as_object().unwrap().len(),
            fields.len() + 2
        );
    }
}

#[test]
fn some_schemas_of_videos_and_speech() {
    let schema =
        |name: &str, shape| AnyFamily::by_name(name).unwrap().schema(shape)["properties"].clone();
    let sora = schema("sora-2", RequestLayout::Standard);
    let strings = json!({ "type": "string", "enum": ["8", "12"] });
    let numbers = json!({ "type": "integer", "enum": [8, 12] });
    assert_eq!(sora["seconds"]["anyOf"], json!([strings, numbers]));
    assert_eq!(
        (&sora["seconds"]["default"], &sora["duration"]["default"]),
        (&json!("8"), &json!(8))
    );
    assert_eq!(sora["size"]["default"], "1280x720");
    let seedance = schema("seedance-1.5-pro", RequestLayout::Standard);
    assert_eq!(
        (
            &seedance["duration"]["minimum"],
            &seedance["duration"]["maximum"]
        ),
        (&json!(4), &json!(12))
    );
    assert_eq!(seedance["resolution"]["default"], "720p");
    assert_eq!(seedance["aspect_ratio"]["enum"][6], "adaptive");
    let veo = schema("veo-3.1", RequestLayout::Standard);
    assert_eq!(
        veo["metadata"]["properties"]["resolution"].get("default"),
        None
    );
    assert_eq!(
        veo["metadata"]["properties"]["generateAudio"]["default"],
        true
    );
    let speech = schema("native-v3", RequestLayout::MultimodalSpeech);
    assert_eq!(speech["metadata"]["required"], json!(["text"]));
    assert_eq!(speech["task_type"]["enum"], json!(["tts"]));
    let speed = &schema("native-v3", RequestLayout::NativeSpeech)["voice_speed"];
    assert_eq!(
        (&speed["minimum"], &speed["maximum"]),
        (&json!(0.25), &json!(4.0))
    );
}

#[test]
fn pages_of_every_kind_hold_their_fields_and_a_good_example() {
    for (family, shape, fields) in shapes() {
        let page = family.page();
        assert!(page.starts_with(&format!("# {}\n\n", family.title())));
        for field in fields {
            assert!(
                page.contains(&format!("| `{}`", field.name)),
                "{family:?} {}",
                field.name
            );
            assert!(page.contains(field.doc));
        }
        assert!(page.contains("| `callback_url`, `metadata.callback_url` |"));
        assert!(page.contains(&format!("| `{}` | string | yes |", shape.model_field())));
        for way in family.endpoint().aliases() {
            assert!(page.contains(way.path()), "{way}");
        }
        let start = page.find("-d '").unwrap() + 4;
        let end = page[start..].find('\'').unwrap() + start;
        let body: Value = serde_json::from_str(&page[start..end]).unwrap();
        let body = body.as_object().unwrap();
        let model = crate::CATALOGUE
            .requested_model(body, family.endpoint())
            .unwrap();
        let read = tollgate_media::parse_request(model, RequestLayout::Standard, body, true);
        assert_eq!(read.unwrap().adjustments, []);
    }
}

#[test]
fn some_schemas_in_full() {
    let find = |name: &str| FAMILIES.iter().find(|family| family.name == name).unwrap();
    let imagen = schema(find("imagen-4"));
    assert_eq!(
        imagen["properties"]["n"],
        json!({
            "type": "integer", "minimum": 1, "maximum": 1, "default": 1,
            "description": "Number of images to generate.",
        })
    );
    assert_eq!(imagen["properties"]["size"]["default"], "16:9");
    assert_eq!(imagen["properties"]["size"].get("enum"), None);
    let flash = schema(find("gemini-3.1-flash-image"));
    let search = &flash["properties"]["engine_image_search"]["description"];
    assert!(
        search
            .as_str()
            .unwrap()
            .contains("`google_image_search`, `image_search`")
    );
    assert_eq!(
        flash["properties"]["resolution"]["enum"],
        json!(["0.5K", "1K", "2K", "4K"])
    );
    assert_eq!(flash["properties"]["resolution"]["default"], "1K");
    let gpt = schema(find("gpt-image-2"));
    let sizes = gpt["properties"]["size"]["enum"].as_array().unwrap();
    assert_eq!(sizes.len(), 1 + 15 + 45 + 2);
    assert_eq!(
        schema(find("wan2.7"))["properties"]["prompt"]["maxLength"],
        5000
    );
    assert_eq!(
        schema(find("grok-imagine-edit"))["properties"]["image_urls"]["minItems"],
        1
    );
}

#[test]
fn shapes_have_schemas() {
    for family in AnyFamily::all() {
        for schema in [
            (family.response_format().receipt_schema)(),
            (family.response_format().record_schema)(),
        ] {
            assert_eq!(schema["type"], "object");
            let properties = schema["properties"].as_object().unwrap();
            let required = schema["required"].as_array().unwrap();
            assert!(
                required
                    .iter()
                    .all(|name| properties.contains_key(name.as_str().unwrap()))
            );
        }
    }
}

#[test]
fn pages_hold_everything() {
    for family in FAMILIES {
        let page = page(family);
        assert!(page.starts_with(&format!("# {}\n\n", family.title)));
        for id in family.models {
            assert!(page.contains(&format!("`{id}`")));
        }
        for field in family.fields {
            assert!(
                page.contains(&format!("| `{}`", field.name)),
                "{}",
                field.name
            );
            assert!(page.contains(field.doc));
        }
        for rule in family.rules {
            assert!(page.contains(rule.text));
        }
        for heading in [
            "## Request fields",
            "## Sizes",
            "## Responses",
            "## Errors",
            "## Example",
        ] {
            assert!(page.contains(heading));
        }
        assert!(page.contains(&format!("valid for {} hours", family.link_ttl.hours())));
        // Every row of a table has the cells of its head.
        let mut cells = 0;
        for line in page.lines() {
            let bars = line.matches('|').count();
            assert!(cells == 0 || bars == 0 || bars == cells, "{line}");
            cells = bars;
        }
    }
}

#[test]
fn the_example_of_each_page_is_a_good_request() {
    for family in FAMILIES {
        let page = page(family);
        let start = page.find("-d '").unwrap() + 4;
        let end = page[start..].find('\'').unwrap() + start;
        let body: Value = serde_json::from_str(&page[start..end]).unwrap();
        assert_eq!(body["model"], family.models[0]);
        submit(family.models[0], &body);
        assert!(page.contains(family.endpoint.path()));
    }
}
