//! The four chat formats and the hub types that translate between them.
//!
//! The crate converts bytes to bytes: no network, clock or database. A format is one folder and one entry in [`FORMATS`]. Every format reads
//! requests, responses and streams into the types of [`hub`] and writes them from there, so that four formats need four readers
//! and four writers instead of twelve translators. If client and upstream use the same format, nothing is translated:
//! [`Format::forward_request`], [`Format::forward_response`] and [`Format::stream_forwarder`] pass the bytes on, replace the
//! model's name and read the usage.

mod attachments;
pub mod chat_completions;
pub mod custom_tool;
pub mod error;
mod escaped_letters;
pub mod field_table;
pub mod format;
mod formats;
pub mod generate_content;
pub mod hub;
mod json_text;
pub mod json_tool;
pub mod lazy_json;
pub mod media;
pub mod messages;
mod open_ended;
mod openai_error;
mod openai_service_tiers;
mod operator_costs;
mod output_cap;
pub mod provider_options;
pub mod responses;
pub mod sse;
mod strict_schema;
#[cfg(test)]
mod test_tables;
pub mod thoughts;
pub mod tokens;

pub use attachments::{HeldAttachments, held_attachments};
pub use error::{ErrorBody, InvalidRequest, MalformedResponse, UpstreamError};
pub use format::{
    FieldProbes, Format, ForwardedChunk, ForwardedRequest, ForwardedResponse, RenderOptions,
    RequestSummary, StreamForwarder, StreamReader, StreamWriter, Target, Thread, WrittenRequest,
};
pub use formats::{FORMATS, by_name};
pub use open_ended::has_open_ended_prompt;
