//! Films, by the APIs that have the model in their path.

use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use tollgate_core::TaskKind;
use tollgate_media::image::PixelSize;
use tollgate_media::video::{ImageUse, VideoJob};

use super::answer::{self, State};
use super::{Kling, auth};
use crate::channel::ChannelModel;
use crate::provider::{
    FindCall, Found, Polled, ProviderError, ProviderErrorKind, Queue, QueueCall, Rhythm, Started,
    Style, VideoCall, VideoProvider,
};
use crate::wire::{Ask, Slots, hand_over, segment, unpolled};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIME: Duration = Duration::from_secs(30);
/// The ratios that films from text alone are made in.
const RATIOS: &[(&str, f64)] = &[("16:9", 16.0 / 9.0), ("9:16", 9.0 / 16.0), ("1:1", 1.0)];
/// The sides that tiers are named by, in pixels.
const TIERS: &[(&str, u32)] = &[("720p", 720), ("1080p", 1080), ("4k", 2160)];

/// What a model makes (kling.ai › document-api › video, September 2026).
struct Makes {
    /// Seconds that a film may last.
    seconds: &'static [u32],
    /// How many of the tiers it has.
    tiers: usize,
    /// Whether its sound wants the second tier.
    sound_wants_1080p: bool,
}

static OLD: Makes = Makes {
    seconds: &[5, 10],
    tiers: 2,
    sound_wants_1080p: true,
};
static NEW: Makes = Makes {
    seconds: &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    tiers: 3,
    sound_wants_1080p: false,
};

fn makes(upstream: &str) -> &'static Makes {
    let is_old = upstream.starts_with("kling-1") || upstream.starts_with("kling-2");
    if is_old { &OLD } else { &NEW }
}

/// The request's body. `slots` take the frames.
fn body(call: &VideoCall<'_>, slots: &mut Slots) -> Value {
    let job = call.job;
    let mut settings = settings(job, &call.attempt.model.upstream);
    let mut options = json!({ "external_task_id": call.attempt.external_id });
    if let Some(mark) = job.watermark {
        options["watermark_info"] = json!({ "enabled": mark });
    }
    if call.images.is_empty() {
        settings.insert("aspect_ratio".to_owned(), ratio(job.size.pixels).into());
        return json!({ "prompt": job.prompt, "settings": settings, "options": options });
    }
    let mut contents = Vec::new();
    if !job.prompt.is_empty() {
        contents.push(json!({ "type": "prompt", "text": job.prompt }));
    }
    for (kind, file) in ["first_frame", "last_frame"].iter().zip(call.images) {
        // Bare base64: a data URI is refused.
        contents.push(json!({ "type": kind, "url": slots.base64(file) }));
    }
    json!({ "contents": contents, "settings": settings, "options": options })
}

fn settings(job: &VideoJob, upstream: &str) -> Map<String, Value> {
    let makes = makes(upstream);
    let mut tier = tier(job).min(makes.tiers - 1);
    if job.generate_audio == Some(true) && makes.sound_wants_1080p {
        tier = tier.max(1);
    }
    let nearest = |seconds: &&u32| seconds.abs_diff(job.seconds);
    let seconds = *makes.seconds.iter().min_by_key(nearest).unwrap_or(&5);
    if seconds != job.seconds {
        tracing::debug!(
            asked = job.seconds,
            seconds,
            "the nearest length that the model makes"
        );
    }
    let mut settings = Map::new();
    settings.insert("resolution".to_owned(), TIERS[tier].0.into());
    settings.insert("duration".to_owned(), seconds.into());
    if let Some(sound) = job.generate_audio {
        let sound = if sound { "native" } else { "off" };
        settings.insert("audio".to_owned(), sound.into());
    }
    settings
}

/// The index of the tier asked for, by its name or by the shorter side.
fn tier(job: &VideoJob) -> usize {
    let named = job.size.resolution.as_deref();
    let named = named.and_then(|name| {
        let mut names = TIERS.iter().map(|(tier, _)| *tier);
        names.position(|tier| tier.eq_ignore_ascii_case(name))
    });
    named.unwrap_or_else(|| {
        let side = job.size.pixels.map_or(0, |p| p.width.min(p.height));
        let mut sides = TIERS.iter().map(|(_, least)| *least);
        sides
            .position(|least| side <= least)
            .unwrap_or(TIERS.len() - 1)
    })
}

/// The ratio that is nearest to that frame's.
fn ratio(pixels: Option<PixelSize>) -> &'static str {
    let shape = pixels.map_or(16.0 / 9.0, |p| {
        f64::from(p.width) / f64::from(p.height.max(1))
    });
    let distance = |ratio: f64| (ratio / shape).ln().abs();
    let nearest = RATIOS
        .iter()
        .min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
    nearest.map_or("16:9", |(name, _)| name)
}

fn refuse(call: &VideoCall<'_>) -> Result<(), ProviderError> {
    if call
        .attempt
        .key
        .is_some_and(|key| auth::pair(key).is_some())
    {
        let words = "films need an API key of Kling's: an access key with its secret opens the older APIs only";
        return Err(ProviderError::new(ProviderErrorKind::KeyRefused, words));
    }
    let are_frames = call.job.image_use != Some(ImageUse::References);
    if call.images.len() > 2 || !are_frames {
        let words = format!(
            "the channel's model takes a first and a last frame and no other images, {} were given",
            call.images.len()
        );
        return Err(ProviderError::new(ProviderErrorKind::ChannelUnfit, words));
    }
    Ok(())
}

/// A success that says nothing of use may have made a film all the same: it can be looked for by our id.
fn may_have_been_made(error: ProviderError) -> ProviderError {
    let is_success = error
        .status
        .is_some_and(|status| (200..300).contains(&status));
    if is_success && error.kind == ProviderErrorKind::Retryable {
        return ProviderError {
            kind: ProviderErrorKind::Unknown,
            ..error
        };
    }
    error
}

#[async_trait]
impl VideoProvider for Kling {
    fn style(&self, _: &ChannelModel) -> Style {
        Style::Queued
    }

    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        refuse(&call)?;
        let api = match call.images {
            [] => "text-to-video",
            _ => "image-to-video",
        };
        let model = segment(&call.attempt.model.upstream);
        let url = format!("{}/{api}/{model}", self.base);
        let make = || {
            let mut slots = Slots::new();
            let body = body(&call, &mut slots);
            Ask::post_parts(&url, JSON, slots.fill(&body)).once()
        };
        let asked = self.created(call.attempt.key, make).await;
        let data = asked.map_err(may_have_been_made)?;
        match data["id"].as_str() {
            Some(id) => Ok(Started::Accepted(id.to_owned())),
            // Whatever it made can be looked for by our id.
            None => Err(ProviderError::new(
                ProviderErrorKind::Unknown,
                "the upstream's answer names no task",
            )),
        }
    }
}

#[async_trait]
impl Queue for Kling {
    fn rhythm(&self, _: TaskKind) -> Rhythm {
        Rhythm::every(10)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let url = format!("{}/tasks?task_ids={}", self.base, segment(call.ticket));
        let asked = self.data(call.key, || Ask::get(&url).within(POLL_TIME));
        let tasks = match asked.await {
            Ok(tasks) => tasks,
            Err(error) => return unpolled(error),
        };
        let is_it = |task: &&Value| task["id"] == call.ticket;
        let Some(task) = tasks.as_array().into_iter().flatten().find(is_it) else {
            return Ok(Polled::Failed(ProviderError::new(
                ProviderErrorKind::Failed,
                "the upstream does not know the task any more",
            )));
        };
        match State::of(&task["status"]) {
            State::Open => Ok(Polled::Waiting(None)),
            State::Failed => {
                let words = task["message"].as_str().unwrap_or_default();
                Ok(Polled::Failed(answer::failure(&self.wire, words)))
            }
            State::Done => {
                let outputs = task["outputs"].as_array().into_iter().flatten();
                let films = outputs.filter(|output| output["type"] == "video");
                let links = films.filter_map(|film| film["url"].as_str());
                let link = |url| Ok(self.wire.link(&self.base, url, HeaderMap::new()));
                hand_over(call.delivery, links.map(link).collect()).await
            }
        }
    }

    async fn find(&self, call: FindCall<'_>) -> Result<Found, ProviderError> {
        if call.job.kind() != TaskKind::Video {
            return Ok(Found::CannotTell);
        }
        let id = segment(call.external_id);
        let url = format!("{}/tasks?external_task_ids={id}", self.base);
        let tasks = self
            .data(call.key, || Ask::get(&url).within(POLL_TIME))
            .await?;
        Ok(match tasks[0]["id"].as_str() {
            Some(id) => Found::Accepted(id.to_owned()),
            None => Found::Nothing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(given: Value) -> VideoJob {
        let mut whole = json!({
            "model": "m", "family": "f", "prompt": "p", "seconds": 5, "images": [], "extra": {},
            "size": { "pixels": { "width": 1280, "height": 720 }, "ratio": "16:9", "resolution": "720p" },
        });
        let given = given.as_object().cloned().unwrap_or_default();
        whole.as_object_mut().unwrap().extend(given);
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_film_is_made_as_near_to_the_wish_as_the_model_can() {
        let size = |w: u32, h: u32, tier: &str| json!({ "pixels": { "width": w, "height": h }, "ratio": null, "resolution": tier });
        for (given, upstream, expected) in [
            (
                json!({}),
                "kling-2.6",
                json!({ "resolution": "720p", "duration": 5 }),
            ),
            (
                json!({ "seconds": 8 }),
                "kling-2.6",
                json!({ "resolution": "720p", "duration": 10 }),
            ),
            (
                json!({ "seconds": 8 }),
                "kling-3.0",
                json!({ "resolution": "720p", "duration": 8 }),
            ),
            (
                json!({ "seconds": 2 }),
                "kling-3.0-turbo",
                json!({ "resolution": "720p", "duration": 3 }),
            ),
            (
                json!({ "generate_audio": true }),
                "kling-2.6",
                json!({ "resolution": "1080p", "duration": 5, "audio": "native" }),
            ),
            (
                json!({ "generate_audio": false }),
                "kling-3.0",
                json!({ "resolution": "720p", "duration": 5, "audio": "off" }),
            ),
            (
                json!({ "size": size(3840, 2160, "4K") }),
                "kling-3.0",
                json!({ "resolution": "4k", "duration": 5 }),
            ),
            (
                json!({ "size": size(3840, 2160, "4k") }),
                "kling-2.6",
                json!({ "resolution": "1080p", "duration": 5 }),
            ),
            (
                json!({ "size": size(864, 480, "480p") }),
                "kling-3.0",
                json!({ "resolution": "720p", "duration": 5 }),
            ),
        ] {
            let made = Value::Object(settings(&job(given.clone()), upstream));
            assert_eq!(made, expected, "{given} {upstream}");
        }
    }

    #[test]
    fn ratios_are_the_nearest_of_three() {
        for ((width, height), expected) in [
            ((1280, 720), "16:9"),
            ((1664, 720), "16:9"),
            ((900, 720), "1:1"),
            ((720, 1280), "9:16"),
            ((720, 720), "1:1"),
        ] {
            assert_eq!(ratio(Some(PixelSize::new(width, height))), expected);
        }
    }
}
