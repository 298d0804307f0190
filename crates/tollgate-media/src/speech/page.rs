//! The docs page of a speech family, in Markdown.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::family::Family;
use crate::{AnyFamily, Endpoint, form, shape};

/// The docs page of `family`: the fields of every shape, answers, an example.
pub fn page(family: &'static Family) -> String {
    let any = AnyFamily::Speech(family);
    let also = any.endpoint().also();
    let mut page = String::new();
    form::front(&mut page, any, also);
    for endpoint in std::iter::once(&any.endpoint()).chain(also) {
        let heading = match *endpoint {
            Endpoint::AudioSpeech => "## Fields".to_owned(),
            other => format!("## Fields of `{other}`"),
        };
        let _ = writeln!(page, "{heading}\n");
        form::field_table(&mut page, &family.form(endpoint.shape()));
    }
    form::rule_list(&mut page, family.rules, family.ignored);
    let _ = writeln!(page, "## Answers\n\n{}\n", shape::SPEECH.about);
    page.push_str("## Example\n\n");
    form::curl(&mut page, any.endpoint().path(), &example(family));
    page
}

fn example(family: &Family) -> Map<String, Value> {
    let body = json!({
        "model": family.models[0],
        "input": "The light on the cape turns once in twelve seconds.",
        "language": "en",
    });
    body.as_object().cloned().unwrap_or_default()
}
