//! The balances of the users and keys of a batch: they are read and locked once, changed in memory, and written once with guarded updates. Amounts
//! that chats have reserved ([`super::reservations`]) are not available to these changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tollgate_core::{Amount, Millis};

use super::account::{Account, Rejection};
use super::balance_rows::load_rows;
use super::budgets::{BudgetOwner, Budgets, LOAD_ALL_BUDGETS, LOAD_BUDGETS, LoadedBudget};
use super::owner_balance::{KeyBalance, UserBalance};
use super::reservations::{Headroom, Reservation, Reservations};
use super::sum::sum;
use crate::db::{DbError, RowsSql, Sql, Tx, args};

// The guard: a movement that lowers the available amount must leave at least 0, except for the debt that its chats record.
static MOVE_USER: RowsSql = RowsSql::update(
    Sql::both(
    "UPDATE users SET balance = balance + CAST($1 AS BIGINT), held = held + CAST($2 AS BIGINT), used = used + CAST($3 AS BIGINT)
     WHERE id = $4 AND (unlimited = 1 OR CAST($1 AS BIGINT) + CAST($5 AS BIGINT) >= CAST($2 AS BIGINT)
                        OR balance + CAST($1 AS BIGINT) - held - CAST($2 AS BIGINT) + CAST($5 AS BIGINT) >= 0)",
    ),
    [
        "UPDATE users SET balance = users.balance + m.balance, held = users.held + m.held, used = users.used + m.used FROM (VALUES ",
        "(CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS TEXT), CAST($5 AS BIGINT))",
        ") AS m (balance, held, used, id, debt)
         WHERE users.id = m.id AND (users.unlimited = 1 OR m.balance + m.debt >= m.held
                                    OR users.balance + m.balance - users.held - m.held + m.debt >= 0)",
    ],
);
static MOVE_KEY: RowsSql = RowsSql::update(
    Sql::both(
    "UPDATE keys SET held = held + CAST($1 AS BIGINT), used = used + CAST($2 AS BIGINT)
     WHERE id = $3 AND (quota IS NULL OR CAST($1 AS BIGINT) + CAST($2 AS BIGINT) <= CAST($4 AS BIGINT)
                        OR held + CAST($1 AS BIGINT) + used + CAST($2 AS BIGINT) <= quota + CAST($4 AS BIGINT))",
    ),
    [
        "UPDATE keys SET held = keys.held + m.held, used = keys.used + m.used FROM (VALUES ",
        "(CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS TEXT), CAST($4 AS BIGINT))",
        ") AS m (held, used, id, debt)
         WHERE keys.id = m.id AND (keys.quota IS NULL OR m.held + m.used <= m.debt
                                   OR keys.held + m.held + keys.used + m.used <= keys.quota + m.debt)",
    ],
);
// Spends a part of a grant; does nothing if too little of the grant is left.
static SETTLE_GRANT: RowsSql = RowsSql::update(
    Sql::both(
        "UPDATE grants SET amount = amount - CAST($1 AS BIGINT), settled = settled + CAST($1 AS BIGINT)
         WHERE id = $2 AND amount >= CAST($1 AS BIGINT)",
    ),
    [
        "UPDATE grants SET amount = grants.amount - m.cost, settled = grants.settled + m.cost FROM (VALUES ",
        "(CAST($1 AS BIGINT), CAST($2 AS TEXT))",
        ") AS m (cost, id) WHERE grants.id = m.id AND grants.amount >= m.cost",
    ],
);

/// The users and keys of a batch, by id.
#[derive(Debug, Default)]
pub(crate) struct Balances {
    users: BTreeMap<String, UserBalance>,
    keys: BTreeMap<String, KeyBalance>,
    /// The amounts that this batch has spent from grants, by their ids.
    settled_of_grants: BTreeMap<String, Amount>,
    reservations: Arc<Reservations>,
}

impl Balances {
    /// Reads and locks these rows: users before keys, each in the order of their ids, so that two batches cannot deadlock. A
    /// row that does not exist is left out.
    pub(crate) async fn load(
        tx: &mut Tx<'_>,
        users: BTreeSet<&str>,
        keys: BTreeSet<&str>,
        reservations: Arc<Reservations>,
    ) -> Result<Self, DbError> {
        let mut balances = Self {
            reservations,
            ..Self::default()
        };
        let mut with_budgets = Vec::new();
        let (user_rows, key_rows) = load_rows(tx, &users, &keys).await?;
        for mut row in user_rows {
            let user = UserBalance {
                sums: [row.amount(1)?, row.amount(2)?, row.amount(3)?],
                unlimited: row.int(4)? != 0,
                disabled: row.opt_int(5)?.is_some(),
                moved: [Amount::ZERO; 3],
                debt: Amount::ZERO,
                ended_reservations: Amount::ZERO,
                budgets: Budgets::default(),
            };
            let id = row.text(0)?;
            if row.int(6)? != 0 {
                with_budgets.push(id.clone());
            }
            balances.users.insert(id, user);
        }
        for mut row in key_rows {
            let key = KeyBalance {
                user_id: row.text(5)?,
                sums: [row.amount(1)?, row.amount(2)?],
                quota: row.opt_int(3)?.map(Amount::from_nanos),
                revoked: row.opt_int(4)?.is_some(),
                moved: [Amount::ZERO; 2],
                quota_taken: Amount::ZERO,
                debt: Amount::ZERO,
                ended_reservations: Amount::ZERO,
                budgets: Budgets::default(),
            };
            let id = row.text(0)?;
            if row.int(6)? != 0 {
                with_budgets.push(id.clone());
            }
            balances.keys.insert(id, key);
        }
        balances.load_budgets(tx, &with_budgets).await?;
        Ok(balances)
    }

    /// Reads the budgets of these users and keys, whose rows are locked.
    async fn load_budgets(&mut self, tx: &mut Tx<'_>, owners: &[String]) -> Result<(), DbError> {
        if owners.is_empty() {
            return Ok(());
        }
        let owners = owners.iter().map(String::as_str).collect();
        let rows = tx.query_by_ids(&LOAD_BUDGETS, &LOAD_ALL_BUDGETS, &owners);
        for mut row in rows.await? {
            let (owner_id, budget) = LoadedBudget::read(&mut row)?;
            if let Some(budgets) = self.budgets_mut(&owner_id) {
                budgets.add(budget);
            }
        }
        Ok(())
    }

    /// The budgets of a user or key of this batch.
    fn budgets_mut(&mut self, owner_id: &str) -> Option<&mut Budgets> {
        let user = self.users.get_mut(owner_id);
        match user.map(|user| &mut user.budgets) {
            None => self.keys.get_mut(owner_id).map(|key| &mut key.budgets),
            budgets => budgets,
        }
    }

    /// Adds a budget that this transaction has inserted, of a user or key of this batch.
    pub(crate) fn add_new_budget(&mut self, owner_id: &str, budget: LoadedBudget) {
        if let Some(budgets) = self.budgets_mut(owner_id) {
            budgets.add(budget);
        }
    }

    /// Removes a budget that this transaction has deleted.
    pub(crate) fn remove_budget(&mut self, owner_id: &str, id: &str) {
        if let Some(budgets) = self.budgets_mut(owner_id) {
            budgets.remove(id);
        }
    }

    /// A budget of a user or key of this batch, with the amount spent.
    pub(crate) fn budget_mut(&mut self, owner_id: &str, id: &str) -> Option<&mut LoadedBudget> {
        self.budgets_mut(owner_id)?.get_mut(id)
    }

    /// Adds a user that this transaction has inserted.
    pub(super) fn add_new_user(&mut self, user_id: &str, unlimited: bool) {
        let user = UserBalance {
            unlimited,
            disabled: false,
            sums: [Amount::ZERO; 3],
            moved: [Amount::ZERO; 3],
            debt: Amount::ZERO,
            ended_reservations: Amount::ZERO,
            budgets: Budgets::default(),
        };
        self.users.insert(user_id.to_owned(), user);
    }

    /// Balance, held and used of a user that this batch has loaded, including the changes of this batch.
    pub(crate) fn sums_of_user(&self, user_id: &str) -> Option<[Amount; 3]> {
        self.users.get(user_id).map(|user| user.sums)
    }

    /// The amounts by which this batch has changed balance, held and used of a user; 0 if it has not loaded the user.
    pub(crate) fn moved_of_user(&self, user_id: &str) -> [Amount; 3] {
        let user = self.users.get(user_id);
        user.map_or_else(Default::default, |user| user.moved)
    }

    /// The amounts by which this batch has changed held and used of a key; 0 if it has not loaded the key.
    pub(crate) fn moved_of_key(&self, key_id: &str) -> [Amount; 2] {
        let key = self.keys.get(key_id);
        key.map_or_else(Default::default, |key| key.moved)
    }

    /// The sum of the reservations of a key that do not end with this batch.
    pub(crate) fn reserved_of_key(&self, key_id: &str) -> Result<Amount, DbError> {
        let reserved = self.reservations.lock();
        match self.keys.get(key_id) {
            Some(key) => key.reserved(&reserved, key_id),
            None => Ok(reserved.of_key(key_id)),
        }
    }

    /// Writes the movements back: one guarded update for each row that moved.
    pub(crate) fn write_back(&self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        for (id, user) in &self.users {
            let [balance, held, used] = user.moved;
            if user.moved != [Amount::ZERO; 3] {
                tx.queue_one_row(&MOVE_USER, args![balance, held, used, id, user.debt])?;
            }
            user.budgets.write_back(tx)?;
        }
        for (id, key) in &self.keys {
            let [held, used] = key.moved;
            if key.moved != [Amount::ZERO; 2] {
                tx.queue_one_row(&MOVE_KEY, args![held, used, id, key.debt])?;
            }
            key.budgets.write_back(tx)?;
        }
        for (id, settled) in &self.settled_of_grants {
            tx.queue_one_row(&SETTLE_GRANT, args![*settled, id])?;
        }
        Ok(())
    }

    /// Primes the reservations with the headroom that the rows have once this batch is committed, so that the next chats need not read them. Only for
    /// a batch that makes no other change to users and keys than moving their money.
    pub(crate) fn prime_reservations(&self) {
        let headrooms = self.keys.iter().filter_map(|(id, key)| {
            let user = self.users.get(&key.user_id)?;
            let [balance, held, _] = user.sums;
            let [key_held, key_used] = key.sums;
            let headroom = Headroom::new(
                [
                    (!user.unlimited).then_some(balance),
                    user.budgets.left_in_rows(),
                ],
                held,
                [
                    key.quota.map(|quota| quota - key_used),
                    key.budgets.left_in_rows(),
                ],
                key_held,
            );
            let may_spend = !user.disabled && !key.revoked;
            (may_spend && headroom.is_limited()).then(|| (id.clone(), headroom))
        });
        self.reservations.prime(headrooms.collect());
    }

    /// Holds `amount` at the time `at` if the user, the key and their hard budgets cover it.
    pub(super) fn hold(
        &mut self,
        account: Account<'_>,
        amount: Amount,
        at: Millis,
    ) -> Result<Result<(), Rejection>, DbError> {
        self.hold_out_of(account, amount, amount, at)
    }

    /// Holds `amount` at the time `at` if the user, the key and their hard budgets cover `needed`, which is at least `amount`.
    pub(super) fn hold_out_of(
        &mut self,
        account: Account<'_>,
        amount: Amount,
        needed: Amount,
        at: Millis,
    ) -> Result<Result<(), Rejection>, DbError> {
        let (Some(user), Some(key)) = (
            self.users.get_mut(account.user_id),
            self.keys.get_mut(account.key_id),
        ) else {
            return Ok(Err(Rejection::AccountInactive));
        };
        if user.disabled || key.revoked {
            return Ok(Err(Rejection::AccountInactive));
        }
        if amount == Amount::ZERO {
            return Ok(Ok(()));
        }
        let mut reserved = self.reservations.lock();
        let available = user.available(&reserved, account.user_id)?;
        if !user.unlimited && available < needed {
            return Ok(Err(Rejection::InsufficientBalance { available }));
        }
        if let Some(available) = key.available(&reserved, account.key_id)?
            && available < needed
        {
            return Ok(Err(Rejection::InsufficientQuota { available }));
        }
        let [_, held, _] = user.sums;
        let taken = sum(held, user.reserved(&reserved, account.user_id)?)?;
        if let Err(exceeded) = user
            .budgets
            .check_hold(BudgetOwner::User, taken, needed, at)?
        {
            return Ok(Err(Rejection::BudgetExceeded(exceeded)));
        }
        let [held, _] = key.sums;
        let taken = sum(held, key.reserved(&reserved, account.key_id)?)?;
        if let Err(exceeded) = key
            .budgets
            .check_hold(BudgetOwner::Key, taken, needed, at)?
        {
            return Ok(Err(Rejection::BudgetExceeded(exceeded)));
        }
        user.apply([Amount::ZERO, amount, Amount::ZERO])?;
        key.apply([amount, Amount::ZERO])?;
        user.publish_taken(&mut reserved, account.user_id)?;
        key.publish_taken(&mut reserved, account.key_id)?;
        Ok(Ok(()))
    }

    /// Closes a hold at the time `at`: spends `settled` of it and releases the rest.
    pub(super) fn close_hold(
        &mut self,
        account: Account<'_>,
        held: Amount,
        settled: Amount,
        at: Millis,
    ) -> Result<(), DbError> {
        let (user, key) = find(&mut self.users, &mut self.keys, account)?;
        user.apply([-settled, -held, settled])?;
        key.apply([-held, settled])?;
        user.budgets.spend(settled, at)?;
        key.budgets.spend(settled, at)
    }

    /// Spends up to `covered` of `cost` from a grant, which is part of what is held, and the rest as [`Balances::charge`] does. Returns the debt.
    pub(super) fn charge_grant(
        &mut self,
        account: Account<'_>,
        cost: Amount,
        (grant_id, covered): (&str, Amount),
        at: Millis,
    ) -> Result<Amount, DbError> {
        let from_grant = cost.min(covered);
        if from_grant != Amount::ZERO {
            self.close_hold(account, from_grant, from_grant, at)?;
            let settled = self.settled_of_grants.entry(grant_id.to_owned());
            let settled = settled.or_default();
            *settled = sum(*settled, from_grant)?;
        }
        self.charge(account, cost - from_grant, None, at)
    }

    /// Spends `cost` at the time `at`, whether or not it is available, and ends `reservation` with this batch. Returns the debt: the part of `cost`
    /// that neither the balance (minus what is held) nor the quota covers. Reservations of other chats are not deducted, because these may cost less.
    pub(super) fn charge(
        &mut self,
        account: Account<'_>,
        cost: Amount,
        reservation: Option<&Reservation>,
        at: Millis,
    ) -> Result<Amount, DbError> {
        let (user, key) = find(&mut self.users, &mut self.keys, account)?;
        let mut reserved = self.reservations.lock();
        if let Some(reservation) = reservation {
            if !reservation.belongs_to(account) {
                let what = format!("a reservation does not belong to {account:?}");
                return Err(DbError::Failed(what));
            }
            let [of_user, of_key] = reserved.end(reservation);
            user.ended_reservations = sum(user.ended_reservations, of_user)?;
            key.ended_reservations = sum(key.ended_reservations, of_key)?;
        }
        let user_debt = shortfall(cost, user.unreserved()?)?;
        let key_debt = shortfall(cost, key.unreserved()?)?;
        user.debt = sum(user.debt, user_debt)?;
        key.debt = sum(key.debt, key_debt)?;
        user.apply([-cost, Amount::ZERO, cost])?;
        key.apply([Amount::ZERO, cost])?;
        user.budgets.spend(cost, at)?;
        key.budgets.spend(cost, at)?;
        user.publish_taken(&mut reserved, account.user_id)?;
        key.publish_taken(&mut reserved, account.key_id)?;
        Ok(user_debt.max(key_debt))
    }

    /// Refunds a spent amount at the time `at`: raises the balance, lowers what user and key have used.
    pub(super) fn refund(
        &mut self,
        account: Account<'_>,
        amount: Amount,
        at: Millis,
    ) -> Result<(), DbError> {
        let (user, key) = find(&mut self.users, &mut self.keys, account)?;
        let mut reserved = self.reservations.lock();
        user.apply([amount, Amount::ZERO, -amount])?;
        key.apply([Amount::ZERO, -amount])?;
        user.budgets.spend(-amount, at)?;
        key.budgets.spend(-amount, at)?;
        user.publish_taken(&mut reserved, account.user_id)?;
        key.publish_taken(&mut reserved, account.key_id)
    }

    /// Replaces the quota of a key, unless the key has used, holds and has reserved more: returns that amount then. The caller changes the row. A key
    /// that this batch has not loaded is new, and has spent nothing.
    pub(crate) fn set_quota(
        &mut self,
        key_id: &str,
        quota: Option<Amount>,
    ) -> Result<Result<(), Amount>, DbError> {
        let Some(key) = self.keys.get_mut(key_id) else {
            return Ok(Ok(()));
        };
        let mut reserved = self.reservations.lock();
        let [held, used] = key.sums;
        let spent = sum(sum(held, used)?, key.reserved(&reserved, key_id)?)?;
        if quota.is_some_and(|quota| quota < spent) {
            return Ok(Err(spent));
        }
        if let Some((old, new)) = key.quota.zip(quota) {
            key.quota_taken = sum(key.quota_taken, sum(old, -new)?)?;
        }
        key.quota = quota;
        key.publish_taken(&mut reserved, key_id)?;
        Ok(Ok(()))
    }

    /// Deducts `amount` from what is left of a key's quota. The caller changes the row.
    pub(crate) fn take_quota(
        &mut self,
        key_id: &str,
        amount: Amount,
    ) -> Result<Result<(), Rejection>, DbError> {
        let Some(key) = self.keys.get_mut(key_id) else {
            return Ok(Err(Rejection::AccountInactive));
        };
        let mut reserved = self.reservations.lock();
        if let Some(available) = key.available(&reserved, key_id)?
            && available < amount
        {
            return Ok(Err(Rejection::InsufficientQuota { available }));
        }
        key.quota = key.quota.map(|quota| sum(quota, -amount)).transpose()?;
        key.quota_taken = sum(key.quota_taken, amount)?;
        key.publish_taken(&mut reserved, key_id)?;
        Ok(Ok(()))
    }

    /// Adds to a balance or, if the amount is negative, deducts from it; never deducts what is held or reserved.
    pub(super) fn credit(
        &mut self,
        user_id: &str,
        amount: Amount,
    ) -> Result<Result<(), Rejection>, DbError> {
        let Some(user) = self.users.get_mut(user_id) else {
            return Ok(Err(Rejection::AccountInactive));
        };
        let mut reserved = self.reservations.lock();
        let available = user.available(&reserved, user_id)?;
        if !user.unlimited && amount.is_negative() && available < -amount {
            return Ok(Err(Rejection::InsufficientBalance { available }));
        }
        user.apply([amount, Amount::ZERO, Amount::ZERO])?;
        user.publish_taken(&mut reserved, user_id)?;
        Ok(Ok(()))
    }
}

/// The user and the key of a charge, which must be loaded.
fn find<'b>(
    users: &'b mut BTreeMap<String, UserBalance>,
    keys: &'b mut BTreeMap<String, KeyBalance>,
    account: Account<'_>,
) -> Result<(&'b mut UserBalance, &'b mut KeyBalance), DbError> {
    let (user, key) = (users.get_mut(account.user_id), keys.get_mut(account.key_id));
    user.zip(key).ok_or_else(|| {
        DbError::UnexpectedData(format!("user or key of a charge is missing: {account:?}"))
    })
}

/// The part of `cost` that `left` does not cover; 0 without a limit.
fn shortfall(cost: Amount, left: Option<Amount>) -> Result<Amount, DbError> {
    let Some(left) = left else {
        return Ok(Amount::ZERO);
    };
    Ok(sum(cost, -left.max(Amount::ZERO))?.max(Amount::ZERO))
}
