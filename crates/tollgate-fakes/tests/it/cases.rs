//! Tests the tables of the providers: requests that they accept and that they reject, in `tests/cases`.
//!
//! A line of `PROVIDER.jsonl` is a request with the status of its response and the rule that rejects it (200 and no rule, or 400, if the line has
//! none). A line of `responses.jsonl` has the complete response, with `*` for ids; `TOLLGATE_BLESS=1` updates it. A line of `flows.jsonl` starts a
//! task and lists the expected response to each request about it: fields, a rule, or a status. In texts `<png 40x40>` is replaced by an image in
//! base64, `<png 40x40 9000>` by one of that many bytes, `<text 9>` by that many letters.

use std::collections::HashMap;
use std::io::Cursor;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat};
use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider};

use crate::client::{Headers, Reply, headers_of, send};

/// The bytes that replace a placeholder.
fn expand(placeholder: &str) -> Option<Vec<u8>> {
    let inner = placeholder.strip_prefix('<')?.strip_suffix('>')?;
    let mut parts = inner.split(' ');
    let (kind, size) = (parts.next()?, parts.next()?);
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
        parts
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

/// A body of `multipart/form-data`; each part is given as its name and text, or its name, type and placeholder.
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

/// Sends the request of a line.
async fn request(fake: &Fake, provider: Provider, line: &Value) -> Reply {
    let (content_type, body) = match (&line["form"], &line["body"], &line["text"]) {
        (Value::Null, Value::Null, Value::String(text)) => {
            ("application/json", text.clone().into())
        }
        (Value::Null, Value::Null, _) => ("", Vec::new()),
        (Value::Null, body, _) => ("application/json", expanded(body).to_string().into_bytes()),
        (parts, _, _) => ("multipart/form-data; boundary=b", form(parts)),
    };
    let own = line["headers"].as_object();
    let mut headers: Headers = match own {
        Some(own) => own
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect(),
        None => headers_of(provider),
    };
    if !content_type.is_empty() && (own.is_none() || !line["form"].is_null()) {
        headers.push(("content-type".to_owned(), content_type.to_owned()));
    }
    let method = line["method"].as_str().unwrap_or("POST");
    let path = line["path"].as_str().expect("a path");
    let reply = send(fake.address(), method, path, &headers, body).await;
    reply.expect("a response")
}

async fn start(provider: Provider, keys: Vec<String>) -> Fake {
    let options = Options {
        keys,
        ..Options::default()
    };
    tollgate_fakes::start(provider, options)
        .await
        .expect("a port")
}

async fn check(provider: Provider, lines: &str) {
    let mut fakes: HashMap<String, Fake> = HashMap::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).expect("a case");
        let name = line["keys"].to_string();
        if !fakes.contains_key(&name) {
            let keys = line["keys"].as_array().into_iter().flatten();
            let keys = keys.filter_map(Value::as_str).map(str::to_owned);
            fakes.insert(name.clone(), start(provider, keys.collect()).await);
        }
        let reply = request(&fakes[&name], provider, &line).await;
        let rule = line["rule"].as_str().unwrap_or_default();
        assert_eq!(reply.header("x-fake-rule"), rule, "{line}");
        let status = if rule.is_empty() { 200 } else { 400 };
        let status = line["status"].as_u64().unwrap_or(status);
        assert_eq!(u64::from(reply.status), status, "{line}");
    }
}

/// The text with ids replaced by `*`: 16 hexadecimal digits or more, the numbers of requests, and base64 of `sig_fake_` with an id.
fn without_ids(text: &str) -> String {
    let mut signed = text.split("c2lnX2Zha2Vf");
    let first = signed.next().unwrap_or_default().to_owned();
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let text = signed.fold(first, |text, rest| {
        text + "*" + rest.trim_start_matches(is_base64)
    });
    let mut rest = text.as_str();
    let mut result = String::new();
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(rest.len());
        let is_id = digits >= 16 || digits == 8 && result.ends_with("req_fake_");
        let end = if is_id { digits } else { digits.max(1) };
        let end = (end..=rest.len())
            .find(|end| rest.is_char_boundary(*end))
            .unwrap_or(rest.len());
        result += if is_id { "*" } else { &rest[..end] };
        rest = &rest[end..];
    }
    result
}

#[tokio::test]
async fn responses_match_the_recorded_ones() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/responses.jsonl");
    let lines = std::fs::read_to_string(&path).expect("the file");
    let bless = std::env::var("TOLLGATE_BLESS").is_ok();
    let mut recorded = String::new();
    let mut fakes: HashMap<String, Fake> = HashMap::new();
    for line in lines.lines() {
        let mut line: Value = serde_json::from_str(line).expect("a case");
        let name = line["provider"].as_str().expect("a provider").to_owned();
        let provider: Provider = name.parse().expect("a known provider");
        if !fakes.contains_key(&name) {
            fakes.insert(name.clone(), start(provider, Vec::new()).await);
        }
        let reply = request(&fakes[&name], provider, &line).await;
        let text = without_ids(&reply.text());
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let mut response = json!([reply.status, reply.header("content-type"), body]);
        if !reply.header("retry-after").is_empty() {
            response[1] = json!(format!("retry-after: {}", reply.header("retry-after")));
        }
        assert!(bless || line["response"] == response, "{line}\n{response}");
        line["response"] = response;
        recorded += &format!("{line}\n");
    }
    if bless {
        std::fs::write(&path, recorded).expect("the file is written");
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
        let fake = start(provider, Vec::new()).await;
        let headers = headers_of(provider).into_iter();
        let headers = headers.map(|(name, value)| (name, json!(value)));
        let mut headers: serde_json::Map<_, _> = headers.collect();
        headers.extend(flow["headers"].as_object().cloned().unwrap_or_default());
        headers.insert("content-type".to_owned(), json!("application/json"));
        let send = async |method: &Value, path: &str, body: &Value| {
            let line = json!({"method": method, "path": path, "body": body, "headers": headers});
            request(&fake, provider, &line).await
        };
        let submit = &flow["submit"];
        let path = submit[1].as_str().expect("a path");
        let started = send(&submit[0], path, &submit[2]).await.json();
        let id = started.pointer(flow["id"].as_str().expect("a pointer"));
        let id = id
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("no id in {started}"));
        for step in flow["steps"].as_array().expect("steps") {
            let path = step[1].as_str().expect("a path").replace("{id}", id);
            let reply = send(&step[0], &path, &step[3]).await;
            let shown = format!("{step} {}", String::from_utf8_lossy(&reply.bytes()));
            match &step[2] {
                Value::String(rule) => assert_eq!(reply.header("x-fake-rule"), rule, "{shown}"),
                Value::Number(status) => {
                    assert_eq!(Some(u64::from(reply.status)), status.as_u64(), "{shown}");
                }
                fields => {
                    for (name, value) in fields.as_object().expect("fields") {
                        let body = reply.json();
                        let slash = if name.starts_with('/') { "" } else { "/" };
                        let found = body.pointer(&format!("{slash}{name}"));
                        assert_eq!(found.unwrap_or(&Value::Null), value, "{shown}");
                    }
                }
            }
        }
    }
}
