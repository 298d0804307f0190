//! `generationConfig`.

use serde_json::{Map, Number, Value, json};

use super::super::{NAME, schema};
use super::Writer;
use crate::error::Bad;
use crate::hub::{Effort, Field, OutputFormat, Reasoning, Sampling, Thinking};

/// The wire's limit of stop sequences.
const MOST_STOPS: usize = 5;

impl Writer<'_> {
    pub(super) fn config(&mut self) -> Result<Map<String, Value>, Bad> {
        let mut config = Map::new();
        self.sampling(&mut config);
        self.limits(&mut config)?;
        self.logprobs(&mut config);
        self.output(&mut config);
        self.thinking(&mut config);
        Ok(config)
    }

    fn sampling(&mut self, config: &mut Map<String, Value>) {
        let request = self.request;
        let both = request.temperature.is_some() && request.top_p.is_some();
        let (takes_any, takes_top_p) = match self.traits.sampling {
            Sampling::All => (true, true),
            Sampling::One => (true, !both),
            Sampling::None => (false, false),
        };
        let top_k = request.top_k.map(Number::from);
        for (field, name, value, taken) in [
            (
                Field::Temperature,
                "temperature",
                request.temperature.and_then(number),
                takes_any,
            ),
            (
                Field::TopP,
                "topP",
                request.top_p.and_then(number),
                takes_top_p,
            ),
            (Field::TopK, "topK", top_k, takes_any),
        ] {
            match value {
                Some(value) if taken => {
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
            let value = value.and_then(number).map(Value::Number);
            config.extend(value.map(|value| (name.to_owned(), value)));
        }
    }

    fn limits(&mut self, config: &mut Map<String, Value>) -> Result<(), Bad> {
        let request = self.request;
        if let Some(asked) = request.max_tokens {
            let most = self.traits.max_output.unwrap_or(u64::MAX);
            config.insert("maxOutputTokens".to_owned(), json!(asked.min(most)));
        }
        let stops: Vec<&String> = request
            .stop
            .iter()
            .filter(|stop| !stop.is_empty())
            .collect();
        if stops.len() > MOST_STOPS {
            let why = format!("must hold at most {MOST_STOPS} strings");
            return Err(Bad::new(request.name_of(Field::Stop), why));
        }
        if !stops.is_empty() {
            config.insert("stopSequences".to_owned(), json!(stops));
        }
        if let Some(n) = request.n {
            config.insert("candidateCount".to_owned(), json!(n));
        }
        match request.seed {
            // The wire's seed has 32 bits.
            Some(seed) if i32::try_from(seed).is_ok() || self.native => {
                config.insert("seed".to_owned(), json!(seed));
            }
            Some(_) => self.drop_field(Field::Seed),
            None => {}
        }
        Ok(())
    }

    fn logprobs(&mut self, config: &mut Map<String, Value>) {
        let Some(top) = self.request.logprobs else {
            return;
        };
        config.insert("responseLogprobs".to_owned(), json!(true));
        if top > 0 {
            config.insert("logprobs".to_owned(), json!(top));
        }
    }

    fn output(&mut self, config: &mut Map<String, Value>) {
        let request = self.request;
        let mime = match &request.output {
            None => return,
            Some(OutputFormat::Text) => "text/plain",
            Some(OutputFormat::Json | OutputFormat::Schema { .. }) => "application/json",
        };
        if mime != "text/plain" && !request.tools.is_empty() && !self.traits.tools_with_json {
            // Both together are a 400 there.
            return self.ask_for_json();
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
        let own = request.own.for_format(NAME);
        let older = own.and_then(|own| own.get(".generationConfig.responseSchema"));
        let (name, mut schema) = match older {
            Some(older) => ("responseSchema", older.clone()),
            None if !self.traits.json_schema => ("responseSchema", schema::to_older(schema)),
            None if self.native => ("responseJsonSchema", schema.clone()),
            None => ("responseJsonSchema", schema::narrowed(schema)),
        };
        if let (Some(text), Some(members)) = (description, schema.as_object_mut()) {
            members.entry("description").or_insert_with(|| json!(text));
        }
        config.insert(name.to_owned(), schema);
    }

    fn ask_for_json(&mut self) {
        let mut text =
            "Unless you call a function, answer with JSON only, without any other text.".to_owned();
        if let Some(OutputFormat::Schema { schema, .. }) = &self.request.output {
            text = format!("{text} The JSON must match this JSON Schema: {schema}");
        }
        self.instruction = Some(text);
        self.drop_field(Field::Output);
    }

    fn thinking(&mut self, config: &mut Map<String, Value>) {
        let request = self.request;
        let Some(asked) = &request.reasoning else {
            return;
        };
        let mut out = Map::new();
        if self.traits.thinking == Thinking::No {
            if asked.as_effort() != Some(Effort::None) {
                self.drop_field(Field::Reasoning);
            }
            return;
        }
        match strength(asked, self.traits.thinking) {
            Some(Strength::Budget(budget)) => {
                out.insert("thinkingBudget".to_owned(), json!(budget));
            }
            Some(Strength::Level(level)) => {
                out.insert("thinkingLevel".to_owned(), json!(level));
            }
            None => {}
        }
        if let Some(shown) = self.is_shown(asked) {
            out.insert("includeThoughts".to_owned(), json!(shown));
        }
        for (name, value) in asked.own.for_format(NAME).into_iter().flatten() {
            out.insert(name.clone(), value.clone());
        }
        self.drop_own(&asked.own);
        config.insert("thinkingConfig".to_owned(), Value::Object(out));
    }

    /// Whether thoughts are asked for. Clients of two formats expect to see them when they name how much to think.
    fn is_shown(&self, asked: &Reasoning) -> Option<bool> {
        match asked.show.as_deref() {
            Some("omitted" | "none") => self.native.then_some(false),
            Some(_) => Some(true),
            None => {
                let expected = matches!(self.request.client, "chat-completions" | "messages");
                let is_off = asked.as_effort() == Some(Effort::None);
                (expected && !is_off).then_some(true)
            }
        }
    }
}

enum Strength {
    Budget(i64),
    Level(&'static str),
}

/// How much to think, as the model takes it. Never both.
fn strength(asked: &Reasoning, thinking: Thinking) -> Option<Strength> {
    match thinking {
        Thinking::No => None,
        Thinking::Budget {
            min,
            max,
            can_disable,
        } => budget(asked, i64::from(min), i64::from(max), can_disable).map(Strength::Budget),
        Thinking::Level { minimal, medium } => {
            level(asked.as_effort()?, minimal, medium).map(Strength::Level)
        }
        // Nothing is known of the model: what was said, as it was said.
        Thinking::Effort { can_disable } => match (asked.effort, asked.budget) {
            (Some(Effort::None), _) if can_disable => Some(Strength::Budget(0)),
            (Some(Effort::XHigh | Effort::Max), _) => Some(Strength::Level("XHIGH")),
            (Some(effort), _) => level(effort, true, true).map(Strength::Level),
            (None, Some(budget)) => Some(Strength::Budget(budget)),
            (None, None) => None,
        },
    }
}

fn budget(asked: &Reasoning, min: i64, max: i64, can_disable: bool) -> Option<i64> {
    let tokens = match (asked.budget, asked.effort) {
        (Some(-1), _) => return Some(-1),
        (Some(tokens), _) => tokens,
        (None, Some(effort)) => match effort {
            Effort::None => 0,
            Effort::Minimal | Effort::Low => 1024,
            Effort::Medium => 8192,
            Effort::High => 24_576,
            Effort::XHigh | Effort::Max => max,
        },
        (None, None) if asked.adaptive => return Some(-1),
        (None, None) => return None,
    };
    match tokens {
        0 if can_disable => Some(0),
        tokens => Some(tokens.min(max).max(min)),
    }
}

fn level(effort: Effort, minimal: bool, medium: bool) -> Option<&'static str> {
    Some(match effort {
        Effort::None | Effort::Minimal if minimal => "MINIMAL",
        Effort::None | Effort::Minimal | Effort::Low => "LOW",
        Effort::Medium if medium => "MEDIUM",
        Effort::Medium | Effort::High | Effort::XHigh | Effort::Max => "HIGH",
    })
}

/// A number on the wire: whole ones without a point.
fn number(value: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}
