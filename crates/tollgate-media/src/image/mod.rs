//! Image models: one file per family (such as `seedream_5_lite.rs`), and the code that the families share.
//!
//! To add a family: write its file and list it in `families.rs`; CONTRIBUTING.md has the checklist.

pub mod families;
pub mod family;
pub mod format;
pub mod job;
pub mod metadata;
mod page;
mod parse;
mod rules;
pub mod size;

mod gemini;
mod gemini_2_5_flash_image;
mod gemini_3_1_flash_image;
mod gemini_3_pro_image;
mod gpt_image_1;
mod gpt_image_2;
mod gpt_image_2_5_async;
mod grok_imagine;
mod grok_imagine_edit;
mod imagen_4;
mod seedream;
mod seedream_4_5;
mod seedream_5_lite;
mod wan2_7;

pub use crate::input::{ImageSource, InputImage};
pub use families::FAMILIES;
pub use family::Family;
pub use format::{ImageFormat, PixelSize};
pub use job::{Background, ImageJob, Moderation, Size};
pub use metadata::{ImageMetadata, ImageMetadataError};
pub use page::page;
pub use parse::{Submission, parse_request};
