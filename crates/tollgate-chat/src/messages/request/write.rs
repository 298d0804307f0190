//! Writes a request for an upstream.

use serde_json::{Map, Value, json};

use super::knobs::{Sampled, cap, thinks_by_budget};
use super::turns::Conversation;
use super::{schema, thinking, tools, turns};
use crate::error::Bad;
use crate::format::{Target, Written};
use crate::hub::{
    Effort, Field, Kind, ModelTraits, OutputFormat, Own, Request, Tool, ToolChoice, ToolKind,
    ToolNames,
};
use crate::messages::blocks::marker;
use crate::messages::fields::put_back;
use crate::messages::wire::{MOST_MARKERS, NAME, is_name_char};

/// What asks for JSON where no schema is given: the format has no member for it.
const ONLY_JSON: &str =
    "Answer with one valid JSON value and nothing else: no text before or after it, no code fence.";

/// The longest `metadata.user_id`.
const LONGEST_USER: usize = 256;

/// A request on its way to the wire, and what is lost on it.
pub(super) struct Draft<'a> {
    pub(super) request: &'a Request,
    pub(super) traits: &'a ModelTraits,
    /// Whether the client speaks this format itself: then its request stays as it is wherever the model takes it.
    pub(super) is_native: bool,
    pub(super) names: ToolNames,
    dropped: Vec<String>,
    /// Prompt-cache markers to leave out before the rest are as many as the vendor takes. The last ones reach furthest.
    markers_too_many: usize,
}

/// How the reply is made to be JSON.
enum Output {
    /// It is not.
    Free,
    /// By an instruction.
    Asked,
    /// By the vendor's grammar.
    Grammar(Value),
    /// By a tool that must be called.
    Tool { name: String, definition: Value },
}

/// Writes a request; see [`crate::Format::write_request`].
pub(in crate::messages) fn write(request: &Request, target: &Target<'_>) -> Result<Written, Bad> {
    refuse(request)?;
    let mut draft = Draft::of(request, target.traits);
    let output = draft.output()?;
    let mut tools = draft.tools()?;
    let line = matches!(output, Output::Asked).then_some(ONLY_JSON);
    let conversation = turns::write(&mut draft, line)?;
    let max_tokens = cap(request.max_tokens, target);
    if request.max_tokens.is_some_and(|asked| asked > max_tokens) {
        draft.lose_field(Field::MaxTokens);
    }
    let mut choice = draft.choice(&output, &mut tools);
    let thought = draft.think(max_tokens, &conversation, &mut choice);
    let sampled = draft.sample(&thought);

    let mut body = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    put("model", Some(json!(target.model)));
    put("max_tokens", Some(json!(max_tokens)));
    put("system", conversation.system);
    put("messages", Some(Value::Array(conversation.messages)));
    put("tools", (!tools.is_empty()).then_some(Value::Array(tools)));
    put("tool_choice", choice.map(Value::Object));
    put("thinking", thought.thinking);
    let config = draft.output_config(thought.effort, &output);
    put("output_config", config);
    put("temperature", sampled.temperature.map(|n| json!(n)));
    put("top_p", sampled.top_p.map(|n| json!(n)));
    put("top_k", sampled.top_k.map(|n| json!(n)));
    put("stop_sequences", draft.stop());
    put("metadata", draft.metadata());
    put("service_tier", draft.service_tier());
    put("stream", target.stream.then_some(json!(true)));
    draft.lose_the_rest();
    put_back(&request.own, &mut body);
    Ok(Written {
        body: Value::Object(body).to_string().into_bytes(),
        dropped: draft.dropped,
        renamed_tools: draft.names.renamed(),
        json_tool: match output {
            Output::Tool { name, .. } => Some(name),
            _ => None,
        },
    })
}

/// What the format cannot say, and whose loss would change what the client receives.
fn refuse(request: &Request) -> Result<(), Bad> {
    if let Some(name) = request.own_that_matters_to(NAME) {
        return Err(Bad::new(name, "is not available for this model"));
    }
    if request.n.is_some_and(|n| n > 1) {
        let why = "must be 1 for this model: it gives one reply to a request";
        return Err(Bad::new(request.name_of(Field::N), why));
    }
    if request.logprobs.is_some() {
        let why = "is not available for this model: it gives no log probabilities";
        return Err(Bad::new(request.name_of(Field::Logprobs), why));
    }
    Ok(())
}

impl<'a> Draft<'a> {
    fn of(request: &'a Request, traits: &'a ModelTraits) -> Self {
        let is_native = request.client == NAME;
        let markers = if is_native { 0 } else { markers(request) };
        Self {
            request,
            traits,
            is_native,
            names: ToolNames::of(request, traits.tool_name_max, |_, c| is_name_char(c)),
            dropped: Vec::new(),
            markers_too_many: markers.saturating_sub(MOST_MARKERS),
        }
    }

    /// Notes that a field of the client's was left out or weakened.
    pub(super) fn lose(&mut self, field: impl Into<String>) {
        let field = field.into();
        if !self.dropped.contains(&field) {
            self.dropped.push(field);
        }
    }

    /// Notes it by the client's own name for it.
    pub(super) fn lose_field(&mut self, field: Field) {
        self.lose(self.request.name_of(field));
    }

    /// Notes what only another format knows.
    pub(super) fn lose_own(&mut self, own: &Own) {
        for name in own.lost_to(NAME) {
            self.lose(name);
        }
    }

    /// An error about a part.
    pub(super) fn bad(&self, (turn, part): (usize, usize), why: impl AsRef<str>) -> Bad {
        Bad::new(self.request.path_of(turn, part), why)
    }

    /// The marker for a block, if there is room for one more.
    pub(super) fn marker(&mut self, cache: Option<&str>) -> Option<Value> {
        let ttl = cache?;
        if self.markers_too_many > 0 {
            self.markers_too_many -= 1;
            self.lose_field(Field::Cache);
            return None;
        }
        Some(marker(ttl))
    }

    fn output(&mut self) -> Result<Output, Bad> {
        let Some(OutputFormat::Schema {
            name,
            description,
            schema,
            ..
        }) = &self.request.output
        else {
            let is_json = self.request.output == Some(OutputFormat::Json);
            return Ok(if is_json { Output::Asked } else { Output::Free });
        };
        if self.traits.json_schema {
            if self.is_native {
                return Ok(Output::Grammar(schema.clone()));
            }
            let (schema, is_changed) = schema::for_output(schema);
            if is_changed {
                self.lose_field(Field::Output);
            }
            return Ok(Output::Grammar(schema));
        }
        if is_forced(self.request.tool_choice.as_ref()) {
            // The reply will be a call of the client's own tools, and no text.
            return Ok(Output::Free);
        }
        if schema.get("type").is_some_and(|kind| kind != "object") {
            let field = self.request.name_of(Field::Output);
            return Err(Bad::new(
                field,
                "must have a schema of type object for this model",
            ));
        }
        let name = self.stand_in_name(name.as_deref().unwrap_or("json_answer"));
        let text = description
            .as_deref()
            .unwrap_or("Gives the answer. Call it once, with the whole answer.");
        let definition = tools::write_function(&name, Some(text), Some(schema), None);
        let definition = Value::Object(definition);
        Ok(Output::Tool { name, definition })
    }

    /// A legal name that no tool of the client has.
    fn stand_in_name(&self, wanted: &str) -> String {
        let legal: String = wanted
            .chars()
            .map(|c| if is_name_char(c) { c } else { '_' })
            .collect();
        let mut name: String = legal
            .chars()
            .take(self.traits.tool_name_max.saturating_sub(4))
            .collect();
        if name.is_empty() {
            name.push_str("json_answer");
        }
        while self.request.tools.iter().any(|tool| match &tool.kind {
            ToolKind::Function { name: there, .. } | ToolKind::Custom { name: there, .. } => {
                self.names.sent(there) == name
            }
            _ => false,
        }) {
            name.push('_');
        }
        name
    }

    fn tools(&mut self) -> Result<Vec<Value>, Bad> {
        let among = match &self.request.tool_choice {
            Some(ToolChoice::Among { names, .. }) => Some(names),
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

    fn tool(&mut self, index: usize, tool: &Tool) -> Result<Value, Bad> {
        let mut out = match &tool.kind {
            ToolKind::Function {
                name,
                description,
                parameters,
                strict,
            } => {
                // The grammar behind `strict` came with the one for structured output.
                let takes_strict = self.is_native || self.traits.json_schema;
                if *strict == Some(true) && !takes_strict {
                    self.lose("strict");
                }
                let strict = strict.filter(|strict| self.is_native || (*strict && takes_strict));
                let sent = self.names.sent(name).to_owned();
                let description = description.as_deref();
                tools::write_function(&sent, description, parameters.as_ref(), strict)
            }
            ToolKind::Custom {
                name,
                description,
                format,
            } => {
                let sent = self.names.sent(name).to_owned();
                tools::write_custom(&sent, description.as_deref(), format.as_ref())
            }
            ToolKind::WebSearch { location } => tools::write_web_search(tool, location.as_ref()),
            ToolKind::Foreign { format, value } if *format == NAME => return Ok(value.clone()),
            ToolKind::Foreign { value, .. } => {
                // Typed, or an object whose one member is the type.
                let kind = value.get("type").and_then(Value::as_str);
                let only = value.as_object().and_then(|members| members.keys().next());
                let kind = kind.or(only.map(String::as_str)).unwrap_or_default();
                let field = format!("{}[{index}]", self.request.name_of(Field::Tools));
                let why = format!("of type `{kind}` is not available for this model");
                return Err(Bad::new(field, why));
            }
        };
        if let Some(marker) = self.marker(tool.cache.as_deref()) {
            out.insert("cache_control".to_owned(), marker);
        }
        self.lose_own(&tool.own);
        Ok(tools::with_own(out, tool))
    }

    /// A history with calls wants their tools defined, even where none may be called any more.
    fn tools_of_history(&self) -> Vec<Value> {
        let mut names: Vec<&str> = Vec::new();
        for part in self.request.turns.iter().flat_map(|turn| &turn.parts) {
            if let Kind::ToolCall { name, .. } = &part.kind
                && !names.contains(&name.as_str())
            {
                names.push(name);
            }
        }
        let define = |name: &&str| {
            Value::Object(tools::write_function(
                self.names.sent(name),
                None,
                None,
                None,
            ))
        };
        names.iter().map(define).collect()
    }

    /// The member `tool_choice`; adds the tool that stands in for JSON output.
    fn choice(&mut self, output: &Output, tools: &mut Vec<Value>) -> Option<Map<String, Value>> {
        let mut parallel = self.request.parallel_tools;
        let mut choice = match &self.request.tool_choice {
            Some(
                ToolChoice::Auto
                | ToolChoice::Among {
                    required: false, ..
                },
            ) => kind("auto"),
            Some(ToolChoice::None) => kind("none"),
            Some(ToolChoice::Required | ToolChoice::Among { required: true, .. }) => kind("any"),
            Some(ToolChoice::One(name)) => named(self.names.sent(name)),
            None if parallel == Some(false) || (self.is_native && parallel.is_some()) => {
                kind("auto")
            }
            None => Map::new(),
        };
        if tools.is_empty() && !matches!(output, Output::Tool { .. }) {
            if is_forced(self.request.tool_choice.as_ref()) {
                self.lose_field(Field::ToolChoice);
            }
            return None;
        }
        if self.request.tools.is_empty() && !tools.is_empty() {
            choice = kind("none");
        }
        if let Output::Tool { name, definition } = output {
            let is_alone =
                tools.is_empty() || choice.get("type").is_some_and(|kind| kind == "none");
            choice = if is_alone { named(name) } else { kind("any") };
            parallel = if is_alone { Some(false) } else { parallel };
            tools.push(definition.clone());
        }
        let forces = is_forcing(&choice);
        if forces && !self.traits.forced_tools {
            let stands_in = matches!(output, Output::Tool { .. });
            self.lose_field(if stands_in {
                Field::Output
            } else {
                Field::ToolChoice
            });
            choice = kind("auto");
        }
        let says = |kind: &str| choice.get("type").is_some_and(|there| there == kind);
        if let Some(parallel) = parallel.filter(|parallel| self.is_native || !parallel)
            && !choice.is_empty()
            && !says("none")
        {
            choice.insert("disable_parallel_tool_use".to_owned(), json!(!parallel));
        }
        (!choice.is_empty()).then_some(choice)
    }

    /// Thinking, and what gives way to what where the format refuses them together.
    fn think(
        &mut self,
        max_tokens: u64,
        conversation: &Conversation,
        choice: &mut Option<Map<String, Value>>,
    ) -> thinking::Sent {
        let Some(reasoning) = &self.request.reasoning else {
            return thinking::Sent::default();
        };
        self.lose_own(&reasoning.own);
        let mut sent = thinking::write(reasoning, self.traits, max_tokens, self.is_native);
        if sent.is_on && !self.is_native {
            let by_budget = thinks_by_budget(self.traits);
            let cannot = by_budget && (conversation.is_prefilled || conversation.lacks_thinking);
            let is_forcing = choice.as_ref().is_some_and(is_forcing);
            let can_disable = thinking::write(
                &crate::hub::Reasoning {
                    effort: Some(Effort::None),
                    ..Default::default()
                },
                self.traits,
                max_tokens,
                false,
            );
            if cannot || (is_forcing && !can_disable.is_weakened) {
                // A forced call is what the client receives; thinking only makes it better.
                sent = thinking::Sent::off(self.traits);
            } else if is_forcing {
                self.lose_field(Field::ToolChoice);
                if let Some(choice) = choice {
                    choice.insert("type".to_owned(), json!("auto"));
                    choice.shift_remove("name");
                }
            }
        }
        if sent.is_weakened {
            self.lose_field(Field::Reasoning);
        }
        sent
    }

    fn sample(&mut self, thought: &thinking::Sent) -> Sampled {
        let asked = Sampled {
            temperature: self.request.temperature,
            top_p: self.request.top_p,
            top_k: self.request.top_k,
        };
        let mut sent = asked.fitted(self.traits);
        if !self.is_native {
            sent.temperature = sent.temperature.map(|t| t.clamp(0.0, 1.0));
            if thought.is_on {
                sent = sent.beside_thinking();
            }
        }
        let lost = [
            (Field::Temperature, sent.temperature != asked.temperature),
            (Field::TopP, sent.top_p != asked.top_p),
            (Field::TopK, sent.top_k != asked.top_k),
        ];
        for (field, _) in lost.iter().filter(|(_, is_lost)| *is_lost) {
            self.lose_field(*field);
        }
        sent
    }

    fn output_config(&self, effort: Option<&str>, output: &Output) -> Option<Value> {
        let own = self.request.own.for_format(NAME);
        let own = own.and_then(|own| own.get("output_config"));
        let mut config = own.and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(effort) = effort {
            config.insert("effort".to_owned(), json!(effort));
        }
        if let Output::Grammar(schema) = output {
            let format = json!({"type": "json_schema", "schema": schema});
            config.insert("format".to_owned(), format);
        }
        (!config.is_empty()).then_some(Value::Object(config))
    }

    fn stop(&mut self) -> Option<Value> {
        let stop = &self.request.stop;
        let is_blank = |text: &&String| !self.is_native && text.trim().is_empty();
        let kept: Vec<&String> = stop.iter().filter(|text| !is_blank(text)).collect();
        let (is_less, kept) = (kept.len() < stop.len(), json!(kept));
        if is_less {
            self.lose_field(Field::Stop);
        }
        (kept != json!([])).then_some(kept)
    }

    fn metadata(&mut self) -> Option<Value> {
        let own = self.request.own.for_format(NAME);
        let own = own.and_then(|own| own.get("metadata"));
        let mut metadata = own.and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(user) = &self.request.user {
            if self.is_native || user.chars().count() <= LONGEST_USER {
                metadata.insert("user_id".to_owned(), json!(user));
            } else {
                self.lose_field(Field::User);
            }
        }
        (!metadata.is_empty()).then_some(Value::Object(metadata))
    }

    fn service_tier(&mut self) -> Option<Value> {
        let tier = self.request.service_tier.as_deref()?;
        match tier {
            tier if self.is_native => Some(json!(tier)),
            "auto" => Some(json!("auto")),
            "default" | "standard" | "standard_only" => Some(json!("standard_only")),
            _ => {
                self.lose_field(Field::ServiceTier);
                None
            }
        }
    }

    /// Notes what the format has no member for.
    fn lose_the_rest(&mut self) {
        let request = self.request;
        let absent = [
            (Field::Seed, request.seed.is_some()),
            (
                Field::FrequencyPenalty,
                request.frequency_penalty.is_some_and(|p| p != 0.0),
            ),
            (
                Field::PresencePenalty,
                request.presence_penalty.is_some_and(|p| p != 0.0),
            ),
            (Field::Verbosity, request.verbosity.is_some()),
            (Field::CacheKey, request.cache_key.is_some()),
            (Field::Metadata, request.metadata.is_some()),
        ];
        for (field, _) in absent.iter().filter(|(_, is_there)| *is_there) {
            self.lose_field(*field);
        }
        self.lose_own(&request.own);
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
        Some(ToolChoice::Required | ToolChoice::One(_) | ToolChoice::Among { required: true, .. })
    )
}

fn is_forcing(choice: &Map<String, Value>) -> bool {
    choice
        .get("type")
        .is_some_and(|kind| kind == "any" || kind == "tool")
}

/// How many prompt-cache markers the client set.
fn markers(request: &Request) -> usize {
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let on_parts = parts.filter(|part| part.cache.is_some()).count();
    on_parts
        + request
            .tools
            .iter()
            .filter(|tool| tool.cache.is_some())
            .count()
}
