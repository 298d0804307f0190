//! A form as the JSON body that says the same: for endpoints that take both.

use std::io::Cursor;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};
use serde_json::{Map, Value};
use tollgate_core::{ApiError, ErrorKind};
use tollgate_media::image::facts;

use super::body::{BodyBudget, DATA_URI_LIMIT, JsonBody, drain_unread, read_json};
use super::form::{Form, FormError};

/// Fields that a form may have.
const FIELDS_MAX: usize = 64;
/// Fields whose text is a number in JSON.
const NUMBERS: [&str; 3] = ["duration", "n", "seed"];
/// Fields whose text is JSON itself.
const OBJECTS: [&str; 1] = ["metadata"];

/// Reads a JSON body or a form. Of a form, pictures become data URIs, a name that comes several times (or ends in `[]`) a
/// list, `metadata` the object that it is the text of.
///
/// # Errors
/// As [`read_json`]; 400 for a form that is none or holds a file that is no picture.
pub async fn read_json_or_form(
    headers: &HeaderMap,
    body: Body,
    budget: &BodyBudget,
) -> Result<JsonBody, ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|v| v.to_str().ok()).unwrap_or("");
    let is_form = content_type
        .trim_start()
        .get(..9)
        .is_some_and(|start| start.eq_ignore_ascii_case("multipart"));
    if !is_form {
        return read_json(headers, body, DATA_URI_LIMIT, budget).await;
    }
    let declared = headers.get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|bytes| bytes > DATA_URI_LIMIT) {
        drain_unread(headers, body).await;
        return Err(too_large());
    }
    // Base64 takes a third more, beside the file itself.
    let memory = budget.take(declared.unwrap_or(DATA_URI_LIMIT)).await?;
    let mut body = body;
    let value = fields(headers, &mut body).await.map(Value::Object);
    if value.is_err() {
        drain_unread(headers, body).await;
    }
    Ok(JsonBody::of(value?, memory))
}

async fn fields(headers: &HeaderMap, body: &mut Body) -> Result<Map<String, Value>, ApiError> {
    let mut form = Form::read(headers, body, DATA_URI_LIMIT as u64).map_err(refused)?;
    let mut fields = Map::new();
    for _ in 0..FIELDS_MAX {
        let Some(mut field) = form.next_field().await.map_err(refused)? else {
            return Ok(fields);
        };
        let name = field.name().unwrap_or_default().to_owned();
        let is_file = field.file_name().is_some();
        let mut bytes = Vec::new();
        while let Some(chunk) = form.chunk(&mut field).await.map_err(refused)? {
            bytes.extend_from_slice(&chunk);
        }
        drop(field);
        let value = if is_file {
            picture(&name, &bytes)?
        } else {
            text(&name, bytes)?
        };
        put(&mut fields, &name, value);
    }
    Err(ApiError::invalid(format!(
        "the form has more than {FIELDS_MAX} fields"
    )))
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let (name, is_list) = match name.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (name, false),
    };
    match fields.get_mut(name) {
        Some(Value::Array(items)) => items.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
        None if is_list => drop(fields.insert(name.to_owned(), Value::Array(vec![value]))),
        None => drop(fields.insert(name.to_owned(), value)),
    }
}

fn picture(name: &str, bytes: &[u8]) -> Result<Value, ApiError> {
    let found = facts::read(Cursor::new(bytes), bytes.len() as u64);
    let found = found.map_err(|e| {
        ApiError::invalid(format!("the file of field `{name}` must be an image: {e}"))
    })?;
    let media_type = found.format.media_type();
    let data = STANDARD.encode(bytes);
    Ok(format!("data:{media_type};base64,{data}").into())
}

fn text(name: &str, bytes: Vec<u8>) -> Result<Value, ApiError> {
    let text = String::from_utf8(bytes)
        .map_err(|_| ApiError::invalid(format!("field `{name}` must be UTF-8 text")))?;
    if OBJECTS.contains(&name) {
        return serde_json::from_str(&text)
            .map_err(|e| ApiError::invalid(format!("field `{name}` must be JSON: {e}")));
    }
    let number = NUMBERS.contains(&name).then(|| text.trim().parse::<i64>());
    Ok(match number {
        Some(Ok(number)) => number.into(),
        _ => text.into(),
    })
}

fn refused(error: FormError) -> ApiError {
    match error {
        FormError::TooLarge => too_large(),
        FormError::Broken(why) => ApiError::invalid(why),
    }
}

fn too_large() -> ApiError {
    let most = DATA_URI_LIMIT / 1_048_576;
    let message = format!("the form is too large: at most {most} MB are allowed");
    ApiError::new(ErrorKind::TooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(parts: &[(&str, Option<&str>, &[u8])]) -> Result<Value, ApiError> {
        let mut body = Vec::new();
        for (name, file, content) in parts {
            let file = file.map_or(String::new(), |file| format!("; filename=\"{file}\""));
            let head =
                format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
            body.extend(head.as_bytes());
            body.extend(*content);
            body.extend(b"\r\n");
        }
        body.extend(b"--b--\r\n");
        let mut headers = HeaderMap::new();
        let content_type = "Multipart/form-data; boundary=b".parse().unwrap();
        headers.insert(header::CONTENT_TYPE, content_type);
        let budget = BodyBudget::new(64);
        let read = read_json_or_form(&headers, body.into(), &budget).await;
        read.map(|body| body.value)
    }

    #[tokio::test]
    async fn a_form_says_what_json_would() {
        let gif = b"GIF89a\x02\0\x03\0\0\0\0\x2c";
        let read = read(&[
            ("prompt", None, b"a \xe7\x8c\xab"),
            ("seconds", None, b"8"),
            ("duration", None, b"8"),
            ("metadata", None, br#"{"seed": 5}"#),
            ("images[]", None, b"https://a/b.png"),
            ("images[]", None, b"https://a/c.png"),
            ("input_reference", Some("x.gif"), gif),
        ])
        .await;
        let expected = serde_json::json!({
            "prompt": "a 猫",
            "seconds": "8",
            "duration": 8,
            "metadata": { "seed": 5 },
            "images": ["https://a/b.png", "https://a/c.png"],
            "input_reference": format!("data:image/gif;base64,{}", STANDARD.encode(gif)),
        });
        assert_eq!(read.unwrap(), expected);
    }

    #[tokio::test]
    async fn what_does_not_fit_is_named() {
        for (parts, says) in [
            (
                ("input_reference", Some("x.png"), b"text".as_slice()),
                "`input_reference`",
            ),
            (("metadata", None, b"{"), "`metadata`"),
            (("prompt", None, b"\xff"), "`prompt`"),
        ] {
            let error = read(&[parts]).await.unwrap_err();
            assert_eq!(error.kind.status(), 400);
            assert!(error.message.contains(says), "{}", error.message);
        }
    }
}
