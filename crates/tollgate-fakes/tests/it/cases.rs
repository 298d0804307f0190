//! The tables of the providers: requests that they take and that they reject, in `tests/cases`.
//!
//! A line of `PROVIDER.jsonl` is a request with the status of its response and the rule that rejects it
//! (200 and none, or 400, if the line does not say). A line of `flows.jsonl` starts a task and then
//! says what each request about it is answered with: fields, a rule, or a status. In texts
//! `<png 40x40>` stands for an image in base64, `<png 40x40 9000>` for one of so many bytes,
//! `<text 9>` for so many letters.

use std::collections::HashMap;
use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat};
use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider};

use crate::client::{Reply, send};

/// The headers that make a request one that is let in.
fn headers_of(provider: Provider) -> Value {
    match provider {
        Provider::Anthropic => json!({"x-api-key": "k", "anthropic-version": "2023-06-01"}),
        Provider::Gemini => json!({"x-goog-api-key": "k"}),
        Provider::Fal => json!({"authorization": "Key k"}),
        _ => json!({"authorization": "Bearer k"}),
    }
}

/// The bytes that a placeholder stands for.
fn expand(placeholder: &str) -> Option<Vec<u8>> {
    let inner = placeholder.strip_prefix('<')?.strip_suffix('>')?;
    let mut words = inner.split(' ');
    let (kind, size) = (words.next()?, words.next()?);
    if kind == "text" {
        return Some(vec![b'x'; size.parse().ok()?]);
    }
    let (width, height) = size.split_once('x')?;
    let (width, height) = (width.parse().ok()?, height.parse().ok()?);
    let (image, format) = match kind {
        "alpha-png" => (DynamicImage::new_rgba8(width, height), ImageFormat::Png),
        kind => (
            DynamicImage::new_rgb8(width, height),
            ImageFormat::from_extension(kind)?,
        ),
    };
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).expect("an image");
    let mut bytes = bytes.into_inner();
    bytes.resize(
        words
            .next()
            .map_or(bytes.len(), |n| n.parse().expect("bytes")),
        0,
    );
    Some(bytes)
}

/// The value with every placeholder in its texts replaced.
fn expanded(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let (before, placeholder) = text.split_at(text.rfind('<').unwrap_or(text.len()));
            match expand(placeholder) {
                Some(bytes) if placeholder.starts_with("<text") => {
                    json!(String::from_utf8(bytes).expect("letters"))
                }
                Some(bytes) => json!(format!("{before}{}", STANDARD.encode(bytes))),
                None => value.clone(),
            }
        }
        Value::Array(list) => list.iter().map(expanded).collect(),
        Value::Object(object) => {
            let fields = object
                .iter()
                .map(|(name, value)| (name.clone(), expanded(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// A body of `multipart/form-data`; a part is its name and text, or its name, type and placeholder.
fn form(parts: &Value) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts.as_array().expect("parts") {
        let text = |at: usize| part[at].as_str();
        let name = text(0).unwrap_or_default();
        body.extend(format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"").bytes());
        match (text(1).unwrap_or_default(), text(2)) {
            (media_type, Some(file)) => {
                body.extend(
                    format!("; filename=\"f\"\r\ncontent-type: {media_type}\r\n\r\n").bytes(),
                );
                body.extend(expand(file).unwrap_or_else(|| file.into()));
            }
            (value, None) => body.extend(format!("\r\n\r\n{value}").bytes()),
        }
        body.extend(b"\r\n");
    }
    body.extend(b"--b--\r\n");
    body
}

/// Sends what a line says.
async fn request(fake: &Fake, provider: Provider, line: &Value) -> Reply {
    let (content_type, body) = match (&line["form"], &line["body"], &line["text"]) {
        (Value::Null, Value::Null, Value::String(text)) => {
            ("application/json", text.clone().into())
        }
        (Value::Null, Value::Null, _) => ("", Vec::new()),
        (Value::Null, body, _) => ("application/json", expanded(body).to_string().into_bytes()),
        (parts, _, _) => ("multipart/form-data; boundary=b", form(parts)),
    };
    let own = &line["headers"];
    let mut headers = if own.is_null() {
        headers_of(provider)
    } else {
        own.clone()
    };
    if !content_type.is_empty() && (own.is_null() || !line["form"].is_null()) {
        headers["content-type"] = json!(content_type);
    }
    let headers = headers.as_object().expect("headers").iter();
    let headers: Vec<(&str, &str)> = headers
        .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
        .collect();
    let method = line["method"].as_str().unwrap_or("POST");
    let path = line["path"].as_str().expect("a path");
    send(fake, method, path, &headers, body)
        .await
        .expect("an answer")
}

async fn check(provider: Provider, lines: &str) {
    let mut fakes: HashMap<String, Fake> = HashMap::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).expect("a case");
        let keys = line["keys"].as_array().into_iter().flatten();
        let keys = keys.filter_map(Value::as_str).map(str::to_owned).collect();
        let options = Options {
            keys,
            ..Options::default()
        };
        let name = line["keys"].to_string();
        if !fakes.contains_key(&name) {
            let fake = tollgate_fakes::start(provider, options)
                .await
                .expect("a port");
            fakes.insert(name.clone(), fake);
        }
        let reply = request(&fakes[&name], provider, &line).await;
        let rule = line["rule"].as_str().unwrap_or_default();
        assert_eq!(reply.header("x-fake-rule"), rule, "{line}");
        let status = if rule.is_empty() { 200 } else { 400 };
        let status = line["status"].as_u64().unwrap_or(status);
        assert_eq!(u64::from(reply.status), status, "{line}");
    }
}

macro_rules! cases {
    ($($name:ident $provider:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            let file = concat!("../cases/", stringify!($name), ".jsonl");
            let lines = include_str!(concat!("../cases/", stringify!($name), ".jsonl"));
            assert!(!lines.is_empty(), "{file}");
            check(Provider::$provider, lines).await;
        })*
    };
}

cases! {
    anthropic Anthropic
    ark Ark
    dashscope DashScope
    fal Fal
    gemini Gemini
    kling Kling
    openai OpenAi
    replicate Replicate
    xai Xai
}

#[tokio::test]
async fn tasks_go_through_the_states_of_their_provider() {
    for line in include_str!("../cases/flows.jsonl").lines() {
        let flow: Value = serde_json::from_str(line).expect("a flow");
        let provider: Provider = flow["provider"]
            .as_str()
            .expect("a name")
            .parse()
            .expect("known");
        let fake = tollgate_fakes::start(provider, Options::default())
            .await
            .expect("a port");
        let mut headers = headers_of(provider);
        for (name, value) in flow["headers"].as_object().into_iter().flatten() {
            headers[name] = value.clone();
        }
        headers["content-type"] = json!("application/json");
        let ask = async |method: &Value, path: &str, body: &Value| {
            let line = json!({"method": method, "path": path, "body": body, "headers": headers});
            request(&fake, provider, &line).await
        };
        let submit = &flow["submit"];
        let path = submit[1].as_str().expect("a path");
        let started = ask(&submit[0], path, &submit[2]).await.json();
        let id = started.pointer(flow["id"].as_str().expect("a pointer"));
        let id = id
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("no id in {started}"));
        for step in flow["steps"].as_array().expect("steps") {
            let path = step[1].as_str().expect("a path").replace("{id}", id);
            let reply = ask(&step[0], &path, &step[3]).await;
            let shown = format!("{step} {}", String::from_utf8_lossy(&reply.bytes()));
            match &step[2] {
                Value::String(rule) => assert_eq!(reply.header("x-fake-rule"), rule, "{shown}"),
                Value::Number(status) => {
                    assert_eq!(Some(u64::from(reply.status)), status.as_u64(), "{shown}");
                }
                fields => {
                    for (name, value) in fields.as_object().expect("fields") {
                        let answer = reply.json();
                        let slash = if name.starts_with('/') { "" } else { "/" };
                        let found = answer.pointer(&format!("{slash}{name}"));
                        assert_eq!(found.unwrap_or(&Value::Null), value, "{shown}");
                    }
                }
            }
        }
    }
}
