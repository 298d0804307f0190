//! Writes an image job as a request to DashScope's image generation API.

use serde_json::{Map, Value, json};
use tollgate_media::image::{ImageJob, PixelSize};

use crate::adapter::{Adjustments, InlineFiles};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::ImageCall;

/// Fields of the family that go through as they are.
const AS_THEY_ARE: &[&str] = &[
    "thinking_mode",
    "enable_sequential",
    "bbox_list",
    "color_palette",
];
/// Stands where an edit has no text: the provider wants exactly one.
const NO_TEXT: &str = "Make a picture of what these pictures show.";
/// The most images of one request, in group mode and outside it.
const MOST_IN_GROUP: u32 = 12;
const MOST: u32 = 4;
/// The most pixels of an image that the pro model makes from text, and of any other.
const MOST_PIXELS_PRO: u64 = 4096 * 4096;
const MOST_PIXELS: u64 = 2048 * 2048;
/// The fewest pixels of any image.
const FEWEST_PIXELS: u64 = 768 * 768;
/// Sides of sizes that had to be changed are multiples of this.
const STEP: f64 = 16.0;

/// The request's body. `slots` take the references; `negative` says whether the negative prompt goes along.
pub(super) fn body(call: &ImageCall<'_>, slots: &mut InlineFiles, negative: bool) -> Value {
    let job = call.job;
    let mut content: Vec<Value> = call
        .references
        .iter()
        .map(|file| json!({ "image": slots.data_uri(file) }))
        .collect();
    let text = match job.prompt.trim() {
        "" => NO_TEXT,
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
    // Always: the provider's own default is no 1, and it decides the price.
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
    for name in AS_THEY_ARE {
        if let Some(value) = job.extra.get(*name) {
            fields.insert((*name).to_owned(), value.clone());
        }
    }
    fields
}

/// What is asked for otherwise than the job says; with `negative`, its negative prompt too.
pub(super) fn changes(job: &ImageJob, upstream: &str, negative: bool) -> Adjustments {
    let taken = ["seed", "watermark", "negative_prompt"];
    let taken = if negative { &taken[..] } else { &taken[..2] };
    let mut changes = Adjustments::for_unsupported_fields(job, &[AS_THEY_ARE, taken].concat());
    if let Some((pixels, legal)) = fitted(job, upstream) {
        let why = "the provider does not make this size: the nearest that it makes";
        changes.replace_value("size", pixels.to_string(), legal.to_string(), why);
    }
    changes
}

/// Why the job is none for this provider, if so.
pub(super) fn refuse(call: &ImageCall<'_>) -> Result<(), ProviderError> {
    let unsupported = |message: String| {
        Err(ProviderError::new(
            UpstreamErrorKind::UnsupportedByChannel,
            message,
        ))
    };
    if call.mask.is_some() {
        return unsupported("this channel's models take no mask".to_owned());
    }
    let most = if is_group(call.job) {
        MOST_IN_GROUP
    } else {
        MOST
    };
    if call.job.n > most {
        return unsupported(format!(
            "this channel makes at most {most} images at a time, {} were asked for",
            call.job.n
        ));
    }
    Ok(())
}

fn is_group(job: &ImageJob) -> bool {
    job.extra.get("enable_sequential") == Some(&Value::Bool(true))
}

/// `size`: pixels, or the tier alone where the image follows the last reference.
fn size(job: &ImageJob, upstream: &str) -> String {
    match fitted(job, upstream) {
        Some((_, legal)) => format!("{}*{}", legal.width, legal.height),
        None => tier(job).to_uppercase(),
    }
}

fn tier(job: &ImageJob) -> &str {
    job.size.tier.as_deref().unwrap_or("2K")
}

/// The job's size and the one that is asked for in its place; `None` if the image follows a reference.
fn fitted(job: &ImageJob, upstream: &str) -> Option<(PixelSize, PixelSize)> {
    let from_text = job.references.is_empty() && !is_group(job);
    let most = if from_text && upstream.contains("pro") {
        MOST_PIXELS_PRO
    } else {
        MOST_PIXELS
    };
    let follows = job.size.ratio.as_deref() == Some("auto") && is_tier(tier(job));
    let pixels = job.size.pixels.filter(|_| !follows)?;
    Some((pixels, fit(pixels, most)))
}

/// Tiers of images that follow a reference.
fn is_tier(tier: &str) -> bool {
    ["1K", "2K"].iter().any(|t| t.eq_ignore_ascii_case(tier))
}

/// The size of the same ratio that is nearest to `pixels` within the provider's range of areas.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, far below u32::MAX
fn fit(pixels: PixelSize, most: u64) -> PixelSize {
    let area = pixels.pixels();
    if (FEWEST_PIXELS..=most).contains(&area) || area == 0 {
        return pixels;
    }
    let (target, round): (u64, fn(f64) -> f64) = if area > most {
        (most, f64::floor)
    } else {
        (FEWEST_PIXELS, f64::ceil)
    };
    let scale = (target as f64 / area as f64).sqrt();
    let side = |side: u32| (round(f64::from(side) * scale / STEP) * STEP) as u32;
    PixelSize::new(side(pixels.width), side(pixels.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(value: Value) -> ImageJob {
        let mut whole = json!({
            "model": "m", "family": "wan2.7", "prompt": "p", "n": 1, "output_format": "png",
            "size": { "pixels": { "width": 2048, "height": 2048 }, "ratio": "1:1", "tier": "2K" },
        });
        let given = value.as_object().cloned().unwrap_or_default();
        whole.as_object_mut().unwrap().extend(given);
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn sizes_are_pixels_or_follow_the_reference() {
        let pixels = |w: u32, h: u32| json!({ "width": w, "height": h });
        let reference = json!([{ "field": "image_urls[0]", "source": { "url": "https://x" } }]);
        for (given, upstream, expected) in [
            (json!({}), "wan2.7-image", "2048*2048"),
            (
                json!({ "size": { "pixels": pixels(2560, 1440), "ratio": "16:9", "tier": "2K" } }),
                "wan2.7-image-pro",
                "2560*1440",
            ),
            (
                json!({ "size": { "pixels": pixels(4096, 4096), "ratio": "1:1", "tier": "4K" } }),
                "wan2.7-image-pro",
                "4096*4096",
            ),
            (
                json!({ "size": { "pixels": pixels(1360, 2048), "ratio": "auto", "tier": "2K" },
                        "references": reference }),
                "wan2.7-image-pro",
                "2K",
            ),
            (
                json!({ "size": { "pixels": pixels(1024, 1024), "ratio": null, "tier": null },
                        "references": reference }),
                "wan2.7-image",
                "1024*1024",
            ),
            // Another family's job, beyond what the model makes.
            (
                json!({ "size": { "pixels": pixels(3840, 2160), "ratio": "16:9", "tier": "4k" } }),
                "wan2.7-image",
                "2720*1536",
            ),
            (
                json!({ "size": { "pixels": pixels(512, 512), "ratio": "1:1", "tier": "0.5K" } }),
                "wan2.7-image",
                "768*768",
            ),
        ] {
            assert_eq!(size(&job(given.clone()), upstream), expected, "{given}");
        }
    }

    #[test]
    fn sizes_beyond_the_range_come_within_it() {
        for side in [64, 300, 767, 768, 2048, 2049, 3000, 5404, 8000] {
            for other in [768, 1111, 2048, 4096] {
                let area = fit(PixelSize::new(side, other), MOST_PIXELS).pixels();
                assert!(
                    (FEWEST_PIXELS..=MOST_PIXELS).contains(&area),
                    "{side}x{other}"
                );
            }
        }
    }

    #[test]
    fn only_what_is_set_goes_along() {
        let sent = |value: Value, negative| Value::Object(parameters(&job(value), "w", negative));
        assert_eq!(
            sent(json!({}), true),
            json!({ "size": "2048*2048", "n": 1 })
        );
        let full = json!({
            "n": 3, "seed": 7, "negative_prompt": "fog", "watermark": false,
            "extra": { "thinking_mode": true, "enable_sequential": false, "engine_search": true,
                       "color_palette": [{ "hex": "#fff", "ratio": "100.00%" }] },
        });
        let expected = json!({
            "size": "2048*2048", "n": 3, "seed": 7, "negative_prompt": "fog", "watermark": false,
            "thinking_mode": true, "enable_sequential": false,
            "color_palette": [{ "hex": "#fff", "ratio": "100.00%" }],
        });
        assert_eq!(sent(full.clone(), true), expected);
        assert_eq!(sent(full, false).get("negative_prompt"), None);
    }
}
