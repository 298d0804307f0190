//! `Idempotency-Key`: reading the header, and a fingerprint that is the same for equal JSON values.

use http::HeaderMap;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tollgate_core::{ApiError, ErrorKind, id};

const HEADER: &str = "idempotency-key";
/// Longest key, in characters (CONTRACT.md › Sharper points).
const LONGEST: usize = 255;

/// The request's idempotency key, if it has one.
///
/// # Errors
/// 400 where it is empty, too long or not text.
pub fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(value.as_bytes()).unwrap_or_default();
    if text.is_empty() || text.chars().count() > LONGEST {
        return Err(ApiError::invalid(format!(
            "header `Idempotency-Key` must be 1 to {LONGEST} characters of UTF-8 text"
        )));
    }
    Ok(Some(text.to_owned()))
}

/// 409: the key came before with another body.
pub fn reused() -> ApiError {
    ApiError::new(
        ErrorKind::Conflict,
        "this `Idempotency-Key` was used with another request: use a new key for a new request",
    )
}

/// A hash of path and body. Members of objects count in any order, whitespace not at all.
pub fn fingerprint(path: &str, body: &Value) -> String {
    let mut hash = Sha256::new();
    absorb_text(&mut hash, path);
    absorb(&mut hash, body);
    id::hex(&hash.finalize())
}

fn absorb(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update([0]),
        Value::Bool(b) => hash.update([1, u8::from(*b)]),
        Value::Number(n) => {
            hash.update([2]);
            absorb_text(hash, &n.to_string());
        }
        Value::String(s) => {
            hash.update([3]);
            absorb_text(hash, s);
        }
        Value::Array(items) => {
            hash.update([4]);
            hash.update((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| absorb(hash, item));
        }
        Value::Object(members) => {
            hash.update([5]);
            hash.update((members.len() as u64).to_le_bytes());
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in sorted {
                absorb_text(hash, name);
                absorb(hash, member);
            }
        }
    }
}

/// Length first, so that no two sequences of texts run together.
fn absorb_text(hash: &mut Sha256, text: &str) {
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
    fn keys_have_bounds() {
        let with = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, http::HeaderValue::from_bytes(value).unwrap());
            key(&headers)
        };
        assert_eq!(key(&HeaderMap::new()), Ok(None));
        assert_eq!(with(b"k"), Ok(Some("k".to_owned())));
        assert_eq!(with("ü".repeat(255).as_bytes()), Ok(Some("ü".repeat(255))));
        assert!(with("ü".repeat(256).as_bytes()).is_err());
        assert!(with(b"").is_err());
        assert!(with(&[0xff]).is_err());
    }
}
