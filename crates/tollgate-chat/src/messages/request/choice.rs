//! Which tools are offered, which must be called, and what gives way to what: JSON by a tool, forced calls, thinking.

use serde_json::{Map, Value, json};

use super::draft::Draft;
use super::knobs::thinks_by_budget;
use super::turns::Conversation;
use super::{schema, thinking, tools};
use crate::error::InvalidRequest;
use crate::hub::{OutputFormat, PartKind, RequestField, Tool, ToolChoice, ToolKind};
use crate::messages::wire::{NAME, is_name_char};

/// What asks for JSON where the format has no member for it.
const ONLY_JSON: &str =
    "Answer with one valid JSON value and nothing else: no text before or after it, no code fence.";

/// How the reply is made to be JSON.
pub(super) enum Output {
    /// It is not.
    Free,
    /// By an instruction.
    Asked(String),
    /// By the vendor's grammar.
    Grammar(Value),
    /// By a tool that must be called.
    Tool {
        /// Its name, as sent.
        name: String,
        /// Its definition.
        definition: Value,
    },
}

impl Output {
    /// The instruction that is to stand behind the system text.
    pub(super) fn line(&self) -> Option<&str> {
        match self {
            Self::Asked(line) => Some(line),
            _ => None,
        }
    }
}

impl Draft<'_> {
    /// How JSON is made, if it is asked for.
    pub(super) fn output(&mut self) -> Output {
        let Some(OutputFormat::Schema {
            name,
            description,
            schema,
            ..
        }) = &self.request.output
        else {
            return match self.request.output {
                Some(OutputFormat::Json) => Output::Asked(ONLY_JSON.to_owned()),
                _ => Output::Free,
            };
        };
        if self.capabilities.supports_json_schema {
            return self.grammar(schema);
        }
        if is_forced(self.request.tool_choice.as_ref()) {
            // The reply will be a call of the client's own tools, and no text.
            return Output::Free;
        }
        let is_object = schema.get("type").is_none_or(|kind| kind == "object");
        if !is_object || !self.can_force() {
            self.lose_field(RequestField::Output);
            return Output::Asked(format!(
                "{ONLY_JSON} It must keep to this JSON schema: {schema}"
            ));
        }
        let name = self.stand_in_name(name.as_deref().unwrap_or("json_answer"));
        let text = description
            .as_deref()
            .unwrap_or("Gives the answer. Call it once, with the whole answer.");
        let definition = tools::write_function(&name, Some(text), Some(schema), None);
        let definition = Value::Object(definition);
        Output::Tool { name, definition }
    }

    fn grammar(&mut self, schema: &Value) -> Output {
        if self.is_native {
            return Output::Grammar(schema.clone());
        }
        let (schema, is_changed) = schema::for_output(schema);
        if is_changed {
            self.lose_field(RequestField::Output);
        }
        Output::Grammar(schema)
    }

    /// Whether a call can be forced: not while the model thinks.
    fn can_force(&self) -> bool {
        let thinks = self.request.reasoning.is_some() && !thinking::can_be_off(self.capabilities);
        self.capabilities.supports_forced_tools && !thinks
    }

    /// A legal name that no tool of the client has.
    fn stand_in_name(&self, wanted: &str) -> String {
        let longest = self.capabilities.max_tool_name_length.saturating_sub(4);
        let legal = wanted
            .chars()
            .map(|c| if is_name_char(c) { c } else { '_' });
        let mut name: String = legal.take(longest).collect();
        if name.is_empty() {
            name.push_str("json_answer");
        }
        let is_taken = |name: &str| {
            self.request.tools.iter().any(|tool| match &tool.kind {
                ToolKind::Function { name: there, .. } | ToolKind::Custom { name: there, .. } => {
                    self.names.upstream_name(there) == name
                }
                _ => false,
            })
        };
        while is_taken(&name) {
            name.push('_');
        }
        name
    }

    /// The tools as sent.
    pub(super) fn tools(&mut self) -> Result<Vec<Value>, InvalidRequest> {
        let among = match &self.request.tool_choice {
            Some(ToolChoice::AllowedTools { names, .. }) => Some(names),
            _ => None,
        };
        let request = self.request;
        let mut out = Vec::with_capacity(request.tools.len());
        for (index, tool) in request.tools.iter().enumerate() {
            if let (Some(names), ToolKind::Function { name, .. } | ToolKind::Custom { name, .. }) =
                (among, &tool.kind)
                && !names.contains(name)
            {
                continue;
            }
            out.push(self.tool(index, tool)?);
        }
        if out.is_empty() && !self.is_native {
            out = self.tools_of_history();
        }
        Ok(out)
    }

    fn tool(&mut self, index: usize, tool: &Tool) -> Result<Value, InvalidRequest> {
        let mut out = match &tool.kind {
            ToolKind::Function {
                name,
                description,
                parameters,
                strict,
            } => {
                // The grammar behind `strict` came with the one for structured output.
                let takes_strict = self.is_native || self.capabilities.supports_json_schema;
                if *strict == Some(true) && !takes_strict {
                    self.lose("strict");
                }
                let strict = strict.filter(|strict| self.is_native || (*strict && takes_strict));
                let sent = self.names.upstream_name(name).to_owned();
                let description = description.as_deref();
                tools::write_function(&sent, description, parameters.as_ref(), strict)
            }
            ToolKind::Custom {
                name,
                description,
                format,
            } => {
                let sent = self.names.upstream_name(name).to_owned();
                tools::write_custom(&sent, description.as_deref(), format.as_ref())
            }
            ToolKind::WebSearch { location } => tools::write_web_search(tool, location.as_ref()),
            ToolKind::FormatSpecific { format, value } if *format == NAME => {
                return Ok(value.clone());
            }
            ToolKind::FormatSpecific { value, .. } => {
                // Typed, or an object whose one member is the type.
                let kind = value.get("type").and_then(Value::as_str);
                let only = value.as_object().and_then(|members| members.keys().next());
                let kind = kind.or(only.map(String::as_str)).unwrap_or_default();
                let field = format!(
                    "{}[{index}]",
                    self.request.client_field_name(RequestField::Tools)
                );
                let why = format!("of type `{kind}` is not available for this model");
                return Err(InvalidRequest::new(field, why));
            }
        };
        if let Some(marker) = self.marker(tool.cache_ttl.as_deref()) {
            out.insert("cache_control".to_owned(), marker);
        }
        self.lose_own(&tool.extra);
        Ok(tools::with_own(out, tool))
    }

    /// A history with calls wants their tools defined, even where none may be called any more.
    fn tools_of_history(&self) -> Vec<Value> {
        let mut names: Vec<&str> = Vec::new();
        for part in self.request.turns.iter().flat_map(|turn| &turn.parts) {
            if let PartKind::ToolCall { name, .. } = &part.kind
                && !names.contains(&name.as_str())
            {
                names.push(name);
            }
        }
        let define = |name: &&str| {
            Value::Object(tools::write_function(
                self.names.upstream_name(name),
                None,
                None,
                None,
            ))
        };
        names.iter().map(define).collect()
    }

    /// The member `tool_choice`; adds the tool that stands in for JSON output.
    pub(super) fn choice(
        &mut self,
        output: &Output,
        tools: &mut Vec<Value>,
    ) -> Option<Map<String, Value>> {
        let mut choice = self.asked_choice();
        let mut parallel = self.request.parallel_tools;
        if self.request.tools.is_empty() && !tools.is_empty() {
            // They are there for the history's sake.
            choice = kind("none");
        }
        if let Output::Tool { name, definition } = output {
            let is_alone = tools.is_empty() || says(&choice, &["none"]);
            choice = if is_alone { named(name) } else { kind("any") };
            parallel = if is_alone { Some(false) } else { parallel };
            tools.push(definition.clone());
        }
        let is_impossible = is_forcing(&choice) && !self.capabilities.supports_forced_tools;
        if is_impossible || (tools.is_empty() && is_forcing(&choice)) {
            self.lose_field(RequestField::ToolChoice);
            choice = kind("auto");
        }
        if tools.is_empty() {
            return None;
        }
        let parallel = parallel.filter(|parallel| self.is_native || !parallel);
        if let (Some(parallel), false) = (parallel, says(&choice, &["none"])) {
            choice.entry("type").or_insert_with(|| json!("auto"));
            choice.insert("disable_parallel_tool_use".to_owned(), json!(!parallel));
        }
        (!choice.is_empty()).then_some(choice)
    }

    /// What the client asked for, as it would be sent.
    fn asked_choice(&self) -> Map<String, Value> {
        match &self.request.tool_choice {
            None => Map::new(),
            Some(ToolChoice::None) => kind("none"),
            Some(ToolChoice::Tool(name)) => named(self.names.upstream_name(name)),
            Some(
                ToolChoice::Auto
                | ToolChoice::AllowedTools {
                    required: false, ..
                },
            ) => kind("auto"),
            Some(ToolChoice::Required | ToolChoice::AllowedTools { required: true, .. }) => {
                kind("any")
            }
        }
    }

    /// Thinking, and what gives way to what where the format refuses them together.
    pub(super) fn think(
        &mut self,
        max_tokens: u64,
        conversation: &Conversation,
        choice: &mut Option<Map<String, Value>>,
    ) -> thinking::Sent {
        let Some(reasoning) = &self.request.reasoning else {
            return thinking::Sent::default();
        };
        self.lose_own(&reasoning.extra);
        let mut sent = thinking::write(reasoning, self.capabilities, max_tokens, self.is_native);
        if sent.is_on && !self.is_native {
            let cannot = thinks_by_budget(self.capabilities)
                && (conversation.is_prefilled || conversation.lacks_thinking);
            let is_forcing = choice.as_ref().is_some_and(is_forcing);
            if cannot || (is_forcing && thinking::can_be_off(self.capabilities)) {
                // A forced call is what the client receives; thinking only makes it better.
                sent = thinking::Sent::off(self.capabilities);
            } else if is_forcing && let Some(choice) = choice {
                self.lose_field(RequestField::ToolChoice);
                choice.insert("type".to_owned(), json!("auto"));
                choice.shift_remove("name");
            }
        }
        if sent.is_weakened {
            self.lose_field(RequestField::Reasoning);
        }
        sent
    }
}

fn kind(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!(kind))])
}

fn named(name: &str) -> Map<String, Value> {
    let mut choice = kind("tool");
    choice.insert("name".to_owned(), json!(name));
    choice
}

/// Whether the client wants a call whatever the model thinks of it.
fn is_forced(choice: Option<&ToolChoice>) -> bool {
    matches!(
        choice,
        Some(
            ToolChoice::Required
                | ToolChoice::Tool(_)
                | ToolChoice::AllowedTools { required: true, .. }
        )
    )
}

/// Whether a choice of the wire leaves the model no other way than a call.
fn is_forcing(choice: &Map<String, Value>) -> bool {
    says(choice, &["any", "tool"])
}

fn says(choice: &Map<String, Value>, kinds: &[&str]) -> bool {
    let kind = choice.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| kinds.contains(&kind))
}
