//! [`Submission`]: a validated request before its input images are stored.

use tollgate_core::Adjustment;

use crate::fields::draft::Draft;
use crate::input::input_image::{ImageSource, Input, InputImage};
use crate::job::Job;
use crate::media_job::MediaJob;

/// A validated request.
#[derive(Debug, Clone)]
pub struct Submission<J = Job> {
    /// The input images: references in order, then the mask. Their files are not checked against the family's limits yet
    /// ([`AnyFamily::check_input_image`](crate::AnyFamily::check_input_image)).
    pub inputs: Vec<Input>,
    /// Request values that were changed or ignored.
    pub adjustments: Vec<Adjustment>,
    /// The values that the price may depend on.
    pub price: PriceFactors,
    /// The webhook URL to which the task's record is POSTed when the task ends: http or https, at most 2048 bytes. Not
    /// checked by the egress guard yet.
    pub callback_url: Option<String>,
    job: J,
}

/// The values that a price may depend on, in addition to the model and the quantity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PriceFactors {
    /// `size` as requested or by default, such as `16:9`, `auto`, `2K` or `1024x1024`, or the ratio that replaces it or is equivalent to it; empty
    /// for speech.
    pub size: String,
    /// The size in pixels, such as `2048x1152`. `None` for speech, and while the size follows a reference that is not known yet.
    pub pixels: Option<String>,
    /// The resolution tier, such as `2K` or `720p`. `None` if the family has no tiers.
    pub resolution: Option<String>,
    /// The quality. `None` if the family has no `quality` field.
    pub quality: Option<String>,
}

/// The parts of a draft that submissions of every kind have in addition to their job.
pub(crate) struct CommonParts {
    inputs: Vec<Input>,
    adjustments: Vec<Adjustment>,
    callback_url: Option<String>,
}

impl CommonParts {
    /// Moves the parts out of `draft`.
    pub(crate) fn take(draft: &mut Draft<'_>) -> Self {
        Self {
            inputs: std::mem::take(&mut draft.inputs),
            adjustments: std::mem::take(&mut draft.adjustments),
            callback_url: draft.take("callback_url"),
        }
    }
}

impl<J: MediaJob> Submission<J> {
    /// A submission of `job`. `size` and `quality` are as in [`PriceFactors`].
    pub(crate) fn new(parts: CommonParts, job: J, size: String, quality: Option<String>) -> Self {
        let mut price = PriceFactors {
            size,
            quality,
            ..PriceFactors::default()
        };
        price.update_from(&job);
        Self {
            inputs: parts.inputs,
            adjustments: parts.adjustments,
            price,
            callback_url: parts.callback_url,
            job,
        }
    }

    /// The job without its input images.
    pub fn job(&self) -> &J {
        &self.job
    }

    /// The job with its input images. `sources` are the locations of `inputs`, in the same order.
    ///
    /// # Panics
    /// If the number of sources differs from the number of inputs.
    pub fn into_job(self, sources: Vec<ImageSource>) -> J {
        assert_eq!(
            sources.len(),
            self.inputs.len(),
            "one source for each input"
        );
        let mut job = self.job;
        for (input, source) in self.inputs.into_iter().zip(sources) {
            let field = input.field;
            job.add_input_image(input.role, InputImage { field, source });
        }
        job
    }

    /// The submission with `convert` applied to its job.
    pub(crate) fn map<K>(self, convert: impl FnOnce(J) -> K) -> Submission<K> {
        Submission {
            inputs: self.inputs,
            adjustments: self.adjustments,
            price: self.price,
            callback_url: self.callback_url,
            job: convert(self.job),
        }
    }
}

impl PriceFactors {
    /// Copies the pixel size and tier of `job`, after [`AnyFamily::apply_reference_metadata`](crate::AnyFamily::apply_reference_metadata) has filled
    /// them in.
    pub fn update_from(&mut self, job: &impl MediaJob) {
        self.pixels = job.pixels().map(|pixels| pixels.to_string());
        self.resolution = job.tier().map(str::to_owned);
    }
}
