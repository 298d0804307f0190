//! Declarations of request fields, and the parts generated from them: the parser, the JSON Schema and the tables of the docs pages.

pub(crate) mod draft;
pub mod duration;
pub mod field;
mod image_inputs;
pub(crate) mod page;
pub(crate) mod parse;
pub(crate) mod schema;
pub mod spec;
mod values;

pub use field::{DefaultValue, Field, FieldKind};
