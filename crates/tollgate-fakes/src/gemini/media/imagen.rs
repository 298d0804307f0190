//! Imagen: pictures by prediction.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::words;
use super::{Site, check, model_missing, platform_only};
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::incoming::Seen;
use crate::made::{Picture, PictureForm, Recipe};
use crate::pixels;
use crate::refusal::Judged;
use crate::shape::{Kind, Shape, field, list_of, text_of};

const MODELS: &[&str] = &[
    "imagen-4.0-generate-001",
    "imagen-4.0-fast-generate-001",
    "imagen-4.0-ultra-generate-001",
];

const OUTPUT: Shape = Shape {
    fields: &[
        ("mimeType", Kind::OneOf(&["image/png", "image/jpeg"])),
        ("compressionQuality", Kind::Int(0, 100)),
    ],
    required: &[],
};

const PARAMETERS: Shape = Shape {
    fields: &[
        ("sampleCount", Kind::Int(1, 4)),
        (
            "aspectRatio",
            Kind::OneOf(&["1:1", "3:4", "4:3", "9:16", "16:9"]),
        ),
        ("sampleImageSize", Kind::OneOf(&["1K", "2K"])),
        (
            "personGeneration",
            Kind::OneOf(&["dont_allow", "allow_adult", "allow_all"]),
        ),
        ("safetySetting", Kind::Str),
        ("includeRaiReason", Kind::Bool),
        ("includeSafetyAttributes", Kind::Bool),
        ("language", Kind::Str),
        ("guidanceScale", Kind::Num(0.0, 100.0)),
        ("outputOptions", Kind::Shape(&OUTPUT)),
        ("negativePrompt", Kind::Str),
        ("seed", Kind::Int(1, 2_147_483_647)),
        ("addWatermark", Kind::Bool),
        ("enhancePrompt", Kind::Bool),
        ("storageUri", Kind::Str),
    ],
    required: &[],
};

/// What only the Agent Platform takes.
const PLATFORM: &[&str] = &[
    "negativePrompt",
    "seed",
    "addWatermark",
    "enhancePrompt",
    "storageUri",
];

const REQUEST: Shape = Shape {
    fields: &[
        (
            "instances",
            Kind::Few(
                1,
                &Kind::Shape(&Shape {
                    fields: &[("prompt", Kind::Str)],
                    required: &["prompt"],
                }),
            ),
        ),
        ("parameters", Kind::Shape(&PARAMETERS)),
    ],
    required: &["instances"],
};

pub(super) fn read(request: &Arc<Seen>, model: &str, site: Site) -> Judged<Media> {
    if !MODELS.contains(&model) {
        return Err(model_missing(request));
    }
    check(request, &REQUEST)?;
    let body = &request.body;
    let nothing = json!({});
    let parameters = field(body, "parameters").unwrap_or(&nothing);
    platform_only(parameters, PLATFORM, site)?;
    if field(parameters, "sampleImageSize").is_some() && model.contains("-fast-") {
        let message = "`sampleImageSize` is not supported by this model.";
        return Err(Box::new(words::invalid("image-size", message)));
    }
    let marked = parameters.get("addWatermark") != Some(&Value::Bool(false));
    if field(parameters, "seed").is_some() && marked {
        let message = "Seed is not supported when watermark is enabled.";
        return Err(Box::new(words::invalid("seed", message)));
    }
    let instance = list_of(body, "instances").first();
    let text = instance.and_then(|instance| text_of(instance, "prompt"));
    let text = text.unwrap_or_default().to_owned();
    if text.trim().is_empty() {
        return Err(Box::new(words::invalid(
            "empty-prompt",
            "Text prompt is empty.",
        )));
    }
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.moderate(&request)?;
        if desk.course.verdict != Verdict::Filtered {
            desk.succeed(&request)?;
        }
        Ok(answer(desk, &request.body["parameters"]))
    }))
}

fn answer(desk: &Desk<'_>, parameters: &Value) -> Made {
    let count = field(parameters, "sampleCount")
        .and_then(Value::as_u64)
        .unwrap_or(1) as usize;
    let good = match desk.course.verdict {
        Verdict::Good => desk.course.good(count),
        _ => 0,
    };
    let side = match text_of(parameters, "sampleImageSize") {
        Some("2K") => 2048,
        _ => 1024,
    };
    let ratio = text_of(parameters, "aspectRatio").and_then(pixels::ratio);
    let size = pixels::with_area(ratio.unwrap_or(1.0), side);
    let output = field(parameters, "outputOptions");
    let form = match output.and_then(|output| text_of(output, "mimeType")) {
        Some("image/jpeg") => PictureForm::Jpeg,
        _ => PictureForm::Png,
    };
    let picture = |nth: usize| {
        let number = desk.number + nth as u64;
        let recipe = Recipe::Picture(Picture { form, size, number });
        json!({"bytesBase64Encoded": desk.base64(recipe), "mimeType": form.media_type()})
    };
    let mut predictions: Vec<Value> = (0..good).map(picture).collect();
    if parameters.get("includeRaiReason") == Some(&Value::Bool(true)) {
        let reason = "Unable to show generated images. All images were filtered out because they \
            violated Google's Responsible AI practices.";
        let filtered = std::iter::repeat_n(json!({"raiFilteredReason": reason}), count - good);
        predictions.extend(filtered);
    }
    // Without any there is no list.
    let answer = match predictions.is_empty() {
        true => json!({}),
        false => json!({"predictions": predictions}),
    };
    Made::json(answer).after(desk.course.work)
}
