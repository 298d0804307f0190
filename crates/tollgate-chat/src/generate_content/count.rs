//! Counting tokens: `countTokens`.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::Bad;

/// The answer of `countTokens`.
pub fn count_reply(tokens: u64) -> Vec<u8> {
    let details = [json!({"modality": "TEXT", "tokenCount": tokens})];
    json!({"totalTokens": tokens, "promptTokensDetails": details})
        .to_string()
        .into_bytes()
}

/// The request whose tokens a `countTokens` body asks for: the body itself, or what is in its `generateContentRequest`.
pub fn count_request(body: &Bytes) -> Result<Bytes, Bad> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(
            borrow,
            rename = "generateContentRequest",
            alias = "generate_content_request"
        )]
        inner: Option<&'a RawValue>,
    }
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Bad::body("the body must be a JSON object"));
    }
    let read: Body<'_> = serde_json::from_slice(body)
        .map_err(|error| Bad::body(format!("the body is no valid countTokens request: {error}")))?;
    match read.inner {
        None => Ok(body.clone()),
        Some(inner) if inner.get().starts_with('{') => Ok(body.slice_ref(inner.get().as_bytes())),
        Some(_) => Err(Bad::new("generateContentRequest", "must be an object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bodies_are_taken() {
        for (body, request) in [
            (r#"{"contents":[]}"#, r#"{"contents":[]}"#),
            (
                r#" {"generateContentRequest": {"model":"models/x","contents":[]} }"#,
                r#"{"model":"models/x","contents":[]}"#,
            ),
            (r#"{"generate_content_request":{}}"#, "{}"),
        ] {
            assert_eq!(count_request(&Bytes::from(body)).unwrap(), request);
        }
        for body in ["", "[]", "{", r#"{"generateContentRequest":1}"#] {
            assert!(count_request(&Bytes::from(body)).is_err(), "{body}");
        }
        assert_eq!(
            count_reply(5),
            br#"{"totalTokens":5,"promptTokensDetails":[{"modality":"TEXT","tokenCount":5}]}"#
        );
    }
}
