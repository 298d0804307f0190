//! Responses: a request accepted.

mod items;
mod response;
mod stream;

use serde_json::{Map, Value, json};

use super::{SPEC, chat, check, invalid, invalid_value, missing_parameter, reasons, tools};
use crate::chat_output::{ChatOutput, ChatPrompt};
use crate::event_stream::Answer;
use crate::provider::ChatRequest;
use crate::rejection::{Checked, OrRejected};
use crate::tables::path::{JsonPath, PathStyle};
use crate::tables::schema::{field, list_of, text_of};

/// A request in order.
pub(super) struct Responses {
    prompt: ChatPrompt,
    body: Value,
    stream: bool,
    /// Whether thoughts are shown in a summary.
    summary: bool,
    /// Whether reasoning items carry their encrypted content.
    encrypted: bool,
}

impl ChatRequest for Responses {
    fn prompt(&self) -> &ChatPrompt {
        &self.prompt
    }

    fn answer(&self, plan: &ChatOutput) -> OrRejected<Answer> {
        response::make(self, plan)
    }
}

pub(super) fn read(body: &Value) -> OrRejected<Responses> {
    let root = JsonPath::root(PathStyle::Brackets);
    let model = text_of(body, "model").unwrap_or_default();
    let stateful = ["previous_response_id", "conversation"]
        .iter()
        .any(|name| field(body, name).is_some());
    let vars = json!({"responses": true, "reasons": reasons(model), "stateful": stateful});
    let rules = |name| {
        SPEC.check_body(
            name,
            body,
            "",
            vars.as_object().unwrap_or(&Map::new()),
            None,
        )
    };
    rules("responses_before")?;
    SPEC.check_value("responses", body, &root, vars.clone())?;
    rules("responses")?;
    let items = items::of(body);
    let reasoning = field(body, "reasoning").unwrap_or(&Value::Null);
    let mut prompt = ChatPrompt {
        parallel: body.get("parallel_tool_calls") != Some(&Value::Bool(false)),
        thinking: reasons(model) && text_of(reasoning, "effort") != Some("none"),
        limit: field(body, "max_output_tokens").and_then(Value::as_u64),
        count: 1,
        ..ChatPrompt::default()
    };
    let stateful = stateful || items::refers(&items);
    items::read(&items, &root.field("input"), stateful, &mut prompt)?;
    read_tools(body, &root, &mut prompt)?;
    prompt.schema = text_format(body)?;
    let includes = list_of(body, "include");
    Ok(Responses {
        prompt,
        stream: body.get("stream") == Some(&Value::Bool(true)),
        summary: ["summary", "generate_summary"]
            .iter()
            .any(|name| field(reasoning, name).is_some()),
        encrypted: includes.iter().any(|i| i == "reasoning.encrypted_content"),
        body: body.clone(),
    })
}

fn read_tools(body: &Value, root: &JsonPath, prompt: &mut ChatPrompt) -> Checked {
    let mut hosted = false;
    for (at, tool) in list_of(body, "tools").iter().enumerate() {
        let place = root.field("tools").at(at);
        match text_of(tool, "type").unwrap_or_default() {
            "function" => {
                // The nested form of chat-completions lacks the name before all else.
                if text_of(tool, "name").is_none() {
                    return Err(missing_parameter(&place.field("name").write()));
                }
                check("tool_function", tool, &place)?;
                prompt.tools.push(tools::function(tool, &place.write())?);
            }
            "custom" => {
                check("tool_custom", tool, &place)?;
                prompt.tools.push(tools::custom(tool, &place.write())?);
            }
            kind if items::is_listed("hosted_tools", kind) => hosted = true,
            kind => {
                let message = format!(
                    "Invalid value: '{kind}'. Supported are 'function', 'custom' and hosted tools."
                );
                let at = place.field("type").write();
                return Err(Box::new(invalid_value("tool-type", &at, message)));
            }
        }
    }
    choose(body, hosted, prompt)
}

fn choose(body: &Value, hosted: bool, prompt: &mut ChatPrompt) -> Checked {
    let choice = field(body, "tool_choice");
    if choice.and_then(Value::as_str) == Some("required") && prompt.tools.is_empty() && !hosted {
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
    if items::is_listed("hosted_tools", kind) {
        return Ok(());
    }
    let named = |tool: &Value| text_of(tool, "name").map(str::to_owned);
    prompt.choice = tools::choice(choice, &prompt.tools, named)?;
    Ok(())
}

/// The schema that the answer has to follow, if any.
fn text_format(body: &Value) -> OrRejected<Option<Value>> {
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
