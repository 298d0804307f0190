//! The wire: what a piece of a reply looks like.

pub(super) mod attachments;
mod chunk;
mod scan;

pub(super) use chunk::{Candidate, Chunk};
pub(super) use scan::{Scan, splice_model};
