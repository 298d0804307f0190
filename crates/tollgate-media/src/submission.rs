//! A request that was found good, whatever it asks for, and the one way to read requests.

use serde_json::{Map, Value};
use tollgate_core::{Adjustment, ApiError};

use crate::catalogue::TaskModel;
use crate::endpoint::RequestShape;
use crate::family::AnyFamily;
use crate::form::Draft;
use crate::image::{self, InputImage, Source};
use crate::input::Input;
use crate::job::{Job, MediaJob};
use crate::{speech, video};

/// A request that was found good.
#[derive(Debug, Clone)]
pub struct Submission<J = Job> {
    /// Its pictures: references in order, then the mask. Their files' limits are not checked yet
    /// ([`AnyFamily::check_input`]).
    pub inputs: Vec<Input>,
    /// What the rules changed silently.
    pub adjustments: Vec<Adjustment>,
    /// What a price may depend on.
    pub price: PriceFacts,
    /// Where the task's record is POSTed when the task ends: an http or https URL of at most 2048 bytes. Whether it
    /// may be reached is the egress guard's business.
    pub callback_url: Option<String>,
    job: J,
}

/// What a price may depend on, beside the model and how much is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PriceFacts {
    /// `size` as asked or by default, such as `16:9`, `auto`, `2K` or `1024x1024`; empty for speech.
    pub size: String,
    /// Such as `2048x1152`; none while the size follows a reference that is not known yet, and for speech.
    pub pixels: Option<String>,
    /// The tier, such as `2K` or `720p`, where there are tiers.
    pub resolution: Option<String>,
    /// The quality, where there are qualities.
    pub quality: Option<String>,
}

/// Reads a request for `model` in one of the shapes that requests have. With `strict`, fields that would be ignored
/// are an error.
///
/// `null` counts as absent everywhere. Errors are 400 and name the field as the client wrote it, what came and what is
/// allowed.
pub fn read(
    model: &TaskModel,
    shape: RequestShape,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission, ApiError> {
    let (name, like) = (model.name.as_str(), model.like);
    match model.family {
        AnyFamily::Image(family) => {
            image::read_for(name, like, family, body, strict).map(|s| s.map(Job::Image))
        }
        AnyFamily::Video(family) => {
            video::read_for(name, like, family, body, strict).map(|s| s.map(Job::Video))
        }
        AnyFamily::Speech(family) => {
            speech::read_for(name, like, family, shape, body, strict).map(|s| s.map(Job::Speech))
        }
    }
}

/// What a draft holds beside the job's own values.
pub(crate) struct Found {
    inputs: Vec<Input>,
    adjustments: Vec<Adjustment>,
    callback_url: Option<String>,
}

impl Found {
    /// Takes it out of `draft`.
    pub(crate) fn take(draft: &mut Draft<'_>) -> Self {
        Self {
            inputs: std::mem::take(&mut draft.inputs),
            adjustments: std::mem::take(&mut draft.adjustments),
            callback_url: draft.take("callback_url"),
        }
    }
}

impl<J: MediaJob> Submission<J> {
    /// `job` with what else was found. `size` and `quality` are what a price may depend on.
    pub(crate) fn new(found: Found, job: J, size: String, quality: Option<String>) -> Self {
        let mut price = PriceFacts {
            size,
            quality,
            ..PriceFacts::default()
        };
        price.settled(&job);
        Self {
            inputs: found.inputs,
            adjustments: found.adjustments,
            price,
            callback_url: found.callback_url,
            job,
        }
    }

    /// The job as far as it is known: without its pictures.
    pub fn job(&self) -> &J {
        &self.job
    }

    /// The whole job. `sources` says where each of `inputs` is, in their order.
    ///
    /// # Panics
    /// When there are not as many sources as inputs.
    pub fn into_job(self, sources: Vec<Source>) -> J {
        assert_eq!(
            sources.len(),
            self.inputs.len(),
            "one source for each input"
        );
        let mut job = self.job;
        for (input, source) in self.inputs.into_iter().zip(sources) {
            let field = input.field;
            job.add_picture(input.role, InputImage { field, source });
        }
        job
    }

    fn map<K>(self, job: impl FnOnce(J) -> K) -> Submission<K> {
        Submission {
            inputs: self.inputs,
            adjustments: self.adjustments,
            price: self.price,
            callback_url: self.callback_url,
            job: job(self.job),
        }
    }
}

impl PriceFacts {
    /// Takes over what [`AnyFamily::settle`] has settled in `job`.
    pub fn settled(&mut self, job: &impl MediaJob) {
        self.pixels = job.pixels().map(|pixels| pixels.to_string());
        self.resolution = job.tier().map(str::to_owned);
    }
}
