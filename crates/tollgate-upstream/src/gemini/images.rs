//! Generates images with Gemini's own image models, by `generateContent`: one image per call.
//! <https://ai.google.dev/gemini-api/docs/image-generation>

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Value, json};
use tollgate_media::image::ImageJob;

use super::client::{Gemini, IMAGE_TIMEOUT, MAX_IMAGE_BYTES, not_served};
use super::{errors, imagen, models};
use crate::adapter::{
    self, Adjustments, CallOutcome, HttpRequest, InlineFiles, ParsedResponse, run_in_batches,
    unless_cancelled,
};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{ImageCall, ImageProvider, ResultData, Started};

/// The members that are decoded as files: images, including drafts, and the signatures of thoughts, which are as long.
const FILES: &[&str] = &["data", "thoughtSignature"];

const FAMILIES: &[&str] = &[
    "gemini-2.5-flash-image",
    "gemini-3-pro-image",
    "gemini-3.1-flash-image",
    "imagen-4",
];

const RATIOS: &[&str] = &[
    "1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9", "1:4", "4:1", "1:8",
    "8:1",
];
/// The number of those ratios that the other generations support.
const USUAL_RATIOS: usize = 10;

#[async_trait]
impl ImageProvider for Gemini {
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        if !FAMILIES.contains(&call.job.family.as_str()) {
            return Err(not_served(&call.job.family, "Gemini images and Imagen"));
        }
        let model = models::id(call.attempt.model, self.endpoint.surface);
        adjustments(call.job, model).report_to(call.attempt.sink);
        let ended = AtomicU32::new(0);
        let work = run_in_batches(call.job.n, 1, async |_| {
            let outcome = self.deliver_one(&call, model).await;
            let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
            let percent = 100 * ended / call.job.n.max(1);
            let percent = u8::try_from(percent).unwrap_or(100);
            call.attempt.sink.progress(percent);
            outcome
        });
        let done = unless_cancelled(&call.attempt.cancel, work).await?;
        Ok(Started::Completed(done))
    }
}

impl Gemini {
    async fn deliver_one(
        &self,
        call: &ImageCall<'_>,
        model: &str,
    ) -> Result<CallOutcome, ProviderError> {
        let image = if imagen::is_imagen(model) {
            self.imagen(call, model).await?
        } else {
            self.image(call, model).await?
        };
        call.attempt.sink.deliver(ResultData::Bytes(image)).await?;
        Ok(CallOutcome {
            delivered: 1,
            ..CallOutcome::default()
        })
    }

    async fn image(&self, call: &ImageCall<'_>, model: &str) -> Result<Bytes, ProviderError> {
        let mut inline_files = InlineFiles::new();
        let body = body(call, model, &mut inline_files);
        let json = HeaderValue::from_static("application/json");
        let uri = self.method(model, "generateContent");
        let request = HttpRequest::post_body(uri, json, inline_files.into_body(&body))
            .with_timeout(IMAGE_TIMEOUT)
            .with_trace(call.attempt.trace)
            .creating();
        let request = self.authorized(request, call.attempt.key).await?;
        let parsed = self
            .client
            .send_and_extract_files(request, FILES, MAX_IMAGE_BYTES)
            .await?;
        let status = parsed.response.status;
        if !status.is_success() {
            self.access
                .discard_if_rejected(call.attempt.key, Some(status.as_u16()))
                .await;
            return Err(errors::response_error(&self.client, &parsed.response));
        }
        self.first_image(&parsed, call.attempt.failed_attempts)
    }

    /// The first image that is not a draft, or the error if there is none.
    fn first_image(
        &self,
        parsed: &ParsedResponse,
        failed_attempts: u32,
    ) -> Result<Bytes, ProviderError> {
        let json = parsed.response.json();
        let blocked = &json["promptFeedback"]["blockReason"];
        let Some(candidates) = json["candidates"].as_array() else {
            return Err(match blocked.as_str() {
                Some(reason) => blocked_prompt(reason),
                None => crate::adapter::unreadable_result_error(&parsed.response),
            });
        };
        let parts = candidates
            .iter()
            .filter_map(|candidate| candidate["content"]["parts"].as_array())
            .flatten();
        let finals = parts.clone().filter(|part| part["thought"] != true);
        let mut files = finals.filter_map(|part| {
            let number = part["inlineData"]["data"].as_str()?;
            parsed.files.get(number.parse::<usize>().ok()?)
        });
        if let Some(image) = files.next() {
            return Ok(image.clone());
        }
        if let Some(reason) = blocked.as_str() {
            return Err(blocked_prompt(reason));
        }
        let first = candidates.first().unwrap_or(&Value::Null);
        let texts = parts.filter_map(|part| part["text"].as_str());
        let texts: Vec<&str> = texts.chain(first["finishMessage"].as_str()).collect();
        let why = first["finishReason"].as_str().unwrap_or("OTHER");
        let mut error = missing_image_error(why, failed_attempts);
        if !texts.is_empty() {
            error.message = format!(
                "{}: {}",
                error.message,
                self.client.redact(&texts.join(" "))
            );
        }
        Err(error)
    }
}

fn blocked_prompt(reason: &str) -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::Moderated,
        format!("the upstream blocked the prompt ({reason})"),
    )
}

/// The error of a response without an image. If the model states no reason, it may generate an image at the next attempt.
fn missing_image_error(reason: &str, failed_attempts: u32) -> ProviderError {
    let is_moderated = matches!(
        reason,
        "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "PROHIBITED_CONTENT"
            | "SAFETY"
            | "BLOCKLIST"
            | "SPII"
            | "RECITATION"
            | "IMAGE_RECITATION"
    );
    let (kind, what) = match failed_attempts {
        _ if is_moderated => (UpstreamErrorKind::Moderated, "rejected the image"),
        0 => (UpstreamErrorKind::Unavailable, "generated no image"),
        _ => (UpstreamErrorKind::Failed, "generated no image"),
    };
    ProviderError::new(kind, format!("the upstream {what} ({reason})"))
}

/// The request body. The images precede the text.
fn body(call: &ImageCall<'_>, model: &str, inline_files: &mut InlineFiles) -> Value {
    let job = call.job;
    let images = call.references.iter().map(|file| {
        let media_type = file.format.media_type();
        json!({ "inlineData": { "mimeType": media_type, "data": inline_files.base64(file) } })
    });
    let mut parts: Vec<Value> = images.collect();
    parts.push(json!({ "text": job.prompt }));
    let mut image = json!({});
    if let Some(ratio) = ratio(job, model) {
        image["aspectRatio"] = ratio.into();
    }
    if let Some(size) = image_size(job.size.tier.as_deref(), model) {
        image["imageSize"] = size.into();
    }
    let flag = |name: &str| job.extra.get(name) == Some(&Value::Bool(true));
    let searches = flag("engine_search");
    // The results of a search are text, so text must be allowed too.
    let modalities = if searches {
        json!(["TEXT", "IMAGE"])
    } else {
        json!(["IMAGE"])
    };
    let mut body = json!({
        "contents": [{ "role": "user", "parts": parts }],
        "generationConfig": { "responseModalities": modalities, "imageConfig": image },
    });
    if searches {
        body["tools"] = if flag("engine_image_search") {
            json!([{ "googleSearch": { "searchTypes": { "webSearch": {}, "imageSearch": {} } } }])
        } else {
            json!([{ "googleSearch": {} }])
        };
    }
    body
}

/// The differences between the request and the job.
fn adjustments(job: &ImageJob, model: &str) -> Adjustments {
    let is_imagen = imagen::is_imagen(model);
    let supported: &[&str] = if is_imagen {
        &[]
    } else {
        &["engine_search", "engine_image_search"]
    };
    let mut changes = Adjustments::for_unsupported_fields(job, supported);
    let used = if is_imagen {
        imagen::ratio(job)
    } else {
        ratio(job, model)
    };
    if let Some(used) = used {
        changes.ratio(job.size.ratio.as_deref(), job.size.pixels, used);
    }
    let tier = job.size.tier.as_deref();
    if tier == Some("0.5K") && image_size(tier, model) == Some("1K") {
        let why = "the provider's model has no smaller tier";
        changes.replace_value("resolution", "0.5K", "1K", why);
    }
    changes
}

fn ratio(job: &ImageJob, model: &str) -> Option<&'static str> {
    let known = if has_usual_ratios(model) {
        &RATIOS[..USUAL_RATIOS]
    } else {
        RATIOS
    };
    adapter::nearest_ratio(job.size.ratio.as_deref(), job.size.pixels, known)
}

fn has_usual_ratios(model: &str) -> bool {
    model.contains("2.5-flash-image") || model.contains("3-pro-image")
}

/// The tier as Google writes it. Generation 2.5 has only one tier and rejects the field.
fn image_size<'a>(tier: Option<&'a str>, model: &str) -> Option<&'a str> {
    if model.contains("2.5-flash-image") {
        return None;
    }
    match tier? {
        "0.5K" if model.contains("3-pro-image") => Some("1K"),
        "0.5K" => Some("512"),
        tier => Some(tier),
    }
}
