//! Forwards requests, responses and streams between a client and an upstream that both use Responses, with as few changed bytes as possible.

mod event_splitter;
mod json_edits;
mod request;
mod response;
mod stream;
mod text_bytes;

pub(super) use request::forward_request;
pub(super) use response::forward_response;
pub(super) use stream::Forwarder;
