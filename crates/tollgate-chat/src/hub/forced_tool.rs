//! Finds a tool that `tool_choice` names and that the request does not offer.

use serde_json::Value;

use super::request::Request;
use super::tool::{Tool, ToolChoice, ToolKind};

impl Request {
    /// A tool that `tool_choice` forces or lists as allowed although `tools` does not offer it. `None` if every tool that it names is offered.
    pub fn forced_tool_not_offered(&self) -> Option<&str> {
        let is_offered = |name: &str| self.tools.iter().any(|tool| has_name(tool, name));
        match self.tool_choice.as_ref()? {
            ToolChoice::Tool(name) if !is_offered(name) => Some(name),
            ToolChoice::AllowedTools { names, .. } => {
                let missing = names.iter().find(|name| !is_offered(name));
                missing.map(String::as_str)
            }
            _ => None,
        }
    }
}

/// Whether `tool` can be forced by `name`. Tools that a vendor runs are named by their name or type.
fn has_name(tool: &Tool, name: &str) -> bool {
    match &tool.kind {
        ToolKind::Function { name: own, .. } | ToolKind::Custom { name: own, .. } => own == name,
        ToolKind::WebSearch { .. } => name.contains("search"),
        ToolKind::FormatSpecific { value, .. } => contains_name(value, name),
    }
}

/// Whether a definition, or one nested in it, has that name or type.
fn contains_name(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| {
            let is_name = matches!(key.as_str(), "name" | "type" | "server_label");
            (is_name && value == name) || contains_name(value, name)
        }),
        Value::Array(items) => items.iter().any(|item| contains_name(item, name)),
        _ => false,
    }
}
