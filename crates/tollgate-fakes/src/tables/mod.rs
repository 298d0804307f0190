//! The engine that interprets the tables of a provider: which requests it accepts or rejects, and its responses.

pub(crate) mod chat;
mod check;
mod endpoint;
mod eval;
mod functions;
mod media_functions;
mod media_work;
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
