//! Writes `generationConfig`: sampling, limits, log probabilities, output format, thinking.

use serde_json::{Map, Number, Value, json};

use super::writer::RequestWriter;
use crate::error::InvalidRequest;
use crate::generate_content::constants::{MAX_STOP_SEQUENCES, NAME};
use crate::generate_content::schema;
use crate::hub::{
    Effort, OutputFormat, Reasoning, ReasoningControl, RequestField, SamplingSupport,
};

impl RequestWriter<'_> {
    pub(crate) fn write_generation_config(&mut self) -> Result<Map<String, Value>, InvalidRequest> {
        let mut config = Map::new();
        self.write_sampling(&mut config);
        self.write_limits(&mut config)?;
        self.write_logprobs(&mut config);
        self.write_output(&mut config);
        self.write_thinking(&mut config);
        Ok(config)
    }

    fn write_sampling(&mut self, config: &mut Map<String, Value>) {
        let request = self.request;
        let both = request.temperature.is_some() && request.top_p.is_some();
        let (accepts_sampling, accepts_top_p) = match self.capabilities.sampling {
            SamplingSupport::All => (true, true),
            SamplingSupport::TemperatureOrTopP => (true, !both),
            SamplingSupport::None => (false, false),
        };
        let top_k = request.top_k.map(Number::from);
        for (field, name, value, accepted) in [
            (
                RequestField::Temperature,
                "temperature",
                request.temperature.and_then(json_number),
                accepts_sampling,
            ),
            (
                RequestField::TopP,
                "topP",
                request.top_p.and_then(json_number),
                accepts_top_p,
            ),
            (RequestField::TopK, "topK", top_k, accepts_sampling),
        ] {
            match value {
                Some(value) if accepted => {
                    config.insert(name.to_owned(), Value::Number(value));
                }
                Some(_) => self.drop_field(field),
                None => {}
            }
        }
        for (name, value) in [
            ("presencePenalty", request.presence_penalty),
            ("frequencyPenalty", request.frequency_penalty),
        ] {
            let value = value.and_then(json_number).map(Value::Number);
            config.extend(value.map(|value| (name.to_owned(), value)));
        }
    }

    fn write_limits(&mut self, config: &mut Map<String, Value>) -> Result<(), InvalidRequest> {
        let request = self.request;
        if let Some(requested) = request.max_tokens {
            let max = self.capabilities.max_output_tokens.unwrap_or(u64::MAX);
            if requested > max {
                self.drop_field(RequestField::MaxTokens);
            }
            config.insert("maxOutputTokens".to_owned(), json!(requested.min(max)));
        }
        let stops: Vec<&String> = request
            .stop
            .iter()
            .filter(|stop| !stop.is_empty())
            .collect();
        if stops.len() > MAX_STOP_SEQUENCES {
            let why = format!("must hold at most {MAX_STOP_SEQUENCES} strings");
            return Err(InvalidRequest::new(
                request.client_field_name(RequestField::Stop),
                why,
            ));
        }
        if !stops.is_empty() {
            config.insert("stopSequences".to_owned(), json!(stops));
        }
        if let Some(n) = request.n {
            config.insert("candidateCount".to_owned(), json!(n));
        }
        match request.seed {
            // The API's seed has 32 bits.
            Some(seed) if i32::try_from(seed).is_ok() || self.is_native_client => {
                config.insert("seed".to_owned(), json!(seed));
            }
            Some(_) => self.drop_field(RequestField::Seed),
            None => {}
        }
        Ok(())
    }

    fn write_logprobs(&mut self, config: &mut Map<String, Value>) {
        let Some(top) = self.request.logprobs else {
            return;
        };
        config.insert("responseLogprobs".to_owned(), json!(true));
        if top > 0 {
            config.insert("logprobs".to_owned(), json!(top));
        }
    }

    fn write_output(&mut self, config: &mut Map<String, Value>) {
        let request = self.request;
        let mime = match &request.output {
            None => return,
            Some(OutputFormat::Text) => "text/plain",
            Some(OutputFormat::Json | OutputFormat::Schema { .. }) => "application/json",
        };
        if mime != "text/plain"
            && !request.tools.is_empty()
            && !self.capabilities.supports_tools_with_json
        {
            // These models return 400 if both are set.
            return self.instruct_json_output();
        }
        config.insert("responseMimeType".to_owned(), json!(mime));
        let Some(OutputFormat::Schema {
            schema,
            description,
            ..
        }) = &request.output
        else {
            return;
        };
        let extra = request.extra.for_format(NAME);
        let openapi = extra.and_then(|extra| extra.get(".generationConfig.responseSchema"));
        let (name, mut schema) = match openapi {
            Some(openapi) => ("responseSchema", openapi.clone()),
            None if !self.capabilities.supports_json_schema => {
                ("responseSchema", schema::to_openapi_schema(schema))
            }
            None if self.is_native_client => ("responseJsonSchema", schema.clone()),
            None => {
                let (schema, is_changed) = schema::narrow_to_supported(schema);
                if is_changed {
                    self.drop_field(RequestField::Output);
                }
                ("responseJsonSchema", schema)
            }
        };
        if let (Some(text), Some(members)) = (description, schema.as_object_mut()) {
            members.entry("description").or_insert_with(|| json!(text));
        }
        config.insert(name.to_owned(), schema);
    }

    fn instruct_json_output(&mut self) {
        let mut text =
            "Unless you call a function, answer with JSON only, without any other text.".to_owned();
        if let Some(OutputFormat::Schema { schema, .. }) = &self.request.output {
            text = format!("{text} The JSON must match this JSON Schema: {schema}");
        }
        self.instruction = Some(text);
        self.drop_field(RequestField::Output);
    }

    fn write_thinking(&mut self, config: &mut Map<String, Value>) {
        let request = self.request;
        let Some(requested) = &request.reasoning else {
            return;
        };
        let mut out = Map::new();
        if self.capabilities.thinking == ReasoningControl::Unsupported {
            if requested.as_effort() != Some(Effort::None) {
                self.drop_field(RequestField::Reasoning);
            }
            return;
        }
        let strength = thinking_strength(requested, self.capabilities.thinking);
        let is_off = matches!(strength, Some(ThinkingStrength::Budget(0)));
        if requested.as_effort() == Some(Effort::None) && !is_off {
            self.drop_field(RequestField::Reasoning);
        }
        match strength {
            Some(ThinkingStrength::Budget(budget)) => {
                out.insert("thinkingBudget".to_owned(), json!(budget));
            }
            Some(ThinkingStrength::Level(level)) => {
                out.insert("thinkingLevel".to_owned(), json!(level));
            }
            None => {}
        }
        if let Some(shown) = self.includes_thoughts(requested) {
            out.insert("includeThoughts".to_owned(), json!(shown));
        }
        for (name, value) in requested.extra.for_format(NAME).into_iter().flatten() {
            out.insert(name.clone(), value.clone());
        }
        self.drop_extra(&requested.extra);
        config.insert("thinkingConfig".to_owned(), Value::Object(out));
    }

    /// `includeThoughts`. Clients of chat-completions and messages expect to see the reasoning that
    /// they request.
    fn includes_thoughts(&self, requested: &Reasoning) -> Option<bool> {
        match requested.display.as_deref() {
            Some("omitted" | "none") => self.is_native_client.then_some(false),
            Some(_) => Some(true),
            None => {
                let expected = matches!(
                    self.request.client_format.name,
                    "chat-completions" | "messages"
                );
                let is_off = requested.as_effort() == Some(Effort::None);
                (expected && !is_off).then_some(true)
            }
        }
    }
}

enum ThinkingStrength {
    Budget(i64),
    Level(&'static str),
}

/// The thinking budget or level, whichever the model supports, never both.
fn thinking_strength(
    requested: &Reasoning,
    thinking: ReasoningControl,
) -> Option<ThinkingStrength> {
    match thinking {
        ReasoningControl::Unsupported => None,
        ReasoningControl::Budget {
            min,
            max,
            can_disable,
        } => thinking_budget(requested, i64::from(min), i64::from(max), can_disable)
            .map(ThinkingStrength::Budget),
        ReasoningControl::Level { minimal, medium } => {
            thinking_level(requested.as_effort()?, minimal, medium).map(ThinkingStrength::Level)
        }
        // The model is unknown: pass on the client's settings.
        ReasoningControl::Effort { can_disable } => match (requested.effort, requested.budget) {
            (Some(Effort::None), _) if can_disable => Some(ThinkingStrength::Budget(0)),
            (Some(Effort::XHigh | Effort::Max), _) => Some(ThinkingStrength::Level("XHIGH")),
            (Some(effort), _) => thinking_level(effort, true, true).map(ThinkingStrength::Level),
            (None, Some(budget)) => Some(ThinkingStrength::Budget(budget)),
            (None, None) => None,
        },
    }
}

fn thinking_budget(requested: &Reasoning, min: i64, max: i64, can_disable: bool) -> Option<i64> {
    let tokens = match (requested.budget, requested.effort) {
        (Some(-1), _) => return Some(-1),
        (Some(tokens), _) => tokens,
        (None, Some(effort)) => match effort {
            Effort::None => 0,
            Effort::Minimal | Effort::Low => 1024,
            Effort::Medium => 8192,
            Effort::High => 24_576,
            Effort::XHigh | Effort::Max => max,
        },
        (None, None) if requested.adaptive => return Some(-1),
        (None, None) => return None,
    };
    match tokens {
        0 if can_disable => Some(0),
        tokens => Some(tokens.min(max).max(min)),
    }
}

fn thinking_level(effort: Effort, minimal: bool, medium: bool) -> Option<&'static str> {
    Some(match effort {
        Effort::None | Effort::Minimal if minimal => "MINIMAL",
        Effort::None | Effort::Minimal | Effort::Low => "LOW",
        Effort::Medium if medium => "MEDIUM",
        Effort::Medium | Effort::High | Effort::XHigh | Effort::Max => "HIGH",
    })
}

/// A JSON number; whole values without a decimal point.
fn json_number(value: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}
