//! A request that an adapter sent, in the form in which the cases write it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::adapter::KEY;
use crate::fixture_server::ReceivedRequest;
use crate::jobs::{describe, describe_image};

/// The headers that are specific to a provider, without those that every HTTP or JSON request has.
pub(crate) fn sent_headers(request: &ReceivedRequest) -> Map<String, Value> {
    let mut shown = Map::new();
    for name in request.headers.keys() {
        let values = request.headers.get_all(name).iter();
        let values: Vec<&str> = values
            .map(|value| value.to_str().expect("a text"))
            .collect();
        let value = values.join(", ").replace(KEY, "{key}");
        let is_usual = match name.as_str() {
            "host" | "user-agent" | "content-length" | "accept-encoding" => true,
            "accept" => value == "application/json",
            "content-type" => value == "application/json" || value.starts_with("multipart/"),
            _ => false,
        };
        let is_signed = value.starts_with("Bearer ") && value.split('.').count() == 3;
        let value = if is_signed {
            "Bearer {jwt}".to_owned()
        } else {
            value
        };
        if !is_usual {
            shown.insert(name.as_str().to_owned(), value.into());
        }
    }
    shown
}

/// The body in the form in which the cases write it.
pub(crate) fn sent_body(request: &ReceivedRequest) -> Value {
    let content_type = request.header("content-type");
    if let Some(boundary) = content_type.strip_prefix("multipart/form-data; boundary=") {
        let length = request.body.len().to_string();
        assert_eq!(request.header("content-length"), length);
        return json!({ "form": form_parts(&request.body, boundary) });
    }
    if request.body.is_empty() {
        return Value::Null;
    }
    assert_eq!(content_type, "application/json");
    with_images_described(request.json())
}

/// The value with every image in base64 replaced by its description.
fn with_images_described(value: Value) -> Value {
    match value {
        Value::String(text) => {
            let start = text.rfind("base64,").map_or(0, |at| at + "base64,".len());
            let decoded = STANDARD.decode(&text[start..]).ok();
            match decoded.and_then(|bytes| describe_image(&bytes)) {
                Some(image) => format!("{}{image}", &text[..start]).into(),
                None => text.into(),
            }
        }
        Value::Array(list) => list.into_iter().map(with_images_described).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            let members = members.map(|(name, value)| (name, with_images_described(value)));
            Value::Object(members.collect())
        }
        other => other,
    }
}

/// The parts of a form: name and value, and for a file also its name and type.
fn form_parts(body: &[u8], boundary: &str) -> Vec<Value> {
    let mark = format!("--{boundary}");
    let mut rest = body;
    let mut parts = Vec::new();
    loop {
        rest = rest.strip_prefix(mark.as_bytes()).expect("a boundary");
        if rest == b"--\r\n" {
            return parts;
        }
        let (head, after) = split(rest, b"\r\n\r\n");
        let (value, after) = split(after, format!("\r\n{mark}").as_bytes());
        parts.push(part(str::from_utf8(head).expect("a text"), value));
        rest = &rest[rest.len() - after.len() - mark.len()..];
    }
}

fn split<'a>(text: &'a [u8], at: &[u8]) -> (&'a [u8], &'a [u8]) {
    let found = text.windows(at.len()).position(|part| part == at);
    let found = found.expect("the form is complete");
    (&text[..found], &text[found + at.len()..])
}

fn part(head: &str, value: &[u8]) -> Value {
    let after = |start: &str, end: char| {
        let (_, rest) = head.split_once(start)?;
        Some(rest.split(end).next().unwrap_or(rest).to_owned())
    };
    let name = after("; name=\"", '"').expect("a name");
    match after("; filename=\"", '"') {
        None => json!([name, describe(value)]),
        Some(file) => {
            let lower = head.to_lowercase();
            let (_, content_type) = lower.split_once("content-type: ").expect("a type");
            json!([name, describe(value), file, content_type.trim()])
        }
    }
}
