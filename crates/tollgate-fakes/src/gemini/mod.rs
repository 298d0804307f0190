//! Gemini: what `providers/gemini.toml` cannot say of generate-content.

mod check;
mod contents;
mod response;
mod schema;
mod tools;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use crate::encoding::encode;
use crate::provider::{Accepted, Api, Handled};
use crate::rejection::{OrRejected, Rejection};
use crate::request::ReceivedRequest;
use crate::tables::path::camel;
use crate::tables::spec::Spec;
use crate::tokens::tokens;

/// The fake of Gemini.
pub(crate) struct Gemini;

static SPEC: LazyLock<Spec> =
    LazyLock::new(|| Spec::read(include_str!("../../providers/gemini.toml")));

/// What the signatures of this fake begin with, before they are put into base64.
const SIGNATURE: &str = "sig_fake_";

/// The documented value for calls that never had a signature.
const BYPASS: &str = "skip_thought_signature_validator";

/// A signature for what `id` names.
fn sign(id: &str) -> String {
    encode(format!("{SIGNATURE}{id}").as_bytes())
}

impl Api for Gemini {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// A key on the Developer API, an OAuth token on the Agent Platform.
    fn key(&self, request: &ReceivedRequest) -> OrRejected<String> {
        if request.path.contains("/projects/") {
            let token = request.bearer().map(str::to_owned);
            return token.ok_or_else(|| SPEC.reject_request("no-token", request));
        }
        let header = request.header("x-goog-api-key").map(str::to_owned);
        let key = header.or_else(|| request.query_value("key"));
        let error = match request.header("authorization") {
            Some(_) => "no-token",
            None => "no-key",
        };
        key.filter(|key| !key.is_empty())
            .ok_or_else(|| SPEC.reject_request(error, request))
    }

    fn handle(
        &self,
        _: &str,
        request: &Arc<ReceivedRequest>,
        vars: &Map<String, Value>,
    ) -> OrRejected<Handled> {
        let path = |name: &str| vars.get(name).and_then(Value::as_str).unwrap_or_default();
        let call = path("call");
        let model = match path("owner") {
            "" => path("model").to_owned(),
            owner => format!("{owner}/{}", path("model")),
        };
        let model = model.as_str();
        let calls = ["generateContent", "streamGenerateContent", "countTokens"];
        let versions = ["v1", "v1beta", "v1beta1"];
        if !calls.contains(&call) || !versions.contains(&path("version")) {
            return Err(SPEC.reject_request("no-route", request));
        }
        let makes_images = model.contains("-image") || model.contains("nano-banana");
        let known = SPEC.tables["image_models"].as_array();
        let known = known.is_some_and(|known| known.iter().any(|one| one == model));
        if model.starts_with("missing") || (makes_images && call != "countTokens" && !known) {
            return Err(SPEC.reject_request("model-missing", request));
        }
        SPEC.require_json(request)?;
        let streams = call == "streamGenerateContent";
        if makes_images && streams {
            return Err(SPEC.reject_request("not-implemented", request));
        }
        if call == "countTokens" {
            let inner = ["generateContentRequest", "generate_content_request"]
                .iter()
                .find_map(|name| request.body.get(name));
            let mut body = inner.unwrap_or(&request.body).clone();
            if let Some(body) = body.as_object_mut() {
                body.shift_remove("model");
            }
            let read = check::read(&body, model, check::Stream::No)?;
            let total = tokens(read.asked(), 0, false).input;
            return Ok(Handled::Accepted(Accepted::Fixed(
                json!({"totalTokens": total}),
            )));
        }
        let stream = match (streams, request.query_value("alt").as_deref()) {
            (false, _) => check::Stream::No,
            (true, Some("sse")) => check::Stream::Sse,
            (true, _) => check::Stream::Array,
        };
        let read = check::read(&request.body, model, stream)?;
        if !makes_images {
            return Ok(Handled::Accepted(Accepted::Chat(Box::new(read))));
        }
        let vars = json!({
            "normal": normal(&request.body), "prompt": read.prompt.text, "signature": sign("image"),
        });
        Ok(Handled::Vars(vars.as_object().cloned().unwrap_or_default()))
    }
}

/// A request that breaks `rule`.
fn invalid(rule: &'static str, message: impl Into<String>) -> Rejection {
    Rejection::new(400, "INVALID_ARGUMENT", rule, message)
}

/// A field that is not in order, as Google's JSON reader says it.
fn violation(rule: &'static str, place: &str, what: &str) -> Rejection {
    let detail = json!({
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations": [{"field": place, "description": what}],
    });
    invalid(rule, what).detail(detail)
}

/// Generation 3 and later: signatures are needed, levels of thinking exist.
fn is_third(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    name.strip_prefix("gemini-")
        .and_then(|rest| rest.chars().next())
        .is_some_and(|first| ('3'..='9').contains(&first))
}

/// Fields whose values are the client's own, with names that are left as they are.
const FREE: &[&str] = &[
    "args",
    "response",
    "parameters",
    "parametersJsonSchema",
    "responseSchema",
    "responseJsonSchema",
    "labels",
];

/// The value with the names of its fields in camel case.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let fields = object.iter().map(|(name, value)| {
                let name = if name.contains('_') {
                    camel(name)
                } else {
                    name.clone()
                };
                let value = if FREE.contains(&name.as_str()) {
                    value.clone()
                } else {
                    normal(value)
                };
                (name, value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(list) => list.iter().map(normal).collect(),
        other => other.clone(),
    }
}
