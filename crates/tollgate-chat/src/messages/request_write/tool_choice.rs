//! Writes `tool_choice`, and decides between a forced call and thinking if the API rejects both together.

use serde_json::{Map, Value, json};

use super::conversation::Conversation;
use super::output_format::JsonOutput;
use super::thinking;
use super::writer::RequestWriter;
use crate::hub::{RequestField, ToolChoice};

impl RequestWriter<'_> {
    /// Writes `tool_choice`. Adds the tool for JSON output to `tools`.
    pub(crate) fn write_tool_choice(
        &mut self,
        output: &JsonOutput,
        tools: &mut Vec<Value>,
    ) -> Option<Map<String, Value>> {
        let mut choice = self.requested_choice();
        let mut parallel = self.request.parallel_tools;
        if self.request.tools.is_empty() && !tools.is_empty() {
            // The tools are defined only because the history calls them.
            choice = choice_of_type("none");
        }
        if let JsonOutput::Tool { name, definition } = output {
            let is_alone = tools.is_empty() || has_type(&choice, &["none"]);
            choice = if is_alone {
                choice_of_tool(name)
            } else {
                choice_of_type("any")
            };
            parallel = if is_alone { Some(false) } else { parallel };
            tools.push(definition.clone());
        }
        let is_impossible = forces_call(&choice) && !self.capabilities.supports_forced_tools;
        if is_impossible || (tools.is_empty() && forces_call(&choice)) {
            self.drop_field(RequestField::ToolChoice);
            choice = choice_of_type("auto");
        }
        if tools.is_empty() {
            return None;
        }
        let parallel = parallel.filter(|parallel| self.is_native || !parallel);
        if let (Some(parallel), false) = (parallel, has_type(&choice, &["none"])) {
            choice.entry("type").or_insert_with(|| json!("auto"));
            choice.insert("disable_parallel_tool_use".to_owned(), json!(!parallel));
        }
        (!choice.is_empty()).then_some(choice)
    }

    /// The client's choice in the form of this format.
    fn requested_choice(&self) -> Map<String, Value> {
        match &self.request.tool_choice {
            None => Map::new(),
            Some(ToolChoice::None) => choice_of_type("none"),
            Some(ToolChoice::Tool(name)) => choice_of_tool(self.names.upstream_name(name)),
            Some(
                ToolChoice::Auto
                | ToolChoice::AllowedTools {
                    required: false, ..
                },
            ) => choice_of_type("auto"),
            Some(ToolChoice::Required | ToolChoice::AllowedTools { required: true, .. }) => {
                choice_of_type("any")
            }
        }
    }

    /// Writes thinking. If the API rejects it together with a forced call, one of them is changed.
    pub(crate) fn write_thinking(
        &mut self,
        max_tokens: u64,
        conversation: &Conversation,
        choice: &mut Option<Map<String, Value>>,
    ) -> thinking::ThinkingSettings {
        let Some(reasoning) = &self.request.reasoning else {
            return thinking::ThinkingSettings::default();
        };
        self.drop_extra(&reasoning.extra);
        let mut sent =
            thinking::write_thinking(reasoning, self.capabilities, max_tokens, self.is_native);
        if sent.is_on && !self.is_native {
            let cannot_think = thinking::is_budget_controlled(self.capabilities)
                && (conversation.is_prefilled || conversation.lacks_thinking);
            let forces_call = choice.as_ref().is_some_and(forces_call);
            if cannot_think || (forces_call && thinking::can_be_disabled(self.capabilities)) {
                // The client needs the forced call; thinking only improves it.
                sent = thinking::ThinkingSettings::switched_off(self.capabilities);
            } else if forces_call && let Some(choice) = choice {
                self.drop_field(RequestField::ToolChoice);
                choice.insert("type".to_owned(), json!("auto"));
                choice.shift_remove("name");
            }
        }
        if sent.is_weakened {
            self.drop_field(RequestField::Reasoning);
        }
        sent
    }
}

fn choice_of_type(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!(kind))])
}

fn choice_of_tool(name: &str) -> Map<String, Value> {
    let mut choice = choice_of_type("tool");
    choice.insert("name".to_owned(), json!(name));
    choice
}

/// Whether a written `tool_choice` forces a call.
fn forces_call(choice: &Map<String, Value>) -> bool {
    has_type(choice, &["any", "tool"])
}

fn has_type(choice: &Map<String, Value>, kinds: &[&str]) -> bool {
    let kind = choice.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| kinds.contains(&kind))
}
