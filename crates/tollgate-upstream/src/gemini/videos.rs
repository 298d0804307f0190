//! Generates videos with Veo, by Google's long-running operations.
//! <https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/veo-video-generation>

use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tollgate_core::TaskKind;
use tollgate_media::video::VideoJob;

use super::client::{Gemini, not_served};
use super::platform::Surface;
use super::{errors, models};
use crate::adapter::{
    self, Adjustments, HttpRequest, HttpResponse, InlineFiles, finish_single_result, poll_error,
};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{
    InputFile, PollInterval, Polled, Queue, QueueCall, ResultData, Started, VideoCall,
    VideoProvider,
};

/// The timeout of a poll, also between the chunks of a response that contains the video.
const POLL: Duration = Duration::from_secs(30);

/// The fields of a response that contain the video itself.
const FILES: &[&str] = &["bytesBase64Encoded", "encodedVideo"];
const RATIOS: &[&str] = &["16:9", "9:16"];
const FAMILY: &str = "veo-3.1";
/// The fields that are supported in addition to those of all jobs; on the Developer API only the first two.
const SUPPORTED_FIELDS: &[&str] = &[
    "negative_prompt",
    "person_generation",
    "seed",
    "generate_audio",
];

#[async_trait]
impl VideoProvider for Gemini {
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        if call.job.family != FAMILY {
            return Err(not_served(&call.job.family, "Veo"));
        }
        let model = models::id(call.attempt.model, self.endpoint.surface);
        let mut inline_files = InlineFiles::new();
        let (body, changes) = body(
            call.job,
            call.images,
            self.endpoint.surface,
            &mut inline_files,
        );
        changes.report_to(call.attempt.sink);
        let json = HeaderValue::from_static("application/json");
        let uri = self.method(model, "predictLongRunning");
        let request = HttpRequest::post_body(uri, json, inline_files.into_body(&body))
            .with_trace(call.attempt.trace)
            .creating();
        let request = self.authorized(request, call.attempt.key).await?;
        let response = self.client.send(request).await?;
        if !response.status.is_success() {
            let status = response.status.as_u16();
            self.access
                .discard_if_rejected(call.attempt.key, Some(status))
                .await;
            return Err(errors::response_error(&self.client, &response));
        }
        match response.json()["name"].as_str() {
            Some(name) if is_operation(name) => Ok(Started::Accepted(name.to_owned())),
            _ => Err(crate::adapter::unreadable_result_error(&response)),
        }
    }
}

#[async_trait]
impl Queue for Gemini {
    fn poll_interval(&self, _: TaskKind) -> PollInterval {
        // The shortest videos take 11 seconds.
        PollInterval::every(10)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let request = self.poll_request(&call)?.with_timeout(POLL);
        let request = self.authorized(request, call.key).await?;
        let mut stream = self.client.send_for_base64_stream(request, FILES).await?;
        if stream.next_file().await? {
            let video = ResultData::Stream(stream.into_stream());
            return finish_single_result(call.sink.deliver(video).await);
        }
        let response = stream.into_response();
        let status = response.status.as_u16();
        if response.status.is_success() {
            return self.poll_result(&call, &response).await;
        }
        self.access
            .discard_if_rejected(call.key, Some(status))
            .await;
        // An operation that is unknown to the provider has ended.
        poll_error(errors::response_error(&self.client, &response))
    }
}

impl Gemini {
    /// The request that polls an operation; it differs between the surfaces.
    fn poll_request(&self, call: &QueueCall<'_>) -> Result<HttpRequest, ProviderError> {
        let name = call.provider_job_id;
        if !is_operation(name) {
            return Err(ProviderError::new(
                UpstreamErrorKind::Failed,
                "the task's provider job id is not one of this channel's",
            ));
        }
        Ok(match self.endpoint.surface {
            Surface::Developer => HttpRequest::get(format!("{}/{name}", self.endpoint.base)),
            Surface::AgentPlatform => {
                let model = operation_model(name);
                let model = model.unwrap_or_else(|| models::id(call.model, self.endpoint.surface));
                let uri = self.method(model, "fetchPredictOperation");
                HttpRequest::post(uri, &json!({ "operationName": name }))
            }
        })
    }

    /// The result of a poll whose response does not contain the video itself.
    async fn poll_result(
        &self,
        call: &QueueCall<'_>,
        response: &HttpResponse,
    ) -> Result<Polled, ProviderError> {
        let json = response.json();
        if !json["name"].is_string() && !json["done"].is_boolean() {
            return Err(crate::adapter::unexpected_response(response));
        }
        if json["done"] != true {
            return Ok(Polled::Pending(None));
        }
        if json["error"].is_object() {
            let error = errors::operation_error(&self.client, &json["error"]);
            return Ok(Polled::Failed(error));
        }
        let output = &json["response"];
        let wrapped = &output["generateVideoResponse"];
        let output = if wrapped.is_object() { wrapped } else { output };
        if let Some(url) = output["generatedSamples"][0]["video"]["uri"].as_str() {
            let headers = self.access.header(&self.client, call.key).await?;
            let headers: HeaderMap = headers.into_iter().collect();
            let link = self.client.link(&self.endpoint.base, url, headers);
            return finish_single_result(call.sink.deliver(ResultData::Link(link)).await);
        }
        Ok(Polled::Failed(self.missing_video_error(output)))
    }

    fn missing_video_error(&self, output: &Value) -> ProviderError {
        let reasons = output["raiMediaFilteredReasons"].as_array();
        let reasons = reasons.into_iter().flatten().filter_map(Value::as_str);
        let reasons = reasons.collect::<Vec<_>>().join(" ");
        let is_filtered = output["raiMediaFilteredCount"].as_u64().unwrap_or(0) > 0;
        if is_filtered || !reasons.is_empty() {
            let reasons = self.client.redact(&reasons);
            let without_reasons = "the upstream's filter removed the video";
            return ProviderError::new(
                UpstreamErrorKind::Moderated,
                if reasons.is_empty() {
                    without_reasons
                } else {
                    &reasons
                },
            );
        }
        ProviderError::new(
            UpstreamErrorKind::Failed,
            "the upstream's task ended without a video and without an error message",
        )
    }
}

/// Whether the name is `models/M/operations/ID` or `projects/…/models/M/operations/ID`: it becomes a part of a path.
fn is_operation(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(is_plain);
    name.len() <= 1_000 && name.contains("operations/") && name.split('/').all(is_part)
}

/// The model in an operation's name.
fn operation_model(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once("models/")?;
    let (model, _) = rest.split_once("/operations/")?;
    Some(model)
}

/// The request body. Only the Agent Platform supports seed and audio: the Developer API rejects them.
fn body(
    job: &VideoJob,
    images: &[InputFile],
    surface: Surface,
    inline_files: &mut InlineFiles,
) -> (Value, Adjustments) {
    let supported = match surface {
        Surface::Developer => &SUPPORTED_FIELDS[..2],
        Surface::AgentPlatform => SUPPORTED_FIELDS,
    };
    let mut changes = Adjustments::for_unsupported_fields(job, supported);
    let mut instance = json!({ "prompt": job.prompt });
    if let Some(image) = images.first() {
        let media_type = image.format.media_type();
        instance["image"] =
            json!({ "bytesBase64Encoded": inline_files.base64(image), "mimeType": media_type });
    }
    let mut parameters = json!({ "sampleCount": 1, "durationSeconds": job.seconds });
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            parameters[name] = value;
        }
    };
    let ratio = adapter::nearest_ratio(job.size.ratio.as_deref(), job.size.pixels, RATIOS);
    if let Some(ratio) = ratio {
        changes.ratio(job.size.ratio.as_deref(), job.size.pixels, ratio);
    }
    set("aspectRatio", ratio.map(Value::from));
    set("resolution", job.size.resolution.clone().map(Value::from));
    set(
        "negativePrompt",
        job.negative_prompt.clone().map(Value::from),
    );
    let requested = job.person_generation.as_deref();
    let used = requested.map(|requested| allowed_people(requested, surface, !images.is_empty()));
    let why = "with a first frame the provider allows no other value";
    changes.replace_value("person_generation", requested, used, why);
    set("personGeneration", used.map(Value::from));
    if surface == Surface::AgentPlatform {
        set("seed", job.seed.map(Value::from));
        set("generateAudio", job.generate_audio.map(Value::from));
    }
    let body = json!({ "instances": [instance], "parameters": parameters });
    (body, changes)
}

/// Which people may appear in the video. With a first frame the Developer API allows no more than adults.
fn allowed_people(requested: &str, surface: Surface, has_image: bool) -> &str {
    match (requested, surface) {
        ("allow_all", Surface::Developer) if has_image => "allow_adult",
        (requested, _) => requested,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_names_with_unsafe_paths_are_invalid() {
        let long =
            "projects/p/locations/l/publishers/google/models/veo-3.1-generate-001/operations/1-2";
        assert!(is_operation(long) && is_operation("models/veo-3.1/operations/a_b"));
        assert_eq!(operation_model(long), Some("veo-3.1-generate-001"));
        assert_eq!(operation_model("operations/x"), None);
        for invalid in [
            "",
            "models/x",
            "operations/../../x",
            "operations/x?y",
            "/operations/x",
            "operations//x",
            "operations/x y",
        ] {
            assert!(!is_operation(invalid), "{invalid}");
        }
    }
}
