//! The response object under construction, shared by complete (non-streaming) responses and
//! streams.

mod builder;
mod item;
mod request_echo;
mod response_object;

pub(super) use builder::OutputBuilder;
pub(super) use item::{ItemBody, OutputItem, TextPart, TextPartKind};
pub(super) use response_object::ResponseObject;
