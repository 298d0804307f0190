//! API keys: the stored columns, with the columns of the user that authentication needs; inserting and finding keys. The admin API and commands
//! change them (`admin/keys.rs`, `admin/commands.rs`).

use tollgate_core::{Amount, Millis};

use crate::access_changes::record_key_change;
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::ledger::account::Account;
use crate::ledger::entries::{grant_quota, set_quota};
use crate::store::Store;
use crate::users::RateLimits;
use crate::writer::batch::Batch;

/// The columns that [`read_key`] reads, in its order. Grants of nodes for chats are not included in what is held.
macro_rules! select_keys {
    () => {
        "SELECT k.id, k.label, k.user_id, u.name, k.quota, \
         k.held - COALESCE((SELECT CAST(SUM(g.amount) AS BIGINT) FROM grants g WHERE g.user_id = k.user_id AND g.key_id = k.id), 0), \
         k.used, k.rpm, k.tpm, k.max_concurrency, \
         k.models, k.bare_envelope, k.expires_at, k.revoked_at, u.disabled_at, u.unlimited, u.rpm, u.tpm, u.max_concurrency, \
         k.hash, k.hint, k.previous_valid_until, k.created_at, k.version, u.budgets + k.budgets, k.trace_content \
         FROM keys k JOIN users u ON u.id = k.user_id"
    };
}
pub(crate) use select_keys;
pub(crate) const KEY_BY_HASH: Sql = Sql::both(concat!(select_keys!(), " WHERE k.hash = $1"));
pub(crate) const KEY_BY_PREVIOUS_HASH: Sql =
    Sql::both(concat!(select_keys!(), " WHERE k.previous_hash = $1"));
pub(crate) const KEY_BY_ID: Sql = Sql::both(concat!(select_keys!(), " WHERE k.id = $1"));
const ALL_KEYS: Sql = Sql::both(concat!(select_keys!(), " ORDER BY k.created_at, k.id"));
const INSERT_KEY: Sql = Sql::both(
    "INSERT INTO keys (id, user_id, label, hash, quota, held, used, rpm, tpm, max_concurrency, models, bare_envelope,
                       expires_at, created_at, hint, trace_content)
     VALUES ($1, $2, $3, $4, $5, 0, 0, $6, $7, $8, $9, $10, $11, $12, $13, $14)
     ON CONFLICT DO NOTHING",
);
/// A key to create.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// `key_` and 16 random characters.
    pub id: String,
    /// SHA-256 of the key, in hex.
    pub hash: String,
    /// The first characters of the key, for people.
    pub hint: String,
    /// The name of its user.
    pub user: String,
    /// A label for people.
    pub label: String,
    /// The most that it may spend in total; `None` means no limit but its user's.
    pub quota: Option<Amount>,
    /// Its limits.
    pub limits: KeyLimits,
    /// The time of the creation, in Unix milliseconds.
    pub now: Millis,
}

/// The permissions and limits of a key, beside its quota.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyLimits {
    /// Its own rate limits, beside those of its user.
    pub rates: RateLimits,
    /// The models it may use; `None` means all.
    pub models: Option<Vec<String>>,
    /// When it expires.
    pub expires_at: Option<Millis>,
    /// Whether chat responses come without the gateway's envelope (`--envelope none`).
    pub bare_envelope: bool,
    /// Whether what its chats say is recorded in traces.
    pub trace_content: bool,
}

/// A key, with the data of its user that authentication needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// `key_` and 16 random characters.
    pub id: String,
    /// A label for people.
    pub label: String,
    /// Its user's id.
    pub user_id: String,
    /// Its user's name.
    pub user: String,
    /// The most that it may spend in total; `None` means no limit but its user's.
    pub quota: Option<Amount>,
    /// Held for unfinished tasks, and for chats whose hold is in the database; grants of nodes are not included (docs/money.md).
    pub held: Amount,
    /// Settled charges.
    pub used: Amount,
    /// Its limits.
    pub limits: KeyLimits,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Millis>,
    /// Whether its user is unlimited.
    pub user_unlimited: bool,
    /// The rate limits of its user.
    pub user_rates: RateLimits,
    /// When its user was disabled, if it was.
    pub user_disabled_at: Option<Millis>,
    /// SHA-256 of the key, in hex.
    pub hash: String,
    /// The first characters of the key; only `sk-` if an earlier version created the key.
    pub hint: String,
    /// When the secret before the last rotation expires. `None` if the key was never rotated.
    pub previous_valid_until: Option<Millis>,
    /// When it was created.
    pub created_at: Millis,
    /// Raised with every change except those of money.
    pub version: i64,
    /// Whether the key or its user has a budget.
    pub has_budget: bool,
}

impl Key {
    /// Whether an amount must be held for a chat request, because the key or its user has a limit.
    pub fn needs_hold(&self) -> bool {
        self.quota.is_some() || !self.user_unlimited || self.has_budget
    }

    /// Inserts a ledger entry that states the key's quota, or that it has none, as of the key's current version.
    pub(crate) fn insert_quota_entry(
        &self,
        batch: &mut Batch<'_, '_>,
        now: Millis,
    ) -> Result<(), DbError> {
        let account = Account {
            user_id: &self.user_id,
            key_id: &self.id,
        };
        set_quota(batch, account, self.quota, self.version, now)
    }
}

/// Keys.
impl Store {
    /// Every key, oldest first.
    pub async fn list_keys(&self) -> Result<Vec<Key>, StoreError> {
        let mut rows = self.query(&ALL_KEYS, &[]).await?;
        Ok(rows.iter_mut().map(read_key).collect::<Result<_, _>>()?)
    }

    /// The key with that id.
    pub async fn key(&self, id: &str) -> Result<Option<Key>, StoreError> {
        self.first(&KEY_BY_ID, args![id], read_key).await
    }

    /// The key with that hash ([`tollgate_core::id::key_hash`]), or with that hash before its last rotation, even after
    /// `previous_valid_until`: if [`Key::hash`] is another, the caller must check that time.
    pub async fn key_by_hash(&self, hash: &str) -> Result<Option<Key>, StoreError> {
        match self.first(&KEY_BY_HASH, args![hash], read_key).await? {
            Some(key) => Ok(Some(key)),
            None => {
                self.first(&KEY_BY_PREVIOUS_HASH, args![hash], read_key)
                    .await
            }
        }
    }
}

/// Inserts a key with the ledger entry of its quota, unless its id exists already.
pub(crate) async fn insert_key(
    batch: &mut Batch<'_, '_>,
    key: &NewKey,
    user_id: &str,
) -> Result<(), DbError> {
    let NewKey {
        id,
        hash,
        hint,
        label,
        quota,
        limits,
        now,
        ..
    } = key;
    let models = limits.models_to_column();
    let [rpm, tpm, max_concurrency] = limits.rates.to_columns();
    let args = args![
        id,
        user_id,
        label,
        hash,
        *quota,
        rpm,
        tpm,
        max_concurrency,
        models.as_ref(),
        limits.bare_envelope,
        limits.expires_at,
        *now,
        hint,
        limits.trace_content
    ];
    let inserted = batch.execute(&INSERT_KEY, args).await?;
    if let (1, Some(quota)) = (inserted, quota) {
        let account = Account {
            user_id,
            key_id: id,
        };
        grant_quota(batch, account, *quota, *now)?;
    }
    record_key_change(batch, id)
}

impl KeyLimits {
    /// The value of the column `models`: a JSON array.
    pub(crate) fn models_to_column(&self) -> Option<String> {
        let models = self.models.as_ref()?;
        Some(serde_json::json!(models).to_string())
    }
}

/// Reads a key from the columns `select_keys`.
pub(crate) fn read_key(row: &mut Row) -> Result<Key, DbError> {
    let models = row.opt_text(10)?;
    Ok(Key {
        id: row.text(0)?,
        label: row.text(1)?,
        user_id: row.text(2)?,
        user: row.text(3)?,
        quota: row.opt_int(4)?.map(Amount::from_nanos),
        held: row.amount(5)?,
        used: row.amount(6)?,
        limits: KeyLimits {
            rates: RateLimits::read(row, 7)?,
            models: models
                .map(|m| {
                    serde_json::from_str(&m)
                        .map_err(|e| DbError::UnexpectedData(format!("models of a key: {e}")))
                })
                .transpose()?,
            bare_envelope: row.int(11)? != 0,
            expires_at: row.opt_int(12)?,
            trace_content: row.int(25)? != 0,
        },
        revoked_at: row.opt_int(13)?,
        user_disabled_at: row.opt_int(14)?,
        user_unlimited: row.int(15)? != 0,
        user_rates: RateLimits::read(row, 16)?,
        hash: row.text(19)?,
        hint: row.text(20)?,
        previous_valid_until: row.opt_int(21)?,
        created_at: row.int(22)?,
        version: row.int(23)?,
        has_budget: row.int(24)? != 0,
    })
}
