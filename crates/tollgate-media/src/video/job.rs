//! [`VideoJob`]: a validated video request with every default filled in, as providers receive it.
//!
//! Stored with the task as JSON, so every version must still read the jobs that older versions wrote.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::image::format::PixelSize;
use crate::input::input_image::{InputImage, InputRole};
use crate::media_job::{MediaJob, Units};

/// The requested size. Result videos have `pixels`; `ratio` and `resolution` are for providers that accept those instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VideoSize {
    /// The exact size, both numbers even. `None` only while it follows an image that is not fetched yet;
    /// [`Family::apply_reference_metadata`](super::Family::apply_reference_metadata) fills it in.
    pub pixels: Option<PixelSize>,
    /// The ratio as the family writes it, such as `16:9`. `None` if it follows the first frame, even after `pixels` is
    /// filled in.
    pub ratio: Option<String>,
    /// The tier as the family writes it, such as `720p`.
    pub resolution: Option<String>,
}

/// How a job uses its images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageUse {
    /// The one image is the first frame.
    FirstFrame,
    /// The two images are the first and the last frame.
    FirstAndLast,
    /// The images show what should appear in the video; none of them is a frame.
    References,
}

/// One video request: every default filled in, every value valid for its family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VideoJob {
    /// The model id as the client wrote it.
    pub model: String,
    /// The family's name, such as `seedance-2.0`.
    pub family: String,
    /// The prompt. Empty only if the family allows that (Seedance with images).
    pub prompt: String,
    /// The duration in seconds.
    pub seconds: u32,
    /// The size of the video.
    pub size: VideoSize,
    /// Input images in the client's order. If there are any, the request is image-to-video.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<InputImage>,
    /// How the images are used. `None` without images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_use: Option<ImageUse>,
    /// What the video must not show. `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative_prompt: Option<String>,
    /// The random seed, 0 to 4294967295; the same seed and parameters give similar results. `None` for a random seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Whether the video has audio. `None` if the family has no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_audio: Option<bool>,
    /// Whether the last frame is returned too, as an image. `None` if the family has no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_last_frame: Option<bool>,
    /// Whether the camera is fixed. `None` leaves it to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera_fixed: Option<bool>,
    /// Whether a visible watermark is added. `None` if the family has no such field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<bool>,
    /// Which people may appear: `allow_all`, `allow_adult` or `dont_allow`. `None` leaves it to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person_generation: Option<String>,
    /// Fields that only this family has, by their request names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl MediaJob for VideoJob {
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
        Units::Seconds(self.seconds)
    }

    fn pixels(&self) -> Option<PixelSize> {
        self.size.pixels
    }

    fn tier(&self) -> Option<&str> {
        self.size.resolution.as_deref()
    }

    /// `seconds` as a string, and `size`: the pixels, or the tier while the pixels are not known.
    fn echoed_fields(&self) -> Map<String, Value> {
        let tier = || self.size.resolution.clone().unwrap_or_default();
        let pixels = self.size.pixels.map(|pixels| pixels.to_string());
        let size = pixels.unwrap_or_else(tier);
        [
            ("seconds".to_owned(), self.seconds.to_string().into()),
            ("size".to_owned(), size.into()),
        ]
        .into_iter()
        .collect()
    }

    fn input_images(&self) -> Vec<(InputRole, &InputImage)> {
        let images = self.images.iter().enumerate();
        images
            .map(|(index, image)| (InputRole::Reference(index), image))
            .collect()
    }

    fn add_input_image(&mut self, _: InputRole, image: InputImage) {
        self.images.push(image);
    }
}
