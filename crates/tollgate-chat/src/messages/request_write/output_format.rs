//! Chooses how JSON output is requested from the model: by schema, tool or instruction.

use serde_json::Value;

use super::writer::RequestWriter;
use super::{output_schema, thinking, tools};
use crate::hub::{OutputFormat, RequestField, ToolChoice, ToolKind};
use crate::messages::constants::is_name_character;

/// The instruction for JSON output if the format has no field for it.
const JSON_INSTRUCTION: &str =
    "Answer with one valid JSON value and nothing else: no text before or after it, no code fence.";

/// How JSON output is requested.
pub(crate) enum JsonOutput {
    /// It is not requested.
    Unconstrained,
    /// By an instruction in the system text.
    Instruction(String),
    /// By `output_config.format`.
    Schema(Value),
    /// By a tool that must be called.
    Tool {
        /// Name of the tool, as sent.
        name: String,
        /// Definition of the tool.
        definition: Value,
    },
}

impl JsonOutput {
    /// The instruction to append to the system text.
    pub(crate) fn instruction(&self) -> Option<&str> {
        match self {
            JsonOutput::Instruction(text) => Some(text),
            _ => None,
        }
    }
}

impl RequestWriter<'_> {
    /// Chooses how JSON output is requested.
    pub(crate) fn choose_output(&mut self) -> JsonOutput {
        let Some(OutputFormat::Schema {
            name,
            description,
            schema,
            ..
        }) = &self.request.output
        else {
            return match self.request.output {
                Some(OutputFormat::Json) => JsonOutput::Instruction(JSON_INSTRUCTION.to_owned()),
                _ => JsonOutput::Unconstrained,
            };
        };
        if self.capabilities.supports_json_schema {
            return self.schema_output(schema);
        }
        if requires_call(self.request.tool_choice.as_ref()) {
            // The response will be a call of the client's own tools, without text.
            return JsonOutput::Unconstrained;
        }
        let is_object = schema.get("type").is_none_or(|kind| kind == "object");
        if !is_object || !self.can_force_call() {
            self.drop_field(RequestField::Output);
            return JsonOutput::Instruction(format!(
                "{JSON_INSTRUCTION} It must keep to this JSON schema: {schema}"
            ));
        }
        let name = self.unused_tool_name(name.as_deref().unwrap_or("json_answer"));
        let text = description
            .as_deref()
            .unwrap_or("Gives the answer. Call it once, with the whole answer.");
        let definition = tools::write_function(&name, Some(text), Some(schema), None);
        let definition = Value::Object(definition);
        JsonOutput::Tool { name, definition }
    }

    fn schema_output(&mut self, schema: &Value) -> JsonOutput {
        if self.is_native {
            return JsonOutput::Schema(schema.clone());
        }
        let (schema, is_changed) = output_schema::convert_schema(schema);
        if is_changed {
            self.drop_field(RequestField::Output);
        }
        JsonOutput::Schema(schema)
    }

    /// Whether a tool call can be forced. Models that think reject it.
    fn can_force_call(&self) -> bool {
        let thinks =
            self.request.reasoning.is_some() && !thinking::can_be_disabled(self.capabilities);
        self.capabilities.supports_forced_tools && !thinks
    }

    /// A valid tool name that no tool of the client has.
    fn unused_tool_name(&self, requested: &str) -> String {
        let max_length = self.capabilities.max_tool_name_length.saturating_sub(4);
        let legal = requested
            .chars()
            .map(|c| if is_name_character(c) { c } else { '_' });
        let mut name: String = legal.take(max_length).collect();
        if name.is_empty() {
            name.push_str("json_answer");
        }
        let is_taken = |name: &str| {
            self.request.tools.iter().any(|tool| match &tool.kind {
                ToolKind::Function { name: existing, .. }
                | ToolKind::Custom { name: existing, .. } => {
                    self.names.upstream_name(existing) == name
                }
                _ => false,
            })
        };
        while is_taken(&name) {
            name.push('_');
        }
        name
    }
}

/// Whether the client requires a tool call.
fn requires_call(choice: Option<&ToolChoice>) -> bool {
    matches!(
        choice,
        Some(
            ToolChoice::Required
                | ToolChoice::Tool(_)
                | ToolChoice::AllowedTools { required: true, .. }
        )
    )
}
