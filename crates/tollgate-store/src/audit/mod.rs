//! The audit: checks every invariant of money, tasks, attempts, webhooks and chats in one snapshot of the database.

mod budgets;
mod charges;
mod chats;
mod check;
mod money;
mod tasks;
mod usage;

use std::path::Path;

use futures_util::FutureExt as _;

pub use check::AuditViolation;

use crate::db::{DbError, Tx, postgres, sqlite};
use crate::error::StoreError;
use crate::store::{Readers, Store};
use check::cells_to_text;

/// The audit.
impl Store {
    /// Checks every invariant, and returns the violations. Safe beside running servers.
    pub async fn audit(&self) -> Result<Vec<AuditViolation>, StoreError> {
        match &*self.readers {
            Readers::Sqlite { path, .. } => {
                // It reads the whole database, so it runs on a thread for blocking work.
                let path = path.clone();
                tokio::task::spawn_blocking(move || audit_sqlite(&path))
                    .await
                    .unwrap_or_else(|e| Err(StoreError::Broken(format!("the audit ended: {e}"))))
            }
            Readers::Postgres { config, .. } => {
                let mut connection = postgres::Connection::open(config).await?;
                let mut tx = Tx::Postgres(connection.begin_snapshot().await?);
                Ok(check_all(&mut tx).await?)
            }
        }
    }
}

fn audit_sqlite(path: &Path) -> Result<Vec<AuditViolation>, StoreError> {
    let conn = sqlite::open_reader(path)?;
    sqlite::script(&conn, "BEGIN")?;
    let found = check_all(&mut Tx::Sqlite(sqlite::Transaction::new(&conn)))
        .now_or_never()
        .unwrap_or_else(|| unreachable!("SQLite answers without waiting"))?;
    sqlite::script(&conn, "COMMIT")?;
    Ok(found)
}

/// Runs every check in the snapshot of `tx`.
async fn check_all(tx: &mut Tx<'_>) -> Result<Vec<AuditViolation>, DbError> {
    let mut found = Vec::new();
    let checks = money::CHECKS.iter().chain(tasks::CHECKS);
    let checks = checks.chain(chats::CHECKS).chain(usage::CHECKS);
    for check in checks.chain(budgets::CHECKS) {
        for mut row in tx.query(&check.sql, &[]).await? {
            found.push(AuditViolation {
                check: check.name,
                subject: row.text(0)?,
                detail: format!("{}: {}", check.details, cells_to_text(&row, 1)),
            });
        }
    }
    charges::check_amounts(tx, &mut found).await?;
    charges::check_delivered_units(tx, &mut found).await?;
    chats::check_amounts(tx, &mut found).await?;
    Ok(found)
}
