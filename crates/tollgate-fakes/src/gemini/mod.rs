//! Gemini: generate-content; pictures and films, on the Developer API and on the Agent Platform.

mod answer;
mod check;
mod contents;
mod media;
mod models;
mod schema;
mod tables;
mod tools;
mod words;

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::incoming::Seen;
use crate::media::encode;
use crate::provider::{Api, Wanted};
use crate::refusal::{Fault, Judged, Refusal};
use crate::tokens::tokens;

/// The fake of Gemini.
pub(crate) struct Gemini;

/// What the signatures of this fake begin with, before they are put into base64.
const SIGNATURE: &str = "sig_fake_";

/// The documented value for calls that never had a signature.
const BYPASS: &str = "skip_thought_signature_validator";

/// A signature for what `id` names.
fn sign(id: &str) -> String {
    encode(format!("{SIGNATURE}{id}").as_bytes())
}

impl Api for Gemini {
    fn base_path(&self) -> &'static str {
        ""
    }

    fn key(&self, request: &Seen) -> Judged<String> {
        if media::is_platform(&request.path) {
            let token = request.bearer().map(str::to_owned);
            return token.ok_or_else(|| Box::new(words::no_token()));
        }
        let header = request.header("x-goog-api-key").map(str::to_owned);
        let key = header.or_else(|| request.query_value("key"));
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            return Ok(key);
        }
        if request.header("authorization").is_some() {
            return Err(Box::new(words::no_token()));
        }
        let message = "Method doesn't allow unregistered callers (callers without established \
            identity). Please use API Key or other form of API consumer identity to call this API.";
        Err(Box::new(words::of_status(403, "auth", message)))
    }

    fn judge(&self, request: &Arc<Seen>) -> Judged<Wanted> {
        let path = percent_decode_str(&request.path)
            .decode_utf8_lossy()
            .into_owned();
        if let Some(judged) = media::judge(request, &path) {
            return judged.map(Wanted::Media);
        }
        let rest = ["/v1beta/models", "/v1/models"]
            .iter()
            .find_map(|begin| path.strip_prefix(begin))
            .or_else(|| media::platform_models(&path));
        let Some(rest) = rest else {
            return Err(Box::new(words::of_status(404, "path", "Not Found")));
        };
        match (request.method.as_str(), rest.strip_prefix('/')) {
            ("GET", None) if rest.is_empty() => Ok(Wanted::Fixed(models::list())),
            ("GET", Some(id)) => {
                let missing = || Box::new(words::fault(Fault::ModelMissing, request));
                models::entry(id).map(Wanted::Fixed).ok_or_else(missing)
            }
            ("POST", Some(call)) => match call.rsplit_once(':') {
                Some((model, method)) => post(request, model, method),
                None => Err(Box::new(words::of_status(404, "path", "Not Found"))),
            },
            _ => Err(Box::new(words::of_status(404, "path", "Not Found"))),
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
            ("server-timing", "gfet4t7; dur=12".to_owned()),
        ]
    }
}

fn post(request: &Seen, model: &str, method: &str) -> Judged<Wanted> {
    let streams = match method {
        "generateContent" | "countTokens" => false,
        "streamGenerateContent" => true,
        _ => return Err(Box::new(words::of_status(404, "path", "Not Found"))),
    };
    if models::is_missing(model) {
        return Err(Box::new(words::fault(Fault::ModelMissing, request)));
    }
    if !request.says_json() || !request.body.is_object() {
        let rule = if request.says_json() {
            "json"
        } else {
            "content-type"
        };
        let message = "Invalid JSON payload received. Unexpected token.";
        return Err(Box::new(words::invalid(rule, message)));
    }
    if method == "countTokens" {
        let inner = crate::shape::field(&request.body, "generateContentRequest");
        let mut body = inner.unwrap_or(&request.body).clone();
        if let Some(body) = body.as_object_mut() {
            body.shift_remove("model");
        }
        let read = check::read(&body, model, check::Stream::No)?;
        let total = tokens(read.asked(), 0, false).input;
        return Ok(Wanted::Fixed(json!({"totalTokens": total})));
    }
    let sse = request.query_value("alt").as_deref() == Some("sse");
    let stream = match (streams, sse) {
        (false, _) => check::Stream::No,
        (true, true) => check::Stream::Sse,
        (true, false) => check::Stream::Array,
    };
    let read = check::read(&request.body, model, stream)?;
    Ok(Wanted::Chat(Box::new(read)))
}
