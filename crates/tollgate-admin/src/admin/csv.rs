//! Rows of a list as CSV (RFC 4180), safe to open in a spreadsheet. The crate `csv` would replace only the quoting of a cell and the joining of
//! cells: it does not escape formulas.

use serde_json::Value;

/// The header row with the names of the columns.
pub(super) fn header_row(columns: &[&str]) -> String {
    format!("{}\r\n", columns.join(","))
}

/// One row: the values of an item's members in the order of `columns`.
pub(super) fn item_row(columns: &[&str], item: &Value) -> String {
    let cells = columns.iter().map(|column| cell(&item[*column]));
    let mut row = cells.collect::<Vec<_>>().join(",");
    row.push_str("\r\n");
    row
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) if is_formula(text) => format!("'{text}"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.contains(['"', ',', '\r', '\n']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

/// Whether a spreadsheet could interpret a text as a formula. Amounts, which are strings in JSON, are numbers here.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number(text)
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (integer, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
    is_digits(integer) && is_digits(decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        for (value, expected) in [
            (json!(null), ""),
            (json!("a,b"), "\"a,b\""),
            (json!("say \"x\""), "\"say \"\"x\"\"\""),
            (json!("=1+1"), "'=1+1"),
            (json!("@x"), "'@x"),
            (json!("-x"), "'-x"),
            (json!("\tx"), "'\tx"),
            (json!("-3"), "-3"),
            (json!("-0.5"), "-0.5"),
            (json!(-3), "-3"),
            (json!(["a", 1]), "\"[\"\"a\"\",1]\""),
            (json!(true), "true"),
        ] {
            assert_eq!(cell(&value), expected, "{value}");
        }
        let row = item_row(&["b", "a"], &json!({ "a": 1, "b": "x" }));
        assert_eq!(
            (header_row(&["b", "a"]), row),
            ("b,a\r\n".to_owned(), "x,1\r\n".to_owned())
        );
    }
}
