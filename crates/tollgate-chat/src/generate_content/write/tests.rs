//! The traps of translation towards this format, and what models differ in.

use serde_json::{Value, json};

use super::write_request;
use crate::error::Bad;
use crate::format::{Target, Written};
use crate::hub::{
    Effort, Kind, ModelTraits, Opaque, OutputFormat, Part, Reasoning, Request, Role, Sampling,
    Source, Thinking, Tool, ToolChoice, ToolKind, Turn,
};

fn write(request: &Request, traits: &ModelTraits) -> Result<(Value, Written), Bad> {
    let target = Target {
        model: "m",
        stream: false,
        traits,
        default_max_tokens: 8192,
    };
    let written = write_request(request, &target)?;
    Ok((serde_json::from_slice(&written.body).unwrap(), written))
}

fn of(turns: Vec<Turn>) -> Request {
    Request {
        client: "chat-completions",
        turns,
        ..Request::default()
    }
}

fn body(request: &Request) -> Value {
    write(request, &ModelTraits::default()).unwrap().0
}

fn said(role: Role, text: &str) -> Turn {
    Turn::of(role, vec![Part::text(text)])
}

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::of(Kind::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        custom: false,
        signature: None,
    })
}

fn result(id: &str, content: Vec<Part>, is_error: bool) -> Turn {
    let kind = Kind::ToolResult {
        id: id.to_owned(),
        name: None,
        content,
        plain: true,
        is_error,
        custom: false,
    };
    Turn::of(Role::User, vec![Part::of(kind)])
}

fn function(name: &str, parameters: Option<Value>) -> Tool {
    Tool {
        kind: ToolKind::Function {
            name: name.to_owned(),
            description: None,
            parameters,
            strict: None,
        },
        cache: None,
        own: crate::hub::Own::NONE,
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
fn trap_02_04_results_are_one_content_one_per_call_in_order_and_only_missing_ones_are_filled_in() {
    let request = of(vec![
        said(Role::User, "go"),
        Turn::of(
            Role::Assistant,
            vec![call("a", "f", "{}"), call("b", "g", "{}")],
        ),
        Turn::of(Role::Assistant, vec![call("c", "f", "{}")]),
        result("c", vec![Part::text("third")], false),
        result("a", vec![Part::text("first")], false),
        said(Role::User, "and?"),
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
fn calls_at_the_end_and_before_the_models_next_word_are_answered_too() {
    let request = of(vec![
        said(Role::User, "go"),
        Turn::of(Role::Assistant, vec![call("a", "f", "{}")]),
    ]);
    let contents = body(&request)["contents"].clone();
    assert_eq!(
        responses(&contents[2]),
        [("f", &json!({"error": "no result given"}))]
    );
}

#[test]
fn results_of_no_call_become_text() {
    let request = of(vec![
        result("x", vec![Part::text("lost")], false),
        said(Role::User, "hi"),
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
fn trap_05_results_are_objects() {
    for (text, is_error, expected) in [
        ("plain", false, json!({"output": "plain"})),
        ("[1,2]", false, json!({"output": "[1,2]"})),
        ("{\"a\":1}", false, json!({"a": 1})),
        ("7", false, json!({"output": "7"})),
        ("", false, json!({"output": ""})),
        ("broke", true, json!({"error": "broke"})),
    ] {
        let request = of(vec![
            said(Role::User, "go"),
            Turn::of(Role::Assistant, vec![call("a", "f", "{}")]),
            result("a", vec![Part::text(text)], is_error),
        ]);
        let contents = body(&request)["contents"].clone();
        assert_eq!(responses(&contents[2]), [("f", &expected)]);
    }
}

#[test]
fn trap_08_10_text_stays_beside_calls_and_no_call_is_lost() {
    for (arguments, expected) in [
        ("{\"a\":1}", json!({"a": 1})),
        ("", json!({})),
        ("null", json!({})),
        ("{\"a\":", json!({"_raw": "{\"a\":"})),
        ("[1]", json!({"_raw": "[1]"})),
    ] {
        let request = of(vec![
            said(Role::User, "go"),
            Turn::of(
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
fn trap_11_names_are_made_legal_everywhere() {
    let mut request = of(vec![
        said(Role::User, "go"),
        Turn::of(Role::Assistant, vec![call("a", "1 f/x", "{}")]),
        result("a", vec![Part::text("x")], false),
    ]);
    request.tools = vec![function("1 f/x", None), function("mcp.ok:a-b", None)];
    request.tool_choice = Some(ToolChoice::One("1 f/x".to_owned()));
    let (body, written) = write(&request, &ModelTraits::default()).unwrap();
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
fn trap_12_every_system_text_counts_no_turn_is_invented_and_no_picture_is_empty() {
    let request = of(vec![
        said(Role::System, "one"),
        said(Role::System, "two"),
        said(Role::User, "hi"),
        said(Role::System, "three"),
        said(Role::User, "there"),
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
    let alone = body(&of(vec![said(Role::System, "one")]));
    assert_eq!(
        alone,
        json!({"contents": [{"role": "user", "parts": [{"text": "one"}]}]})
    );
    let link = |url: &str| {
        Part::of(Kind::Image {
            source: Source::Url {
                url: url.to_owned(),
                media_type: None,
            },
            detail: None,
        })
    };
    let picture = of(vec![Turn::of(
        Role::User,
        vec![link("https://a.example/x.webp")],
    )]);
    let bad = write(&picture, &ModelTraits::default()).unwrap_err();
    assert_eq!(bad.field, "messages[0].content[0]");
    let takes_urls = ModelTraits {
        takes_urls: true,
        ..ModelTraits::default()
    };
    let (written, _) = write(&picture, &takes_urls).unwrap();
    let file =
        json!({"fileData": {"fileUri": "https://a.example/x.webp", "mimeType": "image/webp"}});
    assert_eq!(written["contents"][0]["parts"][0], file);
}

#[test]
fn trap_13_14_schemas_are_of_the_dialect_that_the_model_knows() {
    let schema = json!({"$schema": "x", "type": "object", "properties": {
        "title": {"type": ["string", "null"], "default": "x"}, "n": {"type": "integer", "exclusiveMinimum": 0}}});
    let mut request = of(vec![said(Role::User, "hi")]);
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
    let old = ModelTraits {
        json_schema: false,
        ..ModelTraits::default()
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
fn trap_19_functions_beside_json_where_the_model_cannot() {
    let mut request = of(vec![
        said(Role::System, "Be brief."),
        said(Role::User, "hi"),
    ]);
    request.tools = vec![function("f", None)];
    request.output = Some(OutputFormat::Json);
    let old = ModelTraits {
        tools_with_json: false,
        ..ModelTraits::default()
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
fn trap_21_22_sampling_that_the_model_refuses_is_named() {
    let mut request = of(vec![said(Role::User, "hi")]);
    (request.temperature, request.top_p, request.top_k) = (Some(1.0), Some(0.5), Some(3));
    for (sampling, config, dropped) in [
        (
            Sampling::All,
            json!({"temperature": 1, "topP": 0.5, "topK": 3}),
            vec![],
        ),
        (
            Sampling::One,
            json!({"temperature": 1, "topK": 3}),
            vec!["top_p"],
        ),
        (
            Sampling::None,
            Value::Null,
            vec!["temperature", "top_p", "top_k"],
        ),
    ] {
        let traits = ModelTraits {
            sampling,
            ..ModelTraits::default()
        };
        let (written, outcome) = write(&request, &traits).unwrap();
        assert_eq!(written["generationConfig"], config);
        assert_eq!(outcome.dropped, dropped);
    }
}

#[test]
fn trap_24_effort_becomes_what_the_model_has_and_never_both() {
    let level = |minimal, medium| Thinking::Level { minimal, medium };
    let budget = |can_disable| Thinking::Budget {
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
        let mut request = of(vec![said(Role::User, "hi")]);
        request.reasoning = Some(Reasoning {
            effort: Some(effort),
            ..Reasoning::default()
        });
        let traits = ModelTraits {
            thinking,
            ..ModelTraits::default()
        };
        let (written, _) = write(&request, &traits).unwrap();
        assert_eq!(
            written["generationConfig"]["thinkingConfig"], expected,
            "{effort:?} {thinking:?}"
        );
    }
}

#[test]
fn effort_for_a_model_that_cannot_think_is_named() {
    let mut request = of(vec![said(Role::User, "hi")]);
    request.reasoning = Some(Reasoning {
        effort: Some(Effort::High),
        ..Reasoning::default()
    });
    let traits = ModelTraits {
        thinking: Thinking::No,
        ..ModelTraits::default()
    };
    let (written, outcome) = write(&request, &traits).unwrap();
    assert_eq!(written.get("generationConfig"), None);
    assert_eq!(outcome.dropped, ["reasoning_effort"]);
}

#[test]
fn trap_28_signatures_go_to_their_vendor_and_missing_ones_are_excused() {
    let signed = |vendor: &str| {
        Part::of(Kind::ToolCall {
            id: "a".to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
            custom: false,
            signature: Some(Opaque::new(vendor, "c2ln")),
        })
    };
    let needs = ModelTraits {
        needs_signatures: true,
        ..ModelTraits::default()
    };
    for (vendor, traits, expected) in [
        ("gemini", &needs, json!("c2ln")),
        (
            "anthropic",
            &needs,
            json!("skip_thought_signature_validator"),
        ),
        ("anthropic", &ModelTraits::default(), Value::Null),
        ("gemini", &ModelTraits::default(), json!("c2ln")),
    ] {
        let request = of(vec![
            said(Role::User, "go"),
            Turn::of(Role::Assistant, vec![signed(vendor), call("b", "g", "{}")]),
            result("a", vec![Part::text("x")], false),
            result("b", vec![Part::text("x")], false),
        ]);
        let (written, _) = write(&request, traits).unwrap();
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
fn thinking_of_other_vendors_is_text_without_its_proof() {
    let thought = |text: &str, vendor: &str| {
        Part::of(Kind::Reasoning {
            text: text.to_owned(),
            signature: Some(Opaque::new(vendor, "c2ln")),
            id: None,
            summary: false,
        })
    };
    let redacted = Part::of(Kind::Redacted(Opaque::new("anthropic", "x")));
    let parts = vec![
        thought("hm", "anthropic"),
        thought("ah", "gemini"),
        thought("", "anthropic"),
        redacted,
        Part::text("so"),
    ];
    let request = of(vec![
        said(Role::User, "go"),
        Turn::of(Role::Assistant, parts),
    ]);
    let (written, outcome) = write(&request, &ModelTraits::default()).unwrap();
    let expected = json!([
        {"text": "hm", "thought": true},
        {"text": "ah", "thought": true, "thoughtSignature": "c2ln"},
        {"text": "so"},
    ]);
    assert_eq!(written["contents"][1]["parts"], expected);
    assert_eq!(outcome.dropped, ["reasoning_content"]);
}

#[test]
fn pictures_of_results_stand_where_the_model_takes_them() {
    let picture = Part::of(Kind::Image {
        source: Source::Base64 {
            media_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
        },
        detail: None,
    });
    let request = of(vec![
        said(Role::User, "go"),
        Turn::of(
            Role::Assistant,
            vec![call("a", "f", "{}"), call("b", "f", "{}")],
        ),
        result("a", vec![Part::text("see"), picture], false),
        result("b", vec![Part::text("none")], false),
    ]);
    let blob = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    let old = body(&request)["contents"][2]["parts"].clone();
    assert_eq!(
        (old.as_array().unwrap().len(), &old[2]),
        (3, &blob),
        "trap_03: behind all answers"
    );
    let newer = ModelTraits {
        needs_signatures: true,
        ..ModelTraits::default()
    };
    let (new, _) = write(&request, &newer).unwrap();
    let new = &new["contents"][2]["parts"];
    assert_eq!(new[0]["functionResponse"]["parts"], json!([blob]));
    assert_eq!(new.as_array().unwrap().len(), 2);
}

#[test]
fn what_would_change_the_answer_is_refused() {
    let foreign_tool = Tool {
        kind: ToolKind::Foreign {
            format: "responses",
            value: json!({"type": "file_search"}),
        },
        ..function("", None)
    };
    let foreign = |kind: &str| {
        Part::of(Kind::Foreign {
            format: "responses",
            value: json!({"type": kind}),
        })
    };
    let mut tools = of(vec![said(Role::User, "hi")]);
    tools.tools = vec![foreign_tool];
    let mut stops = of(vec![said(Role::User, "hi")]);
    stops.stop = ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec();
    let upload = Part::of(Kind::File {
        source: Source::FileId("file-1".to_owned()),
        name: None,
    });
    for (request, field) in [
        (tools, "tools[0]"),
        (stops, "stop"),
        (
            of(vec![Turn::of(Role::User, vec![upload])]),
            "messages[0].content[0]",
        ),
        (
            of(vec![Turn::of(Role::User, vec![foreign("x")])]),
            "messages[0].content[0]",
        ),
        (
            of(vec![Turn::of(
                Role::Assistant,
                vec![foreign("item_reference")],
            )]),
            "messages[0].content[0]",
        ),
    ] {
        assert_eq!(
            write(&request, &ModelTraits::default()).unwrap_err().field,
            field
        );
    }
    let past = of(vec![
        said(Role::User, "hi"),
        Turn::of(
            Role::Assistant,
            vec![foreign("web_search_call"), Part::text("x")],
        ),
    ]);
    let (_, outcome) = write(&past, &ModelTraits::default()).unwrap();
    assert_eq!(outcome.dropped, ["web_search_call"]);
}
