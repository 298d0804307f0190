//! Users and keys.

use tollgate_core::{Amount, Millis, id, money};

use super::Store;
use crate::db::args;
use crate::error::StoreError;
use crate::model::{Key, NewKey, RateLimits, Refusal, User};
use crate::ops::{access, read};

/// Users and keys.
impl Store {
    /// Makes a user; `opening` is credited to it, `rates` hold for all its keys together.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where the name is taken or the opening balance cannot be.
    pub async fn create_user(
        &self,
        name: &str,
        unlimited: bool,
        opening: Amount,
        rates: RateLimits,
        now: Millis,
    ) -> Result<User, StoreError> {
        sane(opening)?;
        if opening.is_negative() && !unlimited {
            return Err(StoreError::Invalid(format!(
                "a balance cannot open with {opening}: give 0 or more"
            )));
        }
        let user_id = id::short_id("user_");
        let create = access::CreateUser {
            id: user_id.clone(),
            name: name.to_owned(),
            unlimited,
            opening,
            rates,
            reference: id::short_id("credit_"),
            now,
        };
        if !self.write(create).await? {
            return Err(StoreError::Invalid(format!(
                "there is a user {name:?} already: choose another name"
            )));
        }
        self.user(&user_id)
            .await?
            .ok_or_else(|| StoreError::Broken(format!("user {user_id} is gone")))
    }

    /// Adds to a user's balance or, negative, takes from it; answers the user afterwards.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where there is no such user, or taking would touch what is held.
    pub async fn credit(
        &self,
        name: &str,
        amount: Amount,
        note: Option<&str>,
        now: Millis,
    ) -> Result<User, StoreError> {
        sane(amount)?;
        let user = self.user_named(name).await?;
        if user.balance.checked_add(amount).is_none() {
            return Err(StoreError::Invalid(format!(
                "the balance of {name:?} is {}: {amount} more is beyond what can be counted",
                user.balance
            )));
        }
        let credit = access::Credit {
            reference: id::short_id("credit_"),
            user_id: user.id.clone(),
            amount,
            note: note.map(str::to_owned),
            now,
        };
        match self.write(credit).await? {
            Ok(()) => self.user_named(name).await,
            Err(Refusal::UserBalance { available }) => Err(StoreError::Invalid(format!(
                "only {available} of the balance of {name:?} can be taken: the rest is held or spent"
            ))),
            Err(_) => Err(StoreError::Broken(format!("user {name:?} is gone"))),
        }
    }

    /// Disables a user: its keys answer 403 from then on.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where there is no such user.
    pub async fn disable_user(&self, name: &str, now: Millis) -> Result<User, StoreError> {
        let user_id = self.user_named(name).await?.id;
        let disable = access::DisableUser { user_id, now };
        self.write(disable).await?;
        self.user_named(name).await
    }

    /// Every user, oldest first.
    pub async fn users(&self) -> Result<Vec<User>, StoreError> {
        let mut rows = self.query(&read::USERS, &[]).await?;
        Ok(rows.iter_mut().map(read::user).collect::<Result<_, _>>()?)
    }

    /// The user of that id.
    pub async fn user(&self, id: &str) -> Result<Option<User>, StoreError> {
        self.first(&read::USER, args![id], read::user).await
    }

    /// The user of that name.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where there is none.
    pub async fn user_named(&self, name: &str) -> Result<User, StoreError> {
        self.first(&read::USER_BY_NAME, args![name], read::user)
            .await?
            .ok_or_else(|| {
                StoreError::Invalid(format!(
                    "there is no user {name:?}: see `tollgate user list`"
                ))
            })
    }

    /// Whether there is any user at all.
    pub async fn has_users(&self) -> Result<bool, StoreError> {
        Ok(!self.query(&read::ANY_USER, &[]).await?.is_empty())
    }

    /// Makes a key of a user that exists.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where there is no such user, or the quota cannot be.
    pub async fn create_key(&self, key: NewKey) -> Result<Key, StoreError> {
        if let Some(quota) = key.quota {
            sane(quota)?;
            if quota.is_negative() {
                return Err(StoreError::Invalid(format!(
                    "a quota cannot be {quota}: give 0 or more"
                )));
            }
        }
        let user_id = self.user_named(&key.user).await?.id;
        let id = key.id.clone();
        self.write(access::CreateKey { key, user_id }).await?;
        self.key(&id)
            .await?
            .ok_or_else(|| StoreError::Broken(format!("key {id} is gone")))
    }

    /// Revokes a key.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where there is no such key.
    pub async fn revoke_key(&self, id: &str, now: Millis) -> Result<Key, StoreError> {
        let revoke = access::RevokeKey {
            id: id.to_owned(),
            now,
        };
        self.write(revoke).await?;
        self.key(id).await?.ok_or_else(|| {
            StoreError::Invalid(format!("there is no key {id:?}: see `tollgate key list`"))
        })
    }

    /// Every key, oldest first.
    pub async fn keys(&self) -> Result<Vec<Key>, StoreError> {
        let mut rows = self.query(&read::KEYS, &[]).await?;
        Ok(rows.iter_mut().map(read::key).collect::<Result<_, _>>()?)
    }

    /// The key of that id.
    pub async fn key(&self, id: &str) -> Result<Option<Key>, StoreError> {
        self.first(&read::KEY_BY_ID, args![id], read::key).await
    }

    /// The key of that hash ([`tollgate_core::id::key_hash`]).
    pub async fn key_by_hash(&self, hash: &str) -> Result<Option<Key>, StoreError> {
        self.first(&read::KEY_BY_HASH, args![hash], read::key).await
    }

    /// A number that goes up whenever a user or key is made, disabled or revoked: what was remembered of them
    /// is then stale. Money moves without it.
    pub async fn access_version(&self) -> Result<i64, StoreError> {
        let rows = self.query(&read::ACCESS_VERSION, &[]).await?;
        let row = rows
            .first()
            .ok_or_else(|| StoreError::Broken("meta has no access_version".to_owned()))?;
        Ok(row.int(0)?)
    }
}

/// Refuses an amount that could not be counted on with.
fn sane(amount: Amount) -> Result<(), StoreError> {
    if amount > money::MAX || amount < -money::MAX {
        return Err(StoreError::Invalid(format!(
            "{amount} is too large: at most {}, either sign",
            money::MAX
        )));
    }
    Ok(())
}
