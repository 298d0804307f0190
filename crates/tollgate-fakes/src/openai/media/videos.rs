//! Films: what a task is asked for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::words::{self, invalid_value};
use super::{bad_image, fields, pictures, video};
use crate::desk::{Made, Media};
use crate::given::{self, Given, Inline};
use crate::incoming::Seen;
use crate::pixels;
use crate::refusal::{Checked, Judged};
use crate::shape::{Kind, Shape, field, text_of};

const SIZES: &[&str] = &["720x1280", "1280x720", "1024x1792", "1792x1024"];

const REFERENCE: Kind = Kind::Shape(&Shape {
    fields: &[
        ("image_url", Kind::Text(20_971_520)),
        ("file_id", Kind::Str),
    ],
    required: &[],
});

const REQUEST: Shape = Shape {
    fields: &[
        ("prompt", Kind::Text(32_000)),
        ("model", Kind::Str),
        ("seconds", Kind::OneOf(&["4", "8", "12"])),
        ("size", Kind::OneOf(SIZES)),
        ("input_reference", REFERENCE),
    ],
    required: &["prompt"],
};

const MODELS: &[&str] = &[
    "sora-2",
    "sora-2-2025-10-06",
    "sora-2-2025-12-08",
    "sora-2-pro",
    "sora-2-pro-2025-10-06",
];

pub(super) fn read(request: &Arc<Seen>) -> Judged<Media> {
    let body = fields(request, &REQUEST)?;
    let model = text_of(&body, "model").unwrap_or("sora-2");
    if !MODELS.contains(&model) {
        return Err(Box::new(words::model_missing(model)));
    }
    let size = text_of(&body, "size").unwrap_or(SIZES[0]);
    if size.contains("1024") && !model.starts_with("sora-2-pro") {
        let message =
            format!("Invalid value: '{size}'. Supported values are: '720x1280' and '1280x720'.");
        return Err(Box::new(invalid_value("size", "size", message)));
    }
    let pixels = pixels::parse(size, 'x').unwrap_or_default();
    reference(request, &body, pixels)?;
    let text = pictures::prompt(&body)?;
    let facts = json!({
        "model": model, "size": size, "width": pixels.0, "height": pixels.1, "prompt": text,
        "seconds": text_of(&body, "seconds").unwrap_or("4"),
    });
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.moderate(&request)?;
        let id = format!("video_{}{}", desk.hex(), desk.hex());
        desk.begin(&id, facts);
        let begun = desk.look(&id, |task, phase| video::record(desk, task, phase));
        Ok(Made::json(begun.unwrap_or(Value::Null)))
    }))
}

/// The first picture has exactly the size of the film.
fn reference(request: &Seen, body: &Value, size: (u32, u32)) -> Checked {
    let param = "input_reference";
    let files = request.parts.iter().filter(|part| part.filename.is_some());
    for part in files {
        if part.name != param {
            let message = format!("Unknown parameter: '{}'.", part.name);
            let refusal = words::invalid("unknown-field", message).code("unknown_parameter");
            return Err(Box::new(refusal.param(&part.name)));
        }
        let said = part
            .content_type
            .as_deref()
            .unwrap_or("application/octet-stream");
        let checked = given::picture(&part.bytes)
            .and_then(|inline| given::named(said, &inline).map(|()| inline));
        let inline = checked.map_err(|(rule, what)| bad_image(rule, param, &what))?;
        fits(&inline, size)?;
    }
    let Some(reference) = field(body, param) else {
        return Ok(());
    };
    match (
        text_of(reference, "image_url"),
        text_of(reference, "file_id"),
    ) {
        (Some(url), None) => match given::link_or_data(url) {
            Ok(Given::Link) => Ok(()),
            Ok(Given::Inline(inline)) => fits(&inline, size),
            Err((rule, what)) => Err(bad_image(rule, param, &what)),
        },
        (None, Some(_)) => Ok(()),
        _ => {
            let message = format!("'{param}' must have exactly one of 'image_url' and 'file_id'.");
            Err(Box::new(words::invalid("reference", message).param(param)))
        }
    }
}

fn fits(inline: &Inline, size: (u32, u32)) -> Checked {
    let param = "input_reference";
    if !["image/png", "image/jpeg", "image/webp"].contains(&inline.media_type) {
        return Err(bad_image("image-type", param, inline.media_type));
    }
    if inline.size != size {
        let message = "Inpaint image must match the requested width and height";
        return Err(Box::new(invalid_value("reference-size", param, message)));
    }
    Ok(())
}
