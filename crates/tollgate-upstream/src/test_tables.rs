//! Tables of the unit tests, `tests/tables/NAME.jsonl`: one row a line, a JSON value.

use serde::de::DeserializeOwned;

/// The rows of a table.
///
/// # Panics
///
/// The table is not there, or a row is not a `T`.
pub(crate) fn rows<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = format!("{}/tests/tables/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let row = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{path}: {line}: {e}"));
    text.lines().map(row).collect()
}
