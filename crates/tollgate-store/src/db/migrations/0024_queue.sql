-- The state of unfinished tasks, apart from the wide rows of `tasks`: claims, renewals of leases, attempts and progress write these narrow rows only.
-- A row is inserted with its task and deleted with the task's end. While nodes of an older version are alive the rows of `tasks` lead and this table is
-- empty: `queue_moved` in `meta` says which (tasks/queue_table.rs).
-- due_at is when a task may be claimed; NULL while a worker has it, until its lease ends at lease_until. No index has lease_until, so that a renewal on
-- PostgreSQL touches no index, and half of each page is left free for the next version of its rows (heap-only tuples).
CREATE TABLE queue (
    task_id         TEXT NOT NULL PRIMARY KEY,
    shard           BIGINT NOT NULL,
    user_id         TEXT NOT NULL,
    key_id          TEXT NOT NULL,
    due_at          BIGINT,
    owner           TEXT,
    lease_until     BIGINT,
    fence           BIGINT NOT NULL,
    deadline_at     BIGINT NOT NULL,
    started_at      BIGINT,
    failed_attempts BIGINT NOT NULL,
    queued_attempt  BIGINT,
    progress        BIGINT NOT NULL,
    polled_at       BIGINT
) {updated in place};
CREATE INDEX queue_due ON queue (due_at, shard) WHERE due_at IS NOT NULL;
CREATE INDEX queue_of_key ON queue (user_id, key_id, due_at, shard) WHERE due_at IS NOT NULL;
CREATE INDEX queue_leased ON queue (user_id) WHERE due_at IS NULL;
CREATE INDEX queue_by_deadline ON queue (deadline_at);
INSERT INTO meta (name, value) VALUES ('queue_moved', 0);
