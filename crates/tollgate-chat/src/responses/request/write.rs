//! A request of the hub written for an upstream of this format.

use serde_json::{Map, Value, json};

use super::history::History;
use super::pairs::{join_reasoning, paired, unpaired};
use super::tools::{SEARCH_SIZE, write_choice, write_tool};
use crate::error::Bad;
use crate::format::{Target, Written};
use crate::hub::{
    Effort, Field, Kind, OutputFormat, Own, Part, Reasoning, Request, Role, Sampling, Thinking,
    ToolChoice, ToolNames, Turn, fitting_id,
};
use crate::responses::wire::{
    INCLUDE_LOGPROBS, INCLUDE_REASONING, NAME, NOTE_INPUT, NOTE_INSTRUCTIONS, has_note, put_back,
};

/// The least that OpenAI takes as `max_output_tokens`.
const LEAST_CAP: u64 = 16;

/// The longest `user` and `prompt_cache_key` that OpenAI takes.
const USER_MAX: usize = 64;

/// Members that chat-completions has by the same names and with the same meaning.
const SHARED: [&str; 4] = [
    "moderation",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
];

/// See [`crate::Format::write_request`].
pub(in crate::responses) fn write_request(
    request: &Request,
    target: &Target<'_>,
) -> Result<Written, Bad> {
    if let Some(member) = request.own_that_matters_to(NAME) {
        let why = "cannot be carried to the upstream of this model";
        return Err(Bad::new(member, why));
    }
    let names = ToolNames::of(request, target.traits.tool_name_max, |_, c| {
        c.is_ascii_alphanumeric() || c == '_' || c == '-'
    });
    let mut writing = Writing::new(request, target, &names);
    writing.set("model", target.model.into());
    writing.conversation()?;
    writing.limits()?;
    writing.sampling();
    writing.tools()?;
    writing.reasoning();
    writing.text();
    writing.about_the_client();
    writing.stored();
    if target.stream {
        writing.set("stream", true.into());
    }
    writing.own();
    let Writing { body, dropped, .. } = writing;
    Ok(Written {
        body: crate::text::of_object(&body),
        dropped,
        renamed_tools: names.renamed(),
        ..Written::default()
    })
}

/// A request on its way.
pub(super) struct Writing<'a> {
    request: &'a Request,
    target: &'a Target<'a>,
    names: &'a ToolNames,
    /// The client speaks this format too.
    is_own: bool,
    pub(super) body: Map<String, Value>,
    dropped: Vec<String>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(request: &'a Request, target: &'a Target<'a>, names: &'a ToolNames) -> Self {
        Self {
            request,
            target,
            names,
            is_own: request.client == NAME,
            body: Map::new(),
            dropped: Vec::new(),
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.body.insert(name.to_owned(), value);
    }

    fn drop(&mut self, field: Field) {
        self.drop_named(self.request.name_of(field));
    }

    fn drop_named(&mut self, name: &str) {
        if !self.dropped.iter().any(|there| there == name) {
            self.dropped.push(name.to_owned());
        }
    }

    /// `instructions` and `input`.
    fn conversation(&mut self) -> Result<(), Bad> {
        let turns = &self.request.turns;
        let first = turns
            .iter()
            .take_while(|turn| is_instruction(turn, self.is_own))
            .count();
        if first > 0 {
            let texts = turns[..first].iter().flat_map(texts);
            let joined = texts.collect::<Vec<_>>().join("\n\n");
            self.set("instructions", joined.into());
        }
        if let [turn] = &turns[first..]
            && has_note(&turn.own, NOTE_INPUT)
        {
            let text = texts(turn).collect::<String>();
            self.set("input", text.into());
            return Ok(());
        }
        let mut history = History::new(self.request, self.names);
        for (at, turn) in turns.iter().enumerate().skip(first) {
            history.turn(at, turn)?;
        }
        let History {
            items,
            weakened,
            lost,
            ..
        } = history;
        for field in weakened {
            self.drop(field);
        }
        for name in lost {
            self.drop_named(&name);
        }
        let (items, lost) = join_reasoning(items);
        if lost {
            self.drop(Field::PastReasoning);
        }
        let items = match self.is_own {
            true => unpaired(items),
            false => paired(items),
        };
        if !items.is_empty() || !self.is_own {
            self.set("input", Value::Array(items));
        }
        Ok(())
    }

    /// The cap, and what this format cannot do at all.
    pub(super) fn limits(&mut self) -> Result<(), Bad> {
        let request = self.request;
        if let Some(asked) = request.max_tokens {
            let least = if self.is_own { 1 } else { LEAST_CAP };
            let most = self.target.traits.max_output.unwrap_or(u64::MAX);
            let cap = asked.max(least).min(most);
            if cap != asked {
                self.drop(Field::MaxTokens);
            }
            self.set("max_output_tokens", cap.into());
        }
        if request.n.is_some_and(|n| n > 1) {
            let why = "must be 1: the upstream of this model gives one reply at a time";
            return Err(Bad::new(request.name_of(Field::N), why));
        }
        if !request.stop.is_empty() {
            // OpenAI itself has no such field here; some who speak its format do.
            let traits = self.target.traits;
            if !traits.takes_stop || traits.strict_fields {
                let why = "cannot be used: the upstream of this model has no stop sequences";
                return Err(Bad::new(request.name_of(Field::Stop), why));
            }
            self.set("stop", json!(request.stop));
        }
        Ok(())
    }

    pub(super) fn sampling(&mut self) {
        let request = self.request;
        let (mut temperature, mut top_p) = (request.temperature, request.top_p);
        match self.target.traits.sampling {
            Sampling::All => {}
            Sampling::One => top_p = top_p.filter(|_| temperature.is_none()),
            Sampling::None => (temperature, top_p) = (None, None),
        }
        for (name, field, asked, sent) in [
            (
                "temperature",
                Field::Temperature,
                request.temperature,
                temperature,
            ),
            ("top_p", Field::TopP, request.top_p, top_p),
        ] {
            match (asked, sent) {
                (_, Some(value)) => self.set(name, value.into()),
                (Some(_), None) => self.drop(field),
                (None, None) => {}
            }
        }
        for (field, is_lost) in [
            (Field::TopK, request.top_k.is_some()),
            (Field::Seed, request.seed.is_some()),
            (Field::FrequencyPenalty, is_set(request.frequency_penalty)),
            (Field::PresencePenalty, is_set(request.presence_penalty)),
        ] {
            if is_lost {
                self.drop(field);
            }
        }
    }

    pub(super) fn tools(&mut self) -> Result<(), Bad> {
        let request = self.request;
        if !request.tools.is_empty() {
            let write = |tool| write_tool(tool, request, self.names);
            let tools: Result<Vec<Value>, Bad> = request.tools.iter().map(write).collect();
            self.set("tools", Value::Array(tools?));
        }
        if request.tools.iter().any(|tool| tool.cache.is_some()) {
            self.drop(Field::Cache);
        }
        // Without tools a choice is refused, and means nothing.
        let has_tools = self.is_own || !request.tools.is_empty();
        if let Some(choice) = request.tool_choice.as_ref().filter(|_| has_tools) {
            let choice = match choice {
                forced if is_forced(forced) && !self.target.traits.forced_tools => {
                    self.drop(Field::ToolChoice);
                    &ToolChoice::Auto
                }
                other => other,
            };
            self.set("tool_choice", write_choice(choice, request, self.names));
        }
        if let Some(parallel) = request.parallel_tools.filter(|_| has_tools) {
            self.set("parallel_tool_calls", parallel.into());
        }
        Ok(())
    }

    pub(super) fn reasoning(&mut self) {
        let Some(asked) = &self.request.reasoning else {
            return;
        };
        let effort = match (asked.as_effort(), self.target.traits.thinking) {
            (effort, Thinking::No) => {
                if effort != Some(Effort::None) {
                    self.drop(Field::Reasoning);
                }
                return;
            }
            // The least that every model takes.
            (Some(Effort::None), thinking) if !can_disable(thinking) => {
                self.drop(Field::Reasoning);
                Some(Effort::Low)
            }
            (effort, _) => effort,
        };
        let mut value = Map::new();
        if let Some(effort) = effort {
            value.insert("effort".to_owned(), effort.word().into());
        }
        if let Some(summary) = self.summary(asked, effort) {
            value.insert("summary".to_owned(), summary.into());
        }
        put_back(&asked.own, &mut value);
        if value.contains_key("generate_summary") {
            value.shift_remove("summary");
        }
        if !value.is_empty() || self.is_own {
            self.set("reasoning", Value::Object(value));
        }
    }

    /// The summary to ask for. Clients of chat-completions and messages who ask for thinking expect to see it.
    fn summary<'r>(&self, asked: &'r Reasoning, effort: Option<Effort>) -> Option<&'r str> {
        match asked.show.as_deref() {
            Some(word @ ("auto" | "concise" | "detailed")) => Some(word),
            Some(word) if self.is_own => Some(word),
            Some("omitted") => None,
            Some(_) => Some("auto"),
            None if self.is_own || self.request.client == "generate-content" => None,
            None => (effort != Some(Effort::None)).then_some("auto"),
        }
    }

    /// `text`: format and verbosity.
    pub(super) fn text(&mut self) {
        let mut text = Map::new();
        let format = match &self.request.output {
            None => None,
            Some(OutputFormat::Text) => Some(json!({"type": "text"})),
            Some(OutputFormat::Json) => Some(json!({"type": "json_object"})),
            Some(OutputFormat::Schema {
                name,
                description,
                schema,
                strict,
            }) => {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                let name = name.as_deref().filter(|name| !name.is_empty());
                let name = fitting_id(name.unwrap_or("reply"), 64, plain);
                let mut format = json!({"type": "json_schema", "name": name, "schema": schema});
                if let Some(description) = description {
                    format["description"] = description.as_str().into();
                }
                if let Some(strict) = strict {
                    format["strict"] = (*strict).into();
                }
                Some(format)
            }
        };
        text.extend(format.map(|format| ("format".to_owned(), format)));
        if let Some(word) = &self.request.verbosity {
            text.insert("verbosity".to_owned(), word.as_str().into());
        }
        if !text.is_empty() {
            self.set("text", Value::Object(text));
        }
    }

    /// Who asks, labels, tier, cache key.
    pub(super) fn about_the_client(&mut self) {
        let request = self.request;
        for (name, value) in [
            ("user", &request.user),
            ("prompt_cache_key", &request.cache_key),
        ] {
            let Some(value) = value else { continue };
            let short = match self.is_own {
                true => value.into(),
                false => fitting_id(value, USER_MAX, |_| true),
            };
            self.set(name, short.as_ref().into());
        }
        if let Some(metadata) = &request.metadata {
            self.set("metadata", metadata.clone());
        }
        match request.service_tier.as_deref() {
            None => {}
            Some("standard_only") => self.set("service_tier", "default".into()),
            Some(tier) => self.set("service_tier", tier.into()),
        }
    }

    /// Nothing is kept at the vendor for clients who cannot know of it; what they need to go on comes back with the reply.
    fn stored(&mut self) {
        if let Some(k) = self.request.logprobs.filter(|k| *k > 0) {
            self.set("top_logprobs", k.into());
        }
        if self.is_own {
            return;
        }
        self.set("store", false.into());
        let mut include = Vec::new();
        if self.target.traits.thinking != Thinking::No {
            include.push(INCLUDE_REASONING);
        }
        if self.request.logprobs.is_some() {
            include.push(INCLUDE_LOGPROBS);
        }
        if !include.is_empty() {
            self.set("include", json!(include));
        }
    }

    /// Members of this format come back; those of others are named, but for the few that mean the same here.
    pub(super) fn own(&mut self) {
        let request = self.request;
        let mut back = Map::new();
        put_back(&request.own, &mut back);
        for (name, value) in back {
            match (self.body.get_mut(&name), value) {
                (Some(Value::Object(there)), Value::Object(more)) => there.extend(more),
                (_, value) => self.set(&name, value),
            }
        }
        if let Some(own) = request.own.for_format("chat-completions") {
            for name in SHARED {
                if let Some(value) = own.get(name) {
                    self.set(name, value.clone());
                }
            }
        }
        // `role` is the spelling `developer`, which is what system turns are here.
        let is_shared = |name: &str| {
            request.client == "chat-completions"
                && (SHARED.contains(&name) || matches!(name, SEARCH_SIZE | "role"))
        };
        let lost: Vec<&str> = owns(request).flat_map(|own| own.lost_to(NAME)).collect();
        for name in lost.into_iter().filter(|name| !is_shared(name)) {
            self.drop_named(name);
        }
    }
}

/// Everything that a request keeps for its format, once, outer before inner.
fn owns(request: &Request) -> impl Iterator<Item = &Own> {
    let outer = std::iter::once(&request.own);
    let reasoning = request.reasoning.iter().map(|reasoning| &reasoning.own);
    let tools = request.tools.iter().map(|tool| &tool.own);
    let turns = request.turns.iter().flat_map(|turn| {
        let parts = turn.parts.iter();
        let parts = parts.flat_map(|part| std::iter::once(part).chain(inner(part)));
        std::iter::once(&turn.own).chain(parts.map(|part| &part.own))
    });
    outer.chain(reasoning).chain(tools).chain(turns)
}

/// What stands in a tool's result.
fn inner(part: &Part) -> &[Part] {
    match &part.kind {
        Kind::ToolResult { content, .. } => content,
        _ => &[],
    }
}

/// Whether a turn goes into `instructions`: the one that came so, or the system text at the front of another format.
pub(super) fn is_instruction(turn: &Turn, is_own: bool) -> bool {
    if is_own {
        return has_note(&turn.own, NOTE_INSTRUCTIONS);
    }
    let is_text = |part: &Part| matches!(part.kind, Kind::Text { .. }) && part.cache.is_none();
    turn.role == Role::System && turn.parts.iter().all(is_text)
}

/// The texts of a turn.
pub(super) fn texts(turn: &Turn) -> impl Iterator<Item = &str> {
    turn.parts.iter().filter_map(|part| match &part.kind {
        Kind::Text { text, .. } => Some(text.as_str()),
        _ => None,
    })
}

fn is_forced(choice: &ToolChoice) -> bool {
    matches!(
        choice,
        ToolChoice::Required | ToolChoice::One(_) | ToolChoice::Among { required: true, .. }
    )
}

fn can_disable(thinking: Thinking) -> bool {
    match thinking {
        Thinking::No => true,
        Thinking::Effort { can_disable } | Thinking::Budget { can_disable, .. } => can_disable,
        Thinking::Level { .. } => false,
    }
}

fn is_set(penalty: Option<f64>) -> bool {
    penalty.is_some_and(|value| value != 0.0)
}
