//! Adjustments of a mapped request: values that the model is sent in place of the job's, and fields that it lacks.

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
        let Some(asked) = job.requested(source) else {
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
        let is_set = is_set_by_client(job, source, &asked);
        let always = self.constants.get(field);
        match (
            converted
                .into_iter()
                .find_map(|converted| converted.adjusted_to),
            always,
        ) {
            (Some(Value::Null), _) if is_set => {
                adjustments.drop_field(field, asked, "the channel's model has no such value");
            }
            (Some(Value::Null), _) => {}
            (Some(near), _) => {
                let why = "the nearest that the channel's model takes";
                adjustments.replace_value(field, asked, near, why);
            }
            (None, Some(always)) => {
                let why = "the channel always asks for this";
                adjustments.replace_value(field, asked, always.clone(), why);
            }
            (None, None) if is_set => {
                adjustments.drop_field(field, asked, "the channel's model has no such field");
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
        // In families without a field for tiers `size` has them.
        RESOLUTION if !has(RESOLUTION) => SIZE,
        _ => source.strip_prefix(EXTRA).unwrap_or(source),
    }
}

/// Whether the client must have set the field: without it the job would have another value.
fn is_set_by_client(job: &JobFields<'_>, source: &str, asked: &Value) -> bool {
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
    default.is_some_and(|default| default != *asked)
}

/// The default ratio or pixels of a family. `None` if they follow an image.
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
            // Its tiers are squares, or follow an image.
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
    use serde_json::json;
    use tollgate_media::{Catalogue, Job, parse_request};

    use super::*;
    use crate::channel::ChannelModel;

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

    fn video_adjustments(body: Value, options: Value) -> Vec<String> {
        let mut whole = json!({ "model": "veo-3.1-pro", "prompt": "a boat" });
        let body = body.as_object().cloned().unwrap();
        whole.as_object_mut().unwrap().extend(body);
        adjustments_of("veo-3.1-pro", whole, options)
    }

    /// Rules for every field of a video.
    fn all_rules() -> Value {
        json!({ "prompt": "p", "seconds": "s", "size": "ar", "resolution": "r", "seed": "seed", "negative_prompt": "np",
            "generate_audio": "ga", "person_generation": "pg" })
    }

    #[test]
    fn supported_fields_are_not_adjusted() {
        let body = json!({ "seconds": "8", "aspect_ratio": "9:16", "resolution": "4k",
            "metadata": { "seed": 5, "negativePrompt": "fog", "generateAudio": false } });
        assert_eq!(
            video_adjustments(body.clone(), json!({ "input": all_rules() })),
            [""; 0],
            "every field"
        );
        let mut input = all_rules();
        input["seconds"] = json!({ "to": "s", "as": "{}s", "of": [4, 6, 8] });
        input["size"] = json!({ "to": "ar", "values": { "9:16": "tall", "16:9": "wide" } });
        input["resolution"] = json!({ "to": "r", "of": ["720p", "4K"] });
        assert_eq!(
            video_adjustments(body.clone(), json!({ "input": input })),
            [""; 0],
            "among the values"
        );
        // One of two targets says it all.
        input["size"] = json!([{ "to": "ar", "of": ["1:1"] }, { "to": "w", "as": "width" }]);
        assert_eq!(
            video_adjustments(body, json!({ "input": input })),
            [""; 0],
            "exactly once"
        );
        // Nobody asked for what a request gets by default.
        let bare = json!({ "prompt": "p" });
        assert_eq!(
            video_adjustments(json!({}), json!({ "input": bare })),
            [""; 0],
            "nothing"
        );
    }

    #[test]
    fn the_nearest_value_is_an_adjustment() {
        let mut input = all_rules();
        input["seconds"] = json!({ "to": "s", "of": [5, 10] });
        input["size"] = json!({ "to": "ar", "of": ["1:1", "4:3"] });
        input["resolution"] = json!({ "to": "r", "of": ["480p"] });
        let body = json!({ "seconds": "6", "aspect_ratio": "16:9" });
        assert_eq!(
            video_adjustments(body, json!({ "input": input })),
            [
                r#"size: "16:9" → "4:3""#,
                r#"resolution: "720p" → "480p""#,
                "seconds: 6 → 5",
            ]
        );
        // A default that the model has not is told too: the family promises it.
        input["seconds"] = json!({ "to": "s", "between": [2, 5] });
        input["size"] = json!("ar");
        input["resolution"] = json!("r");
        assert_eq!(
            video_adjustments(json!({}), json!({ "input": input })),
            ["seconds: 8 → 5"]
        );
        let speech = json!({ "model": "native-v3", "input": "Hello.", "speed": 4.0 });
        let options =
            json!({ "input": { "prompt": "t", "speed": { "to": "s", "between": [0.5, 2] } } });
        assert_eq!(
            adjustments_of("native-v3", speech, options),
            ["speed: 4.0 → 2"]
        );
        // Images have their size `size` alone, in pixels if the family has those.
        let image_adjustments =
            json!({ "model": "gpt-image-2-official", "prompt": "p", "size": "1536x1024" });
        let options = json!({ "input": { "prompt": "p", "size": { "to": "s", "of": ["1:1"] } } });
        assert_eq!(
            adjustments_of("gpt-image-2-official", image_adjustments, options),
            [r#"size: "1536x1024" → "1:1""#]
        );
    }

    #[test]
    fn an_unsupported_value_is_an_adjustment() {
        let mut input = all_rules();
        input["person_generation"] = json!({ "to": "pg", "of": ["allow_adult"] });
        input["generate_audio"] = json!({ "to": "ga", "values": { "false": "mute" } });
        let body = json!({ "metadata": { "personGeneration": "dont_allow" } });
        assert_eq!(
            video_adjustments(body, json!({ "input": input })),
            [r#"person_generation: "dont_allow" → null"#],
            "audio is the default"
        );
    }

    #[test]
    fn a_field_without_a_rule_is_an_adjustment() {
        let body = json!({ "seconds": "8", "aspect_ratio": "9:16", "resolution": "1080p",
            "metadata": { "seed": 5, "negativePrompt": "fog", "generateAudio": false } });
        let bare = json!({ "input": { "prompt": "p" } });
        assert_eq!(
            video_adjustments(body.clone(), bare),
            [
                r#"size: "9:16" → null"#,
                r#"resolution: "1080p" → null"#,
                r#"negative_prompt: "fog" → null"#,
                "seed: 5 → null",
                "generate_audio: false → null",
            ]
        );
        // Pixels say the tier too; what is implied needs no word.
        let options = json!({ "input": { "prompt": "p", "size": { "to": "s", "as": "object" } },
            "implied": ["seed", "negative_prompt", "generate_audio"] });
        assert_eq!(video_adjustments(body, options), [""; 0]);
        let speech = json!({ "model": "native-v3", "input": "Hello.", "instructions": "softly", "external_task_id": "e" });
        assert_eq!(
            adjustments_of(
                "native-v3",
                speech,
                json!({ "input": { "prompt": "text" } })
            ),
            [r#"instructions: "softly" → null"#]
        );
    }

    #[test]
    fn a_constant_with_another_value_is_an_adjustment() {
        let options = |audio: bool| json!({ "input": { "prompt": "p" }, "constants": { "generate_audio": audio } });
        let body = json!({ "metadata": { "generateAudio": false } });
        assert_eq!(video_adjustments(body.clone(), options(false)), [""; 0]);
        assert_eq!(
            video_adjustments(body, options(true)),
            ["generate_audio: false → true"]
        );
    }

    #[test]
    fn a_familys_own_fields_without_rules_are_adjustments() {
        let image_adjustments = |more: Value| {
            let mut whole = json!({ "model": "doubao-seedream-4.5", "prompt": "p" });
            let more = more.as_object().cloned().unwrap();
            whole.as_object_mut().unwrap().extend(more);
            adjustments_of(
                "doubao-seedream-4.5",
                whole,
                json!({ "input": { "prompt": "p", "size": "s" } }),
            )
        };
        assert_eq!(image_adjustments(json!({})), [""; 0], "all defaults");
        assert_eq!(
            image_adjustments(
                json!({ "resolution": "4K", "watermark": true, "optimize_prompt_mode": "fast" })
            ),
            [
                r#"resolution: "4K" → null"#,
                "watermark: true → null",
                r#"optimize_prompt_options: {"mode":"fast"} → null"#,
            ]
        );
        // Tiers of wan2.7 are values of `size`.
        let tier = json!({ "model": "wan2.7-image", "prompt": "p", "size": "1K" });
        let options = json!({ "input": { "prompt": "p" } });
        assert_eq!(
            adjustments_of("wan2.7-image", tier, options),
            [r#"size: "1K" → null"#]
        );
    }
}
