//! The mapping of one model: how job fields become the model's input, the number of calls, the supported images.

use serde_json::{Map, Value};

use super::job_fields::JobFields;
use super::result_paths::ResultPaths;
use super::rule::Rule;
use crate::adapter::InlineFiles;
use crate::error::{ProviderError, UpstreamErrorKind};

/// One model's mapping as configured.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    /// The provider's model id.
    pub(super) upstream: String,
    /// Input fields that are always sent.
    pub(super) constants: Map<String, Value>,
    /// Job fields that need no rule, because another rule covers them or the model obeys them anyway; they are not reported as unsupported.
    pub(super) implied: Vec<String>,
    /// Which job fields become which input fields.
    pub(super) rules: Vec<Rule>,
    /// Maximum number of results of one call; 1 if the model has no field for their number.
    pub(super) max_per_call: u32,
    /// The mapping for jobs with images, if it differs.
    pub(super) with_images: Option<Box<Mapping>>,
    /// Where the links to the results are in the output.
    pub(super) result_paths: ResultPaths,
}

/// The request of one call.
#[derive(Debug)]
pub(crate) struct Request {
    /// The provider's model id.
    pub(crate) upstream: String,
    /// The model's input.
    pub(crate) input: Value,
}

impl Mapping {
    /// The mapping for `job`: another one for jobs with images, if the model's entry has one.
    pub(super) fn for_job(&self, job: &JobFields<'_>) -> &Self {
        match &self.with_images {
            Some(other) if job.has_images() => other,
            _ => self,
        }
    }

    /// The number of results of each call; their sum is the requested number.
    pub(super) fn calls(&self, job: &JobFields<'_>) -> Vec<u32> {
        let max = self.for_job(job).max_per_call.max(1);
        let full_calls = job.count / max;
        let rest = job.count % max;
        let rest = (rest > 0).then_some(rest);
        std::iter::repeat_n(max, full_calls as usize)
            .chain(rest)
            .collect()
    }

    /// The request of call number `index` for `count` results. Its files are added to `files`.
    pub(super) fn request(
        &self,
        job: &JobFields<'_>,
        index: u32,
        count: u32,
        files: &mut InlineFiles,
    ) -> Result<Request, ProviderError> {
        let mapping = self.for_job(job);
        mapping.check_images(job)?;
        let mut input = Value::Object(mapping.constants.clone());
        for rule in &mapping.rules {
            if let Some(value) = rule.input_value(job, index, count, files) {
                rule.insert(&mut input, value);
            }
        }
        Ok(Request {
            upstream: mapping.upstream.clone(),
            input,
        })
    }

    /// Checks that the model supports all images of the job: without one of them the result would be different.
    fn check_images(&self, job: &JobFields<'_>) -> Result<(), ProviderError> {
        let supported = |source: &str| {
            let rules = self.rules.iter().filter(|rule| rule.source == source);
            rules.map(Rule::max_files).max().unwrap_or(0)
        };
        for (source, files) in job.files() {
            let max = supported(source);
            if files.len() > max {
                let count = files.len();
                let message = match max {
                    0 => format!("the channel's model accepts no `{source}`, got {count}"),
                    _ => format!("the channel's model accepts {max} of `{source}`, got {count}"),
                };
                return Err(ProviderError::new(
                    UpstreamErrorKind::UnsupportedByChannel,
                    message,
                ));
            }
        }
        Ok(())
    }
}
