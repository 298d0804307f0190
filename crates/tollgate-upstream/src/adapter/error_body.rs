//! Reads the JSON error bodies of OpenAI and of servers compatible with it.

use serde_json::Value;

/// The fields of an error body; a field is empty if the body lacks it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    pub(crate) message: String,
    /// The machine-readable `code`, or the `type` if there is no code.
    pub(crate) code: String,
    /// The request field that the error refers to.
    pub(crate) param: String,
}

impl ErrorBody {
    /// Reads `{error: {message, code, type, param}}`, `{error: "text", code}`, `{message, code}` and `{detail: "text"}`.
    pub(crate) fn parse(json: &Value) -> Self {
        match &json["error"] {
            error @ Value::Object(_) => Self::parse_error(error),
            Value::String(message) => Self {
                message: message.clone(),
                ..Self::parse_error(json)
            },
            _ => Self::parse_error(json),
        }
    }

    /// Reads `{message, code, type, param}`, or a text.
    pub(crate) fn parse_error(error: &Value) -> Self {
        if let Value::String(message) = error {
            return Self {
                message: message.clone(),
                ..Self::default()
            };
        }
        let text = |name: &str| match &error[name] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let or = |first: String, second: &str| {
            if first.is_empty() {
                text(second)
            } else {
                first
            }
        };
        Self {
            message: or(text("message"), "detail"),
            code: or(text("code"), "type"),
            param: text("param"),
        }
    }

    /// Whether the error has neither message nor code.
    pub(crate) fn is_empty(&self) -> bool {
        self.message.is_empty() && self.code.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_tables::rows;

    #[test]
    fn every_shape_of_error_body_is_parsed() {
        type Row = (Value, String, String, String);
        for (json, message, code, param) in rows::<Row>("error_bodies") {
            let expected = ErrorBody {
                message,
                code,
                param,
            };
            assert_eq!(ErrorBody::parse(&json), expected, "{json}");
        }
        let plain = ErrorBody {
            message: "m".into(),
            ..ErrorBody::default()
        };
        assert_eq!(ErrorBody::parse_error(&json!("m")), plain);
    }
}
