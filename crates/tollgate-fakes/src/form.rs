//! Reads bodies of `multipart/form-data`.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use multer::Multipart;
use serde_json::{Map, Value};

use crate::tables::path::PathStyle;
use crate::tables::schema::{Kind, Schemas};

/// One part of a form.
#[derive(Debug, Clone)]
pub struct Part {
    /// The name of the field, including `[]` if it has that.
    pub name: String,
    /// The file name of the part; a part without one is text.
    pub filename: Option<String>,
    /// The part's own media type, if it declares one.
    pub content_type: Option<String>,
    /// The content of the part.
    pub bytes: Bytes,
}

/// The parts of a body with this `Content-Type`; empty if it is not a valid form.
pub(crate) async fn parse_parts(content_type: &str, body: &Bytes) -> Vec<Part> {
    let Ok(boundary) = multer::parse_boundary(content_type) else {
        return Vec::new();
    };
    let body = body.clone();
    let once = stream::once(async move { Ok::<_, Infallible>(body) });
    let mut form = Multipart::new(once, boundary);
    let mut parts = Vec::new();
    loop {
        match form.next_field().await {
            Ok(Some(field)) => {
                let name = field.name().unwrap_or_default().to_owned();
                let filename = field.file_name().map(str::to_owned);
                let content_type = field.content_type().map(ToString::to_string);
                let Ok(bytes) = field.bytes().await else {
                    return Vec::new();
                };
                parts.push(Part {
                    name,
                    filename,
                    content_type,
                    bytes,
                });
            }
            Ok(None) => return parts,
            Err(_) => return Vec::new(),
        }
    }
}

/// The text parts as an object, whose fields have the types of the schema: in the form, all of them are text.
pub(crate) fn form_object(parts: &[Part], schema: &str, schemas: &Schemas) -> Value {
    let mut object = Map::new();
    for part in parts.iter().filter(|part| part.filename.is_none()) {
        let text = String::from_utf8_lossy(&part.bytes).into_owned();
        let schema = schemas.get(schema);
        let kind = schema.and_then(|schema| schema.field(&part.name, PathStyle::Brackets, schemas));
        let value = match kind {
            Some(Kind::Int(..) | Kind::Number(..) | Kind::Bool) => {
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            }
            _ => Value::String(text),
        };
        object.insert(part.name.clone(), value);
    }
    Value::Object(object)
}
