//! Requests: read from clients, written for upstreams.

mod choice;
mod conversation;
mod draft;
mod knobs;
mod read;
mod schema;
mod sources;
mod thinking;
mod tools;
mod turns;
mod write;

pub(super) use conversation::wire_id;
pub(super) use knobs::repairs;
pub(super) use read::read;
pub(super) use sources::accepts_url;
pub(super) use write::write;
