//! A job of any kind as rules see it: plain fields by name, a frame, files.

use serde::Serialize;
use serde_json::{Map, Value};
use tollgate_media::image::PixelSize;
use tollgate_media::video::ImageUse;

use crate::provider::{ImageCall, InputFile, SpeechCall, VideoCall};

/// Fields of a job by their names in the job, for rules to take from. Those of pictures, films and speech together.
pub(super) const PLAIN: &[&str] = &[
    "prompt",
    "negative_prompt",
    "n",
    "quality",
    "output_format",
    "output_compression",
    "background",
    "moderation",
    "seed",
    "watermark",
    "seconds",
    "generate_audio",
    "return_last_frame",
    "camera_fixed",
    "person_generation",
    "voice",
    "speed",
    "language",
    "instructions",
];
/// Fields that are files.
pub(super) const FILES: &[&str] = &["references", "first_frame", "last_frame", "mask"];
/// The frame, and its tier.
pub(super) const SIZE: &str = "size";
pub(super) const RESOLUTION: &str = "resolution";
/// What a family has of its own: `extra.NAME`.
pub(super) const EXTRA: &str = "extra.";

/// What is to be made.
pub(crate) struct Order<'a> {
    /// The job as it is stored; of speech the text is the prompt.
    fields: Map<String, Value>,
    pub(super) pixels: Option<PixelSize>,
    pub(super) ratio: Option<&'a str>,
    pub(super) tier: Option<&'a str>,
    files: Vec<(&'static str, &'a [InputFile])>,
    /// How many results.
    pub(super) count: u32,
}

impl<'a> Order<'a> {
    /// Pictures.
    pub(crate) fn of_pictures(call: &ImageCall<'a>) -> Self {
        let job = call.job;
        let mask = call.mask.map(std::slice::from_ref).unwrap_or_default();
        Self {
            fields: fields(job),
            pixels: job.size.pixels,
            ratio: job.size.ratio.as_deref(),
            tier: job.size.tier.as_deref(),
            files: vec![("references", call.references), ("mask", mask)],
            count: job.n,
        }
    }

    /// A film.
    pub(crate) fn of_film(call: &VideoCall<'a>) -> Self {
        let job = call.job;
        let files = match (job.image_use, call.images) {
            (_, []) => Vec::new(),
            (Some(ImageUse::References), images) => vec![("references", images)],
            (_, [first, rest @ ..]) => vec![
                ("first_frame", std::slice::from_ref(first)),
                ("last_frame", rest),
            ],
        };
        Self {
            fields: fields(job),
            pixels: job.size.pixels,
            ratio: job.size.ratio.as_deref(),
            tier: job.size.resolution.as_deref(),
            files,
            count: 1,
        }
    }

    /// Speech.
    pub(crate) fn of_speech(call: &SpeechCall<'a>) -> Self {
        let mut fields = fields(call.job);
        if let Some(text) = fields.remove("text") {
            fields.insert("prompt".to_owned(), text);
        }
        Self {
            fields,
            pixels: None,
            ratio: None,
            tier: None,
            files: Vec::new(),
            count: 1,
        }
    }

    /// A plain field, or one of the family's own; none where the job does not set it.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        let value = match name.strip_prefix(EXTRA) {
            Some(own) => self.fields.get("extra")?.get(own),
            None => self.fields.get(name),
        };
        value.filter(|value| !value.is_null() && **value != "")
    }

    /// The files that came as `source`.
    pub(super) fn file_list(&self, source: &str) -> &'a [InputFile] {
        let found = self.files.iter().find(|(name, _)| *name == source);
        found.map_or(&[], |(_, files)| files)
    }

    /// All files by what they are.
    pub(super) fn files(&self) -> impl Iterator<Item = (&'static str, &'a [InputFile])> {
        self.files.iter().copied()
    }

    pub(super) fn has_images(&self) -> bool {
        self.files.iter().any(|(_, files)| !files.is_empty())
    }
}

fn fields(job: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(job) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
