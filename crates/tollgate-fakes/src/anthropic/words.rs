//! How Anthropic says no.

use serde_json::{Value, json};

use crate::incoming::Seen;
use crate::refusal::{Fault, Refusal};
use crate::shape::{Flaw, What};

/// A request that breaks `rule`.
pub(super) fn invalid(rule: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(400, "invalid_request_error", rule, message)
}

pub(super) fn error(refusal: &Refusal, id: &str) -> Value {
    json!({
        "type": "error",
        "error": {"type": refusal.kind, "message": refusal.message},
        "request_id": id,
    })
}

/// What does not fit the table of fields.
pub(super) fn flaw(flaw: &Flaw) -> Box<Refusal> {
    let at = flaw.place.write();
    let (rule, message) = match &flaw.what {
        What::Unknown(name) => {
            let dot = if at.is_empty() { "" } else { "." };
            let message = format!("{at}{dot}{name}: Extra inputs are not permitted");
            ("unknown-field", message)
        }
        What::Missing => ("missing-field", format!("{at}: Field required")),
        What::Type(expected, _) => {
            let expected = match *expected {
                "a string" => "a valid string",
                "an integer" => "a valid integer",
                "a decimal" => "a valid number",
                "an array" => "a valid list",
                "an object" => "a valid dictionary",
                other => other,
            };
            ("type", format!("{at}: Input should be {expected}"))
        }
        What::Below(least) => {
            let message = format!("{at}: Input should be greater than or equal to {least}");
            ("range", message)
        }
        What::Above(most) => {
            let message = format!("{at}: Input should be less than or equal to {most}");
            ("range", message)
        }
        What::NotOneOf(names, _) => {
            let message = format!("{at}: Input should be '{}'", names.join("' or '"));
            ("value", message)
        }
        What::TooLong(most, _) => {
            let message = format!("{at}: String should have at most {most} characters");
            ("length", message)
        }
        What::TooMany(most, many) => {
            let message =
                format!("{at}: List should have at most {most} items after validation, not {many}");
            ("too-many", message)
        }
    };
    Box::new(invalid(rule, message))
}

/// The word for an error of this status.
fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// An error of this status.
pub(super) fn of_status(status: u16, rule: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(status, kind(status), rule, message)
}

pub(super) fn fault(fault: Fault, request: &Seen) -> Refusal {
    match fault {
        Fault::Status(status) => of_status(status, "behaviour", "Internal server error"),
        Fault::RateLimited { retry_after } => {
            let message = "This request would exceed the rate limit for your organization of 50 \
                requests per minute.";
            of_status(429, "behaviour", message)
                .header("retry-after", retry_after.to_string())
                .header("anthropic-ratelimit-requests-remaining", "0")
        }
        Fault::QuotaExhausted => {
            let message = "Your credit balance is too low to access the Anthropic API. Please go \
                to Plans & Billing to upgrade or purchase credits.";
            of_status(402, "behaviour", message)
        }
        Fault::KeyRefused => of_status(401, "key", "invalid x-api-key"),
        Fault::ModelMissing => {
            let model = request.body.get("model").and_then(Value::as_str);
            let model = model.unwrap_or(&request.path);
            of_status(404, "model", format!("model: {model}"))
        }
        Fault::Overloaded => of_status(529, "behaviour", "Overloaded"),
        Fault::Blocked | Fault::Filtered => of_status(
            400,
            "moderation",
            "Output blocked by content filtering policy",
        ),
    }
}
