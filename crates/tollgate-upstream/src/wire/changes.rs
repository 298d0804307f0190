//! What a request asks for otherwise than its job: told to the client as adjustments (DECISIONS.md › Values).

use serde::Serialize;
use serde_json::{Map, Value};
use tollgate_core::Adjustment;
use tollgate_media::image::PixelSize;
use tollgate_media::{MediaJob, choices};

use crate::provider::Delivery;

/// Fields that are for the gateway itself: no provider takes them.
const OURS: &[&str] = &["external_task_id", "official_fallback"];
/// How far a ratio may be from another that counts as the same: sides are whole, and even or in steps.
const SAME_RATIO: f64 = 0.02;

/// What a request asks for otherwise than its job. Collected while the request is made, told before it is sent.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<Adjustment>);

impl Changes {
    /// Everything that `job` chooses and `carried` does not name: it is left out.
    pub(crate) fn unless_carried<J: MediaJob + Serialize>(job: &J, carried: &[&str]) -> Self {
        let mut changes = Self::default();
        for (field, asked) in chosen(job) {
            if !carried.contains(&field.as_str()) {
                changes.left_out(&field, asked, "the provider has no such field");
            }
        }
        changes
    }

    /// `used` is asked for in the place of `asked`; nothing where they are the same.
    pub(crate) fn instead(
        &mut self,
        field: &str,
        asked: impl Into<Value>,
        used: impl Into<Value>,
        why: &str,
    ) {
        let (asked, used) = (asked.into(), used.into());
        let is_new = !self.0.iter().any(|change| change.field == field);
        if asked != used && is_new {
            self.0.push(Adjustment::new(field, asked, used, why));
        }
    }

    /// `asked` is not asked for.
    pub(crate) fn left_out(&mut self, field: &str, asked: impl Into<Value>, why: &str) {
        self.instead(field, asked, Value::Null, why);
    }

    /// The ratio `used` is asked for where the job says `named`, or `size` alone.
    pub(crate) fn ratio(&mut self, named: Option<&str>, size: Option<PixelSize>, used: &str) {
        let why = "the provider takes ratios: the nearest that it has";
        match (named, size) {
            (Some(named), _) if super::ratio::value(named).is_some() => {
                self.instead("size", named, used, why);
            }
            (_, Some(size)) if !is_of_ratio(size, used) => {
                self.instead("size", size.to_string(), used, why);
            }
            _ => {}
        }
    }

    /// Tells them.
    pub(crate) fn tell(self, delivery: &dyn Delivery) {
        for change in self.0 {
            delivery.adjusted(change);
        }
    }

    /// As `field: asked → used`.
    #[cfg(test)]
    pub(crate) fn shown(&self) -> Vec<String> {
        let text = |a: &Adjustment| format!("{}: {} → {}", a.field, a.asked, a.used);
        self.0.iter().map(text).collect()
    }
}

/// What `job` chooses that is for a provider.
pub(crate) fn chosen<J: MediaJob + Serialize>(job: &J) -> Map<String, Value> {
    let mut chosen = choices(job);
    chosen.retain(|field, _| !OURS.contains(&field.as_str()));
    chosen
}

/// Whether a picture of that size has that ratio, but for what rounding to whole sides does.
pub(crate) fn is_of_ratio(size: PixelSize, ratio: &str) -> bool {
    let own = f64::from(size.width) / f64::from(size.height.max(1));
    super::ratio::value(ratio).is_some_and(|ratio| (ratio / own).ln().abs() <= SAME_RATIO)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_media::image::ImageJob;
    use tollgate_media::video::VideoJob;

    use super::*;

    #[test]
    fn what_is_chosen_and_not_carried_is_left_out() {
        let job: ImageJob = serde_json::from_value(json!({
            "model": "m", "family": "gpt-image-2", "prompt": "p", "n": 2, "output_format": "webp",
            "size": { "pixels": { "width": 1024, "height": 1024 }, "ratio": "1:1", "tier": "1k" },
            "quality": "high", "background": "auto", "moderation": "auto",
        }))
        .unwrap();
        let changes = Changes::unless_carried(&job, &["quality"]);
        assert_eq!(changes.shown(), [r#"output_format: "webp" → null"#]);

        let job: VideoJob = serde_json::from_value(json!({
            "model": "m", "family": "veo-3.1", "prompt": "p", "seconds": 8, "seed": 7, "negative_prompt": "fog",
            "size": { "pixels": { "width": 1280, "height": 720 }, "ratio": "16:9", "resolution": "720p" },
        }))
        .unwrap();
        let mut shown = Changes::unless_carried(&job, &[]).shown();
        shown.sort();
        assert_eq!(
            shown,
            [r#"negative_prompt: "fog" → null"#, "seed: 7 → null"]
        );
    }

    #[test]
    fn a_ratio_is_the_same_as_its_sizes() {
        let size = |width, height| Some(PixelSize::new(width, height));
        for (named, size, used, expected) in [
            (Some("16:9"), size(1280, 720), "16:9", None),
            (
                Some("21:9"),
                size(1680, 720),
                "16:9",
                Some(r#"size: "21:9" → "16:9""#),
            ),
            (None, size(1248, 704), "16:9", None),
            (None, size(1152, 864), "4:3", None),
            (
                None,
                size(1000, 200),
                "16:9",
                Some(r#"size: "1000x200" → "16:9""#),
            ),
            (Some("auto"), size(1024, 1024), "1:1", None),
            (None, None, "1:1", None),
        ] {
            let mut changes = Changes::default();
            changes.ratio(named, size, used);
            assert_eq!(changes.shown().first().map(String::as_str), expected);
        }
    }
}
