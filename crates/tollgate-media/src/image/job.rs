//! The normalised image job: what a family's validation makes of a request and what a provider gets.
//!
//! It is stored with the task as JSON, so every change here must still read what older versions wrote.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::input::InputRole;
use crate::job::{MediaJob, Units};

/// A picture's size in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PixelSize {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

impl PixelSize {
    /// A size of `width` × `height` pixels.
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// All its pixels.
    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}

impl std::fmt::Display for PixelSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The size of the pictures to make. `pixels` is what the gateway promises; `ratio` and `tier` are
/// there for providers that take those instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// The exact size, once it is known. None only while it follows a reference that has not been
    /// fetched yet; [`Family::settle`](super::Family::settle) fills it in.
    pub pixels: Option<PixelSize>,
    /// The ratio as the family writes it (`16:9`), `auto`, or none when pixels were asked for.
    pub ratio: Option<String>,
    /// The tier as the family writes it (`1k`, `2K`), where it has tiers.
    pub tier: Option<String>,
}

/// File formats that results come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// `image/png`.
    Png,
    /// `image/jpeg`.
    Jpeg,
    /// `image/webp`.
    Webp,
    /// `image/gif`: uploads only.
    Gif,
    /// `image/bmp`: references of wan2.7 only.
    Bmp,
}

impl ImageFormat {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Png, Self::Jpeg, Self::Webp, Self::Gif, Self::Bmp];

    /// The lower-case name, such as `jpeg`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
            Self::Gif => "gif",
            Self::Bmp => "bmp",
        }
    }

    /// The media type, such as `image/jpeg`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
            Self::Bmp => "image/bmp",
        }
    }

    /// The ending of its files, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            other => other.name(),
        }
    }
}

/// `background` of the gpt-image families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// The model chooses.
    Auto,
    /// No alpha.
    Opaque,
    /// Alpha around the subject.
    Transparent,
}

/// `moderation` of the gpt-image families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Moderation {
    /// The usual strictness.
    Auto,
    /// Looser.
    Low,
}

/// Where a reference image or mask comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A client-given http or https URL, fetched through the egress guard when the task runs.
    Url(String),
    /// The name of a file in our own storage: an upload, or the bytes of a data URI.
    Stored(String),
}

/// A reference image or mask as the job keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputImage {
    /// The request field it came in, such as `image_urls[2]`: for error messages.
    pub field: String,
    /// Where its bytes are.
    pub source: Source,
}

/// One submission, normalised: every default filled in, every value legal for its family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageJob {
    /// The model id as the client wrote it.
    pub model: String,
    /// The family's name, such as `seedream-5-lite`.
    pub family: String,
    /// The text. Empty only where the family allows none (wan2.7 with references).
    pub prompt: String,
    /// What to avoid, where the family takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative_prompt: Option<String>,
    /// How many pictures are asked and held for; at least 1.
    pub n: u32,
    /// Their size.
    pub size: Size,
    /// `low`, `medium`, `high`, `auto`, … where the family has qualities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<String>,
    /// The format of the result files.
    pub output_format: ImageFormat,
    /// 0 to 100, only with JPEG and WebP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_compression: Option<u8>,
    /// Only of families that have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// Only of families that have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moderation: Option<Moderation>,
    /// Same seed and parameters give similar results, where the family takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether a visible mark is added, where the family takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<bool>,
    /// Reference images, in the client's order. Their presence selects image-to-image or editing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<InputImage>,
    /// The inpainting mask: fully transparent pixels mark what is repainted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<InputImage>,
    /// What only this family has, under SPEC.md's field names, checked and with defaults filled in
    /// (`thinking_mode`, `bbox_list`, `color_palette`, `enable_sequential`, `engine_search`, …).
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

    fn shown(&self) -> Map<String, Value> {
        Map::new()
    }

    fn pictures(&self) -> Vec<(InputRole, &InputImage)> {
        let references = self.references.iter().enumerate();
        let references = references.map(|(index, image)| (InputRole::Reference(index), image));
        let mask = self.mask.iter().map(|image| (InputRole::Mask, image));
        references.chain(mask).collect()
    }

    fn add_picture(&mut self, role: InputRole, image: InputImage) {
        match role {
            InputRole::Reference(_) => self.references.push(image),
            InputRole::Mask => self.mask = Some(image),
        }
    }
}
