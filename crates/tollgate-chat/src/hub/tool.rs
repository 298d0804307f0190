//! The tools of a request, and which of them the model uses.

use serde_json::Value;

use super::extra_fields::ExtraFields;

/// A tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its kind and definition.
    pub kind: ToolKind,
    /// The ttl of a prompt-cache marker after this tool, as [`super::Part::cache_ttl`].
    pub cache_ttl: Option<String>,
    /// Members that only its format has.
    pub extra: ExtraFields,
}

/// Kind and definition of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolKind {
    /// A function that the client runs.
    Function {
        /// The function's name.
        name: String,
        /// The description for the model.
        description: Option<String>,
        /// JSON Schema of its arguments. `None` for a function without arguments.
        parameters: Option<Value>,
        /// Whether arguments must follow the schema strictly. `None` if not set.
        strict: Option<bool>,
    },
    /// A tool with free text as its input that the client runs (custom).
    Custom {
        /// The tool's name.
        name: String,
        /// The description for the model.
        description: Option<String>,
        /// The grammar of the text, in the flat spelling of the responses format.
        format: Option<Value>,
    },
    /// Web search run by the vendor.
    WebSearch {
        /// `{city, country, region, timezone}`.
        location: Option<Value>,
    },
    /// A tool run by the vendor that only one format has, as its complete JSON.
    FormatSpecific {
        /// Name of the format.
        format: &'static str,
        /// Its definition.
        value: Value,
    },
}

/// Which tools the model may or must use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// At least one, of any tools.
    Required,
    /// The tool with this name.
    Tool(String),
    /// Only some of the tools.
    AllowedTools {
        /// Their names.
        names: Vec<String>,
        /// Whether at least one of them must be called.
        required: bool,
    },
}

impl ToolChoice {
    /// Whether it requires a call.
    pub fn forces_call(&self) -> bool {
        matches!(
            self,
            Self::Required | Self::Tool(_) | Self::AllowedTools { required: true, .. }
        )
    }

    /// Replaces a list of the names of all functions by [`ToolChoice::Required`], which every format and server supports.
    pub fn without_complete_list(self, tools: &[Tool]) -> Self {
        let is_listed = |name: &String| match &self {
            Self::AllowedTools { names, required } => *required && names.contains(name),
            _ => false,
        };
        let mut functions = tools.iter().filter_map(|tool| match &tool.kind {
            ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } => Some(name),
            _ => None,
        });
        let Some(first) = functions.next() else {
            return self;
        };
        if is_listed(first) && functions.all(is_listed) {
            return Self::Required;
        }
        self
    }
}
