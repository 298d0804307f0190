//! How xAI says no, in three shapes: a code and a text, a text alone, an object.

use serde_json::{Value, json};

use crate::incoming::Seen;
use crate::refusal::{Fault, Refusal};
use crate::shape::{Flaw, What};

/// What errors of a text alone have for a kind.
const PLAIN: &str = "plain";

/// What errors in an object have for a kind.
const OBJECT: &str = "object";

/// What errors with a code have for a kind.
const CODED: &str = "coded";

const ARGUMENT: &str = "Client specified an invalid argument";

/// A request that breaks `rule`.
pub(super) fn invalid(rule: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(400, CODED, rule, message).code(ARGUMENT)
}

/// The same with a text alone.
pub(super) fn plain(status: u16, rule: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(status, PLAIN, rule, message)
}

pub(super) fn error(refusal: &Refusal) -> Value {
    match refusal.kind {
        PLAIN => json!({"error": refusal.message}),
        OBJECT => json!({"error": {
            "message": refusal.message, "type": "server_error", "param": null,
            "code": refusal.code,
        }}),
        _ => json!({"code": refusal.code, "error": refusal.message}),
    }
}

pub(super) fn no_key() -> Refusal {
    let message = "No API key was provided. Please pass it as a Bearer token.";
    let code = "The caller does not have valid authentication credentials";
    Refusal::new(401, CODED, "auth", message).code(code)
}

pub(super) fn address() -> Refusal {
    plain(404, "path", "Not Found")
}

pub(super) fn not_json(said: bool) -> Refusal {
    if said {
        return plain(422, "json", "Failed to parse the request body as JSON");
    }
    let message = "Expected request with `Content-Type: application/json`";
    plain(415, "content-type", message)
}

/// What does not fit the table of fields.
pub(super) fn flaw(flaw: &Flaw) -> Refusal {
    match flaw.what {
        What::Missing | What::Type(..) => {
            let message = format!(
                "Failed to deserialize the JSON body into the target type: {}",
                flaw.says()
            );
            plain(422, flaw.rule(), message)
        }
        What::Unknown(_) => {
            let message = format!("Argument not supported: {}", flaw.field());
            invalid(flaw.rule(), message)
        }
        _ => invalid(flaw.rule(), flaw.says()),
    }
}

pub(super) fn model_missing(model: &str) -> Refusal {
    let message =
        format!("The model {model} does not exist or your team does not have access to it.");
    Refusal::new(404, CODED, "model", message).code("Some requested entity was not found")
}

pub(super) fn fault(fault: Fault, request: &Seen) -> Refusal {
    let model = request.body.get("model").and_then(Value::as_str);
    match fault {
        Fault::Status(status) => {
            let message = "An internal error has occurred.";
            Refusal::new(status, OBJECT, "behaviour", message).code("internal_error")
        }
        Fault::RateLimited { retry_after } => {
            let message = "Too many requests for team fake. Please slow down.";
            Refusal::new(429, OBJECT, "behaviour", message)
                .code("rate_limit_exceeded")
                .header("retry-after", retry_after.to_string())
        }
        Fault::QuotaExhausted => {
            let message = "Your team has either used all available credits or reached its monthly \
                spending limit.";
            Refusal::new(403, CODED, "behaviour", message)
                .code("The caller does not have permission to execute the specified operation")
        }
        Fault::KeyRefused => {
            let message = "Incorrect API key provided: xa***ke. You can obtain an API key from \
                https://console.x.ai.";
            invalid("key", message)
        }
        Fault::ModelMissing => model_missing(model.unwrap_or_default()),
        Fault::Overloaded => {
            let message = "The service is currently overloaded.";
            Refusal::new(503, OBJECT, "behaviour", message).code("overloaded")
        }
        Fault::Blocked | Fault::Filtered => {
            let message = "Generated content was rejected by content moderation.";
            invalid("moderation", message)
        }
    }
}
