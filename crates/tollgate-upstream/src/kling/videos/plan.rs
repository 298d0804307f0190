//! What is asked for of a video: what is nearest to the job among what the model makes.

use tollgate_media::video::{ImageUse, VideoJob};

use super::models::{Api, LastFrame, Makes, Sound, Tier};
use crate::adapter::{Adjustments, nearest_ratio};
use crate::error::{ProviderError, UpstreamErrorKind};

/// The ratios that videos from text alone are made in.
const RATIOS: &[&str] = &["16:9", "9:16", "1:1"];
/// The sides that tiers are named by, in pixels.
const LINES: &[(&str, u32)] = &[("720p", 720), ("1080p", 1080), ("4k", 2160)];
/// The only length of videos with a last frame where only short ones may have one.
const SHORT: u32 = 5;

/// A video as it is asked for.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) tier: &'static Tier,
    pub(super) seconds: u32,
    /// `None` if it is not for us to say, or for nobody.
    pub(super) sound: Option<bool>,
    /// `None` if the video has the first frame's.
    pub(super) ratio: Option<&'static str>,
}

impl Plan {
    /// The video of a `job` with so many `images`, and what differs from the job; an error where the model makes none
    /// like it.
    pub(super) fn of(
        job: &VideoJob,
        images: usize,
        makes: &'static Makes,
        api: Api,
    ) -> Result<(Self, Adjustments), ProviderError> {
        refuse(job, images, makes)?;
        let mut changes = Adjustments::for_unsupported_fields(job, carried(api));
        let has_last_frame = images == 2;
        let sound = sound(job, has_last_frame, makes, &mut changes);
        let tier = tier(job, has_last_frame, sound, makes, &mut changes);
        let seconds = seconds(job, has_last_frame, makes, &mut changes);
        let ratio = match images {
            0 => from_text(job, &mut changes),
            _ => {
                if let Some(asked) = &job.size.ratio {
                    let why = "the video has the first frame's ratio";
                    changes.drop_field("size", asked.as_str(), why);
                }
                None
            }
        };
        let plan = Self {
            tier,
            seconds,
            sound,
            ratio,
        };
        Ok((plan, changes))
    }
}

/// The fields beyond length and size that an API takes.
fn carried(api: Api) -> &'static [&'static str] {
    match api {
        Api::Newer => &["generate_audio", "watermark"],
        Api::Older => &["generate_audio", "watermark", "negative_prompt"],
    }
}

fn refuse(job: &VideoJob, images: usize, makes: &Makes) -> Result<(), ProviderError> {
    let unsupported = |words: String| {
        Err(ProviderError::new(
            UpstreamErrorKind::UnsupportedByChannel,
            words,
        ))
    };
    let are_frames = job.image_use != Some(ImageUse::References);
    if images > 2 || !are_frames {
        return unsupported(format!(
            "the channel's model takes a first and a last frame and no other images, {images} were given"
        ));
    }
    if images == 2 && makes.last_frame == LastFrame::Never {
        return unsupported(
            "the channel's model takes a first frame only, 2 images were given".into(),
        );
    }
    if images == 0 && !makes.from_text {
        return unsupported(
            "the channel's model makes videos from images only, none was given".into(),
        );
    }
    Ok(())
}

fn sound(
    job: &VideoJob,
    has_last_frame: bool,
    makes: &Makes,
    changes: &mut Adjustments,
) -> Option<bool> {
    let asked = job.generate_audio?;
    let (made, why) = match makes.sound {
        Sound::Never => (false, "the provider's model makes no sound"),
        Sound::Always => (true, "the provider's model makes no video without sound"),
        Sound::AtBest if has_last_frame && makes.last_frame == LastFrame::AtBest => (
            false,
            "the provider's model makes no sound with a last frame",
        ),
        Sound::AtBest | Sound::Wanted => (asked, ""),
    };
    changes.replace_value("generate_audio", asked, made, why);
    let has_choice = matches!(makes.sound, Sound::AtBest | Sound::Wanted);
    has_choice.then_some(made)
}

/// The tier asked for, by its name or by the shorter side, else the nearest.
fn tier(
    job: &VideoJob,
    has_last_frame: bool,
    sound: Option<bool>,
    makes: &'static Makes,
    changes: &mut Adjustments,
) -> &'static Tier {
    let asked = job.size.resolution.as_deref();
    let named = asked.and_then(|asked| {
        let mut names = LINES.iter().map(|(name, _)| *name);
        names.position(|name| name.eq_ignore_ascii_case(asked))
    });
    let request = named.unwrap_or_else(|| {
        let side = job.size.pixels.map_or(0, |p| p.width.min(p.height));
        let at_least = LINES.iter().position(|(_, lines)| side <= *lines);
        at_least.unwrap_or(LINES.len() - 1)
    });
    let best = makes.tiers.len() - 1;
    let (at, why) = match request {
        _ if has_last_frame && makes.last_frame == LastFrame::AtBest => {
            (best, "the provider's model takes a last frame at this only")
        }
        _ if sound == Some(true) && makes.sound == Sound::AtBest => {
            (best, "the provider's model makes sound at this only")
        }
        request => (
            request.min(best),
            "the provider's model does not make this: the nearest that it makes",
        ),
    };
    let tier = &makes.tiers[at];
    if let Some(asked) = asked.filter(|asked| !asked.eq_ignore_ascii_case(tier.name)) {
        changes.replace_value("resolution", asked, tier.name, why);
    }
    tier
}

/// The nearest length that the model makes.
fn seconds(job: &VideoJob, has_last_frame: bool, makes: &Makes, changes: &mut Adjustments) -> u32 {
    let (lengths, why) = match makes.last_frame {
        LastFrame::InShortVideos if has_last_frame => (
            &[SHORT] as &[u32],
            "the provider's model takes a last frame in videos of this length only",
        ),
        _ => (
            makes.seconds,
            "the provider's model does not make this length: the nearest that it makes",
        ),
    };
    let off = |seconds: &u32| seconds.abs_diff(job.seconds);
    let nearest = lengths.iter().copied().min_by_key(off).unwrap_or(SHORT);
    changes.replace_value("seconds", job.seconds, nearest, why);
    nearest
}

fn from_text(job: &VideoJob, changes: &mut Adjustments) -> Option<&'static str> {
    let named = job.size.ratio.as_deref();
    let nearest = nearest_ratio(named, job.size.pixels, RATIOS).unwrap_or(RATIOS[0]);
    changes.ratio(named, job.size.pixels, nearest);
    Some(nearest)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::models;
    use super::*;

    fn job(given: &Value) -> VideoJob {
        let mut whole = json!({
            "model": "m", "family": "seedance-1.5-pro", "prompt": "p", "seconds": 5,
            "size": { "pixels": { "width": 1280, "height": 720 }, "ratio": "16:9", "resolution": "720p" },
        });
        let given = given.as_object().cloned().unwrap_or_default();
        whole.as_object_mut().unwrap().extend(given);
        serde_json::from_value(whole).unwrap()
    }

    fn plan(
        upstream: &str,
        images: usize,
        given: &Value,
    ) -> Result<(Plan, Vec<String>), ProviderError> {
        let (api, _, makes) = models::choose(upstream, false).unwrap();
        let (plan, changes) = Plan::of(&job(given), images, makes, api)?;
        Ok((plan, changes.shown()))
    }

    fn size(width: u32, height: u32, ratio: &str, tier: &str) -> Value {
        json!({ "size": {
            "pixels": { "width": width, "height": height }, "ratio": ratio, "resolution": tier,
        } })
    }

    #[test]
    fn a_video_is_as_near_to_the_request_as_the_model_can() {
        let sound = |on: bool| json!({ "generate_audio": on });
        let seconds = |seconds: u32| json!({ "seconds": seconds });
        for (upstream, given, (tier, length, audio), changed) in [
            ("kling-2.6", json!({}), ("720p", 5, None), None),
            (
                "kling-2.6",
                seconds(8),
                ("720p", 10, None),
                Some("seconds: 8 → 10"),
            ),
            (
                "kling-v2-6",
                seconds(6),
                ("720p", 5, None),
                Some("seconds: 6 → 5"),
            ),
            ("kling-3.0", seconds(8), ("720p", 8, None), None),
            ("kling-v3", seconds(15), ("720p", 15, None), None),
            (
                "kling-3.0-turbo",
                seconds(2),
                ("720p", 3, None),
                Some("seconds: 2 → 3"),
            ),
            ("kling-3.0-turbo", sound(true), ("720p", 5, None), None),
            (
                "kling-3.0-turbo",
                sound(false),
                ("720p", 5, None),
                Some("generate_audio: false → true"),
            ),
            (
                "kling-3.0-turbo",
                size(3840, 2160, "16:9", "4k"),
                ("1080p", 5, None),
                Some(r#"resolution: "4k" → "1080p""#),
            ),
            (
                "kling-2.6",
                sound(true),
                ("1080p", 5, Some(true)),
                Some(r#"resolution: "720p" → "1080p""#),
            ),
            ("kling-3.0", sound(true), ("720p", 5, Some(true)), None),
            ("kling-3.0", sound(false), ("720p", 5, Some(false)), None),
            ("kling-v1-6", sound(false), ("720p", 5, None), None),
            (
                "kling-v1-6",
                sound(true),
                ("720p", 5, None),
                Some("generate_audio: true → false"),
            ),
            (
                "kling-3.0",
                size(3840, 2160, "16:9", "4K"),
                ("4k", 5, None),
                None,
            ),
            (
                "kling-2.6",
                size(3840, 2160, "16:9", "4k"),
                ("1080p", 5, None),
                Some(r#"resolution: "4k" → "1080p""#),
            ),
            (
                "kling-3.0",
                size(864, 480, "16:9", "480p"),
                ("720p", 5, None),
                Some(r#"resolution: "480p" → "720p""#),
            ),
            (
                "kling-v2-master",
                size(1920, 1080, "16:9", "1080p"),
                ("720p", 5, None),
                Some(r#"resolution: "1080p" → "720p""#),
            ),
            (
                "kling-v2-1-master",
                json!({}),
                ("1080p", 5, None),
                Some(r#"resolution: "720p" → "1080p""#),
            ),
        ] {
            let (plan, changes) = plan(upstream, 0, &given).unwrap();
            let made = (plan.tier.name, plan.seconds, plan.sound);
            assert_eq!(made, (tier, length, audio), "{upstream} {given}");
            let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
            assert_eq!(
                changes,
                changed.into_iter().collect::<Vec<_>>(),
                "{upstream} {given}"
            );
        }
    }

    #[test]
    fn ratios_are_the_nearest_of_three() {
        for ((width, height, named), expected, is_changed) in [
            ((1280, 720, "16:9"), "16:9", false),
            ((1664, 720, "21:9"), "16:9", true),
            ((1112, 834, "4:3"), "1:1", true),
            ((720, 1280, "9:16"), "9:16", false),
            ((960, 960, "1:1"), "1:1", false),
        ] {
            let given = size(width, height, named, "720p");
            let (plan, changes) = plan("kling-3.0", 0, &given).unwrap();
            assert_eq!(plan.ratio, Some(expected), "{named}");
            assert_eq!(!changes.is_empty(), is_changed, "{named} {changes:?}");
        }
    }

    #[test]
    fn a_last_frame_has_its_price() {
        let sounding = json!({ "generate_audio": true, "seconds": 10 });
        for (upstream, (mode, length, sound), changed) in [
            ("kling-3.0", (Some("std"), 10, Some(true)), &[] as &[&str]),
            (
                "kling-v2-6",
                (Some("pro"), 10, Some(false)),
                &[
                    "generate_audio: true → false",
                    r#"resolution: "720p" → "1080p""#,
                ],
            ),
            (
                "kling-v1-6",
                (Some("pro"), 10, None),
                &[
                    "generate_audio: true → false",
                    r#"resolution: "720p" → "1080p""#,
                ],
            ),
            (
                "kling-v1",
                (Some("std"), 5, None),
                &["generate_audio: true → false", "seconds: 10 → 5"],
            ),
        ] {
            let (plan, changes) = plan(upstream, 2, &sounding).unwrap();
            assert_eq!(
                (plan.tier.mode, plan.seconds, plan.sound),
                (mode, length, sound),
                "{upstream}"
            );
            assert_eq!(plan.ratio, None);
            let mut expected = changed.to_vec();
            expected.push(r#"size: "16:9" → null"#);
            assert_eq!(changes, expected, "{upstream}");
        }
    }

    #[test]
    fn what_an_api_does_not_take_is_left_out() {
        let given = json!({
            "seed": 7, "camera_fixed": true, "return_last_frame": true, "watermark": true,
            "generate_audio": true,
        });
        for upstream in ["kling-3.0", "kling-v3"] {
            let (_, mut changes) = plan(upstream, 0, &given).unwrap();
            changes.sort();
            let expected = [
                "camera_fixed: true → null",
                "return_last_frame: true → null",
                "seed: 7 → null",
            ];
            assert_eq!(changes, expected, "{upstream}");
        }
        let given = json!({
            "family": "veo-3.1", "negative_prompt": "fog", "person_generation": "dont_allow",
        });
        for (upstream, expected) in [
            (
                "kling-3.0",
                &[
                    r#"negative_prompt: "fog" → null"#,
                    r#"person_generation: "dont_allow" → null"#,
                ] as &[&str],
            ),
            ("kling-v3", &[r#"person_generation: "dont_allow" → null"#]),
        ] {
            let (_, mut changes) = plan(upstream, 0, &given).unwrap();
            changes.sort();
            assert_eq!(changes, expected, "{upstream}");
        }
    }

    #[test]
    fn what_a_model_does_not_support_is_rejected() {
        for (upstream, images, given, expected) in [
            ("kling-3.0", 3, json!({}), "3 were given"),
            (
                "kling-3.0",
                2,
                json!({ "image_use": "references" }),
                "no other images",
            ),
            ("kling-v2-master", 2, json!({}), "a first frame only"),
            ("kling-3.0-turbo", 2, json!({}), "a first frame only"),
            ("kling-v2-1", 0, json!({}), "from images only"),
            ("kling-v1-5", 0, json!({}), "from images only"),
        ] {
            let error = plan(upstream, images, &given).unwrap_err();
            assert_eq!(error.kind, UpstreamErrorKind::UnsupportedByChannel);
            assert!(
                error.message.contains(expected),
                "{upstream}: {}",
                error.message
            );
        }
    }
}
