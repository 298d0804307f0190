//! The one module that moves money: hold, settle, release, charge, credit. Everything else asks it to.
//!
//! A user's row holds three sums over the entries (the ledger, and chats that are their own entries): `balance` (credits less settlements and charges), `held` (holds less
//! settlements and releases) and `used` (settlements and charges); a key's row holds the last two. Within a batch each row
//! is read once, locked, moved in memory as often as the batch needs, and written back once by a guarded
//! update. Two batches, of one node or of many, therefore cannot both spend the same money: the second one
//! waits for the row lock (PostgreSQL) or the write lock (SQLite), and the guard in the update stands behind
//! both. Where a process is alone on its database, running chats set money aside in memory ([`reserved`]); batches leave it
//! alone. The ledger's key `(ref, kind)` makes each movement of a charge happen at most once.

mod accounts;
mod chat;
mod reserved;
mod seal;

use tollgate_core::{Amount, Millis};

use crate::batch::Batch;
use crate::db::{DbError, Sql, args};
use crate::model::{Charge, Delivered, Refusal};

pub(crate) use accounts::Accounts;
#[cfg(test)]
pub(crate) use chat::{CLOSE_CHAT, READ_CHAT};
pub(crate) use chat::{
    EndedChat, Figures, PAGE_OF_CHATS, charge_chat, chat_hold, close_chat, open_chat, write_ended,
};
pub use reserved::Reservation;
pub(crate) use reserved::{ROOM, Reserved, Room, Tried};
pub(crate) use seal::seal;

const ENTER: Sql = Sql::both(
    "INSERT INTO ledger (ref, kind, user_id, key_id, amount, note, at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
);
const OPEN_CHARGE: Sql = Sql::both(
    "INSERT INTO charges (id, user_id, key_id, model, price, per, units, held, opened_at, seal)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
);
pub(crate) const READ_CHARGE: Sql = Sql::both(
    "SELECT user_id, key_id, price, per, units, held FROM charges WHERE id = $1 AND closed_at IS NULL",
);
pub(crate) const CLOSE_CHARGE: Sql = Sql::both(
    "UPDATE charges SET units_settled = $1, settled = $2, released = $3, closed_at = $4, seal = $5
     WHERE id = $6 AND closed_at IS NULL",
);

/// Who pays for a charge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payer<'a> {
    pub(crate) user_id: &'a str,
    pub(crate) key_id: &'a str,
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
            "the price of {model} times {} is negative or too large",
            charge.units
        ))
    })?;
    if let Err(refusal) = batch.accounts.hold(payer, held)? {
        return Ok(Err(refusal));
    }
    let Payer { user_id, key_id } = payer;
    let (price, per, units) = (charge.price, signed(charge.per)?, signed(charge.units)?);
    let seal = seal(
        [id, user_id, key_id],
        &[price.nanos(), per, units, held.nanos()],
    );
    let args = args![
        id, user_id, key_id, model, price, per, units, held, now, seal
    ];
    batch.run(&OPEN_CHARGE, args)?;
    enter(batch, id, "hold", payer, held, now)?;
    Ok(Ok(held))
}

/// Closes the charge `id`: what was delivered of it is paid for, the rest is released. Returns what was paid.
pub(crate) async fn close_charge(
    batch: &mut Batch<'_, '_>,
    id: &str,
    payer: Payer<'_>,
    delivered: Delivered,
    now: Millis,
) -> Result<Amount, DbError> {
    let open = batch.first(&READ_CHARGE, args![id]).await?;
    let mut row = open.ok_or_else(|| DbError::Shape(format!("charge {id} is not open")))?;
    let Payer { user_id, key_id } = payer;
    if row.text(0)? != user_id || row.text(1)? != key_id {
        return Err(DbError::Refused(format!(
            "charge {id} is not for {payer:?} to pay"
        )));
    }
    let (price, per, ordered) = (row.amount(2)?, row.int(3)?, row.int(4)?);
    let charge = Charge {
        price,
        per: unsigned(per)?,
        units: unsigned(ordered)?,
    };
    let held = row.amount(5)?;
    let units = delivered.units(charge.units);
    // Rounding never makes part of the units cost more than all of them; a hold is the most that is ever paid.
    let settled = charge.cost(units).unwrap_or(held).min(held);
    let released = held - settled;
    batch.accounts.end_hold(payer, held, settled)?;
    let units = signed(units)?;
    let (nanos, paid, freed) = (price.nanos(), settled.nanos(), released.nanos());
    let seal = seal(
        [id, user_id, key_id],
        &[nanos, per, ordered, held.nanos(), units, paid, freed],
    );
    batch.run_one(
        &CLOSE_CHARGE,
        args![units, settled, released, now, seal, id],
    )?;
    enter(batch, id, "settle", payer, settled, now)?;
    enter(batch, id, "release", payer, released, now)?;
    Ok(settled)
}

/// Adds to a user's balance or, negative, takes from it, but never what is held or reserved. `reference` is unique.
pub(crate) fn credit(
    batch: &mut Batch<'_, '_>,
    reference: &str,
    user_id: &str,
    amount: Amount,
    note: Option<&str>,
    now: Millis,
) -> Result<Result<(), Refusal>, DbError> {
    if let Err(refusal) = batch.accounts.credit(user_id, amount)? {
        return Ok(Err(refusal));
    }
    if amount != Amount::ZERO {
        enter_user(batch, reference, "credit", user_id, amount, note, now)?;
    }
    Ok(Ok(()))
}

/// Begins the account of a user that was made just now, with what it opens with.
pub(crate) fn open_account(
    batch: &mut Batch<'_, '_>,
    reference: &str,
    user_id: &str,
    unlimited: bool,
    opening: Amount,
    now: Millis,
) -> Result<Result<(), Refusal>, DbError> {
    batch.accounts.opened(user_id, unlimited);
    if unlimited {
        // Written down so that the audit can tell when it was changed.
        enter_user(
            batch,
            user_id,
            "unlimited",
            user_id,
            Amount::ZERO,
            None,
            now,
        )?;
    }
    let note = Some("opening balance");
    credit(batch, reference, user_id, opening, note, now)
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

/// An entry that concerns a user and none of its keys.
fn enter_user(
    batch: &mut Batch<'_, '_>,
    reference: &str,
    kind: &str,
    user_id: &str,
    amount: Amount,
    note: Option<&str>,
    now: Millis,
) -> Result<(), DbError> {
    let none = None::<&str>;
    batch.run(
        &ENTER,
        args![reference, kind, user_id, none, amount, note, now],
    )
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
