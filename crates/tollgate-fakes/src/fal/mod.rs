//! fal: a queue before hosted models.

mod read;
mod request;
mod words;

use std::sync::Arc;

use serde_json::Value;

use crate::incoming::Seen;
use crate::provider::{Api, Wanted};
use crate::refusal::{Fault, Judged, Refusal};

/// The fake of fal.
pub(crate) struct Fal;

impl Api for Fal {
    fn base_path(&self) -> &'static str {
        ""
    }

    fn key(&self, request: &Seen) -> Judged<String> {
        let value = request.header("authorization").unwrap_or_default();
        let key = value.strip_prefix("Key ").map(str::trim);
        let key = key.filter(|key| !key.is_empty()).map(str::to_owned);
        key.ok_or_else(|| Box::new(words::no_key()))
    }

    fn judge(&self, request: &Arc<Seen>) -> Judged<Wanted> {
        let path = request.path_after("/");
        let media = match (request.method.as_str(), &path[..]) {
            ("GET", [owner, app, "requests", id, "status"]) => request::status(&[owner, app], id),
            ("GET", [owner, app, "requests", id]) => request::result(&[owner, app], id),
            ("PUT", [owner, app, "requests", id, "cancel"]) => request::cancel(&[owner, app], id),
            ("POST", [owner, app, rest @ ..]) if !rest.contains(&"requests") => {
                read::read(request, owner, app, rest)?
            }
            ("GET" | "PUT", _) => return Err(Box::new(words::missing("path"))),
            _ => return Err(Box::new(words::method())),
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
        vec![("x-fal-request-id", id.to_owned())]
    }
}
