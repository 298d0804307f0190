//! Schema migrations: brings a database up to this version at start, and rejects a newer one.

use super::sql::{DbError, Sql, args};
use super::transaction::Tx;
use crate::error::StoreError;

/// Every migration, in order. A database's version is the number of migrations applied to it. Never change one that was
/// released: add the next.
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
];

const META: &str = "CREATE TABLE IF NOT EXISTS meta (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL) {rows}";
const SELECT_VERSION: Sql = Sql::both("SELECT value FROM meta WHERE name = 'schema_version'");
const SET_VERSION: Sql = Sql::both(
    "INSERT INTO meta (name, value) VALUES ('schema_version', $1)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value",
);

/// The version of a database to which every migration was applied.
pub(crate) fn known_schema_version() -> i64 {
    MIGRATIONS.len() as i64
}

/// Applies the missing migrations in one transaction. Nodes that start at the same time wait for each other (advisory lock).
pub(crate) async fn migrate(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    if let Tx::Postgres(pg) = tx {
        pg.script("SELECT pg_advisory_xact_lock(7053116)").await?;
    }
    script(tx, META).await?;
    let version = match tx.first(&SELECT_VERSION, &[]).await? {
        Some(row) => row.int(0)?,
        None => 0,
    };
    let known = known_schema_version();
    if version > known {
        return Err(StoreError::Setup(format!(
            "the database has schema version {version} and this program knows only {known}: run a newer tollgate, or restore a backup from before the upgrade"
        )));
    }
    for text in MIGRATIONS
        .iter()
        .skip(usize::try_from(version).unwrap_or(0))
    {
        script(tx, text).await?;
    }
    if version < known {
        tx.execute(&SET_VERSION, args![known]).await?;
    }
    Ok(())
}

/// Runs a migration, with its placeholders replaced for the database.
async fn script(tx: &mut Tx<'_>, text: &str) -> Result<(), DbError> {
    match tx {
        Tx::Sqlite(open) => {
            let text = text
                .replace("BIGINT", "INTEGER")
                .replace("{rows}", "STRICT")
                .replace(
                    "{seconds of t.shown}",
                    "COALESCE(CAST(json_extract(t.shown, '$.seconds') AS INTEGER), 0)",
                )
                .replace("{clustered}", "STRICT, WITHOUT ROWID");
            open.script(&text)
        }
        Tx::Postgres(pg) => {
            // Ids and cursors need byte order, whatever the collation of the database.
            let text = text
                .replace(" TEXT", " TEXT COLLATE \"C\"")
                .replace("{rows}", "")
                .replace(
                    "{seconds of t.shown}",
                    "COALESCE(CAST(substring(CAST(t.shown AS json) ->> 'seconds' from '^[0-9]{1,9}$') AS BIGINT), 0)",
                )
                .replace("{clustered}", "");
            pg.script(&text).await
        }
    }
}
