//! Chat-completions: a request accepted.

mod messages;
mod response;

use serde_json::{Map, Value, json};

use super::{check, empty_array, invalid, is_foreign, missing_parameter, reasons, schema, tools};
use crate::chat_output::{ChatOutput, ChatPrompt};
use crate::event_stream::Answer;
use crate::provider::ChatRequest;
use crate::rejection::{Checked, OrRejected};
use crate::tables::path::{JsonPath, PathStyle};
use crate::tables::schema::{field, list_of, text_of};

/// A request in order.
pub(super) struct Chat {
    prompt: ChatPrompt,
    model: String,
    stream: bool,
    include_usage: bool,
    logprobs: bool,
}

impl ChatRequest for Chat {
    fn prompt(&self) -> &ChatPrompt {
        &self.prompt
    }

    fn answer(&self, plan: &ChatOutput) -> OrRejected<Answer> {
        response::make(self, plan)
    }
}

pub(super) fn read(body: &Value) -> OrRejected<Chat> {
    let root = JsonPath::root(PathStyle::Brackets);
    let model = text_of(body, "model").unwrap_or_default();
    let foreign = is_foreign(model);
    let thinks = reasons(model);
    if !foreign {
        check("chat", body, &root)?;
        let vars = Map::from_iter([("reasons".to_owned(), json!(thinks))]);
        super::SPEC.check_body("chat", body, "", &vars, None)?;
    }
    let is = |name: &str| body.get(name) == Some(&Value::Bool(true));
    let effort = text_of(body, "reasoning_effort");
    let mut prompt = ChatPrompt {
        parallel: body.get("parallel_tool_calls") != Some(&Value::Bool(false)),
        thinking: (foreign || thinks) && effort != Some("none"),
        stops: stops(body),
        limit: ["max_completion_tokens", "max_tokens"]
            .iter()
            .find_map(|name| field(body, name)?.as_u64()),
        count: field(body, "n").and_then(Value::as_u64).unwrap_or(1) as usize,
        ..ChatPrompt::default()
    };
    messages::read(body, &root, &mut prompt)?;
    read_tools(body, &root, &mut prompt)?;
    prompt.schema = response_format(body)?;
    let options = field(body, "stream_options");
    Ok(Chat {
        prompt,
        model: model.to_owned(),
        stream: is("stream"),
        include_usage: options.is_some_and(|o| o.get("include_usage") == Some(&Value::Bool(true))),
        logprobs: is("logprobs"),
    })
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

fn read_tools(body: &Value, root: &JsonPath, prompt: &mut ChatPrompt) -> Checked {
    if field(body, "tools").is_some() && list_of(body, "tools").is_empty() {
        return Err(empty_array("empty-tools", "tools"));
    }
    for (at, tool) in list_of(body, "tools").iter().enumerate() {
        let place = root.field("tools").at(at);
        check("tool", tool, &place)?;
        let kind = text_of(tool, "type").unwrap_or_default();
        let param = place.field(kind).write();
        let Some(inner) = field(tool, kind) else {
            return Err(missing_parameter(&param));
        };
        prompt.tools.push(match kind {
            "custom" => tools::custom(inner, &param)?,
            _ => tools::function(inner, &param)?,
        });
    }
    prompt.choice = tools::choice(field(body, "tool_choice"), &prompt.tools, |choice| {
        let kind = text_of(choice, "type")?;
        text_of(choice.get(kind)?, "name").map(str::to_owned)
    })?;
    Ok(())
}

/// The schema that the answer has to follow, if any.
fn response_format(body: &Value) -> OrRejected<Option<Value>> {
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
                return Err(missing_parameter("response_format.json_schema"));
            };
            answer_schema(inner, "response_format.json_schema").map(Some)
        }
        _ => Ok(None),
    }
}

/// The schema out of an object that names it.
pub(super) fn answer_schema(named: &Value, param: &str) -> OrRejected<Value> {
    let name = text_of(named, "name").unwrap_or_default();
    tools::name(name, &format!("{param}.name"))?;
    let Some(inner) = field(named, "schema") else {
        return Err(missing_parameter(&format!("{param}.schema")));
    };
    let strict = named.get("strict") == Some(&Value::Bool(true));
    let of = format!("response_format '{name}'");
    schema::check(inner, &of, &format!("{param}.schema"), strict)?;
    Ok(inner.clone())
}
