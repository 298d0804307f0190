//! What the JSON of a refusal says, in the shapes of OpenAI and the servers like it.

use serde_json::Value;

use super::Wire;
use crate::provider::{ProviderError, ProviderErrorKind};

/// A refusal's words; empty where it does not say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) message: String,
    /// The machine-readable name of what is wrong; the error's type where it has none.
    pub(crate) code: String,
    /// The request's field that is wrong.
    pub(crate) param: String,
}

impl Said {
    /// Reads `{error: {message, code, type, param}}`, `{error: "text", code}`, `{message, code}` and `{detail: "text"}`.
    pub(crate) fn of(json: &Value) -> Self {
        match &json["error"] {
            error @ Value::Object(_) => Self::of_error(error),
            Value::String(message) => Self {
                message: message.clone(),
                ..Self::of_error(json)
            },
            _ => Self::of_error(json),
        }
    }

    /// Reads `{message, code, type, param}`, or a text.
    pub(crate) fn of_error(error: &Value) -> Self {
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

    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.message.is_empty() && self.code.is_empty()
    }
}

impl Wire {
    /// The end of a task, or of one result of several, that failed with an error of `kind`, in the provider's words.
    pub(crate) fn failed(&self, kind: ProviderErrorKind, message: &str) -> ProviderError {
        let message = self.clean(message);
        if message.is_empty() {
            return ProviderError::new(kind, "the upstream failed without saying why");
        }
        ProviderError::new(kind, message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_shape_is_read() {
        let said = |message: &str, code: &str, param: &str| Said {
            message: message.into(),
            code: code.into(),
            param: param.into(),
        };
        for (json, expected) in [
            (
                json!({"error": {"message": "m", "type": "t", "param": "p", "code": "c"}}),
                said("m", "c", "p"),
            ),
            (
                json!({"error": {"message": "m", "type": "t", "param": null, "code": null}}),
                said("m", "t", ""),
            ),
            (json!({"code": "c", "error": "m"}), said("m", "c", "")),
            (json!({"error": "m"}), said("m", "", "")),
            (json!({"code": 503, "message": "m"}), said("m", "503", "")),
            (json!({"detail": "m"}), said("m", "", "")),
            (json!({"data": []}), Said::default()),
            (json!(null), Said::default()),
            (json!([1]), Said::default()),
        ] {
            assert_eq!(Said::of(&json), expected, "{json}");
        }
        assert_eq!(Said::of_error(&json!("m")), said("m", "", ""));
    }
}
