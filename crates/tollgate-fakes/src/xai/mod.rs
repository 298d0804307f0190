//! xAI: Grok Imagine pictures and films, speech.

mod pictures;
mod speech;
mod video;
mod videos;
mod words;

use std::sync::Arc;

use serde_json::Value;

use crate::given::{self, Given};
use crate::incoming::Seen;
use crate::place::{Place, Style};
use crate::provider::{Api, Wanted};
use crate::refusal::{Checked, Fault, Judged, Refusal};
use crate::shape::{Kind, Shape, text_of};

/// The fake of xAI.
pub(crate) struct Xai;

/// A picture by its address.
const IMAGE: Kind = Kind::Shape(&Shape {
    fields: &[
        ("url", Kind::Str),
        ("file_id", Kind::Str),
        ("type", Kind::OneOf(&["image_url"])),
    ],
    required: &[],
});

/// Whether and how long xAI keeps a copy.
const STORAGE: Kind = Kind::Shape(&Shape {
    fields: &[
        ("filename", Kind::Str),
        ("expires_after", Kind::Int(1, 2_592_000)),
        (
            "public_url",
            Kind::Shape(&Shape {
                fields: &[("expires_after", Kind::Int(1, 2_592_000))],
                required: &[],
            }),
        ),
    ],
    required: &[],
});

impl Api for Xai {
    fn base_path(&self) -> &'static str {
        "/v1"
    }

    fn key(&self, request: &Seen) -> Judged<String> {
        let key = request.bearer().map(str::to_owned);
        key.ok_or_else(|| Box::new(words::no_key()))
    }

    fn judge(&self, request: &Arc<Seen>) -> Judged<Wanted> {
        let path = request.path_after("/v1/");
        let media = match (request.method.as_str(), &path[..]) {
            ("POST", ["images", "generations"]) => pictures::generate(request)?,
            ("POST", ["images", "edits"]) => pictures::edit(request)?,
            ("POST", ["videos", "generations"]) => videos::read(request)?,
            ("GET", ["videos", id]) => video::get(id),
            ("POST", ["tts"]) => speech::read(request)?,
            _ => return Err(Box::new(words::address())),
        };
        Ok(Wanted::Media(media))
    }

    fn fault(&self, fault: Fault, request: &Seen) -> Refusal {
        words::fault(fault, request)
    }

    fn error(&self, refusal: &Refusal, _: &str) -> Value {
        words::error(refusal)
    }

    fn headers(&self, id: &str) -> Vec<(&'static str, String)> {
        vec![("x-trace-id", id.to_owned())]
    }
}

/// Whether the body is JSON that fits the table of its fields.
fn check(request: &Seen, shape: &Shape) -> Checked {
    if !request.says_json() || !request.body.is_object() {
        return Err(Box::new(words::not_json(request.says_json())));
    }
    let fit = shape.check(&request.body, &Place::root(Style::Brackets));
    fit.map_err(|flaw| Box::new(words::flaw(&flaw)))
}

/// A picture that xAI takes.
fn image(image: &Value, param: &str) -> Checked {
    let refuse = |rule, what: &str| {
        let message = format!("Invalid image in `{param}`: {what}");
        Err(Box::new(words::invalid(rule, message)))
    };
    match (text_of(image, "url"), text_of(image, "file_id")) {
        (None, Some(_)) => Ok(()),
        (Some(url), None) => match given::link_or_data(url) {
            Ok(Given::Link) => Ok(()),
            Ok(Given::Inline(inline)) => {
                let fits = ["image/png", "image/jpeg", "image/webp"].contains(&inline.media_type);
                match fits {
                    true => Ok(()),
                    false => refuse("image-type", "unsupported image type"),
                }
            }
            Err((rule, what)) => refuse(rule, &what),
        },
        _ => refuse(
            "image-source",
            "exactly one of `url` and `file_id` must be given",
        ),
    }
}
