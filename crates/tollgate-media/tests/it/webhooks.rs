//! Tests `callback_url`, which every family accepts.

use serde_json::{Value, json};
use tollgate_core::ApiError;
use tollgate_media::{AnyFamily, RequestLayout, Submission};

use crate::{cases, model, parse};

/// A strict request with all fields that the family requires.
fn parse_request(family: AnyFamily, more: &Value) -> Result<Submission, ApiError> {
    let mut body = more.clone();
    let schema = family.schema(RequestLayout::Standard);
    for name in ["prompt", "input"] {
        if schema["properties"].get(name).is_some() {
            body[name] = "a".into();
        }
    }
    if family.name() == "grok-imagine-edit" {
        body["image_urls"] = json!(["https://a/1"]);
    }
    parse(model(family.models()[0]), &body, true)
}

#[test]
fn every_family_accepts_it_at_the_top_level_and_in_metadata() {
    let url = "https://hooks.example/x";
    for family in AnyFamily::all() {
        for (body, expected) in [
            (json!({ "callback_url": url }), Some(url)),
            (json!({ "metadata": { "callback_url": url } }), Some(url)),
            (
                json!({ "callback_url": url, "metadata": { "callback_url": url } }),
                Some(url),
            ),
            (json!({}), None),
            (json!({ "callback_url": null }), None),
        ] {
            let submission =
                parse_request(family, &body).unwrap_or_else(|e| panic!("{family:?}: {e}"));
            assert_eq!(submission.callback_url.as_deref(), expected, "{family:?}");
            assert_eq!(submission.adjustments, []);
        }
    }
}

/// `cases/callback_urls_rejected.jsonl`: a request and a part of its error message.
#[test]
fn only_http_urls_of_limited_length_are_taken() {
    let longest = format!("https://a/{}", "x".repeat(2048 - 10));
    let lines = cases::read_file("callback_urls_rejected.jsonl");
    let rows = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let mut rows: Vec<(Value, String)> = rows.collect();
    let limit = "`callback_url` must be a URL of at most 2048 bytes, got 2049 bytes";
    rows.push((
        json!({ "callback_url": format!("{longest}x") }),
        limit.to_owned(),
    ));
    for family in AnyFamily::all() {
        assert!(parse_request(family, &json!({ "callback_url": longest })).is_ok());
        for (body, message) in &rows {
            let error = parse_request(family, body).unwrap_err();
            assert!(
                error.message.contains(message),
                "{family:?} {body}: {error}"
            );
        }
    }
}
