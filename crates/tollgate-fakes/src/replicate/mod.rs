//! Replicate: predictions of hosted models.

mod prediction;
mod read;
mod words;

use std::sync::Arc;

use serde_json::Value;

use crate::incoming::Seen;
use crate::provider::{Api, Wanted};
use crate::refusal::{Fault, Judged, Refusal};

/// The fake of Replicate.
pub(crate) struct Replicate;

impl Api for Replicate {
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
            ("POST", ["models", owner, name, "predictions"]) => {
                read::official(request, owner, name)?
            }
            ("POST", ["predictions"]) => read::versioned(request)?,
            ("GET", ["predictions", id]) => prediction::get(id),
            ("POST", ["predictions", id, "cancel"]) => prediction::cancel(id),
            _ => return Err(Box::new(words::missing("path"))),
        };
        Ok(Wanted::Media(media))
    }

    fn fault(&self, fault: Fault, _: &Seen) -> Refusal {
        words::fault(fault)
    }

    fn error(&self, refusal: &Refusal, _: &str) -> Value {
        words::error(refusal)
    }

    fn headers(&self, _: &str) -> Vec<(&'static str, String)> {
        vec![
            ("ratelimit-remaining", "599".to_owned()),
            ("ratelimit-reset", "1".to_owned()),
        ]
    }
}
