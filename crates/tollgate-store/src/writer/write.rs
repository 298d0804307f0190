//! A write operation, and the form in which it waits to be executed in a batch.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::batch::Batch;
use crate::db::DbError;
use crate::error::StoreError;
use crate::task_versions::TaskVersions;

/// One write operation. It is applied again if its batch failed, so it keeps its arguments.
#[async_trait(?Send)]
pub(crate) trait Write: Send + 'static {
    /// Its result.
    type Out: Send + 'static;

    /// The user and key whose money it moves or whose row it changes: their rows are read and locked before it is applied.
    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::default()
    }

    /// Whether it makes no other change to users and keys than moving their money.
    fn only_moves_money(&self) -> bool {
        false
    }

    /// Applies it within a batch. If this returns a rejection, it has written nothing.
    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Self::Out, DbError>;

    /// Called after the commit: updates state in memory according to what was written.
    fn committed(&self, _out: &Self::Out) {}

    /// Called if it failed: updates state in memory. It may have been committed nevertheless.
    fn failed(&self) {}

    /// Raises the versions of the tasks whose records it changed, after the commit.
    fn note_changed_tasks(&self, _out: &Self::Out, _versions: &TaskVersions) {}
}

/// The rows of `users` and `keys` that a write needs.
#[derive(Default)]
pub(crate) struct AccountIds<'a> {
    pub(super) user: Option<&'a str>,
    pub(super) key: Option<&'a str>,
}

impl<'a> AccountIds<'a> {
    pub(crate) fn both(user_id: &'a str, key_id: &'a str) -> Self {
        Self {
            user: Some(user_id),
            key: Some(key_id),
        }
    }

    pub(crate) fn user(id: &'a str) -> Self {
        Self {
            user: Some(id),
            key: None,
        }
    }

    pub(crate) fn key(id: &'a str) -> Self {
        Self {
            user: None,
            key: Some(id),
        }
    }
}

/// A queued [`Write`] with the channel for its result, without the type of the result.
#[async_trait(?Send)]
pub(super) trait Job: Send {
    fn accounts(&self) -> AccountIds<'_>;
    fn only_moves_money(&self) -> bool;
    /// How long its caller has waited.
    fn waited(&self) -> Duration;
    async fn apply(&mut self, batch: &mut Batch<'_, '_>) -> Result<(), DbError>;
    fn reply(self: Box<Self>, committed: Result<(), StoreError>, versions: &TaskVersions);
}

/// A write that waits in the queue or in a batch.
pub(super) struct Pending<W: Write> {
    write: W,
    since: Instant,
    out: Option<W::Out>,
    reply: oneshot::Sender<Result<W::Out, StoreError>>,
}

impl<W: Write> Pending<W> {
    pub(super) fn new(write: W, reply: oneshot::Sender<Result<W::Out, StoreError>>) -> Self {
        Self {
            write,
            since: Instant::now(),
            out: None,
            reply,
        }
    }
}

#[async_trait(?Send)]
impl<W: Write> Job for Pending<W> {
    fn accounts(&self) -> AccountIds<'_> {
        self.write.accounts()
    }

    fn only_moves_money(&self) -> bool {
        self.write.only_moves_money()
    }

    fn waited(&self) -> Duration {
        self.since.elapsed()
    }

    async fn apply(&mut self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        self.out = Some(self.write.apply(batch).await?);
        Ok(())
    }

    fn reply(self: Box<Self>, committed: Result<(), StoreError>, versions: &TaskVersions) {
        let Pending {
            write, out, reply, ..
        } = *self;
        match (&committed, &out) {
            (Ok(()), Some(out)) => {
                write.committed(out);
                write.note_changed_tasks(out, versions);
            }
            _ => {
                write.failed();
                versions.raise_all();
            }
        }
        let missing = || StoreError::Broken("a committed write has no result".to_owned());
        // An error means that the caller has stopped waiting. The write is committed nevertheless.
        let _ = reply.send(committed.and_then(|()| out.ok_or_else(missing)));
    }
}
