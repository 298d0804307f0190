//! Anthropic: what `providers/anthropic.toml` cannot say of messages.

mod blocks;
mod check;
mod response;
mod schema;
mod turns;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use crate::provider::{Accepted, Api, Handled};
use crate::rejection::{Checked, OrRejected, Rejection};
use crate::request::ReceivedRequest;
use crate::rng::hash;
use crate::tables::path::JsonPath;
use crate::tables::spec::Spec;

/// The fake of Anthropic.
pub(crate) struct Anthropic;

static SPEC: LazyLock<Spec> =
    LazyLock::new(|| Spec::read(include_str!("../../providers/anthropic.toml")));

/// What the signatures of this fake begin with.
const SIGNATURE: &str = "sig_fake_";

/// The signature of a thought.
fn sign(thought: &str) -> String {
    format!("{SIGNATURE}{:016x}", hash(thought))
}

impl Api for Anthropic {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn key(&self, request: &ReceivedRequest) -> OrRejected<String> {
        let key = request.header("x-api-key").filter(|key| !key.is_empty());
        let key = key.or_else(|| request.bearer()).map(str::to_owned);
        key.ok_or_else(|| SPEC.reject_request("no-key", request))
    }

    fn handle(
        &self,
        _: &str,
        request: &Arc<ReceivedRequest>,
        _: &Map<String, Value>,
    ) -> OrRejected<Handled> {
        SPEC.check_body("headers", &request.body, "", &Map::new(), Some(request))?;
        SPEC.require_json(request)?;
        let model = request.body["model"].as_str();
        if model.is_some_and(|model| model.is_empty() || model.starts_with("missing")) {
            return Err(SPEC.reject_request("model-missing", request));
        }
        let counts = request.path.ends_with("/count_tokens");
        let read = check::read(request, counts)?;
        Ok(Handled::Accepted(match counts {
            true => Accepted::Fixed(response::count(&read)),
            false => Accepted::Chat(Box::new(read)),
        }))
    }
}

/// A request that breaks `rule`.
fn invalid(rule: &'static str, message: impl Into<String>) -> Rejection {
    Rejection::new(400, "invalid_request_error", rule, message)
}

/// Checks a value against a schema of the tables.
fn check(schema: &str, value: &Value, path: &JsonPath) -> Checked {
    SPEC.check_value(schema, value, path, Value::Null)
}

/// Whether a table lists `owner` for a name.
fn is_known(table: &str, name: &str, owner: &str) -> bool {
    let owners = SPEC.tables[table][name].as_array();
    owners.is_some_and(|owners| owners.iter().any(|known| known == owner))
}

/// A tag that is none of those which a table lists for `owner`.
fn unknown_tag(
    rule: &'static str,
    table: &str,
    owner: &str,
    tag: &str,
    at: &str,
) -> Box<Rejection> {
    let entries = SPEC.tables[table].as_object().into_iter().flatten();
    let names = entries
        .map(|(name, _)| name.as_str())
        .filter(|name| is_known(table, name, owner));
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    let message = format!(
        "{at}: Input tag '{tag}' found using 'type' does not match any of the expected tags: {}",
        names.join(", ")
    );
    Box::new(invalid(rule, message))
}

/// The generation of a model, such as 4.5: of `claude-FAMILY-4-5…`, `claude-3-5-FAMILY…` and the
/// like. A name without numbers is taken for one of 4.5.
fn generation(model: &str) -> f64 {
    let parts = model.split(['-', '.']).filter(|part| part.len() <= 2);
    let numbers: Vec<u32> = parts.filter_map(|part| part.parse().ok()).collect();
    match numbers.as_slice() {
        [] => 4.5,
        [major] => f64::from(*major),
        [major, minor, ..] => f64::from(*major) + f64::from(*minor) / 10.0,
    }
}
