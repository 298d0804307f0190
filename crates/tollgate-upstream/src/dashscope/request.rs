//! Writes an image job as a request to DashScope's image generation API.

use serde_json::{Map, Value, json};
use tollgate_media::image::{ImageJob, PixelSize};

use crate::adapter::{Adjustments, InlineFiles};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::ImageCall;

/// Fields of the family that are sent unchanged.
const UNCHANGED_FIELDS: &[&str] = &[
    "thinking_mode",
    "enable_sequential",
    "bbox_list",
    "color_palette",
];
/// The text that is sent for an edit without one: the provider requires exactly one text.
const DEFAULT_TEXT: &str = "Make an image of what these images show.";
/// Maximum number of images of one request, in group mode and outside it.
const MAX_IN_GROUP: u32 = 12;
const MAX_IMAGES: u32 = 4;
/// Maximum number of pixels of an image that the pro model generates from text, and of any other image.
const MAX_PIXELS_PRO: u64 = 4096 * 4096;
const MAX_PIXELS: u64 = 2048 * 2048;
/// Minimum number of pixels of any image.
const MIN_PIXELS: u64 = 768 * 768;
/// The sides of adjusted sizes are multiples of this.
const STEP: f64 = 16.0;

/// The request body. `inline_files` receives the references; `negative`: whether it includes the negative prompt.
pub(super) fn body(call: &ImageCall<'_>, inline_files: &mut InlineFiles, negative: bool) -> Value {
    let job = call.job;
    let mut content: Vec<Value> = call
        .references
        .iter()
        .map(|file| json!({ "image": inline_files.data_uri(file) }))
        .collect();
    let text = match job.prompt.trim() {
        "" => DEFAULT_TEXT,
        _ => &job.prompt,
    };
    content.push(json!({ "text": text }));
    json!({
        "model": call.attempt.model.upstream,
        "input": { "messages": [{ "role": "user", "content": content }] },
        "parameters": parameters(job, &call.attempt.model.upstream, negative),
    })
}

fn parameters(job: &ImageJob, upstream: &str, negative: bool) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("size".to_owned(), size(job, upstream).into());
    // Always sent: the provider's own default is not 1, and `n` determines the price.
    fields.insert("n".to_owned(), job.n.into());
    let negative_prompt = job.negative_prompt.as_deref().filter(|_| negative);
    let optional = [
        ("seed", job.seed.map(Value::from)),
        ("negative_prompt", negative_prompt.map(Value::from)),
        ("watermark", job.watermark.map(Value::from)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    }
    for name in UNCHANGED_FIELDS {
        if let Some(value) = job.extra.get(*name) {
            fields.insert((*name).to_owned(), value.clone());
        }
    }
    fields
}

/// The differences between the request and the job; `negative`: whether the request includes the negative prompt.
pub(super) fn adjustments(job: &ImageJob, upstream: &str, negative: bool) -> Adjustments {
    let supported = ["seed", "watermark", "negative_prompt"];
    let supported = if negative {
        &supported[..]
    } else {
        &supported[..2]
    };
    let mut changes =
        Adjustments::for_unsupported_fields(job, &[UNCHANGED_FIELDS, supported].concat());
    if let Some((pixels, legal)) = fitted(job, upstream) {
        let why = "the provider does not support this size: the nearest that it supports";
        changes.replace_value("size", pixels.to_string(), legal.to_string(), why);
    }
    changes
}

/// Checks that the provider supports the job.
pub(super) fn check_supported(call: &ImageCall<'_>) -> Result<(), ProviderError> {
    let unsupported = |message: String| {
        Err(ProviderError::new(
            UpstreamErrorKind::UnsupportedByChannel,
            message,
        ))
    };
    if call.mask.is_some() {
        return unsupported("this channel's models accept no mask".to_owned());
    }
    let max = if is_group(call.job) {
        MAX_IN_GROUP
    } else {
        MAX_IMAGES
    };
    if call.job.n > max {
        return unsupported(format!(
            "this channel generates at most {max} images at a time, {} were requested",
            call.job.n
        ));
    }
    Ok(())
}

fn is_group(job: &ImageJob) -> bool {
    job.extra.get("enable_sequential") == Some(&Value::Bool(true))
}

/// The value of `size`: pixels, or only the tier if the image follows the last reference.
fn size(job: &ImageJob, upstream: &str) -> String {
    match fitted(job, upstream) {
        Some((_, legal)) => format!("{}*{}", legal.width, legal.height),
        None => tier(job).to_uppercase(),
    }
}

fn tier(job: &ImageJob) -> &str {
    job.size.tier.as_deref().unwrap_or("2K")
}

/// The job's size and the size that is requested instead; `None` if the image follows a reference.
fn fitted(job: &ImageJob, upstream: &str) -> Option<(PixelSize, PixelSize)> {
    let from_text = job.references.is_empty() && !is_group(job);
    let max_pixels = if from_text && upstream.contains("pro") {
        MAX_PIXELS_PRO
    } else {
        MAX_PIXELS
    };
    let follows = job.size.ratio.as_deref() == Some("auto") && is_tier(tier(job));
    let pixels = job.size.pixels.filter(|_| !follows)?;
    Some((pixels, fit(pixels, max_pixels)))
}

/// Whether `tier` is a tier of images that follow a reference.
fn is_tier(tier: &str) -> bool {
    ["1K", "2K"].iter().any(|t| t.eq_ignore_ascii_case(tier))
}

/// The size with the same ratio that is nearest to `pixels` and within the provider's range of areas.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, far below u32::MAX
fn fit(pixels: PixelSize, max_pixels: u64) -> PixelSize {
    let area = pixels.pixels();
    if (MIN_PIXELS..=max_pixels).contains(&area) || area == 0 {
        return pixels;
    }
    let (target, round): (u64, fn(f64) -> f64) = if area > max_pixels {
        (max_pixels, f64::floor)
    } else {
        (MIN_PIXELS, f64::ceil)
    };
    let scale = (target as f64 / area as f64).sqrt();
    let side = |side: u32| (round(f64::from(side) * scale / STEP) * STEP) as u32;
    PixelSize::new(side(pixels.width), side(pixels.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_out_of_range_are_scaled_into_it() {
        for side in [64, 300, 767, 768, 2048, 2049, 3000, 5404, 8000] {
            for other in [768, 1111, 2048, 4096] {
                let area = fit(PixelSize::new(side, other), MAX_PIXELS).pixels();
                assert!((MIN_PIXELS..=MAX_PIXELS).contains(&area), "{side}x{other}");
            }
        }
    }
}
