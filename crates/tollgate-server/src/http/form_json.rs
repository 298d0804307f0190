//! Converts a multipart form to the equivalent JSON body, for endpoints that accept both.

use std::io::Cursor;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};
use serde_json::{Map, Value};
use tollgate_core::{ApiError, ErrorKind};
use tollgate_media::image::ImageMetadata;

use super::body::{JsonBody, drain_unread, read_json};
use super::body_memory::{BodyMemory, MAX_BODY_WITH_FILES, UserBudget};
use super::form::{Form, FormError};
use super::large_work;

/// Fields that a form may have.
const MAX_FIELDS: usize = 64;
/// Fields that are numbers in JSON.
const NUMBER_FIELDS: [&str; 3] = ["duration", "n", "seed"];
/// Fields whose text is JSON.
const JSON_FIELDS: [&str; 1] = ["metadata"];

/// Reads a JSON body or a form. In a form, images become data URIs, a name that occurs several times (or ends in `[]`)
/// becomes an array, `duration`, `n` and `seed` become numbers, and the text of `metadata` is parsed as JSON.
///
/// # Errors
/// Those of [`read_json`]; 400 for a malformed form, more than 64 fields, a file that is not an image, or a field that is not of its type.
pub async fn read_json_or_form(
    headers: &HeaderMap,
    body: Body,
    budget: UserBudget<'_>,
) -> Result<JsonBody, ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|v| v.to_str().ok()).unwrap_or("");
    let is_form = content_type
        .trim_start()
        .get(..9)
        .is_some_and(|start| start.eq_ignore_ascii_case("multipart"));
    if !is_form {
        return read_json(headers, body, MAX_BODY_WITH_FILES, budget).await;
    }
    let declared = headers.get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|bytes| bytes > MAX_BODY_WITH_FILES) {
        drain_unread(headers, body);
        return Err(too_large());
    }
    let mut memory = BodyMemory::default();
    let mut body = body;
    let fields = read_fields(headers, &mut body, &mut memory, budget).await;
    if fields.is_err() {
        drain_unread(headers, body);
    }
    let (fields, bytes) = fields?;
    Ok(JsonBody::new(Value::Object(fields), bytes, memory))
}

/// Reads the fields of a form; also returns their size in bytes.
async fn read_fields(
    headers: &HeaderMap,
    body: &mut Body,
    memory: &mut BodyMemory,
    budget: UserBudget<'_>,
) -> Result<(Map<String, Value>, usize), ApiError> {
    let mut form = Form::new(headers, body, MAX_BODY_WITH_FILES as u64).map_err(form_error)?;
    let mut fields = Map::new();
    let (mut len, mut planned) = (0, 0);
    for _ in 0..=MAX_FIELDS {
        let Some(mut field) = form.next_field().await.map_err(form_error)? else {
            return Ok((fields, len));
        };
        let name = field.name().unwrap_or_default().to_owned();
        let is_file = field.file_name().is_some();
        let mut bytes = Vec::new();
        while let Some(chunk) = form.next_chunk(&mut field).await.map_err(form_error)? {
            bytes.extend_from_slice(&chunk);
            len += chunk.len();
            // Memory is acquired as bytes are received; files need a third more as base64.
            if len > planned {
                planned = 2 * len;
                memory.grow_to(planned, budget).await?;
            }
        }
        drop(field);
        let value = if is_file {
            large_work::run_in_place(bytes.len(), || parse_image(&name, &bytes))?
        } else {
            parse_text(&name, bytes)?
        };
        insert_field(&mut fields, &name, value);
    }
    Err(ApiError::invalid(format!(
        "the form has more than {MAX_FIELDS} fields"
    )))
}

fn insert_field(fields: &mut Map<String, Value>, name: &str, value: Value) {
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

fn parse_image(name: &str, bytes: &[u8]) -> Result<Value, ApiError> {
    let found = ImageMetadata::read(Cursor::new(bytes), bytes.len() as u64);
    let found = found.map_err(|e| {
        ApiError::invalid(format!("the file of field `{name}` must be an image: {e}"))
    })?;
    let media_type = found.format.media_type();
    let data = STANDARD.encode(bytes);
    Ok(format!("data:{media_type};base64,{data}").into())
}

fn parse_text(name: &str, bytes: Vec<u8>) -> Result<Value, ApiError> {
    let text = String::from_utf8(bytes)
        .map_err(|_| ApiError::invalid(format!("field `{name}` must be UTF-8 text")))?;
    if JSON_FIELDS.contains(&name) {
        return serde_json::from_str(&text)
            .map_err(|e| ApiError::invalid(format!("field `{name}` must be JSON: {e}")));
    }
    if !NUMBER_FIELDS.contains(&name) {
        return Ok(text.into());
    }
    let number = text.trim().parse::<i64>().map_err(|_| {
        let shown: String = text.chars().take(80).collect();
        ApiError::invalid(format!(
            "field `{name}` must be a whole number, got {shown:?}"
        ))
    })?;
    Ok(number.into())
}

fn form_error(error: FormError) -> ApiError {
    match error {
        FormError::TooLarge => too_large(),
        FormError::Malformed(why) => ApiError::invalid(why),
    }
}

fn too_large() -> ApiError {
    let limit = MAX_BODY_WITH_FILES / 1_048_576;
    let message = format!("the form is too large: at most {limit} MB are allowed");
    ApiError::new(ErrorKind::TooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::super::body_memory::BodyBudget;
    use super::*;

    async fn read_form(parts: &[(&str, Option<&str>, &[u8])]) -> Result<Value, ApiError> {
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
        let read = read_json_or_form(&headers, body.into(), budget.of_user("ada")).await;
        read.map(|body| body.value)
    }

    #[tokio::test]
    async fn a_form_becomes_the_equivalent_json_body() {
        let gif = b"GIF89a\x02\0\x03\0\0\0\0\x2c";
        let read = read_form(&[
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
    async fn a_form_may_have_as_many_fields_as_the_error_states() {
        let field = ("images[]", None, b"https://a/b.png".as_slice());
        assert!(read_form(&[field; MAX_FIELDS]).await.is_ok());
        let error = read_form(&[field; MAX_FIELDS + 1]).await.unwrap_err();
        assert_eq!(error.message, "the form has more than 64 fields");
    }

    #[tokio::test]
    async fn the_error_names_the_field_with_invalid_content() {
        for (parts, message) in [
            (
                ("input_reference", Some("x.png"), b"text".as_slice()),
                "`input_reference`",
            ),
            (("metadata", None, b"{"), "`metadata`"),
            (("prompt", None, b"\xff"), "`prompt`"),
            (
                ("duration", None, b"8 s"),
                "`duration` must be a whole number, got \"8 s\"",
            ),
        ] {
            let error = read_form(&[parts]).await.unwrap_err();
            assert_eq!(error.kind.status(), 400);
            assert!(error.message.contains(message), "{}", error.message);
        }
    }
}
