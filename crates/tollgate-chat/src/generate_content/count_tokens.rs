//! The body and the response of `countTokens`.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::InvalidRequest;

/// Writes the response of `countTokens`.
pub fn write_count_response(tokens: u64) -> Vec<u8> {
    let details = [json!({"modality": "TEXT", "tokenCount": tokens})];
    json!({"totalTokens": tokens, "promptTokensDetails": details})
        .to_string()
        .into_bytes()
}

/// The request in a `countTokens` body: its `generateContentRequest`, or the body itself.
pub fn extract_counted_request(body: &Bytes) -> Result<Bytes, InvalidRequest> {
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
        return Err(InvalidRequest::body("the body must be a JSON object"));
    }
    let read: Body<'_> = serde_json::from_slice(body).map_err(|error| {
        InvalidRequest::body(format!(
            "the body is not a valid countTokens request: {error}"
        ))
    })?;
    match read.inner {
        None => Ok(body.clone()),
        Some(inner) if inner.get().starts_with('{') => Ok(body.slice_ref(inner.get().as_bytes())),
        Some(_) => Err(InvalidRequest::new(
            "generateContentRequest",
            "must be an object",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_tokens_body_can_wrap_the_request() {
        for (body, request) in [
            (r#"{"contents":[]}"#, r#"{"contents":[]}"#),
            (
                r#" {"generateContentRequest": {"model":"models/x","contents":[]} }"#,
                r#"{"model":"models/x","contents":[]}"#,
            ),
            (r#"{"generate_content_request":{}}"#, "{}"),
        ] {
            assert_eq!(
                extract_counted_request(&Bytes::from(body)).unwrap(),
                request
            );
        }
        for body in ["", "[]", "{", r#"{"generateContentRequest":1}"#] {
            assert!(
                extract_counted_request(&Bytes::from(body)).is_err(),
                "{body}"
            );
        }
        assert_eq!(
            write_count_response(5),
            br#"{"totalTokens":5,"promptTokensDetails":[{"modality":"TEXT","tokenCount":5}]}"#
        );
    }
}
