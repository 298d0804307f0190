//! Checks of tasks, attempts, webhooks and idempotency records.

use tollgate_core::TaskState;

use super::check::Check;
use crate::db::Sql;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "task_shape",
        details: "state, progress, ended_at: a final task has ended_at, a completed one a result, a failed one an error, others neither",
        sql: Sql::both(
            "SELECT id, state, progress, ended_at FROM tasks
             WHERE state < 0 OR state > 4 OR progress < 0 OR progress > 100 OR (state < 2) <> (ended_at IS NULL)
                OR (state = 2) <> (result IS NOT NULL) OR (state IN (3, 4)) <> (error_code IS NOT NULL)
                OR (state = 4) <> (COALESCE(error_code, '') = 'cancelled')
                OR (state = 0 AND fence <> 0)
                OR (state < 4 AND (state = 0) <> (started_at IS NULL))",
        ),
    },
    // Until the state of unfinished tasks has been moved to the queue, the queue has no rows.
    Check {
        name: "queue",
        details: "state of a task, and whether it is in the queue: an unfinished one is there once, an ended one is not",
        sql: Sql::both(
            "SELECT COALESCE(t.id, q.task_id), t.state, CASE WHEN q.task_id IS NULL THEN 0 ELSE 1 END
             FROM tasks t FULL JOIN queue q ON q.task_id = t.id
             WHERE COALESCE(t.state < 2 AND (SELECT value FROM meta WHERE name = 'queue_moved') = 1, FALSE) <> (q.task_id IS NOT NULL)",
        ),
    },
    Check {
        name: "queue_shape",
        details: "due_at, owner, lease_until, fence, started_at, progress of a task in the queue: it waits or is leased, has a fence once it was started, and the user, key and deadline of its task",
        sql: Sql::both(
            "SELECT q.task_id, q.due_at, q.owner, q.lease_until, q.fence, q.started_at, q.progress
             FROM queue q JOIN tasks t ON t.id = q.task_id
             WHERE (q.owner IS NULL) <> (q.lease_until IS NULL) OR (q.owner IS NULL AND q.due_at IS NULL)
                OR (q.fence > 0) <> (q.started_at IS NOT NULL) OR (q.started_at IS NULL AND q.owner IS NOT NULL) OR q.fence < 0
                OR q.progress < 0 OR q.progress > 100 OR q.failed_attempts < 0 OR q.shard < 0 OR q.shard > 63
                OR q.user_id <> t.user_id OR q.key_id <> t.key_id OR q.deadline_at <> t.deadline_at",
        ),
    },
    Check {
        name: "idempotency_tasks",
        details: "an idempotency record whose charge does not exist",
        sql: Sql::both(
            "SELECT i.key, i.task_id FROM idempotency i LEFT JOIN charges c ON c.id = i.task_id WHERE c.id IS NULL",
        ),
    },
    Check {
        name: "attempts",
        details: "number of an attempt and its task's state: without its task, under a fence that the task never had, or still open though the task has ended",
        sql: Sql::both(
            "SELECT a.task_id, a.number, t.state FROM attempts a LEFT JOIN tasks t ON t.id = a.task_id LEFT JOIN queue q ON q.task_id = t.id
             WHERE t.id IS NULL OR a.fence < 1 OR a.fence > COALESCE(q.fence, t.fence) OR (t.state >= 2 AND a.ended_at IS NULL)",
        ),
    },
    Check {
        name: "attempt_shape",
        details: "number, queued, ticket_at, ended_at, outcome of an attempt: an ended one has an outcome, only a queued one a provider job id, adjustments only with a provider job id",
        sql: Sql::both(
            "SELECT task_id, number, queued, ticket_at, ended_at, outcome FROM attempts
             WHERE number < 1 OR queued NOT IN (0, 1) OR (ended_at IS NULL) <> (outcome IS NULL)
                OR (ended_at IS NULL AND error IS NOT NULL)
                OR (ticket IS NULL) <> (ticket_at IS NULL) OR (queued = 0 AND ticket IS NOT NULL)
                OR (ticket IS NULL AND adjustments IS NOT NULL)",
        ),
    },
    Check {
        name: "one_open_attempt",
        details: "numbers of the first and the last open attempt of a task",
        sql: Sql::both(
            "SELECT task_id, MIN(number), MAX(number) FROM attempts WHERE ended_at IS NULL
             GROUP BY task_id HAVING COUNT(*) > 1",
        ),
    },
    Check {
        name: "queued_attempts",
        details: "the queued attempt that a task names; then the one that is open",
        sql: Sql::both(
            "SELECT t.id, CASE WHEN q.task_id IS NULL THEN t.queued_attempt ELSE q.queued_attempt END, a.number
             FROM tasks t LEFT JOIN queue q ON q.task_id = t.id
             LEFT JOIN attempts a ON a.task_id = t.id AND a.queued = 1 AND a.ended_at IS NULL
             WHERE COALESCE(CASE WHEN q.task_id IS NULL THEN t.queued_attempt ELSE q.queued_attempt END, -1) <> COALESCE(a.number, -1)",
        ),
    },
    Check {
        name: "callbacks",
        details: "state and callback_url of a task; then url, key and time of its webhook: there is one if and only if the task has ended and has a callback_url",
        sql: Sql::both(
            "SELECT t.id, t.state, t.callback_url, c.url, c.key_id, c.first_at FROM tasks t
             LEFT JOIN callbacks c ON c.task_id = t.id
             WHERE (t.state >= 2 AND t.callback_url IS NOT NULL) <> (c.task_id IS NOT NULL)
                OR (c.task_id IS NOT NULL AND (c.url <> t.callback_url OR c.key_id <> t.key_id OR c.first_at <> t.ended_at))",
        ),
    },
    Check {
        name: "callback_tasks",
        details: "a webhook of a task that does not exist, and its url",
        sql: Sql::both(
            "SELECT c.task_id, c.url FROM callbacks c LEFT JOIN tasks t ON t.id = c.task_id WHERE t.id IS NULL",
        ),
    },
    Check {
        name: "callback_shape",
        details: "state, owner, attempts, ended_at of a webhook and the number of recorded attempts: a waiting one has no ended_at; another has one, a recorded attempt, and no owner",
        sql: Sql::both(
            "SELECT c.task_id, c.state, c.owner, c.attempts, c.ended_at, COALESCE(t.tries, 0) FROM callbacks c
             LEFT JOIN (SELECT task_id, COUNT(*) AS tries FROM callback_tries GROUP BY task_id) t ON t.task_id = c.task_id
             WHERE c.state NOT IN ('waiting', 'delivered', 'given_up') OR c.attempts < 0
                OR (c.state = 'waiting') <> (c.ended_at IS NULL)
                OR (c.state <> 'waiting' AND (COALESCE(t.tries, 0) = 0 OR c.owner IS NOT NULL))
                OR (c.owner IS NOT NULL AND c.attempts < 1)",
        ),
    },
    Check {
        name: "callback_tries",
        details: "number of a delivery attempt and the attempts of its webhook: the number is higher, or the webhook does not exist",
        sql: Sql::both(
            "SELECT t.task_id, t.number, c.attempts FROM callback_tries t LEFT JOIN callbacks c ON c.task_id = t.task_id
             WHERE c.task_id IS NULL OR t.number < 1 OR t.number > c.attempts",
        ),
    },
    Check {
        name: "webhook_secrets",
        details: "an empty secret, or one of a key that does not exist",
        sql: Sql::both(
            "SELECT s.key_id FROM webhook_secrets s LEFT JOIN keys k ON k.id = s.key_id WHERE k.id IS NULL OR s.secret = ''",
        ),
    },
];

/// The state numbers are literals in the statements above.
const _: () = assert!(
    TaskState::Completed as i64 == 2
        && TaskState::Failed as i64 == 3
        && TaskState::Cancelled as i64 == 4
);
