//! What generate-content refuses.

use serde_json::{Value, json};

use crate::client::{GENERATE, GIF, PNG, Wire};

const THIRD: Wire = Wire {
    path: "/v1beta/models/gemini-3-flash:generateContent",
    ..GENERATE
};

#[tokio::test]
async fn heads() {
    const KEY: (&str, &str) = ("x-goog-api-key", "k");
    const JSON: (&str, &str) = ("content-type", "application/json");
    let path = GENERATE.path;
    GENERATE
        .heads(&[
            ("POST", path, &[JSON], 403, "auth"),
            (
                "POST",
                path,
                &[JSON, ("authorization", "Bearer k")],
                401,
                "auth",
            ),
            ("POST", path, &[JSON, ("x-goog-api-key", "no")], 400, "key"),
            (
                "POST",
                path,
                &[KEY, ("content-type", "text/plain")],
                400,
                "content-type",
            ),
            ("GET", path, &[KEY], 404, "model"),
            (
                "POST",
                "/v2/models/x:generateContent",
                &[JSON, KEY],
                404,
                "path",
            ),
            ("POST", "/v1beta/models/x:chat", &[JSON, KEY], 404, "path"),
            ("POST", "/v1beta/models/x", &[JSON, KEY], 404, "path"),
            (
                "POST",
                "/v1beta/models/missing-1:generateContent",
                &[JSON, KEY],
                404,
                "model",
            ),
            ("GET", "/v1beta/models/none", &[KEY], 404, "model"),
        ])
        .await;
    for path in [
        "/v1/models/a/b:generateContent?key=k",
        "/v1beta/models/gemini-2.5-pro%3AgenerateContent?key=k",
    ] {
        let wire = Wire {
            path,
            headers: &[JSON],
            ..GENERATE
        };
        wire.table(&(wire.body)("hello"), &[("", json!({}))]).await;
    }
}

#[tokio::test]
async fn parameters() {
    let config = |config: Value| json!({"generationConfig": config});
    let many = |n: usize| -> Value { (0..n).map(|n| json!(n.to_string())).collect() };
    let thinking = |t: Value| config(json!({"thinkingConfig": t}));
    let base = (GENERATE.body)("hello");
    let snake = json!({"system_instruction": {"parts": [{"text": "x"}]},
        "generation_config": {"max_output_tokens": 9.0, "topK": 40.0}});
    GENERATE
        .table(
            &base,
            &[
                ("", config(json!({}))),
                ("", snake),
                ("unknown-field", json!({"messages": []})),
                ("unknown-field", config(json!({"max_tokens": 9}))),
                ("unknown-field", thinking(json!({"budget": 9}))),
                ("missing-field", json!({"contents": null})),
                ("missing-field", json!({"contents": []})),
                ("type", json!({"contents": "hello"})),
                ("range", config(json!({"temperature": 2.5}))),
                ("range", config(json!({"candidateCount": 9}))),
                ("range", config(json!({"frequencyPenalty": -3}))),
                ("too-many", config(json!({"stopSequences": many(6)}))),
                ("", config(json!({"stopSequences": many(5)}))),
                ("value", config(json!({"responseMimeType": "text/html"}))),
                (
                    "value",
                    json!({"safetySettings": [{"category": "x", "threshold": "OFF"}]}),
                ),
                (
                    "budget-and-level",
                    thinking(json!({"thinkingBudget": 1, "thinkingLevel": "LOW"})),
                ),
                ("thinking-level", thinking(json!({"thinkingLevel": "LOW"}))),
                (
                    "thinking-budget",
                    thinking(json!({"thinkingBudget": 24_577})),
                ),
                ("", thinking(json!({"thinkingBudget": 0}))),
                (
                    "",
                    thinking(json!({"thinkingBudget": -1, "includeThoughts": true})),
                ),
                ("empty-parts", json!({"systemInstruction": {"parts": []}})),
            ],
        )
        .await;
    let pro = GENERATE.at("/v1beta/models/gemini-2.5-pro:generateContent");
    let zero = thinking(json!({"thinkingBudget": 0}));
    pro.table(&base, &[("thinking-budget", zero.clone())]).await;
    let old = GENERATE.at("/v1beta/models/gemini-2.0-flash:generateContent");
    old.table(&base, &[("thinking-model", zero)]).await;
    THIRD
        .table(&base, &[("", thinking(json!({"thinkingLevel": "LOW"})))])
        .await;
}

fn call(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {}}})
}

fn response(name: &str) -> Value {
    json!({"functionResponse": {"name": name, "response": {"output": "done"}}})
}

fn signed(mut part: Value, signature: &str) -> Value {
    part["thoughtSignature"] = json!(signature);
    part
}

/// User says hello; the model's parts; the user's parts.
fn turns(model: &[Value], user: &[Value]) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]},
        {"role": "model", "parts": model}, {"role": "user", "parts": user}]})
}

#[tokio::test]
async fn calls_and_responses() {
    let base = (GENERATE.body)("hello");
    let text = json!({"text": "and"});
    let (f, g) = (call("f"), call("g"));
    let apart = json!({"contents": [{"role": "user", "parts": [text]},
        {"role": "model", "parts": [f, g]}, {"role": "user", "parts": [response("f")]},
        {"role": "user", "parts": [response("g")]}]});
    let alone = json!({"contents": [{"role": "model", "parts": [f]},
        {"role": "user", "parts": [response("f")]}]});
    let text_response = json!({"functionResponse": {"name": "f", "response": "done"}});
    let list_response = json!({"functionResponse": {"name": "f", "response": ["done"]}});
    GENERATE
        .table(
            &base,
            &[
                (
                    "",
                    turns(&[f.clone(), g.clone()], &[response("f"), response("g")]),
                ),
                (
                    "",
                    turns(&[text.clone(), f.clone()], &[response("f"), text.clone()]),
                ),
                (
                    "missing-result",
                    turns(&[f.clone(), g.clone()], &[response("f")]),
                ),
                (
                    "missing-result",
                    turns(std::slice::from_ref(&f), std::slice::from_ref(&text)),
                ),
                ("missing-result", apart),
                (
                    "result-name",
                    turns(std::slice::from_ref(&f), &[response("g")]),
                ),
                (
                    "orphan-result",
                    turns(std::slice::from_ref(&text), &[response("f")]),
                ),
                ("call-turn", alone),
                (
                    "call-role",
                    turns(std::slice::from_ref(&text), std::slice::from_ref(&f)),
                ),
                ("empty-name", turns(&[call("")], &[response("")])),
                ("type", turns(std::slice::from_ref(&f), &[text_response])),
                ("type", turns(std::slice::from_ref(&f), &[list_response])),
                (
                    "role",
                    json!({"contents": [{"role": "assistant", "parts": [text]}]}),
                ),
                (
                    "role",
                    json!({"contents": [{"role": "system", "parts": [text]}]}),
                ),
                (
                    "empty-parts",
                    json!({"contents": [{"role": "user", "parts": []}]}),
                ),
                (
                    "empty-part",
                    json!({"contents": [{"role": "user", "parts": [{}]}]}),
                ),
                (
                    "two-in-a-part",
                    json!({"contents": [{"parts": [{"text": "x",
                    "inlineData": {"mimeType": "image/png", "data": PNG}}]}]}),
                ),
                (
                    "signature",
                    turns(&[signed(f.clone(), "AAAA")], &[response("f")]),
                ),
                ("base64", turns(&[signed(f.clone(), "?")], &[response("f")])),
            ],
        )
        .await;
    let bypass = "skip_thought_signature_validator";
    let minted = "c2lnX2Zha2VfMQ==";
    let earlier = json!({"contents": [{"role": "user", "parts": [text]},
        {"role": "model", "parts": [f]}, {"role": "user", "parts": [response("f")]},
        {"role": "model", "parts": [text]}, {"role": "user", "parts": [text]}]});
    THIRD
        .table(
            &base,
            &[
                (
                    "missing-signature",
                    turns(std::slice::from_ref(&f), &[response("f")]),
                ),
                ("", turns(&[signed(f.clone(), bypass)], &[response("f")])),
                ("", turns(&[signed(f.clone(), minted)], &[response("f")])),
                (
                    "",
                    turns(
                        &[signed(f.clone(), minted), g.clone()],
                        &[response("f"), response("g")],
                    ),
                ),
                (
                    "missing-signature",
                    turns(
                        &[g.clone(), signed(f.clone(), minted)],
                        &[response("g"), response("f")],
                    ),
                ),
                ("", earlier),
            ],
        )
        .await;
}

#[tokio::test]
async fn media() {
    let base = (GENERATE.body)("hello");
    let part = |part: Value| json!({"contents": [{"role": "user", "parts": [part]}]});
    let inline =
        |mime: &str, data: &str| part(json!({"inlineData": {"mimeType": mime, "data": data}}));
    let file = |uri: &str| part(json!({"fileData": {"fileUri": uri, "mimeType": "image/png"}}));
    let own = "https://generativelanguage.googleapis.com/v1beta/files/x";
    let web = file("https://example.org/a.png");
    GENERATE
        .table(
            &base,
            &[
                ("", inline("image/png", PNG)),
                (
                    "",
                    part(json!({"inline_data": {"mime_type": "image/png", "data": PNG}})),
                ),
                ("", inline("audio/wav", "AAAA")),
                ("media-type", inline("image/gif", GIF)),
                ("unreadable", inline("image/png", GIF)),
                ("unreadable", inline("image/png", "AAAA")),
                ("base64", inline("image/png", "data:image/png;base64,AAAA")),
                ("media-type", inline("", PNG)),
                ("missing-field", part(json!({"inlineData": {"data": PNG}}))),
                ("", file(own)),
                ("", file("https://youtu.be/x")),
                ("file-uri", web.clone()),
            ],
        )
        .await;
    THIRD
        .table(&base, &[("", web), ("file-uri", file("file:///etc"))])
        .await;
}

#[tokio::test]
async fn tools() {
    let base = (GENERATE.body)("hello");
    let declared = |declaration: Value| json!({"tools": [{"functionDeclarations": [declaration]}]});
    let named = |name: &str| declared(json!({"name": name}));
    let config = |calling: Value| {
        json!({"tools": [{"functionDeclarations": [{"name": "f"}]}],
            "toolConfig": {"functionCallingConfig": calling}})
    };
    let mixed = json!({"tools": [{"googleSearch": {}},
        {"functionDeclarations": [{"name": "f"}]}]});
    GENERATE
        .table(
            &base,
            &[
                ("", named("f.g:h-1")),
                ("tool-name", named("1f")),
                ("tool-name", named("a b")),
                ("tool-name", named(&"f".repeat(65))),
                (
                    "unknown-field",
                    declared(json!({"name": "f", "strict": true})),
                ),
                (
                    "unknown-field",
                    json!({"tools": [{"type": "function", "function": {}}]}),
                ),
                (
                    "duplicate-tool",
                    json!({"tools": [{"functionDeclarations": [{"name": "f"},
                    {"name": "f"}]}]}),
                ),
                (
                    "two-schemas",
                    declared(json!({"name": "f",
                    "parameters": {"type": "OBJECT"}, "parametersJsonSchema": {}})),
                ),
                ("mixed-tools", mixed),
                ("", json!({"tools": [{"googleSearch": {}}]})),
                (
                    "",
                    config(json!({"mode": "ANY", "allowedFunctionNames": ["f"]})),
                ),
                (
                    "allowed-names",
                    config(json!({"mode": "AUTO", "allowedFunctionNames": ["f"]})),
                ),
                (
                    "allowed-names",
                    config(json!({"mode": "ANY", "allowedFunctionNames": ["g"]})),
                ),
                ("value", config(json!({"mode": "any"}))),
                (
                    "choice-without-tools",
                    json!({"toolConfig":
                    {"functionCallingConfig": {"mode": "ANY"}}}),
                ),
            ],
        )
        .await;
    THIRD.table(&base, &[("", named(&"f".repeat(128)))]).await;
}

#[tokio::test]
async fn schemas() {
    let base = (GENERATE.body)("hello");
    let tool = |name: &str, schema: Value| json!({"tools": [{"functionDeclarations": [{"name": "f", name: schema}]}]});
    let own = |a: Value| {
        tool(
            "parameters",
            json!({"type": "OBJECT", "properties": {"title": a}}),
        )
    };
    let json_schema = |a: Value| {
        tool(
            "parametersJsonSchema",
            json!({"type": "object", "properties": {"pattern": a}}),
        )
    };
    let closed = json!({"type": "string", "additionalProperties": false});
    let answer = |config: Value| json!({"generationConfig": config});
    let string = json!({"type": "STRING"});
    let with_tools = json!({"tools": [{"functionDeclarations": [{"name": "f"}]}],
        "generationConfig": {"responseMimeType": "application/json"}});
    GENERATE
        .table(
            &base,
            &[
                (
                    "",
                    own(json!({"type": "string", "format": "date-time", "nullable": true})),
                ),
                (
                    "schema-unknown",
                    own(json!({"type": "string", "const": "x"})),
                ),
                (
                    "schema-unknown",
                    own(json!({"type": "integer", "exclusiveMinimum": 0})),
                ),
                ("schema-unknown", own(json!({"$ref": "#/$defs/x"}))),
                ("schema-unknown", own(closed.clone())),
                ("schema-list", own(json!({"type": ["string", "null"]}))),
                ("schema-type", own(json!({"type": "text"}))),
                (
                    "schema-enum",
                    own(json!({"type": "INTEGER", "enum": [1, 2]})),
                ),
                ("schema", own(json!({"type": "STRING", "format": "uri"}))),
                ("schema", own(json!({"type": "OBJECT", "properties": {}}))),
                ("schema", own(json!({"type": "ARRAY"}))),
                (
                    "schema",
                    tool("parameters", json!({"type": "OBJECT", "required": ["a"]})),
                ),
                ("", json_schema(json!({"type": ["string", "null"]}))),
                (
                    "schema-unknown",
                    json_schema(json!({"type": "string", "pattern": "x"})),
                ),
                ("schema-unknown", json_schema(json!({"allOf": []}))),
                ("schema-unknown", json_schema(json!({"const": 1}))),
                (
                    "schema",
                    json_schema(json!({"$ref": "#", "type": "object"})),
                ),
                ("schema", json_schema(json!({"enum": [true]}))),
                (
                    "schema-mime-type",
                    answer(json!({"responseSchema": string})),
                ),
                (
                    "",
                    answer(json!({"responseSchema": string,
                    "responseMimeType": "application/json"})),
                ),
                (
                    "two-schemas",
                    answer(json!({"responseSchema": string,
                    "responseJsonSchema": {}, "responseMimeType": "application/json"})),
                ),
                (
                    "schema-unknown",
                    answer(json!({"responseJsonSchema": {"$schema": "x"},
                    "responseMimeType": "application/json"})),
                ),
                ("functions-and-json", with_tools.clone()),
            ],
        )
        .await;
    THIRD
        .table(&base, &[("", own(closed)), ("", with_tools)])
        .await;
}

#[tokio::test]
async fn errors_are_in_the_form_of_gemini() {
    let fake = GENERATE.start().await;
    let mut body = (GENERATE.body)("hello");
    body["generationConfig"] = json!({"maxTokens": 9});
    let error = &GENERATE.post(&fake, &body).await.json()["error"];
    assert_eq!(error["code"], 400);
    assert_eq!(error["status"], "INVALID_ARGUMENT");
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.contains("Unknown name \"maxTokens\" at 'generation_config'"),
        "{message}"
    );
    let field = &error["details"][0]["fieldViolations"][0]["field"];
    assert_eq!(field, "generation_config");
}
