//! The four chat formats and the hub between them.
//!
//! Bytes in, bytes out: nothing here knows a network, a clock or a database. A format is one folder and one line in
//! [`FORMATS`]. Every format reads its requests, replies and streams into the hub's form ([`hub`]) and writes them
//! from it, so four formats need four readers and four writers, not twelve translators. Where both sides speak the same
//! format nothing of that happens: [`Format::forward_request`], [`Format::forward_reply`] and [`Format::forward_stream`] pass
//! the bytes on and only rewrite the model's name and read the usage.

pub mod chat_completions;
pub mod custom_tool;
pub mod error;
pub mod format;
pub mod generate_content;
pub mod hub;
pub mod json_tool;
pub mod media;
pub mod messages;
pub mod responses;
pub mod scan;
pub mod sse;
mod text;
pub mod tokens;

pub use error::{Bad, ErrorWords, Garbled, WireError};
pub use format::{
    Answer, Format, Forwarded, Glance, Rendering, StreamForward, StreamReader, StreamWriter,
    Target, Written,
};

/// Every chat format, in SPEC.md's order.
pub static FORMATS: &[&dyn Format] = &[
    &chat_completions::ChatCompletions,
    &responses::Responses,
    &messages::Messages,
    &generate_content::GenerateContent,
];

/// The format of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}
