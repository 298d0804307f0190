//! A client's request into the hub's form.

mod config;
mod parts;
mod tools;

use serde_json::{Map, Value};

use super::NAME;
use super::fields::Fields;
use super::glance;
use crate::error::Bad;
use crate::hub::{Own, Part, Request, Role, Turn};

pub(super) use parts::{Calls, guess_type, is_upload, is_youtube, read_part};

/// See [`crate::Format::read_request`]. What the settings may be is checked by the glance.
pub(super) fn read_request(body: &[u8]) -> Result<Request, Bad> {
    glance::glance(body)?;
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Bad::body(format!("the body is no valid {NAME} request: {error}")))?;
    let mut top = Fields::of(value, "")?;
    // The model is the path's; some bodies repeat it.
    top.take("model");
    let mut request = Request {
        client: NAME,
        ..Request::default()
    };
    let mut own = Map::new();
    let mut calls = Calls::default();
    if let Some(system) = top.object("systemInstruction")? {
        let turn = read_content(system, &mut calls)?;
        if !turn.parts.is_empty() {
            request.turns.push(Turn {
                role: Role::System,
                ..turn
            });
        }
    }
    for (at, content) in top.list("contents")?.into_iter().flatten().enumerate() {
        let turn = read_content(Fields::of(content, format!("contents[{at}]"))?, &mut calls)?;
        request.turns.push(turn);
    }
    for (at, tool) in top.list("tools")?.into_iter().flatten().enumerate() {
        let tool = Fields::of(tool, format!("tools[{at}]"))?;
        tools::read_tool(tool, &mut request.tools)?;
    }
    if let Some(config) = top.object("toolConfig")? {
        request.tool_choice = tools::read_choice(config, &mut own)?;
    }
    if let Some(config) = top.object("generationConfig")? {
        config::read_config(config, &mut request, &mut own)?;
    }
    request.service_tier = top.string("serviceTier")?;
    own.extend(top.rest());
    request.own = Own::of(NAME, own);
    Ok(request)
}

fn read_content(mut content: Fields, calls: &mut Calls) -> Result<Turn, Bad> {
    let role = match content.string("role")?.as_deref() {
        // `function` is what results were said by once.
        None | Some("" | "user" | "function") => Role::User,
        Some("model") => Role::Assistant,
        // Its role counts for nothing.
        Some(_) if content.at() == "systemInstruction" => Role::System,
        Some(_) => return Err(content.bad("role", "must be `user` or `model`")),
    };
    let list = content
        .list("parts")?
        .ok_or_else(|| content.bad("parts", "is required and must be a list"))?;
    if list.is_empty() && role == Role::User {
        return Err(content.bad("parts", "must hold at least one part"));
    }
    calls.begin(role);
    let mut parts: Vec<Part> = Vec::with_capacity(list.len());
    for (at, part) in list.into_iter().enumerate() {
        let path = format!("{}[{at}]", content.path("parts"));
        parts.extend(read_part(Fields::of(part, path)?, calls)?);
    }
    Ok(Turn {
        own: Own::of(NAME, content.rest()),
        ..Turn::of(role, parts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{Kind, Opaque, Source, ToolChoice, ToolKind};
    use serde_json::json;

    fn read(body: Value) -> Request {
        read_request(body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn snake_case_reads_as_camel_case() {
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
        assert_eq!(snake.tool_choice, Some(ToolChoice::One("f".to_owned())));
        assert_eq!(snake.top_k, Some(40));
        assert_eq!(snake.reasoning, camel.reasoning);
        assert_eq!(snake.output, camel.output);
        assert_eq!(snake.max_tokens, Some(5));
        assert!(matches!(snake.tools[1].kind, ToolKind::WebSearch { .. }));
    }

    #[test]
    fn base64_of_both_alphabets_and_the_bytes_type_are_taken() {
        let request = read(json!({"contents": [{"parts": [
            {"inlineData": {"mimeType": "image/jpg", "data": "_9j_4AAQSkZJRg"}},
        ]}]}));
        let expected = Source::Base64 {
            media_type: "image/jpeg".to_owned(),
            data: "/9j/4AAQSkZJRg==".to_owned(),
        };
        assert!(
            matches!(&request.turns[0].parts[0].kind, Kind::Image { source, .. } if *source == expected)
        );
    }

    #[test]
    fn answers_without_ids_find_calls_that_have_one() {
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
        let answered = |part: &crate::hub::Part| match &part.kind {
            Kind::ToolResult { id, .. } => id.clone(),
            other => panic!("{other:?}"),
        };
        let ids: Vec<_> = request.turns[2].parts.iter().map(answered).collect();
        assert_eq!(ids, ["toolu_2", "toolu_1"]);
    }

    #[test]
    fn calls_without_ids_get_one_and_their_answers_find_it() {
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
                Kind::ToolCall { id, .. } => id.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        let answers: Vec<_> = request.turns[2]
            .parts
            .iter()
            .map(|part| match &part.kind {
                Kind::ToolResult {
                    id,
                    content,
                    is_error,
                    ..
                } => {
                    let Kind::Text { text, .. } = &content[0].kind else {
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
        let Kind::ToolCall { signature, .. } = &request.turns[1].parts[0].kind else {
            panic!()
        };
        assert_eq!(*signature, Some(Opaque::new("gemini", "c2ln")));
    }

    #[test]
    fn malformed_conversations_are_refused_with_their_path() {
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
