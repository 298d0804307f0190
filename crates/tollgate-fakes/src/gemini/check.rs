//! Generate-content: a request accepted.

use serde_json::{Value, json};

use super::{SPEC, contents, is_third, normal, response, schema, tools};
use crate::chat_output::{ChatOutput, ChatPrompt};
use crate::event_stream::Answer;
use crate::provider::ChatRequest;
use crate::rejection::OrRejected;
use crate::tables::path::{JsonPath, PathStyle};
use crate::tables::schema::{field, list_of, text_of};

/// How the answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    No,
    Sse,
    /// One JSON array, piece by piece.
    Array,
}

/// A request in order.
pub(super) struct Generate {
    pub(super) prompt: ChatPrompt,
    pub(super) model: String,
    pub(super) stream: Stream,
    /// Whether thoughts are shown.
    pub(super) shows: bool,
}

impl Generate {
    /// The text that the counting of tokens goes by.
    pub(super) fn asked(&self) -> &str {
        self.prompt.results.as_ref().unwrap_or(&self.prompt.text)
    }
}

impl ChatRequest for Generate {
    fn prompt(&self) -> &ChatPrompt {
        &self.prompt
    }

    fn answer(&self, plan: &ChatOutput) -> OrRejected<Answer> {
        Ok(response::make(self, plan))
    }
}

pub(super) fn read(body: &Value, model: &str, stream: Stream) -> OrRejected<Generate> {
    let root = JsonPath::root(PathStyle::Snake);
    SPEC.check_value("generate", body, &root, Value::Null)?;
    let body = &normal(body);
    let config = &body["generationConfig"];
    let thinking = &config["thinkingConfig"];
    let vars = |functions: bool| {
        let vars = json!({"normal": body, "model": model, "has_functions": functions});
        vars.as_object().cloned().unwrap_or_default()
    };
    SPEC.check_body("generate", body, "generate", &vars(false), None)?;
    let stops = list_of(config, "stopSequences")
        .iter()
        .filter_map(Value::as_str);
    let budget = field(thinking, "thinkingBudget").and_then(Value::as_i64);
    let mut prompt = ChatPrompt {
        parallel: true,
        thinking: (is_third(model) || model.contains("gemini-2.5")) && budget != Some(0),
        stops: stops.map(str::to_owned).collect(),
        limit: number(config, "maxOutputTokens"),
        count: number(config, "candidateCount").unwrap_or(1) as usize,
        ..ChatPrompt::default()
    };
    contents::read(body, model, &mut prompt)?;
    tools::read(body, model, &mut prompt)?;
    let functions = !prompt.tools.is_empty();
    SPEC.check_body("output", body, "generate", &vars(functions), None)?;
    prompt.schema = output(config, model)?;
    Ok(Generate {
        prompt,
        model: model.to_owned(),
        stream,
        shows: field(thinking, "includeThoughts") == Some(&Value::Bool(true)),
    })
}

fn number(value: &Value, name: &str) -> Option<u64> {
    field(value, name).and_then(Value::as_f64).map(|n| n as u64)
}

/// The schema that the answer has to follow, if any.
fn output(config: &Value, model: &str) -> OrRejected<Option<Value>> {
    let mime = text_of(config, "responseMimeType").unwrap_or("text/plain");
    let own = field(config, "responseSchema");
    let json = field(config, "responseJsonSchema");
    if let Some(own) = own {
        let newer = is_third(model);
        schema::own(own, "generation_config.response_schema", newer)?;
    }
    if let Some(json) = json {
        schema::json(json, "generation_config.response_json_schema")?;
    }
    if let Some(schema) = own.or(json) {
        return Ok(Some(schema.clone()));
    }
    let properties = json!({"answer": {"type": "string"}});
    let any = json!({"type": "object", "properties": properties});
    Ok((mime == "application/json").then_some(any))
}
