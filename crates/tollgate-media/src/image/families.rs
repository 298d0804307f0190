//! The registry of image families.

use super::family::Family;
use super::{
    gemini_2_5_flash_image, gemini_3_1_flash_image, gemini_3_pro_image, gpt_image_1, gpt_image_2,
    gpt_image_2_5_async, grok_imagine, grok_imagine_edit, imagen_4, seedream_4_5, seedream_5_lite,
    wan2_7,
};

/// Every image family, in the order of the docs index.
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

/// The family with that name, such as the `family` of a stored job.
pub fn by_name(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name).copied()
}
