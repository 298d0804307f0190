//! Seedance videos: tasks in Ark's queue. <https://www.volcengine.com/docs/82379/1520757>

use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Map, Value, json};
use tollgate_core::TaskKind;
use tollgate_media::video::{ImageUse, VideoJob};

use super::client::{Ark, REQUEST_ID, not_served, request_id};
use super::{errors, models, prompt};
use crate::adapter::{
    self, Adjustments, HttpRequest, InlineFiles, finish_single_result, poll_error,
};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{
    Completed, InputFile, PollInterval, Polled, Queue, QueueCall, ResultData, Started, VideoCall,
    VideoProvider,
};

const POLL_TIMEOUT: Duration = Duration::from_secs(30);
const TASKS: &str = "/contents/generations/tasks";

/// The generations of Seedance, which support different fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    /// 1.0: silent videos.
    One,
    /// 1.5: with audio.
    OneAndHalf,
    /// 2.0: with audio, and from references.
    Two,
}

impl Generation {
    fn for_family(family: &str) -> Option<Self> {
        Some(match family {
            "seedance-1.0" => Self::One,
            "seedance-1.5-pro" => Self::OneAndHalf,
            "seedance-2.0" => Self::Two,
            _ => return None,
        })
    }

    /// The fields that the generation supports in addition to those of all jobs; `image_use` is how the images are used.
    fn supported_fields(self, image_use: Option<ImageUse>) -> Vec<&'static str> {
        let mut supported = vec!["seed", "return_last_frame", "watermark"];
        if self != Self::One {
            supported.push("generate_audio");
        }
        if self != Self::Two && image_use != Some(ImageUse::References) {
            supported.push("camera_fixed");
        }
        supported
    }
}

#[async_trait]
impl VideoProvider for Ark {
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        let model = models::id(call.attempt.model, self.site, !call.images.is_empty());
        let mut inline_files = InlineFiles::new();
        let (body, changes) = body(call.job, call.images, &model, &mut inline_files)?;
        changes.report_to(call.attempt.sink);
        let json = HeaderValue::from_static("application/json");
        let request = HttpRequest::post_body(self.url(TASKS), json, inline_files.into_body(&body))
            .with_authorization("Bearer ", call.attempt.key)?
            .header(REQUEST_ID, request_id(&call.attempt))
            .with_trace(call.attempt.trace)
            .creating();
        let response = self.client.send(request).await?;
        if !response.status.is_success() {
            return Err(errors::response_error(&self.client, &response));
        }
        let json = response.json();
        match json["id"].as_str() {
            Some(id) if is_task_id(id) => Ok(Started::Accepted(id.to_owned())),
            _ => {
                let error = errors::embedded_error(&self.client, &json["error"]);
                Err(error.unwrap_or_else(|| crate::adapter::unreadable_result_error(&response)))
            }
        }
    }
}

#[async_trait]
impl Queue for Ark {
    fn poll_interval(&self, _: TaskKind) -> PollInterval {
        // The fastest models take half a minute.
        PollInterval {
            first: Duration::from_secs(10),
            every: Duration::from_secs(6),
        }
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let request = HttpRequest::get(self.task_url(call.provider_job_id)?)
            .with_authorization("Bearer ", call.key)?;
        let response = self.client.send(request.with_timeout(POLL_TIMEOUT)).await?;
        if !response.status.is_success() {
            return poll_error(errors::response_error(&self.client, &response));
        }
        let json = response.json();
        match json["status"].as_str().unwrap_or_default() {
            "queued" | "running" => Ok(Polled::Pending(None)),
            "succeeded" => self.deliver_video(&call, &json).await,
            "failed" => Ok(Polled::Failed(self.missing_video_error(&json))),
            state @ ("cancelled" | "expired") => Ok(Polled::Failed(ProviderError::new(
                UpstreamErrorKind::Failed,
                format!("the upstream's task is {state}"),
            ))),
            _ => Err(crate::adapter::unexpected_response(&response)),
        }
    }

    /// Only a waiting task can be cancelled; for a running one Ark rejects the request, which changes nothing.
    async fn cancel(&self, call: QueueCall<'_>) -> Result<(), ProviderError> {
        let request =
            HttpRequest::without_body(Method::DELETE, self.task_url(call.provider_job_id)?);
        let request = request
            .with_authorization("Bearer ", call.key)?
            .with_timeout(POLL_TIMEOUT);
        let response = self.client.send(request).await?;
        if response.status.is_success() {
            return Ok(());
        }
        let error = errors::response_error(&self.client, &response);
        if is_too_late(&error) {
            return Ok(());
        }
        Err(error)
    }
}

impl Ark {
    fn task_url(&self, provider_job_id: &str) -> Result<String, ProviderError> {
        if !is_task_id(provider_job_id) {
            return Err(ProviderError::new(
                UpstreamErrorKind::Failed,
                "the task's provider job id is not one of this channel's",
            ));
        }
        Ok(self.url(&[TASKS, "/", provider_job_id].concat()))
    }

    async fn deliver_video(
        &self,
        call: &QueueCall<'_>,
        json: &Value,
    ) -> Result<Polled, ProviderError> {
        let Some(url) = json["content"]["video_url"].as_str() else {
            return Ok(Polled::Failed(self.missing_video_error(json)));
        };
        let video = ResultData::Link(self.client.link(&self.base, url, HeaderMap::new()));
        let delivered = call.sink.deliver(video).await;
        let frame = json["content"]["last_frame_url"].as_str();
        match (finish_single_result(delivered)?, frame) {
            (Polled::Completed(done), Some(url)) => self.deliver_last_frame(call, url, done).await,
            (polled, _) => Ok(polled),
        }
    }

    /// Delivers the last frame, if it was requested; if it cannot be delivered, the video still is.
    async fn deliver_last_frame(
        &self,
        call: &QueueCall<'_>,
        url: &str,
        mut completed: Completed,
    ) -> Result<Polled, ProviderError> {
        let frame = ResultData::Link(self.client.link(&self.base, url, HeaderMap::new()));
        if let Polled::Failed(error) = finish_single_result(call.sink.deliver(frame).await)? {
            completed.failures.push(error);
        }
        Ok(Polled::Completed(completed))
    }

    /// The error of a task without a video.
    fn missing_video_error(&self, json: &Value) -> ProviderError {
        errors::embedded_error(&self.client, &json["error"]).unwrap_or_else(|| {
            ProviderError::new(
                UpstreamErrorKind::Failed,
                "the upstream's task ended without a video and without an error message",
            )
        })
    }
}

/// Whether a task cannot be cancelled because it runs, has ended or is unknown.
fn is_too_late(error: &ProviderError) -> bool {
    use UpstreamErrorKind::{ModelNotFound, Rejected, UnsupportedByChannel};
    error.status == Some(409)
        || matches!(error.kind, UnsupportedByChannel | ModelNotFound | Rejected)
}

/// Whether the id has the form `cgt-…`: it becomes a part of a path.
fn is_task_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=200).contains(&id.len()) && id.chars().all(is_plain)
}

/// The request body. `watermark` is always sent, the other fields if they are set and the generation supports them.
fn body(
    job: &VideoJob,
    images: &[InputFile],
    model: &str,
    inline_files: &mut InlineFiles,
) -> Result<(Value, Adjustments), ProviderError> {
    let generation = Generation::for_family(&job.family)
        .ok_or_else(|| not_served(&job.family, "the Seedance families"))?;
    let supported = generation.supported_fields(job.image_use);
    let takes = |name: &str| supported.contains(&name);
    let mut changes = Adjustments::for_unsupported_fields(job, &supported);
    let mut body = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    set("model", Some(model.into()));
    let text = match generation {
        Generation::Two => job.prompt.as_str().into(),
        Generation::One | Generation::OneAndHalf => {
            let (text, flags) = prompt::without_flags(&job.prompt);
            if !flags.is_empty() {
                let why = "the provider would read this text as parameters";
                changes.drop_field("prompt", flags.join(" "), why);
            }
            text
        }
    };
    set(
        "content",
        Some(content(&text, job.image_use, images, inline_files)),
    );
    set("resolution", resolution(job, model)?.map(Value::from));
    set("ratio", ratio(job, images, &mut changes).map(Value::from));
    set("duration", Some(job.seconds.into()));
    set("seed", job.seed.map(Value::from));
    let audio = job.generate_audio.filter(|_| takes("generate_audio"));
    set("generate_audio", audio.map(Value::from));
    let fixed = job.camera_fixed.filter(|_| takes("camera_fixed"));
    set("camera_fixed", fixed.map(Value::from));
    set("return_last_frame", job.return_last_frame.map(Value::from));
    set("watermark", Some(job.watermark.unwrap_or(false).into()));
    Ok((body.into(), changes))
}

/// The role of the image with index `at`.
fn role(use_: Option<ImageUse>, at: usize) -> &'static str {
    match (use_, at) {
        (Some(ImageUse::References), _) => "reference_image",
        (_, 0) => "first_frame",
        _ => "last_frame",
    }
}

fn content(
    text: &str,
    image_use: Option<ImageUse>,
    images: &[InputFile],
    inline_files: &mut InlineFiles,
) -> Value {
    let text = (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }));
    let images = images.iter().enumerate().map(|(at, image)| {
        let url = inline_files.data_uri(image);
        json!({ "type": "image_url", "image_url": { "url": url }, "role": role(image_use, at) })
    });
    text.into_iter().chain(images).collect()
}

/// The resolution tier. A model that does not support it with these images is an error, so that no client gets and pays for a lower tier. The
/// families reject such requests, so this happens only with a model id that the operator configured.
fn resolution(job: &VideoJob, model: &str) -> Result<Option<String>, ProviderError> {
    let Some(requested) = job.size.resolution.as_deref().map(str::to_lowercase) else {
        return Ok(None);
    };
    let has_references = job.image_use == Some(ImageUse::References);
    let is_lite_of_references = model.contains("-lite-") && has_references;
    let is_fast = model.contains("seedance-2-0-fast");
    if requested == "1080p" && (is_lite_of_references || is_fast) {
        let message = format!("the channel's {model} does not generate this in 1080p");
        return Err(ProviderError::new(
            UpstreamErrorKind::UnsupportedByChannel,
            message,
        ));
    }
    Ok(Some(requested))
}

/// The ratios of every generation.
const RATIOS: &[&str] = &["16:9", "4:3", "1:1", "3:4", "9:16", "21:9"];

/// The ratio to request. A video that begins with an image has the image's ratio, and newer models reject another. Otherwise the client's ratio, or
/// the one nearest to the promised size.
fn ratio(job: &VideoJob, images: &[InputFile], changes: &mut Adjustments) -> Option<&'static str> {
    let named = job.size.ratio.as_deref();
    if matches!(
        job.image_use,
        Some(ImageUse::FirstFrame | ImageUse::FirstAndLast)
    ) {
        if let (Some(named), Some(first)) = (named, images.first())
            && !adapter::has_ratio(first.size, named)
        {
            let why = "a video that begins with an image has the image's ratio";
            changes.replace_value("size", named, "adaptive", why);
        }
        return None;
    }
    let used = adapter::nearest_ratio(named, job.size.pixels, RATIOS)?;
    changes.ratio(named, job.size.pixels, used);
    Some(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_media::image::PixelSize;
    use tollgate_media::video::VideoSize;

    #[test]
    fn the_ratio_is_adaptive_or_the_requested_or_the_nearest() {
        let job = |image_use, named: Option<&str>, (width, height)| VideoJob {
            model: String::new(),
            family: "seedance-2.0".into(),
            prompt: String::new(),
            seconds: 5,
            size: VideoSize {
                pixels: Some(PixelSize::new(width, height)),
                ratio: named.map(str::to_owned),
                resolution: None,
            },
            images: Vec::new(),
            image_use,
            negative_prompt: None,
            seed: None,
            generate_audio: None,
            return_last_frame: None,
            camera_fixed: None,
            watermark: None,
            person_generation: None,
            extra: Map::new(),
        };
        use ImageUse::{FirstAndLast, FirstFrame, References};
        for (image_use, named, size, expected) in [
            (Some(FirstFrame), Some("16:9"), (1280, 720), None),
            (Some(FirstAndLast), None, (1280, 720), None),
            (None, Some("21:9"), (1470, 630), Some("21:9")),
            (Some(References), Some("1:1"), (960, 960), Some("1:1")),
            (Some(References), None, (834, 1112), Some("3:4")),
            (None, Some("2:1"), (1440, 720), Some("16:9")),
        ] {
            assert_eq!(
                ratio(
                    &job(image_use, named, size),
                    &[],
                    &mut Adjustments::default()
                ),
                expected,
                "{named:?} {size:?}"
            );
        }
    }

    #[test]
    fn task_ids_with_special_characters_are_invalid() {
        assert!(is_task_id("cgt-20261121-abcde"));
        for invalid in ["", "a/b", "..", "a?b", "a b", "猫"] {
            assert!(!is_task_id(invalid), "{invalid}");
        }
    }
}
