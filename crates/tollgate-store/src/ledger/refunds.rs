//! Refunds of a part of what a task or chat settled, or of all of it. A charge may be refunded several times; the sum is never more than was settled.

use tollgate_core::{Amount, Millis, TaskKind};

use super::account::Account;
use super::chat_rows::{ChatAmounts, READ_CHAT};
use super::checksum::{refund_checksum_numbers, row_checksum};
use super::entries::insert_refund;
use crate::db::{DbError, Row, Sql, args};
use crate::usage::UsageSums;
use crate::writer::batch::Batch;

/// Digits of the number after the colon in a refund's reference.
const NUMBER_DIGITS: usize = 19;

pub(crate) const READ_CHARGE: Sql = Sql::both(
    "SELECT c.user_id, c.key_id, c.price, c.per, c.units, c.held, c.units_settled, c.settled, c.released, c.refunded, c.id, t.kind, t.job,
            c.model, (SELECT a.channel FROM attempts a WHERE a.task_id = c.id ORDER BY a.number DESC LIMIT 1)
     FROM charges c LEFT JOIN tasks t ON t.id = c.id WHERE c.id = $1",
);
pub(crate) const READ_CHAT_CHARGE: Sql = Sql::both(
    "SELECT user_id, key_id, held, settled, refunded, input + cached_input + cache_write + output + reasoning, id, model, channel FROM chats WHERE id = $1",
);
pub(crate) const COUNT_REFUNDS: Sql =
    Sql::both("SELECT COUNT(*) FROM ledger WHERE ref > $1 AND ref < $2 AND kind = 'refund'");
pub(crate) const SET_CHARGE_REFUNDED: Sql =
    Sql::both("UPDATE charges SET refunded = $1, seal = $2 WHERE id = $3");
pub(crate) const SET_TASK_REFUNDED: Sql = Sql::both("UPDATE tasks SET refunded = $1 WHERE id = $2");
pub(crate) const SET_CHAT_REFUNDED: Sql =
    Sql::both("UPDATE chats SET refunded = $1, seal = $2 WHERE id = $3");

/// The charge of a task or chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChargeRecord {
    /// The id of the task or chat.
    pub id: String,
    /// The user who pays.
    pub user_id: String,
    /// The key it was requested with.
    pub key_id: String,
    /// Price of one unit. `None` for a chat, and if the price of one unit has more than nine decimals.
    pub price: Option<Amount>,
    /// The ordered units; for a chat, its tokens.
    pub units: i64,
    /// Kind and job of the task; the job is a JSON object. `None` for a chat, and once the task was purged.
    pub job: Option<(TaskKind, String)>,
    /// The amount that was held.
    pub held: Amount,
    /// The amount that was settled. `None` until the task or chat has ended.
    pub settled: Option<Amount>,
    /// The part of it that was refunded.
    pub refunded: Amount,
    /// The model.
    pub model: String,
    /// The channel that served it, or that of the last attempt. `None` if there is none, and once a task was purged.
    pub channel: Option<String>,
}

impl ChargeRecord {
    /// The amount that can still be refunded.
    pub fn left(&self) -> Amount {
        self.settled.unwrap_or(Amount::ZERO) - self.refunded
    }

    /// Reads a task's charge from a row of [`READ_CHARGE`].
    pub(crate) fn of_task(row: &mut Row) -> Result<Self, DbError> {
        let (price, per) = (row.int(2)?, row.int(3)?);
        let kind = row.opt_text(11)?;
        let kind = kind.as_deref().and_then(TaskKind::from_name);
        let is_exact = per != 0 && price % per == 0;
        Ok(Self {
            id: row.text(10)?,
            user_id: row.text(0)?,
            key_id: row.text(1)?,
            price: is_exact.then(|| Amount::from_nanos(price / per)),
            units: row.int(4)?,
            job: kind.zip(row.opt_text(12)?),
            held: row.amount(5)?,
            settled: row.opt_int(7)?.map(Amount::from_nanos),
            refunded: row.amount(9)?,
            model: row.text(13)?,
            channel: row.opt_text(14)?,
        })
    }

    /// Reads a chat's charge from a row of [`READ_CHAT_CHARGE`].
    pub(crate) fn of_chat(row: &mut Row) -> Result<Self, DbError> {
        Ok(Self {
            id: row.text(6)?,
            user_id: row.text(0)?,
            key_id: row.text(1)?,
            price: None,
            units: row.int(5)?,
            job: None,
            held: Amount::from_nanos(row.opt_int(2)?.unwrap_or(0)),
            settled: row.opt_int(3)?.map(Amount::from_nanos),
            refunded: row.amount(4)?,
            model: row.text(7)?,
            channel: row.opt_text(8)?,
        })
    }
}

/// The id of the task or chat in a refund's reference.
pub(crate) fn refunded_id(reference: &str) -> &str {
    reference.split(':').next().unwrap_or(reference)
}

/// The charge of a task or chat within a batch; `None` if there is none.
pub(crate) async fn read_charge(
    batch: &mut Batch<'_, '_>,
    id: &str,
    is_chat: bool,
) -> Result<Option<ChargeRecord>, DbError> {
    let sql = if is_chat {
        &READ_CHAT_CHARGE
    } else {
        &READ_CHARGE
    };
    let Some(mut row) = batch.first(sql, args![id]).await? else {
        return Ok(None);
    };
    let charge = match is_chat {
        true => ChargeRecord::of_chat(&mut row)?,
        false => ChargeRecord::of_task(&mut row)?,
    };
    Ok(Some(charge))
}

/// Refunds `amount`, which must not be more than `charge` has left: raises the user's balance and lowers what user and key have used. Returns the
/// reference of the ledger entry.
pub(crate) async fn refund(
    batch: &mut Batch<'_, '_>,
    charge: &ChargeRecord,
    is_chat: bool,
    amount: Amount,
    reason: &str,
    now: Millis,
) -> Result<String, DbError> {
    let ChargeRecord {
        id,
        user_id,
        key_id,
        ..
    } = charge;
    if amount <= Amount::ZERO || amount > charge.left() {
        let left = charge.left();
        return Err(DbError::Failed(format!(
            "{amount} is not between 0 and {left}, which is left of the charge {id}"
        )));
    }
    let account = Account { user_id, key_id };
    let refunded = charge.refunded + amount;
    batch.balances.refund(account, amount, now)?;
    // ';' follows ':' in the order of characters.
    let bounds = [format!("{id}:"), format!("{id};")];
    let count = batch
        .first(&COUNT_REFUNDS, args![&bounds[0], &bounds[1]])
        .await?;
    let number = 1 + count.map_or(Ok(0), |row| row.int(0))?;
    let reference = format!("{id}:{number:0NUMBER_DIGITS$}");
    insert_refund(batch, &reference, account, amount, reason, now)?;
    let channel = charge.channel.clone().unwrap_or_default();
    let names = [
        charge.model.clone(),
        user_id.clone(),
        key_id.clone(),
        channel,
    ];
    let sums = UsageSums {
        cost: -amount.nanos(),
        ..UsageSums::default()
    };
    batch.usage.add(now, names, sums);
    if is_chat {
        let row = batch.first(&READ_CHAT, args![id]).await?;
        let row = row.ok_or_else(|| DbError::UnexpectedData(format!("chat {id} has no row")))?;
        let amounts = ChatAmounts {
            refunded: refunded.nanos(),
            ..ChatAmounts::read(&row, 3)?
        };
        let checksum = amounts.checksum([id, user_id, key_id]);
        batch.queue_one(&SET_CHAT_REFUNDED, args![refunded, checksum, id])?;
    } else {
        let row = batch.first(&READ_CHARGE, args![id]).await?;
        let row = row.ok_or_else(|| DbError::UnexpectedData(format!("charge {id} has no row")))?;
        let mut numbers = Vec::with_capacity(9);
        for column in 2..9 {
            numbers.push(row.int(column)?);
        }
        numbers.extend(refund_checksum_numbers(refunded.nanos()));
        let checksum = row_checksum([id, user_id, key_id], &numbers);
        batch.queue_one(&SET_CHARGE_REFUNDED, args![refunded, checksum, id])?;
        batch.queue(&SET_TASK_REFUNDED, args![refunded, id])?;
    }
    Ok(reference)
}
