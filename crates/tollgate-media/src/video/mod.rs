//! Video models: their families, each declared once in a file of its own, and what follows from that.
//!
//! To add a family: write its file beside the others and its line in [`FAMILIES`].

mod family;
mod job;
mod page;
mod read;
mod size;

mod grok_imagine_video;
mod seedance;
mod seedance_1_0;
mod seedance_1_5_pro;
mod seedance_2_0;
mod sora_2;
mod veo_3_1;

pub use family::Family;
pub use job::{ImageUse, VideoJob, VideoSize};
pub use page::page;
pub(crate) use read::read_for;
pub use size::{Follow, FrameSizes};

/// Every family.
pub static FAMILIES: &[&Family] = &[
    &sora_2::FAMILY,
    &veo_3_1::FAMILY,
    &grok_imagine_video::FAMILY,
    &seedance_1_0::FAMILY,
    &seedance_1_5_pro::FAMILY,
    &seedance_2_0::FAMILY,
];
