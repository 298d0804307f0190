//! Forwards requests, responses and streams between a client and an upstream that both use Messages, with as few changed bytes as possible.

mod event_lines;
mod json_edits;
mod member_changes;
mod request;
mod response;
mod stream;

pub(crate) use request::forward_request;
pub(crate) use response::forward_response;
pub(crate) use stream::Forwarder;
