//! Whole replies: read, written bare, and put into SPEC.md's shape.

use serde_json::{Value, json};

use super::error::failure;
use super::frame::Frame;
use super::output::Output;
use super::steps::{Steps, read_usage};
use super::stream_read::malformed;
use super::usage::Outcome;
use crate::error::Garbled;
use crate::format::Rendering;
use crate::hub::{Fold, Reply, Usage, events_of};

/// See [`crate::Format::read_reply`].
pub(super) fn read_reply(body: &[u8]) -> Result<Reply, Garbled> {
    let response: Value = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
    check_status(response["status"].as_str(), &response)?;
    if !response["output"].is_array() {
        return Err(Garbled::Malformed("a reply without output".to_owned()));
    }
    let (mut steps, mut events) = (Steps::default(), Vec::new());
    steps.learn(&response);
    steps.terminal(&response, response["status"] == "incomplete", &mut events)?;
    let mut fold = Fold::default();
    for event in &events {
        fold.push(event);
    }
    let mut reply = fold.reply();
    reply.service_tier = response["service_tier"].as_str().map(str::to_owned);
    Ok(reply)
}

/// Whether a reply of that status is a reply.
pub(super) fn check_status(status: Option<&str>, response: &Value) -> Result<(), Garbled> {
    let has_error = !response["error"].is_null();
    match status {
        Some("failed" | "cancelled") => {}
        _ if has_error => {}
        Some("queued" | "in_progress") => {
            return Err(Garbled::Malformed(
                "a reply that is not finished".to_owned(),
            ));
        }
        _ => return Ok(()),
    }
    Err(failure(
        json!({"object": "response", "error": response["error"]}),
    ))
}

/// See [`crate::Format::write_reply`].
pub(super) fn write_reply(reply: &Reply, rendering: &Rendering<'_>) -> Vec<u8> {
    let mut output = Output::whole(rendering);
    for event in events_of(reply) {
        output.push(&event);
    }
    let outcome = Outcome::of(output.finish.unwrap_or_default(), output.has_refusal());
    let cut = (outcome != Outcome::Completed).then(|| output.items.len().saturating_sub(1));
    for (at, item) in output.items.iter_mut().enumerate() {
        match Some(at) == cut {
            true => item.status = "incomplete",
            false => item.complete(),
        }
    }
    let mut frame = Frame::new(rendering);
    frame.learn(&reply.id, reply.created);
    if let Some(tier) = &reply.service_tier {
        frame.served_by(tier);
    }
    let object = Value::Object(frame.finished(&output, outcome));
    crate::text::of(&object)
}

/// See [`crate::Format::spec_reply`]: SPEC.md's chat-shaped fields, and the native ones that hold what those cannot.
pub(super) fn spec_reply(bare: Vec<u8>) -> Vec<u8> {
    let Ok(mut response) = serde_json::from_slice::<Value>(&bare) else {
        return bare;
    };
    if !response.is_object() {
        return bare;
    }
    let usage: Usage = read_usage(&response["usage"]).unwrap_or_default().into();
    let created = &response["created_at"];
    let created = created
        .as_i64()
        .or_else(|| created.as_f64().map(|at| at as i64));
    let finish_reason = match response["incomplete_details"]["reason"].as_str() {
        Some("content_filter") => "content_filter",
        _ if response["status"] == "incomplete" => "length",
        _ => "stop",
    };
    let spec = json!({
        "id": response["id"].take(),
        "object": "response",
        "created": created.unwrap_or(0),
        "model": response["model"].take(),
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": visible_text(&response["output"])},
            "finish_reason": finish_reason,
        }],
        "usage": {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.total(),
        },
        "status": response["status"].take(),
        "created_at": response["created_at"].take(),
        "output": response["output"].take(),
    });
    crate::text::of(&spec)
}

/// What a person would read of the output: texts and refusals.
fn visible_text(output: &Value) -> String {
    let items = output.as_array().map(Vec::as_slice).unwrap_or_default();
    let messages = items.iter().filter(|item| item["type"] == "message");
    let parts = messages.flat_map(|item| item["content"].as_array().into_iter().flatten());
    parts
        .filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str()))
        .collect()
}
