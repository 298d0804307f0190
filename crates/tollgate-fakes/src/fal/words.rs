//! How fal says no: a text, or a list of places and what is wrong there.

use serde_json::{Value, json};

use crate::incoming::Seen;
use crate::refusal::{Fault, Refusal};
use crate::shape::{Flaw, What};

/// An error of a text.
pub(super) fn plain(status: u16, rule: &'static str, detail: impl Into<String>) -> Refusal {
    let is_worth_it = matches!(status, 408 | 429 | 500..);
    let refusal = Refusal::new(status, "", rule, detail);
    refusal.header("x-fal-retryable", is_worth_it.to_string())
}

/// An error at a place of the input.
pub(super) fn at(kind: &'static str, rule: &'static str, field: &str, what: &str) -> Refusal {
    let mut place = vec![json!("body")];
    place.extend(
        field
            .split('.')
            .filter(|part| !part.is_empty())
            .map(|part| json!(part)),
    );
    let detail = json!({"loc": place, "msg": what, "type": kind});
    plain(422, rule, what)
        .header("x-fal-error-type", kind)
        .detail(detail)
}

/// What does not fit the table of fields.
pub(super) fn flaw(flaw: &Flaw) -> Refusal {
    let kind = match flaw.what {
        What::Unknown(_) => "extra_forbidden",
        What::Missing => "missing",
        What::Type(..) => "type_error",
        What::Below(_) => "greater_than_equal",
        What::Above(_) => "less_than_equal",
        What::NotOneOf(..) => "literal_error",
        What::TooLong(..) => "string_too_long",
        What::TooMany(..) => "too_long",
    };
    at(kind, flaw.rule(), &flaw.field(), &flaw.says())
}

pub(super) fn error(refusal: &Refusal) -> Value {
    match refusal.details[..] {
        [] => json!({"detail": refusal.message}),
        _ => json!({"detail": refusal.details}),
    }
}

pub(super) fn no_key() -> Refusal {
    plain(
        401,
        "auth",
        "Authentication is required to access this application",
    )
}

pub(super) fn missing(rule: &'static str) -> Refusal {
    plain(404, rule, "Not Found")
}

pub(super) fn method() -> Refusal {
    plain(405, "method", "Method Not Allowed")
}

/// A refusal by moderation.
pub(super) fn policy() -> Refusal {
    let what = "The content could not be processed because it contained material flagged by a \
        content checker.";
    at("content_policy_violation", "moderation", "prompt", what)
}

pub(super) fn fault(fault: Fault, request: &Seen) -> Refusal {
    let rule = "behaviour";
    match fault {
        Fault::Status(status) => {
            plain(status, rule, "Internal Server Error").header("x-fal-error-type", "runner_error")
        }
        Fault::RateLimited { .. } => plain(429, rule, "Too many requests"),
        Fault::QuotaExhausted => {
            let detail = "User is locked. Reason: Exhausted balance. Top up your balance at \
                fal.ai/dashboard/billing.";
            plain(403, rule, detail)
        }
        Fault::KeyRefused => plain(401, "key", "No user found for Key ID and Secret"),
        Fault::ModelMissing => {
            let detail = format!("Application '{}' not found", request.path.trim_matches('/'));
            plain(404, "model", detail)
        }
        Fault::Overloaded => plain(503, rule, "Service Unavailable"),
        Fault::Blocked | Fault::Filtered => policy(),
    }
}
