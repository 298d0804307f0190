//! The one module that moves money: hold, settle, release, credit. Everything else asks it to.
//!
//! A user's row holds three sums over the ledger: `balance` (credits less settlements), `held` (holds less
//! settlements and releases) and `used` (settlements); a key's row holds the last two. Within a batch each row
//! is read once, locked, moved in memory as often as the batch needs, and written back once by a guarded
//! update. Two batches, of one node or of many, therefore cannot both spend the same money: the second one
//! waits for the row lock (PostgreSQL) or the write lock (SQLite), and the guard in the update stands behind
//! both. The ledger's key `(ref, kind)` makes each movement of a charge happen at most once.

use std::collections::BTreeMap;

use tollgate_core::{Amount, Millis};

use crate::batch::Batch;
use crate::db::{DbError, Sql, Tx, args};
use crate::model::{Charge, Refusal};

const LOAD_USER: Sql = Sql::each(
    "SELECT balance, held, unlimited, disabled_at FROM users WHERE id = $1",
    "SELECT balance, held, unlimited, disabled_at FROM users WHERE id = $1 FOR UPDATE",
);
const LOAD_KEY: Sql = Sql::each(
    "SELECT quota, held, used, revoked_at FROM keys WHERE id = $1",
    "SELECT quota, held, used, revoked_at FROM keys WHERE id = $1 FOR UPDATE",
);
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
const ENTER: Sql = Sql::both(
    "INSERT INTO ledger (ref, kind, user_id, key_id, amount, note, at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
);
const OPEN_CHARGE: Sql = Sql::both(
    "INSERT INTO charges (id, user_id, key_id, model, price, per, units, held, opened_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
);
const READ_CHARGE: Sql =
    Sql::both("SELECT price, per, units, held FROM charges WHERE id = $1 AND closed_at IS NULL");
const CLOSE_CHARGE: Sql = Sql::both(
    "UPDATE charges SET units_settled = $1, settled = $2, released = $3, closed_at = $4
     WHERE id = $5 AND closed_at IS NULL",
);

/// Who pays for a charge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payer<'a> {
    pub(crate) user_id: &'a str,
    pub(crate) key_id: &'a str,
}

#[derive(Debug)]
struct UserAccount {
    unlimited: bool,
    disabled: bool,
    balance: Amount,
    held: Amount,
    moved: [Amount; 3],
}

#[derive(Debug)]
struct KeyAccount {
    quota: Option<Amount>,
    revoked: bool,
    held: Amount,
    used: Amount,
    moved: [Amount; 2],
}

/// The rows that a batch moves money of.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: BTreeMap<String, UserAccount>,
    keys: BTreeMap<String, KeyAccount>,
}

impl Accounts {
    /// Reads and locks the rows of `payers`, users before keys and each in the order of their ids, so that
    /// two batches never wait for each other in a circle. A row that does not exist is left out.
    pub(crate) async fn load(
        tx: &mut Tx<'_>,
        users: impl Iterator<Item = &str>,
        keys: impl Iterator<Item = &str>,
    ) -> Result<Self, DbError> {
        let mut accounts = Self::default();
        for id in users.collect::<std::collections::BTreeSet<_>>() {
            if let Some(row) = tx.first(&LOAD_USER, args![id]).await? {
                let account = UserAccount {
                    balance: row.amount(0)?,
                    held: row.amount(1)?,
                    unlimited: row.int(2)? != 0,
                    disabled: row.opt_int(3)?.is_some(),
                    moved: [Amount::ZERO; 3],
                };
                accounts.users.insert(id.to_owned(), account);
            }
        }
        for id in keys.collect::<std::collections::BTreeSet<_>>() {
            if let Some(row) = tx.first(&LOAD_KEY, args![id]).await? {
                let account = KeyAccount {
                    quota: row.opt_int(0)?.map(Amount::from_nanos),
                    held: row.amount(1)?,
                    used: row.amount(2)?,
                    revoked: row.opt_int(3)?.is_some(),
                    moved: [Amount::ZERO; 2],
                };
                accounts.keys.insert(id.to_owned(), account);
            }
        }
        Ok(accounts)
    }

    /// One guarded update per row that moved.
    pub(crate) async fn write_back(self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        for (id, user) in &self.users {
            let [balance, held, used] = user.moved;
            if user.moved != [Amount::ZERO; 3]
                && tx
                    .execute(&MOVE_USER, args![balance, held, used, id])
                    .await?
                    != 1
            {
                return Err(DbError::Refused(format!(
                    "the guard of user {id} held back a movement"
                )));
            }
        }
        for (id, key) in &self.keys {
            let [held, used] = key.moved;
            if key.moved != [Amount::ZERO; 2]
                && tx.execute(&MOVE_KEY, args![held, used, id]).await? != 1
            {
                return Err(DbError::Refused(format!(
                    "the guard of key {id} held back a movement"
                )));
            }
        }
        Ok(())
    }

    /// Sets `amount` aside if user and key can both bear it.
    fn hold(&mut self, payer: Payer<'_>, amount: Amount) -> Result<(), Refusal> {
        let user = self.users.get_mut(payer.user_id).ok_or(Refusal::Gone)?;
        let key = self.keys.get_mut(payer.key_id).ok_or(Refusal::Gone)?;
        if user.disabled || key.revoked {
            return Err(Refusal::Gone);
        }
        let available = user.balance - user.held;
        if !user.unlimited && amount > Amount::ZERO && available < amount {
            return Err(Refusal::UserBalance { available });
        }
        if let Some(quota) = key.quota {
            let available = quota - key.used - key.held;
            if amount > Amount::ZERO && available < amount {
                return Err(Refusal::KeyQuota { available });
            }
        }
        user.move_by(Amount::ZERO, amount, Amount::ZERO);
        key.move_by(amount, Amount::ZERO);
        Ok(())
    }

    /// Ends a hold: `settled` of it is spent, the rest is free again.
    fn end_hold(&mut self, payer: Payer<'_>, held: Amount, settled: Amount) -> Result<(), DbError> {
        let missing = || DbError::Shape(format!("user or key of a charge is missing: {payer:?}"));
        self.users
            .get_mut(payer.user_id)
            .ok_or_else(missing)?
            .move_by(-settled, -held, settled);
        self.keys
            .get_mut(payer.key_id)
            .ok_or_else(missing)?
            .move_by(-held, settled);
        Ok(())
    }
}

impl UserAccount {
    fn move_by(&mut self, balance: Amount, held: Amount, used: Amount) {
        self.balance += balance;
        self.held += held;
        for (moved, by) in self.moved.iter_mut().zip([balance, held, used]) {
            *moved += by;
        }
    }
}

impl KeyAccount {
    fn move_by(&mut self, held: Amount, used: Amount) {
        self.held += held;
        self.used += used;
        for (moved, by) in self.moved.iter_mut().zip([held, used]) {
            *moved += by;
        }
    }
}

/// Opens the charge `id` and holds all of it. A refusal has written nothing.
pub(crate) fn open_charge(
    batch: &mut Batch<'_, '_>,
    id: &str,
    payer: Payer<'_>,
    model: &str,
    charge: &Charge,
    now: Millis,
) -> Result<Result<Amount, Refusal>, DbError> {
    let held = charge.cost(charge.units).ok_or_else(|| {
        DbError::Refused(format!(
            "the price of {model} times {} is too large",
            charge.units
        ))
    })?;
    if let Err(refusal) = batch.accounts.hold(payer, held) {
        return Ok(Err(refusal));
    }
    let Payer { user_id, key_id } = payer;
    let (per, units) = (signed(charge.per)?, signed(charge.units)?);
    batch.run(
        &OPEN_CHARGE,
        args![
            id,
            user_id,
            key_id,
            model,
            charge.price,
            per,
            units,
            held,
            now
        ],
    )?;
    enter(batch, id, "hold", payer, held, now)?;
    Ok(Ok(held))
}

/// Closes the charge `id`: `units` of it are paid for, the rest is released. Returns what was paid.
pub(crate) async fn close_charge(
    batch: &mut Batch<'_, '_>,
    id: &str,
    payer: Payer<'_>,
    units: u64,
    now: Millis,
) -> Result<Amount, DbError> {
    let open = batch.first(&READ_CHARGE, args![id]).await?;
    let row = open.ok_or_else(|| DbError::Shape(format!("charge {id} is not open")))?;
    let charge = Charge {
        price: row.amount(0)?,
        per: unsigned(row.int(1)?)?,
        units: unsigned(row.int(2)?)?,
    };
    let held = row.amount(3)?;
    let units = units.min(charge.units);
    let settled = charge.cost(units).unwrap_or(held).min(held);
    let released = held - settled;
    batch.accounts.end_hold(payer, held, settled)?;
    batch.run(
        &CLOSE_CHARGE,
        args![signed(units)?, settled, released, now, id],
    )?;
    enter(batch, id, "settle", payer, settled, now)?;
    enter(batch, id, "release", payer, released, now)?;
    Ok(settled)
}

/// Adds to a user's balance or, negative, takes from it, but never what is held. `reference` is unique.
pub(crate) fn credit(
    batch: &mut Batch<'_, '_>,
    reference: &str,
    user_id: &str,
    amount: Amount,
    note: Option<&str>,
    now: Millis,
) -> Result<Result<(), Refusal>, DbError> {
    let Some(user) = batch.accounts.users.get_mut(user_id) else {
        return Ok(Err(Refusal::Gone));
    };
    let available = user.balance - user.held;
    if !user.unlimited && amount.is_negative() && (available + amount).is_negative() {
        return Ok(Err(Refusal::UserBalance { available }));
    }
    user.move_by(amount, Amount::ZERO, Amount::ZERO);
    batch.run(
        &ENTER,
        args![
            reference,
            "credit",
            user_id,
            None::<&str>,
            amount,
            note,
            now
        ],
    )?;
    Ok(Ok(()))
}

/// Writes down the quota that a new key was given, so that the audit can tell when it was changed.
pub(crate) fn grant_quota(
    batch: &mut Batch<'_, '_>,
    payer: Payer<'_>,
    quota: Amount,
    now: Millis,
) -> Result<(), DbError> {
    enter_any(batch, payer.key_id, "quota", payer, quota, now)
}

/// Nothing moved is nothing to enter.
fn enter(
    batch: &mut Batch<'_, '_>,
    id: &str,
    kind: &str,
    payer: Payer<'_>,
    amount: Amount,
    now: Millis,
) -> Result<(), DbError> {
    if amount == Amount::ZERO {
        return Ok(());
    }
    enter_any(batch, id, kind, payer, amount, now)
}

fn enter_any(
    batch: &mut Batch<'_, '_>,
    id: &str,
    kind: &str,
    payer: Payer<'_>,
    amount: Amount,
    now: Millis,
) -> Result<(), DbError> {
    let Payer { user_id, key_id } = payer;
    batch.run(
        &ENTER,
        args![id, kind, user_id, key_id, amount, None::<&str>, now],
    )
}

fn signed(n: u64) -> Result<i64, DbError> {
    i64::try_from(n).map_err(|_| DbError::Refused(format!("{n} is too large")))
}

fn unsigned(n: i64) -> Result<u64, DbError> {
    u64::try_from(n).map_err(|_| DbError::Shape(format!("{n} is negative")))
}
