//! fal's answers: submissions, states, outputs and refusals.

use serde_json::Value;

use super::place::Place;
use crate::mapped::State;
use crate::provider::{ProviderError, ProviderErrorKind};
use crate::wire::{Answer, Wire, judged, unnamed};

/// Types of errors that say that the content was refused.
const REFUSAL_TYPES: &[&str] = &["content_policy_violation"];
/// Types that say that the machine broke down, not the request; besides all that begin with `runner_`.
const BREAKDOWN_TYPES: &[&str] = &[
    "internal_server_error",
    "internal_error",
    "generation_timeout",
    "request_timeout",
    "startup_timeout",
    "downstream_service_error",
    "downstream_service_unavailable",
];
/// Words of a 403 that say that money is the matter.
const QUOTA_WORDS: &[&str] = &["balance", "locked"];
/// On answers that come from behind the front proxy.
const REQUEST_ID: &str = "x-fal-request-id";

/// Where an accepted request is followed.
pub(super) fn accepted(wire: &Wire, answer: &Answer) -> Result<Place, ProviderError> {
    let json = answer.json();
    let text = |name: &str| json[name].as_str().map(str::to_owned);
    let places = (text("status_url"), text("response_url"), text("cancel_url"));
    match places {
        (Some(status), Some(response), Some(cancel)) if answer.status.is_success() => Ok(Place {
            status,
            response,
            cancel,
        }),
        _ => Err(unnamed(answer, refusal(wire, answer))),
    }
}

/// A request's state as the answer to a poll tells it; none of a finished one, whose response tells the rest, which may be
/// an error.
pub(super) fn unfinished(wire: &Wire, answer: &Answer) -> Result<Option<State>, ProviderError> {
    let json = answer.json();
    let Some(status) = json["status"]
        .as_str()
        .filter(|_| answer.status.is_success())
    else {
        return Err(refusal(wire, answer));
    };
    let error = json["error"].as_str().filter(|error| !error.is_empty());
    Ok(match (status, error) {
        ("COMPLETED", Some(error)) => {
            let kind = json["error_type"].as_str().and_then(known);
            let kind = kind.unwrap_or(ProviderErrorKind::Failed);
            Some(State::Failed(ProviderError::new(kind, wire.clean(error))))
        }
        ("COMPLETED", None) => None,
        ("IN_QUEUE" | "IN_PROGRESS", _) => Some(State::Open),
        (other, _) => {
            tracing::warn!(status = other, "a request's state that is not documented");
            Some(State::Open)
        }
    })
}

/// What the answer to the question for the output is; too early an answer is an open state, whatever the poll said.
pub(super) fn output(wire: &Wire, answer: &Answer) -> Result<State, ProviderError> {
    let json = answer.json();
    if answer.status.is_success() && !json.is_null() {
        return Ok(State::Done(json));
    }
    if answer.status.as_u16() == 400 && words(&json).contains("still in progress") {
        return Ok(State::Open);
    }
    let error = refusal(wire, answer);
    let is_proxy = !answer.headers.contains_key(REQUEST_ID);
    match (answer.status.as_u16(), error.kind) {
        // The way to the output failed, not the work.
        (502..=504, _) if is_proxy => Err(error),
        (200..=299, _) => Err(error),
        (
            _,
            ProviderErrorKind::RateLimited
            | ProviderErrorKind::KeyRefused
            | ProviderErrorKind::QuotaExhausted,
        ) => Err(error),
        (404, _) => Ok(State::Failed(ProviderError {
            kind: ProviderErrorKind::Failed,
            ..error
        })),
        _ => Ok(State::Failed(error)),
    }
}

/// Whether the safety checker put a black picture in the place of result number `index`.
pub(super) fn is_blacked_out(output: &Value, index: usize) -> bool {
    output["has_nsfw_concepts"][index] == true
}

/// What an answer means that is not the one asked for.
pub(super) fn refusal(wire: &Wire, answer: &Answer) -> ProviderError {
    let json = answer.json();
    let status = answer.status.as_u16();
    let words = words(&json);
    let types = json["detail"].as_array().into_iter().flatten();
    let types = types.map(|item| &item["type"]);
    let mut types = types.chain([&json["error_type"]]).filter_map(Value::as_str);
    let lower = words.to_lowercase();
    let kind = if let Some(kind) = types.find_map(known) {
        kind
    } else if status == 403 && QUOTA_WORDS.iter().any(|word| lower.contains(word)) {
        ProviderErrorKind::QuotaExhausted
    } else {
        judged(status, "", &words)
    };
    wire.told(kind, answer, &words)
}

/// What a type of error means; none where the status says it better.
fn known(name: &str) -> Option<ProviderErrorKind> {
    if REFUSAL_TYPES.contains(&name) {
        return Some(ProviderErrorKind::Moderated);
    }
    let is_breakdown = name.starts_with("runner_") || BREAKDOWN_TYPES.contains(&name);
    is_breakdown.then_some(ProviderErrorKind::Retryable)
}

/// The sentences of an error's `detail`, each with the place that it is about.
fn words(json: &Value) -> String {
    let item = |item: &Value| {
        let text = item["msg"].as_str()?;
        let place = item["loc"].as_array().into_iter().flatten();
        let place: Vec<&str> = place
            .filter_map(Value::as_str)
            .filter(|p| *p != "body")
            .collect();
        Some(match place.as_slice() {
            [] => text.to_owned(),
            _ => format!("{}: {text}", place.join(".")),
        })
    };
    match &json["detail"] {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().filter_map(item).collect();
            texts.join("; ")
        }
        _ => String::new(),
    }
}
