//! Charges of tasks (table `charges`): the full price is held at submission; at the end the delivered part is settled and the rest is released.

use tollgate_core::{Amount, Millis, TaskKind, TaskState, money};

use super::account::{Account, Rejection};
use super::checksum::row_checksum;
use super::entries::insert_entry;
use crate::db::{DbError, RowsSql, Sql, args};
use crate::tail::recorder::TailEvent;
use crate::usage::UsageSums;
use crate::writer::batch::Batch;

static OPEN_CHARGE: RowsSql = RowsSql::insert(Sql::both(
    "INSERT INTO charges (id, user_id, key_id, model, price, per, units, held, opened_at, seal)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
));
pub(crate) const READ_OPEN_CHARGE: Sql = Sql::both(
    "SELECT user_id, key_id, price, per, units, held, model FROM charges WHERE id = $1 AND closed_at IS NULL",
);
pub(crate) const CLOSE_CHARGE: Sql = Sql::both(
    "UPDATE charges SET units_settled = $1, settled = $2, released = $3, closed_at = $4, seal = $5
     WHERE id = $6 AND closed_at IS NULL",
);

/// The price of one submission, frozen when it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// Price of `units_per_price` units.
    pub price: Amount,
    /// The number of units that the price is for: 1 for images and seconds, 1,000 or 1,000,000 for characters.
    pub units_per_price: u64,
    /// Units ordered. The hold covers all of them.
    pub units: u64,
}

impl Charge {
    /// The cost of `units`: price × units ÷ per, rounded half up once. `None` if the price is negative, or price or cost is
    /// above [`money::MAX`].
    pub fn cost(&self, units: u64) -> Option<Amount> {
        let in_range = !self.price.is_negative() && self.price <= money::MAX;
        in_range
            .then(|| self.price.times(units, self.units_per_price))
            .flatten()
    }
}

/// How much of the ordered units a completed task delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// This number of units. Units beyond the order are free.
    Units(u64),
    /// All units ordered.
    FullOrder,
}

impl Delivered {
    /// The delivered units of `files` result files: each image is a unit; one video or speech file is the full order, however many seconds or
    /// characters were ordered.
    pub fn from_files(kind: TaskKind, files: u64) -> Self {
        if kind == TaskKind::Image || files == 0 {
            Self::Units(files)
        } else {
            Self::FullOrder
        }
    }

    /// The units to settle, of `ordered` units.
    pub(crate) fn units(self, ordered: u64) -> u64 {
        match self {
            Self::Units(units) => units.min(ordered),
            Self::FullOrder => ordered,
        }
    }
}

/// The data that usage counts for a task that ends.
pub(crate) struct EndedTask<'a> {
    pub(crate) kind: TaskKind,
    /// The seconds of video that the task delivers if it completes.
    pub(crate) seconds: i64,
    /// The channel of its last attempt; empty if there was none.
    pub(crate) channel: &'a str,
    /// Its final state.
    pub(crate) state: TaskState,
}

/// Opens the charge `id` and holds its full price. If this returns a rejection, it has written nothing.
pub(crate) fn open_charge(
    batch: &mut Batch<'_, '_>,
    id: &str,
    account: Account<'_>,
    model: &str,
    charge: &Charge,
    now: Millis,
) -> Result<Result<Amount, Rejection>, DbError> {
    let held = charge.cost(charge.units).ok_or_else(|| {
        DbError::Failed(format!(
            "the price of {model} times {} is negative or too large",
            charge.units
        ))
    })?;
    if let Err(rejection) = batch.balances.hold(account, held, now)? {
        return Ok(Err(rejection));
    }
    let Account { user_id, key_id } = account;
    let (price, per, units) = (
        charge.price,
        to_signed(charge.units_per_price)?,
        to_signed(charge.units)?,
    );
    let checksum = row_checksum(
        [id, user_id, key_id],
        &[price.nanos(), per, units, held.nanos()],
    );
    let args = args![
        id, user_id, key_id, model, price, per, units, held, now, checksum
    ];
    batch.queue_row(&OPEN_CHARGE, args)?;
    insert_entry(batch, id, "hold", account, held, now)?;
    Ok(Ok(held))
}

/// Closes the charge `id`: settles the delivered part and releases the rest of the hold. Returns the settled amount.
pub(crate) async fn close_charge(
    batch: &mut Batch<'_, '_>,
    id: &str,
    account: Account<'_>,
    delivered: Delivered,
    end: &EndedTask<'_>,
    now: Millis,
) -> Result<Amount, DbError> {
    let open = batch.first(&READ_OPEN_CHARGE, args![id]).await?;
    let mut row =
        open.ok_or_else(|| DbError::UnexpectedData(format!("charge {id} is not open")))?;
    let Account { user_id, key_id } = account;
    if row.text(0)? != user_id || row.text(1)? != key_id {
        return Err(DbError::Failed(format!(
            "charge {id} does not belong to {account:?}"
        )));
    }
    let (price, per, ordered) = (row.amount(2)?, row.int(3)?, row.int(4)?);
    let charge = Charge {
        price,
        units_per_price: to_unsigned(per)?,
        units: to_unsigned(ordered)?,
    };
    let held = row.amount(5)?;
    let units = delivered.units(charge.units);
    // Rounding cannot make a part of the units cost more than all of them; in any case the hold is the upper limit.
    let settled = charge.cost(units).unwrap_or(held).min(held);
    let released = held - settled;
    batch.balances.close_hold(account, held, settled, now)?;
    let units = to_signed(units)?;
    let [price, held, paid, rest] = [price, held, settled, released].map(Amount::nanos);
    let checksum = row_checksum(
        [id, user_id, key_id],
        &[price, per, ordered, held, units, paid, rest],
    );
    batch.queue_one(
        &CLOSE_CHARGE,
        args![units, settled, released, now, checksum, id],
    )?;
    let names = [&row.text(6)?, user_id, key_id, end.channel].map(str::to_owned);
    let sums = UsageSums {
        cost: paid,
        requests: 1,
        images: if end.kind == TaskKind::Image {
            units
        } else {
            0
        },
        seconds: if units > 0 { end.seconds } else { 0 },
        failed: (end.state == TaskState::Failed).into(),
        ..UsageSums::default()
    };
    batch.tail.add(&TailEvent {
        kind: "task",
        id,
        state: end.state.name(),
        model: &names[0],
        user_id,
        key_id,
        channel: Some(end.channel),
        cost: settled,
        at: now,
    });
    batch.usage.add(now, names, sums);
    insert_entry(batch, id, "settle", account, settled, now)?;
    insert_entry(batch, id, "release", account, released, now)?;
    Ok(settled)
}

fn to_signed(n: u64) -> Result<i64, DbError> {
    i64::try_from(n).map_err(|_| DbError::Failed(format!("{n} is too large")))
}

fn to_unsigned(n: i64) -> Result<u64, DbError> {
    u64::try_from(n).map_err(|_| DbError::UnexpectedData(format!("{n} is negative")))
}
