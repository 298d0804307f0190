//! OpenAI: chat-completions and responses; pictures, films, speech.

mod chat;
mod content;
mod media;
mod models;
mod responses;
mod schema;
mod tools;
mod words;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::incoming::Seen;
use crate::provider::{Api, Wanted};
use crate::refusal::{Fault, Judged, Refusal};

/// The fake of OpenAI.
pub(crate) struct OpenAi;

impl Api for OpenAi {
    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn key(&self, request: &Seen) -> Judged<String> {
        let key = request.bearer().map(str::to_owned);
        key.ok_or_else(|| Box::new(words::no_key()))
    }

    fn judge(&self, request: &Arc<Seen>) -> Judged<Wanted> {
        if let Some(judged) = media::judge(request) {
            return judged.map(Wanted::Media);
        }
        let path = request.path.as_str();
        match (request.method.as_str(), path) {
            ("GET", "/v1/models") => Ok(Wanted::Fixed(models::list())),
            ("GET", _) if path.starts_with("/v1/models/") => {
                let found = models::entry(&path["/v1/models/".len()..]);
                let missing = || Box::new(self.fault(Fault::ModelMissing, request));
                found.map(Wanted::Fixed).ok_or_else(missing)
            }
            ("POST", "/v1/chat/completions") => {
                let body = body(request)?;
                Ok(Wanted::Chat(Box::new(chat::read(body)?)))
            }
            ("POST", "/v1/responses") => {
                let body = body(request)?;
                Ok(Wanted::Chat(Box::new(responses::read(body)?)))
            }
            (method, "/v1/chat/completions" | "/v1/responses") => {
                Err(Box::new(words::method(method, path)))
            }
            (method, _) => Err(Box::new(words::address(method, path))),
        }
    }

    fn fault(&self, fault: Fault, request: &Seen) -> Refusal {
        words::fault(fault, request)
    }

    fn error(&self, refusal: &Refusal, _: &str) -> Value {
        words::error(refusal)
    }

    fn headers(&self, id: &str) -> Vec<(&'static str, String)> {
        vec![
            ("x-request-id", id.to_owned()),
            ("openai-organization", "fake-organization".to_owned()),
            ("openai-processing-ms", "12".to_owned()),
            ("x-ratelimit-remaining-requests", "9999".to_owned()),
        ]
    }
}

/// The body, if it is said to be JSON and is an object of it for a model that exists.
fn body(request: &Seen) -> Judged<&Value> {
    if !request.says_json() {
        let given = request.header("content-type").unwrap_or_default();
        return Err(Box::new(words::content_type(given)));
    }
    if !request.body.is_object() {
        return Err(Box::new(words::not_json()));
    }
    let model = request.body.get("model").and_then(Value::as_str);
    if model.is_some_and(models::is_missing) {
        return Err(Box::new(words::fault(Fault::ModelMissing, request)));
    }
    Ok(&request.body)
}

/// Usage counts in the two spellings of OpenAI.
fn usage(tokens: crate::tokens::Tokens, input: &str, output: &str) -> Value {
    let total = tokens.input + tokens.output;
    json!({
        format!("{input}_tokens"): tokens.input,
        format!("{output}_tokens"): tokens.output,
        "total_tokens": total,
        format!("{input}_tokens_details"): {
            "cached_tokens": tokens.cached, "cache_write_tokens": tokens.written,
        },
        format!("{output}_tokens_details"): {"reasoning_tokens": tokens.reasoning},
    })
}
