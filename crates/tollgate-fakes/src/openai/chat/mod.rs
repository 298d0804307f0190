//! Chat-completions: a request judged.

mod answer;
mod messages;
mod tables;

use serde_json::{Value, json};

use super::words::{self, invalid, invalid_value, unsupported, unsupported_value};
use super::{models, schema, tools};
use crate::place::{Place, Style};
use crate::plan::{Ask, Plan};
use crate::provider::Work;
use crate::refusal::{Checked, Judged};
use crate::script::Answer;
use crate::shape::{field, list_of, text_of};

/// A request in order.
pub(super) struct Chat {
    ask: Ask,
    model: String,
    stream: bool,
    include_usage: bool,
    logprobs: bool,
}

impl Work for Chat {
    fn ask(&self) -> &Ask {
        &self.ask
    }

    fn answer(&self, plan: &Plan) -> Judged<Answer> {
        answer::make(self, plan)
    }
}

pub(super) fn read(body: &Value) -> Judged<Chat> {
    let root = Place::root(Style::Brackets);
    let model = text_of(body, "model").unwrap_or_default();
    let foreign = models::is_foreign(model);
    if !foreign {
        tables::REQUEST
            .check(body, &root)
            .map_err(|flaw| words::flaw(&flaw))?;
        parameters(body, model)?;
    }
    let is = |name: &str| body.get(name) == Some(&Value::Bool(true));
    let effort = text_of(body, "reasoning_effort");
    let mut ask = Ask {
        parallel: body.get("parallel_tool_calls") != Some(&Value::Bool(false)),
        thinking: (foreign || models::reasons(model)) && effort != Some("none"),
        stops: stops(body),
        limit: ["max_completion_tokens", "max_tokens"]
            .iter()
            .find_map(|name| field(body, name)?.as_u64()),
        count: field(body, "n").and_then(Value::as_u64).unwrap_or(1) as usize,
        ..Ask::default()
    };
    messages::read(body, &root, &mut ask)?;
    read_tools(body, &root, &mut ask)?;
    ask.schema = response_format(body)?;
    let options = field(body, "stream_options");
    Ok(Chat {
        ask,
        model: model.to_owned(),
        stream: is("stream"),
        include_usage: options.is_some_and(|o| o.get("include_usage") == Some(&Value::Bool(true))),
        logprobs: is("logprobs"),
    })
}

/// Rules that go over several fields, and those of single models.
fn parameters(body: &Value, model: &str) -> Checked {
    let has = |name: &str| field(body, name).is_some();
    let is = |name: &str| body.get(name) == Some(&Value::Bool(true));
    if has("stream_options") && !is("stream") {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(Box::new(
            invalid("stream-options", message).param("stream_options"),
        ));
    }
    if has("top_logprobs") && !is("logprobs") {
        let message = "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.";
        return Err(Box::new(
            invalid("top-logprobs", message).param("top_logprobs"),
        ));
    }
    if has("max_tokens") && has("max_completion_tokens") {
        let message =
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        return Err(Box::new(invalid("two-limits", message).param("max_tokens")));
    }
    if !has("tools") {
        for name in ["tool_choice", "parallel_tool_calls"] {
            if has(name) {
                let message = format!(
                    "Invalid value for '{name}': '{name}' is only allowed when 'tools' are \
                        specified."
                );
                return Err(Box::new(
                    invalid("choice-without-tools", message).param(name),
                ));
            }
        }
    }
    if !models::reasons(model) {
        return match field(body, "reasoning_effort") {
            Some(_) => Err(Box::new(unsupported("reasoning_effort", None))),
            None => Ok(()),
        };
    }
    if has("max_tokens") {
        return Err(Box::new(unsupported(
            "max_tokens",
            Some("max_completion_tokens"),
        )));
    }
    if has("stop") && models::never_stops(model) {
        return Err(Box::new(unsupported("stop", None)));
    }
    for name in ["logprobs", "top_logprobs", "logit_bias"] {
        if has(name) {
            return Err(Box::new(unsupported(name, None)));
        }
    }
    sampling(body)
}

/// Models that reason take the default values alone.
pub(super) fn sampling(body: &Value) -> Checked {
    let defaults = [
        ("temperature", 1.0),
        ("top_p", 1.0),
        ("presence_penalty", 0.0),
        ("frequency_penalty", 0.0),
    ];
    for (name, default) in defaults {
        let Some(value) = field(body, name) else {
            continue;
        };
        if value.as_f64() != Some(default) {
            return Err(Box::new(unsupported_value(name, value)));
        }
    }
    Ok(())
}

fn stops(body: &Value) -> Vec<String> {
    match field(body, "stop") {
        Some(Value::String(stop)) => vec![stop.clone()],
        Some(Value::Array(stops)) => {
            let texts = stops.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

fn read_tools(body: &Value, root: &Place, ask: &mut Ask) -> Checked {
    if field(body, "tools").is_some() && list_of(body, "tools").is_empty() {
        let message = "Invalid 'tools': empty array. Expected an array with minimum length 1, but \
            got an empty array instead.";
        let refusal = invalid("empty-tools", message).code("empty_array");
        return Err(Box::new(refusal.param("tools")));
    }
    for (at, tool) in list_of(body, "tools").iter().enumerate() {
        let place = root.field("tools").at(at);
        tables::TOOL
            .check(tool, &place)
            .map_err(|flaw| words::flaw(&flaw))?;
        let kind = text_of(tool, "type").unwrap_or_default();
        let Some(inner) = field(tool, kind) else {
            let param = place.field(kind).write();
            let refusal = invalid(
                "missing-field",
                format!("Missing required parameter: '{param}'."),
            )
            .code("missing_required_parameter");
            return Err(Box::new(refusal.param(param)));
        };
        let param = place.field(kind).write();
        ask.tools.push(match kind {
            "custom" => tools::custom(inner, &param)?,
            _ => tools::function(inner, &param)?,
        });
    }
    ask.choice = tools::choice(field(body, "tool_choice"), &ask.tools, |choice| {
        let kind = text_of(choice, "type")?;
        text_of(choice.get(kind)?, "name").map(str::to_owned)
    })?;
    Ok(())
}

/// The schema that the answer has to follow, if any.
fn response_format(body: &Value) -> Judged<Option<Value>> {
    let Some(format) = field(body, "response_format") else {
        return Ok(None);
    };
    match text_of(format, "type").unwrap_or_default() {
        "json_object" => {
            let messages = body["messages"].to_string().to_lowercase();
            if !messages.contains("json") {
                let message = "'messages' must contain the word 'json' in some form, to use \
                    'response_format' of type 'json_object'.";
                return Err(Box::new(invalid("json-word", message).param("messages")));
            }
            let properties = json!({"answer": {"type": "string"}});
            Ok(Some(json!({"type": "object", "properties": properties})))
        }
        "json_schema" => {
            let Some(inner) = field(format, "json_schema") else {
                let message = "Missing required parameter: 'response_format.json_schema'.";
                let refusal = invalid("missing-field", message).code("missing_required_parameter");
                return Err(Box::new(refusal.param("response_format.json_schema")));
            };
            answer_schema(inner, "response_format.json_schema").map(Some)
        }
        _ => Ok(None),
    }
}

/// The schema out of an object that names it.
pub(super) fn answer_schema(named: &Value, param: &str) -> Judged<Value> {
    let name = text_of(named, "name").unwrap_or_default();
    tools::name(name, &format!("{param}.name"))?;
    let Some(inner) = field(named, "schema") else {
        let message = format!("Missing required parameter: '{param}.schema'.");
        return Err(Box::new(invalid_value(
            "missing-field",
            &format!("{param}.schema"),
            message,
        )));
    };
    let strict = named.get("strict") == Some(&Value::Bool(true));
    let of = format!("response_format '{name}'");
    schema::check(inner, &of, &format!("{param}.schema"), strict)?;
    Ok(inner.clone())
}
