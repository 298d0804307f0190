//! Claims tasks: due tasks are leased in turns by user, and by key within a user, however long the backlog of one user is.
//!
//! The queue is read by its index of users and keys, one step per key: a backlog of 20,000 tasks costs as much as one task. A claim writes only rows
//! of the narrow table `queue` ([`super::queue_table`]). Users with the fewest tasks in work come first, then users are in the order of ids after the
//! user who was served last.

use std::collections::HashMap;

use async_trait::async_trait;
use tollgate_core::{Amount, Millis, TaskState};

use super::lease::NEXT_DUE_AT;
use super::queue_table::{QueueSql, QueueTable};
use super::record::{TASK_COLUMNS_COUNT, Task, read_task, task_columns};
use super::shards::FOREIGN_DELAY;
use crate::attempts::{QueuedAttempt, read_open_queued_attempts};
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::tail::recorder::TailEvent;
use crate::task_versions::TaskVersions;
use crate::writer::Write;
use crate::writer::batch::Batch;

/// Steps from key to key in one claim, including those to the next user; the next claim continues after them.
const MAX_STEPS: usize = 256;

/// The keys after a given one that have unfinished tasks, sorted, with the name of their user and when their next task is due. Before the keys of
/// each further user there is a row without a key. Each step is a search in an index.
macro_rules! queue_keys {
    ($collation:literal, $waiting:literal) => {
        concat!(
            "WITH RECURSIVE queue_keys (user_id, key_id, number) AS (
                 SELECT CAST($1 AS TEXT) COLLATE ",
            $collation,
            ", CAST($2 AS TEXT) COLLATE ",
            $collation,
            ", 0
                 UNION ALL
                 SELECT CASE WHEN EXISTS (SELECT 1 FROM ",
            $waiting,
            " AND t.user_id = queue_keys.user_id AND t.key_id > queue_keys.key_id)
                             THEN queue_keys.user_id
                             ELSE (SELECT MIN(t.user_id) FROM ",
            $waiting,
            " AND t.user_id > queue_keys.user_id) END,
                        COALESCE((SELECT MIN(t.key_id) FROM ",
            $waiting,
            " AND t.user_id = queue_keys.user_id AND t.key_id > queue_keys.key_id), ''),
                        number + 1
                 FROM queue_keys WHERE queue_keys.user_id IS NOT NULL AND number < $3
             )
             SELECT user_id, key_id, (SELECT name FROM users WHERE users.id = queue_keys.user_id),
                    (SELECT MIN(t.due_at) FROM ",
            $waiting,
            " AND t.user_id = queue_keys.user_id AND t.key_id = queue_keys.key_id)
             FROM queue_keys WHERE number > 0 AND user_id IS NOT NULL"
        )
    };
}

/// The due tasks of a key, those that have been due longest first: only tasks of this node's shards ($5), and tasks that were already due at $4.
/// PostgreSQL skips rows that another node is claiming. In `tasks` there are no shards.
macro_rules! due_tasks {
    ($lock:literal) => {
        concat!(
            "SELECT ",
            task_columns!(),
            ", t.job, q.fence, q.failed_attempts, t.request_id, q.queued_attempt, t.trace_context, t.trace_state
             FROM queue q JOIN tasks t ON t.id = q.task_id
             WHERE q.due_at IS NOT NULL AND q.user_id = $1 AND q.key_id = $2 AND q.due_at <= $3
               AND (q.due_at <= $4 OR (CAST($5 AS BIGINT) >> CAST(q.shard AS INTEGER)) & 1 = 1)
             ORDER BY q.due_at LIMIT $6",
            $lock
        )
    };
}

pub(crate) const QUEUE_KEYS: QueueSql = QueueSql {
    queue: Sql::per_database(
        queue_keys!("BINARY", "queue t WHERE t.due_at IS NOT NULL"),
        queue_keys!("\"C\"", "queue t WHERE t.due_at IS NOT NULL"),
    ),
    tasks: Sql::both(queue_keys!("\"C\"", "tasks t WHERE t.state < 2")),
};
pub(crate) const DUE_TASKS: Sql =
    Sql::per_database(due_tasks!(""), due_tasks!(" FOR UPDATE OF q SKIP LOCKED"));
const DUE_TASKS_IN_TASKS: Sql = Sql::both(concat!(
    "SELECT ",
    task_columns!(),
    ", t.job, t.fence, t.failed_attempts, t.request_id, t.queued_attempt, t.trace_context, t.trace_state
     FROM tasks t LEFT JOIN queue q ON q.task_id = t.id
     WHERE t.state < 2 AND t.user_id = $1 AND t.key_id = $2 AND t.due_at <= $3 ORDER BY t.due_at LIMIT $4
     FOR UPDATE OF t SKIP LOCKED"
));
// Not combined with the search in one statement, because of the found tasks the wide rows are read anyway.
pub(crate) const LEASE_TASK: QueueSql = QueueSql {
    queue: Sql::both(
        "UPDATE queue SET due_at = NULL, owner = $1, lease_until = $2, fence = $3, started_at = $4 WHERE task_id = $5",
    ),
    tasks: Sql::both(
        "UPDATE tasks SET owner = $1, due_at = $2, fence = $3, state = 1, started_at = $4 WHERE id = $5 AND state < 2",
    ),
};
/// How often a process that claims searches for the first lease to end: so often that it knows the end of every lease before it is reached.
const EXPIRY_CHECKS_PER_LEASE: Millis = 3;

// This reads each lease: there are only as many as tasks in work, and an index would have to be written by renewals.
pub(crate) const FIRST_LEASE_END: Sql =
    Sql::both("SELECT MIN(lease_until) FROM queue WHERE due_at IS NULL");
// If a lease has ended, any node may claim the task next. Its worker may still renew it or end the task until then.
pub(crate) const EXPIRE_LEASES: Sql = Sql::per_database(
    "UPDATE queue SET due_at = lease_until WHERE due_at IS NULL AND lease_until <= $1",
    "UPDATE queue SET due_at = lease_until WHERE task_id IN
     (SELECT task_id FROM queue WHERE due_at IS NULL AND lease_until <= $1 LIMIT 1000 FOR UPDATE SKIP LOCKED)",
);

/// A task that a worker has leased.
#[derive(Debug, Clone)]
pub struct LeasedTask {
    /// The task.
    pub task: Task,
    /// The normalised job, as JSON.
    pub job: String,
    /// The fencing token of the lease. Writes of the worker fail once a later lease has raised it.
    pub fence: i64,
    /// Attempts that have failed.
    pub failed_attempts: i64,
    /// The id of the submitting request, for logs.
    pub request_id: String,
    /// The `traceparent` of that request. `None` if it was in no sampled trace.
    pub trace_context: Option<String>,
    /// The `tracestate` beside it. `None` if the caller sent none.
    pub trace_state: Option<String>,
    /// Whether an attempt may be in a provider's queue.
    pub(crate) has_queued_attempt: bool,
    /// The attempt of an earlier lease that is still in a provider's queue: poll it instead of starting another.
    pub queued_attempt: Option<QueuedAttempt>,
}

/// A claim of due tasks.
#[derive(Debug, Clone, Default)]
pub struct TaskClaim {
    /// The owner of the leases.
    pub owner: String,
    /// How many tasks to lease.
    pub limit: usize,
    /// When the leases expire.
    pub until: Millis,
    /// The time of the claim, in Unix milliseconds.
    pub now: Millis,
    /// How the tasks are shared among users.
    pub share: FairShare,
}

/// How a claim shares its tasks among users.
#[derive(Debug, Clone, Default)]
pub struct FairShare {
    /// The user who was served last: [`ClaimedTasks::last_user`] of the previous claim.
    pub after_user: String,
    /// The number of the claim, which determines which of a user's keys comes first.
    pub turn: u64,
    /// How many of the `limit` tasks are reserved for users without tasks in work.
    pub reserve: usize,
    /// The most tasks in work of one user; `None` means no limit.
    pub max_per_user: Option<usize>,
    /// The tasks in work before this claim, by user id.
    pub in_work: HashMap<String, usize>,
    /// The weights of users, by name; 1 for all others. A user of weight 2 comes before another as long as it has less than twice as many tasks in
    /// work.
    pub weights: HashMap<String, u32>,
}

/// The result of a claim.
#[derive(Debug, Default)]
pub struct ClaimedTasks {
    /// The tasks.
    pub tasks: Vec<LeasedTask>,
    /// The user who was served or checked last: the next claim continues there.
    pub last_user: String,
    /// Whether another claim with free capacity may find more tasks: the limit was reached, or not all keys were checked.
    pub may_be_more: bool,
    /// Whether there may be due tasks of users who have the maximum in work: they wait until one of these ends.
    pub is_held_back: bool,
}

/// Claims.
impl Store {
    /// Leases due tasks, in turns by user and key.
    pub async fn claim_in_turns(&self, claim: TaskClaim) -> Result<ClaimedTasks, StoreError> {
        self.write(claim).await
    }

    /// [`Store::claim_in_turns`] for a worker without other tasks in work.
    pub async fn claim_tasks(
        &self,
        owner: &str,
        limit: usize,
        until: Millis,
        now: Millis,
    ) -> Result<Vec<LeasedTask>, StoreError> {
        let claim = TaskClaim {
            owner: owner.to_owned(),
            limit,
            until,
            now,
            share: FairShare::default(),
        };
        Ok(self.claim_in_turns(claim).await?.tasks)
    }
}

/// A user with due tasks, while a claim is shared out.
struct Candidate {
    user_id: String,
    weight: u64,
    /// Keys that may have more due tasks; the next one to be served first.
    keys: Vec<String>,
    in_work: usize,
}

impl Candidate {
    /// Whether this user comes before another one whose id sorts earlier.
    fn has_less_than(&self, other: &Self) -> bool {
        let (own, others) = (self.in_work as u64, other.in_work as u64);
        own * other.weight < others * self.weight
    }
}

/// If a claim is committed but its reply is lost, its tasks are leased to nobody; they are due again when the lease expires.
#[async_trait(?Send)]
impl Write for TaskClaim {
    type Out = ClaimedTasks;

    fn note_changed_tasks(&self, claimed: &ClaimedTasks, versions: &TaskVersions) {
        let tasks = claimed.tasks.iter();
        tasks.for_each(|leased| versions.raise(&leased.task.id));
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<ClaimedTasks, DbError> {
        let mut claimed = ClaimedTasks {
            last_user: self.share.after_user.clone(),
            ..ClaimedTasks::default()
        };
        self.expire_leases(batch).await?;
        let next = batch.first(batch.on_queue(&NEXT_DUE_AT), &[]).await?;
        let next = next.map_or(Ok(None), |row| row.opt_int(0))?;
        if next.is_none_or(|due_at| due_at > self.now) {
            return Ok(claimed);
        }
        let (mut candidates, is_complete) = self.candidates(batch, &mut claimed).await?;
        while claimed.tasks.len() < self.limit && !candidates.is_empty() {
            let shares = self.share_out(&mut candidates, self.limit - claimed.tasks.len());
            if shares.is_empty() {
                claimed.is_held_back = true;
                break;
            }
            for (at, count) in shares {
                self.lease_of_user(batch, &mut candidates[at], count, &mut claimed)
                    .await?;
            }
            candidates.retain(|candidate| !candidate.keys.is_empty());
        }
        claimed.may_be_more = claimed.tasks.len() == self.limit || !is_complete;
        read_queued_attempts(batch, &mut claimed.tasks).await?;
        Ok(claimed)
    }
}

impl TaskClaim {
    /// Makes tasks due whose lease has ended, because their worker is gone. In `tasks` the end of a lease is the time when the task is due.
    async fn expire_leases(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        let state = batch.queue_state;
        let interval = (self.until - self.now) / EXPIRY_CHECKS_PER_LEASE;
        if batch.queue_table == QueueTable::Tasks || !state.is_expiry_check_due(self.now, interval)
        {
            return Ok(());
        }
        let first_end = batch.first(&FIRST_LEASE_END, &[]).await?;
        let mut first_end = first_end.map_or(Ok(None), |row| row.opt_int(0))?;
        if first_end.is_some_and(|end| end <= self.now) {
            batch.execute(&EXPIRE_LEASES, args![self.now]).await?;
            let left = batch.first(&FIRST_LEASE_END, &[]).await?;
            first_end = left.map_or(Ok(None), |row| row.opt_int(0))?;
        }
        state.note_expiry_check(self.now + interval, first_end);
        Ok(())
    }

    /// The users with due tasks, in the order of ids after the user who was served last, and whether all keys were checked.
    async fn candidates(
        &self,
        batch: &mut Batch<'_, '_>,
        claimed: &mut ClaimedTasks,
    ) -> Result<(Vec<Candidate>, bool), DbError> {
        let after = self.share.after_user.as_str();
        let max = MAX_STEPS as i64;
        // No id is as large as the last character, so the user's other keys are skipped.
        let args = args![after, "\u{10ffff}", max];
        let mut rows = batch.query(batch.on_queue(&QUEUE_KEYS), args).await?;
        let mut is_complete = false;
        if rows.len() < MAX_STEPS {
            let left = max - rows.len() as i64;
            let first = batch
                .query(batch.on_queue(&QUEUE_KEYS), args!["", "", left])
                .await?;
            is_complete = first.len() < MAX_STEPS - rows.len();
            rows.extend(first);
        }
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for mut row in rows {
            let (user_id, key_id) = (row.text(0)?, row.text(1)?);
            let name = row.opt_text(2)?;
            let is_due = row.opt_int(3)?.is_some_and(|due_at| due_at <= self.now);
            claimed.last_user.clone_from(&user_id);
            if key_id.is_empty() {
                continue;
            }
            // The second search ends where the first began.
            if !seen.insert(key_id.clone()) {
                is_complete = true;
                break;
            }
            if !is_due {
                continue;
            }
            match candidates.last_mut() {
                Some(candidate) if candidate.user_id == user_id => candidate.keys.push(key_id),
                _ => {
                    let weight = name.and_then(|name| self.share.weights.get(&name).copied());
                    candidates.push(Candidate {
                        weight: u64::from(weight.unwrap_or(1).max(1)),
                        keys: vec![key_id],
                        in_work: self.share.in_work.get(&user_id).copied().unwrap_or(0),
                        user_id,
                    });
                }
            }
        }
        for candidate in &mut candidates {
            // Spread over the keys, whatever regularity the numbers of claims have.
            let spread = self.share.turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            let first = spread % candidate.keys.len() as u64;
            candidate
                .keys
                .rotate_left(usize::try_from(first).unwrap_or(0));
        }
        Ok((candidates, is_complete))
    }

    /// Distributes `count` tasks, one after another to the user with the fewest in work; returns how many each gets, by index.
    fn share_out(&self, candidates: &mut [Candidate], count: usize) -> Vec<(usize, usize)> {
        let max = self.share.max_per_user.unwrap_or(usize::MAX);
        let mut shares = vec![0; candidates.len()];
        for left in (1..=count).rev() {
            let mut best: Option<usize> = None;
            for (at, candidate) in candidates.iter().enumerate() {
                let may_take = candidate.in_work == 0 || left > self.share.reserve;
                if may_take
                    && candidate.in_work < max
                    && best.is_none_or(|best| candidate.has_less_than(&candidates[best]))
                {
                    best = Some(at);
                }
            }
            let Some(best) = best else { break };
            candidates[best].in_work += 1;
            shares[best] += 1;
        }
        let shares = shares.into_iter().enumerate();
        shares.filter(|(_, count)| *count > 0).collect()
    }

    /// Leases `count` tasks of a user, in turns by key; keys without further due tasks are removed.
    async fn lease_of_user(
        &self,
        batch: &mut Batch<'_, '_>,
        candidate: &mut Candidate,
        count: usize,
        claimed: &mut ClaimedTasks,
    ) -> Result<(), DbError> {
        let keys = std::mem::take(&mut candidate.keys);
        let (each, more) = (count / keys.len(), count % keys.len());
        let mut leased = 0;
        for (at, key_id) in keys.into_iter().enumerate() {
            let wanted = each + usize::from(at < more);
            if wanted == 0 {
                candidate.keys.push(key_id);
                continue;
            }
            let rows = self
                .due_tasks(batch, &candidate.user_id, &key_id, wanted as i64)
                .await?;
            leased += rows.len();
            if rows.len() == wanted {
                candidate.keys.push(key_id);
            }
            for row in rows {
                claimed.tasks.push(self.lease(batch, row)?);
            }
        }
        candidate.in_work -= count - leased;
        claimed.last_user.clone_from(&candidate.user_id);
        Ok(())
    }

    /// Locks up to `wanted` due tasks of a key that this node may claim now.
    async fn due_tasks(
        &self,
        batch: &mut Batch<'_, '_>,
        user_id: &str,
        key_id: &str,
        wanted: i64,
    ) -> Result<Vec<Row>, DbError> {
        if batch.queue_table == QueueTable::Tasks {
            let args = args![user_id, key_id, self.now, wanted];
            return batch.query(&DUE_TASKS_IN_TASKS, args).await;
        }
        let foreign_until = self.now - FOREIGN_DELAY;
        let own_shards = batch.queue_state.own_shards().bits().cast_signed();
        let args = args![user_id, key_id, self.now, foreign_until, own_shards, wanted];
        batch.query(&DUE_TASKS, args).await
    }

    fn lease(&self, batch: &mut Batch<'_, '_>, mut row: Row) -> Result<LeasedTask, DbError> {
        let has_queued_attempt = row.opt_int(TASK_COLUMNS_COUNT + 4)?.is_some();
        let mut leased = LeasedTask {
            job: row.text(TASK_COLUMNS_COUNT)?,
            fence: row.int(TASK_COLUMNS_COUNT + 1)? + 1,
            failed_attempts: row.int(TASK_COLUMNS_COUNT + 2)?,
            request_id: row.text(TASK_COLUMNS_COUNT + 3)?,
            trace_context: row.opt_text(TASK_COLUMNS_COUNT + 5)?,
            trace_state: row.opt_text(TASK_COLUMNS_COUNT + 6)?,
            has_queued_attempt,
            queued_attempt: None,
            task: read_task(&mut row)?,
        };
        let started_at = leased.task.started_at.unwrap_or(self.now);
        leased.task.state = TaskState::InProgress;
        leased.task.started_at = Some(started_at);
        let args = args![
            &self.owner,
            self.until,
            leased.fence,
            started_at,
            &leased.task.id
        ];
        batch.queue_one(batch.on_queue(&LEASE_TASK), args)?;
        batch.queue_state.note_lease(self.until);
        let task = &leased.task;
        batch.tail.add(&TailEvent {
            kind: "task",
            id: &task.id,
            state: task.state.name(),
            model: &task.model,
            user_id: &task.user_id,
            key_id: &task.key_id,
            channel: None,
            cost: Amount::ZERO,
            at: self.now,
        });
        Ok(leased)
    }
}

/// Reads the attempts that are open in providers' queues. Most tasks have none, and need no second query.
async fn read_queued_attempts(
    batch: &mut Batch<'_, '_>,
    claimed: &mut [LeasedTask],
) -> Result<(), DbError> {
    let queued = claimed.iter().filter(|leased| leased.has_queued_attempt);
    let queued: Vec<String> = queued.map(|leased| leased.task.id.clone()).collect();
    if queued.is_empty() {
        return Ok(());
    }
    let mut open = read_open_queued_attempts(batch, &queued).await?;
    for leased in claimed {
        leased.queued_attempt = open.remove(&leased.task.id);
    }
    Ok(())
}

/// The state numbers are literals in the statements above.
const _: () = assert!(TaskState::InProgress as i64 == 1 && TaskState::Completed as i64 == 2);
