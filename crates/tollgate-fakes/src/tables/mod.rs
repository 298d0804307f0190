//! The engine that reads the tables of a provider: what it accepts, rejects and answers.

mod answer;
pub(crate) mod chat;
mod check;
mod endpoint;
mod eval;
mod functions;
mod media_functions;
pub(crate) mod path;
mod record;
pub(crate) mod request_read;
mod route;
mod rule;
pub(crate) mod schema;
pub(crate) mod scope;
pub(crate) mod spec;
pub(crate) mod syntax;
mod task;
pub(crate) mod values;
mod work;
