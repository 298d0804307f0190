//! Holding money for chat requests before the provider is called, and settling them at the end.

use std::sync::Arc;

use async_trait::async_trait;
use tollgate_core::Amount;

use super::hold::ChatHold;
use super::orphans::{ReleaseChat, ReleaseReason};
use super::prices::TokenCounts;
use super::record::{ChatEnd, NewChat, SettleOutcome};
use crate::db::{DbError, args};
use crate::error::StoreError;
use crate::ledger::account::{Account, Rejection};
use crate::ledger::chats::{charge_chat, close_chat, held_amount, open_chat, with_parts};
use crate::ledger::reservations::{Headroom, READ_HEADROOM, Reservation, ReserveOutcome};
use crate::store::Store;
use crate::writer::batch::Batch;
use crate::writer::{AccountIds, Write};

/// How often the rows are read for one reservation. It is rare that a batch ends during each of the reads.
const HEADROOM_READS: usize = 3;

/// Chat requests.
///
/// A key for which [`crate::Key::needs_hold`] is true holds before the provider is called and settles at the end; any other key only settles. If a
/// process does not settle its stored hold, [`Store::release_orphaned_chats`] releases it.
impl Store {
    /// Holds the cost of `max_tokens`: in memory if only this process uses the database and the headroom certainly suffices, or if this node has a
    /// grant that suffices ([`Store::allow_grants`]); otherwise by [`Store::hold_chat`]. Only the latter can reject the hold.
    ///
    /// # Errors
    /// As [`Store::hold_chat`].
    pub async fn reserve_chat(
        &self,
        chat: &NewChat,
        max_tokens: &TokenCounts,
        node: &str,
    ) -> Result<Result<ChatHold, Rejection>, StoreError> {
        let amount = cost(chat, max_tokens, chat.held_parts)?;
        if !self.is_shared()
            && let Some(reservation) = self
                .writer
                .reservations
                .reserve_from_cache(chat.account(), amount)
        {
            return Ok(Ok(ChatHold::Reserved(reservation)));
        }
        // Boxed, so that the future of a request that need not wait stays small.
        Box::pin(self.read_and_reserve(chat, max_tokens, node, amount)).await
    }

    async fn read_and_reserve(
        &self,
        chat: &NewChat,
        max_tokens: &TokenCounts,
        node: &str,
        amount: Amount,
    ) -> Result<Result<ChatHold, Rejection>, StoreError> {
        let (account, at) = (chat.account(), chat.opened_at);
        if self.is_shared() {
            if let Some(reservation) = self.reserve_from_grant(account, amount, at).await {
                return Ok(Ok(ChatHold::Granted(reservation)));
            }
        } else if let Some(reservation) = self.try_to_reserve(chat, amount).await? {
            return Ok(Ok(ChatHold::Reserved(reservation)));
        }
        let mut held = self.hold_chat(chat, max_tokens, node).await?;
        if held.is_err() && self.reclaim_grants(account.user_id, at).await? {
            held = self.hold_chat(chat, max_tokens, node).await?;
        }
        Ok(held.map(|_| ChatHold::Stored))
    }

    async fn try_to_reserve(
        &self,
        chat: &NewChat,
        amount: Amount,
    ) -> Result<Option<Reservation>, StoreError> {
        let account = chat.account();
        let [day, week, month] = Headroom::period_starts(chat.opened_at);
        let reservations = &self.writer.reservations;
        for _ in 0..HEADROOM_READS {
            let epoch = reservations.epoch();
            let args = args![day, week, month, account.key_id, account.user_id];
            let headroom = self.first(&READ_HEADROOM, args, Headroom::read).await?;
            let Some(headroom) = headroom.flatten() else {
                return Ok(None);
            };
            match reservations.reserve(account, amount, headroom, epoch) {
                ReserveOutcome::Reserved(reservation) => return Ok(Some(reservation)),
                ReserveOutcome::Insufficient => return Ok(None),
                ReserveOutcome::Stale => {}
            }
        }
        Ok(None)
    }

    /// The amounts of a user's balance and of a key's quota that running chats of this process have reserved; the rows do not contain them. Call this
    /// before reading the rows: then a charge that is being written is at worst counted twice.
    pub fn reserved_amounts(&self, user_id: &str, key_id: &str) -> [Amount; 2] {
        let account = Account { user_id, key_id };
        match self.is_shared() {
            true => self.writer.grants.reserved_amounts(account),
            false => self.writer.reservations.sums(account),
        }
    }

    /// Holds the cost of `max_tokens`; the hold is on disk when this returns. `node` must send a [`Store::heartbeat`]. If the
    /// future is dropped, or times out, the hold is released.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if `max_tokens` has no cost (`TokenPrices::cost`).
    pub async fn hold_chat(
        &self,
        chat: &NewChat,
        max_tokens: &TokenCounts,
        node: &str,
    ) -> Result<Result<Amount, Rejection>, StoreError> {
        cost(chat, max_tokens, chat.held_parts)?;
        let mut guard = ReleaseOnDrop {
            store: self,
            chat: Some(chat),
        };
        let hold = HoldChat {
            chat: chat.clone(),
            max_tokens: *max_tokens,
            node: node.to_owned(),
        };
        let held = self.write(hold).await;
        // After a timeout the hold may still be written, so it must be released.
        if !matches!(held, Err(StoreError::Unavailable(_))) {
            guard.chat = None;
        }
        held
    }

    /// Settles a chat request: its charge and its record are on disk when this returns. Without a stored hold, this one write opens and closes the
    /// row. A cost beyond the hold, or beyond what user and key have available, is charged too: the balance may become negative and the quota
    /// exceeded, and that part is the debt in the chat's record. Idempotent: a second call returns the outcome of the first. A request that failed is
    /// settled with no tokens.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if its tokens have no cost (`TokenPrices::cost`); nothing is written.
    pub async fn settle_chat(
        &self,
        chat: impl Into<Arc<NewChat>>,
        hold: &ChatHold,
        end: impl Into<Arc<ChatEnd>>,
    ) -> Result<SettleOutcome, StoreError> {
        let (chat, end) = (chat.into(), end.into());
        cost(&chat, &end.tokens, end.parts.cost())?;
        if end.outcome == ChatEnd::OUTCOME_LOST {
            let why = format!("chat {} cannot be settled with outcome \"lost\"", chat.id);
            return Err(StoreError::Invalid(why));
        }
        let is_stored = matches!(hold, ChatHold::Stored);
        if let ChatHold::Granted(reservation) = hold {
            reservation.grow(cost(&chat, &end.tokens, end.parts.cost())?);
        }
        let settle = |may_exist: bool, hold: &ChatHold| SettleChat {
            chat: Arc::clone(&chat),
            end: Arc::clone(&end),
            may_exist,
            hold: hold.clone(),
        };
        let mut settled = self.write(settle(is_stored, hold)).await;
        if matches!(settled, Err(StoreError::Broken(_))) && !is_stored {
            // The row may exist from an earlier call that timed out; that is rare, so it is not read first. Or another node has released the grant,
            // because this node was suspended: then the cost is charged to what is available.
            let hold = match hold {
                ChatHold::Granted(_) => &ChatHold::None,
                hold => hold,
            };
            settled = self.write(settle(true, hold)).await;
        }
        settled
    }
}

/// Releases the hold of a chat if this is dropped before the outcome of the hold is known. The release is queued after the hold.
struct ReleaseOnDrop<'a> {
    store: &'a Store,
    chat: Option<&'a NewChat>,
}

impl Drop for ReleaseOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(chat) = self.chat {
            self.store.writer.write_detached(ReleaseChat {
                id: chat.id.clone(),
                user_id: chat.user_id.clone(),
                key_id: chat.key_id.clone(),
                reason: ReleaseReason::Abandoned,
                now: chat.opened_at,
            });
        }
    }
}

/// Holds the highest cost of a request.
struct HoldChat {
    chat: NewChat,
    max_tokens: TokenCounts,
    node: String,
}

#[async_trait(?Send)]
impl Write for HoldChat {
    type Out = Result<Amount, Rejection>;

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.chat.user_id, &self.chat.key_id)
    }

    fn only_moves_money(&self) -> bool {
        true
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Self::Out, DbError> {
        if batch.commit_in_doubt
            && let Some(held) = held_amount(batch, &self.chat.id).await?
        {
            return Ok(Ok(held));
        }
        open_chat(batch, &self.chat, &self.max_tokens, &self.node)
    }
}

/// Settles a request.
struct SettleChat {
    chat: Arc<NewChat>,
    end: Arc<ChatEnd>,
    /// Whether the chat may have a row, from its hold or an earlier settlement. If so, the row is read first; otherwise it is inserted without a
    /// read.
    may_exist: bool,
    /// The hold; a reservation ends when this write is on disk.
    hold: ChatHold,
}

#[async_trait(?Send)]
impl Write for SettleChat {
    type Out = SettleOutcome;

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.chat.user_id, &self.chat.key_id)
    }

    fn only_moves_money(&self) -> bool {
        true
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<SettleOutcome, DbError> {
        let Self { chat, end, .. } = self;
        if (self.may_exist || batch.commit_in_doubt)
            && let Some(settled) = close_chat(batch, &chat.id, chat.account(), end).await?
        {
            return Ok(settled);
        }
        charge_chat(batch, chat, end, &self.hold)
    }

    fn committed(&self, out: &SettleOutcome) {
        if let (ChatHold::Granted(reservation), Some(cost)) = (&self.hold, out.cost()) {
            reservation.settled(cost);
        }
    }

    fn failed(&self) {
        if let ChatHold::Granted(reservation) = &self.hold {
            reservation.retire_grant();
        }
    }
}

fn cost(chat: &NewChat, tokens: &TokenCounts, parts: Amount) -> Result<Amount, StoreError> {
    with_parts(chat.prices.cost(tokens), parts).ok_or_else(|| {
        let (model, prices) = (&chat.model, &chat.prices);
        StoreError::Invalid(format!(
            "the cost of {tokens:?} of {model:?} at {prices:?} with {parts} for parts is out of range"
        ))
    })
}

#[cfg(test)]
mod tests;
