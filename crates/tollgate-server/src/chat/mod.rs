//! Chat: `handler` handles a request in numbered steps; the other files are its steps.

pub mod allowed_options;
pub mod billing;
pub mod bounds;
pub mod client_watch;
pub mod complete;
pub mod context;
pub mod converter;
pub mod count_tokens;
pub mod endpoint;
pub mod error;
pub mod fetch_urls;
pub mod handler;
pub mod http_response;
pub mod models;
pub mod part_charges;
pub mod priced_request;
pub mod read_on;
pub mod request;
pub mod response_memory;
pub mod sealed_memory;
pub mod signature_cache;
pub mod stored_conversations;
pub mod stream;
pub mod stream_watch;
pub mod translate;
