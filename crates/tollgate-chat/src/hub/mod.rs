//! The hub: format-independent types for requests, responses and stream events, into which every chat format is translated.
//!
//! Rules that every reader and writer keeps:
//! - A value for which the hub has a field is stored in that field only. Members that only one format has are stored in the nearest [`ExtraFields`];
//!   that format's writer restores them, every other writer lists them in [`crate::WrittenRequest::dropped`].
//! - Reading a request and writing it in the same format reproduces everything that the format defines, except for equivalent spellings (whether
//!   content was one string or a list of one text part is kept in [`Turn::plain`]).
//! - Tool-call arguments are JSON text that is not parsed unless a format needs an object.

mod client_format;
mod client_paths;
mod event;
mod extra_fields;
mod field_names;
mod finish_reason;
mod forced_tool;
mod model_capabilities;
mod namespace_tools;
mod part;
mod request;
mod response;
mod response_builder;
mod tool;
mod tool_names;
mod turn;

pub use client_format::ClientFormat;
pub use event::Event;
pub use extra_fields::ExtraFields;
pub use field_names::RequestField;
pub use finish_reason::FinishReason;
pub use model_capabilities::{
    ModelCapabilities, ReasoningControl, SamplingSupport, SearchWithFunctions, is_default_sampling,
};
pub use namespace_tools::flatten_namespaces;
pub(crate) use namespace_tools::{
    NamespacedName, flat_name, namespaced_custom_tools, namespaced_names,
};
pub(crate) use part::is_essential_item;
pub use part::{Citation, Opaque, Part, PartKind, Source, extract_text};
pub use request::{Effort, OutputFormat, Reasoning, Request};
pub use response::{Choice, Response, Usage};
pub use response_builder::{ResponseBuilder, events_from_response};
pub use tool::{Tool, ToolChoice, ToolKind};
pub use tool_names::{ToolNames, sanitize_id};
pub use turn::{Role, Turn};
