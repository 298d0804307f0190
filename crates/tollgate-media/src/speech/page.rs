//! Writes the docs page of a speech family (docs/models/*.md), in Markdown.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::family::Family;
use crate::endpoint::{Endpoint, RequestLayout};
use crate::fields::page::{
    Overview, write_example, write_field_table, write_overview, write_responses, write_rules,
};
use crate::response::speech::SPEECH;

/// The docs page of `family`, with a field table for each endpoint.
pub fn page(family: &'static Family) -> String {
    let endpoint = Endpoint::AudioSpeech;
    let mut page = String::new();
    let overview = Overview {
        family: family.name,
        one_model: family.one_model,
        endpoint,
        link_ttl: family.link_ttl,
        safety_review: family.safety_review,
    };
    let spec = family.request_spec(RequestLayout::Standard);
    write_overview(&mut page, &spec, &overview);
    for endpoint in std::iter::once(&endpoint).chain(endpoint.aliases()) {
        let _ = writeln!(page, "## Request fields of `{endpoint}`\n");
        write_field_table(&mut page, &family.request_spec(endpoint.request_layout()));
    }
    write_rules(&mut page, family.rules, family.ignored);
    write_responses(&mut page, SPEECH.about);
    write_example(&mut page, endpoint.path(), &example_body(family));
    page
}

fn example_body(family: &Family) -> Map<String, Value> {
    let body = json!({
        "model": family.models[0],
        "input": "The light on the cape turns once in twelve seconds.",
        "language": "en",
    });
    body.as_object().cloned().unwrap_or_default()
}
