//! Volcengine Ark: Seedream pictures, Seedance films.

mod films;
mod models;
mod pictures;
mod task;
mod words;

use std::sync::Arc;

use serde_json::Value;

use crate::incoming::Seen;
use crate::provider::{Api, Wanted};
use crate::refusal::{Checked, Fault, Judged, Refusal};
use crate::shape::Shape;

/// The fake of Ark.
pub(crate) struct Ark;

const BASE: &str = "/api/v3";

impl Api for Ark {
    fn base_path(&self) -> &'static str {
        BASE
    }

    fn key(&self, request: &Seen) -> Judged<String> {
        let key = request.bearer().map(str::to_owned);
        key.ok_or_else(|| Box::new(words::no_key()))
    }

    fn judge(&self, request: &Arc<Seen>) -> Judged<Wanted> {
        let path = request.path_after("/api/v3/");
        let media = match (request.method.as_str(), &path[..]) {
            ("POST", ["images", "generations"]) => pictures::read(request)?,
            ("POST", ["contents", "generations", "tasks"]) => films::read(request)?,
            ("GET", ["contents", "generations", "tasks"]) => task::list(request),
            ("GET", ["contents", "generations", "tasks", id]) => task::get(id),
            ("DELETE", ["contents", "generations", "tasks", id]) => task::delete(id),
            _ => return Err(Box::new(words::address(&request.path))),
        };
        Ok(Wanted::Media(media))
    }

    fn fault(&self, fault: Fault, request: &Seen) -> Refusal {
        words::fault(fault, request)
    }

    fn error(&self, refusal: &Refusal, id: &str) -> Value {
        words::error(refusal, id)
    }

    fn headers(&self, id: &str) -> Vec<(&'static str, String)> {
        vec![("x-request-id", id.to_owned())]
    }
}

/// Whether the body is JSON that fits the table of its fields.
fn check(request: &Seen, shape: &Shape) -> Checked {
    if !request.says_json() || !request.body.is_object() {
        return Err(Box::new(words::not_json(request.says_json())));
    }
    let root = crate::place::Place::root(crate::place::Style::Brackets);
    let fit = shape.check(&request.body, &root);
    fit.map_err(|flaw| Box::new(words::flaw(&flaw)))
}
