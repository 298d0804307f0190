//! Writes a complete (non-streaming) response for a client, bare or in the chat-completions shape of the envelope.

use serde_json::{Value, json};

use super::finish::ResponseStatus;
use super::output::{OutputBuilder, ResponseObject};
use super::usage::read_usage;
use crate::format::RenderOptions;
use crate::hub::{Response, Usage, events_from_response};

/// See [`crate::Format::write_response`].
pub(super) fn write_response(reply: &Response, options: &RenderOptions<'_>) -> Vec<u8> {
    let mut output = OutputBuilder::for_complete_response(options);
    for event in events_from_response(reply) {
        output.push(&event);
    }
    let status =
        ResponseStatus::from_finish(output.finish.unwrap_or_default(), output.has_refusal());
    let cut = (status != ResponseStatus::Completed).then(|| output.items.len().saturating_sub(1));
    for (at, item) in output.items.iter_mut().enumerate() {
        match Some(at) == cut {
            true => item.status = "incomplete",
            false => item.fill_empty_arguments(),
        }
    }
    let mut frame = ResponseObject::new(options);
    frame.set_identity(&reply.id, reply.created);
    if let Some(tier) = &reply.service_tier {
        frame.set_service_tier(tier);
    }
    let object = Value::Object(frame.build_finished(&output, status));
    crate::json_text::value_to_vec(&object)
}

/// See [`crate::Format::envelope_response`]: the members of a chat completion, followed by the native members for content that those cannot
/// represent.
pub(super) fn envelope_response(bare: Vec<u8>) -> Vec<u8> {
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
    crate::json_text::value_to_vec(&spec)
}

/// The text and refusals of all messages, joined.
fn visible_text(output: &Value) -> String {
    let items = output.as_array().map(Vec::as_slice).unwrap_or_default();
    let messages = items.iter().filter(|item| item["type"] == "message");
    let parts = messages.flat_map(|item| item["content"].as_array().into_iter().flatten());
    parts
        .filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str()))
        .collect()
}
