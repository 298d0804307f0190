//! Work that takes several calls: submitted side by side, followed as one.

use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use crate::provider::{
    Delivery, Link, Polled, ProviderError, ProviderErrorKind, QueueCall, Started,
};
use crate::wire::{hand_over, most_telling, unpolled};

/// How many submissions are under way at the same time.
const SIDE_BY_SIDE: usize = 4;

/// What a provider says of one of its tasks.
pub(super) enum Task {
    /// Not yet.
    Open,
    /// Its results, or why one of them is missing.
    Done(Vec<Result<Link, ProviderError>>),
    /// It ended without a result.
    Failed(ProviderError),
}

/// Makes `calls`, each of which gives a ticket, and makes them one ticket: a list with the tickets of what was accepted
/// and the reasons of what was not.
pub(super) async fn submit_all<F>(
    calls: impl IntoIterator<Item = F>,
) -> Result<Started, ProviderError>
where
    F: Future<Output = Result<String, ProviderError>> + Send,
{
    let calls: Vec<F> = calls.into_iter().collect();
    let started: Vec<_> = stream::iter(calls).buffered(SIDE_BY_SIDE).collect().await;
    if started.iter().all(Result::is_err) {
        let errors = started.into_iter().filter_map(Result::err).collect();
        return Err(most_telling(errors).unwrap_or_else(|| {
            ProviderError::new(ProviderErrorKind::Rejected, "nothing was asked for")
        }));
    }
    let entries = started.into_iter().map(|one| match one {
        Ok(ticket) => Value::from(ticket),
        Err(error) => {
            let is_moderated = error.kind == ProviderErrorKind::Moderated;
            json!({ "refused": error.message, "moderated": is_moderated })
        }
    });
    Ok(Started::Accepted(entries.collect::<Value>().to_string()))
}

/// The tickets within a ticket, and the reasons of what was refused at once.
pub(super) fn tickets(ticket: &str) -> Vec<Result<String, ProviderError>> {
    let entries: Vec<Value> = serde_json::from_str(ticket).unwrap_or_default();
    let read = |entry: Value| match entry {
        Value::String(ticket) => Ok(ticket),
        other => {
            let kind = match other["moderated"].as_bool() {
                Some(true) => ProviderErrorKind::Moderated,
                _ => ProviderErrorKind::Failed,
            };
            Err(ProviderError::new(
                kind,
                other["refused"].as_str().unwrap_or_default(),
            ))
        }
    };
    entries.into_iter().map(read).collect()
}

/// Asks for all tasks of a ticket, in order, until one is not finished; once all are, delivers their results.
pub(super) async fn poll_all<F>(
    call: &QueueCall<'_>,
    ask: impl Fn(String) -> F,
) -> Result<Polled, ProviderError>
where
    F: Future<Output = Result<Task, ProviderError>> + Send,
{
    let delivery: &dyn Delivery = call.delivery;
    let tickets = tickets(call.ticket);
    let all = tickets.len();
    let mut results = Vec::new();
    for (done, ticket) in tickets.into_iter().enumerate() {
        let task = match ticket {
            Ok(ticket) => ask(ticket).await,
            Err(refused) => Ok(Task::Failed(refused)),
        };
        match task {
            Ok(Task::Open) => {
                // Of several tasks some may be finished; of a single one nothing is known.
                let percent = u8::try_from(100 * done / all).ok();
                return Ok(Polled::Waiting(percent.filter(|percent| *percent > 0)));
            }
            Ok(Task::Done(links)) => results.extend(links),
            Ok(Task::Failed(error)) => results.push(Err(error)),
            Err(error) => match unpolled(error)? {
                Polled::Failed(error) => results.push(Err(error)),
                other => return Ok(other),
            },
        }
    }
    hand_over(delivery, results).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ProviderErrorKind) -> Result<String, ProviderError> {
        Err(ProviderError::new(kind, "in words"))
    }

    #[tokio::test]
    async fn what_was_accepted_is_followed_and_the_rest_remembered() {
        let calls = [
            Ok("t-1".to_owned()),
            error(ProviderErrorKind::Moderated),
            error(ProviderErrorKind::RateLimited),
            Ok("t-2".to_owned()),
        ];
        let started = submit_all(calls.map(std::future::ready)).await.unwrap();
        let Started::Accepted(ticket) = started else {
            panic!("it was not accepted");
        };
        let read: Vec<_> = tickets(&ticket)
            .into_iter()
            .map(|one| one.map_err(|e| (e.kind, e.message)))
            .collect();
        let words = "in words".to_owned();
        let expected = [
            Ok("t-1".to_owned()),
            Err((ProviderErrorKind::Moderated, words.clone())),
            Err((ProviderErrorKind::Failed, words)),
            Ok("t-2".to_owned()),
        ];
        assert_eq!(read, expected);
    }

    #[tokio::test]
    async fn where_nothing_was_accepted_the_most_telling_error_is_told() {
        use ProviderErrorKind::{RateLimited, Retryable, Unknown};
        let calls = [error(Retryable), error(Unknown), error(RateLimited)];
        let failed = submit_all(calls.map(std::future::ready)).await;
        assert_eq!(failed.unwrap_err().kind, Unknown);
    }
}
