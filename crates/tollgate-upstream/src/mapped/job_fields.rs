//! The fields of a job of any kind, in the form in which rules read them: plain fields by name, the size, files.

use serde::Serialize;
use serde_json::{Map, Value};
use tollgate_media::image::{ImageJob, PixelSize};
use tollgate_media::speech::SpeechJob;
use tollgate_media::video::{ImageUse, VideoJob};
use tollgate_media::{AnyFamily, MediaJob};

use crate::adapter::requested_fields;
use crate::provider::{ImageCall, InputFile, SpeechCall, VideoCall};

/// Plain fields of image, video and speech jobs that rules can map.
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
/// Job fields that are files.
pub(super) const FILES: &[&str] = &["references", "first_frame", "last_frame", "mask"];
/// The names of the fields for the size and its resolution tier.
pub(super) const SIZE: &str = "size";
pub(super) const RESOLUTION: &str = "resolution";
/// Prefix of a family's own fields: `extra.NAME`.
pub(super) const EXTRA: &str = "extra.";

/// The fields of one job.
pub(super) struct JobFields<'a> {
    /// The job's family. `None` if this build no longer has it.
    pub(super) family: Option<AnyFamily>,
    /// The fields that the client set to values other than the defaults, without size, length and number.
    pub(super) chosen: Map<String, Value>,
    /// All fields of the job; for speech, the text is the prompt.
    fields: Map<String, Value>,
    pub(super) pixels: Option<PixelSize>,
    pub(super) ratio: Option<&'a str>,
    pub(super) tier: Option<&'a str>,
    files: Vec<(&'static str, &'a [InputFile])>,
    /// The number of requested results.
    pub(super) count: u32,
}

impl<'a> JobFields<'a> {
    /// The fields of an image job.
    pub(super) fn from_image_call(call: &ImageCall<'a>) -> Self {
        let mask = call.mask.map(std::slice::from_ref).unwrap_or_default();
        let files = vec![("references", call.references), ("mask", mask)];
        Self::from_image_job(call.job, files)
    }

    pub(super) fn from_image_job(
        job: &'a ImageJob,
        files: Vec<(&'static str, &'a [InputFile])>,
    ) -> Self {
        Self {
            pixels: job.size.pixels,
            ratio: job.size.ratio.as_deref(),
            tier: job.size.tier.as_deref(),
            count: job.n,
            files,
            ..Self::plain(job)
        }
    }

    /// The fields of a video job.
    pub(super) fn from_video_call(call: &VideoCall<'a>) -> Self {
        let files = match (call.job.image_use, call.images) {
            (_, []) => Vec::new(),
            (Some(ImageUse::References), images) => vec![("references", images)],
            (_, [first, rest @ ..]) => vec![
                ("first_frame", std::slice::from_ref(first)),
                ("last_frame", rest),
            ],
        };
        Self::from_video_job(call.job, files)
    }

    pub(super) fn from_video_job(
        job: &'a VideoJob,
        files: Vec<(&'static str, &'a [InputFile])>,
    ) -> Self {
        Self {
            pixels: job.size.pixels,
            ratio: job.size.ratio.as_deref(),
            tier: job.size.resolution.as_deref(),
            files,
            ..Self::plain(job)
        }
    }

    /// The fields of a speech job.
    pub(super) fn from_speech_call(call: &SpeechCall<'a>) -> Self {
        Self::from_speech_job(call.job)
    }

    pub(super) fn from_speech_job(job: &SpeechJob) -> Self {
        let mut fields = Self::plain(job);
        if let Some(text) = fields.fields.remove("text") {
            fields.fields.insert("prompt".to_owned(), text);
        }
        fields
    }

    /// The plain fields of a job for one result, without size and files.
    fn plain(job: &(impl MediaJob + Serialize)) -> Self {
        let fields = match serde_json::to_value(job) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Self {
            family: AnyFamily::by_name(job.family()),
            chosen: requested_fields(job),
            fields,
            pixels: None,
            ratio: None,
            tier: None,
            files: Vec::new(),
            count: 1,
        }
    }

    /// Every field that a request may have to adjust: not the files, because the job fails without them, nor the number of results, which is split
    /// among calls.
    pub(super) fn sources(&self) -> Vec<String> {
        let plain = PLAIN.iter().filter(|name| **name != "n");
        let names = [SIZE, RESOLUTION].into_iter().chain(plain.copied());
        let own = self.fields.get("extra").and_then(Value::as_object);
        let own = own.into_iter().flat_map(Map::keys);
        let own = own.map(|name| [EXTRA, name.as_str()].concat());
        names.map(str::to_owned).chain(own).collect()
    }

    /// The value of a field as a client would write it. `None` if the job does not set it.
    pub(super) fn requested(&self, source: &str) -> Option<Value> {
        match source {
            SIZE => match self.ratio.filter(|ratio| ratio.contains(':')) {
                Some(ratio) => Some(ratio.into()),
                None => self.pixels.map(|pixels| pixels.to_string().into()),
            },
            RESOLUTION => self.tier.map(Value::from),
            name => self.field(name).cloned(),
        }
    }

    /// A plain field, or one of the family's own. `None` if the job does not set it.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        let value = match name.strip_prefix(EXTRA) {
            Some(own) => self.fields.get("extra")?.get(own),
            None => self.fields.get(name),
        };
        value.filter(|value| !value.is_null() && **value != "")
    }

    /// The files of the job field `source`.
    pub(super) fn file_list(&self, source: &str) -> &'a [InputFile] {
        let found = self.files.iter().find(|(name, _)| *name == source);
        found.map_or(&[], |(_, files)| files)
    }

    /// All files, each list with its job field.
    pub(super) fn files(&self) -> impl Iterator<Item = (&'static str, &'a [InputFile])> {
        self.files.iter().copied()
    }

    pub(super) fn has_images(&self) -> bool {
        self.files.iter().any(|(_, files)| !files.is_empty())
    }
}
