//! Tests of the chat formats through the crate's public face.

mod chat_completions;
mod generate_content;
mod golden;
mod messages;
mod responses;
