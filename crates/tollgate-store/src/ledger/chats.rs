//! Money of chat requests: the highest cost is held before the provider is called, and the counted tokens are settled at the end. A chat without a
//! hold on disk is charged in one write at its end; so is one whose hold is in memory.
//!
//! A hold is an estimate. If the tokens cost more, the rest is charged too. The part that user and key do not have is their debt (column `debt`): the
//! balance becomes negative, or the quota is exceeded, and nothing can be spent before the debt is paid. Versions before the second version of the
//! schema wrote it off (column `forgiven`).

use std::sync::Arc;

use tollgate_core::{Amount, money};

use super::account::{Account, Rejection};
use super::chat_rows::{
    CHAT_MODEL, ChatAmounts, EndedChat, INSERT_CHAT, READ_CHAT, attempts_column, chat_row,
};
use super::entries::insert_entry;
use crate::chats::hold::ChatHold;
use crate::chats::prices::{TokenCounts, TokenPrices};
use crate::chats::record::{ChatEnd, NewChat, SettleOutcome};
use crate::db::{DbError, Sql, args};
use crate::list_blocks::List;
use crate::tail::recorder::TailEvent;
use crate::usage::UsageSums;
use crate::writer::batch::Batch;

pub(crate) const CLOSE_CHAT: Sql = Sql::both(
    "UPDATE chats SET input = $1, cached_input = $2, cache_write = $3, output = $4, reasoning = $5, estimated = $6,
                      settled = $7, forgiven = 0, debt = $8, clamped = $9, outcome = $10, channel = $11, upstream_model = $12,
                      attempts = $13, node = NULL, closed_at = $14, seal = $15, parts_cost = $16, parts = $17, dropped = $18
     WHERE id = $19 AND closed_at IS NULL",
);

/// Inserts an open chat and holds the cost of `max_tokens`. If this returns a rejection, it has written nothing.
pub(crate) fn open_chat(
    batch: &mut Batch<'_, '_>,
    chat: &NewChat,
    max_tokens: &TokenCounts,
    node: &str,
) -> Result<Result<Amount, Rejection>, DbError> {
    let held = cost(chat, max_tokens, chat.held_parts)?;
    let account = chat.account();
    if let Err(rejection) = batch.balances.hold(account, held, chat.opened_at)? {
        return Ok(Err(rejection));
    }
    let amounts = ChatAmounts {
        held: Some(held.nanos()),
        parts_cost: chat.held_parts.nanos(),
        ..ChatAmounts::new(&chat.prices, max_tokens)?
    };
    batch.note_inserted(List::Chats, &chat.id)?;
    batch.queue_row(&INSERT_CHAT, &chat_row(chat, &amounts, None, Some(node)))?;
    insert_entry(batch, &chat.id, "hold", account, held, chat.opened_at)?;
    Ok(Ok(held))
}

/// Charges a chat that has no row yet: its row is opened and closed at once, and is its own ledger entry. Returns the amount and its debt.
pub(crate) fn charge_chat(
    batch: &mut Batch<'_, '_>,
    chat: &Arc<NewChat>,
    end: &Arc<ChatEnd>,
    hold: &ChatHold,
) -> Result<SettleOutcome, DbError> {
    let cost = cost(chat, &end.tokens, end.parts.cost())?;
    let (account, at) = (chat.account(), end.ended_at);
    let debt = match hold {
        ChatHold::Granted(reservation) => {
            let grant = reservation.covered();
            batch.balances.charge_grant(account, cost, grant, at)?
        }
        ChatHold::Reserved(reservation) => {
            let reservation = Some(reservation);
            batch.balances.charge(account, cost, reservation, at)?
        }
        ChatHold::None | ChatHold::Stored => batch.balances.charge(account, cost, None, at)?,
    };
    let amounts = ChatAmounts {
        estimated: end.estimated.into(),
        closed: Some([cost.nanos(), 0]),
        debt: debt.nanos(),
        clamped: clamped_column(end),
        parts_cost: end.parts.cost().nanos(),
        ..ChatAmounts::new(&chat.prices, &end.tokens)?
    };
    batch
        .usage
        .add_chat(chat, end, cost, tokens_sum(&amounts.tokens));
    let event = end_event(&chat.id, chat.account(), &chat.model, end, cost);
    batch.tail.add(&event);
    batch.ended_chats.push(EndedChat {
        chat: Arc::clone(chat),
        end: Arc::clone(end),
        amounts,
    });
    Ok(SettleOutcome::new(cost, debt))
}

/// The value of the column `clamped`; a provider may have reported any number.
fn clamped_column(end: &ChatEnd) -> i64 {
    i64::try_from(end.clamped).unwrap_or(i64::MAX)
}

/// The amount that was held for a chat on disk, open or closed; `None` if there was no hold.
pub(crate) async fn held_amount(
    batch: &mut Batch<'_, '_>,
    id: &str,
) -> Result<Option<Amount>, DbError> {
    let row = batch.first(&READ_CHAT, args![id]).await?;
    let amounts = row.map(|row| ChatAmounts::read(&row, 3)).transpose()?;
    Ok(amounts
        .and_then(|amounts| amounts.held)
        .map(Amount::from_nanos))
}

/// Closes a chat that has a hold on disk. If it is already closed, returns that outcome; `None` if it has no row.
pub(crate) async fn close_chat(
    batch: &mut Batch<'_, '_>,
    id: &str,
    account: Account<'_>,
    end: &ChatEnd,
) -> Result<Option<SettleOutcome>, DbError> {
    let Some(mut row) = batch.first(&READ_CHAT, args![id]).await? else {
        return Ok(None);
    };
    let Account { user_id, key_id } = account;
    if row.text(0)? != user_id || row.text(1)? != key_id {
        return Err(DbError::Failed(format!(
            "chat {id} does not belong to {account:?}"
        )));
    }
    let open = ChatAmounts::read(&row, 3)?;
    if let Some([settled, _]) = open.closed {
        let is_lost = row.opt_text(2)?.as_deref() == Some(ChatEnd::OUTCOME_LOST);
        let cost = Amount::from_nanos(settled);
        return Ok(Some(if is_lost && end.outcome != ChatEnd::OUTCOME_LOST {
            SettleOutcome::AlreadyReleased
        } else {
            SettleOutcome::new(cost, Amount::from_nanos(open.debt))
        }));
    }
    let prices = TokenPrices::from_columns(open.prices.map(Amount::from_nanos));
    let mut closed = ChatAmounts {
        estimated: end.estimated.into(),
        held: open.held,
        clamped: clamped_column(end),
        parts_cost: end.parts.cost().nanos(),
        ..ChatAmounts::new(&prices, &end.tokens)?
    };
    let cost = closed
        .cost()
        .ok_or_else(|| cost_out_of_range(id, &prices, &end.tokens))?;
    let held = Amount::from_nanos(open.held.unwrap_or(0));
    let from_hold = cost.min(held);
    let beyond_hold = cost - from_hold;
    batch
        .balances
        .close_hold(account, held, from_hold, end.ended_at)?;
    let debt = batch
        .balances
        .charge(account, beyond_hold, None, end.ended_at)?;
    closed.closed = Some([cost.nanos(), 0]);
    closed.debt = debt.nanos();
    let [t0, t1, t2, t3, t4] = closed.tokens;
    let (at, checksum) = (end.ended_at, closed.checksum([id, user_id, key_id]));
    batch.queue_one(
        &CLOSE_CHAT,
        args![
            t0,
            t1,
            t2,
            t3,
            t4,
            end.estimated,
            cost,
            debt,
            closed.clamped,
            end.outcome,
            end.channel.as_ref(),
            end.upstream_model.as_ref(),
            attempts_column(end),
            at,
            checksum,
            end.parts.cost(),
            end.parts.column(),
            end.dropped.as_ref(),
            id
        ],
    )?;
    let channel = end.channel.as_deref().unwrap_or_default();
    let names = [&row.text(CHAT_MODEL)?, user_id, key_id, channel].map(str::to_owned);
    let sums = UsageSums {
        cost: cost.nanos(),
        requests: 1,
        tokens: tokens_sum(&closed.tokens),
        failed: end.is_failed().into(),
        ..UsageSums::default()
    };
    let event = end_event(id, account, &names[0], end, cost);
    batch.tail.add(&event);
    batch.usage.add(at, names, sums);
    insert_entry(batch, id, "settle", account, from_hold, at)?;
    insert_entry(batch, id, "release", account, held - from_hold, at)?;
    insert_entry(batch, id, "charge", account, beyond_hold, at)?;
    Ok(Some(SettleOutcome::new(cost, debt)))
}

/// The live-tail event of a chat that ends.
fn end_event<'a>(
    id: &'a str,
    account: Account<'a>,
    model: &'a str,
    end: &'a ChatEnd,
    cost: Amount,
) -> TailEvent<'a> {
    TailEvent {
        kind: "chat",
        id,
        state: end.outcome,
        model,
        user_id: account.user_id,
        key_id: account.key_id,
        channel: end.channel.as_deref(),
        cost,
        at: end.ended_at,
    }
}

/// The sum of the tokens of all kinds.
fn tokens_sum(tokens: &[i64; 5]) -> i64 {
    tokens.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

fn cost(chat: &NewChat, tokens: &TokenCounts, parts: Amount) -> Result<Amount, DbError> {
    let cost = with_parts(chat.prices.cost(tokens), parts);
    cost.ok_or_else(|| cost_out_of_range(&chat.id, &chat.prices, tokens))
}

/// The cost of tokens and parts. `None` if it is out of range.
pub(crate) fn with_parts(tokens: Option<Amount>, parts: Amount) -> Option<Amount> {
    let sum = tokens?.nanos().checked_add(parts.nanos())?;
    Some(Amount::from_nanos(sum)).filter(|cost| *cost <= money::MAX)
}

fn cost_out_of_range(id: &str, prices: &TokenPrices, tokens: &TokenCounts) -> DbError {
    DbError::Failed(format!(
        "the cost of chat {id} is out of range: {tokens:?} at {prices:?}"
    ))
}
