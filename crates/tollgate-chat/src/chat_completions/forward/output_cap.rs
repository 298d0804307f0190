//! Adds a limit of output tokens to a request without one.

use bytes::Bytes;

use crate::chat_completions::request_summary::field_bit;
use crate::format::RequestSummary;
use crate::output_cap::{append_member, set_member};

const NAME: &str = "max_completion_tokens";
const OLDER_NAME: &str = "max_tokens";

/// See [`crate::Format::add_output_cap`].
pub(in crate::chat_completions) fn add_output_cap(
    body: &Bytes,
    summary: &mut RequestSummary,
    cap: u64,
) -> Option<Bytes> {
    const BITS: u32 = field_bit(NAME) | field_bit(OLDER_NAME);
    let members = summary.members;
    let capped = if members != 0 && members & BITS == 0 {
        append_member(body, &format!("\"{NAME}\":{cap}"))?
    } else {
        // The body may have one of the names with the value `null`.
        set_member(body, NAME, &[OLDER_NAME], cap)?
    };
    summary.max_tokens = Some(cap);
    if members != 0 {
        // Keeps the bits valid for the changed body: otherwise it would be examined again before it is forwarded.
        summary.members = (members & !BITS) | field_bit(NAME);
    }
    Some(capped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat_completions::request_summary::summarize_request;

    #[test]
    fn the_summary_equals_that_of_the_request_with_the_cap() {
        for members in [
            "",
            r#","max_tokens":null"#,
            r#","max_completion_tokens":null"#,
            r#","max_tokens":null,"max_completion_tokens":null"#,
            r#","temperature":1,"odd":"max_tokens""#,
        ] {
            let messages = r#"[{"role":"user","content":"max_completion_tokens"}]"#;
            let body = format!(r#"{{"model":"m","messages":{messages}{members}}}"#);
            let body = Bytes::from(body);
            let mut summary = summarize_request(&body).unwrap();
            let capped = add_output_cap(&body, &mut summary, 7).unwrap();
            assert_eq!(summary, summarize_request(&capped).unwrap(), "{body:?}");
            assert_eq!(summary.max_tokens, Some(7));
        }
    }
}
