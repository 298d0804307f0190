//! Requests: what is read, what is written for which model.

use serde_json::{Value, json};
use tollgate_chat::hub::{
    Effort, ExtraFields, ModelCapabilities, Opaque, OutputFormat, Part, PartKind, ReasoningControl,
    Request, Role, SamplingSupport, Source, Tool, ToolChoice, ToolKind, Turn,
};

use super::{bad, body, capabilities, passed, read, sent, user, write};

/// A request of a client of the messages format.
fn foreign(turns: Vec<Turn>) -> Request {
    Request {
        client_format: "messages",
        turns,
        ..Request::default()
    }
}

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::new(PartKind::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        custom: false,
        signature: None,
    })
}

fn result(id: &str, content: Vec<Part>, is_error: bool) -> Part {
    Part::new(PartKind::ToolResult {
        id: id.to_owned(),
        name: None,
        content,
        plain: false,
        is_error,
        custom: false,
    })
}

fn thinking(text: &str) -> Part {
    Part::new(PartKind::Reasoning {
        text: text.to_owned(),
        signature: Some(Opaque::new("anthropic", "sig")),
        id: None,
        summary: false,
    })
}

fn picture() -> Part {
    let source = Source::Base64 {
        media_type: "image/png".to_owned(),
        data: "AAAA".to_owned(),
    };
    Part::new(PartKind::Image {
        source,
        detail: None,
    })
}

fn asked() -> Turn {
    Turn::new(Role::User, vec![Part::text("Go")])
}

#[test]
fn trap_02_only_truly_missing_results_are_filled_in_and_only_after_merging() {
    let turns = vec![
        asked(),
        Turn::new(
            Role::Assistant,
            vec![call("a", "f", "{}"), call("b", "f", "{}")],
        ),
        Turn::new(
            Role::User,
            vec![result("b", vec![Part::text("two")], false)],
        ),
        Turn::new(
            Role::User,
            vec![
                Part::text("and"),
                result("a", vec![Part::text("one")], true),
            ],
        ),
        Turn::new(Role::Assistant, vec![call("c", "f", "{}")]),
    ];
    let messages = sent(&foreign(turns), &capabilities())["messages"].clone();
    let short: Vec<String> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|m| {
            format!(
                "{} {} {}",
                m["role"].as_str().unwrap(),
                m["tool_call_id"].as_str().unwrap_or("-"),
                m["content"]
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            r#"user - "Go""#,
            "assistant - null",
            r#"tool b "two""#,
            r#"tool a "Error: one""#,
            r#"user - "and""#,
            "assistant - null",
            r#"tool c "Error: no result given""#,
        ]
    );
}

#[test]
fn trap_03_pictures_of_results_come_behind_all_results() {
    let turns = vec![
        asked(),
        Turn::new(
            Role::Assistant,
            vec![call("a", "f", "{}"), call("b", "f", "{}")],
        ),
        Turn::new(
            Role::User,
            vec![
                result("a", vec![Part::text("see"), picture()], false),
                result("b", vec![Part::text("ok")], false),
                Part::text("What is it?"),
            ],
        ),
    ];
    let messages = sent(&foreign(turns), &capabilities())["messages"].clone();
    assert_eq!(
        messages[2]["content"],
        "see\n[attached in the next user message]"
    );
    assert_eq!(messages[3]["tool_call_id"], "b");
    assert_eq!(messages[4]["content"][0]["type"], "image_url");
    assert_eq!(messages[5]["content"], "What is it?");
}

#[test]
fn orphans_become_text_and_double_ids_are_told_apart() {
    let turns = vec![
        asked(),
        Turn::new(
            Role::Assistant,
            vec![call("x", "f", "{}"), call("x", "g", "{}")],
        ),
        Turn::new(
            Role::User,
            vec![
                result("x", vec![Part::text("1")], false),
                result("x", vec![Part::text("2")], false),
                result("y", vec![Part::text("3")], false),
            ],
        ),
    ];
    let messages = sent(&foreign(turns), &capabilities())["messages"].clone();
    assert_eq!(messages[1]["tool_calls"][1]["id"], "x_2");
    assert_eq!(
        (&messages[2]["tool_call_id"], &messages[3]["tool_call_id"]),
        (&json!("x"), &json!("x_2"))
    );
    assert_eq!(messages[4]["content"], "[Tool result] 3");
}

#[test]
fn calls_in_turns_of_their_own_are_one_message() {
    // The responses format has one item for each.
    let turns = vec![
        asked(),
        Turn::new(Role::Assistant, vec![Part::text("Let me see.")]),
        Turn::new(Role::Assistant, vec![call("a", "f", "{}")]),
        Turn::new(Role::Assistant, vec![call("b", "f", "")]),
        Turn::new(Role::User, vec![result("a", vec![Part::text("1")], false)]),
        Turn::new(Role::User, vec![result("b", vec![Part::text("2")], false)]),
    ];
    let messages = sent(&foreign(turns), &capabilities())["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 4);
    assert_eq!(messages[1]["content"], "Let me see.");
    assert_eq!(messages[1]["tool_calls"][1]["function"]["arguments"], "{}");
}

#[test]
fn trap_07_long_ids_are_shortened_the_same_in_call_and_result() {
    let long = "toolu_".repeat(20);
    let turns = vec![
        asked(),
        Turn::new(Role::Assistant, vec![call(&long, "f", "{}")]),
        Turn::new(
            Role::User,
            vec![result(&long, vec![Part::text("1")], false)],
        ),
    ];
    let messages = sent(&foreign(turns), &capabilities())["messages"].clone();
    let id = messages[1]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(id.len(), 40);
    assert_eq!(messages[2]["tool_call_id"], id);
}

#[test]
fn trap_08_text_beside_calls_stays_and_an_empty_list_of_calls_is_none() {
    let calls =
        json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let request = read(&body(
        json!([user("Go"), {"role": "assistant", "content": "Hm.", "tool_calls": calls}, {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "assistant", "content": "Done.", "tool_calls": []}]),
        json!({}),
    ));
    assert_eq!(request.turns[1].parts.len(), 2);
    let messages = sent(&request, &capabilities())["messages"].clone();
    assert_eq!(messages[1]["content"], "Hm.");
    assert_eq!(
        messages[3],
        json!({"role": "assistant", "content": "Done."})
    );
}

#[test]
fn trap_09_empty_text_is_left_out() {
    let request = read(&body(
        json!([{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Hi"}]}]),
        json!({}),
    ));
    assert_eq!(request.turns[0].parts, [Part::text("Hi")]);
}

#[test]
fn trap_10_broken_arguments_are_kept_as_they_are() {
    let calls =
        json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":"}}]);
    let request = read(&body(
        json!([user("Go"), {"role": "assistant", "content": null, "tool_calls": calls}]),
        json!({}),
    ));
    let messages = sent(&request, &capabilities())["messages"].clone();
    assert_eq!(
        messages[1]["tool_calls"][0]["function"]["arguments"],
        "{\"x\":"
    );
    assert_eq!(messages[2]["content"], "Error: no result given");
}

#[test]
fn trap_11_tool_names_are_made_legal_everywhere() {
    let tool = Tool {
        kind: ToolKind::Function {
            name: "mcp.read".to_owned(),
            description: None,
            parameters: None,
            strict: None,
        },
        cache_ttl: None,
        extra: ExtraFields::NONE,
    };
    let request = Request {
        tools: vec![tool],
        tool_choice: Some(ToolChoice::Tool("mcp.read".to_owned())),
        ..foreign(vec![
            asked(),
            Turn::new(Role::Assistant, vec![call("a", "mcp.read", "{}")]),
        ])
    };
    let written = write(&request, &capabilities()).unwrap();
    let sent: Value = serde_json::from_slice(&written.body).unwrap();
    assert_eq!(sent["tools"][0]["function"], json!({"name": "mcp_read"}));
    assert_eq!(sent["tool_choice"]["function"]["name"], "mcp_read");
    assert_eq!(
        sent["messages"][1]["tool_calls"][0]["function"]["name"],
        "mcp_read"
    );
    assert_eq!(
        written.renamed_tools,
        [("mcp_read".to_owned(), "mcp.read".to_owned())]
    );
}

#[test]
fn trap_20_fields_beyond_openais_are_kept_from_models_that_refuse_them() {
    let strict = ModelCapabilities {
        rejects_unknown_fields: true,
        ..capabilities()
    };
    let bytes = body(
        json!([user("Hi")]),
        json!({"top_k": 5, "min_p": 0.1, "logit_bias": {"1": 2}, "chat_template_kwargs": {}}),
    );
    let request = read(&bytes);
    assert_eq!(sent(&request, &capabilities())["min_p"], 0.1);
    let written = write(&request, &strict).unwrap();
    assert_eq!(written.dropped, ["top_k", "min_p", "chat_template_kwargs"]);
    let expected = json!({"model": "up", "messages": [user("Hi")], "logit_bias": {"1": 2}});
    assert_eq!(
        serde_json::from_slice::<Value>(&written.body).unwrap(),
        expected
    );
    assert_eq!(passed(&bytes, &strict, false), expected);
}

#[test]
fn trap_21_22_sampling_goes_by_what_the_model_takes() {
    let bytes = body(
        json!([user("Hi")]),
        json!({"temperature": 0.5, "top_p": 0.9, "top_k": 3}),
    );
    for (sampling, left, dropped) in [
        (
            SamplingSupport::All,
            vec!["temperature", "top_p", "top_k"],
            vec![],
        ),
        (
            SamplingSupport::TemperatureOrTopP,
            vec!["temperature", "top_k"],
            vec!["top_p"],
        ),
        (
            SamplingSupport::None,
            vec![],
            vec!["temperature", "top_p", "top_k"],
        ),
    ] {
        let capabilities = ModelCapabilities {
            sampling,
            ..capabilities()
        };
        let written = write(&read(&bytes), &capabilities).unwrap();
        assert_eq!(written.dropped, dropped);
        for body in [
            serde_json::from_slice(&written.body).unwrap(),
            passed(&bytes, &capabilities, false),
        ] {
            let names: Vec<&str> = ["temperature", "top_p", "top_k"]
                .into_iter()
                .filter(|name| body.get(name).is_some())
                .collect();
            assert_eq!(names, left);
        }
    }
}

#[test]
fn trap_24_efforts_go_by_what_the_model_knows() {
    let level = ReasoningControl::Level {
        minimal: false,
        medium: false,
    };
    let always = ReasoningControl::Effort { can_disable: false };
    for (thinking, asked, expected) in [
        (capabilities().thinking, "xhigh", json!("xhigh")),
        (always, "none", json!("low")),
        (level, "none", json!("low")),
        (level, "medium", json!("high")),
        (level, "max", json!("high")),
        (ReasoningControl::Unsupported, "high", Value::Null),
    ] {
        let capabilities = ModelCapabilities {
            thinking,
            ..capabilities()
        };
        let bytes = body(json!([user("Hi")]), json!({"reasoning_effort": asked}));
        let request = read(&bytes);
        assert_eq!(
            sent(&request, &capabilities)["reasoning_effort"],
            expected,
            "{asked}"
        );
        assert_eq!(
            passed(&bytes, &capabilities, false)["reasoning_effort"],
            expected,
            "{asked}"
        );
        let weakened = expected != asked;
        assert_eq!(
            write(&request, &capabilities).unwrap().dropped.len(),
            usize::from(weakened)
        );
    }
}

#[test]
fn trap_27_reasoning_goes_back_to_models_that_need_it() {
    let needs = ModelCapabilities {
        requires_past_reasoning: true,
        rejects_unknown_fields: true,
        ..capabilities()
    };
    let turns = vec![
        asked(),
        Turn::new(Role::Assistant, vec![thinking("Hm."), call("a", "f", "{}")]),
        Turn::new(Role::User, vec![result("a", vec![Part::text("1")], false)]),
        Turn::new(Role::Assistant, vec![call("b", "f", "{}")]),
    ];
    let request = foreign(turns);
    let messages = sent(&request, &needs)["messages"].clone();
    assert_eq!(messages[1]["reasoning_content"], "Hm.");
    assert_eq!(messages[3]["reasoning_content"], " ");
    let written = write(&request, &capabilities()).unwrap();
    assert!(!String::from_utf8_lossy(&written.body).contains("Hm."));
    assert_eq!(written.dropped, ["thinking"]);

    // A client of this format that does not send it back.
    let calls =
        json!([{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let bytes = body(
        json!([user("Go"), {"role": "assistant", "content": null, "tool_calls": calls}, {"role": "tool", "tool_call_id": "a", "content": "1"}]),
        json!({}),
    );
    assert_eq!(
        passed(&bytes, &needs, false)["messages"][1]["reasoning_content"],
        " "
    );
}

#[test]
fn the_cap_has_the_name_that_the_model_takes() {
    let newer = ModelCapabilities {
        uses_max_completion_tokens: true,
        max_output_tokens: Some(100),
        ..capabilities()
    };
    for (given, capabilities, expected) in [
        (
            json!({"max_tokens": 5}),
            capabilities(),
            json!({"max_tokens": 5}),
        ),
        (
            json!({"max_tokens": 5}),
            newer.clone(),
            json!({"max_completion_tokens": 5}),
        ),
        (
            json!({"max_completion_tokens": 5}),
            capabilities(),
            json!({"max_tokens": 5}),
        ),
        (
            json!({"max_tokens": 5, "max_completion_tokens": 9}),
            capabilities(),
            json!({"max_tokens": 9}),
        ),
        (
            json!({"max_completion_tokens": 9, "max_tokens": 5}),
            newer.clone(),
            json!({"max_completion_tokens": 9}),
        ),
        (
            json!({"max_tokens": 500}),
            newer,
            json!({"max_completion_tokens": 100}),
        ),
    ] {
        let bytes = body(json!([user("Hi")]), given);
        let mut expected = expected;
        expected.as_object_mut().unwrap().extend([
            ("model".to_owned(), json!("up")),
            ("messages".to_owned(), json!([user("Hi")])),
        ]);
        assert_eq!(sent(&read(&bytes), &capabilities), expected);
        assert_eq!(passed(&bytes, &capabilities, false), expected);
    }
}

#[test]
fn a_schema_that_the_model_cannot_keep_to_is_told_in_words() {
    let weak = ModelCapabilities {
        supports_json_schema: false,
        ..capabilities()
    };
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}});
    let bytes = body(
        json!([{"role": "system", "content": "Be brief."}, user("Hi")]),
        json!({"response_format": format}),
    );
    let written = write(&read(&bytes), &weak).unwrap();
    assert_eq!(written.dropped, ["response_format"]);
    for sent in [
        serde_json::from_slice(&written.body).unwrap(),
        passed(&bytes, &weak, false),
    ] {
        assert_eq!(sent["response_format"], json!({"type": "json_object"}));
        assert!(
            sent["messages"][1]["content"]
                .as_str()
                .unwrap()
                .contains(r#"{"type":"object"}"#)
        );
    }
}

#[test]
fn schemas_of_formats_without_the_word_are_strict_where_they_may_be() {
    let schema = |closed: bool| OutputFormat::Schema {
        name: None,
        description: None,
        schema: json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": !closed}),
        strict: None,
    };
    for (closed, expected) in [(true, json!(true)), (false, Value::Null)] {
        let request = Request {
            output: Some(schema(closed)),
            ..foreign(vec![asked()])
        };
        let format = sent(&request, &capabilities())["response_format"]["json_schema"].clone();
        assert_eq!(
            (&format["name"], &format["strict"]),
            (&json!("response"), &expected)
        );
    }
}

#[test]
fn fields_whose_loss_changes_the_response_are_rejected_by_the_clients_name() {
    let refused = |request: Request, capabilities: &ModelCapabilities| {
        write(&request, capabilities).unwrap_err().message
    };
    let no_stop = ModelCapabilities {
        accepts_stop: false,
        ..capabilities()
    };
    let stopping = Request {
        stop: vec!["x".to_owned()],
        ..foreign(vec![asked()])
    };
    assert_eq!(
        refused(stopping, &no_stop),
        "`stop_sequences` is not supported by this model"
    );
    let stateful = Request {
        extra: ExtraFields::new(
            "responses",
            serde_json::from_str(r#"{"previous_response_id":"r"}"#).unwrap(),
        ),
        ..foreign(vec![asked()])
    };
    assert!(
        refused(stateful, &capabilities()).starts_with("`previous_response_id` is not supported")
    );
    let hosted = Tool {
        kind: ToolKind::FormatSpecific {
            format: "messages",
            value: json!({"type": "bash_20250124", "name": "bash"}),
        },
        cache_ttl: None,
        extra: ExtraFields::NONE,
    };
    let request = Request {
        tools: vec![hosted],
        ..foreign(vec![asked()])
    };
    assert!(refused(request, &capabilities()).starts_with("`tools[0]` is \"bash_20250124\""));
    let source = Source::Url {
        url: "https://x.y/z.mp4".to_owned(),
        media_type: None,
    };
    let film = foreign(vec![Turn::new(
        Role::User,
        vec![Part::new(PartKind::Video { source })],
    )]);
    assert!(refused(film, &capabilities()).starts_with("`messages[0].content[0]` is video"));
}

#[test]
fn the_conversation_is_checked_with_paths() {
    for (messages, expected) in [
        (
            json!([user("a"), {"role": "user", "content": [{"text": "x"}]}]),
            "`messages[1].content[0].type` is required",
        ),
        (
            json!([{"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "x"}]}]),
            "`messages[0].content[0].image_url` is required",
        ),
        (
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": 3}}]}]),
            "`messages[0].content[0].image_url.url` must be a string",
        ),
        (
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "cat.png"}}]}]),
            "`messages[0].content[0].image_url.url` must be an http or https URL or a data URI",
        ),
        (
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,JVBERi0xLjQK"}}]}]),
            "`messages[0].content[0].image_url.url` must hold an image, but its bytes are application/pdf",
        ),
        (
            json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA"}}]}]),
            "`messages[0].content[0].input_audio.format` is required",
        ),
        (
            json!([{"role": "tool", "content": "x"}, user("a")]),
            "`messages[0].tool_call_id` is required",
        ),
        (
            json!([user("a"), {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {}}]}]),
            "`messages[1].tool_calls[0].function.name` is required",
        ),
        (
            json!([user("a"), {"role": "function", "content": "x"}]),
            "`messages[1].name` is required",
        ),
    ] {
        assert_eq!(bad(&body(messages, json!({}))), expected);
    }
    for (more, expected) in [
        (
            json!({"tools": [{"type": "function"}]}),
            "`tools[0].function` is required",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": ""}}]}),
            "`tools[0].function.name` must not be empty",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}),
            "`tools[0].function.parameters` must be a JSON Schema object",
        ),
        (
            json!({"tool_choice": "always"}),
            "`tool_choice` must be \"none\", \"auto\", \"required\" or an object that names a tool",
        ),
        (
            json!({"response_format": {"type": "xml"}}),
            "`response_format.type` must be \"text\", \"json_object\" or \"json_schema\"",
        ),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}}),
            "`response_format.json_schema.schema` is required",
        ),
    ] {
        assert_eq!(bad(&body(json!([user("a")]), more)), expected);
    }
}

#[test]
fn old_functions_and_vendors_thinking_are_understood() {
    let request = read(&body(
        json!([user("Go"), {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, {"role": "function", "name": "f", "content": "1"}]),
        json!({"functions": [{"name": "f"}], "function_call": "auto", "thinking": {"type": "enabled", "budget_tokens": 3000}}),
    ));
    let messages = sent(&request, &capabilities())["messages"].clone();
    assert_eq!(
        messages[2],
        json!({"role": "tool", "tool_call_id": "call_1_0", "content": "1"})
    );
    assert_eq!(request.tool_choice, Some(ToolChoice::Auto));
    let reasoning = request.reasoning.unwrap();
    assert_eq!(
        (reasoning.budget, reasoning.as_effort()),
        (Some(3000), Some(Effort::Medium))
    );
    for off in [
        json!({"thinking": {"type": "disabled"}}),
        json!({"enable_thinking": false}),
        json!({"reasoning": {"enabled": false}}),
    ] {
        let request = read(&body(json!([user("Go")]), off));
        assert_eq!(request.reasoning.unwrap().as_effort(), Some(Effort::None));
    }
}

#[test]
fn trap_47_calls_with_empty_ids_and_their_results_find_each_other() {
    let request = read(&body(
        json!([user("Go"), {"role": "assistant", "content": "", "tool_calls": [
                {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "", "content": "1"}, {"role": "tool", "tool_call_id": "", "content": "2"}]),
        json!({}),
    ));
    let messages = sent(&request, &capabilities())["messages"].clone();
    assert_eq!(messages[1]["tool_calls"][1]["id"], "call_1_1");
    assert_eq!(
        messages[3],
        json!({"role": "tool", "tool_call_id": "call_1_1", "content": "2"})
    );
}

#[test]
fn other_clients_cache_markers_and_tiers_are_told_to_be_lost() {
    let mut text = Part::text("long");
    text.cache_ttl = Some(String::new());
    let request = Request {
        service_tier: Some("standard_only".to_owned()),
        metadata: Some(json!({"a": "b"})),
        ..foreign(vec![
            Turn::new(Role::System, vec![text, Part::text("more")]),
            asked(),
        ])
    };
    let written = write(&request, &capabilities()).unwrap();
    assert_eq!(
        written.dropped,
        ["cache_control", "service_tier", "metadata"]
    );
    let sent: Value = serde_json::from_slice(&written.body).unwrap();
    assert_eq!(
        sent["messages"][0],
        json!({"role": "system", "content": "long\n\nmore"})
    );
}
