//! [`parse_request`]: validates a request body for any model and turns it into a submission.

use serde_json::{Map, Value};
use tollgate_core::ApiError;

use crate::catalogue::TaskModel;
use crate::endpoint::RequestLayout;
use crate::family::AnyFamily;
use crate::job::Job;
use crate::submission::Submission;
use crate::{image, speech, video};

/// Validates `body`, a request for `model` in that layout.
///
/// With `strict`, fields that would be ignored are an error. `null` counts as absent everywhere.
///
/// # Errors
/// 400 that names the field as the client wrote it, the value received and the values allowed.
pub fn parse_request(
    model: &TaskModel,
    layout: RequestLayout,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission, ApiError> {
    let (name, base_model) = (model.name.as_str(), model.base_model);
    match model.family {
        AnyFamily::Image(family) => {
            image::parse_request(name, base_model, family, body, strict).map(|s| s.map(Job::Image))
        }
        AnyFamily::Video(family) => {
            video::parse_request(name, base_model, family, body, strict).map(|s| s.map(Job::Video))
        }
        AnyFamily::Speech(family) => {
            speech::parse_request(name, base_model, family, layout, body, strict)
                .map(|s| s.map(Job::Speech))
        }
    }
}
