//! Passing on between equal formats: bytes as they are.

mod request;
mod stream;

use bytes::Bytes;

use super::wire::{Scan, splice_model};
use crate::error::Garbled;
use crate::format::Answer;

pub(super) use request::request;
pub(super) use stream::Stream;

/// See [`crate::Format::forward_reply`].
pub(super) fn reply(body: &Bytes, model: &str) -> Result<Answer, Garbled> {
    let scan = Scan::of(text_of(body)?)?;
    if !scan.is_reply() {
        return Err(Garbled::Malformed("a reply without candidates".to_owned()));
    }
    let renamed = splice_model(body, &scan, model)
        .map(|(before, name, after)| Bytes::from([before, &name, after].concat()));
    Ok(Answer {
        usage: scan.usage_metadata.as_ref().map(|usage| usage.usage()),
        text_bytes: scan.text_bytes(),
        body: renamed.unwrap_or_else(|| body.clone()),
    })
}

fn text_of(json: &[u8]) -> Result<&str, Garbled> {
    std::str::from_utf8(json).map_err(|_| Garbled::Malformed("JSON that is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn replies_pass_and_only_the_name_changes() {
        let body = Bytes::from(
            r#"{ "candidates":[{"content":{"parts":[{"text":"Hé"},{"functionCall":{"name":"f","args":{"a": 1}}}]},"finishReason":"STOP"}],
            "usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}, "modelVersion" : "up" , "x":1}"#,
        );
        let same = reply(&body, "up").unwrap();
        assert_eq!(same.body.as_ptr(), body.as_ptr(), "no copy");
        assert_eq!(same.text_bytes, 3 + 8);
        assert_eq!(same.usage.unwrap().total(), 5);
        let other = reply(&body, "my \"model\"").unwrap();
        let expected = std::str::from_utf8(&body)
            .unwrap()
            .replace("\"up\"", r#""my \"model\"""#);
        assert_eq!(other.body, expected);
    }

    #[test]
    fn replies_that_are_none_are_told() {
        for body in ["", "{}", "[]", "{\"candidates\":[]}", "<html>"] {
            assert!(
                matches!(reply(&Bytes::from(body), "m"), Err(Garbled::Malformed(_))),
                "{body}"
            );
        }
        assert!(matches!(
            reply(&Bytes::from_static(b"{\"candidates\":\"\xff\"}"), "m"),
            Err(Garbled::Malformed(_))
        ));
        let error = json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}});
        assert!(matches!(
            reply(&Bytes::from(error.to_string()), "m"),
            Err(Garbled::Upstream(_))
        ));
        assert!(
            reply(
                &Bytes::from(r#"{"promptFeedback":{"blockReason":"OTHER"}}"#),
                "m"
            )
            .is_ok()
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = reply(&Bytes::from(bytes), "m");
        }
    }
}
