//! More results than a provider makes in one call.

use std::sync::OnceLock;

use futures_util::StreamExt as _;
use futures_util::stream;

use tokio_util::sync::CancellationToken;

use super::most_telling;
use super::results::Came;
use crate::provider::{Done, ProviderError, ProviderErrorKind};

/// How many calls of one attempt run at the same time.
const AT_ONCE: usize = 4;

/// Asks for `asked` results by calls for up to `per_call` each, several at a time; `call` is told for how many. Results that
/// are missing while others came are refused ones; where none came, the most telling error is the whole's.
pub(crate) async fn in_calls<C>(
    asked: u32,
    per_call: u32,
    call: impl Fn(u32) -> C,
) -> Result<Done, ProviderError>
where
    C: Future<Output = Result<Came, ProviderError>>,
{
    let per_call = per_call.max(1);
    let whole = std::iter::repeat_n(per_call, (asked / per_call) as usize);
    let sizes = whole.chain(Some(asked % per_call).filter(|rest| *rest > 0));
    let hopeless = OnceLock::new();
    let calls = sizes.map(|size| {
        let (call, hopeless) = (&call, &hopeless);
        async move {
            if let Some(error) = hopeless.get() {
                return (size, Err(ProviderError::clone(error)));
            }
            let came = call(size).await;
            if let Err(error) = &came
                && dooms_others(error.kind)
            {
                // Only the first of them is kept.
                let _ = hopeless.set(error.clone());
            }
            (size, came)
        }
    });
    let ends: Vec<_> = stream::iter(calls)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    settle(ends)
}

fn settle(ends: Vec<(u32, Result<Came, ProviderError>)>) -> Result<Done, ProviderError> {
    let mut delivered = 0;
    let mut refused = Vec::new();
    for (size, end) in ends {
        match end {
            Ok(came) => {
                delivered += came.delivered;
                refused.extend(came.refused);
            }
            Err(error) if error.kind == ProviderErrorKind::Interrupted => return Err(error),
            Err(error) => refused.extend(std::iter::repeat_n(error, size as usize)),
        }
    }
    if delivered > 0 {
        return Ok(Done { refused });
    }
    Err(most_telling(refused).unwrap_or_else(|| {
        ProviderError::new(
            ProviderErrorKind::Retryable,
            "the upstream's answer holds no result",
        )
    }))
}

/// Runs `work` until the attempt is told to stop.
pub(crate) async fn unless_stopped<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(ProviderError::new(
            ProviderErrorKind::Interrupted,
            "the work was told to stop",
        )),
        done = work => done,
    }
}

/// Whether calls that have not begun would end the same way.
fn dooms_others(kind: ProviderErrorKind) -> bool {
    use ProviderErrorKind::{
        ChannelUnfit, Interrupted, KeyRefused, ModelMissing, QuotaExhausted, Rejected,
    };
    matches!(
        kind,
        ChannelUnfit | Interrupted | KeyRefused | ModelMissing | QuotaExhausted | Rejected
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use ProviderErrorKind::{KeyRefused, Moderated, RateLimited, Retryable, Unknown};

    fn error(kind: ProviderErrorKind) -> ProviderError {
        ProviderError::new(kind, "because")
    }

    /// Calls that end one after the other as told, in the order in which they begin.
    async fn run(
        asked: u32,
        per_call: u32,
        ends: Vec<Result<Came, ProviderError>>,
    ) -> (Result<Done, ProviderError>, Vec<u32>) {
        let ends = Mutex::new(ends.into_iter());
        let sizes = Mutex::new(Vec::new());
        let done = in_calls(asked, per_call, |size| {
            sizes.lock().unwrap().push(size);
            let end = ends.lock().unwrap().next().unwrap();
            async move { end }
        })
        .await;
        (done, sizes.into_inner().unwrap())
    }

    fn came(delivered: u32) -> Result<Came, ProviderError> {
        let refused = Vec::new();
        Ok(Came { delivered, refused })
    }

    #[tokio::test]
    async fn n_is_split_into_calls() {
        for (asked, per_call, expected) in [
            (1, 10, vec![1]),
            (10, 10, vec![10]),
            (12, 5, vec![5, 5, 2]),
            (3, 1, vec![1, 1, 1]),
            (2, 0, vec![1, 1]),
        ] {
            let ends = expected.iter().map(|n| came(*n)).collect();
            let (done, sizes) = run(asked, per_call, ends).await;
            assert!(done.unwrap().refused.is_empty());
            assert_eq!(sizes, expected);
        }
    }

    #[tokio::test]
    async fn what_fails_while_others_succeed_is_refused() {
        let (done, _) = run(3, 1, vec![came(1), Err(error(Retryable)), came(1)]).await;
        let kinds: Vec<_> = done.unwrap().refused.iter().map(|e| e.kind).collect();
        assert_eq!(kinds, [Retryable]);
        let (done, _) = run(7, 5, vec![came(5), Err(error(RateLimited))]).await;
        assert_eq!(done.unwrap().refused.len(), 2);
    }

    #[tokio::test]
    async fn where_nothing_came_the_most_telling_error_counts() {
        let fails = |kinds: &[ProviderErrorKind]| {
            let ends = kinds.iter().map(|kind| Err(error(*kind)));
            ends.collect::<Vec<_>>()
        };
        for (kinds, expected) in [
            ([Retryable, Moderated, RateLimited], Moderated),
            ([Retryable, Unknown, RateLimited], Unknown),
            ([Retryable, RateLimited, Retryable], RateLimited),
        ] {
            let (done, _) = run(3, 1, fails(&kinds)).await;
            assert_eq!(done.unwrap_err().kind, expected);
        }
        let (done, _) = run(1, 1, vec![came(0)]).await;
        assert!(done.is_err());
    }

    #[tokio::test]
    async fn a_refused_key_is_not_asked_again() {
        let (done, sizes) = run(9, 1, vec![Err(error(KeyRefused)); 9]).await;
        assert_eq!(done.unwrap_err().kind, KeyRefused);
        assert_eq!(sizes.len(), 1, "the first was over before the others began");
    }
}
