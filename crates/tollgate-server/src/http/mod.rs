//! What every request passes through: ids, log line and numbers; bodies in; envelopes out.

pub mod body;
pub mod form;
pub mod form_json;
mod leftover;
pub mod reply;
pub mod trace;
