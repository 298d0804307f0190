//! Pictures from pictures: as a form, and as JSON.

use std::sync::Arc;

use serde_json::Value;

use super::super::words;
use super::pictures::{self, BACKGROUNDS, FORMATS, GRADES, Model, QUALITIES};
use super::{bad_image, fields};
use crate::desk::Media;
use crate::given::{self, Given, Inline};
use crate::incoming::Seen;
use crate::media;
use crate::parts::Part;
use crate::refusal::{Checked, Judged};
use crate::shape::{Kind, Shape, field, list_of, text_of};

/// What both forms take beside pictures.
macro_rules! with_common {
    ($($field:expr),* $(,)?) => {
        &[
            ("prompt", Kind::Text(32_000)),
            ("model", Kind::Str),
            ("n", Kind::Int(1, 10)),
            ("size", Kind::Str),
            ("quality", Kind::OneOf(QUALITIES)),
            ("background", Kind::OneOf(BACKGROUNDS)),
            ("moderation", Kind::OneOf(&["auto", "low"])),
            ("output_format", Kind::OneOf(FORMATS)),
            ("output_compression", Kind::Int(0, 100)),
            ("complexity", Kind::OneOf(GRADES)),
            ("stream", Kind::Bool),
            ("partial_images", Kind::Int(0, 3)),
            ("safety_identifier", Kind::Text(128)),
            ("user", Kind::Str),
            ("input_fidelity", Kind::OneOf(&["high", "low"])),
            $($field),*
        ]
    };
}

const FORM: Shape = Shape {
    fields: with_common![],
    required: &["prompt", "model"],
};

const REFERENCE: Shape = Shape {
    fields: &[
        ("image_url", Kind::Text(20_971_520)),
        ("file_id", Kind::Str),
    ],
    required: &[],
};

const JSON: Shape = Shape {
    fields: with_common![
        ("images", Kind::Few(16, &Kind::Shape(&REFERENCE))),
        ("mask", Kind::Shape(&REFERENCE)),
    ],
    required: &["prompt", "model", "images"],
};

pub(super) fn read(request: &Arc<Seen>) -> Judged<Media> {
    let is_form = request.says_form();
    let body = fields(request, if is_form { &FORM } else { &JSON })?;
    let model = Model::of(&body)?;
    if let Some(fidelity) = text_of(&body, "input_fidelity") {
        let fits = model == Model::One5 || (model == Model::Mini && fidelity == "low");
        if !fits {
            return Err(Box::new(words::unsupported("input_fidelity", None)));
        }
    }
    let wish = pictures::wish(&body, model)?;
    let inputs = if is_form {
        files(&request.parts, model)?
    } else {
        references(&body)?
    };
    Ok(pictures::submit(request, wish, inputs))
}

/// How many pictures a form holds.
fn files(parts: &[Part], model: Model) -> Judged<usize> {
    let mut images: Vec<Inline> = Vec::new();
    let mut mask = None;
    let mut markup = false;
    for part in parts.iter().filter(|part| part.filename.is_some()) {
        let inline = file(part)?;
        match part.name.as_str() {
            "image" if !images.is_empty() => {
                let message = "Duplicate parameter: 'image'. You provided multiple values for \
                    this parameter, whereas only one is allowed. If you are trying to provide a \
                    list of values, use the array syntax instead e.g. 'image[]=<value>'.";
                let refusal = words::invalid("duplicate", message).code("duplicate_parameter");
                return Err(Box::new(refusal.param("image")));
            }
            "image" | "image[]" => {
                if inline.bytes >= 50 << 20 {
                    return Err(bad_image("image-bytes", "image", "50 MB or more"));
                }
                images.push(inline);
            }
            "mask" => {
                if !has_alpha(&part.bytes) {
                    return Err(bad_image("mask", "mask", "not a PNG with an alpha channel"));
                }
                mask = Some(inline);
            }
            "markup" if model == Model::Two5 => markup = true,
            other => {
                let message = format!("Unknown parameter: '{other}'.");
                let refusal = words::invalid("unknown-field", message).code("unknown_parameter");
                return Err(Box::new(refusal.param(other)));
            }
        }
    }
    if images.is_empty() || images.len() > 16 {
        let (rule, message) = match images.len() {
            0 => ("missing-field", "Missing required parameter: 'image'."),
            _ => (
                "too-many",
                "Invalid 'image': at most 16 images are allowed.",
            ),
        };
        return Err(Box::new(words::invalid(rule, message).param("image")));
    }
    if let Some(mask) = mask {
        let what = if markup {
            "a mask and a markup exclude each other"
        } else if mask.bytes >= 4 << 20 {
            "4 MB or more"
        } else if mask.size != images[0].size {
            "mask size does not match image size"
        } else {
            return Ok(images.len());
        };
        return Err(bad_image("mask", "mask", what));
    }
    Ok(images.len())
}

/// A file that says rightly which kind of picture it is.
fn file(part: &Part) -> Judged<Inline> {
    let said = part
        .content_type
        .as_deref()
        .unwrap_or("application/octet-stream");
    if !["image/png", "image/jpeg", "image/webp"].contains(&said) {
        let message = format!(
            "Invalid file '{}': unsupported mimetype ('{said}'). Supported file formats are \
             'image/jpeg', 'image/png', and 'image/webp'.",
            part.name
        );
        let refusal = words::invalid("file-type", message).code("unsupported_file_mimetype");
        return Err(Box::new(refusal.param(&part.name)));
    }
    let checked =
        given::picture(&part.bytes).and_then(|inline| given::named(said, &inline).map(|()| inline));
    checked.map_err(|(rule, what)| bad_image(rule, &part.name, &what))
}

/// Whether the bytes are a PNG whose pixels can be transparent.
fn has_alpha(bytes: &[u8]) -> bool {
    let is_png = media::sniff(bytes) == Some("image/png");
    // The type of colour stands behind the size and the depth.
    is_png && bytes.get(25).is_some_and(|kind| kind & 4 == 4)
}

/// How many pictures a body of JSON names.
fn references(body: &Value) -> Judged<usize> {
    let images = list_of(body, "images");
    if images.is_empty() {
        let message = "Invalid 'images': empty array.";
        return Err(Box::new(words::invalid("empty", message).param("images")));
    }
    for (at, image) in images.iter().enumerate() {
        reference(image, &format!("images[{at}]"))?;
    }
    if let Some(mask) = field(body, "mask") {
        reference(mask, "mask")?;
        let url = text_of(mask, "image_url").unwrap_or_default();
        if let Some((_, bytes)) = media::data_uri(url)
            && !has_alpha(&bytes)
        {
            return Err(bad_image("mask", "mask", "not a PNG with an alpha channel"));
        }
    }
    Ok(images.len())
}

fn reference(image: &Value, param: &str) -> Checked {
    let (url, file) = (text_of(image, "image_url"), text_of(image, "file_id"));
    match (url, file) {
        (Some(url), None) => match given::link_or_data(url) {
            Ok(Given::Link) => Ok(()),
            Ok(Given::Inline(inline)) if inline.media_type == "image/gif" => {
                Err(bad_image("image-type", param, "a GIF"))
            }
            Ok(Given::Inline(_)) => Ok(()),
            Err((rule, what)) => Err(bad_image(rule, param, &what)),
        },
        (None, Some(_)) => Ok(()),
        _ => {
            let message = format!("'{param}' must have exactly one of 'image_url' and 'file_id'.");
            Err(Box::new(words::invalid("reference", message).param(param)))
        }
    }
}
