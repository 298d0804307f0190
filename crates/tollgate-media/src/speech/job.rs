//! [`SpeechJob`]: a validated speech request, as providers receive it.
//!
//! Stored with the task as JSON, so every version must still read the jobs that older versions wrote.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::image::format::PixelSize;
use crate::input::input_image::{InputImage, InputRole};
use crate::media_job::{MediaJob, Units};

/// A text to convert to speech: every value valid for its family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpeechJob {
    /// The model id as the client wrote it.
    pub model: String,
    /// The family's name, such as `native-v3`.
    pub family: String,
    /// The text to speak: 1 to 4096 Unicode scalar values, not blank. The adapter of a provider with a smaller limit splits it.
    pub text: String,
    /// The provider's voice id. `None` for the channel's default voice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<String>,
    /// Speaking rate, 0.25 to 4.0; 1 is normal. `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// The language, such as `zh` or `en`. `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The style or expression of the speech. `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The client's own id for the task, repeated in its records. `None` if the client sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_task_id: Option<String>,
    /// Fields that only this family has, by their request names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl SpeechJob {
    /// The length of the text in Unicode scalar values, which is the billed quantity.
    pub fn characters(&self) -> u32 {
        u32::try_from(self.text.chars().count()).unwrap_or(u32::MAX)
    }
}

impl MediaJob for SpeechJob {
    fn model(&self) -> &str {
        &self.model
    }

    fn family(&self) -> &str {
        &self.family
    }

    fn prompt(&self) -> &str {
        &self.text
    }

    fn units(&self) -> Units {
        Units::Characters(self.characters())
    }

    fn pixels(&self) -> Option<PixelSize> {
        None
    }

    fn tier(&self) -> Option<&str> {
        None
    }

    fn echoed_fields(&self) -> Map<String, Value> {
        let id = self.external_task_id.iter();
        id.map(|id| ("external_task_id".to_owned(), id.as_str().into()))
            .collect()
    }

    fn input_images(&self) -> Vec<(InputRole, &InputImage)> {
        Vec::new()
    }

    fn add_input_image(&mut self, _: InputRole, _: InputImage) {}
}
