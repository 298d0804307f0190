//! A job of any kind as rules see it: plain fields by name, a frame, files.

use serde::Serialize;
use serde_json::{Map, Value};
use tollgate_media::image::{ImageJob, PixelSize};
use tollgate_media::speech::SpeechJob;
use tollgate_media::video::{ImageUse, VideoJob};
use tollgate_media::{AnyFamily, MediaJob};

use crate::provider::{ImageCall, InputFile, SpeechCall, VideoCall};
use crate::wire::chosen;

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
pub(super) struct Order<'a> {
    /// The family that the job was read for; none where this build has it no more.
    pub(super) family: Option<AnyFamily>,
    /// What the job says by choice, beside its frame, its length and its number.
    pub(super) chosen: Map<String, Value>,
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
    pub(super) fn of_pictures(call: &ImageCall<'a>) -> Self {
        let mask = call.mask.map(std::slice::from_ref).unwrap_or_default();
        let files = vec![("references", call.references), ("mask", mask)];
        Self::pictures(call.job, files)
    }

    pub(super) fn pictures(job: &'a ImageJob, files: Vec<(&'static str, &'a [InputFile])>) -> Self {
        Self {
            pixels: job.size.pixels,
            ratio: job.size.ratio.as_deref(),
            tier: job.size.tier.as_deref(),
            count: job.n,
            files,
            ..Self::of(job)
        }
    }

    /// A film.
    pub(super) fn of_film(call: &VideoCall<'a>) -> Self {
        let files = match (call.job.image_use, call.images) {
            (_, []) => Vec::new(),
            (Some(ImageUse::References), images) => vec![("references", images)],
            (_, [first, rest @ ..]) => vec![
                ("first_frame", std::slice::from_ref(first)),
                ("last_frame", rest),
            ],
        };
        Self::film(call.job, files)
    }

    pub(super) fn film(job: &'a VideoJob, files: Vec<(&'static str, &'a [InputFile])>) -> Self {
        Self {
            pixels: job.size.pixels,
            ratio: job.size.ratio.as_deref(),
            tier: job.size.resolution.as_deref(),
            files,
            ..Self::of(job)
        }
    }

    /// Speech.
    pub(super) fn of_speech(call: &SpeechCall<'a>) -> Self {
        Self::speech(call.job)
    }

    pub(super) fn speech(job: &SpeechJob) -> Self {
        let mut order = Self::of(job);
        if let Some(text) = order.fields.remove("text") {
            order.fields.insert("prompt".to_owned(), text);
        }
        order
    }

    /// One result of a job, without frame and files.
    fn of(job: &(impl MediaJob + Serialize)) -> Self {
        let fields = match serde_json::to_value(job) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Self {
            family: AnyFamily::by_name(job.family()),
            chosen: chosen(job),
            fields,
            pixels: None,
            ratio: None,
            tier: None,
            files: Vec::new(),
            count: 1,
        }
    }

    /// Every field whose value a request may have to change: not the files, which it has or goes elsewhere, and not
    /// the number, which calls share.
    pub(super) fn sources(&self) -> Vec<String> {
        let plain = PLAIN.iter().filter(|name| **name != "n");
        let names = [SIZE, RESOLUTION].into_iter().chain(plain.copied());
        let own = self.fields.get("extra").and_then(Value::as_object);
        let own = own.into_iter().flat_map(Map::keys);
        let own = own.map(|name| [EXTRA, name.as_str()].concat());
        names.map(str::to_owned).chain(own).collect()
    }

    /// What the job says of a source, as a client would write it; none where it does not set it.
    pub(super) fn asked(&self, source: &str) -> Option<Value> {
        match source {
            SIZE => match self.ratio.filter(|ratio| ratio.contains(':')) {
                Some(ratio) => Some(ratio.into()),
                None => self.pixels.map(|pixels| pixels.to_string().into()),
            },
            RESOLUTION => self.tier.map(Value::from),
            name => self.field(name).cloned(),
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
