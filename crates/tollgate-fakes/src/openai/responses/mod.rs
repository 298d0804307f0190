//! Responses: a request judged.

mod answer;
mod items;
mod stream;
mod tables;

use serde_json::{Value, json};

use super::words::{self, invalid, invalid_value, unsupported};
use super::{chat, models, tools};
use crate::place::{Place, Style};
use crate::plan::{Ask, Plan};
use crate::provider::Work;
use crate::refusal::{Checked, Judged};
use crate::script::Answer;
use crate::shape::{field, list_of, text_of};

/// A request in order.
pub(super) struct Responses {
    ask: Ask,
    body: Value,
    stream: bool,
    /// Whether thoughts are shown in a summary.
    summary: bool,
    /// Whether reasoning items carry their encrypted content.
    encrypted: bool,
}

impl Work for Responses {
    fn ask(&self) -> &Ask {
        &self.ask
    }

    fn answer(&self, plan: &Plan) -> Judged<Answer> {
        answer::make(self, plan)
    }
}

pub(super) fn read(body: &Value) -> Judged<Responses> {
    let root = Place::root(Style::Brackets);
    elsewhere(body)?;
    tables::REQUEST
        .check(body, &root)
        .map_err(|flaw| words::flaw(&flaw))?;
    let model = text_of(body, "model").unwrap_or_default();
    let stateful = state(body)?;
    let items = items::of(body);
    if items.is_empty() && field(body, "prompt").is_none() && !stateful {
        let message = "One of \"input\" or \"previous_response_id\" or 'prompt' or \
            'conversation_id' must be provided.";
        return Err(Box::new(invalid("input", message).param("input")));
    }
    parameters(body, model)?;
    let reasoning = field(body, "reasoning").unwrap_or(&Value::Null);
    let mut ask = Ask {
        parallel: body.get("parallel_tool_calls") != Some(&Value::Bool(false)),
        thinking: models::reasons(model) && text_of(reasoning, "effort") != Some("none"),
        limit: field(body, "max_output_tokens").and_then(Value::as_u64),
        count: 1,
        ..Ask::default()
    };
    let stateful = stateful || items::refers(&items);
    items::read(&items, &root.field("input"), stateful, &mut ask)?;
    read_tools(body, &root, &mut ask)?;
    ask.schema = text_format(body)?;
    let includes = list_of(body, "include");
    Ok(Responses {
        ask,
        stream: body.get("stream") == Some(&Value::Bool(true)),
        summary: ["summary", "generate_summary"]
            .iter()
            .any(|name| field(reasoning, name).is_some()),
        encrypted: includes.iter().any(|i| i == "reasoning.encrypted_content"),
        body: body.clone(),
    })
}

/// Fields of chat-completions that have another place here.
fn elsewhere(body: &Value) -> Checked {
    let moved = [
        ("max_tokens", "max_output_tokens"),
        ("max_completion_tokens", "max_output_tokens"),
        ("response_format", "text.format"),
        ("reasoning_effort", "reasoning.effort"),
        ("messages", "input"),
    ];
    for (name, here) in moved {
        if field(body, name).is_some() {
            let message = format!(
                "Unsupported parameter: '{name}'. In the Responses API, this parameter has moved \
                 to '{here}'. Try again with the new parameter."
            );
            let refusal = invalid("moved-field", message).code("unsupported_parameter");
            return Err(Box::new(refusal.param(name)));
        }
    }
    let unknown = body.as_object().into_iter().flatten().find(|(name, _)| {
        let known = tables::REQUEST.fields.iter();
        !known.into_iter().any(|(known, _)| known == name)
    });
    let Some((name, _)) = unknown else {
        return Ok(());
    };
    let refusal = invalid("unknown-field", format!("Unknown parameter: '{name}'."));
    Err(Box::new(refusal.code("unknown_parameter").param(name)))
}

/// Whether the request builds on state, which has to be of this fake's making.
fn state(body: &Value) -> Judged<bool> {
    let previous = text_of(body, "previous_response_id");
    if previous.is_some() && field(body, "conversation").is_some() {
        let message = "Mutually exclusive parameters: Ensure you are only providing one of: \
            'previous_response_id' or 'conversation'.";
        let refusal = invalid("two-states", message).code("mutually_exclusive_parameters");
        return Err(Box::new(refusal));
    }
    if let Some(id) = previous
        && !id.starts_with("resp_")
    {
        let message = format!("Previous response with id '{id}' not found.");
        let refusal = invalid("previous-response", message).code("previous_response_not_found");
        return Err(Box::new(refusal.param("previous_response_id")));
    }
    Ok(previous.is_some() || field(body, "conversation").is_some())
}

fn parameters(body: &Value, model: &str) -> Checked {
    if field(body, "stream_options").is_some() && body.get("stream") != Some(&Value::Bool(true)) {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(Box::new(
            invalid("stream-options", message).param("stream_options"),
        ));
    }
    if models::reasons(model) {
        return chat::sampling(body);
    }
    match field(body, "reasoning").and_then(|reasoning| field(reasoning, "effort")) {
        Some(_) => Err(Box::new(unsupported("reasoning.effort", None))),
        None => Ok(()),
    }
}

fn read_tools(body: &Value, root: &Place, ask: &mut Ask) -> Checked {
    let mut hosted = false;
    for (at, tool) in list_of(body, "tools").iter().enumerate() {
        let place = root.field("tools").at(at);
        match text_of(tool, "type").unwrap_or_default() {
            "function" => {
                tables::FUNCTION.check(tool, &place).map_err(|flaw| {
                    // The nested form of chat-completions lacks the name before all else.
                    let nested = text_of(tool, "name").is_none();
                    words::flaw(&if nested { missing_name(&place) } else { flaw })
                })?;
                ask.tools.push(tools::function(tool, &place.write())?);
            }
            "custom" => {
                tables::CUSTOM
                    .check(tool, &place)
                    .map_err(|flaw| words::flaw(&flaw))?;
                ask.tools.push(tools::custom(tool, &place.write())?);
            }
            kind if tables::HOSTED.contains(&kind) => hosted = true,
            kind => {
                let names = tables::HOSTED.join("', '");
                let message = format!(
                    "Invalid value: '{kind}'. Supported values are: 'function', 'custom', '{names}'."
                );
                let at = place.field("type").write();
                return Err(Box::new(invalid_value("tool-type", &at, message)));
            }
        }
    }
    choose(body, hosted, ask)
}

fn missing_name(place: &Place) -> crate::shape::Flaw {
    crate::shape::Flaw {
        place: place.field("name"),
        what: crate::shape::What::Missing,
    }
}

fn choose(body: &Value, hosted: bool, ask: &mut Ask) -> Checked {
    let choice = field(body, "tool_choice");
    if choice.and_then(Value::as_str) == Some("required") && ask.tools.is_empty() && !hosted {
        let message = "Tool choice 'required' must be specified with 'tools' parameter.";
        return Err(Box::new(invalid_value(
            "choice-without-tools",
            "tool_choice",
            message,
        )));
    }
    let kind = choice
        .and_then(|choice| text_of(choice, "type"))
        .unwrap_or_default();
    if kind == "mcp" || tables::HOSTED.contains(&kind) {
        return Ok(());
    }
    let named = |tool: &Value| text_of(tool, "name").map(str::to_owned);
    ask.choice = tools::choice(choice, &ask.tools, named)?;
    Ok(())
}

/// The schema that the answer has to follow, if any.
fn text_format(body: &Value) -> Judged<Option<Value>> {
    let format = field(body, "text").and_then(|text| field(text, "format"));
    let Some(format) = format else {
        return Ok(None);
    };
    match text_of(format, "type").unwrap_or_default() {
        "json_object" => {
            let input = body["input"].to_string().to_lowercase();
            if !input.contains("json") {
                let message = "Response input messages must contain the word 'json' in some form \
                    to use 'text.format' of type 'json_object'.";
                return Err(Box::new(invalid("json-word", message).param("input")));
            }
            let properties = json!({"answer": {"type": "string"}});
            Ok(Some(json!({"type": "object", "properties": properties})))
        }
        "json_schema" => chat::answer_schema(format, "text.format").map(Some),
        _ => Ok(None),
    }
}

/// The tools as the answer repeats them: strict unless the request said otherwise.
fn echoed(body: &Value) -> Value {
    let mut tools = list_of(body, "tools").to_vec();
    for tool in &mut tools {
        if tool["type"] == "function" && tool.get("strict").is_none_or(Value::is_null) {
            tool["strict"] = json!(true);
        }
    }
    Value::Array(tools)
}
