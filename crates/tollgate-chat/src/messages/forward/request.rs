//! Forwards a request: the same bytes, or the object with some members replaced, added or removed.

use std::ops::Range;

use bytes::Bytes;
use serde_json::{Value, json};

use super::json_edits::{Members, apply_edits, span};
use super::member_changes::list_member_changes;
use crate::error::InvalidRequest;
use crate::format::{ForwardedRequest, RequestSummary, Target};

/// See [`crate::Format::forward_request`].
pub(crate) fn forward_request(
    body: &Bytes,
    summary: &RequestSummary,
    target: &Target<'_>,
) -> Result<ForwardedRequest, InvalidRequest> {
    let members: Members<'_> = serde_json::from_slice(body)
        .map_err(|error| InvalidRequest::body(format!("the body must be valid JSON: {error}")))?;
    let (mut changes, dropped) = list_member_changes(&members.0, target);
    if summary.model.as_deref() != Some(target.model) {
        changes.push(("model", Some(json!(target.model))));
    }
    if summary.stream != target.stream {
        changes.push(("stream", target.stream.then_some(json!(true))));
    }
    if changes.is_empty() {
        return Ok(ForwardedRequest::unchanged(body));
    }
    let is_present = |name: &str| members.0.iter().any(|member| member.0 == name);
    let in_place = |(name, value): &(&str, Option<Value>)| value.is_some() && is_present(name);
    let changed = match changes.iter().all(in_place) {
        true => replace_values(body, &members, &changes),
        false => rebuild_object(&members, &changes),
    };
    Ok(ForwardedRequest {
        body: changed.into(),
        dropped,
    })
}

/// Replaces the values of existing members in the text.
fn replace_values(
    body: &[u8],
    members: &Members<'_>,
    changes: &[(&str, Option<Value>)],
) -> Vec<u8> {
    let edits: Vec<(Range<usize>, String)> = members
        .0
        .iter()
        .filter_map(|(name, raw)| {
            let change = changes.iter().find(|change| name == change.0)?;
            Some((span(body, raw.get()), change.1.as_ref()?.to_string()))
        })
        .collect();
    apply_edits(body, &edits)
}

/// Writes a new object with members added and removed. Unchanged values are copied.
fn rebuild_object(members: &Members<'_>, changes: &[(&str, Option<Value>)]) -> Vec<u8> {
    let length: usize = members
        .0
        .iter()
        .map(|m| m.0.len() + m.1.get().len() + 8)
        .sum();
    let mut out = Vec::with_capacity(length + 128);
    let mut put = |name: &str, value: &str| {
        out.push(if out.is_empty() { b'{' } else { b',' });
        out.extend_from_slice(Value::from(name).to_string().as_bytes());
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    };
    for (name, raw) in &members.0 {
        match changes.iter().find(|change| name == change.0) {
            None => put(name, raw.get()),
            Some((_, Some(value))) => put(name, &value.to_string()),
            Some((_, None)) => {}
        }
    }
    let is_present = |name: &str| members.0.iter().any(|member| member.0 == name);
    for (name, value) in changes {
        if let (false, Some(value)) = (is_present(name), value) {
            put(name, &value.to_string());
        }
    }
    out.push(b'}');
    out
}
