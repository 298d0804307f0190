//! Veo: what an operation is asked for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::words;
use super::{Site, check, model_missing, platform_only};
use crate::desk::{Made, Media};
use crate::given;
use crate::incoming::Seen;
use crate::pixels;
use crate::refusal::{Checked, Judged};
use crate::shape::{Kind, Shape, field, list_of, text_of};

const MODELS: &[(Site, &str)] = &[
    (Site::Developer, "veo-3.1-generate-preview"),
    (Site::Developer, "veo-3.1-fast-generate-preview"),
    (Site::Developer, "veo-3.1-lite-generate-preview"),
    (Site::Platform, "veo-3.1-generate-001"),
    (Site::Platform, "veo-3.1-fast-generate-001"),
    (Site::Platform, "veo-3.1-lite-generate-001"),
];

const IMAGE: Shape = Shape {
    fields: &[
        ("bytesBase64Encoded", Kind::Str),
        ("gcsUri", Kind::Str),
        ("mimeType", Kind::Str),
    ],
    required: &["mimeType"],
};

const INSTANCE: Shape = Shape {
    fields: &[
        ("prompt", Kind::Str),
        ("image", Kind::Shape(&IMAGE)),
        ("lastFrame", Kind::Shape(&IMAGE)),
        ("video", Kind::Object),
        (
            "referenceImages",
            Kind::Few(
                3,
                &Kind::Shape(&Shape {
                    fields: &[
                        ("image", Kind::Shape(&IMAGE)),
                        ("referenceType", Kind::OneOf(&["asset"])),
                    ],
                    required: &["image", "referenceType"],
                }),
            ),
        ),
    ],
    required: &["prompt"],
};

const PARAMETERS: Shape = Shape {
    fields: &[
        ("sampleCount", Kind::Int(1, 4)),
        ("durationSeconds", Kind::Int(4, 8)),
        ("aspectRatio", Kind::OneOf(&["16:9", "9:16"])),
        ("resolution", Kind::OneOf(&["720p", "1080p", "4k"])),
        ("negativePrompt", Kind::Str),
        (
            "personGeneration",
            Kind::OneOf(&["allow_all", "allow_adult", "dont_allow"]),
        ),
        ("enhancePrompt", Kind::Bool),
        ("seed", Kind::Int(0, 4_294_967_295)),
        ("generateAudio", Kind::Bool),
        ("storageUri", Kind::Str),
        ("fps", Kind::Int(24, 24)),
        (
            "compressionQuality",
            Kind::OneOf(&["optimized", "lossless"]),
        ),
        ("resizeMode", Kind::OneOf(&["pad", "crop"])),
        ("pubsubTopic", Kind::Str),
    ],
    required: &[],
};

/// What only the Agent Platform takes.
const PLATFORM: &[&str] = &[
    "generateAudio",
    "storageUri",
    "fps",
    "compressionQuality",
    "resizeMode",
    "pubsubTopic",
];

const REQUEST: Shape = Shape {
    fields: &[
        ("instances", Kind::Few(1, &Kind::Shape(&INSTANCE))),
        ("parameters", Kind::Shape(&PARAMETERS)),
    ],
    required: &["instances"],
};

pub(super) fn read(request: &Arc<Seen>, model: &str, site: Site) -> Judged<Media> {
    if !MODELS.contains(&(site, model)) {
        return Err(model_missing(request));
    }
    check(request, &REQUEST)?;
    let body = &request.body;
    let (nothing, no_instance) = (json!({}), json!({}));
    let parameters = field(body, "parameters").unwrap_or(&nothing);
    let instance = list_of(body, "instances").first().unwrap_or(&no_instance);
    platform_only(parameters, PLATFORM, site)?;
    let text = text_of(instance, "prompt").unwrap_or_default().to_owned();
    if text.trim().is_empty() {
        return Err(Box::new(words::invalid("empty-prompt", "Prompt is empty.")));
    }
    pictures(instance, site)?;
    options(instance, parameters, model, site)?;
    let name = match site {
        Site::Developer => format!("models/{model}/operations/"),
        Site::Platform => {
            let path = request.path.trim_start_matches('/');
            let path = path.split_once('/').map_or(path, |(_, rest)| rest);
            let place = path.rsplit_once(':').map_or(path, |(place, _)| place);
            format!("{place}/operations/")
        }
    };
    let facts = facts(parameters, model, site);
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.moderate(&request)?;
        let id = match site {
            Site::Developer => desk.hex(),
            Site::Platform => desk.uuid(),
        };
        let name = format!("{name}{id}");
        let mut facts = facts;
        facts["name"] = json!(name);
        desk.begin(&id, facts);
        Ok(Made::json(json!({"name": name})))
    }))
}

fn pictures(instance: &Value, site: Site) -> Checked {
    let first = field(instance, "image");
    let last = field(instance, "lastFrame");
    let references = list_of(instance, "referenceImages");
    let of_reference = references.iter().filter_map(|one| field(one, "image"));
    for image in first.into_iter().chain(last).chain(of_reference) {
        picture(image, site)?;
    }
    let refuse = |rule, message: &str| Err(Box::new(words::invalid(rule, message)));
    if last.is_some() && first.is_none() {
        return refuse("last-frame", "`lastFrame` needs `image`.");
    }
    if first.is_some() && !references.is_empty() {
        return refuse(
            "references",
            "`image` and `referenceImages` exclude each other.",
        );
    }
    Ok(())
}

/// Bytes in base64; on the Agent Platform also an address of its storage.
fn picture(image: &Value, site: Site) -> Checked {
    let refuse = |rule, message: &str| {
        let message = format!("Invalid image: {message}.");
        Err(Box::new(words::invalid(rule, message)))
    };
    let said = text_of(image, "mimeType").unwrap_or_default();
    if !["image/png", "image/jpeg"].contains(&said) {
        return refuse("image-type", "expected image/png or image/jpeg");
    }
    match (
        text_of(image, "bytesBase64Encoded"),
        text_of(image, "gcsUri"),
    ) {
        (Some(data), None) => {
            let checked = given::base64(data).and_then(|inline| given::named(said, &inline));
            checked.or_else(|(rule, what)| refuse(rule, &what))
        }
        (None, Some(uri)) if site == Site::Platform && uri.starts_with("gs://") => Ok(()),
        _ => refuse("image-source", "expected `bytesBase64Encoded`"),
    }
}

fn options(instance: &Value, parameters: &Value, model: &str, site: Site) -> Checked {
    let refuse = |rule, message: &str| Err(Box::new(words::invalid(rule, message)));
    let number = |name: &str| field(parameters, name).and_then(Value::as_u64);
    let seconds = number("durationSeconds").unwrap_or(8);
    if seconds % 2 == 1 {
        return refuse("duration", "`durationSeconds` must be 4, 6 or 8.");
    }
    let resolution = text_of(parameters, "resolution").unwrap_or("720p");
    if resolution == "4k" && model.contains("-lite-") {
        return refuse("resolution", "4k is not supported by this model.");
    }
    if resolution != "720p" && seconds != 8 {
        return refuse(
            "duration",
            "`durationSeconds` must be 8 for this resolution.",
        );
    }
    let wide = text_of(parameters, "aspectRatio").unwrap_or("16:9") == "16:9";
    let has_references = !list_of(instance, "referenceImages").is_empty();
    if has_references && (seconds != 8 || !wide) {
        return refuse("references", "Reference images need 16:9 and 8 seconds.");
    }
    if site == Site::Platform {
        return Ok(());
    }
    if number("sampleCount").unwrap_or(1) > 1 {
        return refuse("range", "`sampleCount` must be 1.");
    }
    let persons = text_of(parameters, "personGeneration");
    let has_picture = field(instance, "image").is_some();
    let fits = match persons {
        Some("allow_all") => !has_picture,
        Some("allow_adult") => has_picture,
        _ => true,
    };
    if !fits {
        return refuse(
            "person-generation",
            "`personGeneration` has a value that is not allowed.",
        );
    }
    Ok(())
}

/// What is kept of an operation.
fn facts(parameters: &Value, model: &str, site: Site) -> Value {
    let short = match text_of(parameters, "resolution") {
        Some("1080p") => 1080,
        Some("4k") => 2160,
        _ => 720,
    };
    let ratio = text_of(parameters, "aspectRatio").and_then(pixels::ratio);
    let size = pixels::with_short_side(ratio.unwrap_or(16.0 / 9.0), short);
    let number = |name: &str| field(parameters, name).and_then(Value::as_u64);
    json!({
        "model": model, "platform": site == Site::Platform, "width": size.0, "height": size.1,
        "seconds": number("durationSeconds").unwrap_or(8),
        "count": number("sampleCount").unwrap_or(1),
        "storage": text_of(parameters, "storageUri"),
    })
}
