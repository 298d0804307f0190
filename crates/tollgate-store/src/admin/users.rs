//! Users in the admin API: create, change, credit, list.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::{Amount, Millis, id};

use super::entries::NewCredit;
use super::entries::{Entry, credit_by_reference};
use super::json::{amount_json, time_json};
use super::pages::{PageStart, page_args};
use super::request::AdminRequest;
use super::write::{AdminChange, AdminRejection, AdminReply, AdminResult};
use super::write::{Applied, Change};
use crate::access_changes::record_user_change;
use crate::db::{DbError, Sql, args};
use crate::db::{list_arg, one_of};
use crate::error::StoreError;
use crate::ledger::account::Rejection;
use crate::ledger::entries::{UserEntry, credit, open_account, set_unlimited};
use crate::store::Store;
use crate::users::{RateLimits, USER_BY_ID, USER_BY_NAME, User, read_user, select_users};
use crate::writer::AccountIds;
use crate::writer::batch::Batch;

const INSERT_USER: Sql = Sql::both(
    "INSERT INTO users (id, name, unlimited, balance, held, used, rpm, tpm, max_concurrency, created_at)
     VALUES ($1, $2, $3, 0, 0, 0, $4, $5, $6, $7)
     ON CONFLICT DO NOTHING",
);
const UPDATE_USER: Sql = Sql::both(
    "UPDATE users SET name = $1, unlimited = $2, rpm = $3, tpm = $4, max_concurrency = $5, disabled_at = $6, version = version + 1
     WHERE id = $7 AND version = $8",
);
macro_rules! list_users {
    ($database:ident) => {
        concat!(
            select_users!(),
            " WHERE (created_at, id) < ($1, $2) AND ",
            one_of!($database "name" "$3"),
            " AND (CAST($4 AS BIGINT) IS NULL OR (disabled_at IS NOT NULL) = (CAST($4 AS BIGINT) = 1))
             ORDER BY created_at DESC, id DESC LIMIT $5"
        )
    };
}
const LIST_USERS: Sql = Sql::per_database(list_users!(sqlite), list_users!(postgres));

/// A user to create.
#[derive(Debug, Clone, Default)]
pub struct NewUser {
    /// Unique.
    pub name: String,
    /// Whether the balance does not limit spending.
    pub unlimited: bool,
    /// The opening balance.
    pub opening: Amount,
    /// Limits of all its keys together.
    pub rates: RateLimits,
}

/// Changes of a user; `None` changes nothing, `Some(None)` removes a limit.
#[derive(Debug, Clone, Default)]
pub struct UserPatch {
    /// A new name.
    pub name: Option<String>,
    /// Whether the balance does not limit spending.
    pub unlimited: Option<bool>,
    /// POST requests in a sliding minute.
    pub rpm: Option<Option<u32>>,
    /// Chat tokens in a sliding minute.
    pub tpm: Option<Option<u32>>,
    /// Requests in flight.
    pub max_concurrency: Option<Option<u32>>,
    /// Whether requests with its keys are rejected.
    pub disabled: Option<bool>,
}

/// Filters of the list of users.
#[derive(Debug, Clone, Default)]
pub struct UserFilter {
    /// Only those with these names.
    pub names: Option<Vec<String>>,
    /// Whether to list only disabled users, or only others.
    pub disabled: Option<bool>,
}

impl User {
    /// The user as a JSON object of the admin API.
    pub fn to_admin_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "balance": amount_json(self.balance),
            "held": amount_json(self.held),
            "used": amount_json(self.used),
            "unlimited": self.unlimited,
            "rpm": self.rates.rpm,
            "tpm": self.rates.tpm,
            "max_concurrency": self.rates.max_concurrency,
            "disabled": self.disabled_at.is_some(),
            "created_at": time_json(self.created_at),
            "version": self.version,
        })
    }

    /// The user as a JSON object of the trail: without money, whose movements are in the ledger.
    pub(super) fn to_trail_json(&self) -> Value {
        let mut object = self.to_admin_json();
        if let Some(members) = object.as_object_mut() {
            members.retain(|name, _| !["balance", "held", "used"].contains(&name.as_str()));
        }
        object
    }

    pub(super) fn reply(&self, status: u16) -> AdminReply {
        AdminReply::new(status, self.to_admin_json(), Some(self.version))
    }
}

/// Users, for the admin API.
impl Store {
    /// Creates a user.
    pub async fn admin_create_user(&self, request: &AdminRequest, new: NewUser) -> AdminResult {
        self.admin_write(request, CreateUser::new(new, request.now))
            .await
    }

    /// Changes a user that has the version `if_match`; any version if that is `None`.
    pub async fn admin_update_user(
        &self,
        request: &AdminRequest,
        user_id: &str,
        if_match: Option<i64>,
        patch: UserPatch,
    ) -> AdminResult {
        if patch.unlimited == Some(false) {
            self.reclaim_grants(user_id, request.now).await?;
        }
        let update = UpdateUser {
            user_id: user_id.to_owned(),
            if_match,
            patch,
        };
        self.admin_write(request, update).await
    }

    /// Adds to a user's balance or, if the amount is negative, deducts from the part that is not held.
    pub async fn admin_credit_user(
        &self,
        request: &AdminRequest,
        user_id: &str,
        new: NewCredit,
    ) -> AdminResult {
        if new.amount.is_negative() {
            self.reclaim_grants(user_id, request.now).await?;
        }
        let credit = CreditUser {
            credit_id: id::short_id("credit_"),
            user_id: user_id.to_owned(),
            new,
        };
        self.admin_write(request, credit).await
    }

    /// Users, newest first.
    pub async fn admin_list_users(
        &self,
        filter: &UserFilter,
        after: Option<&PageStart>,
        limit: usize,
    ) -> Result<Vec<User>, StoreError> {
        let (at, id) = page_args(after);
        let names = list_arg(filter.names.as_ref());
        let disabled = filter.disabled.map(i64::from);
        let args = args![at, id, names.as_ref(), disabled, limit as i64];
        let mut rows = self.query_slow(&LIST_USERS, args).await?;
        Ok(rows.iter_mut().map(read_user).collect::<Result<_, _>>()?)
    }
}

/// The user in this batch; `None` if there is none.
pub(super) async fn find_user(
    batch: &mut Batch<'_, '_>,
    user_id: &str,
) -> Result<Option<User>, DbError> {
    let Some(mut row) = batch.first(&USER_BY_ID, args![user_id]).await? else {
        return Ok(None);
    };
    let mut user = read_user(&mut row)?;
    // The batch writes its movements of money only at its end.
    let [balance, held, used] = batch.balances.moved_of_user(user_id);
    user.balance += balance;
    user.held += held;
    user.used += used;
    Ok(Some(user))
}

fn name_taken(name: &str) -> Applied {
    let message = format!("there is a user {name:?} already: choose another name");
    AdminRejection::conflict("name_taken", Some("name"), message).into()
}

pub(super) struct CreateUser {
    pub(super) user: User,
    /// The reference of the ledger entry for the opening balance.
    reference: String,
}

impl CreateUser {
    pub(super) fn new(new: NewUser, now: Millis) -> Self {
        Self {
            user: User {
                id: id::short_id("user_"),
                name: new.name,
                unlimited: new.unlimited,
                balance: new.opening,
                held: Amount::ZERO,
                used: Amount::ZERO,
                rates: new.rates,
                disabled_at: None,
                created_at: now,
                version: 1,
            },
            reference: id::short_id("credit_"),
        }
    }
}

#[async_trait(?Send)]
impl AdminChange for CreateUser {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let user = &self.user;
        let [rpm, tpm, max_concurrency] = user.rates.to_columns();
        let args = args![
            &user.id,
            &user.name,
            user.unlimited,
            rpm,
            tpm,
            max_concurrency,
            user.created_at
        ];
        if batch.execute(&INSERT_USER, args).await? == 0 {
            return Ok(name_taken(&user.name));
        }
        let opening = UserEntry {
            reference: &self.reference,
            user_id: &user.id,
            amount: user.balance,
            note: Some("opening balance"),
            now: request.now,
        };
        open_account(batch, user.unlimited, &opening)?
            .map_err(|rejection| DbError::Failed(format!("opening balance: {rejection:?}")))?;
        record_user_change(batch, &user.id)?;
        let mut after = user.to_trail_json();
        if user.balance != Amount::ZERO {
            after["balance"] = amount_json(user.balance);
        }
        Ok(Applied::Changed(Change {
            action: "user.create",
            object_type: "user",
            object_id: user.id.clone(),
            before: None,
            after: Some(after),
            reply: user.reply(201),
        }))
    }
}

struct UpdateUser {
    user_id: String,
    if_match: Option<i64>,
    patch: UserPatch,
}

impl UserPatch {
    fn apply_to(&self, user: &User, now: Millis) -> User {
        let mut patched = user.clone();
        if let Some(name) = &self.name {
            name.clone_into(&mut patched.name);
        }
        patched.unlimited = self.unlimited.unwrap_or(user.unlimited);
        patched.rates = RateLimits {
            rpm: self.rpm.unwrap_or(user.rates.rpm),
            tpm: self.tpm.unwrap_or(user.rates.tpm),
            max_concurrency: self.max_concurrency.unwrap_or(user.rates.max_concurrency),
        };
        patched.disabled_at = match self.disabled {
            Some(true) => user.disabled_at.or(Some(now)),
            Some(false) => None,
            None => user.disabled_at,
        };
        patched
    }
}

#[async_trait(?Send)]
impl AdminChange for UpdateUser {
    /// Moves no money. The user's row is locked here so that all rows are locked in the same order.
    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::user(&self.user_id)
    }

    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let Some(user) = find_user(batch, &self.user_id).await? else {
            return Ok(AdminRejection::NotFound.into());
        };
        if self.if_match.is_some_and(|version| version != user.version) {
            return Ok(Applied::Rejected(AdminRejection::Stale {
                current: user.to_admin_json(),
                version: user.version,
            }));
        }
        let mut patched = self.patch.apply_to(&user, request.now);
        if patched == user {
            return Ok(Applied::Unchanged(user.reply(200)));
        }
        if patched.name != user.name
            && batch
                .first(&USER_BY_NAME, args![&patched.name])
                .await?
                .is_some()
        {
            return Ok(name_taken(&patched.name));
        }
        let sums = batch.balances.sums_of_user(&user.id);
        if user.unlimited && !patched.unlimited && sums.is_some_and(|[left, held, _]| left < held) {
            return Ok(AdminRejection::conflict(
                "insufficient_balance",
                Some("unlimited"),
                format!(
                    "the balance is {} and {} is held: credit the user before the balance becomes a limit",
                    user.balance, user.held
                ),
            )
            .into());
        }
        patched.version += 1;
        let [rpm, tpm, max_concurrency] = patched.rates.to_columns();
        let args = args![
            &patched.name,
            patched.unlimited,
            rpm,
            tpm,
            max_concurrency,
            patched.disabled_at,
            &user.id,
            user.version
        ];
        batch.queue_one(&UPDATE_USER, args)?;
        if patched.unlimited != user.unlimited {
            set_unlimited(
                batch,
                &user.id,
                patched.unlimited,
                patched.version,
                request.now,
            )?;
        }
        record_user_change(batch, &user.id)?;
        Ok(Applied::Changed(Change {
            action: "user.update",
            object_type: "user",
            object_id: user.id.clone(),
            before: Some(user.to_trail_json()),
            after: Some(patched.to_trail_json()),
            reply: patched.reply(200),
        }))
    }
}

struct CreditUser {
    credit_id: String,
    user_id: String,
    new: NewCredit,
}

#[async_trait(?Send)]
impl AdminChange for CreditUser {
    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::user(&self.user_id)
    }

    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let Some(user) = find_user(batch, &self.user_id).await? else {
            return Ok(AdminRejection::NotFound.into());
        };
        let amount = self.new.amount;
        if let Some(reference) = &self.new.reference
            && let Some(first) = credit_by_reference(batch, reference).await?
        {
            if first.user_id == user.id && first.amount == amount {
                return Ok(Applied::Unchanged(AdminReply::new(
                    200,
                    first.to_json(),
                    None,
                )));
            }
            let message = format!(
                "the reference {reference:?} belongs to a credit of {} to {}",
                first.amount, first.user_id
            );
            let rejection = AdminRejection::conflict("reference_used", Some("reference"), message);
            return Ok(rejection.into());
        }
        if user.balance.checked_add(amount).is_none() {
            return Ok(Applied::Rejected(AdminRejection::Invalid {
                field: "amount",
                message: format!(
                    "the balance is {}: {amount} more is out of range",
                    user.balance
                ),
            }));
        }
        let entry = UserEntry {
            reference: &self.credit_id,
            user_id: &self.user_id,
            amount,
            note: self.new.reason.as_deref(),
            now: request.now,
        };
        match credit(batch, &entry)? {
            Ok(()) => {}
            Err(Rejection::InsufficientBalance { available }) => {
                let message = format!(
                    "only {available} of the balance of {:?} can be taken: the rest is held or spent",
                    user.name
                );
                let code = "insufficient_balance";
                return Ok(AdminRejection::conflict(code, Some("amount"), message).into());
            }
            Err(_) => return Ok(AdminRejection::NotFound.into()),
        }
        if let Some(reference) = &self.new.reference {
            batch.queue_one(
                &super::entries::SET_REFERENCE,
                args![reference, &self.credit_id],
            )?;
        }
        let entry = Entry::credit(&self.credit_id, &user.id, &self.new, request.now).to_json();
        Ok(Applied::Changed(Change {
            action: "user.credit",
            object_type: "user",
            object_id: user.id,
            before: None,
            after: Some(entry.clone()),
            reply: AdminReply::new(201, entry, None),
        }))
    }
}
