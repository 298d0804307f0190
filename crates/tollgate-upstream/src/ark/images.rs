//! Seedream images: returned in the response, single or as a group. <https://www.volcengine.com/docs/82379/1541523>

use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use tollgate_media::image::ImageJob;

use super::client::{Ark, REQUEST_ID, not_served, request_id};
use super::{errors, models, prompt};
use crate::adapter::{
    Adjustments, CallOutcome, HttpRequest, InlineFiles, run_in_batches, unless_cancelled,
};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{ImageCall, ImageProvider, InputFile, ResultData, Started};

/// A group of 4K images takes minutes; the vendor's own clients have the same timeout.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Images are links, so that a response is small; some servers send the images inline nevertheless.
const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;

const SEEDREAM_4_5: &str = "seedream-4.5";
const SEEDREAM_5_LITE: &str = "seedream-5-lite";

#[async_trait]
impl ImageProvider for Ark {
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        let n = call.job.n;
        let work = run_in_batches(n, n, |_| self.images(&call));
        let done = unless_cancelled(&call.attempt.cancel, work).await?;
        Ok(Started::Completed(done))
    }
}

impl Ark {
    /// One request for all images.
    async fn images(&self, call: &ImageCall<'_>) -> Result<CallOutcome, ProviderError> {
        let has_images = !call.references.is_empty();
        let model = models::id(call.attempt.model, self.site, has_images);
        let mut inline_files = InlineFiles::new();
        let (body, changes) = body(call, &model, &mut inline_files)?;
        changes.report_to(call.attempt.sink);
        let json = HeaderValue::from_static("application/json");
        let request = HttpRequest::post_body(
            self.url("/images/generations"),
            json,
            inline_files.into_body(&body),
        )
        .with_authorization("Bearer ", call.attempt.key)?
        .header(REQUEST_ID, request_id(&call.attempt))
        .with_timeout(TIMEOUT)
        .with_max_bytes(MAX_RESPONSE_BYTES)
        .with_trace(call.attempt.trace)
        .creating();
        let response = self.client.send(request).await?;
        if !response.status.is_success() {
            return Err(errors::response_error(&self.client, &response));
        }
        let json = response.json();
        let Some(items) = json["data"].as_array() else {
            let error = errors::embedded_error(&self.client, &json["error"]);
            return Err(error.unwrap_or_else(|| crate::adapter::unreadable_result_error(&response)));
        };
        self.deliver(call, items, &json["error"]).await
    }

    /// Delivers the images one after the other, because those of a group have an order. An item may have an error, and the response another for the
    /// remaining images.
    async fn deliver(
        &self,
        call: &ImageCall<'_>,
        items: &[Value],
        rest: &Value,
    ) -> Result<CallOutcome, ProviderError> {
        let mut outcome = CallOutcome::default();
        for (at, item) in items.iter().enumerate() {
            let delivered = match self.image(item) {
                Ok(image) => call.attempt.sink.deliver(image).await,
                Err(error) => Err(error),
            };
            match delivered {
                Ok(()) => outcome.delivered += 1,
                Err(error) if error.kind == UpstreamErrorKind::Interrupted => return Err(error),
                Err(error) => outcome.failures.push(error),
            }
            let percent = 100 * (at + 1) / items.len();
            call.attempt
                .sink
                .progress(u8::try_from(percent).unwrap_or(100));
        }
        outcome
            .failures
            .extend(errors::embedded_error(&self.client, rest));
        Ok(outcome)
    }

    fn image(&self, item: &Value) -> Result<ResultData, ProviderError> {
        if let Some(error) = errors::embedded_error(&self.client, &item["error"]) {
            return Err(error);
        }
        if let Some(url) = item["url"].as_str() {
            return Ok(ResultData::Link(self.client.link(
                &self.base,
                url,
                HeaderMap::new(),
            )));
        }
        let bytes = item["b64_json"].as_str().map(|text| STANDARD.decode(text));
        match bytes {
            Some(Ok(bytes)) => Ok(ResultData::Bytes(bytes.into())),
            _ => Err(ProviderError::new(
                UpstreamErrorKind::Failed,
                "the upstream's response has neither an image nor an error message",
            )),
        }
    }
}

/// The request body. `watermark` is always sent, because Ark's own default is true.
fn body(
    call: &ImageCall<'_>,
    model: &str,
    inline_files: &mut InlineFiles,
) -> Result<(Value, Adjustments), ProviderError> {
    let job = call.job;
    let is_known = matches!(job.family.as_str(), SEEDREAM_4_5 | SEEDREAM_5_LITE);
    let size = job.size.pixels.filter(|_| is_known);
    let Some(size) = size else {
        return Err(not_served(&job.family, "the Seedream families"));
    };
    let mut changes = Adjustments::for_unsupported_fields(job, SUPPORTED_FIELDS);
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
    let is_group =
        job.n > 1 || job.extra.get("sequential_image_generation") == Some(&"auto".into());
    set("model", model.into());
    let text = if is_group {
        prompt::with_group_size(&job.prompt, job.n)
    } else {
        job.prompt.as_str().into()
    };
    set("prompt", text.into());
    if let Some(image) = references(call.references, inline_files) {
        set("image", image);
    }
    set("size", size.to_string().into());
    if is_group {
        set("sequential_image_generation", "auto".into());
        let options = json!({ "max_images": job.n });
        set("sequential_image_generation_options", options);
    } else {
        set("sequential_image_generation", "disabled".into());
    }
    if let Some(mode) = prompt_mode(job, model, &mut changes) {
        set("optimize_prompt_options", json!({ "mode": mode }));
    }
    // Other Seedream models reject the field; they generate JPEG anyway.
    if job.family == SEEDREAM_5_LITE {
        set("output_format", job.output_format.name().into());
    }
    set("response_format", "url".into());
    set("watermark", job.watermark.unwrap_or(false).into());
    Ok((body.into(), changes))
}

/// The fields that are supported in addition to those of all jobs.
const SUPPORTED_FIELDS: &[&str] = &[
    "sequential_image_generation",
    "sequential_image_generation_options",
    "optimize_prompt_options",
    "output_format",
    "watermark",
];

/// The references: one image as a string, several as an array.
fn references(files: &[InputFile], inline_files: &mut InlineFiles) -> Option<Value> {
    match files {
        [] => None,
        [file] => Some(inline_files.data_uri(file).into()),
        files => Some(
            files
                .iter()
                .map(|file| inline_files.data_uri(file))
                .collect(),
        ),
    }
}

/// The mode of prompt optimisation. `fast` is documented for Seedream 4.0 only; later models accept only `standard`.
fn prompt_mode<'a>(job: &'a ImageJob, model: &str, changes: &mut Adjustments) -> Option<&'a str> {
    let options = job.extra.get("optimize_prompt_options")?;
    let mode = options.get("mode").and_then(Value::as_str)?;
    if mode == "fast" && !model.contains("seedream-4-0") {
        let why = "the provider's model has no fast mode";
        changes.replace_value("optimize_prompt_options.mode", mode, "standard", why);
        return Some("standard");
    }
    Some(mode)
}
