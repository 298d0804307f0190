//! Tests of the request summary.

use tollgate_chat::responses::Responses;
use tollgate_chat::{Format, RequestSummary};

fn bad(body: &str) -> String {
    Responses
        .summarize_request(body.as_bytes())
        .unwrap_err()
        .message
}

#[test]
fn the_summary_has_model_limits_user_and_reasoning() {
    let body = r#"{"model":"gpt-5","input":"hi","max_output_tokens":7,"max_tokens":null,"stream":true,"prompt_cache_key":"k",
        "reasoning":{},"tools":[{"type":"function","name":"f","parameters":{}},{"type":"web_search"}]}"#;
    let seen = Responses.summarize_request(body.as_bytes()).unwrap();
    let expected = RequestSummary {
        model: Some("gpt-5".to_owned()),
        stream: true,
        max_tokens: Some(7),
        n: 1,
        user: Some("k".to_owned()),
        has_reasoning_settings: true,
        members: 0,
        is_native: true,
        ..RequestSummary::default()
    };
    assert_eq!(seen, expected);
}

#[test]
fn alternative_spellings_are_not_native() {
    for more in [
        r#""max_tokens":5"#,
        r#""tools":[{"type":"function","function":{"name":"f","description":"d"}}]"#,
        r#""tools":[{"type":"remote_mcp","remote_mcp":{"url":"https://x.example/mcp"}}]"#,
        r#""metadata":{"a":"msg_tg1_seed_0"}"#,
    ] {
        let body = format!(r#"{{"model":"m","input":"x",{more}}}"#);
        assert!(
            !Responses
                .summarize_request(body.as_bytes())
                .unwrap()
                .is_native,
            "{more}"
        );
    }
}

#[test]
fn invalid_members_are_rejected_by_name() {
    for (body, expected) in [
        (r#"{"input":"x"}"#, "`model` is required: a string"),
        (
            r#"{"model":" ","input":"x"}"#,
            "`model` must not be empty or blank",
        ),
        (
            r#"{"model":"m"}"#,
            "`input` is required: a string or an array of items",
        ),
        (
            r#"{"model":"m","input":" \n"}"#,
            "`input` must not be empty or blank",
        ),
        (
            r#"{"model":"m","input":[ ]}"#,
            "`input` must hold at least one item",
        ),
        (
            r#"{"model":"m","input":3}"#,
            "`input` must be a string or an array of items, not 3",
        ),
        (
            r#"{"model":"m","input":"x","temperature":"1"}"#,
            "`temperature` must be a number from 0 to 2, not a string",
        ),
        (
            r#"{"model":"m","input":"x","temperature":2.1}"#,
            "`temperature` must be a number from 0 to 2, not 2.1",
        ),
        (
            r#"{"model":"m","input":"x","top_p":-0.1}"#,
            "`top_p` must be a number from 0 to 1, not -0.1",
        ),
        (
            r#"{"model":"m","input":"x","max_tokens":1.0}"#,
            "`max_tokens` must be a whole number of at least 1, not 1.0",
        ),
        (
            r#"{"model":"m","input":"x","max_tokens":0}"#,
            "`max_tokens` must be a whole number of at least 1, not 0",
        ),
        (
            r#"{"model":"m","input":"x","max_output_tokens":"5"}"#,
            "`max_output_tokens` must be a whole number of at least 1, not a string",
        ),
        (
            r#"{"model":"m","input":"x","stream":"true"}"#,
            "`stream` must be true or false, not a string",
        ),
        (
            r#"{"model":"m","input":"x","tools":{}}"#,
            "`tools` must be an array of tools, not an object",
        ),
        (
            r#"{"model":"m","input":"x","tools":[{"type":"function"}]}"#,
            "`tools[0].name` is required: a string",
        ),
        (
            r#"{"model":"m","input":"x","tools":[{"type":"function","function":{"name":"f"}}]}"#,
            "`tools[0].function.description` is required: a string",
        ),
        (
            r#"{"model":"m","input":"x","tools":[{"type":"remote_mcp","remote_mcp":{"url":"ftp://x"}}]}"#,
            "`tools[0].remote_mcp.url` must be an http or https URL",
        ),
        (
            r#"{"model":"m","input":"x","tools":[{}]}"#,
            "`tools[0].type` is required: a string",
        ),
        ("[1]", "the body must be a JSON object"),
    ] {
        assert_eq!(bad(body), expected, "{body}");
    }
    assert!(bad("{\"model\":").starts_with("the body is not valid JSON"));
    assert_eq!(
        Responses
            .summarize_request(b"{\"model\":\"\xff\"}")
            .unwrap_err()
            .message,
        "the body is not UTF-8"
    );
}

#[test]
fn base64_payload_and_attachments_are_counted() {
    let body = r#"{"model":"m","input":[{"role":"user","content":[
        {"type":"input_image","image_url":"data:image/png;base64,AAAABBBB"},
        {"type":"input_file","file_data" : "CCCC"},
        {"type":"input_file","file_data":"data:application/pdf;base64,DDDD"}]}]}"#;
    let seen = Responses.summarize_request(body.as_bytes()).unwrap();
    assert_eq!((seen.attachments, seen.payload_bytes), (3, 16));
    let huge = "A".repeat(30 * 1024 * 1024);
    let body =
        format!(r#"{{"model":"m","input":[{{"image_url":"data:image/png;base64,{huge}"}}]}}"#);
    assert_eq!(bad(&body), "`input` holds an image of more than 20 MB");
}
