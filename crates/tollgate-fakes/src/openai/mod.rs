//! OpenAI: what `providers/openai.toml` cannot say of chat completions and responses.

mod chat;
mod content;
mod responses;
mod schema;
mod tools;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use crate::provider::{Accepted, Api, ChatRequest, Handled};
use crate::rejection::{Checked, OrRejected, Rejection};
use crate::request::ReceivedRequest;
use crate::tables::path::JsonPath;
use crate::tables::spec::Spec;

/// The fake of OpenAI.
pub(crate) struct OpenAi;

static SPEC: LazyLock<Spec> =
    LazyLock::new(|| Spec::read(include_str!("../../providers/openai.toml")));

impl Api for OpenAi {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn handle(
        &self,
        handler: &str,
        request: &Arc<ReceivedRequest>,
        _: &Map<String, Value>,
    ) -> OrRejected<Handled> {
        SPEC.require_json(request)?;
        let body = &request.body;
        let model = body["model"].as_str();
        if model.is_some_and(|model| model.is_empty() || model.starts_with("missing")) {
            return Err(SPEC.reject_request("model-missing", request));
        }
        let work: Box<dyn ChatRequest> = match handler {
            "responses" => Box::new(responses::read(body)?),
            _ => Box::new(chat::read(body)?),
        };
        Ok(Handled::Accepted(Accepted::Chat(work)))
    }
}

/// A request that breaks `rule`.
fn invalid(rule: &'static str, message: impl Into<String>) -> Rejection {
    Rejection::new(400, "invalid_request_error", rule, message)
}

fn invalid_value(rule: &'static str, param: &str, message: impl Into<String>) -> Rejection {
    invalid(rule, message).code("invalid_value").param(param)
}

/// An empty array where one element is needed.
fn empty_array(rule: &'static str, param: &str) -> Box<Rejection> {
    let message = format!(
        "Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty \
         array instead."
    );
    Box::new(invalid(rule, message).code("empty_array").param(param))
}

fn missing_parameter(param: &str) -> Box<Rejection> {
    let message = format!("Missing required parameter: '{param}'.");
    let rejection = invalid("missing-field", message).code("missing_required_parameter");
    Box::new(rejection.param(param))
}

/// A value that is none of those that are known.
fn unsupported(rule: &'static str, param: &str, value: &str, known: &[&str]) -> Box<Rejection> {
    let known = known.join("', '");
    let message = format!("Invalid value: '{value}'. Supported values are: '{known}'.");
    Box::new(invalid_value(rule, param, message))
}

/// Checks a value against a schema of the tables.
fn check(schema: &str, value: &Value, path: &JsonPath) -> Checked {
    SPEC.check_value(schema, value, path, Value::Null)
}

/// The keys of a table in which `role` is listed.
fn known_for(table: &str, role: &str) -> Vec<&'static str> {
    let entries = SPEC.tables[table].as_object().into_iter().flatten();
    let known = entries.filter(|(_, roles)| {
        roles
            .as_array()
            .is_some_and(|all| all.iter().any(|r| r == role))
    });
    known.map(|(name, _)| name.as_str()).collect()
}

/// The o-series and gpt-5: no sampling parameters, no `max_tokens`.
fn reasons(model: &str) -> bool {
    let mut letters = model.chars();
    let o_series =
        letters.next() == Some('o') && letters.next().is_some_and(|c| c.is_ascii_digit());
    o_series || (model.starts_with("gpt-5") && !model.contains("chat"))
}

/// Models of other vendors that speak the format: they ignore what they do not know, and show
/// their reasoning.
fn is_foreign(model: &str) -> bool {
    let vendors = ["deepseek", "kimi", "qwen", "glm"];
    vendors.iter().any(|vendor| model.contains(vendor))
}

/// Usage counts in the two spellings of OpenAI.
fn usage(tokens: crate::tokens::Tokens, input: &str, output: &str) -> Value {
    json!({
        format!("{input}_tokens"): tokens.input,
        format!("{output}_tokens"): tokens.output,
        "total_tokens": tokens.input + tokens.output,
        format!("{input}_tokens_details"): {
            "cached_tokens": tokens.cached, "cache_write_tokens": tokens.written,
        },
        format!("{output}_tokens_details"): {"reasoning_tokens": tokens.reasoning},
    })
}
