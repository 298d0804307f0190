//! Audits that the admin API started, with their findings.

use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::Millis;
use tollgate_core::clock::HOUR;

use super::json::{opt_time_json, time_json};
use super::pages::{PageStart, page_args};
use super::request::AdminRequest;
use super::write::{AdminChange, AdminReply, AdminResult, Applied, Change};
use crate::audit::{AuditProgress, AuditViolation};
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

/// Violations of one audit that are stored: if there are more, they have a common cause.
const MAX_VIOLATIONS: usize = 1000;
/// An audit that has not ended after this time is shown as failed: its process is assumed to have ended.
const LONGEST: Millis = 6 * HOUR;
/// How often the progress of an audit is written.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

macro_rules! select_audits {
    () => {
        "SELECT id, started_at, ended_at, violations, progress FROM audits "
    };
}
const AUDIT_BY_ID: Sql = Sql::both(concat!(select_audits!(), "WHERE id = $1"));
const LIST_AUDITS: Sql = Sql::both(concat!(
    select_audits!(),
    "WHERE (started_at, id) < ($1, $2) ORDER BY started_at DESC, id DESC LIMIT $3"
));
const RUNNING_AUDIT: Sql = Sql::both(concat!(
    select_audits!(),
    "WHERE ended_at IS NULL AND started_at > $1 ORDER BY started_at DESC LIMIT 1"
));
const INSERT_AUDIT: Sql = Sql::both("INSERT INTO audits (id, started_at) VALUES ($1, $2)");
const SET_PROGRESS: Sql = Sql::both("UPDATE audits SET progress = $1 WHERE id = $2");
const END_AUDIT: Sql = Sql::both("UPDATE audits SET ended_at = $1, violations = $2 WHERE id = $3");

/// An audit that was started by the admin API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// `audit_` and 16 random characters.
    pub id: String,
    /// When it was started.
    pub started_at: Millis,
    /// When it ended. `None` while it runs, and if its process ended before it.
    pub ended_at: Option<Millis>,
    /// The violations that it found, as a JSON array. `None` until it has ended, and if it could not be finished.
    violations: Option<String>,
    /// Its progress while it runs, in percent.
    progress: i64,
}

impl AuditRecord {
    /// The audit as a JSON object of the admin API at that time.
    pub fn to_json(&self, now: Millis) -> Value {
        let violations = self.violations.as_deref().unwrap_or("[]");
        let violations: Value = serde_json::from_str(violations).unwrap_or_else(|_| json!([]));
        let is_clean = violations.as_array().is_some_and(Vec::is_empty);
        let (state, ok) = match (self.ended_at, &self.violations) {
            (Some(_), Some(_)) => ("done", Some(is_clean)),
            (None, _) if self.started_at + LONGEST > now => ("running", None),
            _ => ("failed", None),
        };
        json!({
            "id": self.id,
            "state": state,
            "ok": ok,
            "violations": violations,
            "progress": if state == "running" { json!(self.progress as f64 / 100.0) } else { json!(1) },
            "started_at": time_json(self.started_at),
            "ended_at": opt_time_json(self.ended_at),
        })
    }

    fn read(row: &mut Row) -> Result<Self, DbError> {
        Ok(Self {
            id: row.text(0)?,
            started_at: row.int(1)?,
            ended_at: row.opt_int(2)?,
            violations: row.opt_text(3)?,
            progress: row.int(4)?,
        })
    }
}

/// Audits.
impl Store {
    /// Records that an audit is started. If one is running, the reply is that one instead. If the id in the reply is `id`, the caller must run the
    /// audit.
    pub async fn admin_start_audit(&self, request: &AdminRequest, id: &str) -> AdminResult {
        self.admin_write(request, StartAudit { id: id.to_owned() })
            .await
    }

    /// Runs the started audit `id` to its end. Returns whether it found no violation.
    pub async fn run_started_audit(
        &self,
        id: &str,
        now: impl Fn() -> Millis,
    ) -> Result<bool, StoreError> {
        let progress = AuditProgress::default();
        let mut audit = pin!(async { self.auditor().await?.audit_with(&progress).await });
        let found = loop {
            match tokio::time::timeout(PROGRESS_INTERVAL, &mut audit).await {
                Ok(found) => break found,
                Err(_) => {
                    let percent = progress.percent();
                    let id = id.to_owned();
                    // If the database accepts no writes now, the progress is outdated for a while, which is no reason to end the audit.
                    let _ = self.write(NoteProgress { id, percent }).await;
                }
            }
        };
        let is_clean = found.as_ref().is_ok_and(Vec::is_empty);
        self.write(EndAudit {
            id: id.to_owned(),
            ended_at: now(),
            violations: found.as_deref().ok().map(violations_json),
        })
        .await?;
        found.map(|_| is_clean)
    }

    /// An audit.
    pub async fn admin_audit(&self, id: &str) -> Result<Option<AuditRecord>, StoreError> {
        self.first(&AUDIT_BY_ID, args![id], AuditRecord::read).await
    }

    /// Audits, newest first.
    pub async fn admin_list_audits(
        &self,
        after: Option<&PageStart>,
        limit: usize,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        let (at, id) = page_args(after);
        let mut rows = self
            .query(&LIST_AUDITS, args![at, id, limit as i64])
            .await?;
        Ok(rows
            .iter_mut()
            .map(AuditRecord::read)
            .collect::<Result<_, _>>()?)
    }
}

fn violations_json(found: &[AuditViolation]) -> String {
    let kept = found.iter().take(MAX_VIOLATIONS);
    Value::Array(kept.map(AuditViolation::to_json).collect()).to_string()
}

struct StartAudit {
    id: String,
}

#[async_trait(?Send)]
impl AdminChange for StartAudit {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let now = request.now;
        let running = batch.first(&RUNNING_AUDIT, args![now - LONGEST]).await?;
        if let Some(mut row) = running {
            let body = AuditRecord::read(&mut row)?.to_json(now);
            return Ok(Applied::Unchanged(AdminReply::new(202, body, None)));
        }
        batch.queue(&INSERT_AUDIT, args![&self.id, now])?;
        let audit = AuditRecord {
            id: self.id.clone(),
            started_at: now,
            ended_at: None,
            violations: None,
            progress: 0,
        };
        Ok(Applied::Changed(Change {
            action: "audit.create",
            object_type: "audit",
            object_id: self.id.clone(),
            before: None,
            after: Some(json!({ "id": self.id })),
            reply: AdminReply::new(202, audit.to_json(now), None),
        }))
    }
}

struct NoteProgress {
    id: String,
    percent: i64,
}

#[async_trait(?Send)]
impl Write for NoteProgress {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(&SET_PROGRESS, args![self.percent, &self.id])
    }
}

struct EndAudit {
    id: String,
    ended_at: Millis,
    violations: Option<String>,
}

#[async_trait(?Send)]
impl Write for EndAudit {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        let violations = self.violations.as_ref();
        batch.queue(&END_AUDIT, args![self.ended_at, violations, &self.id])
    }
}
