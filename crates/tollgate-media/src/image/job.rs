//! [`ImageJob`]: a validated image request with every default filled in, as providers receive it.
//!
//! Stored with the task as JSON, so every version must still read the jobs that older versions wrote.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::format::{ImageFormat, PixelSize};
use crate::input::input_image::{InputImage, InputRole};
use crate::media_job::{MediaJob, Units};

/// The requested size. Result images have `pixels`; `ratio` and `tier` are for providers that accept those instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// The exact size. `None` only while it follows a reference that is not fetched yet;
    /// [`Family::apply_reference_metadata`](super::Family::apply_reference_metadata) fills it in.
    pub pixels: Option<PixelSize>,
    /// The ratio as the family writes it (`16:9`), or `auto`. `None` if the client requested pixels.
    pub ratio: Option<String>,
    /// The resolution tier as the family writes it (`1k`, `2K`). `None` if the family has no tiers.
    pub tier: Option<String>,
}

/// `background` of the gpt-image families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// Chosen by the model.
    Auto,
    /// No transparency.
    Opaque,
    /// Transparent around the subject.
    Transparent,
}

/// `moderation` of the gpt-image families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Moderation {
    /// Standard filtering.
    Auto,
    /// Less restrictive filtering.
    Low,
}

/// One image request: every default filled in, every value valid for its family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageJob {
    /// The model id as the client wrote it.
    pub model: String,
    /// The family's name, such as `seedream-5-lite`.
    pub family: String,
    /// The prompt. Empty only if the family allows that (wan2.7 with references).
    pub prompt: String,
    /// What the images must not show. `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative_prompt: Option<String>,
    /// Number of images to generate and to hold money for; at least 1.
    pub n: u32,
    /// The size of the images.
    pub size: Size,
    /// `low`, `medium`, `high`, `auto`, … `None` if the family has no `quality` field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<String>,
    /// The format of the result files.
    pub output_format: ImageFormat,
    /// The quality of JPEG and WebP files, 0 to 100. `None` if not requested, and for other formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_compression: Option<u8>,
    /// Whether the background is transparent. `None` if the family has no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// How much the provider filters. `None` if the family has no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moderation: Option<Moderation>,
    /// Random seed: the same seed and parameters give similar results. `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether a visible watermark is added. `None` if the family has no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<bool>,
    /// Reference images in the client's order. If there are any, the model edits or follows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<InputImage>,
    /// The inpainting mask: its fully transparent pixels are repainted. `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<InputImage>,
    /// Fields that only this family has, by their request names, validated and with defaults filled in (`thinking_mode`,
    /// `bbox_list`, `color_palette`, `enable_sequential`, `engine_search`, …).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl MediaJob for ImageJob {
    fn model(&self) -> &str {
        &self.model
    }

    fn family(&self) -> &str {
        &self.family
    }

    fn prompt(&self) -> &str {
        &self.prompt
    }

    fn units(&self) -> Units {
        Units::Images(self.n)
    }

    fn pixels(&self) -> Option<PixelSize> {
        self.size.pixels
    }

    fn tier(&self) -> Option<&str> {
        self.size.tier.as_deref()
    }

    fn echoed_fields(&self) -> Map<String, Value> {
        Map::new()
    }

    fn input_images(&self) -> Vec<(InputRole, &InputImage)> {
        let references = self.references.iter().enumerate();
        let references = references.map(|(index, image)| (InputRole::Reference(index), image));
        let mask = self.mask.iter().map(|image| (InputRole::Mask, image));
        references.chain(mask).collect()
    }

    fn add_input_image(&mut self, role: InputRole, image: InputImage) {
        match role {
            InputRole::Reference(_) => self.references.push(image),
            InputRole::Mask => self.mask = Some(image),
        }
    }
}
