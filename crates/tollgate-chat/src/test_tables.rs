//! Reads the tables of the unit tests, `tests/tables/NAME.jsonl`: each line is a JSON value, one row.

use serde::de::DeserializeOwned;

/// The rows of a table.
///
/// # Panics
///
/// If the table does not exist, or a row is not a `T`.
pub(crate) fn rows<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = format!("{}/tests/tables/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let row = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{path}: {line}: {e}"));
    text.lines().map(row).collect()
}
