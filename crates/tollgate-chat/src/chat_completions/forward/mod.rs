//! Passes requests, responses and streams on between client and upstream of this format, changing only what must change.

mod output_cap;
mod request;
mod response;
mod response_summary;
mod stream;

pub(super) use output_cap::add_output_cap;
pub(super) use request::forward_request;
pub(super) use response::forward_response;
pub(super) use stream::Forwarder;
