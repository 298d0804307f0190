//! How OpenAI says no.

use serde_json::{Value, json};

use crate::incoming::Seen;
use crate::refusal::{Fault, Refusal};
use crate::shape::{Flaw, What};

const INVALID: &str = "invalid_request_error";

/// A request that breaks `rule`.
pub(super) fn invalid(rule: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(400, INVALID, rule, message)
}

pub(super) fn error(refusal: &Refusal) -> Value {
    json!({"error": {
        "message": refusal.message,
        "type": refusal.kind,
        "param": refusal.param,
        "code": refusal.code,
    }})
}

pub(super) fn no_key() -> Refusal {
    let message = "You didn't provide an API key. You need to provide your API key in an \
        Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).";
    Refusal::new(401, INVALID, "auth", message)
}

pub(super) fn method(method: &str, path: &str) -> Refusal {
    let message = format!("Not allowed to {method} on {path}.");
    Refusal::new(405, INVALID, "method", message).code("method_not_supported")
}

pub(super) fn address(method: &str, path: &str) -> Refusal {
    Refusal::new(
        404,
        INVALID,
        "path",
        format!("Invalid URL ({method} {path})"),
    )
}

pub(super) fn content_type(given: &str) -> Refusal {
    let message = format!(
        "Unsupported content type: '{given}'. This API method only accepts 'application/json' \
         requests, but you specified the header 'Content-Type: {given}'."
    );
    invalid("content-type", message).code("unsupported_content_type")
}

pub(super) fn not_json() -> Refusal {
    let message = "We could not parse the JSON body of your request. The OpenAI API expects a \
        JSON payload.";
    invalid("json", message)
}

pub(super) fn unsupported(param: &str, instead: Option<&str>) -> Refusal {
    let instead = instead.map_or(String::new(), |other| format!(" Use '{other}' instead."));
    let message =
        format!("Unsupported parameter: '{param}' is not supported with this model.{instead}");
    invalid("unsupported-parameter", message)
        .code("unsupported_parameter")
        .param(param)
}

pub(super) fn unsupported_value(param: &str, value: &Value) -> Refusal {
    let message = format!(
        "Unsupported value: '{param}' does not support {value} with this model. Only the default \
         value is supported."
    );
    invalid("unsupported-value", message)
        .code("unsupported_value")
        .param(param)
}

pub(super) fn invalid_value(
    rule: &'static str,
    param: &str,
    message: impl Into<String>,
) -> Refusal {
    invalid(rule, message).code("invalid_value").param(param)
}

/// What does not fit the table of fields.
pub(super) fn flaw(flaw: &Flaw) -> Box<Refusal> {
    let at = flaw.place.write();
    let refusal = match &flaw.what {
        What::Unknown(name) if at.is_empty() => {
            let message = format!("Unrecognized request argument supplied: {name}");
            invalid("unknown-field", message)
                .code("unknown_parameter")
                .param(name)
        }
        What::Unknown(name) => {
            let path = format!("{at}.{name}");
            invalid("unknown-field", format!("Unknown parameter: '{path}'."))
                .code("unknown_parameter")
                .param(path)
        }
        What::Missing => invalid(
            "missing-field",
            format!("Missing required parameter: '{at}'."),
        )
        .code("missing_required_parameter"),
        What::Type(expected, given) => {
            let message =
                format!("Invalid type for '{at}': expected {expected}, but got {given} instead.");
            invalid("type", message).code("invalid_type")
        }
        What::Below(least) => {
            let message =
                format!("Invalid '{at}': value below minimum. Expected a value >= {least}.");
            invalid("range", message).code("decimal_below_min_value")
        }
        What::Above(most) => {
            let message =
                format!("Invalid '{at}': value above maximum. Expected a value <= {most}.");
            invalid("range", message).code("decimal_above_max_value")
        }
        What::NotOneOf(names, given) => {
            let names = names.join("', '");
            let message = format!("Invalid value: '{given}'. Supported values are: '{names}'.");
            invalid("value", message).code("invalid_value")
        }
        What::TooLong(most, long) => {
            let message = format!(
                "Invalid '{at}': string too long. Expected a string with maximum length {most}, \
                 but got a string with length {long} instead."
            );
            invalid("length", message).code("string_above_max_length")
        }
        What::TooMany(most, many) => {
            let message = format!(
                "Invalid '{at}': array too long. Expected an array with maximum length {most}, \
                 but got an array with length {many} instead."
            );
            invalid("too-many", message).code("array_above_max_length")
        }
    };
    let refusal = if refusal.param.is_some() {
        refusal
    } else {
        refusal.param(at)
    };
    Box::new(refusal)
}

/// What the fake has not learnt, though the real one can do it.
pub(super) fn not_made(message: &str) -> Refusal {
    Refusal::new(501, "server_error", "not-made", message)
}

pub(super) fn model_missing(model: &str) -> Refusal {
    let message = format!("The model `{model}` does not exist or you do not have access to it.");
    Refusal::new(404, INVALID, "model", message)
        .code("model_not_found")
        .param("model")
}

pub(super) fn fault(fault: Fault, request: &Seen) -> Refusal {
    let model = request
        .body
        .get("model")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match fault {
        Fault::Status(status) => {
            let kind = match status {
                400..=428 => INVALID,
                429 => "rate_limit_error",
                _ => "server_error",
            };
            let message = "The server had an error while processing your request. Sorry!";
            Refusal::new(status, kind, "behaviour", message)
        }
        Fault::RateLimited { retry_after } => {
            let message = format!(
                "Rate limit reached for {model} in organization org-fake on requests per min \
                 (RPM): Limit 3, Used 3, Requested 1. Please try again in {retry_after}s."
            );
            Refusal::new(429, "rate_limit_error", "behaviour", message)
                .code("rate_limit_exceeded")
                .header("retry-after", retry_after.to_string())
                .header("retry-after-ms", (1000 * retry_after).to_string())
        }
        Fault::QuotaExhausted => {
            let message = "You exceeded your current quota, please check your plan and billing \
                details.";
            Refusal::new(429, "insufficient_quota", "behaviour", message).code("insufficient_quota")
        }
        Fault::KeyRefused => {
            let message = "Incorrect API key provided: sk-fake***. You can find your API key at \
                https://platform.openai.com/account/api-keys.";
            Refusal::new(401, INVALID, "key", message).code("invalid_api_key")
        }
        Fault::ModelMissing => model_missing(model),
        Fault::Blocked | Fault::Filtered => {
            let message = "Your request was rejected by the safety system. \
                safety_violations=[violence].";
            Refusal::new(400, "image_generation_user_error", "moderation", message)
                .code("moderation_blocked")
        }
        Fault::Overloaded => {
            let message = "The engine is currently overloaded, please try again later";
            Refusal::new(503, "server_error", "behaviour", message).code("server_error")
        }
    }
}
