//! Tasks in the admin API: list, show, cancel, send the webhook again.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::{Amount, Millis, TaskState, id};

use super::entries::Entry;
use super::json::{amount_json, time_json};
use super::request::AdminRequest;
use super::write::{AdminChange, AdminRejection, AdminReply, AdminResult, Applied, Change};
use crate::db::{DbError, Row, Sql, args};
use crate::db::{list_arg, one_of};
use crate::error::StoreError;
use crate::list_blocks::List;
use crate::list_blocks::search::{RowQuery, Search};
use crate::replica::{Source, TASK_WRITE_TIME};
use crate::store::Store;
use crate::task_versions::TaskVersions;
use crate::tasks::finish::{CancelOutcome, EndByForce};
use crate::tasks::record::Task;
use crate::webhooks::WebhookState;
use crate::writer::batch::Batch;
use crate::writer::{AccountIds, Write as _};

/// Selects tasks with the channel and the provider job id of their last attempt.
macro_rules! select_tasks {
    () => {
        "SELECT t.id, t.kind, t.model, CASE WHEN q.started_at IS NULL THEN t.state ELSE 1 END, t.user_id, t.key_id, a.channel, a.ticket, t.error_code, c.held, t.cost, t.refunded, \
                t.created_at, COALESCE(q.started_at, t.started_at), t.ended_at \
         FROM tasks t JOIN charges c ON c.id = t.id LEFT JOIN queue q ON q.task_id = t.id \
         LEFT JOIN attempts a ON a.task_id = t.id AND a.number = (SELECT MAX(number) FROM attempts WHERE task_id = t.id) "
    };
}
macro_rules! list_tasks {
    ($database:ident, $users:expr, $more:literal) => {
        concat!(
            select_tasks!(),
            "WHERE t.id >= $1 AND t.id < $2 AND ", $users, " AND ", one_of!($database "t.key_id" "$4"), " AND ",
            one_of!($database "t.kind" "$5"), " AND ", one_of!($database "t.model" "$6"), " AND ",
            one_of!($database "a.channel" "$7"), " AND ", one_of!($database "CAST(CASE WHEN q.started_at IS NULL THEN t.state ELSE 1 END AS TEXT)" "$8"), " AND ",
            one_of!($database "t.error_code" "$9"), " AND ", one_of!($database "a.ticket" "$10"), $more,
            " ORDER BY t.id DESC LIMIT $11"
        )
    };
}
const LIST_TASKS: Sql = Sql::per_database(
    list_tasks!(sqlite, one_of!(sqlite "t.user_id" "$3"), ""),
    list_tasks!(postgres, one_of!(postgres "t.user_id" "$3"), ""),
);
/// As `LIST_TASKS`, for one user: the tasks of a user have an index in the order of the list.
const LIST_TASKS_OF_USER: Sql = Sql::per_database(
    list_tasks!(sqlite, "t.user_id = $3", ""),
    list_tasks!(postgres, "t.user_id = $3", ""),
);
/// As `LIST_TASKS`, searching by provider job ids, which few tasks share.
const LIST_TASKS_OF_JOBS: Sql = Sql::per_database(
    list_tasks!(
        sqlite,
        one_of!(sqlite "t.user_id" "$3"),
        " AND t.id IN (SELECT task_id FROM attempts WHERE ticket IN (SELECT value FROM json_each($10)))"
    ),
    list_tasks!(
        postgres,
        one_of!(postgres "t.user_id" "$3"),
        " AND t.id = ANY (ARRAY(SELECT task_id FROM attempts WHERE ticket = ANY (ARRAY(
        SELECT json_array_elements_text(CAST(CAST($10 AS TEXT) AS json))))))"
    ),
);
const TASK: Sql = Sql::both(concat!(select_tasks!(), "WHERE t.id = $1"));
const ATTEMPTS: Sql = Sql::both(
    "SELECT number, channel, key_print, external_id, ticket, fence, outcome, error, started_at, ended_at FROM attempts
     WHERE task_id = $1 ORDER BY number",
);
const POLLED_AT: Sql = Sql::both(
    "SELECT COALESCE(q.polled_at, t.polled_at) FROM tasks t LEFT JOIN queue q ON q.task_id = t.id WHERE t.id = $1",
);
const TASK_OF_PROVIDER_JOB: Sql =
    Sql::both("SELECT task_id FROM attempts WHERE ticket = $1 ORDER BY task_id DESC LIMIT 1");
const WEBHOOK: Sql = Sql::both("SELECT state FROM callbacks WHERE task_id = $1");
// `first_at` is not changed: the time for which a webhook is retried counts from the task's end.
const RESEND_WEBHOOK: Sql = Sql::both(
    "UPDATE callbacks SET state = 'waiting', owner = NULL, due_at = $1, ended_at = NULL WHERE task_id = $2",
);
const TASK_ENDED_AT: Sql = Sql::both("SELECT ended_at FROM tasks WHERE id = $1");

/// Filters of the list of tasks.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Only tasks submitted from this time on.
    pub from: Millis,
    /// Only tasks submitted before this time.
    pub to: Millis,
    /// Only of these users.
    pub user_ids: Option<Vec<String>>,
    /// Only of these keys.
    pub key_ids: Option<Vec<String>>,
    /// Only of these kinds: `image`, `video`, `speech`.
    pub kinds: Option<Vec<String>>,
    /// Only of these models.
    pub models: Option<Vec<String>>,
    /// Only tasks whose last attempt was on one of these channels.
    pub channels: Option<Vec<String>>,
    /// Only in these states.
    pub states: Option<Vec<TaskState>>,
    /// Only failed with one of these codes.
    pub error_codes: Option<Vec<String>>,
    /// Only tasks whose last attempt has one of these provider job ids.
    pub provider_job_ids: Option<Vec<String>>,
}

/// A task in a list.
#[derive(Debug, Clone)]
pub struct TaskItem {
    /// Its id, which is also its position in the list.
    pub id: String,
    /// Whether it has ended.
    is_final: bool,
    value: Value,
}

impl TaskItem {
    /// The task as a JSON object of the admin API.
    pub fn into_json(self) -> Value {
        self.value
    }

    fn read(row: &mut Row) -> Result<Self, DbError> {
        let state = row.int(3)?;
        let state = TaskState::from_number(state)
            .ok_or_else(|| DbError::UnexpectedData(format!("unknown task state {state}")))?;
        let held = match state.is_final() {
            true => Amount::ZERO,
            false => row.amount(9)?,
        };
        let id = row.text(0)?;
        let value = json!({
            "id": id,
            "kind": row.text(1)?,
            "model": row.text(2)?,
            "state": state.name(),
            "user_id": row.text(4)?,
            "key_id": row.text(5)?,
            "channel": row.opt_text(6)?,
            "provider_job_id": row.opt_text(7)?,
            "error_code": row.opt_text(8)?,
            "held": amount_json(held),
            "cost": amount_json(row.amount(10)?),
            "refunded": amount_json(row.amount(11)?),
            "created_at": time_json(row.int(12)?),
            "started_at": row.opt_int(13)?.map(time_json),
            "ended_at": row.opt_int(14)?.map(time_json),
        });
        Ok(Self {
            id,
            is_final: state.is_final(),
            value,
        })
    }
}

/// An attempt of a task on a channel.
#[derive(Debug, Clone)]
pub struct AttemptRecord {
    /// Its number, from 1.
    pub number: i64,
    /// When it began.
    pub started_at: Millis,
    /// When it ended. `None` while it runs.
    pub ended_at: Option<Millis>,
    /// How it ended: `done`, `failed`, `interrupted`, … `None` while it runs.
    pub outcome: Option<String>,
    value: Value,
}

impl AttemptRecord {
    /// The attempt as a JSON object of the admin API.
    pub fn to_json(&self) -> Value {
        self.value.clone()
    }

    fn read(row: &mut Row) -> Result<Self, DbError> {
        let (number, started_at, ended_at) = (row.int(0)?, row.int(8)?, row.opt_int(9)?);
        let outcome = row.opt_text(6)?;
        let value = json!({
            "number": number,
            "channel": row.text(1)?,
            "key_fingerprint": row.opt_text(2)?,
            "external_id": row.opt_text(3)?,
            "provider_job_id": row.opt_text(4)?,
            "fence": row.int(5)?,
            "outcome": outcome,
            "error": row.opt_text(7)?,
            "started_at": time_json(started_at),
            "ended_at": ended_at.map(time_json),
            "ms": ended_at.map(|at| at - started_at),
        });
        Ok(Self {
            number,
            started_at,
            ended_at,
            outcome,
            value,
        })
    }
}

/// The details of a task beside its record.
#[derive(Debug, Clone)]
pub struct TaskDetails {
    /// The members that the list of tasks shows.
    pub item: Value,
    /// Its attempts, the oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// When its provider last reported progress.
    pub polled_at: Option<Millis>,
    /// Its ledger entries, the oldest first.
    pub entries: Vec<Entry>,
}

/// Tasks.
impl Store {
    /// Tasks of all users, newest first, older than the one with the id `before`.
    pub async fn admin_list_tasks(
        &self,
        filter: &TaskFilter,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TaskItem>, StoreError> {
        let list = async |source, times, limit| {
            self.list_tasks_between(source, filter, times, before, limit)
                .await
        };
        let Some(until) = self.replica_complete_until(TASK_WRITE_TIME) else {
            return list(Source::Primary, (filter.from, filter.to), limit).await;
        };
        let until = until.clamp(filter.from, filter.to.max(filter.from));
        let mut items = list(Source::Primary, (until, filter.to), limit).await?;
        let (older, left) = ((filter.from, until), limit - items.len().min(limit));
        if left > 0 {
            let mut ended = list(Source::Replica, older, left).await?;
            if ended.iter().any(|item| !item.is_final) {
                ended = list(Source::Primary, older, left).await?;
            }
            items.extend(ended);
        }
        Ok(items)
    }

    /// The tasks with ids from these times.
    async fn list_tasks_between(
        &self,
        source: Source,
        filter: &TaskFilter,
        (from, to): (Millis, Millis),
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TaskItem>, StoreError> {
        let state_numbers = filter.states.as_ref().map(|states| {
            let numbers = states.iter().map(|state| state.number().to_string());
            numbers.collect::<Vec<_>>()
        });
        let lists = [
            &filter.user_ids,
            &filter.key_ids,
            &filter.kinds,
            &filter.models,
            &filter.channels,
            &state_numbers,
            &filter.error_codes,
            &filter.provider_job_ids,
        ];
        let [users, keys, kinds, models, channels, states, codes, jobs] =
            lists.map(|list| list_arg(list.as_ref()));
        let from = id::min_task_id_at(from);
        let to = id::min_task_id_at(to);
        let search = Search {
            list: List::Tasks,
            from_id: &from,
            to_id: before.map_or(to.as_str(), |before| before.min(&to)),
            users: filter.user_ids.as_ref(),
            keys: filter.key_ids.as_ref(),
            models: filter.models.as_ref(),
            channels: filter.channels.as_ref(),
            outcomes: state_numbers.as_ref(),
            error_codes: filter.error_codes.as_ref(),
            kinds: filter.kinds.as_ref(),
            requests: None,
            source,
        };
        let one_user = match filter.user_ids.as_deref() {
            Some([user]) if filter.provider_job_ids.is_none() => Some(user),
            _ => None,
        };
        let query = RowQuery {
            sql: match (&filter.provider_job_ids, one_user) {
                (Some(_), _) => &LIST_TASKS_OF_JOBS,
                (None, Some(_)) => &LIST_TASKS_OF_USER,
                (None, None) => &LIST_TASKS,
            },
            filters: args![
                one_user.or(users.as_ref()),
                keys.as_ref(),
                kinds.as_ref(),
                models.as_ref(),
                channels.as_ref(),
                states.as_ref(),
                codes.as_ref(),
                jobs.as_ref(),
            ],
        };
        let others = [&keys, &kinds, &models, &channels, &states, &codes];
        let is_user_only = one_user.is_some() && others.iter().all(|list| list.is_none());
        let mut rows = match is_user_only || filter.provider_job_ids.is_some() {
            true => search.rows_at_once(self, limit, &query).await?,
            false => search.rows(self, limit, &query).await?,
        };
        Ok(rows
            .iter_mut()
            .map(TaskItem::read)
            .collect::<Result<_, _>>()?)
    }

    /// The details of a task. `None` if there is no such task.
    pub async fn admin_task_details(
        &self,
        task_id: &str,
    ) -> Result<Option<TaskDetails>, StoreError> {
        let Some(item) = self.first(&TASK, args![task_id], TaskItem::read).await? else {
            return Ok(None);
        };
        let mut attempts = self.query(&ATTEMPTS, args![task_id]).await?;
        let attempts = attempts.iter_mut().map(AttemptRecord::read);
        Ok(Some(TaskDetails {
            item: item.into_json(),
            attempts: attempts.collect::<Result<_, _>>()?,
            polled_at: self
                .first(&POLLED_AT, args![task_id], |row| row.opt_int(0))
                .await?
                .flatten(),
            entries: self.entries_of_object(task_id).await?,
        }))
    }

    /// The newest task with this provider job id.
    pub async fn task_of_provider_job(&self, job: &str) -> Result<Option<String>, StoreError> {
        self.first(&TASK_OF_PROVIDER_JOB, args![job], |row| row.text(0))
            .await
    }

    /// Cancels a task on behalf of its user. The reply has no object.
    pub async fn admin_cancel_task(&self, request: &AdminRequest, task: &Task) -> AdminResult {
        let cancel = CancelTask(EndByForce::cancel(
            task,
            "cancelled by the operator",
            request.now,
        ));
        self.admin_write(request, cancel).await
    }

    /// Delivers the webhook of an ended task again, whether or not it was delivered. The reply has no object.
    pub async fn admin_resend_webhook(&self, request: &AdminRequest, task: &Task) -> AdminResult {
        let resend = ResendWebhook {
            task_id: task.id.clone(),
        };
        self.admin_write(request, resend).await
    }
}

fn task_change(task_id: &str, action: &'static str, status: u16, after: Value) -> Applied {
    Applied::Changed(Change {
        action,
        object_type: "task",
        object_id: task_id.to_owned(),
        before: None,
        after: Some(after),
        reply: AdminReply::new(status, Value::Null, None),
    })
}

struct CancelTask(EndByForce);

#[async_trait(?Send)]
impl AdminChange for CancelTask {
    fn accounts(&self) -> AccountIds<'_> {
        self.0.accounts()
    }

    fn note_changed_tasks(&self, versions: &TaskVersions) {
        versions.raise(self.0.task_id());
    }

    async fn apply(&self, _: &AdminRequest, batch: &mut Batch<'_, '_>) -> Result<Applied, DbError> {
        let task_id = self.0.task_id();
        Ok(match self.0.apply(batch).await? {
            CancelOutcome::Cancelled => {
                task_change(task_id, "task.cancel", 200, json!({"state": "cancelled"}))
            }
            CancelOutcome::AlreadyFinal => {
                let message = "the task has ended: only unfinished tasks can be cancelled";
                AdminRejection::conflict("already_finished", None, message).into()
            }
            CancelOutcome::NotFound => AdminRejection::NotFound.into(),
        })
    }
}

struct ResendWebhook {
    task_id: String,
}

#[async_trait(?Send)]
impl AdminChange for ResendWebhook {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let id = &self.task_id;
        let Some(row) = batch.first(&TASK_ENDED_AT, args![id]).await? else {
            return Ok(AdminRejection::NotFound.into());
        };
        if row.opt_int(0)?.is_none() {
            let message = "the task has not ended: its webhook is sent at the end";
            return Ok(AdminRejection::conflict("not_finished", None, message).into());
        }
        if batch.first(&WEBHOOK, args![id]).await?.is_none() {
            let message = "the task was submitted without a webhook";
            return Ok(AdminRejection::conflict("no_webhook", None, message).into());
        }
        batch.queue_one(&RESEND_WEBHOOK, args![request.now, id])?;
        let state = WebhookState::Waiting.name();
        Ok(task_change(
            id,
            "task.resend",
            202,
            json!({"webhook": state}),
        ))
    }
}
