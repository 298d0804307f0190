//! Whole replies.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::blocks::{carrier, input_of, proof_for_client, push_block, write_citation};
use super::error::words_of;
use super::fields::{Fields, Path, put_back};
use super::request::wire_id;
use super::stream_read::minted;
use super::usage::{self, Counts};
use super::wire::{NAME, VENDOR, finish_of, stop_reason};
use crate::error::{InvalidRequest, MalformedResponse};
use crate::format::RenderOptions;
use crate::hub::{Choice, FinishReason, Opaque, Part, PartKind, Response, Source, Usage};
use crate::media;
use crate::tokens::TokenEstimator;

/// Reads a whole reply; see [`crate::Format::read_response`].
pub(super) fn read(body: &[u8]) -> Result<Response, MalformedResponse> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| MalformedResponse::Invalid(format!("the reply is no JSON: {error}")))?;
    if value.get("type").is_some_and(|kind| kind == "error") {
        return Err(MalformedResponse::Upstream(words_of(&value)));
    }
    reply(value).map_err(|bad| MalformedResponse::Invalid(bad.message))
}

fn reply(value: Value) -> Result<Response, InvalidRequest> {
    let mut fields = Fields::of(value, &Path::Root)?;
    let at = Path::Member(&Path::Root, "content");
    let blocks = fields
        .list("content")?
        .ok_or_else(|| at.bad("is required"))?;
    let mut parts = Vec::with_capacity(blocks.len());
    let id = fields.text("id")?.unwrap_or_default();
    for (index, mut block) in blocks.into_iter().enumerate() {
        if block["type"] == "tool_use" && block["id"].as_str().is_none_or(str::is_empty) {
            block["id"] = json!(minted(&id, index as u64));
        }
        push_block(block, &Path::Item(&at, index), &mut parts)?;
    }
    let (counts, service_tier) = take_usage(&mut fields);
    let has_calls = parts
        .iter()
        .any(|part| matches!(part.kind, PartKind::ToolCall { .. }));
    let reason = fields.text("stop_reason")?;
    let finish = finish_of(reason.as_deref().unwrap_or("end_turn")).with_tool_calls(has_calls);
    let choice = Choice {
        parts,
        finish,
        stop_sequence: fields.text("stop_sequence")?,
        ..Choice::empty(0)
    };
    for known in ["type", "role"] {
        fields.take(known);
    }
    Ok(Response {
        id,
        model: fields.text("model")?.unwrap_or_default(),
        created: None,
        choices: vec![choice],
        usage: counts.usage(),
        service_tier,
        extra: fields.rest(),
    })
}

/// The counts, and the tier that served; what else stands there stays for the reply's own.
fn take_usage(fields: &mut Fields<'_>) -> (Counts, Option<String>) {
    let Some(Value::Object(mut members)) = fields.take("usage") else {
        return (Counts::default(), None);
    };
    let text = Value::Object(members.clone()).to_string();
    let counts =
        RawValue::from_string(text).map_or_else(|_| Counts::default(), |raw| Counts::of(&raw));
    let tier = match members.shift_remove("service_tier") {
        Some(Value::String(tier)) => Some(tier),
        _ => None,
    };
    for known in usage::KNOWN {
        members.shift_remove(*known);
    }
    members.retain(|_, value| !value.is_null());
    if !members.is_empty() {
        fields.keep("usage", Value::Object(members));
    }
    (counts, tier)
}

/// Writes a whole reply; see [`crate::Format::write_response`].
pub(super) fn write(reply: &Response, rendering: &RenderOptions<'_>) -> Vec<u8> {
    let choice = reply.choices.first();
    let mut content = Vec::new();
    let mut finish = choice.map_or(FinishReason::PromptBlocked, |choice| choice.finish);
    for part in choice.iter().flat_map(|choice| &choice.parts) {
        if matches!(part.kind, PartKind::Refusal(_)) && finish == FinishReason::EndTurn {
            finish = FinishReason::Refusal;
        }
        content.extend(blocks_of(part, content.len()));
    }
    let sequence = choice.and_then(|choice| choice.stop_sequence.as_deref());
    let sequence = sequence.filter(|_| finish == FinishReason::StopSequence);
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("id", json!(message_id(&reply.id, rendering.seed)));
    put("type", json!("message"));
    put("role", json!("assistant"));
    put("model", json!(rendering.model));
    put("content", Value::Array(content));
    put(
        "stop_reason",
        json!(stop_reason(finish, sequence.is_some())),
    );
    put("stop_sequence", json!(sequence));
    put("usage", write_usage(reply, rendering));
    put_back(&reply.extra, &mut out);
    crate::json_text::object_to_vec(&out)
}

/// The upstream's id where it is of this format's kind, else one of ours.
pub(super) fn message_id(upstream: &str, seed: &str) -> String {
    match upstream.starts_with("msg_") {
        true => upstream.to_owned(),
        false => format!("msg_{seed}"),
    }
}

fn write_usage(reply: &Response, rendering: &RenderOptions<'_>) -> Value {
    let mut out = usage::write(&reply.usage.unwrap_or_else(|| estimate(reply, rendering)));
    if let Some(tier) = &reply.service_tier {
        out.insert("service_tier".to_owned(), json!(tier));
    }
    let extra = reply
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get("usage"));
    for (name, value) in extra.and_then(Value::as_object).into_iter().flatten() {
        out.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(out)
}

/// A count of ours, where the upstream gave none.
fn estimate(reply: &Response, rendering: &RenderOptions<'_>) -> Usage {
    let mut generated = TokenEstimator::default();
    for part in reply.choices.iter().flat_map(|choice| &choice.parts) {
        match &part.kind {
            PartKind::Text { text, .. }
            | PartKind::Reasoning { text, .. }
            | PartKind::Refusal(text) => {
                generated.add(text);
            }
            PartKind::ToolCall {
                name, arguments, ..
            } => {
                generated.add(name);
                generated.add(arguments);
            }
            _ => {}
        }
    }
    Usage {
        input: rendering.estimated_prompt_tokens,
        output: generated.tokens(),
        ..Usage::default()
    }
}

/// The blocks of one part, with the carrier of a foreign signature behind it. `at` is the first one's index.
pub(super) fn blocks_of(part: &Part, at: usize) -> Vec<Value> {
    let mut out = Vec::from_iter(block_of(part, at));
    let signature = match &part.kind {
        PartKind::Text { signature, .. } | PartKind::ToolCall { signature, .. } => {
            signature.as_ref()
        }
        _ => None,
    };
    out.extend(signature.map(carrier));
    if let Some(Value::Object(block)) = out.first_mut() {
        put_back(&part.extra, block);
    }
    out
}

fn block_of(part: &Part, at: usize) -> Option<Value> {
    match &part.kind {
        PartKind::Text { text, .. } if text.is_empty() => None,
        PartKind::Text {
            text, citations, ..
        } => {
            let mut block = json!({"type": "text", "text": text});
            let citations: Vec<Value> = citations.iter().filter_map(write_citation).collect();
            if !citations.is_empty() {
                block["citations"] = Value::Array(citations);
            }
            Some(block)
        }
        PartKind::Refusal(text) => Some(json!({"type": "text", "text": text})),
        PartKind::ToolCall {
            id,
            name,
            arguments,
            custom,
            ..
        } => Some(json!({
            "type": "tool_use",
            "id": call_id(id, at),
            "name": name,
            "input": input_of(arguments, *custom),
        })),
        PartKind::Reasoning {
            text, signature, ..
        } => Some(json!({
            "type": "thinking",
            "thinking": text,
            "signature": proof_for_client(signature.as_ref()),
        })),
        PartKind::RedactedReasoning(data) => Some(redacted(data)),
        PartKind::FormatSpecific { format, value } if *format == NAME => Some(value.clone()),
        PartKind::Image { source, .. } => {
            picture(source).map(|text| json!({"type": "text", "text": text}))
        }
        PartKind::FormatSpecific { .. }
        | PartKind::Audio { .. }
        | PartKind::Video { .. }
        | PartKind::File { .. }
        | PartKind::ToolResult { .. } => None,
    }
}

/// A call's id as this vendor takes it back later, whoever answers then.
pub(super) fn call_id(id: &str, at: usize) -> String {
    match id {
        "" => format!("toolu_{at}"),
        id => wire_id(id),
    }
}

/// Thinking that only its vendor can read.
pub(super) fn redacted(data: &Opaque) -> Value {
    let data = match data.vendor == VENDOR {
        true => data.data.clone(),
        false => data.to_portable(),
    };
    json!({"type": "redacted_thinking", "data": data})
}

/// A picture in an answer: the format has no block for it, but every client shows Markdown, and nothing paid for is lost.
pub(super) fn picture(source: &Source) -> Option<String> {
    let url = match source {
        Source::Url { url, .. } => url.clone(),
        Source::Base64 { media_type, data } => media::format_data_uri(media_type, data),
        Source::Text(_) | Source::FileId(_) => return None,
    };
    Some(format!("![image]({url})"))
}
