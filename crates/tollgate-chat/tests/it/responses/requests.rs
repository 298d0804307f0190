//! Tests of reading and writing requests.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{read, target, written, written_for};
use tollgate_chat::format::Format;
use tollgate_chat::hub::ExtraFields;
use tollgate_chat::hub::{
    Effort, ModelCapabilities, Opaque, OutputFormat, Part, PartKind, Reasoning, ReasoningControl,
    Request, Role, SamplingSupport, Source, Tool, ToolChoice, ToolKind, Turn,
};
use tollgate_chat::responses::Responses;

fn request_from(client: &'static str, turns: Vec<Turn>) -> Request {
    Request {
        client_format: client,
        turns,
        ..Request::default()
    }
}

fn call(id: &str, arguments: &str) -> Part {
    Part::new(PartKind::ToolCall {
        id: id.to_owned(),
        name: "f".to_owned(),
        arguments: arguments.to_owned(),
        custom: false,
        signature: None,
    })
}

fn result(id: &str, text: &str, is_error: bool) -> Part {
    Part::new(PartKind::ToolResult {
        id: id.to_owned(),
        name: None,
        content: vec![Part::text(text)],
        plain: false,
        is_error,
        custom: false,
    })
}

fn function(name: &str) -> Tool {
    Tool {
        kind: ToolKind::Function {
            name: name.to_owned(),
            description: None,
            parameters: None,
            strict: None,
        },
        cache_ttl: None,
        extra: ExtraFields::NONE,
    }
}

fn types(body: &Value) -> Vec<String> {
    let items = body["input"].as_array().unwrap();
    items
        .iter()
        .map(|item| {
            item["type"]
                .as_str()
                .or(item["role"].as_str())
                .unwrap()
                .to_owned()
        })
        .collect()
}

fn rejection(request: &Request) -> String {
    let capabilities = ModelCapabilities::default();
    Responses
        .write_request(request, &target(&capabilities))
        .unwrap_err()
        .message
}

#[test]
fn results_follow_their_group_of_calls_and_missing_ones_are_filled_in() {
    let turns = vec![
        Turn::new(Role::User, vec![Part::text("go")]),
        Turn::new(
            Role::Assistant,
            vec![
                Part::text("ok"),
                call("a", "{}"),
                call("b", "{}"),
                call("c", "{}"),
            ],
        ),
        Turn::new(
            Role::User,
            vec![
                result("b", "B", false),
                Part::text("and?"),
                result("a", "A", true),
            ],
        ),
    ];
    let (body, _) = written(&request_from("messages", turns));
    assert_eq!(
        types(&body),
        [
            "user",
            "assistant",
            "function_call",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output",
            "function_call_output",
            "user"
        ]
    );
    let output = |at: usize| {
        (
            body["input"][at]["call_id"].as_str().unwrap(),
            body["input"][at]["output"].as_str().unwrap(),
        )
    };
    assert_eq!(output(5), ("a", "Error: A"));
    assert_eq!(output(6), ("b", "B"));
    assert_eq!(output(7), ("c", "Error: no result was given for this call"));
}

#[test]
fn a_result_without_a_call_becomes_a_user_message() {
    let turns = vec![Turn::new(
        Role::User,
        vec![result("gone", "R", false), Part::text("so?")],
    )];
    let (body, _) = written(&request_from("messages", turns));
    assert_eq!(
        body["input"][0],
        json!({"role": "user", "content": "Tool result: R"})
    );
    assert_eq!(types(&body), ["user", "user"]);
}

#[test]
fn call_ids_are_made_valid_and_unique() {
    let long = "x".repeat(80);
    let turns = vec![
        Turn::new(
            Role::Assistant,
            vec![
                call(&long, ""),
                call("a.b", ""),
                call("a.b", ""),
                call("", ""),
            ],
        ),
        Turn::new(
            Role::User,
            vec![
                result(&long, "1", false),
                result("a.b", "2", false),
                result("a.b", "3", false),
            ],
        ),
    ];
    let (body, _) = written(&request_from("messages", turns));
    let ids: Vec<&str> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["call_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids[..4], ids[4..]);
    let mut unique = ids[..4].to_vec();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 4);
    assert!(
        ids.iter()
            .all(|id| !id.is_empty() && id.len() <= 64 && !id.contains('.'))
    );
    assert_eq!(body["input"][6]["output"], "3");
}

#[test]
fn repeated_call_ids_in_later_turns_keep_their_own_results() {
    let turn = |id: &str, text: &str| {
        [
            Turn::new(Role::Assistant, vec![call(id, "{}")]),
            Turn::new(Role::User, vec![result(id, text, false)]),
        ]
    };
    let (body, _) = written(&request_from(
        "generate-content",
        [turn("call_0", "1"), turn("call_0", "2")].concat(),
    ));
    assert_eq!(body["input"][0]["call_id"], body["input"][1]["call_id"]);
    assert_eq!(body["input"][2]["call_id"], body["input"][3]["call_id"]);
    assert_ne!(body["input"][0]["call_id"], body["input"][2]["call_id"]);
    assert_eq!(
        (&body["input"][1]["output"], &body["input"][3]["output"]),
        (&json!("1"), &json!("2"))
    );
}

#[test]
fn text_beside_calls_is_kept() {
    let turns = vec![Turn::new(
        Role::Assistant,
        vec![Part::text("Let me see."), call("a", "{}")],
    )];
    let (body, _) = written(&request_from("messages", turns));
    assert_eq!(body["input"][0]["content"][0]["text"], "Let me see.");
    assert_eq!(body["input"][1]["type"], "function_call");
}

#[test]
fn calls_with_invalid_arguments_are_kept() {
    let turns = vec![Turn::new(
        Role::Assistant,
        vec![call("a", "{\"x\": "), call("b", "")],
    )];
    let (body, _) = written(&request_from("chat-completions", turns));
    assert_eq!(body["input"][0]["arguments"], "{\"x\": ");
    assert_eq!(body["input"][1]["arguments"], "{}");
}

#[test]
fn invalid_tool_names_are_renamed_everywhere() {
    let mut request = request_from(
        "messages",
        vec![Turn::new(Role::User, vec![Part::text("x")])],
    );
    request.tools = vec![function("mcp.read")];
    request.tool_choice = Some(ToolChoice::Tool("mcp.read".to_owned()));
    let (body, written) = written(&request);
    assert_eq!(body["tools"][0]["name"], "mcp_read");
    assert_eq!(
        body["tool_choice"],
        json!({"type": "function", "name": "mcp_read"})
    );
    assert_eq!(
        written.renamed_tools,
        [("mcp_read".to_owned(), "mcp.read".to_owned())]
    );
}

#[test]
fn strict_is_off_unless_requested() {
    let mut request = request_from(
        "chat-completions",
        vec![Turn::new(Role::User, vec![Part::text("x")])],
    );
    request.tools = vec![function("f")];
    assert_eq!(written(&request).0["tools"][0]["strict"], false);
    // A client of this format that leaves it out means something else.
    let extra = json!({"model": "m", "input": "x", "tools": [{"type": "function", "name": "f", "parameters": null}]});
    assert_eq!(written(&read(&extra)).0["tools"][0].get("strict"), None);
    let nested = json!({"model": "m", "input": "x", "tools": [{"type": "function", "function": {"name": "f", "description": "d"}}]});
    assert_eq!(written(&read(&nested)).0["tools"][0]["strict"], false);
}

#[test]
fn the_output_schema_is_flat_in_text_format() {
    let mut request = request_from(
        "chat-completions",
        vec![Turn::new(Role::User, vec![Part::text("x")])],
    );
    request.output = Some(OutputFormat::Schema {
        name: None,
        description: None,
        schema: json!({"type": "object"}),
        strict: Some(true),
    });
    let (body, _) = written(&request);
    assert_eq!(
        body["text"]["format"],
        json!({"type": "json_schema", "name": "reply", "schema": {"type": "object"}, "strict": true})
    );
}

#[test]
fn a_text_result_is_written_as_a_string() {
    let turns = vec![
        Turn::new(Role::Assistant, vec![call("a", "{}")]),
        Turn::new(Role::User, vec![result("a", "text", false)]),
    ];
    assert_eq!(
        written(&request_from("messages", turns)).0["input"][1]["output"],
        "text"
    );
}

#[test]
fn unsupported_settings_are_dropped_and_reported() {
    let mut request = request_from(
        "messages",
        vec![Turn::new(Role::User, vec![Part::text("x")])],
    );
    (request.temperature, request.top_p, request.top_k) = (Some(1.0), Some(0.5), Some(4));
    request.max_tokens = Some(5);
    request.reasoning = Some(Reasoning {
        budget: Some(0),
        ..Reasoning::default()
    });
    let capabilities = ModelCapabilities {
        sampling: SamplingSupport::TemperatureOrTopP,
        thinking: ReasoningControl::Effort { can_disable: false },
        ..ModelCapabilities::default()
    };
    let (body, written) = written_for(&request, &capabilities);
    assert_eq!(
        (&body["temperature"], body.get("top_p")),
        (&json!(1.0), None)
    );
    assert_eq!(body["reasoning"]["effort"], "low");
    assert_eq!(body["max_output_tokens"], 16);
    assert_eq!(
        written.dropped,
        ["max_tokens", "top_p", "top_k", "thinking"]
    );
}

#[test]
fn unsupported_fields_are_rejected_with_the_clients_field_names() {
    let user = || vec![Turn::new(Role::User, vec![Part::text("x")])];
    let n = Request {
        n: Some(2),
        ..request_from("generate-content", user())
    };
    assert!(rejection(&n).starts_with("`generationConfig.candidateCount` must be 1"));
    let stop = Request {
        stop: vec!["END".to_owned()],
        ..request_from("messages", user())
    };
    for capabilities in [
        ModelCapabilities {
            accepts_stop: false,
            ..ModelCapabilities::default()
        },
        ModelCapabilities {
            rejects_unknown_fields: true,
            ..ModelCapabilities::default()
        },
    ] {
        let bad = Responses
            .write_request(&stop, &target(&capabilities))
            .unwrap_err();
        assert_eq!(bad.field, "stop_sequences");
    }
    let audio = PartKind::Audio {
        source: Source::Base64 {
            media_type: "audio/wav".to_owned(),
            data: "AAAA".to_owned(),
        },
    };
    let audio = request_from(
        "chat-completions",
        vec![Turn::new(Role::User, vec![Part::new(audio)])],
    );
    assert_eq!(
        rejection(&audio),
        "`messages[0].content[0]` is audio, which the upstream of this model does not accept"
    );
    let hosted = Request {
        tools: vec![Tool {
            kind: ToolKind::FormatSpecific {
                format: "messages",
                value: json!({"type": "bash_20250124"}),
            },
            cache_ttl: None,
            extra: ExtraFields::NONE,
        }],
        ..request_from("messages", user())
    };
    assert_eq!(
        rejection(&hosted),
        "`tools` holds the tool `bash_20250124`, which the upstream of this model does not support"
    );
}

#[test]
fn stored_conversations_are_rejected_by_other_formats() {
    for (member, value) in [
        ("previous_response_id", json!("resp_1")),
        ("conversation", json!("conv_1")),
        ("background", json!(true)),
        ("prompt", json!({"id": "p"})),
    ] {
        let mut body = json!({"model": "m", "input": "x"});
        body[member] = value;
        let request = read(&body);
        assert_eq!(request.essential_extra_unknown_to("messages"), Some(member));
        assert_eq!(written(&request).0[member], body[member]);
    }
    let request = read(
        &json!({"model": "m", "input": "x", "background": false, "store": false, "truncation": "disabled"}),
    );
    assert_eq!(request.essential_extra_unknown_to("messages"), None);
    assert_eq!(request.extra.names_unknown_to("messages").count(), 0);
}

#[test]
fn nothing_is_stored_for_clients_of_other_formats() {
    let (body, _) = written(&request_from(
        "messages",
        vec![Turn::new(Role::User, vec![Part::text("x")])],
    ));
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    let capabilities = ModelCapabilities {
        thinking: ReasoningControl::Unsupported,
        ..ModelCapabilities::default()
    };
    let (body, _) = written_for(
        &request_from(
            "messages",
            vec![Turn::new(Role::User, vec![Part::text("x")])],
        ),
        &capabilities,
    );
    assert_eq!(body.get("include"), None);
}

#[test]
fn reasoning_is_sent_only_to_the_vendor_that_signed_it() {
    let thought = |vendor: &str| {
        Part::new(PartKind::Reasoning {
            text: "hm".to_owned(),
            signature: Some(Opaque::new(vendor, "sig")),
            id: None,
            summary: true,
        })
    };
    let turns = vec![Turn::new(
        Role::Assistant,
        vec![thought("anthropic"), thought("openai"), Part::text("x")],
    )];
    let (body, written) = written(&request_from("messages", turns));
    assert_eq!(
        body["input"][0],
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "sig"})
    );
    assert_eq!(types(&body), ["reasoning", "assistant"]);
    assert_eq!(written.dropped, ["thinking"]);
}

#[test]
fn signed_reasoning_text_is_sent_as_a_summary() {
    let thought = PartKind::Reasoning {
        text: "hm".to_owned(),
        signature: Some(Opaque::new("openai", "sig")),
        id: None,
        summary: false,
    };
    let turns = vec![Turn::new(Role::Assistant, vec![Part::new(thought)])];
    let item = written(&request_from("messages", turns)).0["input"][0].take();
    assert_eq!(item["summary"][0]["text"], "hm");
    assert_eq!(item.get("content"), None);
}

#[test]
fn every_reasoning_effort_is_read() {
    for effort in ["none", "minimal", "low", "medium", "high", "xhigh", "max"] {
        let request = read(
            &json!({"model": "m", "input": "x", "reasoning": {"effort": effort, "summary": "auto"}}),
        );
        let reasoning = request.reasoning.unwrap();
        assert_eq!(reasoning.effort, Effort::parse(effort));
        assert_eq!(reasoning.display.as_deref(), Some("auto"));
    }
    let bad = Responses
        .read_request(br#"{"model":"m","input":"x","reasoning":{"effort":"huge"}}"#)
        .unwrap_err();
    assert_eq!(bad.field, "reasoning.effort");
}

#[test]
fn errors_name_the_field_path() {
    let of = |input: Value| {
        let body = json!({"model": "m", "input": input}).to_string();
        Responses.read_request(body.as_bytes()).unwrap_err().field
    };
    let user = |part: Value| json!([{"role": "user", "content": "a"}, {"role": "user", "content": [part]}]);
    assert_eq!(of(json!(["x"])), "input[0]");
    assert_eq!(of(json!([{"content": "x"}])), "input[0].role");
    assert_eq!(
        of(json!([{"role": "robot", "content": "x"}])),
        "input[0].role"
    );
    assert_eq!(of(json!([{"role": "user"}])), "input[0].content");
    assert_eq!(
        of(user(json!({"type": "input_text"}))),
        "input[1].content[0].text"
    );
    assert_eq!(
        of(user(json!({"type": "input_image"}))),
        "input[1].content[0].image_url"
    );
    assert_eq!(
        of(user(
            json!({"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8="})
        )),
        "input[1].content[0].image_url"
    );
    assert_eq!(
        of(user(
            json!({"type": "input_image", "image_url": "data:image/png;base64,#"})
        )),
        "input[1].content[0].image_url"
    );
    assert_eq!(
        of(user(json!({"type": "input_file"}))),
        "input[1].content[0]"
    );
    assert_eq!(
        of(json!([{"type": "function_call", "call_id": "a", "name": "f"}])),
        "input[0].arguments"
    );
    assert_eq!(
        of(json!([{"type": "function_call", "name": "f", "arguments": ""}])),
        "input[0].call_id"
    );
    assert_eq!(
        of(json!([{"type": "function_call_output", "call_id": "a"}])),
        "input[0].output"
    );
    assert_eq!(of(json!([{"type": 3}])), "input[0].type");
}

fn word() -> impl Strategy<Value = String> {
    "[a-zé猫]{1,8}"
}

fn content(is_assistant: bool) -> BoxedStrategy<Value> {
    let part = match is_assistant {
        true => prop_oneof![
            word().prop_map(|t| json!({"type": "output_text", "text": t, "annotations": []})),
            word().prop_map(|t| json!({"type": "output_text", "text": t, "annotations": [
                {"type": "url_citation", "url": "https://e.example", "title": t, "start_index": 0, "end_index": 1}, {"type": "file_citation", "file_id": "f", "index": 1}]})),
            word().prop_map(|t| json!({"type": "refusal", "refusal": t})),
        ]
        .boxed(),
        false => prop_oneof![
            word().prop_map(|t| json!({"type": "input_text", "text": t})),
            word().prop_map(|t| json!({"type": "input_text", "text": t, "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}})),
            Just(json!({"type": "input_image", "image_url": "https://e.example/a.png", "detail": "low"})),
            Just(json!({"type": "input_image", "image_url": "data:image/gif;base64,R0lGODlhAQABAAAAACw="})),
            Just(json!({"type": "input_image", "file_id": "file-1"})),
            Just(json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"})),
            Just(json!({"type": "input_file", "file_url": "https://e.example/a.pdf", "detail": "high"})),
        ]
        .boxed(),
    };
    prop_oneof![
        word().prop_map(Value::from),
        proptest::collection::vec(part, 1..4).prop_map(Value::from)
    ]
    .boxed()
}

fn item() -> impl Strategy<Value = Value> {
    let message = prop::sample::select(vec!["user", "assistant", "system", "developer"]).prop_flat_map(|role| {
        (content(role == "assistant"), any::<bool>()).prop_map(move |(content, long)| match long {
            true => json!({"type": "message", "id": "msg_1", "status": "completed", "role": role, "content": content}),
            false => json!({"role": role, "content": content}),
        })
    });
    prop_oneof![
        3 => message,
        1 => word().prop_map(|t| json!({"type": "function_call", "id": "fc_1", "call_id": t, "name": "f", "arguments": "{}", "status": "completed"})),
        1 => content(false).prop_map(|c| json!({"type": "function_call_output", "call_id": "call_1", "output": c})),
        1 => word().prop_map(|t| json!({"type": "custom_tool_call", "call_id": "call_2", "name": "g", "input": t})),
        1 => word().prop_map(|t| json!({"type": "custom_tool_call_output", "call_id": "call_2", "output": t})),
        1 => (word(), 0usize..3).prop_map(|(t, n)| json!({"type": "reasoning", "id": format!("rs_{t}"),
            "summary": vec![json!({"type": "summary_text", "text": t}); n], "encrypted_content": "gAAAA=="})),
        1 => word().prop_map(|t| json!({"type": "reasoning", "id": format!("rs_{t}"), "summary": [], "content": [{"type": "reasoning_text", "text": t}], "status": "completed"})),
        1 => Just(json!({"type": "item_reference", "id": "rs_9"})),
        1 => Just(json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}})),
    ]
}

fn members() -> impl Strategy<Value = Map<String, Value>> {
    let all = json!({
        "instructions": "Be brief.", "temperature": 0.5, "top_p": 0.25, "max_output_tokens": 40, "top_logprobs": 3, "stream": false,
        "parallel_tool_calls": false, "tool_choice": {"type": "function", "name": "f"}, "user": "u", "safety_identifier": "s",
        "prompt_cache_key": "k", "service_tier": "flex", "metadata": {"a": "b"}, "store": true, "truncation": "auto", "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "detailed", "context": "auto"}, "previous_response_id": "resp_1", "x_new": {"y": [1, null]},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true}, "verbosity": "low", "other": 1},
        "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": true, "description": "d", "defer_loading": true},
            {"type": "custom", "name": "g", "format": {"type": "text"}}, {"type": "web_search_preview", "search_context_size": "low"},
            {"type": "mcp", "server_label": "l", "server_url": "https://e.example"}],
    });
    let Value::Object(all) = all else {
        unreachable!()
    };
    let names: Vec<String> = all.keys().cloned().collect();
    prop::sample::subsequence(names, 0..all.len()).prop_map(move |names| {
        names
            .into_iter()
            .map(|name| (name.clone(), all[&name].clone()))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_request_survives_reading_and_writing(
        items in proptest::collection::vec(item(), 1..8),
        members in members(),
    ) {
        let mut body = Value::Object(members);
        (body["model"], body["input"]) = ("upstream-model".into(), items.into());
        let (out, written) = written(&read(&body));
        // The target decides about streaming.
        body.as_object_mut().unwrap().shift_remove("stream");
        prop_assert_eq!(out, body);
        prop_assert!(written.dropped.is_empty() && written.renamed_tools.is_empty());
    }
}
