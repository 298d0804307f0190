//! Generates images from text with Imagen, by `predict`.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_media::image::ImageJob;

use super::client::{Gemini, IMAGE_TIMEOUT, MAX_IMAGE_BYTES};
use super::errors;
use crate::adapter::{self, HttpRequest, ParsedResponse};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::ImageCall;

const FILES: &[&str] = &["bytesBase64Encoded"];
const RATIOS: &[&str] = &["1:1", "3:4", "4:3", "9:16", "16:9"];

/// Whether an upstream's id is one of Imagen's; other ids of the family are Gemini's models.
pub(super) fn is_imagen(model: &str) -> bool {
    model
        .rsplit('/')
        .next()
        .unwrap_or(model)
        .starts_with("imagen")
}

impl Gemini {
    /// Generates one image.
    pub(super) async fn imagen(
        &self,
        call: &ImageCall<'_>,
        model: &str,
    ) -> Result<Bytes, ProviderError> {
        if !call.references.is_empty() {
            return Err(ProviderError::new(
                UpstreamErrorKind::UnsupportedByChannel,
                "Imagen generates images from text only",
            ));
        }
        let request = HttpRequest::post(self.method(model, "predict"), &body(call))
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
        self.prediction(&parsed)
    }

    /// The image, or the error of a filtered one: it has a reason instead of bytes, or is missing.
    fn prediction(&self, parsed: &ParsedResponse) -> Result<Bytes, ProviderError> {
        let json = parsed.response.json();
        if !json.is_object() {
            return Err(crate::adapter::unreadable_result_error(&parsed.response));
        }
        let predictions = json["predictions"].as_array();
        let predictions = predictions.map(Vec::as_slice).unwrap_or_default();
        let mut files = predictions.iter().filter_map(|prediction| {
            let number = prediction["bytesBase64Encoded"].as_str()?;
            parsed.files.get(number.parse::<usize>().ok()?)
        });
        if let Some(image) = files.next() {
            return Ok(image.clone());
        }
        let mut reasons = predictions
            .iter()
            .filter_map(|prediction| prediction["raiFilteredReason"].as_str());
        let reason = reasons.next().map(|reason| self.client.redact(reason));
        let reason = reason.unwrap_or_else(|| "the upstream's filter removed the image".to_owned());
        Err(ProviderError::new(UpstreamErrorKind::Moderated, reason))
    }
}

pub(super) fn ratio(job: &ImageJob) -> Option<&'static str> {
    adapter::nearest_ratio(job.size.ratio.as_deref(), job.size.pixels, RATIOS)
}

/// The request body. It requests the reason for a filtered image.
fn body(call: &ImageCall<'_>) -> Value {
    let mut parameters = json!({ "sampleCount": 1, "includeRaiReason": true });
    if let Some(ratio) = ratio(call.job) {
        parameters["aspectRatio"] = ratio.into();
    }
    json!({ "instances": [{ "prompt": call.job.prompt }], "parameters": parameters })
}

#[cfg(test)]
mod tests {
    use super::is_imagen;

    #[test]
    fn imagen_is_known_by_its_id() {
        assert!(is_imagen("imagen-4.0-generate-001") && is_imagen("models/imagen-5"));
        assert!(!is_imagen("gemini-3.1-flash-image"));
    }
}
