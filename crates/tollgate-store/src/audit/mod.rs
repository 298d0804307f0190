//! The audit: checks every invariant of money, tasks, attempts, webhooks and chats in one snapshot of the database.

mod budgets;
mod charges;
mod chats;
mod check;
mod money;
mod tasks;
mod usage;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::FutureExt as _;

pub use check::AuditViolation;

use crate::db::{DbError, Tx, postgres, sqlite};
use crate::error::StoreError;
use crate::store::{Readers, Store};
use check::{Check, cells_to_text};

/// How much of an audit is done.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditProgress(Arc<AtomicI64>);

impl AuditProgress {
    fn set(&self, done: usize, of: usize) {
        let percent = (done * 100 / of.max(1)) as i64;
        self.0.store(percent, Ordering::Relaxed);
    }

    /// In percent.
    pub(crate) fn percent(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The audit.
impl Store {
    /// Checks every invariant, and returns the violations. Safe beside running servers.
    pub async fn audit(&self) -> Result<Vec<AuditViolation>, StoreError> {
        self.audit_with(&AuditProgress::default()).await
    }

    /// The same, and notes in `progress` how far it is.
    pub(crate) async fn audit_with(
        &self,
        progress: &AuditProgress,
    ) -> Result<Vec<AuditViolation>, StoreError> {
        match &*self.readers {
            Readers::Sqlite { path, .. } => {
                // It reads the whole database, so it runs on a thread for blocking work.
                let (path, progress) = (path.clone(), progress.clone());
                tokio::task::spawn_blocking(move || audit_sqlite(&path, &progress))
                    .await
                    .unwrap_or_else(|e| Err(StoreError::Broken(format!("the audit ended: {e}"))))
            }
            Readers::Postgres { config, .. } => {
                let mut connection = postgres::Connection::open(config).await?;
                let mut tx = Tx::Postgres(connection.begin_snapshot());
                Ok(check_all(&mut tx, progress).await?)
            }
        }
    }
}

fn audit_sqlite(path: &Path, progress: &AuditProgress) -> Result<Vec<AuditViolation>, StoreError> {
    let conn = sqlite::open_reader(path)?;
    sqlite::script(&conn, "BEGIN")?;
    let found = check_all(&mut Tx::Sqlite(sqlite::Transaction::new(&conn)), progress)
        .now_or_never()
        .unwrap_or_else(|| unreachable!("SQLite answers without waiting"))?;
    sqlite::script(&conn, "COMMIT")?;
    Ok(found)
}

/// Runs every check in the snapshot of `tx`.
async fn check_all(
    tx: &mut Tx<'_>,
    progress: &AuditProgress,
) -> Result<Vec<AuditViolation>, DbError> {
    let mut found = Vec::new();
    let groups = [
        money::CHECKS,
        tasks::CHECKS,
        chats::CHECKS,
        usage::CHECKS,
        budgets::CHECKS,
    ];
    let checks: Vec<&Check> = groups.into_iter().flatten().collect();
    // Those below take about as long as a check each.
    let steps = checks.len() + 3;
    for (done, check) in checks.into_iter().enumerate() {
        progress.set(done, steps);
        for mut row in tx.query(&check.sql, &[]).await? {
            found.push(AuditViolation {
                check: check.name,
                subject: row.text(0)?,
                detail: format!("{}: {}", check.details, cells_to_text(&row, 1)),
            });
        }
    }
    charges::check_amounts(tx, &mut found).await?;
    progress.set(steps - 2, steps);
    charges::check_delivered_units(tx, &mut found).await?;
    progress.set(steps - 1, steps);
    chats::check_amounts(tx, &mut found).await?;
    Ok(found)
}
