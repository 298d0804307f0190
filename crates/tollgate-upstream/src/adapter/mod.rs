//! Code that all provider adapters share: HTTP requests, upload bodies, error classification, polling outcomes, adjustments.

mod adjustments;
mod aspect_ratio;
mod audio_response;
mod base64_stream;
mod batched_calls;
mod chat_request;
mod error_body;
mod error_classification;
mod fetch_result;
mod http_request;
mod listed_results;
mod queue;
mod redaction;
mod retry_after;
mod upload_body;

pub(crate) use adjustments::{Adjustments, has_ratio, requested_fields};
pub(crate) use aspect_ratio::nearest_ratio;
pub(crate) use audio_response::AudioResponse;
pub(crate) use base64_stream::ParsedResponse;
pub(crate) use batched_calls::{run_in_batches, unless_cancelled};
pub(crate) use error_body::ErrorBody;
pub(crate) use error_classification::classify_error;
pub(crate) use http_request::{HttpRequest, HttpResponse, ProviderClient, secret_value, uri};
pub(crate) use listed_results::{CallOutcome, ListedResult};
pub(crate) use queue::{
    deliver_results, finish_single_result, missing_job_id_error, most_decisive, percent_encode,
    poll_error, unexpected_response, unreadable_result_error,
};
pub(crate) use upload_body::{InlineFiles, MultipartForm};
