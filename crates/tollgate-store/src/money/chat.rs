//! Money of chat requests: held for before the provider is called where a limit could be overdrawn, and settled on the
//! tokens that were counted; elsewhere, and where it is reserved in memory ([`super::reserved`]), charged in one go at
//! the end.
//!
//! A hold is an estimate. Where the tokens cost more, the rest is taken from what user and key have left, as far as it
//! goes; what cannot be taken is forgiven.

use std::sync::{Arc, LazyLock};

use tollgate_core::Amount;

use super::{Payer, Reservation, enter, seal, signed};
use crate::batch::Batch;
use crate::db::{DbError, Row, Sql, Tx, Value, args, cells};
use crate::model::{ChatEnd, ChatSettled, NewChat, Refusal, TokenPrices, TokenUnits};

/// Into `chats`, in the order of [`row`]; the values are put behind it.
const INTO_CHATS: &str =
    "INSERT INTO chats (id, user_id, key_id, model, format, streamed, request_id,
    input_price, cached_input_price, cache_write_price, output_price, reasoning_price,
    input, cached_input, cache_write, output, reasoning, estimated, held, settled, forgiven,
    outcome, channel, upstream_model, attempts, node, opened_at, closed_at, seal) VALUES ";
const COLUMNS: usize = 29;
/// One row, and as many as are written at once where there are enough of them.
static INSERT_CHAT: LazyLock<Sql> = LazyLock::new(|| insertion(1));
static INSERT_CHATS: LazyLock<Sql> = LazyLock::new(|| insertion(AT_ONCE));
const AT_ONCE: usize = 8;
pub(crate) const CLOSE_CHAT: Sql = Sql::both(
    "UPDATE chats SET input = $1, cached_input = $2, cache_write = $3, output = $4, reasoning = $5, estimated = $6,
                      settled = $7, forgiven = $8, outcome = $9, channel = $10, upstream_model = $11, attempts = $12,
                      node = NULL, closed_at = $13, seal = $14
     WHERE id = $15 AND closed_at IS NULL",
);
/// The columns that [`Figures::read`] reads, in its order.
macro_rules! figures {
    () => {
        "input_price, cached_input_price, cache_write_price, output_price, reasoning_price, \
         input, cached_input, cache_write, output, reasoning, estimated, held, settled, forgiven"
    };
}
pub(crate) const READ_CHAT: Sql = Sql::both(concat!(
    "SELECT user_id, key_id, outcome, ",
    figures!(),
    " FROM chats WHERE id = $1"
));
pub(crate) const PAGE_OF_CHATS: Sql = Sql::both(concat!(
    "SELECT id, user_id, key_id, seal, outcome, ",
    figures!(),
    " FROM chats WHERE id > $1 ORDER BY id LIMIT 1000"
));

/// The numbers of a row of `chats`, whatever they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) prices: [i64; 5],
    pub(crate) units: [i64; 5],
    pub(crate) estimated: i64,
    /// None where nothing was held.
    pub(crate) held: Option<i64>,
    /// Settled and forgiven; none while it is open.
    pub(crate) ended: Option<[i64; 2]>,
}

impl Figures {
    fn new(prices: &TokenPrices, units: &TokenUnits) -> Result<Self, DbError> {
        let mut figures = Self {
            prices: prices.list().map(Amount::nanos),
            units: [0; 5],
            estimated: 0,
            held: None,
            ended: None,
        };
        for (cell, count) in figures.units.iter_mut().zip(units.list()) {
            *cell = signed(count)?;
        }
        Ok(figures)
    }

    /// From the columns from `first` on.
    pub(crate) fn read(row: &Row, first: usize) -> Result<Self, DbError> {
        let mut numbers = [0; 11];
        for (at, number) in numbers.iter_mut().enumerate() {
            *number = row.int(first + at)?;
        }
        let [p0, p1, p2, p3, p4, u0, u1, u2, u3, u4, estimated] = numbers;
        let ended = row.opt_int(first + 12)?.zip(row.opt_int(first + 13)?);
        Ok(Self {
            prices: [p0, p1, p2, p3, p4],
            units: [u0, u1, u2, u3, u4],
            estimated,
            held: row.opt_int(first + 11)?,
            ended: ended.map(<[i64; 2]>::from),
        })
    }

    /// What the units cost; none where the numbers are none that could have been written.
    pub(crate) fn cost(&self) -> Option<Amount> {
        let mut units = [0; 5];
        for (unit, cell) in units.iter_mut().zip(self.units) {
            *unit = u64::try_from(cell).ok()?;
        }
        let prices = TokenPrices::of(self.prices.map(Amount::from_nanos));
        prices.cost(&TokenUnits::of(units))
    }

    /// The seal of a row with these numbers and this id, user and key.
    pub(crate) fn seal(&self, words: [&str; 3]) -> i64 {
        let mut numbers = [0; 15];
        numbers[..5].copy_from_slice(&self.prices);
        numbers[5..10].copy_from_slice(&self.units);
        numbers[10] = self.estimated;
        numbers[11] = i64::from(self.held.is_some());
        numbers[12] = self.held.unwrap_or(0);
        match self.ended {
            None => seal(words, &numbers[..13]),
            Some(ended) => {
                numbers[13..].copy_from_slice(&ended);
                seal(words, &numbers)
            }
        }
    }
}

/// Opens a chat request and holds what `worst` of it costs. A refusal has written nothing.
pub(crate) fn open_chat(
    batch: &mut Batch<'_, '_>,
    chat: &NewChat,
    worst: &TokenUnits,
    node: &str,
) -> Result<Result<Amount, Refusal>, DbError> {
    let held = cost(chat, worst)?;
    let payer = payer(chat);
    if let Err(refusal) = batch.accounts.hold(payer, held)? {
        return Ok(Err(refusal));
    }
    let figures = Figures {
        held: Some(held.nanos()),
        ..Figures::new(&chat.prices, worst)?
    };
    let row = row(chat, &figures, None, Some(node));
    batch.run(&INSERT_CHAT, &row)?;
    enter(batch, &chat.id, "hold", payer, held, chat.opened_at)?;
    Ok(Ok(held))
}

/// Writes a chat request for which nothing is held on disk, opened and closed at once; returns what was charged. The row is
/// its own entry in the books.
pub(crate) fn charge_chat(
    batch: &mut Batch<'_, '_>,
    chat: &Arc<NewChat>,
    end: &Arc<ChatEnd>,
    reservation: Option<&Reservation>,
) -> Result<Amount, DbError> {
    let due = cost(chat, &end.units)?;
    let settled = batch.accounts.take(payer(chat), due, reservation)?;
    let figures = Figures {
        estimated: end.estimated.into(),
        ended: Some([settled, due - settled].map(Amount::nanos)),
        ..Figures::new(&chat.prices, &end.units)?
    };
    batch.ended_chats.push(EndedChat {
        chat: Arc::clone(chat),
        end: Arc::clone(end),
        figures,
    });
    Ok(settled)
}

/// A chat that is written at its end, and was not yet.
pub(crate) struct EndedChat {
    chat: Arc<NewChat>,
    end: Arc<ChatEnd>,
    figures: Figures,
}

/// Writes them. In the order of their ids they all go to the table's end; several in one statement share its beginning and
/// its end, which cost about as much as a row.
pub(crate) fn write_ended(tx: &mut Tx<'_>, mut chats: Vec<EndedChat>) -> Result<(), DbError> {
    chats.sort_unstable_by(|a, b| a.chat.id.cmp(&b.chat.id));
    let (eights, rest) = chats.as_chunks::<AT_ONCE>();
    for eight in eights {
        let mut cells = Vec::with_capacity(AT_ONCE * COLUMNS);
        for chat in eight {
            cells.extend(chat.row());
        }
        tx.run(&INSERT_CHATS, &cells)?;
    }
    for chat in rest {
        tx.run(&INSERT_CHAT, &chat.row())?;
    }
    Ok(())
}

impl EndedChat {
    fn row(&self) -> [Value<'_>; COLUMNS] {
        row(&self.chat, &self.figures, Some(&self.end), None)
    }
}

/// The statement that inserts so many rows.
fn insertion(rows: usize) -> Sql {
    let mut text = INTO_CHATS.to_owned();
    for cell in 0..rows * COLUMNS {
        let before = match (cell, cell % COLUMNS) {
            (0, _) => "(",
            (_, 0) => "), (",
            _ => ", ",
        };
        text.push_str(&format!("{before}${}", cell + 1));
    }
    text.push(')');
    Sql::both(text.leak())
}

/// What is or was held for a chat request, if it is there.
pub(crate) async fn chat_hold(
    batch: &mut Batch<'_, '_>,
    id: &str,
) -> Result<Option<Amount>, DbError> {
    let row = batch.first(&READ_CHAT, args![id]).await?;
    let held = row.map(|row| Figures::read(&row, 3)).transpose()?;
    Ok(held
        .and_then(|figures| figures.held)
        .map(Amount::from_nanos))
}

/// Closes a chat request that was held for, unless that has been done; none where it was never opened.
pub(crate) async fn close_chat(
    batch: &mut Batch<'_, '_>,
    id: &str,
    payer: Payer<'_>,
    end: &ChatEnd,
) -> Result<Option<ChatSettled>, DbError> {
    let Some(mut row) = batch.first(&READ_CHAT, args![id]).await? else {
        return Ok(None);
    };
    let Payer { user_id, key_id } = payer;
    if row.text(0)? != user_id || row.text(1)? != key_id {
        return Err(DbError::Refused(format!(
            "chat {id} is not for {payer:?} to pay"
        )));
    }
    let open = Figures::read(&row, 3)?;
    if let Some([settled, _]) = open.ended {
        let is_lost = row.opt_text(2)?.as_deref() == Some(ChatEnd::LOST);
        let cost = Amount::from_nanos(settled);
        return Ok(Some(if is_lost && end.outcome != ChatEnd::LOST {
            ChatSettled::Lost
        } else {
            ChatSettled::Done { cost }
        }));
    }
    let prices = TokenPrices::of(open.prices.map(Amount::from_nanos));
    let mut closed = Figures {
        estimated: end.estimated.into(),
        held: open.held,
        ..Figures::new(&prices, &end.units)?
    };
    let due = closed
        .cost()
        .ok_or_else(|| absurd(id, &prices, &end.units))?;
    let held = Amount::from_nanos(open.held.unwrap_or(0));
    let from_hold = due.min(held);
    batch.accounts.end_hold(payer, held, from_hold)?;
    let beyond = batch.accounts.take(payer, due - from_hold, None)?;
    let settled = from_hold + beyond;
    closed.ended = Some([settled, due - settled].map(Amount::nanos));
    let [u0, u1, u2, u3, u4] = closed.units;
    let (at, seal) = (end.ended_at, closed.seal([id, user_id, key_id]));
    batch.run_one(
        &CLOSE_CHAT,
        args![
            u0,
            u1,
            u2,
            u3,
            u4,
            end.estimated,
            settled,
            due - settled,
            end.outcome,
            end.channel.as_ref(),
            end.upstream_model.as_ref(),
            details(end),
            at,
            seal,
            id
        ],
    )?;
    enter(batch, id, "settle", payer, from_hold, at)?;
    enter(batch, id, "release", payer, held - from_hold, at)?;
    enter(batch, id, "charge", payer, beyond, at)?;
    Ok(Some(ChatSettled::Done { cost: settled }))
}

/// The cells of a row, as [`INTO_CHATS`] names them.
fn row<'a>(
    chat: &'a NewChat,
    figures: &Figures,
    end: Option<&'a ChatEnd>,
    node: Option<&'a str>,
) -> [Value<'a>; COLUMNS] {
    let [p0, p1, p2, p3, p4] = figures.prices;
    let [u0, u1, u2, u3, u4] = figures.units;
    let seal = figures.seal([&chat.id, &chat.user_id, &chat.key_id]);
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
        u0,
        u1,
        u2,
        u3,
        u4,
        figures.estimated,
        figures.held,
        figures.ended.map(|[settled, _]| settled),
        figures.ended.map(|[_, forgiven]| forgiven),
        end.map(|end| end.outcome),
        end.and_then(|end| end.channel.as_ref()),
        end.and_then(|end| end.upstream_model.as_ref()),
        end.map_or("[]", details),
        node,
        chat.opened_at,
        end.map(|end| end.ended_at),
        seal
    ]
}

/// An empty text would say that they were forgotten.
fn details(end: &ChatEnd) -> &str {
    if end.attempts.is_empty() {
        "[]"
    } else {
        &end.attempts
    }
}

fn payer(chat: &NewChat) -> Payer<'_> {
    Payer {
        user_id: &chat.user_id,
        key_id: &chat.key_id,
    }
}

fn cost(chat: &NewChat, units: &TokenUnits) -> Result<Amount, DbError> {
    let cost = chat.prices.cost(units);
    cost.ok_or_else(|| absurd(&chat.id, &chat.prices, units))
}

fn absurd(id: &str, prices: &TokenPrices, units: &TokenUnits) -> DbError {
    DbError::Refused(format!(
        "the cost of chat {id} cannot be: {units:?} at {prices:?}"
    ))
}
