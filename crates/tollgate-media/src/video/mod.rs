//! Video models: one file per family (such as `sora_2.rs`), and the code that the families share.
//!
//! To add a family: write its file and list it in `families.rs`; CONTRIBUTING.md has the checklist.

pub mod families;
mod family;
pub mod job;
mod page;
mod parse;
mod rules;
mod size;

mod grok_imagine_video;
mod seedance;
mod seedance_1_0;
mod seedance_1_5_pro;
mod seedance_2_0;
mod sora_2;
mod veo_3_1;

pub use families::FAMILIES;
pub use family::Family;
pub use job::{ImageUse, VideoJob, VideoSize};
pub use page::page;
pub(crate) use parse::parse_request;
pub use size::{FollowFirstFrame, FrameSizes};
