//! The form between the formats: what a conversation, a reply and a stream are, whoever says them.
//!
//! Rules that every reader and writer keeps:
//! - What a format knows and the hub has a field for goes into that field, nowhere else. What only that format knows goes into
//!   the nearest [`Own`]; its own writer puts it back, every other writer names it in `Written::dropped`.
//! - Reading a request and writing it in the same format is the identity on everything the format knows, but for spellings that mean
//!   the same (a string content and a single text part keep their form by [`Turn::plain`]).
//! - Tool-call arguments are JSON text, never parsed unless a format needs an object.

mod event;
mod fold;
mod names;
mod own;
mod part;
mod reply;
mod request;
mod traits;

pub use event::{Event, Finish};
pub use fold::{Fold, events_of};
pub use names::{Field, ToolNames, fitting_id};
pub use own::Own;
pub use part::{Citation, Kind, Opaque, Part, Source, text_in};
pub use reply::{Choice, Reply, Usage};
pub use request::{
    Effort, OutputFormat, Reasoning, Request, Role, Tool, ToolChoice, ToolKind, Turn,
};
pub use traits::{ModelTraits, Sampling, Thinking};
