//! Image models: their families, each declared once in a file of its own, and what follows from that.
//!
//! To add a family: write its file beside the others and its line in [`FAMILIES`].

pub mod facts;
pub mod family;
pub mod job;
mod page;
mod read;
mod rules;
mod schema;
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

use crate::form::{Draft, field, values};
use crate::{input, shape};

pub use crate::input::{Input, InputRole, InputSource};
pub use crate::submission::PriceFacts;
pub use facts::{FactsError, ImageFacts};
pub use family::{Family, LinkLife};
pub use job::{Background, ImageFormat, ImageJob, InputImage, Moderation, PixelSize, Size, Source};
pub use page::page;
pub(crate) use read::read_for;
pub use read::{Submission, read};
pub use schema::schema;

/// Every family.
pub static FAMILIES: &[&Family] = &[
    &gpt_image_2::FAMILY,
    &gpt_image_1::FAMILY,
    &gpt_image_2_5_async::FAMILY,
    &seedream_4_5::FAMILY,
    &seedream_5_lite::FAMILY,
    &grok_imagine::FAMILY,
    &grok_imagine_edit::FAMILY,
    &imagen_4::FAMILY,
    &gemini_2_5_flash_image::FAMILY,
    &gemini_3_1_flash_image::FAMILY,
    &gemini_3_pro_image::FAMILY,
    &wan2_7::FAMILY,
];
