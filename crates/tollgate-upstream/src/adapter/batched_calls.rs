//! Splits requests for more results than a provider generates in one call into several concurrent calls.

use std::sync::OnceLock;

use futures_util::StreamExt as _;
use futures_util::stream;

use tokio_util::sync::CancellationToken;

use super::listed_results::CallOutcome;
use super::queue::most_decisive;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::Completed;

/// The maximum number of calls of one attempt that run at the same time.
const MAX_CONCURRENT_CALLS: usize = 4;

/// Requests `requested` results by calls for up to `per_call` each, several at a time; `call` gets the number of results to generate. If at least one
/// result was delivered, missing results are failures of the outcome.
///
/// # Errors
///
/// If no result was delivered, the most decisive error.
pub(crate) async fn run_in_batches<C>(
    requested: u32,
    per_call: u32,
    call: impl Fn(u32) -> C,
) -> Result<Completed, ProviderError>
where
    C: Future<Output = Result<CallOutcome, ProviderError>>,
{
    let per_call = per_call.max(1);
    let full_calls = std::iter::repeat_n(per_call, (requested / per_call) as usize);
    let sizes = full_calls.chain(Some(requested % per_call).filter(|rest| *rest > 0));
    let fatal_error = OnceLock::new();
    let calls = sizes.map(|size| {
        let (call, fatal_error) = (&call, &fatal_error);
        async move {
            if let Some(error) = fatal_error.get() {
                return (size, Err(ProviderError::clone(error)));
            }
            let outcome = call(size).await;
            if let Err(error) = &outcome
                && fails_every_call(error.kind)
            {
                // The cell keeps only the first error.
                let _ = fatal_error.set(error.clone());
            }
            (size, outcome)
        }
    });
    let outcomes: Vec<_> = stream::iter(calls)
        .buffer_unordered(MAX_CONCURRENT_CALLS)
        .collect()
        .await;
    combine_outcomes(outcomes)
}

fn combine_outcomes(
    outcomes: Vec<(u32, Result<CallOutcome, ProviderError>)>,
) -> Result<Completed, ProviderError> {
    let mut delivered = 0;
    let mut failures = Vec::new();
    for (size, outcome) in outcomes {
        match outcome {
            Ok(outcome) => {
                delivered += outcome.delivered;
                failures.extend(outcome.failures);
            }
            Err(error) if error.kind == UpstreamErrorKind::Interrupted => return Err(error),
            Err(error) => failures.extend(std::iter::repeat_n(error, size as usize)),
        }
    }
    if delivered > 0 {
        return Ok(Completed { failures });
    }
    Err(most_decisive(failures).unwrap_or_else(|| {
        ProviderError::new(
            UpstreamErrorKind::Unavailable,
            "the upstream's response has no result",
        )
    }))
}

/// Runs `work` until it completes or the attempt is cancelled.
pub(crate) async fn unless_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ProviderError::new(
            UpstreamErrorKind::Interrupted,
            "the attempt was cancelled",
        )),
        result = work => result,
    }
}

/// Whether calls that have not started would fail the same way.
fn fails_every_call(kind: UpstreamErrorKind) -> bool {
    use UpstreamErrorKind::{
        Interrupted, KeyRejected, ModelNotFound, QuotaExhausted, Rejected, UnsupportedByChannel,
    };
    matches!(
        kind,
        UnsupportedByChannel
            | Interrupted
            | KeyRejected
            | ModelNotFound
            | QuotaExhausted
            | Rejected
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use UpstreamErrorKind::{KeyRejected, Moderated, OutcomeUnknown, RateLimited, Unavailable};

    fn error(kind: UpstreamErrorKind) -> ProviderError {
        ProviderError::new(kind, "because")
    }

    /// Runs calls that end with `outcomes`, in the order in which they start. Returns the sizes of the calls as well.
    async fn run(
        requested: u32,
        per_call: u32,
        outcomes: Vec<Result<CallOutcome, ProviderError>>,
    ) -> (Result<Completed, ProviderError>, Vec<u32>) {
        let outcomes = Mutex::new(outcomes.into_iter());
        let sizes = Mutex::new(Vec::new());
        let completed = run_in_batches(requested, per_call, |size| {
            sizes.lock().unwrap().push(size);
            let outcome = outcomes.lock().unwrap().next().unwrap();
            async move { outcome }
        })
        .await;
        (completed, sizes.into_inner().unwrap())
    }

    fn delivered(delivered: u32) -> Result<CallOutcome, ProviderError> {
        let failures = Vec::new();
        Ok(CallOutcome {
            delivered,
            failures,
        })
    }

    #[tokio::test]
    async fn the_requested_number_is_split_into_calls() {
        for (requested, per_call, expected) in [
            (1, 10, vec![1]),
            (10, 10, vec![10]),
            (12, 5, vec![5, 5, 2]),
            (3, 1, vec![1, 1, 1]),
            (2, 0, vec![1, 1]),
        ] {
            let outcomes = expected.iter().map(|n| delivered(*n)).collect();
            let (completed, sizes) = run(requested, per_call, outcomes).await;
            assert!(completed.unwrap().failures.is_empty());
            assert_eq!(sizes, expected);
        }
    }

    #[tokio::test]
    async fn a_call_that_fails_while_others_deliver_is_listed_as_a_failure() {
        let outcomes = vec![delivered(1), Err(error(Unavailable)), delivered(1)];
        let (completed, _) = run(3, 1, outcomes).await;
        let failures = completed.unwrap().failures;
        let kinds: Vec<_> = failures.iter().map(|e| e.kind).collect();
        assert_eq!(kinds, [Unavailable]);
        let (completed, _) = run(7, 5, vec![delivered(5), Err(error(RateLimited))]).await;
        assert_eq!(completed.unwrap().failures.len(), 2);
    }

    #[tokio::test]
    async fn if_nothing_was_delivered_the_most_decisive_error_is_returned() {
        let fails = |kinds: &[UpstreamErrorKind]| {
            let outcomes = kinds.iter().map(|kind| Err(error(*kind)));
            outcomes.collect::<Vec<_>>()
        };
        for (kinds, expected) in [
            ([Unavailable, Moderated, RateLimited], Moderated),
            ([Unavailable, OutcomeUnknown, RateLimited], OutcomeUnknown),
            ([Unavailable, Unavailable, RateLimited], RateLimited),
        ] {
            let (completed, _) = run(3, 1, fails(&kinds)).await;
            assert_eq!(completed.unwrap_err().kind, expected);
        }
        let (completed, _) = run(1, 1, vec![delivered(0)]).await;
        assert_eq!(completed.unwrap_err().kind, Unavailable);
    }

    #[tokio::test]
    async fn after_a_rejected_key_no_further_call_is_started() {
        let (completed, sizes) = run(9, 1, vec![Err(error(KeyRejected)); 9]).await;
        assert_eq!(completed.unwrap_err().kind, KeyRejected);
        assert_eq!(sizes.len(), 1, "the first failed before the others started");
    }
}
