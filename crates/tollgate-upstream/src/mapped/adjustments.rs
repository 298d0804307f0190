//! Adjustments of a mapped request: values that the gateway sends in place of the job's, and job fields that the model lacks.

use serde_json::Value;
use tollgate_media::image::size::{DefaultSize, Sizes};
use tollgate_media::{AnyFamily, RequestLayout};

use super::job_fields::{EXTRA, JobFields, RESOLUTION, SIZE};
use super::mapping::Mapping;
use super::rule::Rule;
use crate::adapter::Adjustments;

impl Mapping {
    /// The adjustments of the requests for `job`.
    pub(super) fn adjustments(&self, job: &JobFields<'_>) -> Adjustments {
        let mapping = self.for_job(job);
        let mut adjustments = Adjustments::default();
        for source in job.sources() {
            if !mapping.implied.contains(&source) {
                mapping.adjust(job, &source, &mut adjustments);
            }
        }
        adjustments
    }

    fn adjust(&self, job: &JobFields<'_>, source: &str, adjustments: &mut Adjustments) {
        let Some(requested) = job.requested(source) else {
            return;
        };
        let field = request_field(job, source);
        let rules = self.rules.iter().filter(|rule| rule.source == source);
        let converted: Vec<_> = rules.filter_map(|rule| rule.convert(job)).collect();
        // One input field with the exact value is enough.
        if converted
            .iter()
            .any(|converted| converted.adjusted_to.is_none())
            || self.sends_pixels_for(source)
        {
            return;
        }
        let is_set = is_set_by_client(job, source, &requested);
        let always = self.constants.get(field);
        match (
            converted
                .into_iter()
                .find_map(|converted| converted.adjusted_to),
            always,
        ) {
            (Some(Value::Null), _) if is_set => {
                adjustments.drop_field(field, requested, "the channel's model has no such value");
            }
            (Some(Value::Null), _) => {}
            (Some(near), _) => {
                let why = "the nearest that the channel's model accepts";
                adjustments.replace_value(field, requested, near, why);
            }
            (None, Some(always)) => {
                let why = "the channel always sends this value";
                adjustments.replace_value(field, requested, always.clone(), why);
            }
            (None, None) if is_set => {
                adjustments.drop_field(field, requested, "the channel's model has no such field");
            }
            (None, None) => {}
        }
    }

    /// Whether `source` is the resolution tier and a rule sends the size in pixels.
    fn sends_pixels_for(&self, source: &str) -> bool {
        let sends_pixels = |rule: &Rule| rule.source == SIZE && rule.sends_pixels();
        source == RESOLUTION && self.rules.iter().any(sends_pixels)
    }
}

/// The request field of a job field.
fn request_field<'s>(job: &JobFields<'_>, source: &'s str) -> &'s str {
    let fields = job
        .family
        .map(|family| family.fields(RequestLayout::Standard));
    let has =
        |name: &str| fields.is_none_or(|fields| fields.iter().any(|field| field.name == name));
    match source {
        // In families without a field for tiers, `size` contains them.
        RESOLUTION if !has(RESOLUTION) => SIZE,
        _ => source.strip_prefix(EXTRA).unwrap_or(source),
    }
}

/// Whether the client must have set the field: the job would have another value otherwise.
fn is_set_by_client(job: &JobFields<'_>, source: &str, requested: &Value) -> bool {
    let default = match (source, job.family) {
        (SIZE, Some(family)) => default_size(family, job).map(Value::from),
        (RESOLUTION, Some(family)) => default_tier(family).map(Value::from),
        ("seconds", Some(AnyFamily::Video(family))) => Some(family.durations.default().into()),
        _ => {
            return job
                .chosen
                .contains_key(source.strip_prefix(EXTRA).unwrap_or(source));
        }
    };
    default.is_some_and(|default| default != *requested)
}

/// The default ratio or pixels of a family. `None` if the size follows an image.
fn default_size(family: AnyFamily, job: &JobFields<'_>) -> Option<String> {
    match family {
        AnyFamily::Image(family) => match &family.sizes {
            Sizes::Ratios(sizes) => match sizes.default {
                DefaultSize::FollowReference(_) if job.has_images() => None,
                DefaultSize::Ratio(ratio) | DefaultSize::FollowReference(ratio) => {
                    Some(ratio.to_owned())
                }
            },
            Sizes::Listed(sizes) => Some(sizes.default.to_string()),
            // The family's tiers are squares, or follow an image.
            Sizes::PixelRange(_) => (!job.has_images()).then(|| "1:1".to_owned()),
        },
        AnyFamily::Video(family) => {
            let ratio = family.sizes.default_ratio.to_owned();
            job.ratio.is_some().then_some(ratio)
        }
        AnyFamily::Speech(_) => None,
    }
}

/// The default resolution tier of a family.
fn default_tier(family: AnyFamily) -> Option<&'static str> {
    match family {
        AnyFamily::Image(family) => match &family.sizes {
            Sizes::Ratios(sizes) => sizes.tiers.get(sizes.default_tier).copied(),
            Sizes::Listed(_) => None,
            Sizes::PixelRange(sizes) => Some(sizes.default),
        },
        AnyFamily::Video(family) => family.sizes.tiers.get(family.sizes.default_tier).copied(),
        AnyFamily::Speech(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use tollgate_media::{Catalogue, Job, parse_request};

    use super::*;
    use crate::channel::ChannelModel;
    use crate::test_tables::rows;

    /// The adjustments of `body` for `model` on a channel with these options.
    fn adjustments_of(model: &str, body: Value, options: Value) -> Vec<String> {
        let catalogue = Catalogue::new(&[]).unwrap();
        let mut models = catalogue.task_models();
        let found = models.find(|found| found.name == model).expect(model);
        let body = body.as_object().unwrap();
        let submission = parse_request(found, RequestLayout::Standard, body, true).unwrap();
        let fields = match submission.job() {
            Job::Image(job) => JobFields::from_image_job(job, Vec::new()),
            Job::Video(job) => JobFields::from_video_job(job, Vec::new()),
            Job::Speech(job) => JobFields::from_speech_job(job),
        };
        let entry = ChannelModel {
            options: options.as_object().cloned().unwrap(),
            ..ChannelModel::new("m", "a/b")
        };
        Mapping::parse(&entry, &[])
            .unwrap()
            .adjustments(&fields)
            .shown()
    }

    /// A row of `tests/tables/mapped_adjustments.jsonl`: what it proves, the model, the request, the options of the channel's model, the expected
    /// adjustments.
    type Row = (String, String, Value, Value, Vec<String>);

    #[test]
    fn fields_that_the_mapping_changes_or_drops_are_adjustments() {
        for (behaviour, model, body, options, expected) in rows::<Row>("mapped_adjustments") {
            let found = adjustments_of(&model, body, options);
            assert_eq!(found, expected, "{behaviour}");
        }
    }
}
