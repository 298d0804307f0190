//! Reads a generate-content request into the hub's form.

mod generation_config;
mod tools;

use serde_json::{Map, Value};

use super::call_ids::CallIds;
use super::constants::NAME;
use super::field_names::CLIENT_FORMAT;
use super::fields::Fields;
use super::part_read::read_part;
use super::request_summary::summarize_request;
use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, Part, Request, Role, Turn};

/// See [`crate::Format::read_request`]. The request summary checks the settings first.
pub(super) fn read_request(body: &[u8]) -> Result<Request, InvalidRequest> {
    summarize_request(body)?;
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        InvalidRequest::body(format!("the body is not a valid {NAME} request: {error}"))
    })?;
    let mut top = Fields::new(value, "")?;
    // The path names the model; some bodies repeat it.
    top.take("model");
    let mut request = Request {
        client_format: &CLIENT_FORMAT,
        ..Request::default()
    };
    let mut extra = Map::new();
    let mut calls = CallIds::default();
    if let Some(system) = top.take_object("systemInstruction")? {
        let turn = read_content(system, &mut calls)?;
        if !turn.parts.is_empty() {
            request.turns.push(Turn {
                role: Role::System,
                ..turn
            });
        }
    }
    for (at, content) in top
        .take_array("contents")?
        .into_iter()
        .flatten()
        .enumerate()
    {
        let turn = read_content(Fields::new(content, format!("contents[{at}]"))?, &mut calls)?;
        request.turns.push(turn);
    }
    for (at, tool) in top.take_array("tools")?.into_iter().flatten().enumerate() {
        let tool = Fields::new(tool, format!("tools[{at}]"))?;
        tools::read_tool(tool, &mut request.tools)?;
    }
    if let Some(config) = top.take_object("toolConfig")? {
        let choice = tools::read_choice(config, &mut extra)?;
        request.tool_choice = choice.map(|choice| choice.without_complete_list(&request.tools));
    }
    if let Some(config) = top.take_object("generationConfig")? {
        generation_config::read_generation_config(config, &mut request, &mut extra)?;
    }
    request.service_tier = top.take_string("serviceTier")?;
    extra.extend(top.into_rest());
    request.extra = ExtraFields::new(NAME, extra);
    Ok(request)
}

fn read_content(mut content: Fields, calls: &mut CallIds) -> Result<Turn, InvalidRequest> {
    let role = match content.take_string("role")?.as_deref() {
        // `function` is the role of function responses in older API versions.
        None | Some("" | "user" | "function") => Role::User,
        Some("model") => Role::Assistant,
        // The role of system instructions has no meaning.
        Some(_) if content.path() == "systemInstruction" => Role::System,
        Some(_) => return Err(content.invalid("role", "must be `user` or `model`")),
    };
    let list = content
        .take_array("parts")?
        .ok_or_else(|| content.invalid("parts", "is required and must be a list"))?;
    if list.is_empty() && role == Role::User {
        return Err(content.invalid("parts", "must hold at least one part"));
    }
    calls.begin_content(role);
    let mut parts: Vec<Part> = Vec::with_capacity(list.len());
    for (at, part) in list.into_iter().enumerate() {
        let path = format!("{}[{at}]", content.member_path("parts"));
        parts.extend(read_part(Fields::new(part, path)?, calls)?);
    }
    Ok(Turn {
        extra: ExtraFields::new(NAME, content.into_rest()),
        ..Turn::new(role, parts)
    })
}
