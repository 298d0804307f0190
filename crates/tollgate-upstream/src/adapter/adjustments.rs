//! Adjustments: values that the gateway sends to a provider in place of the requested ones, reported to the client (docs/tasks.md).

use serde::Serialize;
use serde_json::{Map, Value};
use tollgate_core::Adjustment;
use tollgate_media::image::PixelSize;
use tollgate_media::{MediaJob, non_default_fields};

use crate::provider::ResultSink;

/// Fields that only the gateway uses; they are sent to no provider.
const GATEWAY_FIELDS: &[&str] = &["external_task_id"];
/// The maximum difference (by logarithm) of two ratios that count as the same: sides are rounded to whole pixels or to steps.
const RATIO_TOLERANCE: f64 = 0.02;

/// The adjustments of one request: collected while it is built, reported before it is sent.
#[derive(Debug, Default)]
pub(crate) struct Adjustments(Vec<Adjustment>);

impl Adjustments {
    /// One adjustment for every field that `job` sets and that is not among `supported`.
    pub(crate) fn for_unsupported_fields<J: MediaJob + Serialize>(
        job: &J,
        supported: &[&str],
    ) -> Self {
        let mut adjustments = Self::default();
        for (field, requested) in requested_fields(job) {
            if !supported.contains(&field.as_str()) {
                adjustments.drop_field(&field, requested, "the provider has no such field");
            }
        }
        adjustments
    }

    /// Records that `used` is sent in place of `requested`, unless they are equal or the field has an adjustment already.
    pub(crate) fn replace_value(
        &mut self,
        field: &str,
        requested: impl Into<Value>,
        used: impl Into<Value>,
        why: &str,
    ) {
        let (requested, used) = (requested.into(), used.into());
        let is_new = !self.0.iter().any(|adjustment| adjustment.field == field);
        if requested != used && is_new {
            self.0.push(Adjustment::new(field, requested, used, why));
        }
    }

    /// Records that the field is not sent, for the reason `why`.
    pub(crate) fn drop_field(&mut self, field: &str, requested: impl Into<Value>, why: &str) {
        self.replace_value(field, requested, Value::Null, why);
    }

    /// Records that the ratio `used` is sent if the job has another ratio `named`, or another `size`.
    pub(crate) fn ratio(&mut self, named: Option<&str>, size: Option<PixelSize>, used: &str) {
        let why = "the provider takes ratios: the nearest that it has";
        match (named, size) {
            (Some(named), _) if super::aspect_ratio::parse_ratio(named).is_some() => {
                self.replace_value("size", named, used, why);
            }
            (_, Some(size)) if !has_ratio(size, used) => {
                self.replace_value("size", size.to_string(), used, why);
            }
            _ => {}
        }
    }

    /// Reports all adjustments to the sink.
    pub(crate) fn report_to(self, sink: &dyn ResultSink) {
        for adjustment in self.0 {
            sink.record_adjustment(adjustment);
        }
    }

    /// The adjustments as texts, `field: requested → used`.
    #[cfg(test)]
    pub(crate) fn shown(&self) -> Vec<String> {
        let text = |a: &Adjustment| format!("{}: {} → {}", a.field, a.requested, a.used);
        self.0.iter().map(text).collect()
    }
}

/// The fields that `job` sets, without those that only the gateway uses.
pub(crate) fn requested_fields<J: MediaJob + Serialize>(job: &J) -> Map<String, Value> {
    let mut fields = non_default_fields(job);
    fields.retain(|field, _| !GATEWAY_FIELDS.contains(&field.as_str()));
    fields
}

/// Whether an image of that size has that ratio, within [`RATIO_TOLERANCE`].
pub(crate) fn has_ratio(size: PixelSize, ratio: &str) -> bool {
    let own = f64::from(size.width) / f64::from(size.height.max(1));
    super::aspect_ratio::parse_ratio(ratio)
        .is_some_and(|ratio| (ratio / own).ln().abs() <= RATIO_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_media::image::ImageJob;
    use tollgate_media::video::VideoJob;

    use super::*;
    use crate::test_tables::rows;

    #[test]
    fn fields_that_are_set_and_not_supported_become_adjustments() {
        let job: ImageJob = serde_json::from_value(json!({
            "model": "m", "family": "gpt-image-2", "prompt": "p", "n": 2, "output_format": "webp",
            "size": { "pixels": { "width": 1024, "height": 1024 }, "ratio": "1:1", "tier": "1k" },
            "quality": "high", "background": "auto", "moderation": "auto",
        }))
        .unwrap();
        let changes = Adjustments::for_unsupported_fields(&job, &["quality"]);
        assert_eq!(changes.shown(), [r#"output_format: "webp" → null"#]);

        let job: VideoJob = serde_json::from_value(json!({
            "model": "m", "family": "veo-3.1", "prompt": "p", "seconds": 8, "seed": 7, "negative_prompt": "fog",
            "size": { "pixels": { "width": 1280, "height": 720 }, "ratio": "16:9", "resolution": "720p" },
        }))
        .unwrap();
        let mut shown = Adjustments::for_unsupported_fields(&job, &[]).shown();
        shown.sort();
        assert_eq!(
            shown,
            [r#"negative_prompt: "fog" → null"#, "seed: 7 → null"]
        );
    }

    #[test]
    fn a_ratio_equals_sizes_of_that_ratio() {
        type Row = (Option<String>, Option<(u32, u32)>, String, Option<String>);
        for (named, size, used, expected) in rows::<Row>("ratio_adjustments") {
            let size = size.map(|(width, height)| PixelSize::new(width, height));
            let mut changes = Adjustments::default();
            changes.ratio(named.as_deref(), size, &used);
            assert_eq!(changes.shown().first(), expected.as_ref());
        }
    }
}
