//! The audit: checks every invariant of money, tasks, attempts, webhooks and chats in one snapshot of the database.

mod budgets;
mod charges;
mod chats;
mod check;
mod money;
mod tasks;
mod usage;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::FutureExt as _;

pub use check::AuditViolation;

use crate::db::{DbError, Tx, postgres, sqlite};
use crate::error::StoreError;
use crate::store::{Readers, Store};
use check::{Check, cells_to_text};

/// The progress of an audit.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditProgress(Arc<AtomicI64>);

impl AuditProgress {
    fn set(&self, completed: usize, total: usize) {
        let percent = (completed * 100 / total.max(1)) as i64;
        self.0.store(percent, Ordering::Relaxed);
    }

    /// The progress in percent.
    pub(crate) fn percent(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection for audits. A caller that audits often should keep it: after the first audit its statements are prepared.
pub struct Auditor {
    /// `None` after an audit that broke off.
    connection: Option<Connection>,
}

enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(Box<postgres::Connection>),
}

/// The audit.
impl Store {
    /// Checks every invariant, and returns the violations. It may run while servers are running.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn audit(&self) -> Result<Vec<AuditViolation>, StoreError> {
        self.auditor().await?.audit().await
    }

    /// Opens a connection for audits.
    ///
    /// # Errors
    /// If the database cannot be reached.
    pub async fn auditor(&self) -> Result<Auditor, StoreError> {
        let connection = match &*self.readers {
            Readers::Sqlite { path, .. } => Connection::Sqlite(sqlite::open_reader(path)?),
            Readers::Postgres { config, .. } => {
                Connection::Postgres(Box::new(postgres::Connection::open(config).await?))
            }
        };
        let connection = Some(connection);
        Ok(Auditor { connection })
    }
}

impl Auditor {
    /// As [`Store::audit`], on this connection.
    ///
    /// # Errors
    /// If the database cannot be read, or an earlier audit on this connection failed.
    pub async fn audit(&mut self) -> Result<Vec<AuditViolation>, StoreError> {
        self.audit_with(&AuditProgress::default()).await
    }

    /// As `audit`; also sets `progress`.
    pub(crate) async fn audit_with(
        &mut self,
        progress: &AuditProgress,
    ) -> Result<Vec<AuditViolation>, StoreError> {
        let connection = self.connection.take();
        let connection = connection
            .ok_or_else(|| StoreError::Broken("an earlier audit broke off".to_owned()))?;
        let (connection, found) = connection.audit(progress).await?;
        self.connection = Some(connection);
        Ok(found)
    }
}

impl Connection {
    async fn audit(
        self,
        progress: &AuditProgress,
    ) -> Result<(Self, Vec<AuditViolation>), StoreError> {
        match self {
            Self::Sqlite(connection) => {
                // The audit reads the complete database, so it runs on a thread for blocking work.
                let progress = progress.clone();
                let audit = move || {
                    let found = audit_sqlite(&connection, &progress)?;
                    Ok((Self::Sqlite(connection), found))
                };
                tokio::task::spawn_blocking(audit)
                    .await
                    .unwrap_or_else(|e| Err(StoreError::Broken(format!("the audit ended: {e}"))))
            }
            Self::Postgres(mut connection) => {
                let found = audit_postgres(&mut connection, progress).await?;
                Ok((Self::Postgres(connection), found))
            }
        }
    }
}

fn audit_sqlite(
    connection: &rusqlite::Connection,
    progress: &AuditProgress,
) -> Result<Vec<AuditViolation>, StoreError> {
    sqlite::run_script(connection, "BEGIN")?;
    let found = check_all(
        &mut Tx::Sqlite(sqlite::Transaction::new(connection)),
        progress,
    )
    .now_or_never()
    .unwrap_or_else(|| unreachable!("SQLite returns without waiting"))?;
    sqlite::run_script(connection, "COMMIT")?;
    Ok(found)
}

async fn audit_postgres(
    connection: &mut postgres::Connection,
    progress: &AuditProgress,
) -> Result<Vec<AuditViolation>, StoreError> {
    let mut tx = Tx::Postgres(connection.begin_snapshot());
    let found = check_all(&mut tx, progress).await?;
    if let Tx::Postgres(tx) = tx {
        // The audit has written nothing.
        tx.roll_back().await?;
    }
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
    // Each of the steps below takes about as long as a check.
    let steps = checks.len() + 3;
    for (completed, check) in checks.into_iter().enumerate() {
        progress.set(completed, steps);
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
