//! [`Job`]: an image, video or speech job as it is stored with its task.

use serde_json::{Map, Value};
use tollgate_core::TaskKind;

use crate::image::format::PixelSize;
use crate::image::job::ImageJob;
use crate::input::input_image::{InputImage, InputRole};
use crate::media_job::{MediaJob, Units};
use crate::speech::job::SpeechJob;
use crate::video::job::VideoJob;

/// One validated submission of any kind, with every default filled in.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// Images to generate or edit.
    Image(ImageJob),
    /// A video to generate.
    Video(VideoJob),
    /// A text to speak.
    Speech(SpeechJob),
}

impl Job {
    /// The kind of the job's results.
    pub fn kind(&self) -> TaskKind {
        match self {
            Self::Image(_) => TaskKind::Image,
            Self::Video(_) => TaskKind::Video,
            Self::Speech(_) => TaskKind::Speech,
        }
    }

    /// The inner job as JSON.
    ///
    /// # Errors
    /// Never for jobs that were read from requests.
    pub fn to_text(&self) -> serde_json::Result<String> {
        match self {
            Self::Image(job) => serde_json::to_string(job),
            Self::Video(job) => serde_json::to_string(job),
            Self::Speech(job) => serde_json::to_string(job),
        }
    }

    /// Parses the output of [`Job::to_text`] for a job of `kind`.
    ///
    /// # Errors
    /// If `text` is not the JSON of a job of `kind`.
    pub fn from_text(kind: TaskKind, text: &str) -> serde_json::Result<Self> {
        match kind {
            TaskKind::Image => serde_json::from_str(text).map(Self::Image),
            TaskKind::Video => serde_json::from_str(text).map(Self::Video),
            TaskKind::Speech => serde_json::from_str(text).map(Self::Speech),
        }
    }

    fn inner(&self) -> &dyn MediaJob {
        match self {
            Self::Image(job) => job,
            Self::Video(job) => job,
            Self::Speech(job) => job,
        }
    }
}

impl MediaJob for Job {
    fn model(&self) -> &str {
        self.inner().model()
    }

    fn family(&self) -> &str {
        self.inner().family()
    }

    fn prompt(&self) -> &str {
        self.inner().prompt()
    }

    fn units(&self) -> Units {
        self.inner().units()
    }

    fn pixels(&self) -> Option<PixelSize> {
        self.inner().pixels()
    }

    fn tier(&self) -> Option<&str> {
        self.inner().tier()
    }

    fn echoed_fields(&self) -> Map<String, Value> {
        self.inner().echoed_fields()
    }

    fn input_images(&self) -> Vec<(InputRole, &InputImage)> {
        self.inner().input_images()
    }

    fn add_input_image(&mut self, role: InputRole, image: InputImage) {
        match self {
            Self::Image(job) => job.add_input_image(role, image),
            Self::Video(job) => job.add_input_image(role, image),
            Self::Speech(job) => job.add_input_image(role, image),
        }
    }
}
