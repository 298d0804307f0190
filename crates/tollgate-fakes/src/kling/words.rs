//! How Kling says no: a number in an envelope.

use serde_json::{Value, json};

use crate::incoming::Seen;
use crate::refusal::{Fault, Refusal};

/// An error with a number.
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
    of_code(400, "1201", rule, message)
}

pub(super) fn error(refusal: &Refusal, id: &str) -> Value {
    let code: u32 = refusal
        .code
        .and_then(|code| code.parse().ok())
        .unwrap_or(5000);
    json!({"code": code, "message": refusal.message, "request_id": id})
}

pub(super) fn no_key() -> Refusal {
    of_code(401, "1001", "auth", "Authorization is empty")
}

/// A token where only keys are taken.
pub(super) fn no_token_here() -> Refusal {
    let message = "Authorization is invalid: this API takes an API key only";
    of_code(401, "1002", "jwt-path", message)
}

pub(super) fn address() -> Refusal {
    of_code(404, "1202", "path", "The request method or path is invalid")
}

pub(super) fn not_json(said: bool) -> Refusal {
    let rule = if said { "json" } else { "content-type" };
    of_code(
        400,
        "1200",
        rule,
        "Invalid request parameters: the body is not JSON",
    )
}

pub(super) fn model_missing(model: &str) -> Refusal {
    of_code(
        404,
        "1203",
        "model",
        format!("Model {model} does not exist"),
    )
}

pub(super) fn task_missing(id: &str) -> Refusal {
    of_code(404, "1203", "task", format!("Task {id} does not exist"))
}

pub(super) fn fault(fault: Fault, _: &Seen) -> Refusal {
    let rule = "behaviour";
    match fault {
        Fault::Status(status) => {
            let code = match status {
                400..=499 => "1200",
                503 => "5001",
                504 => "5002",
                _ => "5000",
            };
            of_code(status, code, rule, "Server internal error")
        }
        Fault::RateLimited { .. } => of_code(429, "1302", rule, "Too many requests"),
        Fault::QuotaExhausted => {
            let message = "The resource pack is used up or has expired";
            of_code(429, "1102", rule, message)
        }
        Fault::KeyRefused => of_code(401, "1002", "key", "Authorization is invalid"),
        Fault::ModelMissing => model_missing("of the request"),
        Fault::Overloaded => {
            let message = "parallel task over resource pack limit";
            of_code(429, "1303", rule, message)
        }
        Fault::Blocked | Fault::Filtered => {
            let message = "The content does not pass the risk control of the platform";
            of_code(400, "1301", "moderation", message)
        }
    }
}
