//! The OpenAPI 3.1 document of the client API, generated from the declarations of the families.

pub mod chat;
mod document;
pub(super) mod endpoint;
mod parts;
