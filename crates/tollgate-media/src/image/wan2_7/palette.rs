//! `color_palette` of wan2.7: colours with their percentages.

use serde_json::{Value, json};
use tollgate_core::ApiError;

use crate::fields::field::CustomField;
use crate::fields::spec::Rule;
use crate::text::{invalid_value, show_text};

/// 100.00% in hundredths of a percent.
const FULL_SHARE: u32 = 10_000;

/// `[{hex, ratio}, …]`.
pub(super) static PALETTE: CustomField = CustomField {
    json_type: "array",
    values: "3 to 10 `{hex, ratio}`",
    parse,
    schema: || {
        json!({
            "type": "array",
            "minItems": 3,
            "maxItems": 10,
            "items": {
                "type": "object",
                "required": ["hex", "ratio"],
                "additionalProperties": false,
                "properties": {
                    "hex": { "type": "string", "pattern": "^#[0-9A-Fa-f]{6}$" },
                    "ratio": { "type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]{1,2})?%$" },
                },
            },
        })
    },
};

/// The palette is not available in group mode.
pub(super) const NOT_IN_GROUPS: Rule = Rule {
    text: "`color_palette` is not allowed in group mode.",
    apply: |draft| {
        if draft.is_requested("color_palette") && draft.flag("enable_sequential") {
            return Err(ApiError::invalid(
                "`color_palette` must be absent when `enable_sequential` is true",
            ));
        }
        Ok(())
    },
};

fn parse(field: &str, value: &Value) -> Result<Value, ApiError> {
    let items = match value.as_array() {
        Some(items) if (3..=10).contains(&items.len()) => items,
        Some(items) => {
            return Err(ApiError::invalid(format!(
                "`{field}` must have 3 to 10 colours, got {}",
                items.len()
            )));
        }
        None => return Err(invalid_value(field, "a list of 3 to 10 colours", value)),
    };
    let mut sum = 0;
    for (index, item) in items.iter().enumerate() {
        sum += parse_share(&format!("{field}[{index}]"), item)?;
    }
    if sum != FULL_SHARE {
        return Err(ApiError::invalid(format!(
            "`{field}` ratios must sum to 100.00%, got {}.{:02}%",
            sum / 100,
            sum % 100
        )));
    }
    Ok(value.clone())
}

/// Checks one colour and returns its share in hundredths of a percent.
fn parse_share(field: &str, item: &Value) -> Result<u32, ApiError> {
    let Some(members) = item.as_object() else {
        return Err(invalid_value(
            field,
            "{\"hex\": \"#RRGGBB\", \"ratio\": \"25.00%\"}",
            item,
        ));
    };
    if let Some(other) = members
        .keys()
        .find(|name| *name != "hex" && *name != "ratio")
    {
        return Err(ApiError::invalid(format!(
            "`{field}` must have hex and ratio only, got {}",
            show_text(other)
        )));
    }
    let hex = members.get("hex").unwrap_or(&Value::Null);
    if !hex.as_str().is_some_and(is_hex) {
        return Err(invalid_value(
            &format!("{field}.hex"),
            "a colour such as \"#C8A37E\"",
            hex,
        ));
    }
    let ratio = members.get("ratio").unwrap_or(&Value::Null);
    let parsed = ratio.as_str().and_then(parse_hundredths);
    parsed.ok_or_else(|| {
        let expected = "a percentage with at most two decimals such as \"25.00%\"";
        invalid_value(&format!("{field}.ratio"), expected, ratio)
    })
}

fn is_hex(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or_default();
    digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `25%`, `25.5%` or `25.50%` in hundredths of a percent, above 0 and at most 100%.
fn parse_hundredths(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%')?;
    let (integer, decimals) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (number, "0"),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(integer) || !digits(decimals) || integer.len() > 3 || decimals.len() > 2 {
        return None;
    }
    let value: u32 = format!("{integer}{decimals:0<2}").parse().ok()?;
    (1..=FULL_SHARE).contains(&value).then_some(value)
}
