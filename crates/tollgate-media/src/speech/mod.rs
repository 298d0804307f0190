//! Speech models: their families, each declared once in a file of its own, and what follows from that.

mod family;
mod job;
mod native_v3;
mod page;
mod read;

pub use family::Family;
pub use job::SpeechJob;
pub use page::page;
pub(crate) use read::read_for;

/// Every family.
pub static FAMILIES: &[&Family] = &[&native_v3::FAMILY];
