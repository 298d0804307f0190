//! Image models: their families, each declared once in a file of its own, and what follows from that.
//!
//! To add a family: write its file beside the others and its line in [`FAMILIES`].

mod draft;
pub mod facts;
pub mod family;
pub mod field;
pub mod input;
pub mod job;
mod page;
mod read;
mod rules;
mod schema;
pub mod shape;
pub mod size;
mod values;

mod gpt_image_2;
mod seedream;
mod seedream_5_lite;

pub use facts::{FactsError, ImageFacts};
pub use family::{Family, LinkLife};
pub use input::{Input, InputRole, InputSource};
pub use job::{Background, ImageFormat, ImageJob, InputImage, Moderation, PixelSize, Size, Source};
pub use page::page;
pub use read::{PriceFacts, Submission, read};
pub use schema::schema;
pub use shape::{
    ReceiptFacts, ResultImage, TaskFacts, bare_record, generation_record, receipt, record,
};

/// Every family.
pub static FAMILIES: &[&Family] = &[&gpt_image_2::FAMILY, &seedream_5_lite::FAMILY];
