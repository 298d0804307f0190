//! The engine that reads the tables of a provider: what it accepts, rejects and answers.

pub(crate) mod endpoint;
pub(crate) mod expr;
pub(crate) mod functions;
pub(crate) mod path;
pub(crate) mod schema;
pub(crate) mod scope;
pub(crate) mod spec;
pub(crate) mod task;
pub(crate) mod template;
