//! Speech models: one file per family (`native_v3.rs`), and the code that the families share.
//!
//! To add a family: write its file and list it in `families.rs`; CONTRIBUTING.md has the checklist.

pub mod families;
mod family;
pub mod job;
mod native_v3;
mod page;
mod parse;

pub use families::FAMILIES;
pub use family::Family;
pub use job::SpeechJob;
pub use page::page;
pub(crate) use parse::parse_request;
