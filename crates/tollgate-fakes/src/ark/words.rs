//! How Ark says no.

use serde_json::{Value, json};

use crate::incoming::Seen;
use crate::refusal::{Fault, Refusal};
use crate::shape::{Flaw, What};

/// The word for a status.
fn kind(status: u16) -> &'static str {
    match status {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        429 => "TooManyRequests",
        400..=499 => "BadRequest",
        _ => "InternalServerError",
    }
}

/// An error with a code.
pub(super) fn of_code(
    status: u16,
    code: &'static str,
    rule: &'static str,
    message: impl Into<String>,
) -> Refusal {
    Refusal::new(status, kind(status), rule, message).code(code)
}

/// A parameter that is not in order.
pub(super) fn invalid(rule: &'static str, param: &str, message: impl Into<String>) -> Refusal {
    let message = message.into();
    let message =
        format!("The parameter `{param}` specified in the request is not valid: {message}.");
    of_code(400, "InvalidParameter", rule, message).param(param)
}

pub(super) fn error(refusal: &Refusal, id: &str) -> Value {
    json!({"error": {
        "code": refusal.code,
        "message": format!("{} Request id: {id}", refusal.message),
        "param": refusal.param.clone().unwrap_or_default(),
        "type": refusal.kind,
    }})
}

pub(super) fn no_key() -> Refusal {
    let message = "The API key in the request is missing or invalid.";
    of_code(401, "AuthenticationError", "auth", message)
}

pub(super) fn address(path: &str) -> Refusal {
    of_code(404, "NotFound", "path", format!("{path} does not exist."))
}

pub(super) fn not_json(said: bool) -> Refusal {
    let rule = if said { "json" } else { "content-type" };
    let message = "The request body is not a JSON object.";
    of_code(400, "InvalidParameter", rule, message)
}

/// What does not fit the table of fields.
pub(super) fn flaw(flaw: &Flaw) -> Refusal {
    let field = flaw.field();
    if matches!(flaw.what, What::Missing) {
        let message = format!("The request failed because it is missing `{field}` parameter.");
        return of_code(400, "MissingParameter", flaw.rule(), message).param(field);
    }
    invalid(flaw.rule(), &field, flaw.says())
}

pub(super) fn task_missing(id: &str) -> Refusal {
    let message = format!("The specified task {id} is not found.");
    of_code(404, "NotFound.Task", "task", message)
}

pub(super) fn fault(fault: Fault, request: &Seen) -> Refusal {
    let model = request.body.get("model").and_then(Value::as_str);
    let model = model.unwrap_or_default();
    match fault {
        Fault::Status(status) => {
            let message = "The service encountered an unexpected internal error.";
            of_code(status, "InternalServiceError", "behaviour", message)
        }
        Fault::RateLimited { retry_after } => {
            let message = "Requests per minute of the account for the model have reached their \
                limit. Please try again later.";
            let code = "ModelAccountRpmRateLimitExceeded";
            of_code(429, code, "behaviour", message).header("retry-after", retry_after.to_string())
        }
        Fault::QuotaExhausted => {
            let message = "The request failed because your account has an overdue balance.";
            of_code(403, "AccountOverdueError", "behaviour", message)
        }
        Fault::KeyRefused => {
            let message = "The API key doesn't exist.";
            of_code(401, "AuthenticationError", "key", message)
        }
        Fault::ModelMissing => {
            let message = format!(
                "The model or endpoint {model} does not exist or you do not have access to it."
            );
            let code = "InvalidEndpointOrModel.NotFound";
            of_code(404, code, "model", message).param("model")
        }
        Fault::Overloaded => {
            let message = "The service is currently unable to handle additional requests.";
            of_code(429, "ServerOverloaded", "behaviour", message)
        }
        Fault::Blocked => {
            let message =
                "The request failed because the input text may contain sensitive information.";
            of_code(
                400,
                "InputTextSensitiveContentDetected",
                "moderation",
                message,
            )
        }
        Fault::Filtered => {
            let message =
                "The request failed because the output image may contain sensitive information.";
            of_code(
                400,
                "OutputImageSensitiveContentDetected",
                "moderation",
                message,
            )
        }
    }
}
