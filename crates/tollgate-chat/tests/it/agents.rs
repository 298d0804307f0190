//! What coding agents and SDKs send and need: namespaces, hosted search, thinking without a cap, usage that nobody asked for.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_chat::hub::{
    ModelCapabilities, ReasoningControl, Request, SearchWithFunctions, ToolChoice,
};
use tollgate_chat::{Format, InvalidRequest, RenderOptions, Target, by_name};

fn format(name: &str) -> &'static dyn Format {
    by_name(name).unwrap()
}

fn read(name: &str, body: &Value) -> Request {
    let read = format(name).read_request(body.to_string().as_bytes());
    read.unwrap_or_else(|bad| panic!("{bad}: {body}"))
}

fn target(capabilities: &ModelCapabilities) -> Target<'_> {
    Target {
        model: "up",
        stream: false,
        capabilities,
        default_max_tokens: 8192,
    }
}

fn write(
    name: &str,
    request: &Request,
    capabilities: &ModelCapabilities,
) -> Result<Value, InvalidRequest> {
    let written = format(name).write_request(request, &target(capabilities))?;
    Ok(serde_json::from_slice(&written.body).unwrap())
}

fn rendering(request: Option<&Request>) -> RenderOptions<'_> {
    RenderOptions {
        model: "mine",
        created: 7,
        seed: "seed",
        include_usage: false,
        estimated_prompt_tokens: 11,
        request,
        json_array: false,
    }
}

/// What Codex sends: a namespace, a function of its own, a call of the namespace in the history.
fn with_namespace() -> Value {
    let function = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}});
    json!({
        "model": "m",
        "input": [
            {"role": "user", "content": "go"},
            {"type": "function_call", "call_id": "call_1", "name": "read", "namespace": "files", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "text"},
        ],
        "tools": [
            function("shell"),
            {"type": "namespace", "name": "files", "description": "Files.", "tools": [function("read"), function("list")]},
        ],
    })
}

#[test]
fn namespaces_become_functions_in_formats_without_them() {
    let request = read("responses", &with_namespace());
    let capabilities = ModelCapabilities::default();
    let chat = write("chat-completions", &request, &capabilities).unwrap();
    let tools = chat["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|t| &t["function"]["name"]).collect();
    assert_eq!(names, ["shell", "files__read", "files__list"]);
    let call = &chat["messages"][1]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "files__read");
    let messages = write("messages", &request, &capabilities).unwrap();
    assert_eq!(messages["tools"][2]["name"], "files__list");
    assert_eq!(messages["messages"][1]["content"][0]["name"], "files__read");
    let contents = write("generate-content", &request, &capabilities).unwrap();
    let declarations = &contents["tools"][0]["functionDeclarations"];
    assert_eq!(declarations[1]["name"], "files__read");
    // In their own format they stay as they are.
    let own = write("responses", &request, &capabilities).unwrap();
    assert_eq!(own["tools"], with_namespace()["tools"]);
    assert_eq!(own["input"], with_namespace()["input"]);

    let mut hosted = with_namespace();
    hosted["tools"][1]["tools"][0] = json!({"type": "file_search", "vector_store_ids": ["v"]});
    let rejected = write("messages", &read("responses", &hosted), &capabilities).unwrap_err();
    assert_eq!(rejected.field, "tools[1].tools[0].type");
}

#[test]
fn calls_of_flattened_functions_name_their_namespace_again() {
    let request = read("responses", &with_namespace());
    let chat = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "up", "choices": [{"index": 0, "finish_reason": "tool_calls",
    "message": {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_2", "type": "function", "function": {"name": "files__list", "arguments": "{}"}},
        {"id": "call_3", "type": "function", "function": {"name": "shell", "arguments": "{}"}},
    ]}}]});
    let reply = format("chat-completions").read_response(chat.to_string().as_bytes());
    let reply = reply.unwrap();
    let responses = format("responses");
    let written = responses.write_response(&reply, &rendering(Some(&request)));
    let written: Value = serde_json::from_slice(&written).unwrap();
    let output = &written["output"];
    assert_eq!(
        (&output[0]["name"], &output[0]["namespace"]),
        (&json!("list"), &json!("files"))
    );
    assert_eq!(
        (&output[1]["name"], output[1].get("namespace")),
        (&json!("shell"), None)
    );

    let mut writer = responses.stream_writer(&rendering(Some(&request)));
    let mut out = Vec::new();
    for event in tollgate_chat::hub::events_from_response(&reply) {
        writer.write(&event, &mut out);
    }
    writer.end(&mut out);
    let text = String::from_utf8(out).unwrap();
    let added = text
        .lines()
        .find(|line| line.contains("output_item.added") && line.contains("call_2"));
    let added: Value =
        serde_json::from_str(added.unwrap().strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(added["item"]["namespace"], "files");
    // Read back, the names of both members make the flat name.
    let again = responses
        .read_response(written.to_string().as_bytes())
        .unwrap();
    assert_eq!(again.choices[0].parts, reply.choices[0].parts);
}

#[test]
fn any_of_all_functions_is_required() {
    let body = |names: Value| {
        json!({
            "contents": [{"role": "user", "parts": [{"text": "go"}]}],
            "tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": names}},
        })
    };
    let all = read("generate-content", &body(json!(["c", "a", "b"])));
    assert_eq!(all.tool_choice, Some(ToolChoice::Required));
    let capabilities = ModelCapabilities::default();
    let chat = write("chat-completions", &all, &capabilities).unwrap();
    assert_eq!(chat["tool_choice"], "required");
    let some = read("generate-content", &body(json!(["c", "a"])));
    assert!(matches!(
        some.tool_choice,
        Some(ToolChoice::AllowedTools { required: true, .. })
    ));
}

#[test]
fn text_parts_have_the_lists_that_the_schema_requires() {
    let chat = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "up",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}]});
    let reply = format("chat-completions").read_response(chat.to_string().as_bytes());
    let written = format("responses").write_response(&reply.unwrap(), &rendering(None));
    let written: Value = serde_json::from_slice(&written).unwrap();
    let part = &written["output"][0]["content"][0];
    assert_eq!(
        (&part["annotations"], &part["logprobs"]),
        (&json!([]), &json!([]))
    );
}

/// What a server like OpenAI's sends: no names of events, costs in the usage, no details.
fn compatible_response() -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "up", "output": [],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, "cost": 0.25, "num_sources_used": 0}})
}

fn check_usage(usage: &Value) {
    assert_eq!(usage["input_tokens_details"]["cached_tokens"], 0, "{usage}");
    assert_eq!(usage["output_tokens_details"]["reasoning_tokens"], 0);
    assert_eq!(
        (usage.get("cost"), &usage["num_sources_used"]),
        (None, &json!(0))
    );
}

#[test]
fn events_of_compatible_servers_are_rewritten_as_complete_responses() {
    let responses = format("responses");
    let body = Bytes::from(compatible_response().to_string());
    let forwarded = responses.forward_response(&body, "mine").unwrap();
    let forwarded: Value = serde_json::from_slice(&forwarded.body).unwrap();
    assert_eq!(forwarded["model"], "mine");
    check_usage(&forwarded["usage"]);

    let mut stream = String::new();
    let mut open = compatible_response();
    (open["status"], open["usage"]) = (json!("in_progress"), Value::Null);
    for (number, (kind, mut event)) in [
        ("response.created", json!({"response": open})),
        ("response.in_progress", json!({"response": open})),
        (
            "response.output_text.delta",
            json!({"item_id": "i", "output_index": 0, "content_index": 0, "delta": "hi"}),
        ),
        (
            "response.completed",
            json!({"response": compatible_response()}),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        (event["type"], event["sequence_number"]) = (json!(kind), json!(number));
        stream += &format!("data: {event}\n\n");
    }
    for size in [1, 7, stream.len()] {
        let mut forwarder = responses.stream_forwarder(&rendering(None));
        let mut out = Vec::new();
        for piece in stream.as_bytes().chunks(size) {
            out.extend_from_slice(&forwarder.push(Bytes::copy_from_slice(piece)).unwrap().bytes);
        }
        forwarder.finish().unwrap();
        out.extend_from_slice(&forwarder.end());
        let text = String::from_utf8(out).unwrap();
        let events: Vec<_> = text.split_terminator("\n\n").collect();
        assert_eq!(events.len(), 4);
        for event in &events {
            let (name, data) = event.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
            if let Some(response) = data.get("response") {
                assert_eq!(response["model"], "mine");
            }
            if data["type"] == "response.completed" {
                check_usage(&data["response"]["usage"]);
            }
        }
    }
}

#[test]
fn usage_that_nobody_requested_is_removed_whatever_the_choices() {
    let chat = format("chat-completions");
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mine", "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "cost": 1});
    let delta = |delta: Value, reason: Value| json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
    let stream = chunk(
        delta(json!({"role": "assistant", "content": "hi"}), json!(null)),
        usage.clone(),
    ) + &chunk(delta(json!({}), json!("stop")), usage.clone())
        + &chunk(delta(json!({}), json!(null)), usage.clone())
        + "data: [DONE]\n\n";
    let forward = |include_usage: bool| {
        let options = RenderOptions {
            include_usage,
            ..rendering(None)
        };
        let mut forwarder = chat.stream_forwarder(&options);
        let mut out = forwarder
            .push(Bytes::from(stream.clone()))
            .unwrap()
            .bytes
            .to_vec();
        forwarder.finish().unwrap();
        out.extend_from_slice(&forwarder.end());
        assert_eq!(
            forwarder.usage().unwrap().input,
            3,
            "it is read all the same"
        );
        String::from_utf8(out).unwrap()
    };
    assert_eq!(forward(true), stream);
    let without = forward(false);
    assert!(!without.contains("prompt_tokens"), "{without}");
    assert_eq!(without.matches("\"usage\":null").count(), 2, "{without}");
    assert!(
        without.contains("\"hi\"")
            && without.contains("\"stop\"")
            && without.ends_with("[DONE]\n\n")
    );
}

#[test]
fn search_beside_functions_is_rejected_where_the_model_refuses_it() {
    let body = |tools: Value| json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}], "tools": tools});
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let function = json!({"name": "f", "input_schema": {"type": "object"}});
    let both = read("messages", &body(json!([search, function])));
    let of = |search_with_functions| ModelCapabilities {
        search_with_functions,
        ..ModelCapabilities::default()
    };
    let rejected = write(
        "generate-content",
        &both,
        &of(SearchWithFunctions::Rejected),
    )
    .unwrap_err();
    assert_eq!(rejected.field, "tools");
    assert!(
        rejected.message.contains("web search beside functions"),
        "{rejected}"
    );
    let name = "includeServerSideToolInvocations";
    let sent = write(
        "generate-content",
        &both,
        &of(SearchWithFunctions::WithServerSideInvocations),
    );
    assert_eq!(sent.unwrap()["toolConfig"][name], true);
    let alone = read("messages", &body(json!([search])));
    for model in [
        SearchWithFunctions::Rejected,
        SearchWithFunctions::WithServerSideInvocations,
    ] {
        let sent = write("generate-content", &alone, &of(model)).unwrap();
        assert_eq!(sent["tools"], json!([{"googleSearch": {}}]));
        assert_eq!(sent["toolConfig"][name], Value::Null);
    }
    // OpenAI's reasoning models search under responses.
    let reasoning = ModelCapabilities {
        supports_chat_search: false,
        ..ModelCapabilities::default()
    };
    let rejected = write("chat-completions", &alone, &reasoning).unwrap_err();
    assert!(
        rejected.field == "tools" && rejected.message.contains("responses"),
        "{rejected}"
    );
    let sent = write("responses", &alone, &reasoning).unwrap();
    assert_eq!(sent["tools"][0]["type"], "web_search");
    let own = json!({"model": "m", "messages": [{"role": "user", "content": "go"}], "web_search_options": {}});
    let own = Bytes::from(own.to_string());
    let chat = format("chat-completions");
    let summary = chat.summarize_request(&own).unwrap();
    let rejected = chat
        .forward_request(&own, &summary, &target(&reasoning))
        .unwrap_err();
    assert_eq!(rejected.field, "web_search_options");
}

#[test]
fn a_thinking_budget_without_a_cap_leaves_room_for_the_answer() {
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 8192}}});
    let request = read("generate-content", &gemini);
    let budget = |max_output_tokens| ModelCapabilities {
        thinking: ReasoningControl::Budget {
            min: 1024,
            max: 32_000,
            can_disable: true,
        },
        max_output_tokens,
        ..ModelCapabilities::default()
    };
    for (model_max, max_tokens, thinking) in [
        (None, 16_384, 8192),
        (Some(64_000), 16_384, 8192),
        (Some(10_000), 10_000, 8192),
        (Some(8192), 8192, 6144),
    ] {
        let sent = write("messages", &request, &budget(model_max)).unwrap();
        assert_eq!(sent["max_tokens"], max_tokens);
        assert_eq!(sent["thinking"]["budget_tokens"], thinking);
    }
    // The same where the client's own format is passed on.
    let own = json!({"model": "m", "messages": [{"role": "user", "content": "go"}], "thinking": {"type": "enabled", "budget_tokens": 8192}});
    let own = Bytes::from(own.to_string());
    let messages = format("messages");
    let summary = messages.summarize_request(&own).unwrap();
    assert_eq!(summary.thinking_budget, Some(8192));
    let sent = messages
        .forward_request(&own, &summary, &target(&budget(None)))
        .unwrap();
    let sent: Value = serde_json::from_slice(&sent).unwrap();
    assert_eq!(sent["max_tokens"], 16_384);
    assert_eq!(sent["thinking"]["budget_tokens"], 8192);
    // By effort: the default is for the answer, and what is thought comes on top.
    let chat = json!({"model": "m", "reasoning_effort": "high", "messages": [{"role": "user", "content": "go"}]});
    let sent = write(
        "messages",
        &read("chat-completions", &chat),
        &budget(Some(64_000)),
    )
    .unwrap();
    assert_eq!(sent["max_tokens"], 24_576 + 8192);
    assert_eq!(sent["thinking"]["budget_tokens"], 24_576);
}

#[test]
fn nothing_that_changes_the_reply_is_dropped() {
    use tollgate_chat::field_table::{Fate, REASONS, dropped_names, rows};
    for name in dropped_names() {
        let has_reason = REASONS.iter().any(|(known, _)| *known == name);
        assert!(
            has_reason,
            "{name} is dropped without a reason: refuse it, or say why it may be"
        );
    }
    let fate = |client: &str, field: &Value, to: &str| {
        let wanted = field.to_string();
        let row = rows()
            .into_iter()
            .find(|row| row.client == client && row.field == wanted);
        let row = row.unwrap_or_else(|| panic!("{client} {field}"));
        row.fates.iter().find(|fate| fate.0 == to).unwrap().1
    };
    for to in ["responses", "messages", "generate-content"] {
        let audio =
            json!({"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "mp3"}});
        assert_eq!(fate("chat-completions", &audio, to), Fate::Rejected);
    }
    for to in ["chat-completions", "messages", "generate-content"] {
        for state in [
            json!({"previous_response_id": "resp_1"}),
            json!({"conversation": "conv_1"}),
            json!({"background": true}),
        ] {
            assert_eq!(
                fate("responses", &state, to),
                Fate::Rejected,
                "{state} {to}"
            );
        }
    }
    assert_eq!(
        fate("chat-completions", &json!({"stop": [" "]}), "messages"),
        Fate::Rejected
    );
    let search = |more: Value| {
        let mut tool = json!({"type": "web_search_20250305", "name": "web_search"});
        tool.as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap());
        json!({"tools": [tool]})
    };
    for to in ["chat-completions", "responses", "generate-content"] {
        assert_eq!(
            fate("messages", &json!({"thread": {"type": "create"}}), to),
            Fate::Rejected
        );
        let blocked = search(json!({"blocked_domains": ["a.org"]}));
        assert_eq!(fate("messages", &blocked, to), Fate::Rejected, "{to}");
    }
    let allowed = search(json!({"allowed_domains": ["a.org"]}));
    assert_eq!(fate("messages", &allowed, "responses"), Fate::Changed);
    assert_eq!(
        fate("messages", &allowed, "generate-content"),
        Fate::Rejected
    );
    let filters =
        json!({"tools": [{"type": "web_search", "filters": {"allowed_domains": ["a.org"]}}]});
    assert_ne!(fate("responses", &filters, "messages"), Fate::Dropped);
    assert_eq!(
        fate("responses", &filters, "chat-completions"),
        Fate::Rejected
    );
}
