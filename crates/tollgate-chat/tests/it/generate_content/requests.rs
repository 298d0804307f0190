//! Property tests: a request of this format survives reading and writing.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tollgate_chat::Format;
use tollgate_chat::hub::ModelCapabilities;

use super::{FORMAT, target};

pub(super) fn word() -> impl Strategy<Value = String> {
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

/// A function call and its response.
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
                // A text between them, so that contents with tools are never adjacent to others of
                // the same role.
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
    fn a_request_survives_reading_and_writing(request in request()) {
        let body = request.to_string();
        let hub = FORMAT.read_request(body.as_bytes()).unwrap();
        let written = FORMAT.write_request(&hub, &target(&ModelCapabilities::default())).unwrap();
        let out: Value = serde_json::from_slice(&written.body).unwrap();
        prop_assert_eq!(&out, &request);
        prop_assert!(written.dropped.is_empty() && written.renamed_tools.is_empty());
        let body = Bytes::from(body);
        let summary = FORMAT.summarize_request(&body).unwrap();
        let sent = FORMAT.forward_request(&body, &summary, &target(&ModelCapabilities::default())).unwrap();
        // Links that may have to be fetched go through the hub.
        prop_assert!(sent.as_ptr() == body.as_ptr() || !summary.is_native);
    }

    #[test]
    fn no_request_panics_for_a_model_that_supports_little(request in request()) {
        let hub = FORMAT.read_request(request.to_string().as_bytes()).unwrap();
        let capabilities = ModelCapabilities {
            max_output_tokens: Some(10),
            sampling: tollgate_chat::hub::SamplingSupport::None,
            thinking: tollgate_chat::hub::ReasoningControl::Budget { min: 512, max: 1000, can_disable: false },
            supports_json_schema: false,
            supports_tools_with_json: false,
            supports_forced_tools: false,
            requires_signatures: true,
            ..ModelCapabilities::default()
        };
        let mut hub = hub;
        for client in ["generate-content", "chat-completions"] {
            hub.client_format = client;
            // Uploads of this vendor are errors for clients of other formats.
            let _ = FORMAT.write_request(&hub, &target(&capabilities));
        }
    }
}
