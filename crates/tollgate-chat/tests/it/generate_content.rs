//! Properties of the generate-content format: what goes in comes out, no stream is illegal whatever happens, nothing panics.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tollgate_chat::generate_content::{GenerateContent, count_request, path};
use tollgate_chat::hub::{Citation, Event, Finish, Fold, ModelTraits, Opaque, Own, Part, Usage};
use tollgate_chat::{Format, Garbled, Rendering, Target, WireError};

const FORMAT: GenerateContent = GenerateContent;

fn rendering(json_array: bool) -> Rendering<'static> {
    Rendering {
        model: "client-model",
        created: 0,
        seed: "seed",
        include_usage: true,
        prompt_estimate: 5,
        request: None,
        json_array,
    }
}

fn target(traits: &ModelTraits) -> Target<'_> {
    Target {
        model: "m",
        stream: false,
        traits,
        default_max_tokens: 10,
    }
}

// Requests.

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z_][a-zA-Z0-9_äß猫]{0,7}"
}

fn name() -> impl Strategy<Value = String> {
    "[a-z_][a-zA-Z0-9_.:-]{0,20}"
}

fn free_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1000..1000i32).prop_map(|n| json!(f64::from(n) / 8.0)),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            free_object_of(inner),
        ]
    })
}

fn free_object_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((word(), inner), 0..3)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn optional(
    name: &'static str,
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Option<(String, Value)>> {
    prop::option::of(value.prop_map(move |value| (name.to_owned(), value)))
}

fn object(members: Vec<Option<(String, Value)>>) -> Value {
    Value::Object(members.into_iter().flatten().collect::<Map<_, _>>())
}

fn signature() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        "CpcBAdHtim9t",
        "c2ln",
        "AA-_",
        "skip_thought_signature_validator",
    ])
    .prop_map(Value::from)
}

fn user_part() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => word().prop_map(|text| json!({"text": text})),
        1 => Just(json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}})),
        1 => Just(json!({"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}, "videoMetadata": {"fps": 2}})),
        1 => Just(json!({"fileData": {"fileUri": "gs://bucket/a.pdf", "mimeType": "application/pdf"}})),
        1 => Just(json!({"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/x", "mimeType": "audio/wav"}})),
        1 => Just(json!({"fileData": {"fileUri": "https://youtu.be/x"}})),
    ]
}

fn model_part() -> impl Strategy<Value = Value> {
    let signed = |part: Value, signature: Option<Value>| {
        let mut part = part;
        if let Some(signature) = signature {
            part["thoughtSignature"] = signature;
        }
        part
    };
    let text = (word(), any::<bool>(), prop::option::of(signature())).prop_map(
        move |(text, thought, signature)| {
            let part = if thought {
                json!({"text": text, "thought": true})
            } else {
                json!({"text": text})
            };
            signed(part, signature)
        },
    );
    prop_oneof![
        4 => text,
        1 => signature().prop_map(|s| json!({"text": "", "thoughtSignature": s})),
        1 => Just(json!({"executableCode": {"language": "PYTHON", "code": "1"}})),
        1 => Just(json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "c2ln"})),
    ]
}

/// A call, and what answers it.
fn call_and_answer() -> impl Strategy<Value = (Value, Value)> {
    let args = prop::option::of(free_object_of(free_value()));
    let response = prop_oneof![
        free_object_of(free_value()),
        word().prop_map(|text| json!({"output": text})),
        Just(json!({"output": "{\"a\":1}"})),
        Just(json!({"output": [1]})),
        word().prop_map(|text| json!({"error": text})),
        Just(json!({"error": {"code": 1}})),
    ];
    let rest = prop::option::of(Just(
        json!([{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]),
    ));
    (
        name(),
        args,
        response,
        prop::option::of(0..1000u32),
        prop::option::of(signature()),
        rest,
    )
        .prop_map(|(name, args, response, id, signature, parts)| {
            let mut call = json!({"functionCall": {"name": name}});
            let mut answer = json!({"functionResponse": {"name": name, "response": response}});
            if let Some(args) = args {
                call["functionCall"]["args"] = args;
            }
            if let Some(id) = id {
                call["functionCall"]["id"] = json!(format!("id{id}"));
                answer["functionResponse"]["id"] = json!(format!("id{id}"));
            }
            if let Some(signature) = signature {
                call["thoughtSignature"] = signature;
            }
            if let Some(parts) = parts {
                answer["functionResponse"]["parts"] = parts;
            }
            (call, answer)
        })
}

fn exchange() -> impl Strategy<Value = Vec<Value>> {
    let content = |role: &str, parts: Vec<Value>| json!({"role": role, "parts": parts});
    let calls = prop::collection::vec(call_and_answer(), 1..4);
    prop_oneof![
        prop::collection::vec(user_part(), 1..4)
            .prop_map(move |parts| vec![content("user", parts)]),
        prop::collection::vec(model_part(), 1..4)
            .prop_map(move |parts| vec![content("model", parts)]),
        (
            prop::collection::vec(model_part(), 0..2),
            calls,
            prop::collection::vec(user_part(), 0..2)
        )
            .prop_map(move |(mut before, calls, mut after)| {
                let (calls, mut answers): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
                before.extend(calls);
                answers.append(&mut after);
                // A word between, so that contents with tools never stand beside others of their speaker.
                vec![
                    content("user", vec![json!({"text": "go"})]),
                    content("model", before),
                    content("user", answers),
                    content("model", vec![json!({"text": "so"})]),
                ]
            },),
    ]
}

fn tools() -> impl Strategy<Value = Value> {
    let parameters = prop_oneof![
        Just(None),
        Just(Some((
            "parameters",
            json!({"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": true}}})
        ))),
        Just(Some((
            "parametersJsonSchema",
            json!({"type": "object", "properties": {"x_y": {"const": 1}}, "$comment": "c"})
        ))),
        Just(Some(("parametersJsonSchema", json!({})))),
    ];
    let function = (name(), prop::option::of(word()), parameters, any::<bool>()).prop_map(
        |(name, description, parameters, behaves)| {
            let mut out = json!({"name": name});
            if let Some(text) = description {
                out["description"] = json!(text);
            }
            if let Some((name, schema)) = parameters {
                out[name] = schema;
            }
            if behaves {
                out["behavior"] = json!("NON_BLOCKING");
            }
            out
        },
    );
    let hosted = prop::sample::select(vec![
        json!({"googleSearch": {}}),
        json!({"googleSearch": {"timeRangeFilter": {"a": 1}}}),
        json!({"googleSearchRetrieval": {}}),
        json!({"codeExecution": {}}),
        json!({"urlContext": {}}),
    ]);
    (
        prop::collection::vec(function, 0..3),
        prop::collection::vec(hosted, 0..2),
    )
        .prop_map(|(functions, mut hosted)| {
            if !functions.is_empty() {
                hosted.insert(0, json!({"functionDeclarations": functions}));
            }
            Value::Array(hosted)
        })
}

fn config() -> impl Strategy<Value = Value> {
    let output = prop_oneof![
        Just(json!({})),
        Just(json!({"responseMimeType": "text/plain"})),
        Just(json!({"responseMimeType": "application/json"})),
        Just(
            json!({"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a"]}})
        ),
        Just(
            json!({"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT", "nullable": true}})
        ),
        Just(
            json!({"responseMimeType": "application/json", "responseJsonSchema": {"type": "object", "if": {}}})
        ),
    ];
    let thinking = prop::sample::select(vec![
        json!({}),
        json!({"thinkingBudget": 0}),
        json!({"thinkingBudget": -1, "includeThoughts": true}),
        json!({"thinkingBudget": 777}),
        json!({"thinkingLevel": "MINIMAL"}),
        json!({"thinkingLevel": "LOW", "includeThoughts": false}),
        json!({"thinkingLevel": "XHIGH"}),
    ]);
    let numbers = (
        optional(
            "temperature",
            (0..=8u32).prop_map(|n| {
                if n % 4 == 0 {
                    json!(n / 4)
                } else {
                    json!(f64::from(n) / 4.0)
                }
            }),
        ),
        optional("topP", Just(json!(0.5))),
        optional("topK", (1..50u32).prop_map(Value::from)),
        optional("maxOutputTokens", (1..100_000u32).prop_map(Value::from)),
        optional("candidateCount", (1..=8u32).prop_map(Value::from)),
        optional("seed", any::<i64>().prop_map(Value::from)),
        optional("presencePenalty", Just(json!(-1.5))),
        optional("mediaResolution", Just(json!("MEDIA_RESOLUTION_LOW"))),
        optional(
            "stopSequences",
            prop::collection::vec(word(), 1..=5).prop_map(Value::from),
        ),
    );
    (
        numbers,
        output,
        optional("thinkingConfig", thinking),
        any::<bool>(),
    )
        .prop_map(|(n, output, thinking, logprobs)| {
            let mut config = object(vec![n.0, n.1, n.2, n.3, n.4, n.5, n.6, n.7, n.8, thinking]);
            if let (Value::Object(config), Value::Object(output)) = (&mut config, output) {
                config.extend(output);
                if logprobs {
                    config.insert("responseLogprobs".to_owned(), json!(true));
                    config.insert("logprobs".to_owned(), json!(2));
                }
            }
            config
        })
}

fn choice() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({"functionCallingConfig": {"mode": "AUTO"}}),
        json!({"functionCallingConfig": {"mode": "NONE"}}),
        json!({"functionCallingConfig": {"mode": "ANY"}}),
        json!({"functionCallingConfig": {"mode": "VALIDATED"}}),
        json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]}}),
        json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}}),
        json!({"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["a"]}, "retrievalConfig": {"languageCode": "de"}}),
    ])
}

fn request() -> impl Strategy<Value = Value> {
    let contents =
        prop::collection::vec(exchange(), 1..4).prop_map(|list| Value::Array(list.concat()));
    let system = prop::collection::vec(word().prop_map(|text| json!({"text": text})), 1..3)
        .prop_map(|parts| json!({"parts": parts}));
    (
        contents,
        optional("systemInstruction", system),
        optional(
            "tools",
            tools().prop_filter("some", |tools| tools != &json!([])),
        ),
        optional("toolConfig", choice()),
        optional(
            "generationConfig",
            config().prop_filter("some", |config| config != &json!({})),
        ),
        optional(
            "safetySettings",
            Just(json!([{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}])),
        ),
        optional("cachedContent", Just(json!("cachedContents/x"))),
        optional("serviceTier", Just(json!("flex"))),
        optional("labels", Just(json!({"a_b": "c"}))),
    )
        .prop_map(|(contents, a, b, c, d, e, f, g, h)| {
            object(vec![
                Some(("contents".to_owned(), contents)),
                a,
                b,
                c,
                d,
                e,
                f,
                g,
                h,
            ])
        })
}

proptest! {
    #[test]
    fn a_request_comes_out_as_it_went_in(request in request()) {
        let body = request.to_string();
        let hub = FORMAT.read_request(body.as_bytes()).unwrap();
        let written = FORMAT.write_request(&hub, &target(&ModelTraits::default())).unwrap();
        let out: Value = serde_json::from_slice(&written.body).unwrap();
        prop_assert_eq!(&out, &request);
        prop_assert!(written.dropped.is_empty() && written.renamed_tools.is_empty());
        let body = Bytes::from(body);
        let glance = FORMAT.glance(&body).unwrap();
        let sent = FORMAT.forward_request(&body, &glance, &target(&ModelTraits::default())).unwrap();
        prop_assert_eq!(sent.as_ptr(), body.as_ptr());
    }

    #[test]
    fn no_request_panics_a_model_that_refuses_much(request in request()) {
        let hub = FORMAT.read_request(request.to_string().as_bytes()).unwrap();
        let traits = ModelTraits {
            max_output: Some(10),
            sampling: tollgate_chat::hub::Sampling::None,
            thinking: tollgate_chat::hub::Thinking::Budget { min: 512, max: 1000, can_disable: false },
            json_schema: false,
            tools_with_json: false,
            forced_tools: false,
            needs_signatures: true,
            ..ModelTraits::default()
        };
        let mut hub = hub;
        for client in ["generate-content", "chat-completions"] {
            hub.client = client;
            // Vendors' uploads are another client's fault there.
            let _ = FORMAT.write_request(&hub, &target(&traits));
        }
    }
}

// Streams.

fn event() -> impl Strategy<Value = Event> {
    let choice = || 0..3u32;
    let call = || 0..3u32;
    let signature = || {
        prop::option::of(
            prop::sample::select(vec!["gemini", "anthropic"])
                .prop_map(|vendor| Opaque::new(vendor, "c2ln")),
        )
    };
    let finish = prop::sample::select(vec![
        Finish::End,
        Finish::StopSequence,
        Finish::Length,
        Finish::ToolCall,
        Finish::Refusal,
        Finish::PromptBlocked,
        Finish::Pause,
        Finish::BadToolCall,
        Finish::Other,
        Finish::ContextFull,
    ]);
    let citation = Citation {
        url: "https://a.example".to_owned(),
        title: "A".to_owned(),
        start: Some(1),
        end: Some(4),
        cited_text: None,
        own: Own::NONE,
    };
    prop_oneof![
        2 => word().prop_map(|id| Event::Start { id, model: String::new(), created: None, usage: None }),
        8 => (choice(), "[a-z猫\"\n]{0,4}").prop_map(|(choice, text)| Event::Text { choice, text }),
        2 => (choice(), signature()).prop_map(|(choice, signature)| Event::TextEnd { choice, signature }),
        3 => (choice(), word()).prop_map(|(choice, text)| Event::Reasoning { choice, text, summary: true }),
        2 => (choice(), signature()).prop_map(|(choice, signature)| Event::ReasoningEnd { choice, signature, id: None }),
        1 => choice().prop_map(|choice| Event::Redacted { choice, data: Opaque::new("anthropic", "x") }),
        1 => (choice(), word()).prop_map(|(choice, text)| Event::Refusal { choice, text }),
        4 => (choice(), call(), word()).prop_map(|(choice, call, name)| Event::ToolStart { choice, call, id: name.clone(), name, custom: false }),
        4 => (choice(), call(), "[{}\":a1]{0,4}").prop_map(|(choice, call, json)| Event::ToolArguments { choice, call, json }),
        4 => (choice(), call(), signature()).prop_map(|(choice, call, signature)| Event::ToolEnd { choice, call, signature }),
        1 => choice().prop_map(move |choice| Event::Citation { choice, citation: citation.clone() }),
        1 => choice().prop_map(|choice| Event::Part { choice, part: Part::text("part") }),
        1 => choice().prop_map(|choice| Event::Logprobs { choice, value: json!({"content": [{"token": "a", "logprob": -1.0}]}) }),
        1 => (1..100u64).prop_map(|output| Event::Usage(Usage { output, ..Usage::default() })),
        1 => (choice(), finish).prop_map(|(choice, finish)| Event::Finish { choice, finish, stop_sequence: None }),
    ]
}

/// The objects of a stream, read as strictly as the pickiest SDK does: a line is `data: ` and JSON, or it is empty.
fn objects_of(stream: &[u8], json_array: bool) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    if json_array {
        return serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    }
    assert!(text.ends_with("\n\n"), "{text:?}");
    let lines = text.split('\n').filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line.strip_prefix("data: ").expect(line)).unwrap())
        .collect()
}

/// What every stream keeps to: each object has a candidate whose every part says something, finish and usage stand on the last alone.
fn check_order(objects: &[Value], failed: bool) {
    let (last, before) = objects.split_last().unwrap();
    for object in before {
        assert!(
            object.get("error").is_none() && object.get("usageMetadata").is_none(),
            "{object}"
        );
        let candidate = &object["candidates"][0];
        assert!(candidate.get("finishReason").is_none(), "{object}");
        assert_parts(candidate);
        assert_eq!(
            (&object["modelVersion"], &object["responseId"]),
            (&json!("client-model"), &objects[0]["responseId"])
        );
    }
    if failed {
        let error = &last["error"];
        assert!(
            error["code"].is_u64() && error["message"].is_string() && error["status"].is_string(),
            "{last}"
        );
        return;
    }
    let usage = &last["usageMetadata"];
    let sum = [
        "promptTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
    ]
    .iter()
    .map(|name| usage[name].as_u64().unwrap());
    assert_eq!(sum.sum::<u64>(), usage["totalTokenCount"].as_u64().unwrap());
    match last.get("candidates") {
        None => assert!(
            before.is_empty() && last["promptFeedback"]["blockReason"].is_string(),
            "{last}"
        ),
        Some(candidates) => {
            for candidate in candidates.as_array().unwrap() {
                assert!(candidate["finishReason"].is_string(), "{last}");
                assert_parts(candidate);
            }
        }
    }
}

fn assert_parts(candidate: &Value) {
    assert_eq!(candidate["content"]["role"], "model");
    let parts = candidate["content"]["parts"].as_array().unwrap();
    assert!(!parts.is_empty());
    assert!(
        parts
            .iter()
            .all(|part| part.as_object().is_some_and(|part| !part.is_empty())),
        "{candidate}"
    );
    for call in parts.iter().filter_map(|part| part.get("functionCall")) {
        assert!(
            call["args"].is_object() && call["name"].is_string(),
            "{candidate}"
        );
    }
}

/// Visible text by choice: of objects, and of events up to each choice's finish.
fn text_of_objects(objects: &[Value]) -> BTreeMap<u64, String> {
    let mut texts: BTreeMap<u64, String> = BTreeMap::new();
    for candidate in objects
        .iter()
        .flat_map(|object| object["candidates"].as_array().into_iter().flatten())
    {
        for part in candidate["content"]["parts"].as_array().unwrap() {
            if part.get("thought").is_none() {
                let text = part["text"].as_str().unwrap_or_default();
                texts
                    .entry(candidate["index"].as_u64().unwrap())
                    .or_default()
                    .push_str(text);
            }
        }
    }
    texts.retain(|_, text| !text.is_empty());
    texts
}

fn text_of_events(events: &[Event]) -> BTreeMap<u64, String> {
    let mut texts: BTreeMap<u64, String> = BTreeMap::new();
    let mut finished = Vec::new();
    for event in events {
        match event {
            Event::Text { choice, text } | Event::Refusal { choice, text }
                if !finished.contains(choice) =>
            {
                texts.entry(u64::from(*choice)).or_default().push_str(text);
            }
            Event::Part { choice, .. } if !finished.contains(choice) => {
                texts
                    .entry(u64::from(*choice))
                    .or_default()
                    .push_str("part");
            }
            Event::Finish { choice, .. } => finished.push(*choice),
            _ => {}
        }
    }
    texts.retain(|_, text| !text.is_empty());
    texts
}

fn error() -> WireError {
    WireError {
        status: 503,
        message: "busy".to_owned(),
        param: None,
        code: None,
        bare: true,
    }
}

proptest! {
    #[test]
    fn no_events_make_an_illegal_stream(
        events in prop::collection::vec(event(), 0..40), json_array: bool, fails: bool, quiet in prop::collection::vec(any::<bool>(), 40)
    ) {
        let mut writer = FORMAT.stream_writer(&rendering(json_array));
        let mut out = Vec::new();
        for (event, quiet) in events.iter().zip(quiet) {
            if quiet {
                writer.keep_alive(&mut out);
            }
            writer.write(event, &mut out);
        }
        if fails { writer.error(&error(), &mut out) } else { writer.end(&mut out) }
        let length = out.len();
        writer.end(&mut out);
        writer.error(&error(), &mut out);
        writer.keep_alive(&mut out);
        events.iter().for_each(|event| writer.write(event, &mut out));
        prop_assert_eq!(out.len(), length, "nothing comes after the end");
        let objects = objects_of(&out, json_array);
        check_order(&objects, fails);
        prop_assert_eq!(text_of_objects(&objects), text_of_events(&events));
    }

    #[test]
    fn a_stream_passes_the_same_in_any_pieces(
        pieces in prop::collection::vec((word(), any::<bool>(), prop::sample::select(vec!["\n\n", "\r\n\r\n", "\r\r", "\n\n\n"])), 1..8),
        cuts in prop::collection::vec(1..60usize, 0..40), json_array: bool, model in prop::sample::select(vec!["client-model", "other"]),
    ) {
        let mut stream = String::new();
        let count = pieces.len();
        for (at, (text, stops, end)) in pieces.iter().enumerate() {
            let mut piece = json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}], "modelVersion": model});
            if *stops || at + 1 == count {
                piece["candidates"][0]["finishReason"] = json!("STOP");
                piece["usageMetadata"] = json!({"promptTokenCount": at, "totalTokenCount": at});
            }
            stream.push_str(&format!("data: {piece}{end}"));
        }
        let whole = pass(&stream, &[], json_array);
        let cut = pass(&stream, &cuts, json_array);
        prop_assert_eq!(&whole.0, &cut.0);
        prop_assert_eq!(whole.1, Ok(()));
        let text = String::from_utf8(whole.0.clone()).unwrap().replace('\r', "\n");
        let objects = objects_of(text.as_bytes(), json_array);
        let expected: String = pieces.iter().map(|piece| piece.0.as_str()).collect();
        prop_assert_eq!(text_of_objects(&objects).remove(&0).unwrap_or_default(), expected);
        prop_assert!(objects.iter().all(|object| object["modelVersion"] == "client-model"));
    }
}

/// What a stream gives in pieces of these lengths, and how it ends.
fn pass(stream: &str, cuts: &[usize], json_array: bool) -> (Vec<u8>, Result<(), Garbled>) {
    let mut forward = FORMAT.forward_stream(&rendering(json_array));
    let (mut out, mut rest) = (Vec::new(), Bytes::copy_from_slice(stream.as_bytes()));
    let mut cuts = cuts.iter();
    while !rest.is_empty() {
        let length = cuts.next().map_or(rest.len(), |cut| (*cut).min(rest.len()));
        match forward.push(rest.split_to(length)) {
            Ok(forwarded) => out.extend_from_slice(&forwarded.now),
            Err(garbled) => return (out, Err(garbled)),
        }
    }
    let outcome = forward.finish();
    out.extend_from_slice(&forward.end());
    assert!(forward.end().is_empty());
    (out, outcome)
}

#[test]
fn a_call_that_was_cut_is_none() {
    let events = |json: &str, finish: Finish| {
        let call = |event: fn(u32) -> Event| event(0);
        vec![
            call(|call| Event::ToolStart {
                choice: 0,
                call,
                id: "a".to_owned(),
                name: "f".to_owned(),
                custom: false,
            }),
            Event::ToolArguments {
                choice: 0,
                call: 0,
                json: json.to_owned(),
            },
            call(|call| Event::ToolEnd {
                choice: 0,
                call,
                signature: None,
            }),
            Event::Finish {
                choice: 0,
                finish,
                stop_sequence: None,
            },
        ]
    };
    for (json, finish, calls) in [
        ("{\"a\":", Finish::Length, 0),
        ("{\"a\":1}", Finish::Length, 1),
        ("{\"a\":", Finish::ToolCall, 1),
        ("", Finish::ToolCall, 1),
    ] {
        let events = events(json, finish);
        let mut writer = FORMAT.stream_writer(&rendering(false));
        let mut out = Vec::new();
        events
            .iter()
            .for_each(|event| writer.write(event, &mut out));
        writer.end(&mut out);
        let mut fold = Fold::default();
        events.iter().for_each(|event| fold.push(event));
        for text in [out, FORMAT.write_reply(&fold.reply(), &rendering(false))] {
            let text = String::from_utf8(text).unwrap();
            assert_eq!(
                text.matches("functionCall").count(),
                calls,
                "{json} {finish:?}"
            );
        }
    }
}

#[test]
fn whole_events_pass_without_a_copy_and_the_end_waits() {
    let piece = |text: &str, rest: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}}{rest}}}],\"modelVersion\":\"client-model\"}}\r\n\r\n"
        )
    };
    let mut forward = FORMAT.forward_stream(&rendering(false));
    let chunk = Bytes::from(piece("a", "") + &piece("b", ""));
    let now = forward.push(chunk.clone()).unwrap().now;
    assert_eq!((now.as_ptr(), now.len()), (chunk.as_ptr(), chunk.len()));
    let last = Bytes::from(piece("c", ",\"finishReason\":\"STOP\""));
    assert_eq!(forward.push(last.clone()).unwrap().now, Bytes::new());
    forward.finish().unwrap();
    assert_eq!(
        forward.end(),
        std::str::from_utf8(&last).unwrap().replace('\r', "")
    );
    assert_eq!(forward.text_bytes(), 3);
}

#[test]
fn a_list_is_a_list_also_when_it_breaks() {
    let piece = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n";
    for stream in ["", piece] {
        let mut forward = FORMAT.forward_stream(&rendering(true));
        let mut out = forward.push(Bytes::from(stream)).unwrap().now.to_vec();
        forward.keep_alive(&mut out);
        assert_eq!(forward.finish(), Err(Garbled::BrokeOff));
        forward.error(&error(), &mut out);
        let list: Vec<Value> = serde_json::from_slice(&out).unwrap();
        assert_eq!(list.last().unwrap()["error"]["status"], "UNAVAILABLE");
    }
}

// Anything at all.

/// A golden case with some bytes changed, cut out or doubled.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/generate-content");
    let mut cases = Vec::new();
    for kind in ["requests", "replies", "streams"] {
        for entry in std::fs::read_dir(format!("{root}/{kind}")).unwrap() {
            cases.push(std::fs::read(entry.unwrap().path()).unwrap());
        }
    }
    let change = (
        any::<prop::sample::Index>(),
        any::<u8>(),
        0..4u8,
        0..12usize,
    );
    (
        prop::sample::select(cases),
        prop::collection::vec(change, 0..6),
    )
        .prop_map(|(mut bytes, changes)| {
            for (at, byte, kind, length) in changes {
                if bytes.is_empty() {
                    break;
                }
                let at = at.index(bytes.len());
                let end = (at + length).min(bytes.len());
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes.truncate(at),
                    2 => drop(bytes.drain(at..end)),
                    _ => {
                        let again = bytes[at..end].to_vec();
                        bytes.splice(at..at, again);
                    }
                }
            }
            bytes
        })
}

proptest! {
    #[test]
    fn nothing_panics(bytes in mutated(), json_array: bool) {
        let body = Bytes::from(bytes);
        let traits = ModelTraits { needs_signatures: true, json_schema: false, ..ModelTraits::default() };
        if let Ok(glance) = FORMAT.glance(&body) {
            let _ = FORMAT.forward_request(&body, &glance, &target(&traits));
        }
        if let Ok(request) = FORMAT.read_request(&body) {
            let _ = FORMAT.write_request(&request, &target(&traits));
            prop_assert!(FORMAT.glance(&body).is_ok());
        }
        let _ = count_request(&body);
        let _ = FORMAT.forward_reply(&body, "m");
        let _ = FORMAT.read_error(500, &body);
        if let Ok(reply) = FORMAT.read_reply(&body) {
            let written = FORMAT.write_reply(&reply, &rendering(false));
            prop_assert!(FORMAT.read_reply(&written).is_ok());
        }
        let (mut reader, mut events) = (FORMAT.stream_reader(), Vec::new());
        let _ = reader.push(&body, &mut events).and_then(|()| reader.finish(&mut events));
        let mut forward = FORMAT.forward_stream(&rendering(json_array));
        let _ = forward.push(body.clone()).and_then(|_| forward.finish());
        forward.end();
        let _ = path::parse(&String::from_utf8_lossy(&body));
    }
}
