//! The audit of the work on tasks: attempts, what providers have in their queues, callbacks.

use super::Check;
use crate::db::Sql;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "attempts",
        says: "number of an attempt and its task's state: without its task, under a fence that the task never had, or still open though the task has ended",
        sql: Sql::both(
            "SELECT a.task_id, a.number, t.state FROM attempts a LEFT JOIN tasks t ON t.id = a.task_id
             WHERE t.id IS NULL OR a.fence < 1 OR a.fence > t.fence OR (t.state >= 2 AND a.ended_at IS NULL)",
        ),
    },
    Check {
        name: "attempt_shape",
        says: "number, queued, ticket_at, ended_at, outcome of an attempt: an ended one has an outcome, only a queued one a ticket, adjustments only with a ticket",
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
        says: "numbers of the first and the last open attempt of a task",
        sql: Sql::both(
            "SELECT task_id, MIN(number), MAX(number) FROM attempts WHERE ended_at IS NULL
             GROUP BY task_id HAVING COUNT(*) > 1",
        ),
    },
    Check {
        name: "queued_attempts",
        says: "the queued attempt that a task names; then the one that is open",
        sql: Sql::both(
            "SELECT t.id, t.queued_attempt, a.number FROM tasks t
             LEFT JOIN attempts a ON a.task_id = t.id AND a.queued = 1 AND a.ended_at IS NULL
             WHERE COALESCE(t.queued_attempt, -1) <> COALESCE(a.number, -1)",
        ),
    },
    Check {
        name: "callbacks",
        says: "state and callback_url of a task; then url, key and moment of its callback: there is one exactly if the task has ended and names where to call",
        sql: Sql::both(
            "SELECT t.id, t.state, t.callback_url, c.url, c.key_id, c.first_at FROM tasks t
             LEFT JOIN callbacks c ON c.task_id = t.id
             WHERE (t.state >= 2 AND t.callback_url IS NOT NULL) <> (c.task_id IS NOT NULL)
                OR (c.task_id IS NOT NULL AND (c.url <> t.callback_url OR c.key_id <> t.key_id OR c.first_at <> t.ended_at))",
        ),
    },
    Check {
        name: "callback_tasks",
        says: "a callback of a task that does not exist, and its url",
        sql: Sql::both(
            "SELECT c.task_id, c.url FROM callbacks c LEFT JOIN tasks t ON t.id = c.task_id WHERE t.id IS NULL",
        ),
    },
    Check {
        name: "callback_shape",
        says: "state, owner, attempts, ended_at of a callback and the tries written down: a waiting one has no end, another has one, a try, and no owner",
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
        says: "number of a try and the attempts of its callback: there are not so many, or the callback does not exist",
        sql: Sql::both(
            "SELECT t.task_id, t.number, c.attempts FROM callback_tries t LEFT JOIN callbacks c ON c.task_id = t.task_id
             WHERE c.task_id IS NULL OR t.number < 1 OR t.number > c.attempts",
        ),
    },
    Check {
        name: "webhook_secrets",
        says: "an empty secret, or one of a key that does not exist",
        sql: Sql::both(
            "SELECT s.key_id FROM webhook_secrets s LEFT JOIN keys k ON k.id = s.key_id WHERE k.id IS NULL OR s.secret = ''",
        ),
    },
];
