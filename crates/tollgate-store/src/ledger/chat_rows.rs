//! Rows of the table `chats`: the amounts of a chat request, their checksum, and inserting rows, several with one statement.

use std::sync::Arc;

use tollgate_core::{Amount, money};

use super::checksum::{refund_checksum_numbers, row_checksum};
use crate::chats::prices::{TokenCounts, TokenPrices};
use crate::chats::record::{ChatEnd, NewChat};
use crate::db::{DbError, Row, RowsSql, Sql, Tx, Value, cells};
use crate::list_blocks::{self, BlockEnds, List};

/// The columns in the order of [`chat_row`].
pub(super) static INSERT_CHAT: RowsSql = RowsSql::insert(Sql::both(
    "INSERT INTO chats (id, user_id, key_id, model, format, streamed, request_id,
    input_price, cached_input_price, cache_write_price, output_price, reasoning_price,
    input, cached_input, cache_write, output, reasoning, estimated, held, settled, forgiven, debt, clamped, parts_cost, parts,
    outcome, channel, upstream_model, attempts, dropped, node, opened_at, closed_at, seal)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
            $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34)",
));
const COLUMNS: usize = 34;

/// The columns that [`ChatAmounts::read`] reads, in its order.
macro_rules! amount_columns {
    () => {
        "input_price, cached_input_price, cache_write_price, output_price, reasoning_price, \
         input, cached_input, cache_write, output, reasoning, estimated, held, settled, forgiven, debt, clamped, parts_cost, refunded"
    };
}
pub(crate) const READ_CHAT: Sql = Sql::both(concat!(
    "SELECT user_id, key_id, outcome, ",
    amount_columns!(),
    ", model FROM chats WHERE id = $1"
));
/// The column of [`READ_CHAT`] that contains the model: it follows three other columns and the amounts.
pub(super) const CHAT_MODEL: usize = 3 + 18;
pub(crate) const READ_CHATS_AFTER: Sql = Sql::both(concat!(
    "SELECT id, user_id, key_id, seal, outcome, ",
    amount_columns!(),
    ", parts FROM chats WHERE id > $1 ORDER BY id LIMIT 1000"
));

/// The amounts of a row of `chats`, unchecked: prices and amounts in billionths, counts in tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChatAmounts {
    pub(crate) prices: [i64; 5],
    pub(crate) tokens: [i64; 5],
    /// 1 if the gateway estimated the token counts.
    pub(crate) estimated: i64,
    /// `None` if nothing was held on disk.
    pub(crate) held: Option<i64>,
    /// Settled and written off; `None` while the chat is open.
    pub(crate) closed: Option<[i64; 2]>,
    /// The part of what was settled that neither balance nor quota covered.
    pub(crate) debt: i64,
    /// Tokens that the upstream reported and that exceed what the request can have used.
    pub(crate) clamped: i64,
    /// The cost of parts that are charged separately; while the chat is open, the amount that is held for them.
    pub(crate) parts_cost: i64,
    /// The refunded part of what was settled.
    pub(crate) refunded: i64,
}

impl ChatAmounts {
    pub(super) fn new(prices: &TokenPrices, tokens: &TokenCounts) -> Result<Self, DbError> {
        let mut amounts = Self {
            prices: prices.to_columns().map(Amount::nanos),
            tokens: [0; 5],
            estimated: 0,
            held: None,
            closed: None,
            debt: 0,
            clamped: 0,
            parts_cost: 0,
            refunded: 0,
        };
        for (cell, count) in amounts.tokens.iter_mut().zip(tokens.to_columns()) {
            *cell = i64::try_from(count)
                .map_err(|_| DbError::Failed(format!("{count} tokens are too many")))?;
        }
        Ok(amounts)
    }

    /// Reads the columns from `first` on.
    pub(crate) fn read(row: &Row, first: usize) -> Result<Self, DbError> {
        let mut numbers = [0; 11];
        for (at, number) in numbers.iter_mut().enumerate() {
            *number = row.int(first + at)?;
        }
        let [p0, p1, p2, p3, p4, t0, t1, t2, t3, t4, estimated] = numbers;
        let closed = row.opt_int(first + 12)?.zip(row.opt_int(first + 13)?);
        Ok(Self {
            prices: [p0, p1, p2, p3, p4],
            tokens: [t0, t1, t2, t3, t4],
            estimated,
            held: row.opt_int(first + 11)?,
            closed: closed.map(<[i64; 2]>::from),
            debt: row.int(first + 14)?,
            clamped: row.int(first + 15)?,
            parts_cost: row.int(first + 16)?,
            refunded: row.int(first + 17)?,
        })
    }

    /// The cost of tokens and parts; `None` if a number is out of range.
    pub(crate) fn cost(&self) -> Option<Amount> {
        let mut tokens = [0; 5];
        for (token, cell) in tokens.iter_mut().zip(self.tokens) {
            *token = u64::try_from(cell).ok()?;
        }
        let prices = TokenPrices::from_columns(self.prices.map(Amount::from_nanos));
        let cost = prices.cost(&TokenCounts::from_columns(tokens))?;
        let with_parts = cost.nanos().checked_add(self.parts_cost)?;
        Some(Amount::from_nanos(with_parts)).filter(|cost| *cost <= money::MAX)
    }

    /// The checksum of a row with these amounts and these ids (chat, user, key). If a row has no debt, clamped tokens, parts and refunds, its
    /// checksum is the same as before these columns existed.
    pub(crate) fn checksum(&self, ids: [&str; 3]) -> i64 {
        let mut numbers = Vec::with_capacity(20);
        numbers.extend(self.prices);
        numbers.extend(self.tokens);
        numbers.extend([
            self.estimated,
            self.held.is_some().into(),
            self.held.unwrap_or(0),
        ]);
        if let Some(closed) = self.closed {
            numbers.extend(closed);
            if self.debt != 0 || self.clamped != 0 {
                numbers.extend([self.debt, self.clamped]);
            }
        }
        if self.parts_cost != 0 {
            numbers.push(self.parts_cost);
        }
        numbers.extend(refund_checksum_numbers(self.refunded));
        row_checksum(ids, &numbers)
    }
}

/// A chat that is inserted when it ends (opened and closed at once) and is waiting in a batch for its insertion.
pub(crate) struct EndedChat {
    pub(super) chat: Arc<NewChat>,
    pub(super) end: Arc<ChatEnd>,
    pub(super) amounts: ChatAmounts,
}

impl EndedChat {
    fn row(&self) -> [Value<'_>; COLUMNS] {
        chat_row(&self.chat, &self.amounts, Some(&self.end), None)
    }
}

/// Inserts ended chats. They are sorted by id, so that all are appended at the end of the table; several are inserted with one statement, because the
/// fixed cost of a statement is about that of a row.
pub(crate) fn insert_ended_chats(
    tx: &mut Tx<'_>,
    block_ends: &BlockEnds,
    mut chats: Vec<EndedChat>,
) -> Result<(), DbError> {
    chats.sort_unstable_by(|a, b| a.chat.id.cmp(&b.chat.id));
    if let Some(first) = chats.first() {
        list_blocks::note_inserted(tx, block_ends, List::Chats, &first.chat.id)?;
    }
    tx.queue_rows(&INSERT_CHAT, chats.iter().map(EndedChat::row))
}

/// The cells of a row, in the order of [`INSERT_CHAT`].
pub(super) fn chat_row<'a>(
    chat: &'a NewChat,
    amounts: &ChatAmounts,
    end: Option<&'a ChatEnd>,
    node: Option<&'a str>,
) -> [Value<'a>; COLUMNS] {
    let [p0, p1, p2, p3, p4] = amounts.prices;
    let [t0, t1, t2, t3, t4] = amounts.tokens;
    let checksum = amounts.checksum([&chat.id, &chat.user_id, &chat.key_id]);
    cells![
        &chat.id,
        &chat.user_id,
        &chat.key_id,
        &chat.model,
        chat.format,
        chat.streamed,
        &chat.request_id,
        p0,
        p1,
        p2,
        p3,
        p4,
        t0,
        t1,
        t2,
        t3,
        t4,
        amounts.estimated,
        amounts.held,
        amounts.closed.map(|[settled, _]| settled),
        amounts.closed.map(|[_, written_off]| written_off),
        amounts.debt,
        amounts.clamped,
        amounts.parts_cost,
        end.map_or("", |end| end.parts.column()),
        end.map(|end| end.outcome),
        end.and_then(|end| end.channel.as_ref()),
        end.and_then(|end| end.upstream_model.as_ref()),
        end.map_or("[]", attempts_column),
        end.and_then(|end| end.dropped.as_ref()),
        node,
        chat.opened_at,
        end.map(|end| end.ended_at),
        checksum
    ]
}

/// The value of the column `attempts`; an empty text there means that the details were purged.
pub(super) fn attempts_column(end: &ChatEnd) -> &str {
    if end.attempts.is_empty() {
        "[]"
    } else {
        &end.attempts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored rows keep the checksum that they were written with.
    #[test]
    fn only_columns_that_a_row_uses_are_in_its_checksum() {
        let ids = ["chat", "user", "key"];
        let open = ChatAmounts {
            prices: [1, 2, 3, 4, 5],
            tokens: [6, 7, 8, 9, 10],
            estimated: 1,
            held: None,
            closed: None,
            debt: 0,
            clamped: 0,
            parts_cost: 0,
            refunded: 0,
        };
        let closed = ChatAmounts {
            held: Some(11),
            closed: Some([12, 13]),
            ..open
        };
        let (debt, clamped) = (14, 15);
        let rows: [(ChatAmounts, &[i64]); 8] = [
            (open, &[0, 0]),
            (closed, &[1, 11, 12, 13]),
            (ChatAmounts { debt, ..closed }, &[1, 11, 12, 13, 14, 0]),
            (ChatAmounts { clamped, ..closed }, &[1, 11, 12, 13, 0, 15]),
            // An open chat has no debt yet.
            (ChatAmounts { debt, ..open }, &[0, 0]),
            (
                ChatAmounts {
                    parts_cost: 16,
                    ..closed
                },
                &[1, 11, 12, 13, 16],
            ),
            (
                ChatAmounts {
                    refunded: 17,
                    ..closed
                },
                &[1, 11, 12, 13, 0, 17],
            ),
            (
                ChatAmounts {
                    refunded: 17,
                    ..open
                },
                &[0, 0, 0, 17],
            ),
        ];
        for (amounts, rest) in rows {
            let numbers = [&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1], rest].concat();
            let expected = row_checksum(ids, &numbers);
            assert_eq!(amounts.checksum(ids), expected, "{amounts:?}");
        }
    }
}
