//! The normalised speech job: what a family's validation makes of a request and what a provider gets.
//!
//! It is stored with the task as JSON, so every change here must still read what older versions wrote.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::image::{InputImage, PixelSize};
use crate::input::InputRole;
use crate::job::{MediaJob, Units};

/// One text to speak, normalised: every value legal for its family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpeechJob {
    /// The model id as the client wrote it.
    pub model: String,
    /// The family's name, such as `native-v3`.
    pub family: String,
    /// What to say: 1 to 4096 Unicode scalar values, not blank. A provider with a smaller limit splits it.
    pub text: String,
    /// The provider's id of a voice; none leaves it to the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<String>,
    /// 0.25 to 4.0, 1 being the usual pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Such as `zh` or `en`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// How to say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The client's own id for the task, told again in its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_task_id: Option<String>,
    /// What only this family has, under SPEC.md's field names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl SpeechJob {
    /// How long the text is, in Unicode scalar values (DECISIONS.md › Values).
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

    fn shown(&self) -> Map<String, Value> {
        let id = self.external_task_id.iter();
        id.map(|id| ("external_task_id".to_owned(), id.as_str().into()))
            .collect()
    }

    fn pictures(&self) -> Vec<(InputRole, &InputImage)> {
        Vec::new()
    }

    fn add_picture(&mut self, _: InputRole, _: InputImage) {}
}
