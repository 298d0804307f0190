//! Checks that docs/errors.md lists the names of every status in every format.

use serde_json::Value;
use tollgate_chat::ErrorBody;
use tollgate_chat::{Format, by_name};
use tollgate_core::ErrorKind;

/// The error object that the format writes for the status.
fn error(format: &str, status: u16, bare: bool) -> Value {
    let format: &dyn Format = by_name(format).expect(format);
    let body = ErrorBody {
        status,
        message: "no".to_owned(),
        param: None,
        code: None,
        details: None,
        bare,
    };
    let mut json: Value = serde_json::from_slice(&format.write_error(&body)).expect("JSON");
    json["error"].take()
}

fn name(value: &Value) -> String {
    format!("`{}`", value.as_str().expect("a name"))
}

/// The row of the table for the status.
fn row(status: u16) -> String {
    let openai = error("chat-completions", status, true);
    assert_eq!(openai, error("responses", status, true));
    let openai = match &openai["code"] {
        Value::Null => name(&openai["type"]),
        code => format!("{}, code {}", name(&openai["type"]), name(code)),
    };
    let bare = name(&error("messages", status, true)["type"]);
    let enveloped = name(&error("messages", status, false)["type"]);
    let google = name(&error("generate-content", status, true)["status"]);
    format!("| {status} | {openai} | {bare} | {enveloped} | {google} |")
}

#[test]
fn every_status_is_documented_in_every_format() {
    let page = include_str!("../../../../docs/errors.md");
    let missing: Vec<String> = ErrorKind::ALL
        .iter()
        .map(|kind| row(kind.status()))
        .filter(|row| !page.lines().any(|line| line == row))
        .collect();
    assert!(
        missing.is_empty(),
        "not in docs/errors.md:\n{}",
        missing.join("\n")
    );
}

#[test]
fn errors_in_the_envelope_have_the_types_of_the_client_api() {
    for kind in ErrorKind::ALL {
        for format in ["chat-completions", "responses"] {
            let error = error(format, kind.status(), false);
            assert_eq!(error["type"], kind.type_name(), "{kind:?}");
        }
    }
}
