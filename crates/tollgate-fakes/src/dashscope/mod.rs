//! Alibaba DashScope: wan pictures.

mod read;
mod task;
mod words;

use std::sync::Arc;

use serde_json::Value;

use crate::incoming::Seen;
use crate::provider::{Api, Wanted};
use crate::refusal::{Fault, Judged, Refusal};

/// The fake of DashScope.
pub(crate) struct DashScope;

impl Api for DashScope {
    fn base_path(&self) -> &'static str {
        "/api/v1"
    }

    fn key(&self, request: &Seen) -> Judged<String> {
        let key = request.bearer().map(str::to_owned);
        key.ok_or_else(|| Box::new(words::no_key()))
    }

    fn judge(&self, request: &Arc<Seen>) -> Judged<Wanted> {
        let path = request.path_after("/api/v1/");
        let media = match (request.method.as_str(), &path[..]) {
            ("POST", ["services", "aigc", "image-generation", "generation"]) => {
                read::later(request)?
            }
            ("POST", ["services", "aigc", "multimodal-generation", "generation"]) => {
                read::at_once(request)?
            }
            ("GET", ["tasks"]) => task::list(request),
            ("GET", ["tasks", id]) => task::get(id),
            ("POST", ["tasks", id, "cancel"]) => task::cancel(id),
            _ => return Err(Box::new(words::address())),
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
