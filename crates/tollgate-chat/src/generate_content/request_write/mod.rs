//! Writes a hub request as a generate-content request for an upstream.

mod contents;
mod generation_config;
mod parts;
mod tools;
mod writer;

use serde_json::{Map, Value};

use super::constants::NAME;
use super::fields::insert_at_path;
use crate::error::InvalidRequest;
use crate::format::{Target, WrittenRequest};
use crate::hub::{Request, SearchWithFunctions, flatten_namespaces};

use writer::RequestWriter;

pub(super) use parts::accepts_url;

/// See [`crate::Format::write_request`].
pub(super) fn write_request(
    request: &Request,
    target: &Target<'_>,
) -> Result<WrittenRequest, InvalidRequest> {
    let request = &*flatten_namespaces(request)?;
    if let Some(member) = request.essential_extra_unknown_to(NAME) {
        return Err(InvalidRequest::new(
            member,
            "is not supported by this model's provider",
        ));
    }
    if let Some(member) = request.essential_member_unknown_to(NAME) {
        let why = "is not available for this model";
        return Err(InvalidRequest::new(member, why));
    }
    let mut writer = RequestWriter::new(request, target);
    let mut body = Map::new();
    let (system, contents) = writer.write_contents()?;
    body.insert("contents".to_owned(), Value::Array(contents));
    if !system.is_empty() {
        let content = serde_json::json!({"parts": system});
        body.insert("systemInstruction".to_owned(), content);
    }
    let tools = writer.write_tools()?;
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
    }
    if let Some(calling) = writer.write_tool_choice() {
        insert_at_path(&mut body, "toolConfig.functionCallingConfig", calling);
    }
    let search = target.capabilities.search_with_functions;
    if search == SearchWithFunctions::WithServerSideInvocations && writer.has_search_and_functions()
    {
        let name = "toolConfig.includeServerSideToolInvocations";
        insert_at_path(&mut body, name, Value::Bool(true));
    }
    let config = writer.write_generation_config()?;
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    writer.write_extra(&mut body);
    if let Some(instruction) = writer.instruction.take() {
        add_instruction(&mut body, &instruction);
    }
    Ok(WrittenRequest {
        body: crate::json_text::object_to_vec(&body),
        dropped: writer.dropped,
        renamed_tools: writer.names.into_renamed(),
        json_tool: None,
    })
}

fn add_instruction(body: &mut Map<String, Value>, text: &str) {
    let part = serde_json::json!({"text": text});
    match body
        .get_mut("systemInstruction")
        .and_then(|system| system["parts"].as_array_mut())
    {
        Some(parts) => parts.push(part),
        None => insert_at_path(body, "systemInstruction.parts", Value::Array(vec![part])),
    }
}
