//! Writes to users and keys: made, credited, disabled, revoked.

use async_trait::async_trait;
use tollgate_core::{Amount, Millis};

use crate::batch::Batch;
use crate::db::{DbError, Sql, args};
use crate::model::{NewKey, RateLimits, Refusal};
use crate::money::{self, Payer};
use crate::writer::{Payers, Write};

const INSERT_USER: Sql = Sql::both(
    "INSERT INTO users (id, name, unlimited, balance, held, used, rpm, tpm, max_concurrency, created_at)
     VALUES ($1, $2, $3, 0, 0, 0, $4, $5, $6, $7)
     ON CONFLICT DO NOTHING",
);
const USER_EXISTS: Sql = Sql::both("SELECT id FROM users WHERE id = $1");
pub(super) const ENTRY_EXISTS: Sql = Sql::both("SELECT ref FROM ledger WHERE ref = $1");
const DISABLE_USER: Sql = Sql::both(
    "UPDATE users SET disabled_at = COALESCE(disabled_at, CAST($1 AS BIGINT)) WHERE id = $2",
);
const INSERT_KEY: Sql = Sql::both(
    "INSERT INTO keys (id, user_id, label, hash, quota, held, used, rpm, tpm, max_concurrency, models, bare_envelope,
                       expires_at, created_at)
     VALUES ($1, $2, $3, $4, $5, 0, 0, $6, $7, $8, $9, $10, $11, $12)
     ON CONFLICT DO NOTHING",
);
const REVOKE_KEY: Sql = Sql::both(
    "UPDATE keys SET revoked_at = COALESCE(revoked_at, CAST($1 AS BIGINT)) WHERE id = $2",
);
const ACCESS_CHANGED: Sql =
    Sql::both("UPDATE meta SET value = value + 1 WHERE name = 'access_version'");

/// Makes a user with what its balance opens with; answers false when the name is taken.
pub(crate) struct CreateUser {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) unlimited: bool,
    pub(crate) opening: Amount,
    pub(crate) rates: RateLimits,
    /// Of the opening credit.
    pub(crate) reference: String,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for CreateUser {
    type Out = bool;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let [rpm, tpm, max_concurrency] = columns(self.rates);
        let args = args![
            &self.id,
            &self.name,
            self.unlimited,
            rpm,
            tpm,
            max_concurrency,
            self.now
        ];
        if batch.execute(&INSERT_USER, args).await? == 0 {
            // Taken, unless it was this very write, tried before.
            return Ok(batch.first(&USER_EXISTS, args![&self.id]).await?.is_some());
        }
        let opened = money::open_account(
            batch,
            &self.reference,
            &self.id,
            self.unlimited,
            self.opening,
            self.now,
        )?;
        opened.map_err(|refusal| DbError::Refused(format!("opening balance: {refusal:?}")))?;
        batch.run(&ACCESS_CHANGED, &[])?;
        Ok(true)
    }
}

/// Adds to a balance, or takes from it. `reference` makes a second try harmless.
pub(crate) struct Credit {
    pub(crate) reference: String,
    pub(crate) user_id: String,
    pub(crate) amount: Amount,
    pub(crate) note: Option<String>,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for Credit {
    type Out = Result<(), Refusal>;

    fn payers(&self) -> Payers<'_> {
        Payers {
            user: Some(&self.user_id),
            key: None,
        }
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Self::Out, DbError> {
        if batch.again
            && batch
                .first(&ENTRY_EXISTS, args![&self.reference])
                .await?
                .is_some()
        {
            return Ok(Ok(()));
        }
        money::credit(
            batch,
            &self.reference,
            &self.user_id,
            self.amount,
            self.note.as_deref(),
            self.now,
        )
    }
}

/// Disables a user; answers false when there is none of that id.
pub(crate) struct DisableUser {
    pub(crate) user_id: String,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for DisableUser {
    type Out = bool;

    /// None of its money moves; its row is locked in its turn.
    fn payers(&self) -> Payers<'_> {
        Payers {
            user: Some(&self.user_id),
            key: None,
        }
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let args = args![self.now, &self.user_id];
        let found = batch.execute(&DISABLE_USER, args).await? == 1;
        batch.run(&ACCESS_CHANGED, &[])?;
        Ok(found)
    }
}

/// Makes a key of a user that exists.
pub(crate) struct CreateKey {
    pub(crate) key: NewKey,
    pub(crate) user_id: String,
}

#[async_trait(?Send)]
impl Write for CreateKey {
    type Out = ();

    /// None of its money moves; the row that the new one points to is locked in its turn.
    fn payers(&self) -> Payers<'_> {
        Payers {
            user: Some(&self.user_id),
            key: None,
        }
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        let NewKey {
            id,
            hash,
            label,
            quota,
            limits,
            now,
            ..
        } = &self.key;
        let models = limits
            .models
            .as_ref()
            .map(|m| serde_json::json!(m).to_string());
        let [rpm, tpm, max_concurrency] = columns(limits.rates);
        let inserted = batch
            .execute(
                &INSERT_KEY,
                args![
                    id,
                    &self.user_id,
                    label,
                    hash,
                    *quota,
                    rpm,
                    tpm,
                    max_concurrency,
                    models.as_ref(),
                    limits.bare_envelope,
                    limits.expires_at,
                    *now
                ],
            )
            .await?;
        if let (1, Some(quota)) = (inserted, quota) {
            let payer = Payer {
                user_id: &self.user_id,
                key_id: id,
            };
            money::grant_quota(batch, payer, *quota, *now)?;
        }
        batch.run(&ACCESS_CHANGED, &[])
    }
}

/// Revokes a key; answers false when there is none of that id.
pub(crate) struct RevokeKey {
    pub(crate) id: String,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for RevokeKey {
    type Out = bool;

    /// None of its money moves; its row is locked in its turn.
    fn payers(&self) -> Payers<'_> {
        Payers {
            user: None,
            key: Some(&self.id),
        }
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let found = batch
            .execute(&REVOKE_KEY, args![self.now, &self.id])
            .await?
            == 1;
        batch.run(&ACCESS_CHANGED, &[])?;
        Ok(found)
    }
}

/// Rates as the columns of users and keys have them.
fn columns(rates: RateLimits) -> [Option<i64>; 3] {
    [rates.rpm, rates.tpm, rates.max_concurrency].map(|limit| limit.map(i64::from))
}
