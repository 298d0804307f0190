//! Writes of users in the portal: signing in with an API key, and creating keys with at most the limits of their own.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::Millis;
use tollgate_core::id;

use super::keys::{NewAdminKey, find_key, update_key};
use super::request::AdminRequest;
use super::sessions::{MAX_AGE, MAX_IDLE, SignInAttempt, delete_attempt};
use super::sign_in_nonce::use_nonce;
use super::write::{AdminChange, AdminRejection, AdminReply, AdminResult};
use super::write::{Applied, Change};
use crate::access_changes::record_key_change;
use crate::db::{DbError, Sql, args};
use crate::error::StoreError;
use crate::keys::insert_key;
use crate::ledger::account::Rejection;
use crate::store::Store;
use crate::writer::batch::Batch;
use crate::writer::{AccountIds, Write};

const INSERT_SESSION: Sql = Sql::both(
    "INSERT INTO portal_sessions (hash, id, key_id, created_at, last_seen_at) VALUES ($1, $2, $3, $4, $4)",
);
const SESSION_BY_HASH: Sql = Sql::both(
    "SELECT id, key_id, last_seen_at FROM portal_sessions WHERE hash = $1 AND last_seen_at > $2 AND created_at > $3",
);
const DELETE_SESSION: Sql = Sql::both("DELETE FROM portal_sessions WHERE id = $1");
const SET_LAST_SEEN: Sql = Sql::both("UPDATE portal_sessions SET last_seen_at = $1 WHERE id = $2");
const SET_PARENT: Sql = Sql::both("UPDATE keys SET parent_key_id = $1 WHERE id = $2");
const PARENT: Sql = Sql::both("SELECT COALESCE(parent_key_id, '') FROM keys WHERE id = $1");

/// A session of the portal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortalSession {
    /// `ses_` and 16 random characters; not the secret.
    pub id: String,
    /// The key that its user signed in with.
    pub key_id: String,
    /// When it was used last, to a minute.
    pub last_seen_at: Millis,
}

/// A new session of the portal.
#[derive(Debug, Clone)]
pub struct NewPortalSession {
    /// SHA-256 of its secret, in hex.
    pub hash: String,
    /// The key that its user signs in with.
    pub key_id: String,
    /// The key's user.
    pub user_id: String,
    /// The attempt to remove from the failed ones.
    pub attempt: SignInAttempt,
    /// For a sign-in by an OpenID provider: the hash of its nonce, which can be used once.
    pub nonce_hash: Option<String>,
}

/// The portal.
impl Store {
    /// Begins a session of the portal.
    pub async fn begin_portal_session(
        &self,
        request: &AdminRequest,
        new: NewPortalSession,
    ) -> AdminResult {
        let id = id::short_id("ses_");
        self.admin_write(request, BeginSession { id, new }).await
    }

    /// The session of the portal with that hash, if it has not ended.
    pub async fn portal_session_by_hash(
        &self,
        hash: &str,
        now: Millis,
    ) -> Result<Option<PortalSession>, StoreError> {
        let args = args![hash, now - MAX_IDLE, now - MAX_AGE];
        let read = |row: &mut crate::db::Row| {
            Ok(PortalSession {
                id: row.text(0)?,
                key_id: row.text(1)?,
                last_seen_at: row.int(2)?,
            })
        };
        self.first(&SESSION_BY_HASH, args, read).await
    }

    /// Ends a session of the portal.
    pub async fn end_portal_session(&self, request: &AdminRequest, id: &str) -> AdminResult {
        let id = id.to_owned();
        self.admin_write(request, EndSession { id }).await
    }

    /// Records that a session of the portal was used, without waiting for the write.
    pub fn note_portal_session_use(&self, id: &str, now: Millis) {
        let id = id.to_owned();
        self.writer.write_detached(NoteSessionUse { id, now });
    }

    /// Creates a key for the user of another key, the parent. If the parent has a quota, the new key's quota is deducted from it.
    pub async fn create_own_key(
        &self,
        request: &AdminRequest,
        parent_key_id: &str,
        new: NewAdminKey,
    ) -> AdminResult {
        let parent_key_id = parent_key_id.to_owned();
        if new.key.quota.is_some() {
            self.reclaim_grants(&new.user_id, request.now).await?;
        }
        let create = CreateOwnKey { parent_key_id, new };
        self.admin_write(request, create).await
    }

    /// The key with which the user created a key; `None` if an operator created it, or there is no such key.
    pub async fn parent_key_id(&self, key_id: &str) -> Result<Option<String>, StoreError> {
        let parent = self
            .first(&PARENT, args![key_id], |row| row.text(0))
            .await?;
        Ok(parent.filter(|id| !id.is_empty()))
    }
}

struct BeginSession {
    id: String,
    new: NewPortalSession,
}

#[async_trait(?Send)]
impl AdminChange for BeginSession {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let new = &self.new;
        if let Some(nonce_hash) = &new.nonce_hash
            && let Err(rejection) = use_nonce(batch, nonce_hash, request.now).await?
        {
            return Ok(rejection.into());
        }
        let args = args![&new.hash, &self.id, &new.key_id, request.now];
        batch.queue(&INSERT_SESSION, args)?;
        delete_attempt(batch, &new.attempt)?;
        let after = json!({ "id": self.id, "user_id": new.user_id, "key_id": new.key_id });
        Ok(Applied::Changed(Change {
            action: "session.sign_in",
            object_type: "user",
            object_id: new.user_id.clone(),
            before: None,
            after: Some(after.clone()),
            reply: AdminReply::new(201, after, None),
        }))
    }
}

struct EndSession {
    id: String,
}

#[async_trait(?Send)]
impl AdminChange for EndSession {
    async fn apply(
        &self,
        _request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        batch.queue(&DELETE_SESSION, args![&self.id])?;
        Ok(Applied::Changed(Change {
            action: "session.sign_out",
            object_type: "session",
            object_id: self.id.clone(),
            before: None,
            after: None,
            reply: AdminReply::new(204, Value::Null, None),
        }))
    }
}

struct NoteSessionUse {
    id: String,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for NoteSessionUse {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(&SET_LAST_SEEN, args![self.now, &self.id])
    }
}

struct CreateOwnKey {
    parent_key_id: String,
    new: NewAdminKey,
}

impl CreateOwnKey {
    /// Deducts the new key's quota from that of its parent, if the parent has one.
    async fn take_quota(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Result<(), AdminRejection>, DbError> {
        let Some(parent) = find_key(batch, &self.parent_key_id).await? else {
            return Ok(Err(AdminRejection::NotFound));
        };
        if parent.revoked_at.is_some() || parent.user_id != self.new.user_id {
            return Ok(Err(AdminRejection::NotFound));
        }
        let Some(old) = parent.quota else {
            return Ok(Ok(()));
        };
        let invalid = |message: String| AdminRejection::Invalid {
            field: "quota",
            message,
        };
        let Some(quota) = self.new.key.quota else {
            let message = "is required: the key that creates it has a quota";
            return Ok(Err(invalid(message.to_owned())));
        };
        if let Err(rejection) = batch.balances.take_quota(&self.parent_key_id, quota)? {
            let available = match rejection {
                Rejection::InsufficientQuota { available } => available,
                _ => return Ok(Err(AdminRejection::NotFound)),
            };
            let message = format!("must be at most {available}, which is left of this key's quota");
            return Ok(Err(invalid(message)));
        }
        let mut edited = parent.clone();
        edited.quota = Some(old - quota);
        edited.version += 1;
        update_key(batch, &parent, &edited)?;
        edited.insert_quota_entry(batch, request.now)?;
        Ok(Ok(()))
    }
}

#[async_trait(?Send)]
impl AdminChange for CreateOwnKey {
    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.new.user_id, &self.parent_key_id)
    }

    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        if let Err(rejection) = self.take_quota(request, batch).await? {
            return Ok(rejection.into());
        }
        let NewAdminKey { user_id, key } = &self.new;
        insert_key(batch, key, user_id).await?;
        batch.queue_one(&SET_PARENT, args![&self.parent_key_id, &key.id])?;
        record_key_change(batch, &self.parent_key_id)?;
        let missing = || DbError::Failed(format!("key {} was not inserted", key.id));
        let created = find_key(batch, &key.id).await?.ok_or_else(missing)?;
        let mut after = created.to_trail_json();
        after["parent_key_id"] = json!(self.parent_key_id);
        Ok(Applied::Changed(Change {
            action: "key.create",
            object_type: "key",
            object_id: created.id.clone(),
            before: None,
            after: Some(after),
            reply: created.reply(201),
        }))
    }
}
