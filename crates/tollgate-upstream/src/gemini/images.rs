//! Pictures of Gemini's own image models, by `generateContent`: one picture a call.
//! <https://ai.google.dev/gemini-api/docs/image-generation>

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Value, json};
use tollgate_media::image::ImageJob;

use super::{Gemini, imagen, names, words};
use crate::provider::{ImageCall, ImageProvider, Made, ProviderError, ProviderErrorKind, Started};
use crate::wire::{self, Ask, Came, Changes, Sifted, Slots, in_calls, unless_stopped};

/// A 4K picture after a search takes minutes.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
/// A 4K PNG has about 25 MB; drafts and signatures come beside it.
pub(super) const FILES_MAX: usize = 96 * 1024 * 1024;

/// Pictures, drafts among them, and the signatures of thoughts, which are as long.
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
/// How many of them the other generations have.
const USUAL_RATIOS: usize = 10;

#[async_trait]
impl ImageProvider for Gemini {
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        if !FAMILIES.contains(&call.job.family.as_str()) {
            return Err(super::not_served(
                &call.job.family,
                "Gemini images and Imagen",
            ));
        }
        let model = names::id(call.attempt.model, self.place.surface);
        changes(call.job, model).tell(call.attempt.delivery);
        let ended = AtomicU32::new(0);
        let work = in_calls(call.job.n, 1, async |_| {
            let came = self.deliver_one(&call, model).await;
            let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
            let percent = 100 * ended / call.job.n.max(1);
            let percent = u8::try_from(percent).unwrap_or(100);
            call.attempt.delivery.progress(percent);
            came
        });
        let done = unless_stopped(&call.attempt.cancel, work).await?;
        Ok(Started::Done(done))
    }
}

impl Gemini {
    async fn deliver_one(&self, call: &ImageCall<'_>, model: &str) -> Result<Came, ProviderError> {
        let picture = if imagen::is_imagen(model) {
            self.imagen(call, model).await?
        } else {
            self.picture(call, model).await?
        };
        call.attempt.delivery.deliver(Made::Bytes(picture)).await?;
        Ok(Came {
            delivered: 1,
            ..Came::default()
        })
    }

    async fn picture(&self, call: &ImageCall<'_>, model: &str) -> Result<Bytes, ProviderError> {
        let mut slots = Slots::new();
        let body = body(call, model, &mut slots);
        let json = HeaderValue::from_static("application/json");
        let uri = self.method(model, "generateContent");
        let ask = Ask::post_parts(uri, json, slots.fill(&body))
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
        self.first_picture(&sifted, call.attempt.failed_attempts)
    }

    /// The first picture that is no draft, or why there is none.
    fn first_picture(&self, sifted: &Sifted, tried: u32) -> Result<Bytes, ProviderError> {
        let json = sifted.answer.json();
        let blocked = &json["promptFeedback"]["blockReason"];
        let Some(candidates) = json["candidates"].as_array() else {
            return Err(match blocked.as_str() {
                Some(reason) => blocked_prompt(reason),
                None => crate::wire::lost_answer(&sifted.answer),
            });
        };
        let parts = candidates
            .iter()
            .filter_map(|candidate| candidate["content"]["parts"].as_array())
            .flatten();
        let finals = parts.clone().filter(|part| part["thought"] != true);
        let mut files = finals.filter_map(|part| {
            let number = part["inlineData"]["data"].as_str()?;
            sifted.files.get(number.parse::<usize>().ok()?)
        });
        if let Some(picture) = files.next() {
            return Ok(picture.clone());
        }
        if let Some(reason) = blocked.as_str() {
            return Err(blocked_prompt(reason));
        }
        let first = candidates.first().unwrap_or(&Value::Null);
        let said = parts.filter_map(|part| part["text"].as_str());
        let said: Vec<&str> = said.chain(first["finishMessage"].as_str()).collect();
        let why = first["finishReason"].as_str().unwrap_or("OTHER");
        let mut error = without_picture(why, tried);
        if !said.is_empty() {
            error.message = format!("{}: {}", error.message, self.wire.clean(&said.join(" ")));
        }
        Err(error)
    }
}

fn blocked_prompt(reason: &str) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Moderated,
        format!("the upstream blocked the prompt ({reason})"),
    )
}

/// What an answer without a picture means. A model that just did not make one may do so when asked once more.
fn without_picture(reason: &str, tried: u32) -> ProviderError {
    let is_refusal = matches!(
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
    let (kind, what) = match tried {
        _ if is_refusal => (ProviderErrorKind::Moderated, "refused the picture"),
        0 => (ProviderErrorKind::Retryable, "made no picture"),
        _ => (ProviderErrorKind::Failed, "made no picture"),
    };
    ProviderError::new(kind, format!("the upstream {what} ({reason})"))
}

/// The request. The pictures stand before the text.
fn body(call: &ImageCall<'_>, model: &str, slots: &mut Slots) -> Value {
    let job = call.job;
    let pictures = call.references.iter().map(|file| {
        let media_type = file.format.media_type();
        json!({ "inlineData": { "mimeType": media_type, "data": slots.base64(file) } })
    });
    let mut parts: Vec<Value> = pictures.collect();
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
    // In pictures alone there is no room for what a search has found.
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

/// What a model is asked for otherwise than the job says.
fn changes(job: &ImageJob, model: &str) -> Changes {
    let is_imagen = imagen::is_imagen(model);
    let carried: &[&str] = if is_imagen {
        &[]
    } else {
        &["engine_search", "engine_image_search"]
    };
    let mut changes = Changes::unless_carried(job, carried);
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
        changes.instead("resolution", "0.5K", "1K", why);
    }
    changes
}

fn ratio(job: &ImageJob, model: &str) -> Option<&'static str> {
    let known = if has_usual_ratios(model) {
        &RATIOS[..USUAL_RATIOS]
    } else {
        RATIOS
    };
    wire::ratio(job.size.ratio.as_deref(), job.size.pixels, known)
}

fn has_usual_ratios(model: &str) -> bool {
    model.contains("2.5-flash-image") || model.contains("3-pro-image")
}

/// The tier as Google writes it; 2.5 has one only and refuses the field.
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

#[cfg(test)]
mod tests {
    use super::*;
    use ProviderErrorKind::{Failed, Moderated, Retryable};

    #[test]
    fn tiers_are_written_as_the_generation_reads_them() {
        for (tier, model, expected) in [
            (Some("1K"), "gemini-2.5-flash-image", None),
            (Some("0.5K"), "gemini-3.1-flash-image", Some("512")),
            (Some("0.5K"), "gemini-3-pro-image", Some("1K")),
            (Some("4K"), "gemini-3-pro-image", Some("4K")),
            (None, "gemini-3-pro-image", None),
        ] {
            assert_eq!(image_size(tier, model), expected, "{tier:?} {model}");
        }
    }

    #[test]
    fn a_missing_picture_is_asked_for_once_more_and_a_refused_one_is_not() {
        for (reason, tried, expected) in [
            ("IMAGE_SAFETY", 0, Moderated),
            ("RECITATION", 3, Moderated),
            ("NO_IMAGE", 0, Retryable),
            ("NO_IMAGE", 1, Failed),
            ("STOP", 0, Retryable),
            ("STOP", 2, Failed),
        ] {
            assert_eq!(
                without_picture(reason, tried).kind,
                expected,
                "{reason} {tried}"
            );
        }
    }
}
