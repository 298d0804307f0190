//! Reads a generate-content request into the hub's form.

mod generation_config;
mod tools;

use serde_json::{Map, Value};

use super::call_ids::CallIds;
use super::constants::NAME;
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
        client_format: NAME,
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
        request.tool_choice = tools::read_choice(config, &mut extra)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{Opaque, PartKind, Source, ToolChoice, ToolKind};
    use serde_json::json;

    fn read(body: Value) -> Request {
        read_request(body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn snake_case_requests_read_like_camel_case_ones() {
        let snake = read(json!({
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "contents": [{"role": "user", "parts": [
                {"inline_data": {"mime_type": "image/png", "data": "iVBORw0KGgo="}},
                {"file_data": {"file_uri": "gs://b/x.pdf", "mime_type": "application/pdf"}},
            ]}],
            "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {"type": "object"}}]}, {"google_search": {}}],
            "tool_config": {"function_calling_config": {"mode": "any", "allowed_function_names": ["f"]}},
            "generation_config": {"top_k": 40.0, "max_output_tokens": 5, "response_mime_type": "application/json",
                                  "thinking_config": {"thinking_level": "low", "include_thoughts": true}},
            "safety_settings": [],
        }));
        let camel = read(json!({
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [{"role": "user", "parts": [
                {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
                {"fileData": {"fileUri": "gs://b/x.pdf", "mimeType": "application/pdf"}},
            ]}],
            "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}, {"googleSearch": {}}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
            "generationConfig": {"topK": 40, "maxOutputTokens": 5, "responseMimeType": "application/json",
                                 "thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": true}},
        }));
        assert_eq!(snake.turns, camel.turns);
        assert_eq!(snake.tools, camel.tools);
        assert_eq!(snake.tool_choice, Some(ToolChoice::Tool("f".to_owned())));
        assert_eq!(snake.top_k, Some(40));
        assert_eq!(snake.reasoning, camel.reasoning);
        assert_eq!(snake.output, camel.output);
        assert_eq!(snake.max_tokens, Some(5));
        assert!(matches!(snake.tools[1].kind, ToolKind::WebSearch { .. }));
    }

    #[test]
    fn base64_is_normalized_and_the_media_type_sniffed() {
        let request = read(json!({"contents": [{"parts": [
            {"inlineData": {"mimeType": "image/jpg", "data": "_9j_4AAQSkZJRg"}},
        ]}]}));
        let expected = Source::Base64 {
            media_type: "image/jpeg".to_owned(),
            data: "/9j/4AAQSkZJRg==".to_owned(),
        };
        assert!(
            matches!(&request.turns[0].parts[0].kind, PartKind::Image { source, .. } if *source == expected)
        );
    }

    #[test]
    fn results_without_ids_are_matched_to_calls_with_ids() {
        let request = read(json!({"contents": [
            {"parts": [{"text": "go"}]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "toolu_1", "name": "f", "args": {}}},
                {"functionCall": {"id": "toolu_2", "name": "g", "args": {}}},
            ]},
            {"parts": [
                {"functionResponse": {"name": "g", "response": {"result": "two"}}},
                {"functionResponse": {"name": "f", "response": {"result": "one"}}},
            ]},
        ]}));
        let result_id = |part: &crate::hub::Part| match &part.kind {
            PartKind::ToolResult { id, .. } => id.clone(),
            other => panic!("{other:?}"),
        };
        let ids: Vec<_> = request.turns[2].parts.iter().map(result_id).collect();
        assert_eq!(ids, ["toolu_2", "toolu_1"]);
    }

    #[test]
    fn calls_without_ids_get_generated_ids_that_their_results_share() {
        let request = read(json!({"contents": [
            {"parts": [{"text": "go"}]},
            {"role": "model", "parts": [
                {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "g"}},
                {"functionCall": {"name": "f", "args": {"a": 2}}},
            ]},
            {"role": "function", "parts": [
                {"functionResponse": {"name": "f", "response": {"output": "one"}}},
                {"functionResponse": {"name": "f", "response": {"a": [2]}}},
                {"functionResponse": {"name": "g", "response": {"error": "none"}}},
            ]},
        ]}));
        let ids: Vec<_> = request.turns[1]
            .parts
            .iter()
            .map(|part| match &part.kind {
                PartKind::ToolCall { id, .. } => id.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        let answers: Vec<_> = request.turns[2]
            .parts
            .iter()
            .map(|part| match &part.kind {
                PartKind::ToolResult {
                    id,
                    content,
                    is_error,
                    ..
                } => {
                    let PartKind::Text { text, .. } = &content[0].kind else {
                        panic!()
                    };
                    (id.clone(), text.clone(), *is_error)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            answers,
            [
                (ids[0].clone(), "one".to_owned(), false),
                (ids[2].clone(), "{\"a\":[2]}".to_owned(), false),
                (ids[1].clone(), "none".to_owned(), true),
            ]
        );
        let PartKind::ToolCall { signature, .. } = &request.turns[1].parts[0].kind else {
            panic!()
        };
        assert_eq!(*signature, Some(Opaque::new("gemini", "c2ln")));
    }

    #[test]
    fn malformed_contents_are_rejected_with_their_path() {
        for (content, field) in [
            (json!("hi"), "contents[0]"),
            (
                json!({"role": "assistant", "parts": [{"text": "x"}]}),
                "contents[0].role",
            ),
            (
                json!({"role": 1, "parts": [{"text": "x"}]}),
                "contents[0].role",
            ),
            (json!({"role": "user"}), "contents[0].parts"),
            (json!({"role": "user", "parts": []}), "contents[0].parts"),
            (json!({"role": "user", "parts": "x"}), "contents[0].parts"),
            (json!({"parts": ["x"]}), "contents[0].parts[0]"),
            (json!({"parts": [{}]}), "contents[0].parts[0]"),
            (json!({"parts": [{"text": 1}]}), "contents[0].parts[0].text"),
            (
                json!({"parts": [{"text": "x", "inlineData": {}}]}),
                "contents[0].parts[0]",
            ),
            (
                json!({"parts": [{"inlineData": {"data": "AAAA"}}]}),
                "contents[0].parts[0].inlineData.mimeType",
            ),
            (
                json!({"parts": [{"inlineData": {"mimeType": "image/png"}}]}),
                "contents[0].parts[0].inlineData.data",
            ),
            (
                json!({"parts": [{"inlineData": {"mimeType": "image/png", "data": "a?"}}]}),
                "contents[0].parts[0].inlineData.data",
            ),
            (
                json!({"parts": [{"fileData": {}}]}),
                "contents[0].parts[0].fileData.fileUri",
            ),
            (
                json!({"parts": [{"functionCall": {"args": {}}}]}),
                "contents[0].parts[0].functionCall.name",
            ),
            (
                json!({"parts": [{"functionCall": {"name": "f", "args": "{}"}}]}),
                "contents[0].parts[0].functionCall.args",
            ),
            (
                json!({"parts": [{"functionResponse": {"name": "f", "response": "x"}}]}),
                "contents[0].parts[0].functionResponse.response",
            ),
        ] {
            let body = json!({"contents": [content]}).to_string();
            assert_eq!(
                read_request(body.as_bytes()).unwrap_err().field,
                field,
                "{content}"
            );
        }
    }
}
