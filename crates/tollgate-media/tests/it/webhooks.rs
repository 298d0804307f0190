//! `callback_url`, which every family of every kind takes.

use serde_json::{Map, Value, json};
use tollgate_media::{AnyFamily, RequestLayout, Submission};

use crate::{CATALOGUE, URL};

fn read(family: AnyFamily, more: &Value) -> Result<Submission, tollgate_core::ApiError> {
    let id = family.models()[0];
    let mut body: Map<String, Value> = more.as_object().unwrap().clone();
    for (name, value) in [("prompt", "a"), ("input", "a")] {
        if family.schema(RequestLayout::Standard)["properties"]
            .get(name)
            .is_some()
        {
            body.insert(name.to_owned(), value.into());
        }
    }
    if family.name() == "grok-imagine-edit" {
        body.insert("image_urls".to_owned(), json!([URL]));
    }
    let model = CATALOGUE.task_model(id, family.endpoint()).unwrap();
    tollgate_media::parse_request(model, RequestLayout::Standard, &body, true)
}

#[test]
fn every_family_takes_it_in_either_place() {
    let url = "https://hooks.example/x";
    for family in AnyFamily::all() {
        for body in [
            json!({ "callback_url": url }),
            json!({ "metadata": { "callback_url": url } }),
            json!({ "callback_url": url, "metadata": { "callback_url": url } }),
        ] {
            let submission = read(family, &body).unwrap_or_else(|e| panic!("{family:?}: {e}"));
            assert_eq!(submission.callback_url.as_deref(), Some(url), "{family:?}");
            assert_eq!(submission.adjustments, []);
        }
        assert_eq!(read(family, &json!({})).unwrap().callback_url, None);
        assert_eq!(
            read(family, &json!({ "callback_url": null }))
                .unwrap()
                .callback_url,
            None
        );
    }
}

#[test]
fn only_http_urls_of_limited_length_are_taken() {
    let longest = format!("https://a/{}", "x".repeat(2048 - 10));
    let long = format!("{longest}x");
    for family in AnyFamily::all() {
        assert!(read(family, &json!({ "callback_url": longest })).is_ok());
        for (body, words) in [
            (
                json!({ "callback_url": "ftp://a/b" }),
                "`callback_url` must be an absolute http or https URL, got \"ftp://a/b\"",
            ),
            (
                json!({ "callback_url": "" }),
                "`callback_url` must be an absolute",
            ),
            (
                json!({ "callback_url": 1 }),
                "`callback_url` must be an http or https URL, as a string, got 1",
            ),
            (
                json!({ "callback_url": long }),
                "`callback_url` must be a URL of at most 2048 bytes, got 2049 bytes",
            ),
            (
                json!({ "metadata": { "callback_url": "x" } }),
                "`metadata.callback_url` must be an absolute",
            ),
            (
                json!({ "callback_url": "https://a", "metadata": { "callback_url": "https://b" } }),
                "`callback_url` and `metadata.callback_url` are one field but differ",
            ),
            (
                json!({ "metadata": { "callbck_url": "https://a" } }),
                "`metadata.callbck_url` would have no effect",
            ),
        ] {
            let error = read(family, &body).unwrap_err();
            assert!(error.message.contains(words), "{family:?} {body}: {error}");
        }
    }
}
