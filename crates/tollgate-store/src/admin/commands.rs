//! Users and keys in commands (`tollgate user`, `tollgate key`): writes of the admin API whose actor is `cli`.

use tollgate_core::{Amount, Millis, money};

use super::entries::NewCredit;
use super::keys::NewAdminKey;
use super::request::AdminRequest;
use super::users::{NewUser, UserPatch};
use super::write::{AdminRejection, AdminReply};
use crate::error::StoreError;
use crate::keys::{Key, NewKey};
use crate::store::Store;
use crate::users::{RateLimits, User};

/// Commands for users.
impl Store {
    /// Creates a user with an opening balance and the rate limits of all its keys together.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if the name is taken, or the opening balance is out of range or negative.
    pub async fn create_user(
        &self,
        name: &str,
        unlimited: bool,
        opening: Amount,
        rates: RateLimits,
        now: Millis,
    ) -> Result<User, StoreError> {
        check_range(opening)?;
        if opening.is_negative() && !unlimited {
            return Err(StoreError::Invalid(format!(
                "the opening balance is {opening}; it must be 0 or more"
            )));
        }
        let new = NewUser {
            name: name.to_owned(),
            unlimited,
            opening,
            rates,
        };
        let request = AdminRequest::cli(now);
        accept(self.admin_create_user(&request, new).await?)?;
        self.user_by_name(name).await
    }

    /// Adds to a user's balance or, if the amount is negative, deducts from it. Returns the user after the change.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if there is no such user, the amount is out of range, or more would be deducted than is available.
    pub async fn credit_user(
        &self,
        name: &str,
        amount: Amount,
        note: Option<&str>,
        now: Millis,
    ) -> Result<User, StoreError> {
        check_range(amount)?;
        let user = self.user_by_name(name).await?;
        let new = NewCredit {
            amount,
            reason: note.map(str::to_owned),
            reference: None,
        };
        let mut request = AdminRequest::cli(now);
        request.reason.clone_from(&new.reason);
        accept(self.admin_credit_user(&request, &user.id, new).await?)?;
        self.user_by_name(name).await
    }

    /// Disables a user: requests with its keys get 403 from then on.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if there is no such user.
    pub async fn disable_user(&self, name: &str, now: Millis) -> Result<User, StoreError> {
        let user_id = self.user_by_name(name).await?.id;
        let patch = UserPatch {
            disabled: Some(true),
            ..UserPatch::default()
        };
        let request = AdminRequest::cli(now);
        accept(
            self.admin_update_user(&request, &user_id, None, patch)
                .await?,
        )?;
        self.user_by_name(name).await
    }
}

/// Commands for keys.
impl Store {
    /// Creates a key of an existing user.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if there is no such user, or the quota is out of range or negative.
    pub async fn create_key(&self, key: NewKey) -> Result<Key, StoreError> {
        if let Some(quota) = key.quota {
            check_range(quota)?;
            if quota.is_negative() {
                return Err(StoreError::Invalid(format!(
                    "the quota is {quota}; it must be 0 or more"
                )));
            }
        }
        let user_id = self.user_by_name(&key.user).await?.id;
        let id = key.id.clone();
        let request = AdminRequest::cli(key.now);
        let new = NewAdminKey { user_id, key };
        accept(self.admin_create_key(&request, new).await?)?;
        self.key(&id)
            .await?
            .ok_or_else(|| StoreError::Broken(format!("key {id} does not exist")))
    }

    /// Revokes a key.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if there is no such key.
    pub async fn revoke_key(&self, id: &str, now: Millis) -> Result<Key, StoreError> {
        let unknown =
            || StoreError::Invalid(format!("there is no key {id:?}: see `tollgate key list`"));
        self.key(id).await?.ok_or_else(unknown)?;
        accept(self.admin_revoke_key(&AdminRequest::cli(now), id).await?)?;
        self.key(id).await?.ok_or_else(unknown)
    }
}

/// Converts a rejection to an error for the person who runs a command.
fn accept(result: Result<AdminReply, AdminRejection>) -> Result<(), StoreError> {
    match result {
        Ok(_) => Ok(()),
        Err(AdminRejection::Conflict { message, .. } | AdminRejection::Invalid { message, .. }) => {
            Err(StoreError::Invalid(message))
        }
        Err(other) => Err(StoreError::Broken(format!("{other:?}"))),
    }
}

/// Rejects an amount beyond ±[`money::MAX`].
fn check_range(amount: Amount) -> Result<(), StoreError> {
    if amount > money::MAX || amount < -money::MAX {
        return Err(StoreError::Invalid(format!(
            "the amount is {amount}; it must be between -{0} and {0}",
            money::MAX
        )));
    }
    Ok(())
}
