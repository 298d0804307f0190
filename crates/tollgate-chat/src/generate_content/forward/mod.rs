//! Forwards requests, responses and streams between a client and an upstream that both use generateContent, with as few changed bytes as possible.

mod chunk_summary;
mod event_bytes;
mod output_cap;
mod request;
mod response;
mod stream;

pub(super) use output_cap::add_output_cap;
pub(super) use request::forward_request;
pub(super) use response::forward_response;
pub(super) use stream::Forwarder;
