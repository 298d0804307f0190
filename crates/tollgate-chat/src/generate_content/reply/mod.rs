//! Whole replies.

mod read;
mod write;

pub(super) use read::{part as read_part, read};
pub(super) use write::{part as write_part, prompt_feedback, write};
