//! A job of any kind, as it is stored with its task.

use serde::Serialize;
use serde_json::{Map, Value};
use tollgate_core::TaskKind;

use crate::endpoint::RequestShape;
use crate::family::AnyFamily;
use crate::form::field::{Field, Kind};
use crate::image::{ImageJob, InputImage, PixelSize};
use crate::input::InputRole;
use crate::speech::SpeechJob;
use crate::video::VideoJob;

/// One submission of any kind, normalised.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// Pictures to make.
    Image(ImageJob),
    /// A film to make.
    Video(VideoJob),
    /// A text to speak.
    Speech(SpeechJob),
}

/// How much is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// That many pictures.
    Images(u32),
    /// One film of that many seconds.
    Seconds(u32),
    /// A text of that many Unicode scalar values.
    Characters(u32),
}

/// What every job tells, whatever it makes.
pub trait MediaJob {
    /// The model id as the client wrote it.
    fn model(&self) -> &str;
    /// The family's name.
    fn family(&self) -> &str;
    /// The text that a safety review reads: the prompt, or the text to speak.
    fn prompt(&self) -> &str;
    /// How much is asked for.
    fn units(&self) -> Units;
    /// The size of the result in pixels, where it has one and it is known.
    fn pixels(&self) -> Option<PixelSize>;
    /// The tier, such as `2K` or `720p`, where there are tiers.
    fn tier(&self) -> Option<&str>;
    /// What the task's records tell of the request that the stored task does not hold otherwise
    /// (`shown` of [`TaskFacts`](crate::TaskFacts)). Small. To be asked when the job is settled.
    fn shown(&self) -> Map<String, Value>;
    /// Its pictures, the references in order first.
    fn pictures(&self) -> Vec<(InputRole, &InputImage)>;
    /// Adds a picture; references come in order.
    fn add_picture(&mut self, role: InputRole, image: InputImage);
}

/// The fields by which a job says more than its prompt, its size and its amount, with what each is set to: those that the
/// family declares and that are not at the value that their absence means. A provider that does not take one of them
/// changes what the client gets.
pub fn choices<J: MediaJob + Serialize>(job: &J) -> Map<String, Value> {
    let Some(family) = AnyFamily::by_name(job.family()) else {
        return Map::new();
    };
    let Ok(Value::Object(mut fields)) = serde_json::to_value(job) else {
        return Map::new();
    };
    if let Some(Value::Object(extra)) = fields.remove("extra") {
        fields.extend(extra);
    }
    let declared = family.fields(RequestShape::Usual);
    fields.retain(|name, value| {
        !SAID_OTHERWISE.contains(&name.as_str())
            && find(declared, name)
                .is_some_and(|field| !value.is_null() && unasked(field).as_ref() != Some(value))
    });
    fields
}

/// What a job has of a field that its request does not name.
fn unasked(field: &Field) -> Option<Value> {
    match field.kind {
        Kind::Object(members) => {
            let preset = |member: &Field| Some((member.name.to_owned(), member.default?.value()));
            let presets: Map<_, _> = members.iter().filter_map(preset).collect();
            Some(presets.into())
        }
        _ => field.default.map(|default| default.value()),
    }
}

/// What [`MediaJob`] tells of a job.
const SAID_OTHERWISE: &[&str] = &["model", "prompt", "n", "seconds", "size", "images"];

/// The declaration of the field that a job calls `name`, at the top or in an object. Some are declared in camel case.
fn find<'f>(declared: &'f [Field], name: &str) -> Option<&'f Field> {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let wanted = plain(name);
    declared.iter().find_map(|field| match field.kind {
        _ if plain(field.name) == wanted => Some(field),
        Kind::Object(members) => find(members, name),
        _ => None,
    })
}

impl Job {
    /// What it makes.
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

    /// The job of `kind` that [`Job::to_text`] wrote.
    ///
    /// # Errors
    /// When `text` is no such job.
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

    fn shown(&self) -> Map<String, Value> {
        self.inner().shown()
    }

    fn pictures(&self) -> Vec<(InputRole, &InputImage)> {
        self.inner().pictures()
    }

    fn add_picture(&mut self, role: InputRole, image: InputImage) {
        match self {
            Self::Image(job) => job.add_picture(role, image),
            Self::Video(job) => job.add_picture(role, image),
            Self::Speech(job) => job.add_picture(role, image),
        }
    }
}
