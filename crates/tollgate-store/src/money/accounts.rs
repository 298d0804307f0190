//! The rows that a batch moves money of: read once, locked, moved in memory as often as the batch needs, and
//! written back once by a guarded update. What chats have reserved ([`super::reserved`]) is not theirs to take.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tollgate_core::Amount;

use super::Payer;
use super::reserved::{Reservation, Reserved, Room, State};
use crate::db::{DbError, Sql, Tx, args};
use crate::model::Refusal;

macro_rules! user_columns {
    () => {
        "SELECT id, balance, held, used, unlimited, disabled_at FROM users "
    };
}
macro_rules! key_columns {
    () => {
        "SELECT id, held, used, quota, revoked_at, user_id FROM keys "
    };
}
/// Of a JSON array of ids. The order matters: rows are locked one by one.
macro_rules! of_all {
    () => {
        "WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(CAST($1 AS TEXT) AS json)))) ORDER BY id FOR UPDATE"
    };
}
const LOAD_USER: Sql = Sql::both(concat!(user_columns!(), "WHERE id = $1"));
const LOAD_USERS: Sql = Sql::both(concat!(user_columns!(), of_all!()));
const LOAD_KEY: Sql = Sql::both(concat!(key_columns!(), "WHERE id = $1"));
const LOAD_KEYS: Sql = Sql::both(concat!(key_columns!(), of_all!()));
// A movement that leaves less available than before must leave at least nothing.
const MOVE_USER: Sql = Sql::both(
    "UPDATE users SET balance = balance + CAST($1 AS BIGINT), held = held + CAST($2 AS BIGINT), used = used + CAST($3 AS BIGINT)
     WHERE id = $4 AND (unlimited = 1 OR CAST($1 AS BIGINT) >= CAST($2 AS BIGINT)
                        OR balance + CAST($1 AS BIGINT) - held - CAST($2 AS BIGINT) >= 0)",
);
const MOVE_KEY: Sql = Sql::both(
    "UPDATE keys SET held = held + CAST($1 AS BIGINT), used = used + CAST($2 AS BIGINT)
     WHERE id = $3 AND (quota IS NULL OR CAST($1 AS BIGINT) + CAST($2 AS BIGINT) <= 0
                        OR held + CAST($1 AS BIGINT) + used + CAST($2 AS BIGINT) <= quota)",
);

#[derive(Debug)]
struct UserAccount {
    unlimited: bool,
    disabled: bool,
    /// Balance, held, used.
    sums: [Amount; 3],
    moved: [Amount; 3],
    /// The reservations that end with this batch.
    ended: Amount,
}

#[derive(Debug)]
struct KeyAccount {
    user_id: String,
    quota: Option<Amount>,
    revoked: bool,
    /// Held, used.
    sums: [Amount; 2],
    moved: [Amount; 2],
    /// As of a user.
    ended: Amount,
}

/// Users and keys by their ids.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: BTreeMap<String, UserAccount>,
    keys: BTreeMap<String, KeyAccount>,
    reserved: Arc<Reserved>,
}

impl Accounts {
    /// Reads and locks these rows, users before keys and each in the order of their ids, so that two batches
    /// never wait for each other in a circle. A row that does not exist is left out.
    pub(crate) async fn load(
        tx: &mut Tx<'_>,
        users: BTreeSet<&str>,
        keys: BTreeSet<&str>,
        reserved: Arc<Reserved>,
    ) -> Result<Self, DbError> {
        let mut accounts = Self {
            reserved,
            ..Self::default()
        };
        if !users.is_empty() {
            for mut row in tx.rows_of(&LOAD_USER, &LOAD_USERS, &users).await? {
                let account = UserAccount {
                    sums: [row.amount(1)?, row.amount(2)?, row.amount(3)?],
                    unlimited: row.int(4)? != 0,
                    disabled: row.opt_int(5)?.is_some(),
                    moved: [Amount::ZERO; 3],
                    ended: Amount::ZERO,
                };
                accounts.users.insert(row.text(0)?, account);
            }
        }
        if !keys.is_empty() {
            for mut row in tx.rows_of(&LOAD_KEY, &LOAD_KEYS, &keys).await? {
                let account = KeyAccount {
                    user_id: row.text(5)?,
                    sums: [row.amount(1)?, row.amount(2)?],
                    quota: row.opt_int(3)?.map(Amount::from_nanos),
                    revoked: row.opt_int(4)?.is_some(),
                    moved: [Amount::ZERO; 2],
                    ended: Amount::ZERO,
                };
                accounts.keys.insert(row.text(0)?, account);
            }
        }
        Ok(accounts)
    }

    /// Takes in a user that this transaction has just made.
    pub(super) fn opened(&mut self, user_id: &str, unlimited: bool) {
        let account = UserAccount {
            unlimited,
            disabled: false,
            sums: [Amount::ZERO; 3],
            moved: [Amount::ZERO; 3],
            ended: Amount::ZERO,
        };
        self.users.insert(user_id.to_owned(), account);
    }

    /// One guarded update per row that moved.
    pub(crate) fn write_back(&self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        for (id, user) in &self.users {
            let [balance, held, used] = user.moved;
            if user.moved != [Amount::ZERO; 3] {
                tx.run_one(&MOVE_USER, args![balance, held, used, id])?;
            }
        }
        for (id, key) in &self.keys {
            let [held, used] = key.moved;
            if key.moved != [Amount::ZERO; 2] {
                tx.run_one(&MOVE_KEY, args![held, used, id])?;
            }
        }
        Ok(())
    }

    /// Lets those who reserve know what the rows leave available once the batch is committed, so that nobody need read
    /// them. Only of a batch that does nothing to users and keys but move their money.
    pub(crate) fn foretell(&self) {
        let rooms = self.keys.iter().filter_map(|(id, key)| {
            let user = self.users.get(&key.user_id)?;
            let [balance, held, _] = user.sums;
            let [key_held, key_used] = key.sums;
            let room = Room {
                user: (!user.unlimited).then(|| balance - held),
                key: key.quota.map(|quota| quota - key_held - key_used),
            };
            let may_spend = !user.disabled && !key.revoked;
            (may_spend && room.is_limited()).then(|| (id.clone(), room))
        });
        self.reserved.foretell(rooms.collect());
    }

    /// Sets `amount` aside if user and key can both bear it.
    pub(super) fn hold(
        &mut self,
        payer: Payer<'_>,
        amount: Amount,
    ) -> Result<Result<(), Refusal>, DbError> {
        let (Some(user), Some(key)) = (
            self.users.get_mut(payer.user_id),
            self.keys.get_mut(payer.key_id),
        ) else {
            return Ok(Err(Refusal::Gone));
        };
        if user.disabled || key.revoked {
            return Ok(Err(Refusal::Gone));
        }
        if amount == Amount::ZERO {
            return Ok(Ok(()));
        }
        let mut reserved = self.reserved.lock();
        let available = user.available(&reserved, payer.user_id)?;
        if !user.unlimited && available < amount {
            return Ok(Err(Refusal::UserBalance { available }));
        }
        if let Some(available) = key.available(&reserved, payer.key_id)?
            && available < amount
        {
            return Ok(Err(Refusal::KeyQuota { available }));
        }
        shift(
            &mut user.sums,
            &mut user.moved,
            [Amount::ZERO, amount, Amount::ZERO],
        )?;
        shift(&mut key.sums, &mut key.moved, [amount, Amount::ZERO])?;
        user.tell(&mut reserved, payer.user_id)?;
        key.tell(&mut reserved, payer.key_id)?;
        Ok(Ok(()))
    }

    /// Ends a hold: `settled` of it is spent, the rest is free again.
    pub(super) fn end_hold(
        &mut self,
        payer: Payer<'_>,
        held: Amount,
        settled: Amount,
    ) -> Result<(), DbError> {
        let missing = || DbError::Shape(format!("user or key of a charge is missing: {payer:?}"));
        let user = self.users.get_mut(payer.user_id).ok_or_else(missing)?;
        let key = self.keys.get_mut(payer.key_id).ok_or_else(missing)?;
        shift(&mut user.sums, &mut user.moved, [-settled, -held, settled])?;
        shift(&mut key.sums, &mut key.moved, [-held, settled])
    }

    /// Spends `due` of `reservation`, which ends with the batch, and of what is neither held nor reserved, or as much of
    /// it as there is; returns how much.
    pub(super) fn take(
        &mut self,
        payer: Payer<'_>,
        due: Amount,
        reservation: Option<&Reservation>,
    ) -> Result<Amount, DbError> {
        let missing = || DbError::Shape(format!("user or key of a charge is missing: {payer:?}"));
        let user = self.users.get_mut(payer.user_id).ok_or_else(missing)?;
        let key = self.keys.get_mut(payer.key_id).ok_or_else(missing)?;
        let mut reserved = self.reserved.lock();
        if let Some(reservation) = reservation {
            if !reservation.is_of(payer) {
                let what = format!("a reservation is not {payer:?}'s");
                return Err(DbError::Refused(what));
            }
            let amount = reserved.end(reservation);
            user.ended = sum(user.ended, amount)?;
            key.ended = sum(key.ended, amount)?;
        }
        let mut taken = due;
        if !user.unlimited {
            taken = taken.min(user.available(&reserved, payer.user_id)?);
        }
        if let Some(available) = key.available(&reserved, payer.key_id)? {
            taken = taken.min(available);
        }
        let none = Amount::ZERO;
        shift(&mut user.sums, &mut user.moved, [-taken, none, taken])?;
        shift(&mut key.sums, &mut key.moved, [none, taken])?;
        user.tell(&mut reserved, payer.user_id)?;
        key.tell(&mut reserved, payer.key_id)?;
        Ok(taken)
    }

    /// Adds to a balance or, negative, takes from it, but never what is held or reserved.
    pub(super) fn credit(
        &mut self,
        user_id: &str,
        amount: Amount,
    ) -> Result<Result<(), Refusal>, DbError> {
        let Some(user) = self.users.get_mut(user_id) else {
            return Ok(Err(Refusal::Gone));
        };
        let mut reserved = self.reserved.lock();
        let available = user.available(&reserved, user_id)?;
        if !user.unlimited && amount.is_negative() && available < -amount {
            return Ok(Err(Refusal::UserBalance { available }));
        }
        shift(
            &mut user.sums,
            &mut user.moved,
            [amount, Amount::ZERO, Amount::ZERO],
        )?;
        user.tell(&mut reserved, user_id)?;
        Ok(Ok(()))
    }
}

impl UserAccount {
    /// Never negative, though another process may have taken what is reserved here.
    fn available(&self, reserved: &State, id: &str) -> Result<Amount, DbError> {
        let [balance, held, _] = self.sums;
        let reserved = sum(reserved.of_user(id), -self.ended)?;
        Ok(sum(sum(balance, -held)?, -reserved)?.max(Amount::ZERO))
    }

    /// Lets those who reserve know what this batch takes, while the lock is held under which it was there.
    fn tell(&self, reserved: &mut State, id: &str) -> Result<(), DbError> {
        if !self.unlimited {
            let [balance, held, _] = self.moved;
            reserved.batch_takes_of_user(id, sum(sum(held, -balance)?, -self.ended)?);
        }
        Ok(())
    }
}

impl KeyAccount {
    /// None without a quota; never negative.
    fn available(&self, reserved: &State, id: &str) -> Result<Option<Amount>, DbError> {
        let Some(quota) = self.quota else {
            return Ok(None);
        };
        let [held, used] = self.sums;
        let reserved = sum(reserved.of_key(id), -self.ended)?;
        let left = sum(sum(sum(quota, -used)?, -held)?, -reserved)?;
        Ok(Some(left.max(Amount::ZERO)))
    }

    /// As of a user.
    fn tell(&self, reserved: &mut State, id: &str) -> Result<(), DbError> {
        if self.quota.is_some() {
            let [held, used] = self.moved;
            reserved.batch_takes_of_key(id, sum(sum(held, used)?, -self.ended)?);
        }
        Ok(())
    }
}

/// Moves an account. A sum that leaves the range of an amount refuses the operation, and with it the batch,
/// whose other operations are then tried without it.
fn shift<const N: usize>(
    sums: &mut [Amount; N],
    moved: &mut [Amount; N],
    by: [Amount; N],
) -> Result<(), DbError> {
    for ((total, moved), by) in sums.iter_mut().zip(moved).zip(by) {
        *total = sum(*total, by)?;
        *moved = sum(*moved, by)?;
    }
    Ok(())
}

fn sum(a: Amount, b: Amount) -> Result<Amount, DbError> {
    a.checked_add(b)
        .ok_or_else(|| DbError::Refused(format!("{a} and {b} are too large to add up")))
}
