//! Generate-content: a request judged.

use serde_json::{Value, json};

use super::words::{self, invalid};
use super::{answer, contents, models, schema, tables, tools};
use crate::place::{Place, Style};
use crate::plan::{Ask, Plan};
use crate::provider::Work;
use crate::refusal::{Checked, Judged};
use crate::script::Answer;
use crate::shape::{field, list_of, text_of};

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
    pub(super) ask: Ask,
    pub(super) model: String,
    pub(super) stream: Stream,
    /// Whether thoughts are shown.
    pub(super) shows: bool,
}

impl Generate {
    /// The text that the counting of tokens goes by.
    pub(super) fn asked(&self) -> &str {
        self.ask.results.as_ref().unwrap_or(&self.ask.text)
    }
}

impl Work for Generate {
    fn ask(&self) -> &Ask {
        &self.ask
    }

    fn answer(&self, plan: &Plan) -> Judged<Answer> {
        Ok(answer::make(self, plan))
    }
}

pub(super) fn read(body: &Value, model: &str, stream: Stream) -> Judged<Generate> {
    let root = Place::root(Style::Snake);
    tables::REQUEST
        .check(body, &root)
        .map_err(|flaw| words::flaw(&flaw))?;
    let nothing = Value::Null;
    let config = field(body, "generationConfig").unwrap_or(&nothing);
    let thinking = field(config, "thinkingConfig").unwrap_or(&nothing);
    thoughts(thinking, model)?;
    let stops = list_of(config, "stopSequences")
        .iter()
        .filter_map(Value::as_str);
    let budget = field(thinking, "thinkingBudget").and_then(Value::as_i64);
    let mut ask = Ask {
        parallel: true,
        thinking: models::thinks(model) && budget != Some(0),
        stops: stops.map(str::to_owned).collect(),
        limit: number(config, "maxOutputTokens"),
        count: number(config, "candidateCount").unwrap_or(1) as usize,
        ..Ask::default()
    };
    if let Some(system) = field(body, "systemInstruction")
        && list_of(system, "parts").is_empty()
    {
        let message = "* GenerateContentRequest.system_instruction.parts: must not be empty.\n";
        return Err(Box::new(invalid("empty-parts", message)));
    }
    contents::read(body, model, &mut ask)?;
    tools::read(body, model, &mut ask)?;
    ask.schema = output(config, model, !ask.tools.is_empty())?;
    Ok(Generate {
        ask,
        model: model.to_owned(),
        stream,
        shows: field(thinking, "includeThoughts") == Some(&Value::Bool(true)),
    })
}

fn number(value: &Value, name: &str) -> Option<u64> {
    field(value, name).and_then(Value::as_f64).map(|n| n as u64)
}

fn refuse(rule: &'static str, message: impl Into<String>) -> Checked {
    Err(Box::new(invalid(rule, message)))
}

fn thoughts(thinking: &Value, model: &str) -> Checked {
    if thinking.is_null() {
        return Ok(());
    }
    if !models::thinks(model) {
        return refuse("thinking-model", "Thinking is not enabled for this model");
    }
    let budget = field(thinking, "thinkingBudget").and_then(Value::as_i64);
    let level = text_of(thinking, "thinkingLevel");
    if budget.is_some() && level.is_some() {
        let message = "You can only set only one of thinking budget and thinking level.";
        return refuse("budget-and-level", message);
    }
    if level.is_some() && !models::is_third(model) {
        return refuse(
            "thinking-level",
            "Thinking level is not supported for this model.",
        );
    }
    let Some(budget) = budget else {
        return Ok(());
    };
    let (range, off) = models::budgets(model);
    if budget == 0 && !off && !models::is_third(model) {
        let message = "Budget 0 is invalid. This model only works in thinking mode.";
        return refuse("thinking-budget", message);
    }
    if budget > 0 && !range.contains(&budget) {
        let message = format!(
            "The thinking budget {budget} is invalid. Please choose a value between {} and {}.",
            range.start(),
            range.end()
        );
        return refuse("thinking-budget", message);
    }
    Ok(())
}

/// The schema that the answer has to follow, if any.
fn output(config: &Value, model: &str, functions: bool) -> Judged<Option<Value>> {
    let mime = text_of(config, "responseMimeType").unwrap_or("text/plain");
    let own = field(config, "responseSchema");
    let json = field(config, "responseJsonSchema");
    if own.is_some() && json.is_some() {
        let message = "Only one of response_schema and response_json_schema may be set.";
        return Err(Box::new(invalid("two-schemas", message)));
    }
    if mime == "text/plain" && (own.is_some() || json.is_some()) {
        let message = "Function calling config: response_schema is only supported with \
            response_mime_type 'application/json'.";
        return Err(Box::new(invalid("schema-mime-type", message)));
    }
    if mime == "application/json" && functions && !models::is_third(model) {
        let message = "Function calling with a response mime type: 'application/json' is \
            unsupported";
        return Err(Box::new(invalid("functions-and-json", message)));
    }
    if let Some(own) = own {
        let newer = models::is_third(model);
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
