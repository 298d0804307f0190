//! Adds a limit of generated tokens to a request that has none, so that the upstream generates no more than was held for.

use bytes::Bytes;
use memchr::memmem;
use serde_json::{Map, Value, json};

use crate::format::Format;

/// The request with a limit of `cap` output tokens for each choice. The client gave none, or `null`.
///
/// `None` if `body` is no JSON object.
pub fn add_output_cap(format: &dyn Format, body: &Bytes, cap: u64) -> Option<Bytes> {
    let (name, others): (_, &[&str]) = match format.name() {
        "chat-completions" => ("max_completion_tokens", &["max_tokens"]),
        "responses" => ("max_output_tokens", &["max_tokens"]),
        "messages" => ("max_tokens", &[]),
        _ => return add_generation_config(body, cap),
    };
    if [name].iter().chain(others).any(|name| mentions(body, name)) {
        let mut members: Map<String, Value> = serde_json::from_slice(body).ok()?;
        for other in others {
            members.remove(*other);
        }
        members.insert(name.to_owned(), cap.into());
        return serde_json::to_vec(&members).ok().map(Bytes::from);
    }
    append(body, &format!("\"{name}\":{cap}"))
}

fn add_generation_config(body: &Bytes, cap: u64) -> Option<Bytes> {
    const NAMES: [&str; 2] = ["generationConfig", "generation_config"];
    if !NAMES.iter().any(|name| mentions(body, name)) {
        return append(
            body,
            &format!("\"generationConfig\":{{\"maxOutputTokens\":{cap}}}"),
        );
    }
    let mut members: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let name = NAMES.into_iter().find(|name| members.contains_key(*name));
    let config = members
        .entry(name.unwrap_or(NAMES[0]))
        .or_insert(Value::Null);
    if !config.is_object() {
        *config = json!({});
    }
    let config = config.as_object_mut()?;
    config.remove("max_output_tokens");
    config.insert("maxOutputTokens".to_owned(), cap.into());
    serde_json::to_vec(&members).ok().map(Bytes::from)
}

/// Whether the name stands anywhere in the body, as a member or in a text.
fn mentions(body: &[u8], name: &str) -> bool {
    memmem::find(body, name.as_bytes()).is_some()
}

/// The object with one member more.
fn append(body: &[u8], member: &str) -> Option<Bytes> {
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
            let capped = add_output_cap(by_name(&format).unwrap(), &body, 7).unwrap();
            let parse = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
            assert_eq!(parse(&capped), parse(expected.as_bytes()), "{format}");
        }
        let list = Bytes::from_static(b"[1]");
        assert_eq!(add_output_cap(by_name("messages").unwrap(), &list, 7), None);
    }
}
