//! The charges of each user's chats with each model, and how many of these chats are estimated, clamped or unpaid.

use tollgate_core::{Amount, Millis, money};

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;

// Units and billionths are summed separately: the sum of many amounts in billionths may exceed 64 bits.
const CHARGE_SUMS: Sql = Sql::both(
    "SELECT u.name, c.model, COUNT(*), CAST(SUM(c.estimated) AS BIGINT), CAST(SUM(CASE WHEN c.clamped > 0 THEN 1 ELSE 0 END) AS BIGINT),
            CAST(SUM(c.settled / 1000000000) AS BIGINT), CAST(SUM(c.settled % 1000000000) AS BIGINT),
            CAST(SUM(c.debt / 1000000000) AS BIGINT), CAST(SUM(c.debt % 1000000000) AS BIGINT),
            CAST(SUM(c.forgiven / 1000000000) AS BIGINT), CAST(SUM(c.forgiven % 1000000000) AS BIGINT)
     FROM chats c JOIN users u ON u.id = c.user_id
     WHERE c.closed_at IS NOT NULL AND c.closed_at >= $1 GROUP BY u.name, c.model ORDER BY u.name, c.model",
);

/// The sums of the charges of one user's ended chats with one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatChargeSums {
    /// The user's name.
    pub user: String,
    /// The model as clients name it.
    pub model: String,
    /// Number of chats.
    pub chats: i64,
    /// The number of chats whose tokens the gateway estimated.
    pub estimated: i64,
    /// The number of chats for which the upstream reported more tokens than the request can have used.
    pub clamped: i64,
    /// The amount that was charged.
    pub charged: Amount,
    /// The part of it that neither balance nor quota covered when it was charged. It may have been paid since.
    pub debt: Amount,
    /// The amount that was not charged, by versions that wrote off what was not covered.
    pub written_off: Amount,
}

/// Sums of the charges of chats.
impl Store {
    /// The charges of the chats that ended at `since` or later, by user and model. Reads every such chat.
    pub async fn chat_charge_sums(&self, since: Millis) -> Result<Vec<ChatChargeSums>, StoreError> {
        let mut rows = self.query(&CHARGE_SUMS, args![since]).await?;
        Ok(rows.iter_mut().map(read_sums).collect::<Result<_, _>>()?)
    }
}

fn read_sums(row: &mut Row) -> Result<ChatChargeSums, DbError> {
    let sum = |row: &Row, at: usize| -> Result<Amount, DbError> {
        let nanos = row.int(at)?.saturating_mul(money::NANOS);
        Ok(Amount::from_nanos(nanos.saturating_add(row.int(at + 1)?)))
    };
    Ok(ChatChargeSums {
        user: row.text(0)?,
        model: row.text(1)?,
        chats: row.int(2)?,
        estimated: row.int(3)?,
        clamped: row.int(4)?,
        charged: sum(row, 5)?,
        debt: sum(row, 7)?,
        written_off: sum(row, 9)?,
    })
}
