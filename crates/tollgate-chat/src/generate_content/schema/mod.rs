//! The two schema dialects of generateContent.
//!
//! `parameters` and `responseSchema` accept an older dialect, a subset of OpenAPI 3.0 schemas with types in capitals; `parametersJsonSchema` and
//! `responseJsonSchema` accept a subset of JSON Schema.
//! The API rejects a request with an unknown keyword in either, so both are written from a list of
//! supported keywords. A *property* named like a keyword is not a keyword, at any depth.

mod json_schema;
mod openapi_schema;

pub(super) use json_schema::{is_empty, narrow_to_supported, to_json_schema};
pub(super) use openapi_schema::to_openapi_schema;
