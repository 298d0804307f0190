//! Schema migrations: migrates a database to this version at start, and rejects one that a newer program has made incompatible with this one.

use super::sql::{DbError, Sql, args};
use super::transaction::Tx;
use crate::error::StoreError;

/// Every migration, in order. A database's version is the number of migrations that were applied to it. Never change a released migration: add a new
/// one.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_debt.sql"),
    include_str!("migrations/0003_fair_queue.sql"),
    include_str!("migrations/0004_chat_parts.sql"),
    include_str!("migrations/0005_admin.sql"),
    include_str!("migrations/0006_reconcile.sql"),
    include_str!("migrations/0007_refunds.sql"),
    include_str!("migrations/0008_provider_jobs.sql"),
    include_str!("migrations/0009_audits.sql"),
    include_str!("migrations/0010_dropped_fields.sql"),
    include_str!("migrations/0011_configuration.sql"),
    include_str!("migrations/0012_uploads.sql"),
    include_str!("migrations/0013_usage.sql"),
    include_str!("migrations/0014_trace_context.sql"),
    include_str!("migrations/0015_budgets.sql"),
    include_str!("migrations/0016_tail.sql"),
    include_str!("migrations/0017_portal.sql"),
    include_str!("migrations/0018_alerts.sql"),
    include_str!("migrations/0019_usage_daily.sql"),
    include_str!("migrations/0020_oidc.sql"),
    include_str!("migrations/0021_progress.sql"),
    include_str!("migrations/0022_grants.sql"),
    include_str!("migrations/0023_cluster.sql"),
    include_str!("migrations/0024_queue.sql"),
    include_str!("migrations/0025_list_blocks.sql"),
    include_str!("migrations/0026_tracestate.sql"),
    include_str!("migrations/0027_usage_totals.sql"),
    include_str!("migrations/0028_list_values_indexes.sql"),
    include_str!("migrations/0029_trace_content.sql"),
];

/// The oldest program, by the schema version that it knows, that may use a database of the newest schema beside current programs. Raise it with a
/// migration after which older programs would fail or write wrong data.
const OLDEST_COMPATIBLE: i64 = 13;

/// The schema version since which the table `queue` exists.
pub(crate) const QUEUE_SCHEMA: i64 = 24;

/// Copies the state of unfinished tasks. In `tasks`, the column due_at also contains the end of the lease.
const FILL_QUEUE: &str = "
    INSERT INTO queue (task_id, shard, user_id, key_id, due_at, owner, lease_until, fence, deadline_at, started_at, failed_attempts, queued_attempt,
                       progress, polled_at)
    SELECT id, 0, user_id, key_id, CASE WHEN owner IS NULL THEN due_at END, owner, CASE WHEN owner IS NOT NULL THEN due_at END, fence, deadline_at,
           started_at, failed_attempts, queued_attempt, progress, polled_at
    FROM tasks WHERE state < 2;
    UPDATE meta SET value = 1 WHERE name = 'queue_moved';
";

/// Drops what `queue` replaces. On PostgreSQL the columns are dropped, which is quick, also drops their indexes and makes older programs fail. SQLite
/// would copy the table for this, so there the columns stay unused.
const LEAVE_TASKS: Sql = Sql::per_database(
    "DROP INDEX tasks_due; DROP INDEX tasks_of_key; DROP INDEX tasks_by_deadline;",
    "ALTER TABLE tasks DROP COLUMN due_at, DROP COLUMN owner; DROP INDEX tasks_by_deadline;",
);

/// Nodes of an older version continue to write, and their batches begin by locking users and keys. If a migration locks these tables first, a running
/// batch ends before a table is altered, and the next one waits without holding a lock that the migration needs.
const LOCK_WRITERS: &str = "LOCK TABLE users, keys IN ACCESS EXCLUSIVE MODE";

const META: &str = "CREATE TABLE IF NOT EXISTS meta (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL) {rows}";
const SELECT_VERSION: Sql = Sql::both("SELECT value FROM meta WHERE name = 'schema_version'");
const SET_VERSION: Sql = Sql::both(
    "INSERT INTO meta (name, value) VALUES ('schema_version', $1)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value",
);

const SELECT_OLDEST_COMPATIBLE: Sql =
    Sql::both("SELECT value FROM meta WHERE name = 'oldest_compatible'");
// Never lowered: a step that runs later than its migration may have raised it.
const SET_OLDEST_COMPATIBLE: Sql = Sql::both(
    "INSERT INTO meta (name, value) VALUES ('oldest_compatible', $1)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value < excluded.value",
);

/// The newest schema version that this program knows: that of a database to which all migrations were applied.
pub fn known_schema_version() -> i64 {
    MIGRATIONS.len() as i64
}

/// Applies the missing migrations in one transaction. Nodes that start at the same time wait for each other (advisory lock). A database with a newer
/// schema is used unchanged if its newest program allows programs of this version, because nodes are upgraded one by one.
pub(crate) async fn migrate(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    if let Tx::Postgres(pg) = tx {
        pg.run_script("SELECT pg_advisory_xact_lock(7053116)")
            .await?;
    }
    run_script(tx, META).await?;
    let version = match tx.first(&SELECT_VERSION, &[]).await? {
        Some(row) => row.int(0)?,
        None => 0,
    };
    let known = known_schema_version();
    if version > known {
        let oldest = match tx.first(&SELECT_OLDEST_COMPATIBLE, &[]).await? {
            Some(row) => row.int(0)?,
            None => version,
        };
        return check_compatible(version, oldest);
    }
    if let Tx::Postgres(pg) = tx
        && (1..known).contains(&version)
    {
        pg.run_script(LOCK_WRITERS).await?;
    }
    for text in MIGRATIONS
        .iter()
        .skip(usize::try_from(version).unwrap_or(0))
    {
        run_script(tx, text).await?;
    }
    if version < known {
        tx.execute(&SET_VERSION, args![known]).await?;
    }
    tx.execute(&SET_OLDEST_COMPATIBLE, args![OLDEST_COMPATIBLE])
        .await?;
    // On SQLite no other process uses the database, and an empty database was never used by one.
    if version < QUEUE_SCHEMA && (version == 0 || matches!(tx, Tx::Sqlite(_))) {
        move_queue(tx).await?;
    }
    Ok(())
}

/// Moves the state of unfinished tasks from `tasks` to `queue`. After this, programs that know only an older schema can neither submit, claim nor end
/// tasks: on PostgreSQL their statements fail.
///
/// # Errors
/// The database's.
pub(crate) async fn move_queue(tx: &mut Tx<'_>) -> Result<(), DbError> {
    run_script(tx, FILL_QUEUE).await?;
    match tx {
        Tx::Sqlite(open) => open.run_script(LEAVE_TASKS.sqlite)?,
        Tx::Postgres(pg) => pg.run_script(LEAVE_TASKS.postgres).await?,
    }
    tx.execute(&SET_OLDEST_COMPATIBLE, args![QUEUE_SCHEMA])
        .await?;
    Ok(())
}

/// Checks whether this program may use a database of the newer schema `version`, whose programs work beside programs of schema `oldest` and later.
///
/// # Errors
/// A sentence for the operator if it may not.
fn check_compatible(version: i64, oldest: i64) -> Result<(), StoreError> {
    let known = known_schema_version();
    if oldest <= known {
        return Ok(());
    }
    Err(StoreError::Setup(format!(
        "the database has schema version {version} and this program knows only {known}: run a newer tollgate, or restore a backup from before the upgrade"
    )))
}

/// The statements that create an empty database with schema `version`, for tests that open databases of older programs.
pub fn schema_sql(version: usize, is_postgres: bool) -> String {
    let replace = match is_postgres {
        true => for_postgres,
        false => for_sqlite,
    };
    let migrations = MIGRATIONS.iter().take(version).copied();
    let scripts = std::iter::once(META).chain(migrations).map(replace);
    scripts.collect::<Vec<_>>().join(";\n")
}

/// Runs a migration, with its placeholders replaced for the database.
async fn run_script(tx: &mut Tx<'_>, text: &str) -> Result<(), DbError> {
    match tx {
        Tx::Sqlite(open) => open.run_script(&for_sqlite(text)),
        Tx::Postgres(pg) => pg.run_script(&for_postgres(text)).await,
    }
}

/// The prefix of a line that is skipped on SQLite.
const ONLY_POSTGRES: &str = "{only postgres} ";

fn for_sqlite(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    let text: String = lines
        .filter(|line| !line.starts_with(ONLY_POSTGRES))
        .collect();
    text.replace("BIGINT", "INTEGER")
        .replace("{rows}", "STRICT")
        .replace(
            "{seconds of t.shown}",
            "COALESCE(CAST(json_extract(t.shown, '$.seconds') AS INTEGER), 0)",
        )
        .replace("{clustered}", "STRICT, WITHOUT ROWID")
        .replace("{updated in place}", "STRICT, WITHOUT ROWID")
}

fn for_postgres(text: &str) -> String {
    // Ids and cursors need byte order, whatever the collation of the database.
    text.replace(ONLY_POSTGRES, "").replace(" TEXT", " TEXT COLLATE \"C\"")
                .replace("{rows}", "")
                .replace(
                    "{seconds of t.shown}",
                    "COALESCE(CAST(substring(CAST(t.shown AS json) ->> 'seconds' from '^[0-9]{1,9}$') AS BIGINT), 0)",
                )
                .replace("{clustered}", "")
        .replace("{updated in place}", "WITH (fillfactor = 50)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest as _, Sha256};

    /// The beginnings of the checksums of the migrations, in order.
    const RELEASED: &[&str] = &[
        "9677a55b", "1306d41c", "ff16f6bb", "4b2d3324", "c02b4cfd", "47457dc8", "eea7bcd8",
        "1ac8c33e", "f8db9ff4", "b8feb8fa", "2b2a651d", "dbade6c0", "d95eb1df", "1bd39294",
        "b63b0c76", "2d2191a0", "af2f446a", "b8524efb", "57480602", "7a37fa9d", "0722d3fb",
        "e4e5ccfa", "7a53483f", "594f5c0e", "9a94c5b0", "0364abed", "b97558dd", "c0e32958",
        "35f62f8f",
    ];

    #[test]
    fn released_migrations_are_unchanged() {
        let checksums = MIGRATIONS.iter().map(|text| {
            let digest = Sha256::digest(text);
            tollgate_core::id::hex(&digest[..4])
        });
        let checksums: Vec<String> = checksums.collect();
        assert_eq!(checksums[..RELEASED.len()], *RELEASED);
    }
}
