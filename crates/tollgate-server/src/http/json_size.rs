//! Reads JSON text once before it is parsed: checks its nesting depth, and computes the memory that its parsed form needs.

use tollgate_core::ApiError;

/// Maximum nesting of arrays and objects.
const MAX_DEPTH: usize = 64;
/// Maximum number of values (members, elements, arrays and objects) in one body, and of objects among them.
const MAX_VALUES: usize = 500_000;
const MAX_OBJECTS: usize = 100_000;
/// Bytes that a parsed value needs, including the unused capacity of its list; bytes that an object needs in addition.
const BYTES_PER_VALUE: usize = 160;
const BYTES_PER_OBJECT: usize = 480;

/// The size of a JSON text's parsed form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JsonSize {
    values: usize,
    objects: usize,
}

impl JsonSize {
    /// An upper estimate of the memory of the parsed tree without the contents of its strings, in bytes.
    pub(super) fn tree_bytes(self) -> usize {
        self.values * BYTES_PER_VALUE + self.objects * BYTES_PER_OBJECT
    }
}

/// Counts the values of a text; the parser checks later whether it is valid JSON.
///
/// # Errors
/// 400 if it is nested too deeply for the parser's recursion, or has too many values for the memory that is planned.
pub(super) fn count_values(text: &str) -> Result<JsonSize, ApiError> {
    let mut rest = text.as_bytes();
    let mut depth = 0usize;
    let mut size = JsonSize::default();
    // Most of a body is strings: each is skipped in one step.
    while let Some(&byte) = rest.first() {
        rest = &rest[1..];
        match byte {
            b'"' => {
                rest = &rest[string_length(rest)..];
                continue;
            }
            b',' => size.values += 1,
            b'[' => (depth, size.values) = (depth + 1, size.values + 1),
            b'{' => {
                (depth, size.values) = (depth + 1, size.values + 1);
                size.objects += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth > MAX_DEPTH {
            return Err(ApiError::invalid(format!(
                "the body is nested deeper than {MAX_DEPTH} levels"
            )));
        }
        if size.values > MAX_VALUES || size.objects > MAX_OBJECTS {
            return Err(ApiError::invalid(format!(
                "the body holds too much: at most {MAX_VALUES} JSON values and {MAX_OBJECTS} objects are allowed"
            )));
        }
    }
    Ok(size)
}

/// The length of the rest of a string, including its closing quote; the length of `text` if the quote is missing.
fn string_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        // An escaped character does not end the string.
        at = (at + 2).min(text.len());
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_nesting_is_rejected_and_brackets_in_strings_do_not_nest() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let text = |inner: &str| format!("{{\"a\":\"{inner}\"}}");
        let accepted = ["[".repeat(100), "\\\"[".repeat(70), "\\\\".repeat(3)];
        let accepted = accepted.iter().map(|inner| text(inner));
        for body in accepted.chain([nested(MAX_DEPTH)]) {
            assert!(count_values(&body).is_ok(), "{body}");
        }
        let deep = nested(MAX_DEPTH + 1);
        for body in [deep.clone(), format!("[\"\\\\\",{deep}]")] {
            let error = count_values(&body).unwrap_err();
            assert!(error.message.contains("nested"), "{}", error.message);
        }
        assert_eq!(
            (string_length(b"a\\\"b\"c"), string_length(b"ab\\")),
            (5, 3)
        );
    }

    #[test]
    fn values_and_objects_are_counted_and_bounded() {
        let size = count_values(r#"{"a": [1, "x,{", {}], "b": {"c": null}}"#).unwrap();
        let expected = JsonSize {
            values: 7,
            objects: 3,
        };
        assert_eq!(size, expected);
        let list = |item: &str, n: usize| format!("[{}]", vec![item; n].join(","));
        assert!(count_values(&list("0", MAX_VALUES)).is_ok());
        for body in [list("0", MAX_VALUES + 1), list("{}", MAX_OBJECTS + 1)] {
            let error = count_values(&body).unwrap_err();
            assert!(error.message.contains("too much"), "{}", error.message);
        }
    }
}
