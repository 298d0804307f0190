//! Adds a limit of output tokens to a request without one, so that the upstream generates no more than the hold covers.

use bytes::Bytes;
use memchr::memmem;
use serde_json::{Map, Value};

use crate::format::RequestSummary;

/// [`crate::Format::add_output_cap`] of a format whose limit is the member `name`, and whose summaries do not use [`RequestSummary::members`].
pub(crate) fn set_cap(
    body: &Bytes,
    summary: &mut RequestSummary,
    name: &str,
    others: &[&str],
    cap: u64,
) -> Option<Bytes> {
    let capped = set_member(body, name, others, cap)?;
    summary.max_tokens = Some(cap);
    Some(capped)
}

/// The request with `cap` as its member `name` and without the members `others`. `None` if `body` is not a JSON object.
pub(crate) fn set_member(body: &Bytes, name: &str, others: &[&str], cap: u64) -> Option<Bytes> {
    if std::iter::once(&name)
        .chain(others)
        .any(|name| mentions(body, name))
    {
        let mut members: Map<String, Value> = serde_json::from_slice(body).ok()?;
        for other in others {
            members.remove(*other);
        }
        members.insert(name.to_owned(), cap.into());
        return serde_json::to_vec(&members).ok().map(Bytes::from);
    }
    append_member(body, &format!("\"{name}\":{cap}"))
}

/// Whether the name occurs anywhere in the body, as a member or in a text.
pub(crate) fn mentions(body: &[u8], name: &str) -> bool {
    memmem::find(body, name.as_bytes()).is_some()
}

/// The object with one more member. `None` if `body` is not a JSON object.
pub(crate) fn append_member(body: &[u8], member: &str) -> Option<Bytes> {
    let object = body.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let comma = if object.ends_with(b"{") { "" } else { "," };
    let mut out = Vec::with_capacity(object.len() + member.len() + 2);
    out.extend_from_slice(object);
    out.extend_from_slice(comma.as_bytes());
    out.extend_from_slice(member.as_bytes());
    out.push(b'}');
    Some(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name;
    use crate::test_tables::rows;

    #[test]
    fn a_cap_is_added_in_every_format() {
        for [format, body, expected] in rows::<[String; 3]>("output_caps") {
            let body = Bytes::from(body);
            let format = by_name(&format).unwrap();
            let mut summary = RequestSummary::default();
            let capped = format.add_output_cap(&body, &mut summary, 7).unwrap();
            assert_eq!(summary.max_tokens, Some(7));
            let parse = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
            assert_eq!(
                parse(&capped),
                parse(expected.as_bytes()),
                "{}",
                format.name()
            );
        }
        let list = Bytes::from_static(b"[1]");
        let mut summary = RequestSummary::default();
        let messages = by_name("messages").unwrap();
        assert_eq!(messages.add_output_cap(&list, &mut summary, 7), None);
        assert_eq!(summary, RequestSummary::default());
    }
}
