//! Tests of writing requests: translation from other formats, and models with restrictions.

use serde_json::{Value, json};
use tollgate_chat::hub::{
    Effort, ModelCapabilities, Opaque, OutputFormat, Part, PartKind, Reasoning, ReasoningControl,
    Request, Role, SamplingSupport, Source, Tool, ToolChoice, ToolKind, Turn,
};
use tollgate_chat::{Format, InvalidRequest, Target, WrittenRequest};

use super::FORMAT;

fn write(
    request: &Request,
    capabilities: &ModelCapabilities,
) -> Result<(Value, WrittenRequest), InvalidRequest> {
    let target = Target {
        model: "m",
        stream: false,
        capabilities,
        default_max_tokens: 8192,
    };
    let written = FORMAT.write_request(request, &target)?;
    Ok((serde_json::from_slice(&written.body).unwrap(), written))
}

fn chat_request(turns: Vec<Turn>) -> Request {
    Request {
        client_format: "chat-completions",
        turns,
        ..Request::default()
    }
}

fn body(request: &Request) -> Value {
    write(request, &ModelCapabilities::default()).unwrap().0
}

fn text_turn(role: Role, text: &str) -> Turn {
    Turn::new(role, vec![Part::text(text)])
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

fn result(id: &str, content: Vec<Part>, is_error: bool) -> Turn {
    let kind = PartKind::ToolResult {
        id: id.to_owned(),
        name: None,
        content,
        plain: true,
        is_error,
        custom: false,
    };
    Turn::new(Role::User, vec![Part::new(kind)])
}

fn function(name: &str, parameters: Option<Value>) -> Tool {
    Tool {
        kind: ToolKind::Function {
            name: name.to_owned(),
            description: None,
            parameters,
            strict: None,
        },
        cache_ttl: None,
        extra: tollgate_chat::hub::ExtraFields::NONE,
    }
}

fn responses(content: &Value) -> Vec<(&str, &Value)> {
    let parts = content["parts"].as_array().unwrap().iter();
    parts
        .filter_map(|part| part.get("functionResponse"))
        .map(|response| (response["name"].as_str().unwrap(), &response["response"]))
        .collect()
}

#[test]
fn results_form_one_content_in_call_order_with_missing_ones_filled_in() {
    let request = chat_request(vec![
        text_turn(Role::User, "go"),
        Turn::new(
            Role::Assistant,
            vec![call("a", "f", "{}"), call("b", "g", "{}")],
        ),
        Turn::new(Role::Assistant, vec![call("c", "f", "{}")]),
        result("c", vec![Part::text("third")], false),
        result("a", vec![Part::text("first")], false),
        text_turn(Role::User, "and?"),
    ]);
    let contents = body(&request)["contents"].clone();
    assert_eq!(contents.as_array().unwrap().len(), 3);
    let expected = [
        ("f", &json!({"output": "first"})),
        ("g", &json!({"error": "no result given"})),
        ("f", &json!({"output": "third"})),
    ];
    assert_eq!(responses(&contents[2]), expected);
    assert_eq!(contents[2]["parts"][3], json!({"text": "and?"}));
}

#[test]
fn a_call_without_a_following_turn_gets_a_result() {
    let request = chat_request(vec![
        text_turn(Role::User, "go"),
        Turn::new(Role::Assistant, vec![call("a", "f", "{}")]),
    ]);
    let contents = body(&request)["contents"].clone();
    assert_eq!(
        responses(&contents[2]),
        [("f", &json!({"error": "no result given"}))]
    );
}

#[test]
fn results_without_a_call_become_text() {
    let request = chat_request(vec![
        result("x", vec![Part::text("lost")], false),
        text_turn(Role::User, "hi"),
    ]);
    let contents = body(&request)["contents"].clone();
    assert_eq!(contents.as_array().unwrap().len(), 1);
    assert!(
        contents[0]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("lost")
    );
}

#[test]
fn results_are_written_as_objects() {
    for (text, is_error, expected) in [
        ("plain", false, json!({"output": "plain"})),
        ("[1,2]", false, json!({"output": "[1,2]"})),
        ("{\"a\":1}", false, json!({"a": 1})),
        ("7", false, json!({"output": "7"})),
        ("", false, json!({"output": ""})),
        ("broke", true, json!({"error": "broke"})),
    ] {
        let request = chat_request(vec![
            text_turn(Role::User, "go"),
            Turn::new(Role::Assistant, vec![call("a", "f", "{}")]),
            result("a", vec![Part::text(text)], is_error),
        ]);
        let contents = body(&request)["contents"].clone();
        assert_eq!(responses(&contents[2]), [("f", &expected)]);
    }
}

#[test]
fn text_beside_calls_is_kept_and_invalid_arguments_are_wrapped() {
    for (arguments, expected) in [
        ("{\"a\":1}", json!({"a": 1})),
        ("", json!({})),
        ("null", json!({})),
        ("{\"a\":", json!({"_raw": "{\"a\":"})),
        ("[1]", json!({"_raw": "[1]"})),
    ] {
        let request = chat_request(vec![
            text_turn(Role::User, "go"),
            Turn::new(
                Role::Assistant,
                vec![Part::text("look"), call("a", "f", arguments)],
            ),
            result("a", vec![Part::text("x")], false),
        ]);
        let parts = body(&request)["contents"][1]["parts"].clone();
        assert_eq!(parts[0], json!({"text": "look"}));
        assert_eq!(parts[1]["functionCall"]["args"], expected);
    }
}

#[test]
fn invalid_tool_names_are_renamed_everywhere() {
    let mut request = chat_request(vec![
        text_turn(Role::User, "go"),
        Turn::new(Role::Assistant, vec![call("a", "1 f/x", "{}")]),
        result("a", vec![Part::text("x")], false),
    ]);
    request.tools = vec![function("1 f/x", None), function("mcp.ok:a-b", None)];
    request.tool_choice = Some(ToolChoice::Tool("1 f/x".to_owned()));
    let (body, written) = write(&request, &ModelCapabilities::default()).unwrap();
    let (sent, client) = &written.renamed_tools[0];
    assert_eq!(client, "1 f/x");
    assert_eq!(
        body["tools"][0]["functionDeclarations"][0]["name"],
        json!(sent)
    );
    assert_eq!(
        body["tools"][0]["functionDeclarations"][1]["name"],
        json!("mcp.ok:a-b")
    );
    assert_eq!(
        body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"],
        json!([sent])
    );
    assert_eq!(
        body["contents"][1]["parts"][0]["functionCall"]["name"],
        json!(sent)
    );
    assert_eq!(
        body["contents"][2]["parts"][0]["functionResponse"]["name"],
        json!(sent)
    );
}

#[test]
fn system_texts_are_collected_and_image_links_need_support() {
    let request = chat_request(vec![
        text_turn(Role::System, "one"),
        text_turn(Role::System, "two"),
        text_turn(Role::User, "hi"),
        text_turn(Role::System, "three"),
        text_turn(Role::User, "there"),
    ]);
    let written = body(&request);
    assert_eq!(
        written["systemInstruction"],
        json!({"parts": [{"text": "one"}, {"text": "two"}]})
    );
    let parts = json!([{"text": "hi"}, {"text": "three"}, {"text": "there"}]);
    assert_eq!(
        written["contents"],
        json!([{"role": "user", "parts": parts}])
    );
    let alone = body(&chat_request(vec![text_turn(Role::System, "one")]));
    assert_eq!(
        alone,
        json!({"contents": [{"role": "user", "parts": [{"text": "one"}]}]})
    );
    let link = |url: &str| {
        Part::new(PartKind::Image {
            source: Source::Url {
                url: url.to_owned(),
                media_type: None,
            },
            detail: None,
        })
    };
    let image = chat_request(vec![Turn::new(
        Role::User,
        vec![link("https://a.example/x.webp")],
    )]);
    let bad = write(&image, &ModelCapabilities::default()).unwrap_err();
    assert_eq!(bad.field, "messages[0].content[0]");
    let accepts_urls = ModelCapabilities {
        accepts_urls: true,
        ..ModelCapabilities::default()
    };
    let (written, _) = write(&image, &accepts_urls).unwrap();
    let file =
        json!({"fileData": {"fileUri": "https://a.example/x.webp", "mimeType": "image/webp"}});
    assert_eq!(written["contents"][0]["parts"][0], file);
}

#[test]
fn schemas_use_the_dialect_that_the_model_supports() {
    let schema = json!({"$schema": "x", "type": "object", "properties": {
        "title": {"type": ["string", "null"], "default": "x"}, "n": {"type": "integer", "exclusiveMinimum": 0}}});
    let mut request = chat_request(vec![text_turn(Role::User, "hi")]);
    request.tools = vec![
        function("f", Some(schema.clone())),
        function("g", Some(json!({"type": "object", "properties": {}}))),
    ];
    request.output = Some(OutputFormat::Schema {
        name: Some("x".to_owned()),
        description: None,
        schema,
        strict: Some(true),
    });
    let narrowed = json!({"type": "object", "properties": {"title": {"type": ["string", "null"]}, "n": {"type": "integer", "minimum": 1}}});
    let written = body(&request);
    let functions = json!([{"name": "f", "parametersJsonSchema": narrowed}, {"name": "g"}]);
    assert_eq!(
        written["tools"],
        json!([{"functionDeclarations": functions}])
    );
    let config = json!({"responseMimeType": "application/json", "responseJsonSchema": narrowed});
    assert_eq!(written["generationConfig"], config);
    let old = ModelCapabilities {
        supports_json_schema: false,
        ..ModelCapabilities::default()
    };
    let (written, _) = write(&request, &old).unwrap();
    let older = json!({"type": "OBJECT", "properties": {"title": {"type": "STRING", "nullable": true}, "n": {"type": "INTEGER", "minimum": 1}}});
    assert_eq!(
        written["tools"][0]["functionDeclarations"][0]["parameters"],
        older
    );
    assert_eq!(written["generationConfig"]["responseSchema"], older);
}

#[test]
fn json_output_beside_functions_becomes_an_instruction() {
    let mut request = chat_request(vec![
        text_turn(Role::System, "Be brief."),
        text_turn(Role::User, "hi"),
    ]);
    request.tools = vec![function("f", None)];
    request.output = Some(OutputFormat::Json);
    let old = ModelCapabilities {
        supports_tools_with_json: false,
        ..ModelCapabilities::default()
    };
    let (written, outcome) = write(&request, &old).unwrap();
    assert_eq!(written.get("generationConfig"), None);
    assert!(
        written["systemInstruction"]["parts"][1]["text"]
            .as_str()
            .unwrap()
            .contains("JSON")
    );
    assert_eq!(outcome.dropped, ["response_format"]);
}

#[test]
fn unsupported_sampling_is_dropped_and_reported() {
    let mut request = chat_request(vec![text_turn(Role::User, "hi")]);
    (request.temperature, request.top_p, request.top_k) = (Some(1.0), Some(0.5), Some(3));
    for (sampling, config, dropped) in [
        (
            SamplingSupport::All,
            json!({"temperature": 1, "topP": 0.5, "topK": 3}),
            vec![],
        ),
        (
            SamplingSupport::TemperatureOrTopP,
            json!({"temperature": 1, "topK": 3}),
            vec!["top_p"],
        ),
        (
            SamplingSupport::None,
            Value::Null,
            vec!["temperature", "top_p", "top_k"],
        ),
    ] {
        let capabilities = ModelCapabilities {
            sampling,
            ..ModelCapabilities::default()
        };
        let (written, outcome) = write(&request, &capabilities).unwrap();
        assert_eq!(written["generationConfig"], config);
        assert_eq!(outcome.dropped, dropped);
    }
}

#[test]
fn effort_becomes_a_budget_or_a_level_but_never_both() {
    let level = |minimal, medium| ReasoningControl::Level { minimal, medium };
    let budget = |can_disable| ReasoningControl::Budget {
        min: 128,
        max: 32_768,
        can_disable,
    };
    let shown = |mut config: Value| {
        config["includeThoughts"] = json!(true);
        config
    };
    for (effort, thinking, expected) in [
        (
            Effort::None,
            level(true, true),
            json!({"thinkingLevel": "MINIMAL"}),
        ),
        (
            Effort::None,
            level(false, true),
            json!({"thinkingLevel": "LOW"}),
        ),
        (
            Effort::Medium,
            level(true, false),
            shown(json!({"thinkingLevel": "HIGH"})),
        ),
        (
            Effort::Medium,
            level(true, true),
            shown(json!({"thinkingLevel": "MEDIUM"})),
        ),
        (
            Effort::XHigh,
            level(true, true),
            shown(json!({"thinkingLevel": "HIGH"})),
        ),
        (
            Effort::Max,
            level(true, true),
            shown(json!({"thinkingLevel": "HIGH"})),
        ),
        (Effort::None, budget(true), json!({"thinkingBudget": 0})),
        (Effort::None, budget(false), json!({"thinkingBudget": 128})),
        (
            Effort::Low,
            budget(true),
            shown(json!({"thinkingBudget": 1024})),
        ),
        (
            Effort::Medium,
            budget(true),
            shown(json!({"thinkingBudget": 8192})),
        ),
        (
            Effort::High,
            budget(true),
            shown(json!({"thinkingBudget": 24_576})),
        ),
        (
            Effort::Max,
            budget(true),
            shown(json!({"thinkingBudget": 32_768})),
        ),
    ] {
        let mut request = chat_request(vec![text_turn(Role::User, "hi")]);
        request.reasoning = Some(Reasoning {
            effort: Some(effort),
            ..Reasoning::default()
        });
        let capabilities = ModelCapabilities {
            thinking,
            ..ModelCapabilities::default()
        };
        let (written, _) = write(&request, &capabilities).unwrap();
        assert_eq!(
            written["generationConfig"]["thinkingConfig"], expected,
            "{effort:?} {thinking:?}"
        );
    }
}

#[test]
fn effort_for_a_model_without_thinking_is_reported() {
    let mut request = chat_request(vec![text_turn(Role::User, "hi")]);
    request.reasoning = Some(Reasoning {
        effort: Some(Effort::High),
        ..Reasoning::default()
    });
    let capabilities = ModelCapabilities {
        thinking: ReasoningControl::Unsupported,
        ..ModelCapabilities::default()
    };
    let (written, outcome) = write(&request, &capabilities).unwrap();
    assert_eq!(written.get("generationConfig"), None);
    assert_eq!(outcome.dropped, ["reasoning_effort"]);
}

#[test]
fn signatures_go_to_their_vendor_and_missing_ones_get_the_placeholder() {
    let signed = |vendor: &str| {
        Part::new(PartKind::ToolCall {
            id: "a".to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
            custom: false,
            signature: Some(Opaque::new(vendor, "c2ln")),
        })
    };
    let needs = ModelCapabilities {
        requires_signatures: true,
        ..ModelCapabilities::default()
    };
    for (vendor, capabilities, expected) in [
        ("gemini", &needs, json!("c2ln")),
        (
            "anthropic",
            &needs,
            json!("skip_thought_signature_validator"),
        ),
        ("anthropic", &ModelCapabilities::default(), Value::Null),
        ("gemini", &ModelCapabilities::default(), json!("c2ln")),
    ] {
        let request = chat_request(vec![
            text_turn(Role::User, "go"),
            Turn::new(Role::Assistant, vec![signed(vendor), call("b", "g", "{}")]),
            result("a", vec![Part::text("x")], false),
            result("b", vec![Part::text("x")], false),
        ]);
        let (written, _) = write(&request, capabilities).unwrap();
        let parts = &written["contents"][1]["parts"];
        assert_eq!(parts[0]["thoughtSignature"], expected, "{vendor}");
        assert_eq!(
            parts[1].get("thoughtSignature"),
            None,
            "only the first of parallel calls"
        );
    }
}

#[test]
fn thinking_of_other_vendors_is_sent_without_its_signature() {
    let thought = |text: &str, vendor: &str| {
        Part::new(PartKind::Reasoning {
            text: text.to_owned(),
            signature: Some(Opaque::new(vendor, "c2ln")),
            id: None,
            summary: false,
        })
    };
    let redacted = Part::new(PartKind::RedactedReasoning(Opaque::new("anthropic", "x")));
    let parts = vec![
        thought("hm", "anthropic"),
        thought("ah", "gemini"),
        thought("", "anthropic"),
        redacted,
        Part::text("so"),
    ];
    let request = chat_request(vec![
        text_turn(Role::User, "go"),
        Turn::new(Role::Assistant, parts),
    ]);
    let (written, outcome) = write(&request, &ModelCapabilities::default()).unwrap();
    let expected = json!([
        {"text": "hm", "thought": true},
        {"text": "ah", "thought": true, "thoughtSignature": "c2ln"},
        {"text": "so"},
    ]);
    assert_eq!(written["contents"][1]["parts"], expected);
    assert_eq!(outcome.dropped, ["reasoning_content"]);
}

#[test]
fn images_in_results_are_placed_where_the_model_accepts_them() {
    let image = Part::new(PartKind::Image {
        source: Source::Base64 {
            media_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
        },
        detail: None,
    });
    let request = chat_request(vec![
        text_turn(Role::User, "go"),
        Turn::new(
            Role::Assistant,
            vec![call("a", "f", "{}"), call("b", "f", "{}")],
        ),
        result("a", vec![Part::text("see"), image], false),
        result("b", vec![Part::text("none")], false),
    ]);
    let blob = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    let old = body(&request)["contents"][2]["parts"].clone();
    assert_eq!(
        (old.as_array().unwrap().len(), &old[2]),
        (3, &blob),
        "after all results"
    );
    let newer = ModelCapabilities {
        requires_signatures: true,
        ..ModelCapabilities::default()
    };
    let (new, _) = write(&request, &newer).unwrap();
    let new = &new["contents"][2]["parts"];
    assert_eq!(new[0]["functionResponse"]["parts"], json!([blob]));
    assert_eq!(new.as_array().unwrap().len(), 2);
}

#[test]
fn unsupported_tools_stops_and_parts_are_rejected_with_their_field() {
    let foreign_tool = Tool {
        kind: ToolKind::FormatSpecific {
            format: "responses",
            value: json!({"type": "file_search"}),
        },
        ..function("", None)
    };
    let foreign = |kind: &str| {
        Part::new(PartKind::FormatSpecific {
            format: "responses",
            value: json!({"type": kind}),
        })
    };
    let mut tools = chat_request(vec![text_turn(Role::User, "hi")]);
    tools.tools = vec![foreign_tool];
    let mut stops = chat_request(vec![text_turn(Role::User, "hi")]);
    stops.stop = ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec();
    let upload = Part::new(PartKind::File {
        source: Source::FileId("file-1".to_owned()),
        name: None,
    });
    for (request, field) in [
        (tools, "tools[0]"),
        (stops, "stop"),
        (
            chat_request(vec![Turn::new(Role::User, vec![upload])]),
            "messages[0].content[0]",
        ),
        (
            chat_request(vec![Turn::new(Role::User, vec![foreign("x")])]),
            "messages[0].content[0]",
        ),
        (
            chat_request(vec![Turn::new(
                Role::Assistant,
                vec![foreign("item_reference")],
            )]),
            "messages[0].content[0]",
        ),
    ] {
        assert_eq!(
            write(&request, &ModelCapabilities::default())
                .unwrap_err()
                .field,
            field
        );
    }
    let past = chat_request(vec![
        text_turn(Role::User, "hi"),
        Turn::new(
            Role::Assistant,
            vec![foreign("web_search_call"), Part::text("x")],
        ),
    ]);
    let (_, outcome) = write(&past, &ModelCapabilities::default()).unwrap();
    assert_eq!(outcome.dropped, ["web_search_call"]);
}
