//! Writes everything but the conversation: token cap, sampling, tools, reasoning, text format, metadata, `store` and `include`.

use serde_json::{Map, Value, json};

use super::tools::{write_choice, write_tool};
use super::writer::RequestWriter;
use crate::error::InvalidRequest;
use crate::hub::{
    Effort, OutputFormat, Reasoning, ReasoningControl, RequestField, SamplingSupport, ToolChoice,
    sanitize_id,
};
use crate::openai_service_tiers::SERVICE_TIERS;
use crate::responses::constants::{INCLUDE_LOGPROBS, INCLUDE_REASONING};
use crate::responses::extra_fields::write_extra_fields;
use crate::strict_schema::{keeps_strict, may_be_strict};

/// The smallest `max_output_tokens` that OpenAI accepts.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// The longest `user` and `prompt_cache_key` that OpenAI accepts, in characters.
const MAX_USER_LENGTH: usize = 64;

impl RequestWriter<'_> {
    /// Writes the token cap. `n` above 1 and unsupported stop sequences are errors.
    pub(crate) fn write_limits(&mut self) -> Result<(), InvalidRequest> {
        let request = self.request;
        if let Some(requested) = request.max_tokens {
            let min_tokens = if self.is_own { 1 } else { MIN_OUTPUT_TOKENS };
            let max = self
                .target
                .capabilities
                .max_output_tokens
                .unwrap_or(u64::MAX);
            let cap = requested.max(min_tokens).min(max);
            if cap != requested {
                self.drop_field(RequestField::MaxTokens);
            }
            self.set("max_output_tokens", cap.into());
        }
        if request.n.is_some_and(|n| n > 1) {
            let why = "must be 1: the upstream of this model returns one choice per request";
            return Err(InvalidRequest::new(
                request.client_field_name(RequestField::N),
                why,
            ));
        }
        if !request.stop.is_empty() {
            // OpenAI does not support `stop` in this format; some compatible upstreams do.
            let capabilities = self.target.capabilities;
            if !capabilities.accepts_stop || capabilities.rejects_unknown_fields {
                let why = "is not supported: the upstream of this model has no stop sequences";
                return Err(InvalidRequest::new(
                    request.client_field_name(RequestField::Stop),
                    why,
                ));
            }
            self.set("stop", json!(request.stop));
        }
        Ok(())
    }

    pub(crate) fn write_sampling(&mut self) {
        let request = self.request;
        let (mut temperature, mut top_p) = (request.temperature, request.top_p);
        match self.target.capabilities.sampling {
            SamplingSupport::All => {}
            SamplingSupport::TemperatureOrTopP => top_p = top_p.filter(|_| temperature.is_none()),
            SamplingSupport::None => (temperature, top_p) = (None, None),
        }
        for (name, field, requested, sent) in [
            (
                "temperature",
                RequestField::Temperature,
                request.temperature,
                temperature,
            ),
            ("top_p", RequestField::TopP, request.top_p, top_p),
        ] {
            match (requested, sent) {
                (_, Some(value)) => self.set(name, value.into()),
                (Some(_), None) => self.drop_field(field),
                (None, None) => {}
            }
        }
        for (field, is_lost) in [
            (RequestField::TopK, request.top_k.is_some()),
            (RequestField::Seed, request.seed.is_some()),
            (
                RequestField::FrequencyPenalty,
                is_set(request.frequency_penalty),
            ),
            (
                RequestField::PresencePenalty,
                is_set(request.presence_penalty),
            ),
        ] {
            if is_lost {
                self.drop_field(field);
            }
        }
    }

    pub(crate) fn write_tools(&mut self) -> Result<(), InvalidRequest> {
        let request = self.request;
        if !request.tools.is_empty() {
            let write = |tool| write_tool(tool, request, self.names);
            let tools: Result<Vec<Value>, InvalidRequest> =
                request.tools.iter().map(write).collect();
            self.set("tools", Value::Array(tools?));
        }
        if !self.is_own
            && request
                .tools
                .iter()
                .any(|tool| !keeps_strict(tool, request))
        {
            self.drop_name("strict");
        }
        if request.tools.iter().any(|tool| tool.cache_ttl.is_some()) {
            self.drop_field(RequestField::Cache);
        }
        // Without tools, `tool_choice` is rejected and has no meaning.
        let has_tools = self.is_own || !request.tools.is_empty();
        if let Some(choice) = request.tool_choice.as_ref().filter(|_| has_tools) {
            let choice = match choice {
                forced
                    if forces_tool_use(forced)
                        && !self.target.capabilities.supports_forced_tools =>
                {
                    self.drop_field(RequestField::ToolChoice);
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

    pub(crate) fn write_reasoning(&mut self) {
        let Some(requested) = &self.request.reasoning else {
            return;
        };
        let effort = match (requested.as_effort(), self.target.capabilities.thinking) {
            (effort, ReasoningControl::Unsupported) => {
                if effort != Some(Effort::None) {
                    self.drop_field(RequestField::Reasoning);
                }
                return;
            }
            // Every model accepts `low`.
            (Some(Effort::None), thinking) if !can_disable(thinking) => {
                self.drop_field(RequestField::Reasoning);
                Some(Effort::Low)
            }
            (effort, _) => effort,
        };
        let mut value = Map::new();
        if let Some(effort) = effort {
            value.insert("effort".to_owned(), effort.as_str().into());
        }
        if let Some(summary) = self.reasoning_summary(requested, effort) {
            value.insert("summary".to_owned(), summary.into());
        }
        write_extra_fields(&requested.extra, &mut value);
        if value.contains_key("generate_summary") {
            value.shift_remove("summary");
        }
        if !value.is_empty() || self.is_own {
            self.set("reasoning", Value::Object(value));
        }
    }

    /// The value of `reasoning.summary`. Clients of chat-completions and messages that request
    /// reasoning expect to see it.
    fn reasoning_summary<'r>(
        &self,
        requested: &'r Reasoning,
        effort: Option<Effort>,
    ) -> Option<&'r str> {
        match requested.display.as_deref() {
            Some(word @ ("auto" | "concise" | "detailed")) => Some(word),
            Some(word) if self.is_own => Some(word),
            Some("omitted") => None,
            Some(_) => Some("auto"),
            None if self.is_own || self.request.client_format.name == "generate-content" => None,
            None => (effort != Some(Effort::None)).then_some("auto"),
        }
    }

    /// Writes `text`: output format and verbosity.
    pub(crate) fn write_text(&mut self) {
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
                let name = sanitize_id(name.unwrap_or("reply"), 64, plain);
                let mut format = json!({"type": "json_schema", "name": name, "schema": schema});
                if let Some(description) = description {
                    format["description"] = description.as_str().into();
                }
                // Formats without `strict` always enforce the schema. Here that must be requested, and not every schema can be strict.
                let is_always_strict =
                    ["messages", "generate-content"].contains(&self.request.client_format.name);
                let strict = strict.or((is_always_strict && may_be_strict(schema)).then_some(true));
                if let Some(strict) = strict {
                    format["strict"] = strict.into();
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

    /// Writes `user`, `prompt_cache_key`, `metadata` and `service_tier`.
    pub(crate) fn write_client_info(&mut self) {
        let request = self.request;
        for (name, value) in [
            ("user", &request.user),
            ("prompt_cache_key", &request.cache_key),
        ] {
            let Some(value) = value else { continue };
            let short = match self.is_own {
                true => value.into(),
                false => sanitize_id(value, MAX_USER_LENGTH, |_| true),
            };
            self.set(name, short.as_ref().into());
        }
        if let Some(metadata) = &request.metadata {
            self.set("metadata", metadata.clone());
        }
        match request.service_tier.as_deref() {
            None => {}
            Some("standard_only" | "standard") if !self.is_own => {
                self.set("service_tier", "default".into());
            }
            Some(tier) if self.is_own || SERVICE_TIERS.contains(&tier) => {
                self.set("service_tier", tier.into());
            }
            Some(_) => self.drop_field(RequestField::ServiceTier),
        }
    }

    /// Writes `store`, `include` and `top_logprobs`. Clients of other formats cannot use stored responses, so nothing is stored for them; the
    /// response contains encrypted reasoning instead.
    pub(crate) fn write_storage_options(&mut self) {
        if let Some(k) = self.request.logprobs.filter(|k| *k > 0) {
            self.set("top_logprobs", k.into());
        }
        if self.is_own {
            return;
        }
        self.set("store", false.into());
        let mut include = Vec::new();
        if self.target.capabilities.thinking != ReasoningControl::Unsupported {
            include.push(INCLUDE_REASONING);
        }
        if self.request.logprobs.is_some() {
            include.push(INCLUDE_LOGPROBS);
        }
        if !include.is_empty() {
            self.set("include", json!(include));
        }
    }
}

fn forces_tool_use(choice: &ToolChoice) -> bool {
    matches!(
        choice,
        ToolChoice::Required
            | ToolChoice::Tool(_)
            | ToolChoice::AllowedTools { required: true, .. }
    )
}

fn can_disable(thinking: ReasoningControl) -> bool {
    match thinking {
        ReasoningControl::Unsupported => true,
        ReasoningControl::Effort { can_disable } | ReasoningControl::Budget { can_disable, .. } => {
            can_disable
        }
        ReasoningControl::Level { .. } => false,
    }
}

fn is_set(penalty: Option<f64>) -> bool {
    penalty.is_some_and(|value| value != 0.0)
}
