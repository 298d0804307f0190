//! How DashScope says no.

use serde_json::{Value, json};

use crate::incoming::Seen;
use crate::refusal::{Fault, Refusal};
use crate::shape::Flaw;

/// An error with a code.
pub(super) fn of_code(
    status: u16,
    code: &'static str,
    rule: &'static str,
    message: impl Into<String>,
) -> Refusal {
    Refusal::new(status, "", rule, message).code(code)
}

/// A request that breaks `rule`.
pub(super) fn invalid(rule: &'static str, message: impl Into<String>) -> Refusal {
    of_code(400, "InvalidParameter", rule, message)
}

pub(super) fn error(refusal: &Refusal, id: &str) -> Value {
    json!({"request_id": id, "code": refusal.code, "message": refusal.message})
}

pub(super) fn no_key() -> Refusal {
    of_code(401, "InvalidApiKey", "auth", "No API-key provided.")
}

pub(super) fn address() -> Refusal {
    of_code(404, "NotFound", "path", "Path not found.")
}

pub(super) fn not_json(said: bool) -> Refusal {
    let rule = if said { "json" } else { "content-type" };
    invalid(
        rule,
        "Required body invalid, please check the request body format.",
    )
}

/// What does not fit the table of fields.
pub(super) fn flaw(flaw: &Flaw) -> Refusal {
    invalid(flaw.rule(), flaw.says())
}

pub(super) fn fault(fault: Fault, request: &Seen) -> Refusal {
    let model = request.body.get("model").and_then(Value::as_str);
    let rule = "behaviour";
    match fault {
        Fault::Status(status @ (503 | 504)) => {
            of_code(status, "ServiceUnavailable", rule, "Service unavailable.")
        }
        Fault::Status(status) => of_code(status, "InternalError", rule, "Internal server error!"),
        Fault::RateLimited { .. } => {
            let message = "Requests rate limit exceeded, please try again later.";
            of_code(429, "Throttling.RateQuota", rule, message)
        }
        Fault::QuotaExhausted => {
            let message = "Access denied, please make sure your account is in good standing.";
            of_code(400, "Arrearage", rule, message)
        }
        Fault::KeyRefused => of_code(401, "InvalidApiKey", "key", "Invalid API-key provided."),
        Fault::ModelMissing => {
            let message = format!("Model not exist: {}.", model.unwrap_or_default());
            of_code(404, "ModelNotFound", "model", message)
        }
        Fault::Overloaded => {
            let message = "The model is temporarily unavailable, please try again later.";
            of_code(503, "ModelUnavailable", rule, message)
        }
        Fault::Blocked => {
            let message = "Input data may contain inappropriate content.";
            of_code(400, "DataInspectionFailed", "moderation", message)
        }
        Fault::Filtered => {
            let message = "Output data may contain inappropriate content.";
            of_code(400, "DataInspectionFailed", "moderation", message)
        }
    }
}
