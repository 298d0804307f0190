//! Polling outcomes for all adapters of providers with a job queue: delivered results, failed polls, lost responses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::http_request::HttpResponse;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{Completed, Link, Polled, ResultData, ResultSink};

/// The characters to encode: all except the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Encodes `text`, such as a provider job id, as one segment of a path or one value of a query.
pub(crate) fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The outcome of a poll whose response is an error: an error about the task itself ends the task; after any other error, the next poll retries.
pub(crate) fn poll_error(error: ProviderError) -> Result<Polled, ProviderError> {
    match error.kind {
        UpstreamErrorKind::Rejected
        | UpstreamErrorKind::Failed
        | UpstreamErrorKind::ModelNotFound
        | UpstreamErrorKind::UnsupportedByChannel => Ok(Polled::Failed(ProviderError {
            kind: UpstreamErrorKind::Failed,
            ..error
        })),
        _ => Err(error),
    }
}

/// The error of a submission whose response contains no job id and whose message alone means `error`. A success that begins as JSON was cut off and
/// may have created a job; any other success is a proxy's page, and nothing was created.
pub(crate) fn missing_job_id_error(response: &HttpResponse, error: ProviderError) -> ProviderError {
    if response.begins_as_json() && error.kind == UpstreamErrorKind::Unavailable {
        let message = "the upstream's response names no task, although it may have created one";
        return ProviderError {
            status: error.status,
            ..ProviderError::new(UpstreamErrorKind::OutcomeUnknown, message)
        };
    }
    error
}

/// Delivers the results of a finished task in order. Missing results are failures of the outcome if at least one was delivered. If a result cannot be
/// fetched at the moment, the error makes the next poll deliver all of them again.
pub(crate) async fn deliver_results(
    sink: &dyn ResultSink,
    results: Vec<Result<Link, ProviderError>>,
) -> Result<Polled, ProviderError> {
    let mut failures = Vec::new();
    let (mut delivered, mut retryable_error) = (0, None);
    for result in results {
        let link = match result {
            Ok(link) => link,
            Err(error) => {
                failures.push(error);
                continue;
            }
        };
        match sink.deliver(ResultData::Link(link)).await {
            Ok(()) => delivered += 1,
            Err(error) => {
                if error.kind.is_retryable() {
                    retryable_error = Some(error.clone());
                }
                failures.push(error);
            }
        }
    }
    if let Some(error) = retryable_error {
        return Err(error);
    }
    if delivered > 0 {
        return Ok(Polled::Completed(Completed { failures }));
    }
    let error = most_decisive(failures).unwrap_or_else(|| {
        let message = "the upstream's task ended without a result";
        ProviderError::new(UpstreamErrorKind::Failed, message)
    });
    Ok(Polled::Failed(error))
}

/// The outcome of a poll of a finished task with one result; `delivered` is the outcome of its delivery. A retryable error makes the next poll
/// deliver it again.
pub(crate) fn finish_single_result(
    delivered: Result<(), ProviderError>,
) -> Result<Polled, ProviderError> {
    match delivered {
        Ok(()) => Ok(Polled::Completed(Completed::default())),
        Err(error) if error.kind.is_retryable() || error.kind == UpstreamErrorKind::Interrupted => {
            Err(error)
        }
        Err(error) => Ok(Polled::Failed(error)),
    }
}

/// Returns the one of several errors that decides how to proceed.
pub(crate) fn most_decisive(errors: Vec<ProviderError>) -> Option<ProviderError> {
    errors.into_iter().min_by_key(|error| match error.kind {
        UpstreamErrorKind::Interrupted => 0,
        UpstreamErrorKind::Moderated => 1,
        UpstreamErrorKind::Rejected => 2,
        // A request that may have been accepted forbids a retry, whatever the other errors are.
        UpstreamErrorKind::OutcomeUnknown => 3,
        UpstreamErrorKind::Failed => 4,
        UpstreamErrorKind::KeyRejected => 5,
        UpstreamErrorKind::QuotaExhausted => 6,
        UpstreamErrorKind::ModelNotFound => 7,
        UpstreamErrorKind::UnsupportedByChannel => 8,
        UpstreamErrorKind::RateLimited => 9,
        UpstreamErrorKind::Unavailable
        | UpstreamErrorKind::Connect
        | UpstreamErrorKind::TimedOut
        | UpstreamErrorKind::TooLarge => 10,
    })
}

/// The error of a successful response that was not sent by the provider: a proxy's page, an empty body.
pub(crate) fn unexpected_response(response: &HttpResponse) -> ProviderError {
    ProviderError {
        status: Some(response.status.as_u16()),
        ..ProviderError::new(
            UpstreamErrorKind::Unavailable,
            "the upstream's response is not of the requested type",
        )
    }
}

/// The error of an unreadable response to a request that creates results. If the body begins as JSON, the connection lost the end of it, and the
/// results may have been created.
pub(crate) fn unreadable_result_error(response: &HttpResponse) -> ProviderError {
    if !response.begins_as_json() {
        return unexpected_response(response);
    }
    ProviderError {
        kind: UpstreamErrorKind::OutcomeUnknown,
        ..unexpected_response(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UpstreamErrorKind::{
        Failed, KeyRejected, ModelNotFound, Moderated, OutcomeUnknown, RateLimited, Rejected,
        Unavailable, UnsupportedByChannel,
    };

    #[test]
    fn ids_are_encoded_as_one_path_segment() {
        assert_eq!(percent_encode("a-1_b.c~"), "a-1_b.c~");
        assert_eq!(percent_encode("../x?y=z#é"), "..%2Fx%3Fy%3Dz%23%C3%A9");
    }

    #[test]
    fn only_an_error_about_the_task_ends_it() {
        for (kind, ends) in [
            (Rejected, true),
            (ModelNotFound, true),
            (UnsupportedByChannel, true),
            (Unavailable, false),
            (RateLimited, false),
            (KeyRejected, false),
        ] {
            match poll_error(ProviderError::new(kind, "x")) {
                Ok(Polled::Failed(error)) => assert!(ends && error.kind == Failed, "{kind:?}"),
                Ok(other) => panic!("{kind:?}: {other:?}"),
                Err(error) => assert!(!ends && error.kind == kind, "{kind:?}"),
            }
        }
    }

    #[test]
    fn a_success_without_a_job_id_may_have_created_a_job() {
        for (status, body, kind, expected) in [
            (200, "{\"id\": \"t", Unavailable, OutcomeUnknown),
            (201, " {}", Unavailable, OutcomeUnknown),
            (200, "{\"code\": 1302}", RateLimited, RateLimited),
            (200, "<html></html>", Unavailable, Unavailable),
            (200, "", Unavailable, Unavailable),
            (502, "{}", Unavailable, Unavailable),
        ] {
            let response = HttpResponse {
                status: status.try_into().unwrap(),
                headers: http::HeaderMap::new(),
                body: body.into(),
            };
            let error = missing_job_id_error(&response, ProviderError::new(kind, "x"));
            assert_eq!(error.kind, expected, "{status} {body}");
        }
    }

    #[test]
    fn errors_that_forbid_a_retry_are_the_most_decisive() {
        for (kinds, expected) in [
            (&[Unavailable, Moderated, OutcomeUnknown][..], Moderated),
            (&[RateLimited, OutcomeUnknown, KeyRejected], OutcomeUnknown),
            (&[Unavailable, RateLimited], RateLimited),
        ] {
            let errors = kinds.iter().map(|kind| ProviderError::new(*kind, "x"));
            assert_eq!(most_decisive(errors.collect()).unwrap().kind, expected);
        }
        assert!(most_decisive(Vec::new()).is_none());
    }
}
