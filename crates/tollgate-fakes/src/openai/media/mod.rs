//! Pictures, films and speech of OpenAI.

mod edits;
mod pictures;
mod speech;
mod video;
mod videos;

use std::sync::Arc;

use serde_json::Value;

use super::words;
use crate::desk::Media;
use crate::incoming::Seen;
use crate::parts;
use crate::place::{Place, Style};
use crate::refusal::{Judged, Refusal};
use crate::shape::Shape;

/// A request for media; none if its address is not one of theirs.
pub(super) fn judge(request: &Arc<Seen>) -> Option<Judged<Media>> {
    let path = request.path_after("/v1/");
    let judged = match (request.method.as_str(), &path[..]) {
        ("POST", ["images", "generations"]) => pictures::read(request),
        ("POST", ["images", "edits"]) => edits::read(request),
        ("POST", ["audio", "speech"]) => speech::read(request),
        ("POST", ["videos"]) => videos::read(request),
        ("GET", ["videos"]) => Ok(video::list()),
        ("GET", ["videos", id]) => Ok(video::get(id)),
        ("DELETE", ["videos", id]) => Ok(video::delete(id)),
        ("GET", ["videos", id, "content"]) => video::content(request, id),
        (method, ["images", "generations" | "edits"] | ["audio", "speech"] | ["videos", ..]) => {
            Err(Box::new(words::method(method, &request.path)))
        }
        _ => return None,
    };
    Some(judged)
}

/// The fields of a body of JSON or of a form: a form's as objects too, files apart.
fn fields(request: &Seen, shape: &Shape) -> Judged<Value> {
    let body = if request.says_form() {
        if request.parts.is_empty() {
            let message = "Could not parse multipart form";
            return Err(Box::new(words::invalid("form", message)));
        }
        parts::object(&request.parts, shape)
    } else if request.says_json() {
        request.body.clone()
    } else {
        let given = request.header("content-type").unwrap_or_default();
        return Err(Box::new(words::content_type(given)));
    };
    if !body.is_object() {
        return Err(Box::new(words::not_json()));
    }
    let fit = shape.check(&body, &Place::root(Style::Brackets));
    fit.map_err(|flaw| words::flaw(&flaw))?;
    Ok(body)
}

/// A picture that is not in order.
fn bad_image(rule: &'static str, param: &str, what: &str) -> Box<Refusal> {
    let message = format!("Invalid image for '{param}': {what}.");
    let refusal = words::invalid(rule, message).code("invalid_image_file");
    Box::new(refusal.param(param))
}
