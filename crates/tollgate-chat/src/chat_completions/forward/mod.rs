//! Passes requests, responses and streams on between client and upstream of this format, changing only what must change.

mod request;
mod response;
mod response_scan;
mod stream;

pub(super) use request::forward_request;
pub(super) use response::forward_response;
pub(super) use stream::Forwarder;
