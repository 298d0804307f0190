//! HTTP: the server and its connections, request ids and tracing, request bodies and forms, response envelopes.

pub mod admin_error;
pub mod body;
mod body_drain;
pub mod body_memory;
mod body_pace;
pub mod client_address;
mod connections;
pub mod cookies;
pub mod errors;
pub mod form;
pub mod form_json;
mod http2;
pub mod inherited_sockets;
mod json_size;
pub mod large_work;
mod proxy_protocol;
pub mod range;
pub mod reply;
pub mod request_id;
pub mod request_notes;
pub mod server;
pub mod tls;
pub mod trace;

pub use connections::max_within_descriptors;
