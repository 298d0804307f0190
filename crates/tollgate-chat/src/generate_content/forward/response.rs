//! Forwards a complete (non-streaming) response: sets the model's name and reads usage.

use bytes::Bytes;

use super::chunk_scan::{ChunkScan, as_utf8, split_around_model};
use crate::error::MalformedResponse;
use crate::format::ForwardedResponse;

/// See [`crate::Format::forward_response`].
pub(crate) fn forward_response(
    body: &Bytes,
    model: &str,
) -> Result<ForwardedResponse, MalformedResponse> {
    let scan = ChunkScan::parse(as_utf8(body)?)?;
    if !scan.has_candidates_or_block() {
        return Err(MalformedResponse::Invalid(
            "a response without candidates".to_owned(),
        ));
    }
    let renamed = split_around_model(body, &scan, model)
        .map(|(before, name, after)| Bytes::from([before, &name, after].concat()));
    Ok(ForwardedResponse {
        usage: scan.usage_metadata.as_ref().map(|usage| usage.to_usage()),
        text_bytes: scan.text_bytes(),
        body: renamed.unwrap_or_else(|| body.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_response_is_forwarded_with_only_the_model_name_changed() {
        let body = Bytes::from(
            r#"{ "candidates":[{"content":{"parts":[{"text":"Hé"},{"functionCall":{"name":"f","args":{"a": 1}}}]},"finishReason":"STOP"}],
            "usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}, "modelVersion" : "up" , "x":1}"#,
        );
        let same = forward_response(&body, "up").unwrap();
        assert_eq!(same.body.as_ptr(), body.as_ptr(), "no copy");
        assert_eq!(same.text_bytes, 3 + 8);
        assert_eq!(same.usage.unwrap().total(), 5);
        let other = forward_response(&body, "my \"model\"").unwrap();
        let expected = std::str::from_utf8(&body)
            .unwrap()
            .replace("\"up\"", r#""my \"model\"""#);
        assert_eq!(other.body, expected);
    }

    #[test]
    fn malformed_and_error_responses_are_errors() {
        for body in ["", "{}", "[]", "{\"candidates\":[]}", "<html>"] {
            assert!(
                matches!(
                    forward_response(&Bytes::from(body), "m"),
                    Err(MalformedResponse::Invalid(_))
                ),
                "{body}"
            );
        }
        assert!(matches!(
            forward_response(&Bytes::from_static(b"{\"candidates\":\"\xff\"}"), "m"),
            Err(MalformedResponse::Invalid(_))
        ));
        let error = json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}});
        assert!(matches!(
            forward_response(&Bytes::from(error.to_string()), "m"),
            Err(MalformedResponse::Upstream(_))
        ));
        assert!(
            forward_response(
                &Bytes::from(r#"{"promptFeedback":{"blockReason":"OTHER"}}"#),
                "m"
            )
            .is_ok()
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = forward_response(&Bytes::from(bytes), "m");
        }
    }
}
