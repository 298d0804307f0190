//! Tests which options are found in a request, and the request after they are removed.

use bytes::Bytes;
use serde_json::Value;

use super::{ProviderOption, find_options, is_allowed_beta, remove_options};
use crate::error::InvalidRequest;

/// The options of a body, each as `name:field`, followed by the tier if there is one.
fn found(body: &str) -> String {
    let found = find_options(body.as_bytes()).unwrap();
    let text = found.iter().map(|found| match found.tier.as_str() {
        "" => format!("{}:{}", found.option.name(), found.field),
        tier => format!("{}:{}={tier}", found.option.name(), found.field),
    });
    text.collect::<Vec<_>>().join(" ")
}

#[test]
fn options_are_found_in_every_format_and_spelling() {
    for (body, expected) in [
        (
            r#"{"model":"m","messages":[{"role":"user","content":"service_tier"}]}"#,
            "",
        ),
        (r#"{"service_tier":"auto"}"#, ""),
        (
            r#"{"service_tier":null,"store":false,"background":false,"tools":[]}"#,
            "",
        ),
        (
            r#"{"service_tier":"Priority"}"#,
            "service_tier:service_tier=priority",
        ),
        (
            r#"{"\u0073ervice_tier":"flex"}"#,
            "service_tier:service_tier=flex",
        ),
        (r#"{"serviceTier":"FLEX"}"#, "service_tier:serviceTier=flex"),
        (r#"{"speed":"fast"}"#, "service_tier:speed=fast"),
        (
            r#"{"background":true,"store":true}"#,
            "background:background store:store",
        ),
        (
            r#"{"previous_response_id":"r","conversation":{"id":"c"}}"#,
            "stored_context:previous_response_id stored_context:conversation",
        ),
        (r#"{"cachedContent":"c"}"#, "cached_content:cachedContent"),
        (r#"{"models":["a","b"]}"#, "routing:models"),
        (
            r#"{"tools":[{"type":"function","function":{"name":"web_search"}}]}"#,
            "",
        ),
        (
            r#"{"tools":[{"name":"web_search","input_schema":{"type":"object"}}]}"#,
            "",
        ),
        (
            r#"{"tools":[{"type":"function","name":"f"},{"type":"web_search_preview"}]}"#,
            "web_search:tools[1]",
        ),
        (
            r#"{"tools":[{"type":"namespace","tools":[{"type":"mcp"}]}]}"#,
            "mcp:tools[0].tools[0]",
        ),
        (
            r#"{"tools":[{"Type":"Web_Search"}]}"#,
            "web_search:tools[0]",
        ),
        (r#"{"tools":[{"type":"bash_20250124","name":"bash"}]}"#, ""),
        (
            r#"{"tools":[{"type":"code_execution_20250825","name":"c"}]}"#,
            "code_execution:tools[0]",
        ),
        (
            r#"{"tools":[{"functionDeclarations":[]},{"googleSearch":{}}]}"#,
            "web_search:tools[1]",
        ),
        (r#"{"tools":[{"google_search":{}}]}"#, "web_search:tools[0]"),
        (
            r#"{"tools":[{"googleSearch":{},"codeExecution":{},"google_maps":{}}]}"#,
            "web_search:tools[0] code_execution:tools[0] maps:tools[0]",
        ),
        (
            r#"{"tools":[{"functionDeclarations":[],"newTool":null}]}"#,
            "",
        ),
        (
            r#"{"tools":[{"functionDeclarations":[],"newTool":{}}]}"#,
            "other_tools:tools[0]",
        ),
        (
            r#"{"tools":[{"name":"f","input_schema":{},"cache_control":{}}]}"#,
            "",
        ),
        (
            r#"{"tools":[{"type":"web_search","TYPE":"function"}]}"#,
            "web_search:tools[0]",
        ),
        (
            r#"{"tools":[{"type":"mcp","Type":"web_search","type":"function"}]}"#,
            "mcp:tools[0] web_search:tools[0]",
        ),
        (
            r#"{"tools":[{"type":"function","name":"f","googleSearch":{}}]}"#,
            "web_search:tools[0]",
        ),
        (
            r#"{"tools":[{"type":"newest_tool"}]}"#,
            "other_tools:tools[0]",
        ),
        (
            r#"{"tools":[{"computerUse":{}},{"newTool":{}}]}"#,
            "other_tools:tools[1]",
        ),
        (
            r#"{"web_search_options":{}}"#,
            "web_search:web_search_options",
        ),
        (
            r#"{"system":[{"text":"a","cache_control":{"type":"ephemeral","ttl":"5m"}}]}"#,
            "",
        ),
        (
            r#"{"system":[{"text":"a","cache_control":{"ttl":"1h"}}]}"#,
            "cache_write_1h:cache_control.ttl",
        ),
        (
            r#"{"system":[{"text":"a","c\u0061che_control":{"\u0074tl":"1\u0068"}}]}"#,
            "cache_write_1h:cache_control.ttl",
        ),
        (
            r#"{"messages":[{"content":[{"input":{"ttl":"1h"},"cache_control":{}}]}]}"#,
            "",
        ),
    ] {
        assert_eq!(found(body), expected, "{body}");
    }
}

#[test]
fn names_that_differ_by_case_are_rejected() {
    for (body, known) in [
        (r#"{"Service_Tier":"flex"}"#, "`service_tier`"),
        (r#"{"STORE":true}"#, "`store`"),
        (r#"{"Tools":[]}"#, "`tools`"),
        (r#"{"Max_Tokens":1}"#, "`max_tokens`"),
    ] {
        let error = find_options(body.as_bytes()).unwrap_err();
        assert!(error.message.contains(known), "{error}");
        assert!(body.contains(&error.field), "{error}");
    }
}

#[test]
fn options_that_are_given_twice_are_rejected() {
    for (body, field) in [
        (
            r#"{"service_tier":"flex","service_tier":"default"}"#,
            "service_tier",
        ),
        (
            r#"{"service_tier":null,"service_tier":"flex"}"#,
            "service_tier",
        ),
        (
            r#"{"serviceTier":"default","service_tier":"flex"}"#,
            "service_tier",
        ),
        (
            r#"{"cached_content":null,"cachedContent":"a"}"#,
            "cachedContent",
        ),
        (r#"{"n":1,"store":false,"n":1,"store":true}"#, "store"),
    ] {
        let error = find_options(body.as_bytes()).unwrap_err();
        assert_eq!(
            (error.field.as_str(), error.message.as_str()),
            (field, format!("`{field}` is given twice").as_str())
        );
    }
}

#[test]
fn a_service_tier_belongs_to_formats_whose_servers_read_its_field() {
    for (field, formats) in [
        (
            "service_tier",
            "chat-completions responses messages generate-content",
        ),
        ("serviceTier", "generate-content"),
        ("speed", "messages"),
    ] {
        let body = format!(r#"{{"{field}":"fast"}}"#);
        let found = &find_options(body.as_bytes()).unwrap()[0];
        let names = crate::FORMATS.iter().map(|format| format.name());
        let able: Vec<_> = names.filter(|name| found.is_tier_of(name)).collect();
        assert_eq!(able.join(" "), formats, "{field}");
    }
}

fn remove_all(body: &str) -> Result<Bytes, InvalidRequest> {
    let options = find_options(body.as_bytes()).unwrap();
    let all: Vec<_> = options.iter().collect();
    remove_options(body.as_bytes(), &all)
}

#[test]
fn tools_are_removed_only_if_the_client_has_tools_of_its_own() {
    for (body, field) in [
        (r#"{"tools":[{"type":"web_search"}]}"#, "tools[0]"),
        (
            r#"{"tools":[{"type":"web_search"},{"googleSearch":{}}]}"#,
            "tools[0]",
        ),
        (
            r#"{"tools":[{"type":"function"},{"type":"web_search"}],"tool_choice":{"type":"web_search"}}"#,
            "tools[1]",
        ),
        (
            r#"{"tools":[{"name":"f"},{"type":"web_fetch_2","name":"web_fetch"}],"tool_choice":{"type":"tool","name":"web_fetch"}}"#,
            "tools[1]",
        ),
        (
            r#"{"tools":[{"type":"function","name":"f"},{"type":"web_search"}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"web_search"}]}}"#,
            "tools[1]",
        ),
    ] {
        let error = remove_all(body).unwrap_err();
        assert_eq!(error.field, field, "{body}");
    }
}

#[test]
fn options_are_removed_and_other_members_are_kept() {
    for (body, left) in [
        (
            r#"{"model":"m","service_tier":"flex","n":1}"#,
            r#"{"model":"m","n":1}"#,
        ),
        (
            r#"{"input":"a","store":true}"#,
            r#"{"input":"a","store":false}"#,
        ),
        (r#"{"messages":[],"store":true}"#, r#"{"messages":[]}"#),
        (
            r#"{"tools":[{"type":"mcp"},{"type":"function","name":"f"},{"type":"web_search"}],"store":false}"#,
            r#"{"tools":[{"type":"function","name":"f"}],"store":false}"#,
        ),
        (
            r#"{"tools":[{"type":"function","name":"f"},{"type":"web_search","tools":[{"type":"mcp"}]}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"web_search"},{"type":"function","name":"f"}]}}"#,
            r#"{"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"f"}]}}"#,
        ),
        (
            r#"{"tools":[{"googleSearch":{}},{"functionDeclarations":[]}]}"#,
            r#"{"tools":[{"functionDeclarations":[]}]}"#,
        ),
        (
            r#"{"tools":[{"googleSearch":{},"functionDeclarations":[],"newTool":{}}]}"#,
            r#"{"tools":[{"functionDeclarations":[]}]}"#,
        ),
        (
            r#"{"tools":[{"type":"web_search","Type":"mcp"},{"type":"function","name":"f"}]}"#,
            r#"{"tools":[{"type":"function","name":"f"}]}"#,
        ),
        (
            r#"{"system":[{"cache_control":{"type":"e","ttl":"1h"}}],"ttl":"1h"}"#,
            r#"{"system":[{"cache_control":{"type":"e"}}],"ttl":"1h"}"#,
        ),
    ] {
        let removed = remove_all(body).unwrap();
        let removed: Value = serde_json::from_slice(&removed).unwrap();
        assert_eq!(removed.to_string(), left);
    }
}

#[test]
fn every_option_has_a_name() {
    for name in ProviderOption::names() {
        let option = ProviderOption::by_name(name).unwrap();
        assert_eq!(option.name(), name);
    }
}

#[test]
fn betas_with_a_price_are_allowed_only_by_the_channel() {
    let allowed = ["context-1m-2025-08-07".to_owned(), "skills-*".to_owned()];
    for (name, is_allowed) in [
        ("interleaved-thinking-2025-05-14", true),
        ("context-1m-2025-08-07", true),
        ("skills-2025-10-02", true),
        ("context-1m-2026-01-01", false),
        ("fast-mode-2026-02-01", false),
    ] {
        assert_eq!(is_allowed_beta(name, &allowed), is_allowed, "{name}");
    }
}
