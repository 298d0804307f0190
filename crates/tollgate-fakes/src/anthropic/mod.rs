//! Anthropic: messages.

mod answer;
mod blocks;
mod check;
mod models;
mod schema;
mod tables;
mod turns;
mod words;

use std::sync::Arc;

use serde_json::Value;

use crate::incoming::Seen;
use crate::provider::{Api, Wanted};
use crate::refusal::{Checked, Fault, Judged, Refusal};
use crate::rng::hash;

/// The fake of Anthropic.
pub(crate) struct Anthropic;

/// The versions of the API that there are.
const VERSIONS: &[&str] = &["2023-01-01", "2023-06-01", NEW];

/// The version that refuses sampling parameters on every model.
const NEW: &str = "2026-10-21";

/// What the signatures of this fake begin with.
const SIGNATURE: &str = "sig_fake_";

/// The signature of a thought.
fn sign(thought: &str) -> String {
    format!("{SIGNATURE}{:016x}", hash(thought))
}

impl Api for Anthropic {
    fn base_path(&self) -> &'static str {
        ""
    }

    fn key(&self, request: &Seen) -> Judged<String> {
        let key = request.header("x-api-key").filter(|key| !key.is_empty());
        let key = key.or_else(|| request.bearer()).map(str::to_owned);
        let missing = || words::of_status(401, "auth", "x-api-key header is required");
        key.ok_or_else(|| Box::new(missing()))
    }

    fn judge(&self, request: &Arc<Seen>) -> Judged<Wanted> {
        let path = request.path.as_str();
        match (request.method.as_str(), path) {
            ("GET", "/v1/models") => {
                version(request)?;
                Ok(Wanted::Fixed(models::list()))
            }
            ("GET", _) if path.starts_with("/v1/models/") => {
                version(request)?;
                let found = models::entry(&path["/v1/models/".len()..]);
                let missing = || Box::new(words::fault(Fault::ModelMissing, request));
                found.map(Wanted::Fixed).ok_or_else(missing)
            }
            ("POST", "/v1/messages") => {
                body(request)?;
                Ok(Wanted::Chat(Box::new(check::read(request, false)?)))
            }
            ("POST", "/v1/messages/count_tokens") => {
                body(request)?;
                let read = check::read(request, true)?;
                Ok(Wanted::Fixed(answer::count(&read)))
            }
            (_, "/v1/messages" | "/v1/messages/count_tokens") => {
                let refusal = words::invalid("method", "Method Not Allowed");
                Err(Box::new(Refusal {
                    status: 405,
                    ..refusal
                }))
            }
            _ => Err(Box::new(words::of_status(404, "path", "Not Found"))),
        }
    }

    fn fault(&self, fault: Fault, request: &Seen) -> Refusal {
        words::fault(fault, request)
    }

    fn error(&self, refusal: &Refusal, id: &str) -> Value {
        words::error(refusal, id)
    }

    fn headers(&self, id: &str) -> Vec<(&'static str, String)> {
        vec![
            ("request-id", id.to_owned()),
            ("anthropic-organization-id", "fake-organization".to_owned()),
            ("anthropic-ratelimit-requests-remaining", "999".to_owned()),
        ]
    }
}

fn version(request: &Seen) -> Checked {
    let Some(version) = request.header("anthropic-version") else {
        let message = "anthropic-version: header is required";
        return Err(Box::new(words::invalid("version", message)));
    };
    if VERSIONS.contains(&version) {
        return Ok(());
    }
    let message = format!("anthropic-version: \"{version}\" is not a valid version");
    Err(Box::new(words::invalid("version", message)))
}

/// The head and the outside of the body are in order.
fn body(request: &Seen) -> Checked {
    version(request)?;
    if !request.says_json() {
        let message = "content-type: header must be application/json";
        return Err(Box::new(words::invalid("content-type", message)));
    }
    if !request.body.is_object() {
        let message = "The request body is not valid JSON";
        return Err(Box::new(words::invalid("json", message)));
    }
    let model = request.body.get("model").and_then(Value::as_str);
    if model.is_some_and(models::is_missing) {
        return Err(Box::new(words::fault(Fault::ModelMissing, request)));
    }
    Ok(())
}
