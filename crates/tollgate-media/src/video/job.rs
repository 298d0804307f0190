//! The normalised video job: what a family's validation makes of a request and what a provider gets.
//!
//! It is stored with the task as JSON, so every change here must still read what older versions wrote.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::image::{InputImage, PixelSize};
use crate::input::InputRole;
use crate::job::{MediaJob, Units};

/// The frame of the film to make. `pixels` is what the gateway promises; `ratio` and `resolution` are there for
/// providers that take those instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VideoSize {
    /// The exact size, even numbers, once it is known. None only while it follows an image that has not been fetched
    /// yet; [`Family::settle`](super::Family::settle) fills it in.
    pub pixels: Option<PixelSize>,
    /// The ratio as the family writes it, such as `16:9`. None: it follows the first frame, also when that is known
    /// and `pixels` is filled in.
    pub ratio: Option<String>,
    /// The tier as the family writes it, such as `720p`.
    pub resolution: Option<String>,
}

/// What a job's images are to the film.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageUse {
    /// The one image is the first frame.
    FirstFrame,
    /// The two images are the first and the last frame.
    FirstAndLast,
    /// They show what is to appear in the film, as no frame of it.
    References,
}

/// One film to make, normalised: every default filled in, every value legal for its family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VideoJob {
    /// The model id as the client wrote it.
    pub model: String,
    /// The family's name, such as `seedance-2.0`.
    pub family: String,
    /// The text. Empty only where the family allows none (seedance with images).
    pub prompt: String,
    /// How long the film lasts, in seconds.
    pub seconds: u32,
    /// Its frame.
    pub size: VideoSize,
    /// Images, in the client's order. Their presence selects image-to-video.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<InputImage>,
    /// What they are to the film; none without images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_use: Option<ImageUse>,
    /// What to avoid, where the family takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative_prompt: Option<String>,
    /// 0 to 4294967295; the same seed and parameters give similar results. None: a new one each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Whether the film has sound, where the family can choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_audio: Option<bool>,
    /// Whether the last frame is delivered too, as a picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_last_frame: Option<bool>,
    /// Whether the camera stands still; none leaves it to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera_fixed: Option<bool>,
    /// Whether a visible mark is added, where the family can choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<bool>,
    /// Which people may appear: `allow_all`, `allow_adult` or `dont_allow`; none leaves it to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person_generation: Option<String>,
    /// What only this family has, under SPEC.md's field names.
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

    /// `seconds` as a string and `size`: the pixels, or the tier while they are not known.
    fn shown(&self) -> Map<String, Value> {
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

    fn pictures(&self) -> Vec<(InputRole, &InputImage)> {
        let images = self.images.iter().enumerate();
        images
            .map(|(index, image)| (InputRole::Reference(index), image))
            .collect()
    }

    fn add_picture(&mut self, _: InputRole, image: InputImage) {
        self.images.push(image);
    }
}
