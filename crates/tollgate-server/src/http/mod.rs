//! What every request passes through: ids, log line and numbers; bodies in; envelopes out.

pub mod body;
pub mod form;
mod leftover;
pub mod reply;
pub mod trace;
