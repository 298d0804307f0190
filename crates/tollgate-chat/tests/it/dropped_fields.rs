//! Tests how fields are mapped to formats that do not have them.

use serde_json::Value;
use tollgate_chat::field_table::{REASONS, dropped_names, rows};

#[test]
fn every_dropped_field_has_a_reason() {
    for name in dropped_names() {
        let has_reason = REASONS.iter().any(|(known, _)| *known == name);
        assert!(
            has_reason,
            "{name} is dropped: refuse it, or say why it may be"
        );
    }
}

/// Each line of `tests/field_mappings.jsonl` is a client's format, a field, another format, and the expected mapping of the field to it; `!` before
/// the mapping means any other mapping.
#[test]
fn listed_fields_have_the_expected_mapping() {
    let table = rows();
    for line in include_str!("../field_mappings.jsonl").lines() {
        let (client, field, to, expected): (String, Value, String, String) =
            serde_json::from_str(line).unwrap();
        let field = field.to_string();
        let row = table
            .iter()
            .find(|row| row.client == client && row.field == field);
        let mappings = &row.unwrap_or_else(|| panic!("{line}")).mappings;
        let mapping = mappings.iter().find(|mapping| mapping.0 == to).unwrap().1;
        let is_expected = match expected.strip_prefix('!') {
            Some(other) => format!("{mapping:?}") != other,
            None => format!("{mapping:?}") == expected,
        };
        assert!(is_expected, "{mapping:?}, not {line}");
    }
}
