//! Tools, which the two formats of OpenAI write differently and check alike.

use serde_json::Value;

use super::schema;
use crate::chat_output::{Choice, Tool};
use crate::openai::{invalid, invalid_value};
use crate::rejection::{Checked, OrRejected};
use crate::tables::schema::{field, text_of};

/// Letters, digits, `_` and `-`; at most 64.
pub(super) fn name(name: &str, param: &str) -> Checked {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(legal) {
        let message = format!(
            "Invalid '{param}': string does not match pattern. Expected a string that matches the \
             pattern '^[a-zA-Z0-9_-]+$'."
        );
        return Err(Box::new(invalid_value("name-pattern", param, message)));
    }
    if name.len() > 64 {
        let message = format!(
            "Invalid '{param}': string too long. Expected a string with maximum length 64, but got \
             a string with length {} instead.",
            name.len()
        );
        let rejection = invalid("name-length", message).code("string_above_max_length");
        return Err(Box::new(rejection.param(param)));
    }
    Ok(())
}

/// A function from the object that holds its name: `param` is where that is.
pub(super) fn function(function: &Value, param: &str) -> OrRejected<Tool> {
    let known = text_of(function, "name").unwrap_or_default();
    name(known, &format!("{param}.name"))?;
    let parameters = field(function, "parameters");
    let strict = function.get("strict") == Some(&Value::Bool(true));
    if let Some(parameters) = parameters {
        let of = format!("function '{known}'");
        schema::check(parameters, &of, &format!("{param}.parameters"), strict)?;
    }
    Ok(Tool {
        name: known.to_owned(),
        schema: parameters
            .cloned()
            .unwrap_or_else(|| serde_json::json!({"type": "object"})),
        custom: false,
    })
}

/// A tool that takes a text.
pub(super) fn custom(tool: &Value, param: &str) -> OrRejected<Tool> {
    let known = text_of(tool, "name").unwrap_or_default();
    name(known, &format!("{param}.name"))?;
    Ok(Tool {
        name: known.to_owned(),
        schema: Value::Null,
        custom: true,
    })
}

/// Which tools are called; `function` finds the name in an object that names one.
pub(super) fn choice(
    choice: Option<&Value>,
    tools: &[Tool],
    function: impl Fn(&Value) -> Option<String>,
) -> OrRejected<Choice> {
    let Some(choice) = choice else {
        return Ok(Choice::Auto);
    };
    if let Some(word) = choice.as_str() {
        return match word {
            "auto" => Ok(Choice::Auto),
            "none" => Ok(Choice::Never),
            "required" => Ok(Choice::Any),
            _ => {
                let message = format!(
                    "Invalid value: '{word}'. Supported values are: 'none', 'auto', and 'required'."
                );
                Err(Box::new(invalid_value(
                    "tool-choice",
                    "tool_choice",
                    message,
                )))
            }
        };
    }
    if text_of(choice, "type") == Some("allowed_tools") {
        let inner = field(choice, "allowed_tools").unwrap_or(choice);
        let required = text_of(inner, "mode") == Some("required");
        return Ok(if required { Choice::Any } else { Choice::Auto });
    }
    let Some(name) = function(choice) else {
        let message = "Missing required parameter: 'tool_choice.function'.";
        let rejection = invalid("tool-choice", message).code("missing_required_parameter");
        return Err(Box::new(rejection.param("tool_choice")));
    };
    if !tools.iter().any(|tool| tool.name == name) {
        let message = format!("Tool choice '{name}' not found in 'tools' parameter.");
        return Err(Box::new(invalid_value(
            "tool-choice",
            "tool_choice",
            message,
        )));
    }
    Ok(Choice::One(name))
}
