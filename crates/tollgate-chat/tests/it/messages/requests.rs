//! Requests, written for an upstream of this format from what clients of others ask.

use serde_json::{Value, json};
use tollgate_chat::hub::{ModelCapabilities, ReasoningControl, Response, SamplingSupport};
use tollgate_chat::messages::Messages;
use tollgate_chat::{Format, json_tool};

use super::{capabilities, from_chat, rendering, sent, target, user, write};

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

fn tool() -> Value {
    json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}})
}

fn schema() -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "person",
        "schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}})
}

fn by_budget() -> ModelCapabilities {
    ModelCapabilities {
        thinking: ReasoningControl::Budget {
            min: 1024,
            max: 32_000,
            can_disable: true,
        },
        ..capabilities()
    }
}

fn messages_of(messages: Value) -> Value {
    sent(&from_chat(messages, json!({})), &capabilities()).0["messages"].clone()
}

#[test]
fn trap_01_results_of_parallel_calls_are_one_turn() {
    let messages = messages_of(json!([
        user("go"), {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
        result("a"), result("b"), user("and?"),
    ]));
    assert_eq!(messages.as_array().unwrap().len(), 3);
    let kinds: Vec<&str> = messages[2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
}

#[test]
fn trap_02_a_missing_result_is_filled_in_once() {
    let messages = messages_of(json!([
        user("go"), {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]}, result("b"), user("and?"),
    ]));
    let blocks = messages[2]["content"].as_array().unwrap();
    assert_eq!(blocks.len(), 3);
    assert_eq!(
        (&blocks[0]["tool_use_id"], &blocks[0]["is_error"]),
        (&json!("a"), &json!(true))
    );
    assert_eq!(blocks[1]["tool_use_id"], "b");
}

#[test]
fn trap_06_ids_are_cleaned_alike_in_call_and_result() {
    let messages = messages_of(json!([
        user("go"), {"role": "assistant", "content": null, "tool_calls": [call("functions.f:0"), call("functions.f|0")]},
        result("functions.f|0"), result("functions.f:0"),
    ]));
    let (calls, results) = (&messages[1]["content"], &messages[2]["content"]);
    for at in 0..2 {
        let id = calls[at]["id"].as_str().unwrap();
        assert!(
            id.chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        );
        assert_eq!(results[at]["tool_use_id"], id);
    }
    assert_ne!(calls[0]["id"], calls[1]["id"]);
}

#[test]
fn trap_08_text_beside_calls_stays_first() {
    let messages = messages_of(json!([
        user("go"), {"role": "assistant", "content": "Looking.", "tool_calls": [call("a")]}, result("a"),
    ]));
    assert_eq!(messages[1]["content"][0]["text"], "Looking.");
    assert_eq!(messages[1]["content"][1]["type"], "tool_use");
}

#[test]
fn trap_09_empty_text_is_left_out() {
    let messages = messages_of(json!([
        user("go"), {"role": "assistant", "content": "", "tool_calls": [call("a")]}, result("a"),
        {"role": "assistant", "content": " \n"}, user("and?"),
    ]));
    assert_eq!(messages[1]["content"].as_array().unwrap().len(), 1);
    assert_eq!(messages.as_array().unwrap().len(), 3);
    let nothing =
        json!({"model": "m", "messages": [user(" "), {"role": "assistant", "content": ""}]});
    let bad = Messages.read_request(nothing.to_string().as_bytes());
    assert_eq!(bad.unwrap_err().field, "messages");
}

#[test]
fn trap_18_thinking_gives_way_to_a_tool_that_stands_in_for_a_schema() {
    let old = ModelCapabilities {
        supports_json_schema: false,
        ..by_budget()
    };
    let request = from_chat(
        json!([user("who?")]),
        json!({"response_format": schema(), "reasoning_effort": "high"}),
    );
    let written = write(&request, &old).unwrap();
    let body: Value = serde_json::from_slice(&written.body).unwrap();
    assert_eq!(
        body["tool_choice"],
        json!({"type": "tool", "name": "person", "disable_parallel_tool_use": true})
    );
    assert_eq!(body["thinking"], Value::Null);
    assert_eq!(written.json_tool.as_deref(), Some("person"));
    assert_eq!(written.dropped, ["reasoning_effort"]);
    let native = sent(&request, &by_budget()).0;
    assert_eq!(native["output_config"]["format"]["type"], "json_schema");
    assert_eq!(native["thinking"]["type"], "enabled");
}

#[test]
fn the_tool_that_stands_in_is_text_again_in_the_reply() {
    let old = ModelCapabilities {
        supports_json_schema: false,
        ..capabilities()
    };
    let request = from_chat(
        json!([user("who?")]),
        json!({"response_format": schema(), "tools": [tool()]}),
    );
    let written = write(&request, &old).unwrap();
    let body: Value = serde_json::from_slice(&written.body).unwrap();
    assert_eq!(body["tool_choice"], json!({"type": "any"}));
    assert_eq!(body["tools"].as_array().unwrap().len(), 2);
    let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "a", "name": "person", "input": {"name": "Ada"}}]});
    let mut reply: Response = Messages
        .read_response(reply.to_string().as_bytes())
        .unwrap();
    json_tool::restore_in_response(&mut reply, &written.json_tool.unwrap());
    let written: Value =
        serde_json::from_slice(&Messages.write_response(&reply, &rendering())).unwrap();
    assert_eq!(
        written["content"],
        json!([{"type": "text", "text": "{\"name\":\"Ada\"}"}])
    );
    assert_eq!(written["stop_reason"], "end_turn");
}

#[test]
fn a_schema_that_nothing_can_enforce_is_told_in_words() {
    let more = json!({"response_format": schema(), "reasoning_effort": "low"});
    let request = from_chat(json!([user("who?")]), more);
    for model in [
        ModelCapabilities {
            supports_json_schema: false,
            supports_forced_tools: false,
            ..capabilities()
        },
        ModelCapabilities {
            supports_json_schema: false,
            thinking: ReasoningControl::Effort { can_disable: false },
            ..capabilities()
        },
    ] {
        let (body, dropped) = sent(&request, &model);
        let line = body["system"][0]["text"].as_str().unwrap();
        assert!(line.contains("\"required\":[\"name\"]"), "{line}");
        assert_eq!(body["thinking"]["type"], "adaptive");
        assert_eq!(dropped, ["response_format"]);
    }
}

#[test]
fn a_stand_in_never_takes_the_name_of_a_tool() {
    let old = ModelCapabilities {
        supports_json_schema: false,
        ..capabilities()
    };
    let mut format = schema();
    format["json_schema"]["name"] = json!("f");
    let request = from_chat(
        json!([user("who?")]),
        json!({"response_format": format, "tools": [tool()]}),
    );
    assert_eq!(
        write(&request, &old).unwrap().json_tool.as_deref(),
        Some("f_")
    );
}

#[test]
fn trap_21_22_sampling_goes_by_what_the_model_takes() {
    let request = from_chat(
        json!([user("x")]),
        json!({"temperature": 1.5, "top_p": 0.5, "top_k": 3}),
    );
    for (sampling, left, dropped) in [
        (
            SamplingSupport::All,
            json!([1.0, 0.5, 3]),
            vec!["temperature"],
        ),
        (
            SamplingSupport::TemperatureOrTopP,
            json!([1.0, null, 3]),
            vec!["temperature", "top_p"],
        ),
        (
            SamplingSupport::None,
            json!([null, null, null]),
            vec!["temperature", "top_p", "top_k"],
        ),
    ] {
        let (body, lost) = sent(
            &request,
            &ModelCapabilities {
                sampling,
                ..capabilities()
            },
        );
        assert_eq!(
            json!([body["temperature"], body["top_p"], body["top_k"]]),
            left
        );
        assert_eq!(lost, dropped);
    }
}

#[test]
fn trap_23_budgets_fit_below_the_cap() {
    let ask = |cap: u64| {
        let more = json!({"reasoning_effort": "high", "max_tokens": cap, "temperature": 0.2});
        sent(&from_chat(json!([user("x")]), more), &by_budget())
    };
    let (body, dropped) = ask(4000);
    assert_eq!(body["thinking"]["budget_tokens"], 3000);
    assert_eq!(body["max_tokens"], 4000);
    // Beside thinking the temperature is the vendor's.
    assert_eq!(
        (&body["temperature"], dropped),
        (&Value::Null, vec!["temperature".to_owned()])
    );
    let (body, dropped) = ask(1000);
    assert_eq!(
        (&body["thinking"], dropped),
        (&Value::Null, vec!["reasoning_effort".to_owned()])
    );
}

#[test]
fn thinking_is_off_where_a_call_in_progress_came_without_it() {
    let history = json!([user("go"), {"role": "assistant", "content": null, "tool_calls": [call("a")]}, result("a")]);
    let more = json!({"reasoning_effort": "low", "tools": [tool()]});
    let request = from_chat(history.clone(), more.clone());
    let (body, dropped) = sent(&request, &by_budget());
    assert_eq!(
        (&body["thinking"], dropped),
        (&Value::Null, vec!["reasoning_effort".to_owned()])
    );
    // Models that think by word do not mind, and past calls do not matter.
    assert_eq!(
        sent(&request, &capabilities()).0["thinking"]["type"],
        "adaptive"
    );
    let mut past = history.as_array().unwrap().clone();
    past.extend([
        json!({"role": "assistant", "content": "done"}),
        user("again"),
    ]);
    let (body, _) = sent(&from_chat(past.into(), more), &by_budget());
    assert_eq!(body["thinking"]["budget_tokens"], 2048);
}

#[test]
fn a_forced_call_is_worth_more_than_thinking() {
    let more = json!({"reasoning_effort": "low", "tools": [tool()], "tool_choice": "required"});
    let request = from_chat(json!([user("x")]), more);
    let (body, dropped) = sent(&request, &capabilities());
    assert_eq!(body["thinking"], json!({"type": "disabled"}));
    assert_eq!(body["tool_choice"], json!({"type": "any"}));
    assert_eq!(dropped, ["reasoning_effort"]);
    let always = ModelCapabilities {
        thinking: ReasoningControl::Effort { can_disable: false },
        ..capabilities()
    };
    let (body, dropped) = sent(&request, &always);
    assert_eq!(body["tool_choice"], json!({"type": "auto"}));
    assert_eq!(body["output_config"]["effort"], "low");
    assert_eq!(dropped, ["tool_choice"]);
    let never_forced = ModelCapabilities {
        supports_forced_tools: false,
        ..capabilities()
    };
    let (body, dropped) = sent(&request, &never_forced);
    assert_eq!(body["tool_choice"], json!({"type": "auto"}));
    assert_eq!(body["thinking"]["type"], "adaptive");
    assert_eq!(dropped, ["tool_choice"]);
}

#[test]
fn a_cap_is_always_sent_and_never_more_than_the_model_can() {
    let small = ModelCapabilities {
        max_output_tokens: Some(4096),
        ..capabilities()
    };
    let none = from_chat(json!([user("x")]), json!({}));
    assert_eq!(sent(&none, &capabilities()).0["max_tokens"], 8192);
    assert_eq!(sent(&none, &small).0["max_tokens"], 4096);
    let more = from_chat(json!([user("x")]), json!({"max_tokens": 5000}));
    let (body, dropped) = sent(&more, &small);
    assert_eq!(
        (&body["max_tokens"], dropped),
        (&json!(4096), vec!["max_tokens".to_owned()])
    );
}

#[test]
fn at_most_four_cache_markers_are_sent() {
    let part = |at: usize| json!({"type": "text", "text": at.to_string(), "cache_control": {"type": "ephemeral"}});
    let parts: Vec<Value> = (0..6).map(part).collect();
    let request = from_chat(
        json!([{"role": "system", "content": [part(9)]}, {"role": "user", "content": parts}]),
        json!({}),
    );
    let (body, dropped) = sent(&request, &capabilities());
    let marked = body.to_string().matches("cache_control").count();
    assert_eq!((marked, dropped), (4, vec!["cache_control".to_owned()]));
    assert!(body["messages"][0]["content"][5]["cache_control"].is_object());
}

#[test]
fn the_user_speaks_first_and_a_begun_answer_ends_without_white_space() {
    let messages = messages_of(
        json!([{"role": "assistant", "content": "Hello."}, user("hi"), {"role": "assistant", "content": "{ "}]),
    );
    assert_eq!(
        messages[0],
        json!({"role": "user", "content": [{"type": "text", "text": "."}]})
    );
    assert_eq!(messages[3]["content"], "{");
    let only_system = messages_of(json!([{"role": "system", "content": "Be brief."}]));
    assert_eq!(only_system[0]["role"], "user");
}

#[test]
fn a_history_with_calls_has_their_tools() {
    let history = json!([user("go"), {"role": "assistant", "content": null, "tool_calls": [call("a")]}, result("a")]);
    let (body, _) = sent(&from_chat(history, json!({})), &capabilities());
    assert_eq!(body["tools"][0]["name"], "f");
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
}

#[test]
fn what_the_client_would_miss_is_refused_in_its_own_words() {
    for (more, field) in [
        (json!({"n": 2}), "n"),
        (json!({"logprobs": true}), "logprobs"),
        (
            json!({"modalities": ["text", "audio"], "audio": {"voice": "x", "format": "mp3"}}),
            "modalities",
        ),
    ] {
        let request = from_chat(json!([user("x")]), more);
        assert_eq!(write(&request, &capabilities()).unwrap_err().field, field);
    }
    let sound = json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}]}]);
    let bad = write(&from_chat(sound, json!({})), &capabilities()).unwrap_err();
    assert_eq!(bad.field, "messages[0].content[0]");
}

#[test]
fn pictures_that_the_vendor_lacks_are_refused() {
    let avif = "data:image/avif;base64,AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZg==";
    let parts = json!([{"type": "image_url", "image_url": {"url": avif}}]);
    let request = from_chat(json!([{"role": "user", "content": parts}]), json!({}));
    let bad = write(&request, &capabilities()).unwrap_err();
    assert!(bad.message.contains("image/avif"), "{}", bad.message);
}

#[test]
fn text_files_become_text_documents() {
    let file = json!({"type": "file", "file": {"file_data": "data:text/csv;base64,YSxiCg==", "filename": "a.csv"}});
    let messages = messages_of(json!([{"role": "user", "content": [file]}]));
    assert_eq!(
        messages[0]["content"][0],
        json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b\n"}, "title": "a.csv"})
    );
}

#[test]
fn schemas_become_what_the_grammar_takes() {
    let mut format = schema();
    format["json_schema"]["schema"]["properties"]["name"]["minLength"] = json!(2);
    let request = from_chat(json!([user("who?")]), json!({"response_format": format}));
    let (body, dropped) = sent(&request, &capabilities());
    let schema = &body["output_config"]["format"]["schema"];
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(
        schema["properties"]["name"]["description"],
        "{minLength: 2}"
    );
    assert_eq!(dropped, ["response_format"]);
}

#[test]
fn counting_needs_no_cap() {
    let body = json!({"model": "m", "messages": [user("hi")]});
    let request = tollgate_chat::messages::read_count_request(body.to_string().as_bytes()).unwrap();
    assert_eq!(request.max_tokens, None);
    assert_eq!(
        tollgate_chat::messages::write_count_response(12),
        b"{\"input_tokens\":12}"
    );
    let written = Messages
        .write_request(&request, &target(&capabilities()))
        .unwrap();
    assert!(String::from_utf8(written.body).unwrap().contains("8192"));
}
