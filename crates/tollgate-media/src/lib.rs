//! What each model takes: families, the catalogue of model ids, and the normalised job that providers get.
//!
//! Knows no tokio, no HTTP server and no SQL: JSON in, a job or a clear error out.

pub mod catalogue;
mod endpoint;
pub mod image;
mod text;

pub use catalogue::{Catalogue, ExtraModel};
pub use endpoint::Endpoint;
