//! The properties of a client's format that the gateway needs after reading a request.

use std::fmt;

use serde_json::Value;

use super::field_names::RequestField;
use super::tool::Tool;
use super::turn::Turn;
use crate::error::InvalidRequest;

/// Reads a tool; the text is its JSON path, for errors.
type ReadTool = fn(Value, &str) -> Result<Tool, InvalidRequest>;

/// The properties of a client's format that the gateway needs after reading the request.
#[derive(Clone, Copy)]
pub struct ClientFormat {
    /// [`crate::Format::name`]; empty if unknown.
    pub name: &'static str,
    /// Returns the format's name for a field of the request.
    pub field_name: fn(RequestField) -> &'static str,
    /// Whether a system turn was read from a separate field, so that indices of the list of turns do not count it.
    pub is_separate_system: fn(&Turn) -> bool,
    /// Whether a client that sets a thinking budget but not its display expects to receive the thoughts.
    pub shows_budgeted_thoughts: bool,
    /// Reads a tool inside a `namespace` tool. `None` if the format has no namespaces.
    pub read_namespaced_tool: Option<ReadTool>,
}

impl fmt::Debug for ClientFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name, f)
    }
}

/// Formats are equal if their names are equal.
impl PartialEq for ClientFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// An unknown format: errors refer to the complete request.
impl Default for &'static ClientFormat {
    fn default() -> Self {
        &ClientFormat {
            name: "",
            field_name: |_| "request",
            is_separate_system: |_| false,
            shows_budgeted_thoughts: false,
            read_namespaced_tool: None,
        }
    }
}
