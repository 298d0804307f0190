//! Imagen, by `predict`: pictures from text alone.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_media::image::ImageJob;

use super::images::{FILES_MAX, PATIENCE};
use super::{Gemini, words};
use crate::provider::{ImageCall, ProviderError, ProviderErrorKind};
use crate::wire::{self, Ask, Sifted};

const FILES: &[&str] = &["bytesBase64Encoded"];
const RATIOS: &[&str] = &["1:1", "3:4", "4:3", "9:16", "16:9"];

/// Whether an upstream's id is one of Imagen's; others of the family are made by Gemini's models.
pub(super) fn is_imagen(model: &str) -> bool {
    model
        .rsplit('/')
        .next()
        .unwrap_or(model)
        .starts_with("imagen")
}

impl Gemini {
    /// One picture.
    pub(super) async fn imagen(
        &self,
        call: &ImageCall<'_>,
        model: &str,
    ) -> Result<Bytes, ProviderError> {
        if !call.references.is_empty() {
            return Err(ProviderError::new(
                ProviderErrorKind::ChannelUnfit,
                "Imagen makes pictures from text alone",
            ));
        }
        let ask = Ask::post(self.method(model, "predict"), &body(call))
            .within(PATIENCE)
            .once();
        let ask = self.authorized(ask, call.attempt.key).await?;
        let sifted = self.wire.sift(ask, FILES, FILES_MAX).await?;
        let status = sifted.answer.status;
        if !status.is_success() {
            self.access
                .answered(call.attempt.key, Some(status.as_u16()))
                .await;
            return Err(words::refusal(&self.wire, &sifted.answer));
        }
        self.prediction(&sifted)
    }

    /// The picture, or why it was filtered: then it has a reason in the place of bytes, or there is none at all.
    fn prediction(&self, sifted: &Sifted) -> Result<Bytes, ProviderError> {
        let json = sifted.answer.json();
        if !json.is_object() {
            return Err(crate::wire::lost_answer(&sifted.answer));
        }
        let predictions = json["predictions"].as_array();
        let predictions = predictions.map(Vec::as_slice).unwrap_or_default();
        let mut files = predictions.iter().filter_map(|prediction| {
            let number = prediction["bytesBase64Encoded"].as_str()?;
            sifted.files.get(number.parse::<usize>().ok()?)
        });
        if let Some(picture) = files.next() {
            return Ok(picture.clone());
        }
        let mut reasons = predictions
            .iter()
            .filter_map(|prediction| prediction["raiFilteredReason"].as_str());
        let reason = reasons.next().map(|reason| self.wire.clean(reason));
        let reason = reason.unwrap_or_else(|| "the upstream's filter took the picture".to_owned());
        Err(ProviderError::new(ProviderErrorKind::Moderated, reason))
    }
}

pub(super) fn ratio(job: &ImageJob) -> Option<&'static str> {
    wire::ratio(job.size.ratio.as_deref(), job.size.pixels, RATIOS)
}

/// The request, with the reason of a filtered picture wanted in the answer.
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
