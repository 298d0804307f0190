//! The messages of a chat-completions request: what each role may hold, and calls and results in
//! their order.

use serde_json::Value;

use crate::chat_output::ChatPrompt;
use crate::encoding::Attachment;
use crate::openai::{
    check, content, empty_array, invalid, invalid_value, is_foreign, known_for, tools, unsupported,
};
use crate::rejection::{Checked, OrRejected};
use crate::tables::path::JsonPath;
use crate::tables::schema::{field, list_of, text_of};

/// Checks the messages, and finds what was said last.
pub(super) fn read(body: &Value, root: &JsonPath, prompt: &mut ChatPrompt) -> Checked {
    let messages = list_of(body, "messages");
    if messages.is_empty() {
        return Err(empty_array("messages", "messages"));
    }
    let model = text_of(body, "model").unwrap_or_default();
    let mut results = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = root.field("messages").at(at);
        let role = text_of(message, "role").unwrap_or_default();
        if !is_foreign(model) {
            fields(message, role, &place)?;
        }
        let found = parts(message, role, &place)?;
        match role {
            "user" => {
                prompt.text = found.0;
                prompt.media = found.1;
                results.clear();
            }
            "tool" | "function" => results.push(found.0),
            "assistant" => {
                results.clear();
                assistant(message, model, &place)?;
            }
            _ => {}
        }
    }
    prompt.results = (!results.is_empty()).then(|| results.join(" "));
    paired(messages, root)
}

/// The roles of messages.
const ROLES: &[&str] = &[
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

fn fields(message: &Value, role: &str, place: &JsonPath) -> Checked {
    if !ROLES.contains(&role) {
        return Err(unsupported(
            "role",
            &place.field("role").write(),
            role,
            ROLES,
        ));
    }
    check(&format!("message_{role}"), message, place)
}

/// The text and the media of a message.
fn parts(message: &Value, role: &str, place: &JsonPath) -> OrRejected<(String, Vec<Attachment>)> {
    let place = place.field("content");
    let content = field(message, "content");
    if let Some(text) = content.and_then(Value::as_str) {
        return Ok((text.to_owned(), Vec::new()));
    }
    let mut texts = Vec::new();
    let mut media = Vec::new();
    for (at, part) in content
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        let place = place.at(at);
        let kind = text_of(part, "type").unwrap_or_default();
        let known = known_for("part_roles", role);
        if !known.contains(&kind) {
            return Err(unsupported(
                "part-type",
                &place.field("type").write(),
                kind,
                &known,
            ));
        }
        check(&format!("part_{kind}"), part, &place)?;
        match kind {
            "text" => texts.push(text_of(part, "text").unwrap_or_default()),
            "refusal" => {}
            _ => media.push(medium(part, kind, &place.write())?),
        }
    }
    Ok((texts.join(" "), media))
}

fn medium(part: &Value, kind: &str, param: &str) -> OrRejected<Attachment> {
    let inner = &part[kind];
    let get = |name: &str| text_of(inner, name);
    match kind {
        "image_url" => content::image(
            get("url").unwrap_or_default(),
            &format!("{param}.image_url"),
        ),
        "input_audio" => {
            let data = get("data").unwrap_or_default();
            content::audio(
                data,
                get("format").unwrap_or_default(),
                &format!("{param}.input_audio"),
            )
        }
        _ => match (get("file_id"), get("file_data")) {
            (Some(id), None) => {
                let what = format!("file {id}");
                Ok(Attachment { what, bytes: None })
            }
            (None, Some(data)) => content::file(data, &format!("{param}.file")),
            _ => {
                let message = "Exactly one of 'file_id' and 'file_data' is required.";
                Err(Box::new(invalid_value("file", param, message)))
            }
        },
    }
}

/// What an assistant message needs: something said, and calls in order.
fn assistant(message: &Value, model: &str, place: &JsonPath) -> Checked {
    let calls = field(message, "tool_calls");
    let at = place.write();
    if calls.and_then(Value::as_array).is_some_and(Vec::is_empty) {
        return Err(empty_array("empty-tool-calls", &format!("{at}.tool_calls")));
    }
    let others = ["function_call", "refusal", "audio"];
    let speaks = calls.is_some() || others.iter().any(|name| field(message, name).is_some());
    if field(message, "content").is_none() && !speaks {
        let message = format!("Invalid value for '{at}.content': expected a string, got null.");
        let rejection = invalid("assistant-content", message).code("invalid_type");
        return Err(Box::new(rejection.param(format!("{at}.content"))));
    }
    let mut ids = Vec::new();
    for (index, call) in list_of(message, "tool_calls").iter().enumerate() {
        let kind = text_of(call, "type").unwrap_or_default();
        let name = text_of(&call[kind], "name").unwrap_or_default();
        tools::name(name, &format!("{at}.tool_calls[{index}].{kind}.name"))?;
        let id = text_of(call, "id").unwrap_or_default();
        if ids.contains(&id) {
            let message = format!("Duplicate value for 'tool_call_id' of '{id}' in {at}.");
            return Err(Box::new(invalid_value("duplicate-id", &at, message)));
        }
        ids.push(id);
    }
    let silent = text_of(message, "reasoning_content").is_none();
    if calls.is_some() && silent && wants_reasoning_back(model) {
        let message = format!(
            "thinking is enabled but reasoning_content is missing in assistant tool call message \
             at index {at}"
        );
        return Err(Box::new(invalid("reasoning-content", message)));
    }
    Ok(())
}

/// Models of other vendors that want their reasoning back with every tool call.
fn wants_reasoning_back(model: &str) -> bool {
    is_foreign(model) && (model.contains("reasoner") || model.contains("thinking"))
}

/// Every call has its result in the messages right after it, and every result its call.
fn paired(messages: &[Value], root: &JsonPath) -> Checked {
    let mut open: Vec<&str> = Vec::new();
    let mut expected = false;
    for (at, message) in messages.iter().enumerate() {
        let place = root.field("messages").at(at).field("role").write();
        if text_of(message, "role") == Some("tool") {
            let id = text_of(message, "tool_call_id").unwrap_or_default();
            if !expected {
                let message = "Invalid parameter: messages with role 'tool' must be a response to \
                    a preceeding message with 'tool_calls'.";
                return Err(Box::new(invalid("orphan-result", message).param(place)));
            }
            let Some(found) = open.iter().position(|known| *known == id) else {
                let message = format!(
                    "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' \
                        of previous message."
                );
                return Err(Box::new(invalid("orphan-result", message).param(place)));
            };
            open.remove(found);
            continue;
        }
        answered(&open, &place)?;
        let calls = list_of(message, "tool_calls");
        open = calls
            .iter()
            .filter_map(|call| text_of(call, "id"))
            .collect();
        expected = !open.is_empty();
    }
    answered(
        &open,
        &root
            .field("messages")
            .at(messages.len())
            .field("role")
            .write(),
    )
}

fn answered(open: &[&str], place: &str) -> Checked {
    if open.is_empty() {
        return Ok(());
    }
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    Err(Box::new(invalid("missing-result", message).param(place)))
}
