//! Pictures and films of Google, on the Developer API (with a key) and on the Agent Platform (with
//! a token of OAuth). The Developer API has dropped Imagen and Veo; the fake serves them there as
//! it did.

mod films;
mod imagen;
mod operation;
mod pictures;

use std::sync::Arc;

use serde_json::Value;

use super::words;
use crate::desk::Media;
use crate::incoming::Seen;
use crate::place::{Place, Style};
use crate::refusal::{Checked, Fault, Judged, Refusal};
use crate::shape::Shape;

/// Which of the two a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Site {
    Developer,
    Platform,
}

const VERSIONS: &[&str] = &["/v1/", "/v1beta/", "/v1beta1/"];

/// Whether the address is one of the Agent Platform.
pub(super) fn is_platform(path: &str) -> bool {
    VERSIONS.iter().any(|version| {
        path.strip_prefix(version)
            .is_some_and(|rest| rest.starts_with("projects/"))
    })
}

/// What stands behind `…/publishers/google/models`.
pub(super) fn platform_models(path: &str) -> Option<&str> {
    let rest = VERSIONS
        .iter()
        .find_map(|version| path.strip_prefix(version))?;
    let mut parts = rest.splitn(5, '/');
    let begin = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let ["projects", project, "locations", location] = begin else {
        return None;
    };
    let rest = parts.next()?.strip_prefix("publishers/google/models")?;
    (!project.is_empty() && !location.is_empty()).then_some(rest)
}

/// A request for media; none if it is one for something else.
pub(super) fn judge(request: &Arc<Seen>, path: &str) -> Option<Judged<Media>> {
    let (site, rest) = match platform_models(path) {
        Some(rest) => (Site::Platform, rest),
        None => {
            let version = ["/v1beta/", "/v1/"]
                .into_iter()
                .find(|v| path.starts_with(v))?;
            let rest = &path[version.len()..];
            if let Some(file) = rest.strip_prefix("files/") {
                return Some(operation::download(request, file));
            }
            (Site::Developer, rest.strip_prefix("models")?)
        }
    };
    let call = rest.strip_prefix('/')?;
    if request.method == "GET" {
        let is_operation = site == Site::Developer && call.contains("/operations/");
        return is_operation.then(|| Ok(operation::get(call)));
    }
    let (model, method) = call.rsplit_once(':')?;
    Some(match method {
        "generateContent" if pictures::is_model(model) => pictures::read(request, model, site),
        "streamGenerateContent" if pictures::is_model(model) => {
            let message = "The fake has no streams of pictures.";
            Err(Box::new(words::of_status(501, "not-made", message)))
        }
        "predict" => imagen::read(request, model, site),
        "predictLongRunning" => films::read(request, model, site),
        "fetchPredictOperation" if site == Site::Platform => operation::fetch(request, model),
        _ => return None,
    })
}

fn model_missing(request: &Seen) -> Box<Refusal> {
    Box::new(words::fault(Fault::ModelMissing, request))
}

/// Whether the body of a prediction is JSON that fits the table of its fields, whose names have
/// one spelling only.
fn check(request: &Seen, shape: &Shape) -> Checked {
    json(request)?;
    let fit = shape.check(&request.body, &Place::root(Style::Brackets));
    fit.map_err(|flaw| words::flaw_of_prediction(&flaw))
}

fn json(request: &Seen) -> Checked {
    if request.says_json() && request.body.is_object() {
        return Ok(());
    }
    let rule = if request.says_json() {
        "json"
    } else {
        "content-type"
    };
    let message = "Invalid JSON payload received. Unexpected token.";
    Err(Box::new(words::invalid(rule, message)))
}

/// Parameters that the Developer API refuses.
fn platform_only(parameters: &Value, names: &[&str], site: Site) -> Checked {
    let given = |name: &&&str| parameters.get(**name).is_some_and(|value| !value.is_null());
    match names.iter().find(given) {
        Some(name) if site == Site::Developer => {
            let message = format!("`{name}` isn't supported by this model. Please remove it.");
            Err(Box::new(words::invalid("platform-only", message)))
        }
        _ => Ok(()),
    }
}
