//! Admin writes: one transaction contains the change, its event, and the stored reply for requests that repeat its idempotency key.

use async_trait::async_trait;
use serde_json::Value;
use tollgate_core::id;

use super::events::{NewEvent, append_event};
use super::request::AdminRequest;
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::task_versions::TaskVersions;
use crate::writer::batch::Batch;
use crate::writer::{AccountIds, Write};

const ADMIN_WRITE: Sql = Sql::both(
    "SELECT write_id, fingerprint, status, body, version FROM admin_writes WHERE actor = $1 AND path = $2 AND key = $3",
);
const INSERT_ADMIN_WRITE: Sql = Sql::both(
    "INSERT INTO admin_writes (actor, path, key, write_id, fingerprint, status, body, version, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
);

/// The reply to an admin write.
#[derive(Debug, Clone, PartialEq)]
pub struct AdminReply {
    /// The HTTP status.
    pub status: u16,
    /// The object, without secrets; null if there is no body.
    pub body: Value,
    /// The object's version, if it has one.
    pub version: Option<i64>,
    /// Whether this is the stored reply to an earlier request with the same idempotency key.
    pub is_replay: bool,
}

impl AdminReply {
    /// A reply with this status and object.
    pub(crate) fn new(status: u16, body: Value, version: Option<i64>) -> Self {
        Self {
            status,
            body,
            version,
            is_replay: false,
        }
    }
}

/// Why an admin write changed nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum AdminRejection {
    /// The object does not exist.
    NotFound,
    /// The object has another version than the request names.
    Stale {
        /// The object in its current state.
        current: Value,
        /// Its version.
        version: i64,
    },
    /// The idempotency key was used with another body.
    IdempotencyKeyReused,
    /// A member of the request is invalid for the object in its current state.
    Invalid {
        /// The member.
        field: &'static str,
        /// What is allowed.
        message: String,
    },
    /// The state of the object does not allow the change.
    Conflict {
        /// A code for programs, such as `name_taken`.
        code: &'static str,
        /// The member that conflicts, if one does.
        field: Option<&'static str>,
        /// A sentence for people.
        message: String,
    },
}

impl AdminRejection {
    pub(crate) fn conflict(
        code: &'static str,
        field: Option<&'static str>,
        message: impl Into<String>,
    ) -> Self {
        Self::Conflict {
            code,
            field,
            message: message.into(),
        }
    }
}

/// What an admin write returns.
pub type AdminResult = Result<Result<AdminReply, AdminRejection>, StoreError>;

/// A change that was applied within a batch, with its entry in the trail.
pub(crate) struct Change {
    /// `noun.verb`.
    pub(crate) action: &'static str,
    pub(crate) object_type: &'static str,
    /// The object's id, or its name if it has none.
    pub(crate) object_id: String,
    /// The object without money and secrets; `None` if it did not exist.
    pub(crate) before: Option<Value>,
    /// The object after the change; `None` if it no longer exists.
    pub(crate) after: Option<Value>,
    pub(crate) reply: AdminReply,
}

/// The outcome of applying a change.
pub(crate) enum Applied {
    Changed(Change),
    /// Nothing had to be changed, so no event is written.
    Unchanged(AdminReply),
    /// Nothing was written.
    Rejected(AdminRejection),
}

impl From<AdminRejection> for Applied {
    fn from(rejection: AdminRejection) -> Self {
        Self::Rejected(rejection)
    }
}

/// A kind of admin write. It is applied again if its batch failed, so it keeps its arguments.
#[async_trait(?Send)]
pub(crate) trait AdminChange: Send + 'static {
    /// As [`Write::accounts`].
    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::default()
    }

    /// Applies the change. If this returns a rejection, it has written nothing.
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError>;

    /// Raises the versions of the tasks whose records it changed, after the commit.
    fn note_changed_tasks(&self, _versions: &TaskVersions) {}
}

/// Admin writes.
impl Store {
    /// Applies a change with its event and, if the request has an idempotency key, stores the reply for repeated requests.
    pub(crate) async fn admin_write<C: AdminChange>(
        &self,
        request: &AdminRequest,
        change: C,
    ) -> AdminResult {
        let written = self.write(AdminWrite {
            request: request.clone(),
            write_id: id::short_id("write_"),
            change,
        });
        let written = written.await;
        // A refund changes an ended task or chat, which may be read from the replica.
        if let Some(replica) = &self.replica {
            replica.note_change();
        }
        written
    }
}

struct AdminWrite<C> {
    request: AdminRequest,
    /// Identifies this write if the reply to its commit was lost.
    write_id: String,
    change: C,
}

#[async_trait(?Send)]
impl<C: AdminChange> Write for AdminWrite<C> {
    type Out = Result<AdminReply, AdminRejection>;

    fn accounts(&self) -> AccountIds<'_> {
        self.change.accounts()
    }

    fn note_changed_tasks(&self, _: &Self::Out, versions: &TaskVersions) {
        self.change.note_changed_tasks(versions);
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Self::Out, DbError> {
        if self.request.idempotency.is_some() || batch.commit_in_doubt {
            let [actor, path, key] = self.record_key();
            let record = batch.first(&ADMIN_WRITE, args![actor, path, key]).await?;
            if let Some(record) = record {
                return self.replay(record);
            }
        }
        let change = match self.change.apply(&self.request, batch).await? {
            Applied::Changed(change) => change,
            Applied::Unchanged(reply) => {
                if self.request.idempotency.is_some() {
                    self.insert_record(batch, &reply)?;
                }
                return Ok(Ok(reply));
            }
            Applied::Rejected(rejection) => return Ok(Err(rejection)),
        };
        let event = NewEvent {
            request: &self.request,
            action: change.action,
            object_type: change.object_type,
            object_id: &change.object_id,
            before: change.before.as_ref(),
            after: change.after.as_ref(),
        };
        append_event(batch, &event).await?;
        self.insert_record(batch, &change.reply)?;
        Ok(Ok(change.reply))
    }
}

impl<C: AdminChange> AdminWrite<C> {
    /// Actor, path and key of the record.
    fn record_key(&self) -> [&str; 3] {
        match &self.request.idempotency {
            Some(idempotency) => [&idempotency.caller, &idempotency.path, &idempotency.key],
            None => ["", "", &self.write_id],
        }
    }

    fn insert_record(&self, batch: &mut Batch<'_, '_>, reply: &AdminReply) -> Result<(), DbError> {
        let [actor, path, key] = self.record_key();
        let fingerprint = self.request.idempotency.as_ref();
        let fingerprint = fingerprint.map_or("", |idempotency| idempotency.fingerprint.as_str());
        let body = reply.body.to_string();
        batch.queue(
            &INSERT_ADMIN_WRITE,
            args![
                actor,
                path,
                key,
                &self.write_id,
                fingerprint,
                i64::from(reply.status),
                &body,
                reply.version,
                self.request.now
            ],
        )
    }

    /// The reply in the record of an earlier request or of this write itself; a rejection if the record is of another request.
    fn replay(&self, mut record: Row) -> Result<Result<AdminReply, AdminRejection>, DbError> {
        let is_own = record.text(0)? == self.write_id;
        let fingerprint = record.text(1)?;
        let expected = self.request.idempotency.as_ref();
        if expected.is_some_and(|expected| expected.fingerprint != fingerprint) {
            return Ok(Err(AdminRejection::IdempotencyKeyReused));
        }
        let body = record.text(3)?;
        Ok(Ok(AdminReply {
            status: u16::try_from(record.int(2)?).unwrap_or(200),
            body: serde_json::from_str(&body).map_err(|e| {
                DbError::UnexpectedData(format!("the reply of an admin write: {e}"))
            })?,
            version: record.opt_int(4)?,
            is_replay: !is_own,
        }))
    }
}
