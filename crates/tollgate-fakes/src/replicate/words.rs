//! How Replicate says no: problem details (RFC 7807).

use serde_json::{Value, json};

use crate::refusal::{Fault, Refusal};

/// A problem with a title.
pub(super) fn problem(
    status: u16,
    title: &'static str,
    rule: &'static str,
    detail: impl Into<String>,
) -> Refusal {
    Refusal::new(status, title, rule, detail)
}

/// A field of the input that is not in order.
pub(super) fn invalid(rule: &'static str, field: &str, what: &str) -> Refusal {
    let detail = format!("- {field}: {what}\n");
    let invalid = json!({"type": rule, "field": field, "description": what});
    problem(422, "Input validation failed", rule, detail).detail(invalid)
}

pub(super) fn error(refusal: &Refusal) -> Value {
    let mut problem = json!({
        "title": refusal.kind, "detail": refusal.message, "status": refusal.status,
    });
    if refusal.status == 422 {
        problem["invalid_fields"] = json!(refusal.details);
    }
    problem
}

pub(super) fn no_key() -> Refusal {
    let detail = "You did not pass an authentication token";
    problem(401, "Unauthenticated", "auth", detail)
}

/// What is not there.
pub(super) fn missing(rule: &'static str) -> Refusal {
    let detail = "The requested resource could not be found.";
    problem(404, "Not found", rule, detail)
}

pub(super) fn fault(fault: Fault) -> Refusal {
    let rule = "behaviour";
    match fault {
        Fault::Status(status) => problem(
            status,
            "Internal server error",
            rule,
            "An internal server error occurred.",
        ),
        Fault::RateLimited { retry_after } => {
            let detail = format!(
                "Request was throttled. Your rate limit for creating predictions is reached. \
                 Expected available in {retry_after} seconds."
            );
            problem(429, "Too many requests", rule, detail)
                .header("retry-after", retry_after.to_string())
        }
        Fault::QuotaExhausted => problem(
            402,
            "Insufficient credit",
            rule,
            "You have insufficient credit to run this model.",
        ),
        Fault::KeyRefused => problem(
            401,
            "Unauthenticated",
            "key",
            "You did not pass a valid authentication token",
        ),
        Fault::ModelMissing => missing("model"),
        Fault::Overloaded => problem(
            503,
            "Service unavailable",
            rule,
            "The service is temporarily unavailable.",
        ),
        Fault::Blocked | Fault::Filtered => invalid(
            "moderation",
            "input.prompt",
            "The input was flagged as sensitive. (E005)",
        ),
    }
}
