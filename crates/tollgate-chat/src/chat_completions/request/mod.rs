//! Requests between this format and the hub.

mod messages_read;
mod messages_write;
mod parts;
mod read;
mod tools;
mod value;
mod write;

pub(super) use read::read;
pub(super) use write::write;

pub(super) use messages_read::reasoning;
pub(super) use parts::image_url;
pub(super) use write::{capped, effort_for};
