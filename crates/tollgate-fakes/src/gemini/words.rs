//! How Gemini says no.

use serde_json::{Value, json};

use crate::incoming::Seen;
use crate::place::snake;
use crate::refusal::{Fault, Refusal};
use crate::shape::{Flaw, What};

/// A request that breaks `rule`.
pub(super) fn invalid(rule: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(400, "INVALID_ARGUMENT", rule, message)
}

pub(super) fn error(refusal: &Refusal) -> Value {
    let mut error = json!({
        "code": refusal.status, "message": refusal.message, "status": refusal.kind,
    });
    if !refusal.details.is_empty() {
        error["details"] = json!(refusal.details);
    }
    json!({"error": error})
}

/// A field that is not in order, as Google's JSON reader says it.
pub(super) fn violation(rule: &'static str, place: &str, what: &str) -> Refusal {
    let detail = json!({
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations": [{"field": place, "description": what}],
    });
    invalid(rule, what).detail(detail)
}

/// What does not fit the table of fields.
pub(super) fn flaw(flaw: &Flaw) -> Box<Refusal> {
    let at = flaw.place.write();
    let (rule, message) = match &flaw.what {
        What::Unknown(name) => {
            let place = if at.is_empty() {
                String::new()
            } else {
                format!(" at '{at}'")
            };
            let message = format!(
                "Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field."
            );
            ("unknown-field", message)
        }
        What::Missing => {
            let message = format!("* GenerateContentRequest.{at}: {at} is not specified\n");
            ("missing-field", message)
        }
        What::Type(_, "an array") => {
            let message = format!(
                "Invalid JSON payload received. Unknown name \"{at}\": Proto field is not \
                 repeating, cannot start list."
            );
            ("type", message)
        }
        What::Type(expected, given) => {
            let message = format!("Invalid value at '{at}': expected {expected}, got {given}");
            ("type", message)
        }
        What::NotOneOf(names, given) => {
            let names = names.join(", ");
            let message = format!("Invalid value at '{at}' ({names}), \"{given}\"");
            ("value", message)
        }
        What::Below(bound) | What::Above(bound) => {
            let name = snake(at.rsplit('.').next().unwrap_or_default());
            let message = format!(
                "* GenerateContentRequest.{at}: {name} must be in the supported range, whose bound \
                 is {bound}.\n"
            );
            ("range", message)
        }
        What::TooLong(most, _) => {
            let message = format!("* GenerateContentRequest.{at}: at most {most} characters\n");
            ("length", message)
        }
        What::TooMany(most, many) => {
            let message = format!(
                "The number of {} must be at most {most}, but {many} were given.",
                snake(at.rsplit('.').next().unwrap_or_default())
            );
            ("too-many", message)
        }
    };
    Box::new(violation(rule, &at, &message))
}

/// What does not fit the table of fields of a prediction.
pub(super) fn flaw_of_prediction(flaw: &Flaw) -> Box<Refusal> {
    Box::new(invalid(flaw.rule(), flaw.says()))
}

/// A request that needs a token of OAuth.
pub(super) fn no_token() -> Refusal {
    let message = "Request had invalid authentication credentials. Expected OAuth 2 access token, \
        login cookie or other valid authentication credential.";
    of_status(401, "auth", message)
}

fn status_name(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        402 | 429 => "RESOURCE_EXHAUSTED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        499 => "CANCELLED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}

/// An error of this status.
pub(super) fn of_status(status: u16, rule: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(status, status_name(status), rule, message)
}

pub(super) fn fault(fault: Fault, request: &Seen) -> Refusal {
    match fault {
        Fault::Status(status) => {
            let message = "An internal error has occurred. Please retry or report in \
                https://developers.generativeai.google/guide/troubleshooting";
            of_status(status, "behaviour", message)
        }
        Fault::RateLimited { retry_after } => {
            let detail = json!({
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{retry_after}s"),
            });
            let message =
                format!("You exceeded your current rate limit. Please retry in {retry_after}s.");
            of_status(429, "behaviour", message)
                .detail(quota("PerMinute"))
                .detail(detail)
        }
        Fault::QuotaExhausted => {
            let message = "You exceeded your current quota, please check your plan and billing \
                details.";
            of_status(429, "behaviour", message).detail(quota("PerDay"))
        }
        Fault::KeyRefused => {
            let detail = json!({
                "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            });
            invalid("key", "API key not valid. Please pass a valid API key.").detail(detail)
        }
        Fault::ModelMissing => {
            let model = request
                .path
                .rsplit_once("models/")
                .map_or("", |(_, rest)| rest);
            let (model, method) = model.rsplit_once(':').unwrap_or((model, "generateContent"));
            let message = format!(
                "models/{model} is not found for API version v1beta, or is not supported for \
                 {method}. Call ListModels to see the list of available models and their supported \
                 methods."
            );
            of_status(404, "model", message)
        }
        Fault::Blocked | Fault::Filtered => {
            let message = "The prompt could not be submitted: it contains words that violate \
                Google's Responsible AI practices.";
            invalid("moderation", message)
        }
        Fault::Overloaded => of_status(
            503,
            "behaviour",
            "The model is overloaded. Please try again later.",
        ),
    }
}

fn quota(period: &str) -> Value {
    json!({
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": format!("GenerateRequests{period}PerProjectPerModel")}],
    })
}
