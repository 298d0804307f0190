//! Requests, to and from the hub.

mod echo;
mod history;
mod items;
mod pairs;
mod read;
mod tools;
mod write;

pub(super) use echo::echo;
pub(super) use history::write_annotation;
pub(super) use items::{read_annotation, read_annotations};
pub(super) use read::read_request;
pub(super) use write::write_request;
