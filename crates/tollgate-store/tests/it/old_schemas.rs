//! Databases of earlier schema versions: the additions of the later migrations are removed.

use tollgate_store::DatabaseLocation;

use crate::databases::Db;

/// The statements that remove each migration's additions, the newest first. Version 2 has those of all earlier versions, because a view depends on
/// several of them.
const UNDO: &[(i64, &[&str])] = &[
    (29, &["ALTER TABLE keys DROP COLUMN trace_content"]),
    (
        28,
        &[
            "DROP INDEX IF EXISTS list_values_by_user",
            "DROP INDEX IF EXISTS list_values_by_key",
            "DROP INDEX IF EXISTS list_values_by_model",
            "DROP INDEX IF EXISTS list_values_by_channel",
            "DROP INDEX IF EXISTS list_values_by_outcome",
            "DROP INDEX IF EXISTS list_values_by_error_code",
            "DROP INDEX IF EXISTS list_values_by_kinds",
        ],
    ),
    (
        27,
        &[
            "DROP TABLE usage_totals",
            "DELETE FROM meta WHERE name = 'usage_totals_from'",
        ],
    ),
    (26, &["ALTER TABLE tasks DROP COLUMN trace_state"]),
    (
        25,
        &[
            "DROP TABLE list_blocks",
            "DROP TABLE list_values",
            "DELETE FROM meta WHERE name = 'list_blocks_version'",
        ],
    ),
    (
        24,
        &[
            "UPDATE tasks SET due_at = q.due, owner = q.owner, fence = q.fence, started_at = q.started_at, failed_attempts = q.failed_attempts,
                    queued_attempt = q.queued_attempt, progress = q.progress, polled_at = q.polled_at,
                    state = CASE WHEN q.started_at IS NULL THEN 0 ELSE 1 END
             FROM (SELECT *, COALESCE(due_at, lease_until) AS due FROM queue) AS q WHERE q.task_id = tasks.id",
            "DROP TABLE queue",
            "CREATE INDEX tasks_due ON tasks (due_at, state) WHERE state < 2",
            "CREATE INDEX tasks_of_key ON tasks (user_id, key_id, due_at, state) WHERE state < 2",
            "CREATE INDEX tasks_by_deadline ON tasks (deadline_at) WHERE state < 2",
            "DELETE FROM meta WHERE name = 'queue_moved'",
            "UPDATE meta SET value = 13 WHERE name = 'oldest_compatible'",
        ],
    ),
    (
        23,
        &[
            "DROP TABLE access_changes",
            "DROP TABLE leader",
            "ALTER TABLE nodes DROP COLUMN schema_version",
            "ALTER TABLE nodes DROP COLUMN clock_offset",
            "ALTER TABLE nodes DROP COLUMN settings",
            "ALTER TABLE nodes DROP COLUMN not_ready",
        ],
    ),
    (22, &["DROP TABLE grants"]),
    (
        21,
        &[
            "ALTER TABLE audits DROP COLUMN progress",
            "ALTER TABLE tasks DROP COLUMN polled_at",
        ],
    ),
    (19, &["DROP TABLE usage_daily"]),
    (
        20,
        &["DROP TABLE oidc_identities", "DROP TABLE oidc_sign_ins"],
    ),
    (
        18,
        &[
            "DROP TABLE alerts",
            "DROP TABLE alert_states",
            "DROP TABLE alert_deliveries",
            "DROP TABLE open_circuits",
            "DROP INDEX callbacks_given_up",
            "DELETE FROM meta WHERE name = 'alerts_checked_at'",
        ],
    ),
    (
        17,
        &[
            "DROP TABLE portal_sessions",
            "ALTER TABLE keys DROP COLUMN parent_key_id",
        ],
    ),
    (
        16,
        &[
            "DROP TABLE tail_events",
            "DELETE FROM meta WHERE name = 'tail_watched_until'",
        ],
    ),
    (
        15,
        &[
            "DROP TABLE budgets",
            "ALTER TABLE users DROP COLUMN budgets",
            "ALTER TABLE keys DROP COLUMN budgets",
        ],
    ),
    (14, &["ALTER TABLE tasks DROP COLUMN trace_context"]),
    (13, &["DROP TABLE usage_hourly", "DROP TABLE usage_pending"]),
    (12, &["DROP TABLE upload_bytes"]),
    (
        11,
        &[
            "ALTER TABLE nodes DROP COLUMN config_error",
            "ALTER TABLE nodes DROP COLUMN config_version",
            "ALTER TABLE nodes DROP COLUMN last_seen_at",
            "ALTER TABLE nodes DROP COLUMN started_at",
            "ALTER TABLE nodes DROP COLUMN version",
            "DROP TABLE configuration",
            "DELETE FROM meta WHERE name = 'config_version'",
        ],
    ),
    (10, &["ALTER TABLE chats DROP COLUMN dropped"]),
    (9, &["DROP TABLE audits"]),
    (8, &["DROP INDEX attempts_by_ticket"]),
    (
        7,
        &[
            "ALTER TABLE charges DROP COLUMN refunded",
            "ALTER TABLE chats DROP COLUMN refunded",
            "ALTER TABLE tasks DROP COLUMN refunded",
        ],
    ),
    (6, &["DROP TABLE reconciliations"]),
    (
        5,
        &[
            "DROP INDEX keys_by_previous_hash",
            "DROP INDEX users_by_time",
            "DROP INDEX keys_by_time",
            "DROP INDEX keys_of_user",
            "DROP INDEX ledger_references",
            "DROP INDEX ledger_by_time",
            "DROP INDEX ledger_of_user",
            "ALTER TABLE users DROP COLUMN version",
            "ALTER TABLE keys DROP COLUMN version",
            "ALTER TABLE keys DROP COLUMN hint",
            "ALTER TABLE keys DROP COLUMN previous_hash",
            "ALTER TABLE keys DROP COLUMN previous_valid_until",
            "ALTER TABLE ledger DROP COLUMN reference",
            "DROP TABLE admin_tokens",
            "DROP TABLE admins",
            "DROP TABLE admin_links",
            "DROP TABLE admin_sessions",
            "DROP TABLE admin_sign_in_failures",
            "DROP TABLE admin_events",
            "DROP TABLE admin_writes",
            "DELETE FROM meta WHERE name = 'admin_event_seq'",
        ],
    ),
    (
        2,
        &[
            "DROP INDEX chats_in_debt",
            "DROP VIEW entries",
            "ALTER TABLE chats DROP COLUMN debt",
            "ALTER TABLE chats DROP COLUMN clamped",
            "ALTER TABLE chats DROP COLUMN parts_cost",
            "ALTER TABLE chats DROP COLUMN parts",
            "DROP INDEX tasks_of_key",
            "DROP INDEX tasks_by_deadline",
            "DROP INDEX callbacks_of_receiver",
            "DROP INDEX callbacks_of_user",
            "ALTER TABLE callbacks DROP COLUMN receiver",
            "ALTER TABLE callbacks DROP COLUMN user_id",
            "CREATE VIEW entries AS SELECT ref, kind, user_id, key_id, amount, note, at FROM ledger",
        ],
    ),
];

/// Changes the database into one to which only the first `version` migrations were applied. No store may have it open.
pub(crate) async fn undo_migrations(db: &Db, version: i64) {
    if version < 24 && matches!(db.location, DatabaseLocation::Postgres(_)) {
        db.raw("ALTER TABLE tasks ADD COLUMN due_at BIGINT NOT NULL DEFAULT 0, ADD COLUMN owner TEXT COLLATE \"C\"")
            .await;
        db.raw("ALTER TABLE tasks ALTER COLUMN due_at DROP DEFAULT")
            .await;
    }
    for (migration, statements) in UNDO {
        if *migration <= version {
            continue;
        }
        for statement in *statements {
            db.raw(statement).await;
        }
    }
    db.raw(&format!(
        "UPDATE meta SET value = {version} WHERE name = 'schema_version'"
    ))
    .await;
}
