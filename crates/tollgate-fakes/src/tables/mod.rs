//! The engine that reads the tables of a provider: what it accepts, rejects and answers.

mod answer;
pub(crate) mod chat;
pub(crate) mod endpoint;
pub(crate) mod expr;
pub(crate) mod functions;
mod media_functions;
pub(crate) mod path;
mod route;
mod rule;
pub(crate) mod schema;
pub(crate) mod scope;
pub(crate) mod spec;
pub(crate) mod task;
pub(crate) mod template;
