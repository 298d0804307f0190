//! Jobs that need several provider jobs, which are submitted concurrently and polled together.

use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use crate::adapter::{deliver_results, most_decisive, poll_error};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{Link, Polled, QueueCall, ResultSink, Started};

/// The maximum number of submissions that run at the same time.
const MAX_CONCURRENT_SUBMISSIONS: usize = 4;

/// The state of one provider job.
pub(super) enum QueuedJob {
    /// Not finished.
    Pending,
    /// Finished: its results, or why one of them is missing.
    Completed(Vec<Result<Link, ProviderError>>),
    /// Ended without a result.
    Failed(ProviderError),
}

/// Runs `submissions`, each of which returns a provider job id. The ids, and the errors of rejected submissions, are combined into one provider job
/// id: a JSON list.
pub(super) async fn submit_all<F>(
    submissions: impl IntoIterator<Item = F>,
) -> Result<Started, ProviderError>
where
    F: Future<Output = Result<String, ProviderError>> + Send,
{
    let submissions: Vec<F> = submissions.into_iter().collect();
    let started: Vec<_> = stream::iter(submissions)
        .buffered(MAX_CONCURRENT_SUBMISSIONS)
        .collect()
        .await;
    if started.iter().all(Result::is_err) {
        let errors = started.into_iter().filter_map(Result::err).collect();
        return Err(most_decisive(errors).unwrap_or_else(|| {
            ProviderError::new(UpstreamErrorKind::Rejected, "no results were requested")
        }));
    }
    let entries = started.into_iter().map(|one| match one {
        Ok(provider_job_id) => Value::from(provider_job_id),
        Err(error) => {
            tracing::warn!(
                kind = ?error.kind,
                status = error.status,
                error = error.message,
                "one of several calls of a task was rejected"
            );
            let is_moderated = error.kind == UpstreamErrorKind::Moderated;
            json!({ "refused": error.client_message(), "moderated": is_moderated })
        }
    });
    Ok(Started::Accepted(entries.collect::<Value>().to_string()))
}

/// The ids in a provider job id of [`submit_all`], and the errors of submissions that were rejected.
pub(super) fn parse_job_ids(provider_job_id: &str) -> Vec<Result<String, ProviderError>> {
    let entries: Vec<Value> = serde_json::from_str(provider_job_id).unwrap_or_default();
    let read = |entry: Value| match entry {
        Value::String(provider_job_id) => Ok(provider_job_id),
        other => {
            let kind = match other["moderated"].as_bool() {
                Some(true) => UpstreamErrorKind::Moderated,
                _ => UpstreamErrorKind::Failed,
            };
            Err(ProviderError::new(
                kind,
                other["refused"].as_str().unwrap_or_default(),
            ))
        }
    };
    entries.into_iter().map(read).collect()
}

/// Polls the jobs of a provider job id in order until one is not finished. If all are finished, delivers their results.
pub(super) async fn poll_all<F>(
    call: &QueueCall<'_>,
    poll_one: impl Fn(String) -> F,
) -> Result<Polled, ProviderError>
where
    F: Future<Output = Result<QueuedJob, ProviderError>> + Send,
{
    let sink: &dyn ResultSink = call.sink;
    let provider_job_ids = parse_job_ids(call.provider_job_id);
    let total = provider_job_ids.len();
    let mut results = Vec::new();
    for (finished, provider_job_id) in provider_job_ids.into_iter().enumerate() {
        let job = match provider_job_id {
            Ok(provider_job_id) => poll_one(provider_job_id).await,
            Err(error) => Ok(QueuedJob::Failed(error)),
        };
        match job {
            Ok(QueuedJob::Pending) => {
                // The progress is the share of finished jobs; for a single job it is unknown.
                let percent = u8::try_from(100 * finished / total).ok();
                return Ok(Polled::Pending(percent.filter(|percent| *percent > 0)));
            }
            Ok(QueuedJob::Completed(links)) => results.extend(links),
            Ok(QueuedJob::Failed(error)) => results.push(Err(error)),
            Err(error) => match poll_error(error)? {
                Polled::Failed(error) => results.push(Err(error)),
                other => return Ok(other),
            },
        }
    }
    deliver_results(sink, results).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: UpstreamErrorKind) -> Result<String, ProviderError> {
        Err(ProviderError::new(kind, "a message"))
    }

    #[tokio::test]
    async fn accepted_jobs_and_rejections_are_stored_in_the_job_id() {
        let calls = [
            Ok("t-1".to_owned()),
            error(UpstreamErrorKind::Moderated),
            error(UpstreamErrorKind::RateLimited),
            Ok("t-2".to_owned()),
        ];
        let started = submit_all(calls.map(std::future::ready)).await.unwrap();
        let Started::Accepted(provider_job_id) = started else {
            panic!("it was not accepted");
        };
        let read: Vec<_> = parse_job_ids(&provider_job_id)
            .into_iter()
            .map(|one| one.map_err(|e| (e.kind, e.message)))
            .collect();
        // A message about the operator's account is replaced.
        let limit = "the provider's rate limit is reached: try again later";
        let expected = [
            Ok("t-1".to_owned()),
            Err((UpstreamErrorKind::Moderated, "a message".to_owned())),
            Err((UpstreamErrorKind::Failed, limit.to_owned())),
            Ok("t-2".to_owned()),
        ];
        assert_eq!(read, expected);
    }

    #[tokio::test]
    async fn if_nothing_was_accepted_the_most_decisive_error_is_returned() {
        use UpstreamErrorKind::{OutcomeUnknown, RateLimited, Unavailable};
        let calls = [
            error(Unavailable),
            error(OutcomeUnknown),
            error(RateLimited),
        ];
        let failed = submit_all(calls.map(std::future::ready)).await;
        assert_eq!(failed.unwrap_err().kind, OutcomeUnknown);
    }
}
