//! Limits how many tasks and webhooks of one user may wait: a further submission is rejected with 429.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::time::Instant;
use tollgate_config::Fairness;
use tollgate_core::{ApiError, ErrorKind};
use tollgate_store::{Store, StoreError};

use crate::http::errors;

/// How old a count may be once it has reached its limit; after that the store is read again.
const RECOUNT_AFTER: Duration = Duration::from_secs(1);
/// How old a count may be if other nodes accept submissions too.
const MAX_AGE: Duration = Duration::from_secs(10);
/// Users whose counts are remembered.
const MAX_USERS: usize = 10_000;
/// The `retry-after` for the client, in seconds.
const RETRY_AFTER_S: u32 = 5;

/// Counts the waiting tasks and webhooks of each user. Submissions are added, ends are not subtracted: a count includes all submissions of this
/// process, and is read again when it has reached the limit.
pub struct Backlog {
    limits: [u32; 2],
    counts: Mutex<HashMap<String, [Count; 2], RandomState>>,
}

/// What is counted.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Tasks = 0,
    Webhooks = 1,
}

#[derive(Clone, Copy, Default)]
struct Count {
    /// The number that was read, plus the submissions since.
    known: u32,
    /// `None` if the count has not been read.
    read_at: Option<Instant>,
}

impl Backlog {
    /// A backlog with the configured limits.
    pub fn new(fairness: &Fairness) -> Self {
        Self {
            limits: [fairness.unfinished_tasks, fairness.waiting_webhooks],
            counts: Mutex::default(),
        }
    }

    /// Counts a submission of the user.
    ///
    /// # Errors
    /// 429 that names the limit if the user has reached it; 503 if the counts cannot be read.
    pub async fn add_submission(
        &self,
        store: &Store,
        user_id: &str,
        has_webhook: bool,
    ) -> Result<(), ApiError> {
        self.add(store, user_id, Kind::Tasks).await?;
        if !has_webhook {
            return Ok(());
        }
        let added = self.add(store, user_id, Kind::Webhooks).await;
        if added.is_err()
            && let Some(counts) = self.lock().get_mut(user_id)
        {
            // The submission is rejected, so it is no task.
            let tasks = &mut counts[Kind::Tasks as usize];
            tasks.known = tasks.known.saturating_sub(1);
        }
        added
    }

    async fn add(&self, store: &Store, user_id: &str, kind: Kind) -> Result<(), ApiError> {
        let limit = self.limits[kind as usize];
        if let Some(counts) = self.lock().get_mut(user_id) {
            let count = &mut counts[kind as usize];
            if !count.is_stale(limit, store.is_shared()) {
                return count.add_one(limit, kind);
            }
        }
        let known = count_unfinished(store, user_id, kind, limit).await;
        let known = known.map_err(errors::from_store)?;
        let mut counts = self.lock();
        if counts.len() >= MAX_USERS && !counts.contains_key(user_id) {
            counts.clear();
        }
        let count = &mut counts.entry(user_id.to_owned()).or_default()[kind as usize];
        *count = Count {
            known,
            read_at: Some(Instant::now()),
        };
        count.add_one(limit, kind)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, [Count; 2], RandomState>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Count {
    fn is_stale(&self, limit: u32, is_shared: bool) -> bool {
        let Some(age) = self.read_at.map(|at| at.elapsed()) else {
            return true;
        };
        (self.known >= limit && age >= RECOUNT_AFTER) || (is_shared && age >= MAX_AGE)
    }

    fn add_one(&mut self, limit: u32, kind: Kind) -> Result<(), ApiError> {
        if self.known < limit {
            self.known += 1;
            return Ok(());
        }
        let what = match kind {
            Kind::Tasks => "unfinished tasks: wait for some to end",
            Kind::Webhooks => {
                "webhooks that wait to be delivered: wait, or submit without `callback_url`"
            }
        };
        let message = format!("this account, with all its API keys, may have {limit} {what}");
        Err(ApiError {
            retry_after: Some(RETRY_AFTER_S),
            ..ApiError::new(ErrorKind::RateLimit, message)
        })
    }
}

async fn count_unfinished(
    store: &Store,
    user_id: &str,
    kind: Kind,
    limit: u32,
) -> Result<u32, StoreError> {
    match kind {
        Kind::Tasks => store.unfinished_tasks(user_id, limit).await,
        Kind::Webhooks => store.waiting_webhooks(user_id, limit).await,
    }
}
