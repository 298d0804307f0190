//! The `Idempotency-Key` header, and a fingerprint of a request that is the same for equal JSON values.

use http::HeaderMap;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tollgate_core::{ApiError, ErrorKind, id};

const HEADER: &str = "idempotency-key";
/// Longest key, in characters.
const MAX_KEY_LENGTH: usize = 255;

/// The request's idempotency key, if it has one.
///
/// # Errors
/// 400 if it is empty, too long or not UTF-8.
pub fn parse_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(value.as_bytes()).unwrap_or_default();
    if text.is_empty() || text.chars().count() > MAX_KEY_LENGTH {
        return Err(ApiError::invalid(format!(
            "header `Idempotency-Key` must be 1 to {MAX_KEY_LENGTH} characters of UTF-8 text"
        )));
    }
    Ok(Some(text.to_owned()))
}

/// The error 409: the key was used with another request.
pub fn key_reused() -> ApiError {
    ApiError::new(
        ErrorKind::Conflict,
        "this `Idempotency-Key` was used with another request: use a new key for a new request",
    )
}

/// A SHA-256 of path and body, in hexadecimal. The order of object members and whitespace make no difference.
pub fn fingerprint(path: &str, body: &Value) -> String {
    let mut hash = Sha256::new();
    hash_text(&mut hash, path);
    hash_value(&mut hash, body);
    id::hex(&hash.finalize())
}

fn hash_value(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update([0]),
        Value::Bool(b) => hash.update([1, u8::from(*b)]),
        Value::Number(n) => {
            hash.update([2]);
            hash_text(hash, &n.to_string());
        }
        Value::String(s) => {
            hash.update([3]);
            hash_text(hash, s);
        }
        Value::Array(items) => {
            hash.update([4]);
            hash.update((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| hash_value(hash, item));
        }
        Value::Object(members) => {
            hash.update([5]);
            hash.update((members.len() as u64).to_le_bytes());
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in sorted {
                hash_text(hash, name);
                hash_value(hash, member);
            }
        }
    }
}

/// Hashes the length first, so that no two sequences of texts give the same input.
fn hash_text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_values_have_equal_fingerprints() {
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let a = parse(r#"{"a": 1, "b": [true, null, "x"]}"#);
        let b = parse(r#"{ "b":[true,null,"x"],"a":1 }"#);
        assert_eq!(fingerprint("/p", &a), fingerprint("/p", &b));
    }

    #[test]
    fn different_values_have_different_fingerprints() {
        let values = [
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": [1]}),
            json!({"a": {"1": null}}),
            json!({"a": null}),
            json!({}),
            json!({"a": ["b", "c"]}),
            json!({"a": ["bc"]}),
            json!({"a": [["b"], "c"]}),
        ];
        let mut seen: Vec<String> = values.iter().map(|v| fingerprint("/p", v)).collect();
        seen.push(fingerprint("/q", &values[0]));
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), values.len() + 1);
    }

    #[test]
    fn a_key_has_1_to_255_characters_of_utf_8() {
        let with = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, http::HeaderValue::from_bytes(value).unwrap());
            parse_key(&headers)
        };
        assert_eq!(parse_key(&HeaderMap::new()), Ok(None));
        assert_eq!(with(b"k"), Ok(Some("k".to_owned())));
        assert_eq!(with("ü".repeat(255).as_bytes()), Ok(Some("ü".repeat(255))));
        assert!(with("ü".repeat(256).as_bytes()).is_err());
        assert!(with(b"").is_err());
        assert!(with(&[0xff]).is_err());
    }
}
