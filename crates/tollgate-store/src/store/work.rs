//! Tasks, as workers see them.

use tollgate_core::Millis;

use super::Store;
use crate::db::args;
use crate::error::StoreError;
use crate::model::{
    Accepted, AttemptBegun, AttemptStart, Delivered, End, Ended, Finish, Leased, OpenAttempt, Retry,
};
use crate::ops::{attempt, end, lease, purge, read};

/// Tasks, as workers see them.
impl Store {
    /// Leases up to `limit` due tasks to `owner` until `until`, the longest due first.
    pub async fn claim(
        &self,
        owner: &str,
        limit: usize,
        until: Millis,
        now: Millis,
    ) -> Result<Vec<Leased>, StoreError> {
        let claim = lease::Claim {
            owner: owner.to_owned(),
            limit: limit as i64,
            until,
            now,
        };
        self.write(claim).await
    }

    /// Keeps leases until `until`; answers the task ids that are lost.
    pub async fn keep(
        &self,
        owner: &str,
        leases: Vec<(String, i64)>,
        until: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let keep = lease::Keep {
            owner: owner.to_owned(),
            leases,
            until,
        };
        self.write(keep).await
    }

    /// Says how far a task is, 0 to 100.
    pub async fn progress(&self, task_id: &str, fence: i64, percent: u8) -> Result<(), StoreError> {
        let progress = lease::Progress {
            task_id: task_id.to_owned(),
            fence,
            percent: percent.min(100),
        };
        self.write(progress).await
    }

    /// Puts a leased task back until `due_at`: no channel has room for it now, or its provider is still at work on it. An
    /// open attempt stays open.
    pub async fn postpone(
        &self,
        task_id: &str,
        fence: i64,
        due_at: Millis,
    ) -> Result<(), StoreError> {
        let postpone = lease::Postpone {
            task_id: task_id.to_owned(),
            fence,
            due_at,
        };
        self.write(postpone).await
    }

    /// Gives back the tasks that `owner` has leased, or (none: a single node's start) those that anybody has, and the
    /// callbacks too; answers how many tasks.
    pub async fn hand_back(&self, owner: Option<&str>, now: Millis) -> Result<u64, StoreError> {
        let hand_back = lease::HandBack {
            owner: owner.map(str::to_owned),
            now,
        };
        self.write(hand_back).await
    }

    /// Writes an attempt down before its provider is called. Repeated with the same arguments it answers the same number.
    pub async fn begin_attempt(&self, attempt: AttemptStart) -> Result<AttemptBegun, StoreError> {
        self.write(attempt::BeginAttempt(attempt)).await
    }

    /// Writes down that the provider has an attempt in its queue, under which ticket; a later ticket takes the place of
    /// an earlier one. Answers false when the lease is lost or the attempt has ended: then nobody but the caller knows
    /// of the ticket.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where the ticket is empty or longer than [`Accepted::TICKET_MAX`].
    pub async fn accepted(&self, accepted: Accepted) -> Result<bool, StoreError> {
        let size = accepted.ticket.len();
        if size == 0 || size > Accepted::TICKET_MAX {
            return Err(StoreError::Invalid(format!(
                "the provider's ticket for task {} has {size} bytes, expected 1 to {}",
                accepted.task_id,
                Accepted::TICKET_MAX
            )));
        }
        self.write(attempt::AcceptAttempt(accepted)).await
    }

    /// The last attempt at a task that a provider took into its queue, open or ended: what to cancel there when the task has
    /// ended here.
    pub async fn last_attempt(&self, task_id: &str) -> Result<Option<OpenAttempt>, StoreError> {
        self.first(&attempt::LAST_QUEUED, args![task_id], attempt::open_attempt)
            .await
    }

    /// The channels whose attempts at a task failed, in the order in which they were tried.
    pub async fn failed_channels(&self, task_id: &str) -> Result<Vec<String>, StoreError> {
        let mut rows = self.query(&read::FAILED_CHANNELS, args![task_id]).await?;
        Ok(rows
            .iter_mut()
            .map(|row| row.text(0))
            .collect::<Result<_, _>>()?)
    }

    /// Ends a failed attempt and puts the task back; answers false when the lease is lost.
    pub async fn try_again(&self, retry: Retry) -> Result<bool, StoreError> {
        self.write(attempt::TryAgain(retry)).await
    }

    /// Ends a task: state, result, settlement and release in one transaction.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where it is completed with nothing delivered.
    pub async fn finish(&self, finish: Finish) -> Result<Ended, StoreError> {
        let nothing = Delivered::Units(0);
        if matches!(finish.end, End::Completed { delivered, .. } if delivered == nothing) {
            return Err(StoreError::Invalid(format!(
                "task {} cannot be completed with nothing delivered",
                finish.task_id
            )));
        }
        self.write(end::FinishTask(finish)).await
    }

    /// When the next task is due, leases included; none when there is no unfinished task.
    pub async fn next_due(&self) -> Result<Option<Millis>, StoreError> {
        let rows = self.query(&read::NEXT_DUE, &[]).await?;
        Ok(rows
            .first()
            .map(|row| row.opt_int(0))
            .transpose()?
            .flatten())
    }

    /// Forgets some tasks that ended until `ended_until` and their callbacks, and idempotency keys of more than a day; answers
    /// how many rows went. Call it until that is 0.
    pub async fn purge(&self, ended_until: Millis, now: Millis) -> Result<u64, StoreError> {
        self.write(purge::Purge { ended_until, now }).await
    }
}
