//! Keys in the admin API: create, change, revoke, rotate, list.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::{Amount, Millis};

use super::json::{amount_json, opt_time_json, time_json};
use super::pages::{PageStart, page_args};
use super::request::AdminRequest;
use super::write::{AdminChange, AdminRejection, AdminReply, AdminResult};
use super::write::{Applied, Change};
use crate::access_changes::record_key_change;
use crate::db::{DbError, Sql, args};
use crate::db::{list_arg, one_of};
use crate::error::StoreError;
use crate::keys::{KEY_BY_ID, Key, NewKey, insert_key, read_key, select_keys};
use crate::store::Store;
use crate::users::USER_BY_ID;
use crate::writer::AccountIds;
use crate::writer::batch::Batch;

const UPDATE_KEY: Sql = Sql::both(
    "UPDATE keys SET label = $1, quota = $2, rpm = $3, tpm = $4, max_concurrency = $5, models = $6, bare_envelope = $7,
                     expires_at = $8, revoked_at = $9, hash = $10, hint = $11, trace_content = $12, version = version + 1
     WHERE id = $13 AND version = $14",
);
const END_OTHER_SESSIONS: Sql =
    Sql::both("DELETE FROM portal_sessions WHERE key_id = $1 AND id <> $2");
const SET_PREVIOUS_HASH: Sql =
    Sql::both("UPDATE keys SET previous_hash = $1, previous_valid_until = $2 WHERE id = $3");
macro_rules! list_keys {
    ($database:ident, $($user:tt)+) => {
        concat!(
            select_keys!(),
            " WHERE (k.created_at, k.id) < ($1, $2) AND ", $($user)+,
            " AND (CAST($4 AS BIGINT) IS NULL OR (k.revoked_at IS NOT NULL) = (CAST($4 AS BIGINT) = 1))
             ORDER BY k.created_at DESC, k.id DESC LIMIT $5"
        )
    };
}
const LIST_KEYS: Sql = Sql::per_database(
    list_keys!(sqlite, one_of!(sqlite "k.user_id" "$3")),
    list_keys!(postgres, one_of!(postgres "k.user_id" "$3")),
);
const KEYS_OF_USER: Sql = Sql::both(list_keys!(both, "k.user_id = $3"));

/// A key to create, for a user who is given by id.
#[derive(Debug, Clone)]
pub struct NewAdminKey {
    /// Its user.
    pub user_id: String,
    /// The key; the user name in it is ignored.
    pub key: NewKey,
}

/// Changes of a key; `None` changes nothing, `Some(None)` removes a limit.
#[derive(Debug, Clone, Default)]
pub struct KeyPatch {
    /// A label for people.
    pub name: Option<String>,
    /// The most that it may spend in total, never less than what it has used, holds and has reserved.
    pub quota: Option<Option<Amount>>,
    /// POST requests in a sliding minute.
    pub rpm: Option<Option<u32>>,
    /// Chat tokens in a sliding minute.
    pub tpm: Option<Option<u32>>,
    /// Requests in flight.
    pub max_concurrency: Option<Option<u32>>,
    /// The models it may use.
    pub models: Option<Option<Vec<String>>>,
    /// When it expires.
    pub expires_at: Option<Option<Millis>>,
    /// Whether chat responses come without the gateway's envelope.
    pub bare_envelope: Option<bool>,
    /// Whether what its chats say is recorded in traces.
    pub trace_content: Option<bool>,
}

/// Filters of the list of keys.
#[derive(Debug, Clone, Default)]
pub struct KeyFilter {
    /// Only of these users.
    pub user_ids: Option<Vec<String>>,
    /// Whether to list only revoked keys, or only others.
    pub revoked: Option<bool>,
}

impl Key {
    /// The key as a JSON object of the admin API.
    pub fn to_admin_json(&self) -> Value {
        let mut shown = json!({
            "id": self.id,
            "name": self.label,
            "user_id": self.user_id,
            "hint": self.hint,
            "quota": self.quota.map(amount_json),
            "used": amount_json(self.used),
            "held": amount_json(self.held),
            "rpm": self.limits.rates.rpm,
            "tpm": self.limits.rates.tpm,
            "max_concurrency": self.limits.rates.max_concurrency,
            "models": self.limits.models,
            "envelope": if self.limits.bare_envelope { "none" } else { "standard" },
            "created_at": time_json(self.created_at),
            "expires_at": opt_time_json(self.limits.expires_at),
            "revoked_at": opt_time_json(self.revoked_at),
            "previous_valid_until": opt_time_json(self.previous_valid_until),
            "version": self.version,
        });
        if self.limits.trace_content {
            shown["trace_content"] = json!(true);
        }
        shown
    }

    /// The key as a JSON object of the trail: without money, whose movements are in the ledger.
    pub(super) fn to_trail_json(&self) -> Value {
        let mut object = self.to_admin_json();
        if let Some(members) = object.as_object_mut() {
            members.retain(|name, _| !["held", "used"].contains(&name.as_str()));
        }
        object
    }

    pub(super) fn reply(&self, status: u16) -> AdminReply {
        AdminReply::new(status, self.to_admin_json(), Some(self.version))
    }
}

/// Keys, for the admin API.
impl Store {
    /// Creates a key.
    pub async fn admin_create_key(&self, request: &AdminRequest, new: NewAdminKey) -> AdminResult {
        self.admin_write(request, CreateKey(new)).await
    }

    /// Changes a key that has the version `if_match`.
    pub async fn admin_update_key(
        &self,
        request: &AdminRequest,
        key_id: &str,
        if_match: i64,
        patch: KeyPatch,
    ) -> AdminResult {
        if matches!(patch.quota, Some(Some(_)))
            && let Some(key) = self.key(key_id).await?
        {
            self.reclaim_grants(&key.user_id, request.now).await?;
        }
        let edit = KeyEdit::Patch { if_match, patch };
        self.admin_edit_key(request, key_id, edit).await
    }

    /// Revokes a key. If the key is already revoked, nothing changes.
    pub async fn admin_revoke_key(&self, request: &AdminRequest, key_id: &str) -> AdminResult {
        self.admin_edit_key(request, key_id, KeyEdit::Revoke).await
    }

    /// Gives a key another secret, which has this hash and hint. The old one is valid until `previous_valid_until`. Ends the key's sessions of the
    /// portal except `kept_session`, the one that rotates it.
    pub async fn admin_rotate_key(
        &self,
        request: &AdminRequest,
        key_id: &str,
        hash: String,
        hint: String,
        previous_valid_until: Millis,
        kept_session: Option<&str>,
    ) -> AdminResult {
        let edit = KeyEdit::Rotate {
            hash,
            hint,
            previous_valid_until,
            kept_session: kept_session.map(str::to_owned),
        };
        self.admin_edit_key(request, key_id, edit).await
    }

    async fn admin_edit_key(
        &self,
        request: &AdminRequest,
        key_id: &str,
        edit: KeyEdit,
    ) -> AdminResult {
        let key_id = key_id.to_owned();
        self.admin_write(request, EditKey { key_id, edit }).await
    }

    /// Keys, newest first.
    pub async fn admin_list_keys(
        &self,
        filter: &KeyFilter,
        after: Option<&PageStart>,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        let (at, id) = page_args(after);
        let revoked = filter.revoked.map(i64::from);
        let list = list_arg(filter.user_ids.as_ref());
        let (sql, users) = match filter.user_ids.as_deref() {
            Some([one]) => (&KEYS_OF_USER, Some(one)),
            _ => (&LIST_KEYS, list.as_ref()),
        };
        let mut rows = self
            .query_slow(sql, args![at, id, users, revoked, limit as i64])
            .await?;
        Ok(rows.iter_mut().map(read_key).collect::<Result<_, _>>()?)
    }
}

/// The key in this batch; `None` if there is none.
pub(super) async fn find_key(
    batch: &mut Batch<'_, '_>,
    key_id: &str,
) -> Result<Option<Key>, DbError> {
    let Some(mut row) = batch.first(&KEY_BY_ID, args![key_id]).await? else {
        return Ok(None);
    };
    let mut key = read_key(&mut row)?;
    // The batch writes its movements of money only at its end.
    let [held, used] = batch.balances.moved_of_key(key_id);
    key.held += held;
    key.used += used;
    Ok(Some(key))
}

pub(super) struct CreateKey(pub(super) NewAdminKey);

#[async_trait(?Send)]
impl AdminChange for CreateKey {
    /// Moves no money. The user's row, which the new row references, is locked here so that all rows are locked in the same order.
    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::user(&self.0.user_id)
    }

    async fn apply(
        &self,
        _request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let NewAdminKey { user_id, key } = &self.0;
        if batch.first(&USER_BY_ID, args![user_id]).await?.is_none() {
            return Ok(Applied::Rejected(AdminRejection::Invalid {
                field: "user_id",
                message: format!("there is no user {user_id:?}"),
            }));
        }
        insert_key(batch, key, user_id).await?;
        let missing = || DbError::Failed(format!("key {} was not inserted", key.id));
        let created = find_key(batch, &key.id).await?.ok_or_else(missing)?;
        Ok(Applied::Changed(Change {
            action: "key.create",
            object_type: "key",
            object_id: created.id.clone(),
            before: None,
            after: Some(created.to_trail_json()),
            reply: created.reply(201),
        }))
    }
}

struct EditKey {
    key_id: String,
    edit: KeyEdit,
}

enum KeyEdit {
    Patch {
        if_match: i64,
        patch: KeyPatch,
    },
    Revoke,
    Rotate {
        hash: String,
        hint: String,
        previous_valid_until: Millis,
        kept_session: Option<String>,
    },
}

impl KeyPatch {
    fn apply_to(&self, key: &mut Key) {
        if let Some(name) = &self.name {
            name.clone_into(&mut key.label);
        }
        key.quota = self.quota.unwrap_or(key.quota);
        let limits = &mut key.limits;
        limits.rates.rpm = self.rpm.unwrap_or(limits.rates.rpm);
        limits.rates.tpm = self.tpm.unwrap_or(limits.rates.tpm);
        limits.rates.max_concurrency = self.max_concurrency.unwrap_or(limits.rates.max_concurrency);
        if let Some(models) = &self.models {
            limits.models.clone_from(models);
        }
        limits.expires_at = self.expires_at.unwrap_or(limits.expires_at);
        limits.bare_envelope = self.bare_envelope.unwrap_or(limits.bare_envelope);
        limits.trace_content = self.trace_content.unwrap_or(limits.trace_content);
    }
}

impl KeyEdit {
    /// The key after the edit, with its old version.
    fn apply_to(&self, key: &Key, now: Millis) -> Result<Key, AdminRejection> {
        let mut edited = key.clone();
        match self {
            Self::Patch { if_match, .. } if *if_match != key.version => {
                return Err(AdminRejection::Stale {
                    current: key.to_admin_json(),
                    version: key.version,
                });
            }
            Self::Patch { patch, .. } => patch.apply_to(&mut edited),
            Self::Revoke => edited.revoked_at = key.revoked_at.or(Some(now)),
            Self::Rotate { .. } if key.revoked_at.is_some() => {
                let message = "the key is revoked: create another one";
                return Err(AdminRejection::conflict("already_finished", None, message));
            }
            Self::Rotate {
                hash,
                hint,
                previous_valid_until,
                ..
            } => {
                hash.clone_into(&mut edited.hash);
                hint.clone_into(&mut edited.hint);
                edited.previous_valid_until = Some(*previous_valid_until);
            }
        }
        Ok(edited)
    }

    fn action(&self) -> &'static str {
        match self {
            Self::Patch { .. } => "key.update",
            Self::Revoke => "key.revoke",
            Self::Rotate { .. } => "key.rotate",
        }
    }
}

#[async_trait(?Send)]
impl AdminChange for EditKey {
    /// Moves no money. The key's row is locked here so that all rows are locked in the same order.
    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::key(&self.key_id)
    }

    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let Some(key) = find_key(batch, &self.key_id).await? else {
            return Ok(AdminRejection::NotFound.into());
        };
        let mut edited = match self.edit.apply_to(&key, request.now) {
            Ok(edited) => edited,
            Err(rejection) => return Ok(rejection.into()),
        };
        if edited == key {
            return Ok(Applied::Unchanged(key.reply(200)));
        }
        if edited.quota != key.quota
            && let Err(spent) = batch.balances.set_quota(&key.id, edited.quota)?
        {
            return Ok(AdminRejection::conflict(
                "insufficient_balance",
                Some("quota"),
                format!(
                    "the key has used and holds {spent}: the quota must be at least that; revoke the key to stop it"
                ),
            )
            .into());
        }
        edited.version += 1;
        update_key(batch, &key, &edited)?;
        if let KeyEdit::Rotate { kept_session, .. } = &self.edit {
            let kept = kept_session.as_deref().unwrap_or_default();
            batch.queue(&END_OTHER_SESSIONS, args![&key.id, kept])?;
        }
        if edited.quota != key.quota {
            edited.insert_quota_entry(batch, request.now)?;
        }
        record_key_change(batch, &key.id)?;
        Ok(Applied::Changed(Change {
            action: self.edit.action(),
            object_type: "key",
            object_id: key.id.clone(),
            before: Some(key.to_trail_json()),
            after: Some(edited.to_trail_json()),
            reply: edited.reply(200),
        }))
    }
}

pub(super) fn update_key(
    batch: &mut Batch<'_, '_>,
    key: &Key,
    edited: &Key,
) -> Result<(), DbError> {
    let [rpm, tpm, max_concurrency] = edited.limits.rates.to_columns();
    let models = edited.limits.models_to_column();
    if edited.hash != key.hash {
        let args = args![&key.hash, edited.previous_valid_until, &key.id];
        batch.queue_one(&SET_PREVIOUS_HASH, args)?;
    }
    batch.queue_one(
        &UPDATE_KEY,
        args![
            &edited.label,
            edited.quota,
            rpm,
            tpm,
            max_concurrency,
            models.as_ref(),
            edited.limits.bare_envelope,
            edited.limits.expires_at,
            edited.revoked_at,
            &edited.hash,
            &edited.hint,
            edited.limits.trace_content,
            &key.id,
            key.version
        ],
    )
}
