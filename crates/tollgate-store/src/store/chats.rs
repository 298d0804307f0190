//! Chat requests, as the gateway charges them.

use std::sync::Arc;

use futures_util::future::try_join_all;
use tollgate_core::{Amount, Millis};

use super::Store;
use crate::db::args;
use crate::error::StoreError;
use crate::model::{ChatEnd, ChatSettled, Hold, NewChat, Refusal, TokenPrices, TokenUnits};
use crate::money::{Payer, ROOM, Reservation, Room, Tried};
use crate::ops::chat::{
    Beat, DEAD, Dead, ForgetNode, HoldChat, LONGEST, OLD_NODES, ReleaseChat, SettleChat, Why,
};

/// How often the rows are read for a reservation: that they change under the read so often is rare.
const LOOKS: usize = 3;

/// Chat requests.
///
/// A key that [`crate::Key::needs_hold`] holds before the provider is called and settles when the answer has ended; any
/// other only settles. A stored hold that is not settled by the process that has it is released by
/// [`Store::release_dead_chats`].
impl Store {
    /// Sets aside what `worst` of a request costs: in memory where this process is alone on its database and there is
    /// enough beyond doubt, else by [`Store::hold_chat`], which alone refuses.
    ///
    /// # Errors
    /// As [`Store::hold_chat`].
    pub async fn reserve_chat(
        &self,
        chat: &NewChat,
        worst: &TokenUnits,
        node: &str,
    ) -> Result<Result<Hold, Refusal>, StoreError> {
        let amount = cost(&chat.model, &chat.prices, worst)?;
        if !self.is_shared()
            && let Some(reservation) = self.writer.reserved.reserve_known(payer(chat), amount)
        {
            return Ok(Ok(Hold::Reserved(reservation)));
        }
        // Apart, so that a request that need not wait has no place for what waits.
        Box::pin(self.look_and_reserve(chat, worst, node, amount)).await
    }

    async fn look_and_reserve(
        &self,
        chat: &NewChat,
        worst: &TokenUnits,
        node: &str,
        amount: Amount,
    ) -> Result<Result<Hold, Refusal>, StoreError> {
        if !self.is_shared()
            && let Some(reservation) = self.try_to_reserve(chat, amount).await?
        {
            return Ok(Ok(Hold::Reserved(reservation)));
        }
        let held = self.hold_chat(chat, worst, node).await?;
        Ok(held.map(|_| Hold::Stored))
    }

    pub(super) async fn try_to_reserve(
        &self,
        chat: &NewChat,
        amount: Amount,
    ) -> Result<Option<Reservation>, StoreError> {
        let payer = payer(chat);
        let reserved = &self.writer.reserved;
        for _ in 0..LOOKS {
            let epoch = reserved.epoch();
            let args = args![payer.key_id, payer.user_id];
            let room = self.first(&ROOM, args, Room::read).await?;
            let Some(room) = room.flatten() else {
                return Ok(None);
            };
            match reserved.reserve(payer, amount, room, epoch) {
                Tried::Done(reservation) => return Ok(Some(reservation)),
                Tried::Short => return Ok(None),
                Tried::Moved => {}
            }
        }
        Ok(None)
    }

    /// What running chats have reserved of a user's balance and of a key's quota, which their rows do not show. To be asked
    /// for before the rows are read: at worst a charge that is just being written is then counted twice.
    pub fn reserved(&self, user_id: &str, key_id: &str) -> [Amount; 2] {
        self.writer.reserved.of(Payer { user_id, key_id })
    }

    /// Sets aside what `worst` of a request costs; on disk when it returns. `node` must [`Store::beat`]. Given up or
    /// without an answer in time, it leaves nothing behind.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where `worst` has no cost ([`TokenPrices::cost`]).
    pub async fn hold_chat(
        &self,
        chat: &NewChat,
        worst: &TokenUnits,
        node: &str,
    ) -> Result<Result<Amount, Refusal>, StoreError> {
        cost(&chat.model, &chat.prices, worst)?;
        let mut unheard = Unheard {
            store: self,
            chat: Some(chat),
        };
        let hold = HoldChat {
            chat: chat.clone(),
            worst: *worst,
            node: node.to_owned(),
        };
        let held = self.write(hold).await;
        // Without an answer it may yet be done.
        if !matches!(held, Err(StoreError::Unavailable(_))) {
            unheard.chat = None;
        }
        held
    }

    /// Ends a request: its charge and its record are on disk when it returns. `hold` is what was set
    /// aside for it; unless that is stored, it is opened and closed in this one write. What it costs beyond its
    /// hold, or beyond what user and key have, is taken as far as it goes and forgiven beyond that. Ending it twice is
    /// ending it once: the second answer is the first. A request that failed ends with no units.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where its units have no cost ([`TokenPrices::cost`]): nothing was written.
    pub async fn settle_chat(
        &self,
        chat: impl Into<Arc<NewChat>>,
        hold: &Hold,
        end: impl Into<Arc<ChatEnd>>,
    ) -> Result<ChatSettled, StoreError> {
        let (chat, end) = (chat.into(), end.into());
        cost(&chat.model, &chat.prices, &end.units)?;
        if end.outcome == ChatEnd::LOST {
            let why = format!("chat {} cannot be ended as lost", chat.id);
            return Err(StoreError::Invalid(why));
        }
        let (is_stored, reservation) = match hold {
            Hold::None => (false, None),
            Hold::Reserved(reservation) => (false, Some(reservation.clone())),
            Hold::Stored => (true, None),
        };
        let again = (!is_stored).then(|| SettleChat {
            chat: Arc::clone(&chat),
            end: Arc::clone(&end),
            may_be_there: true,
            reservation: reservation.clone(),
        });
        let settle = SettleChat {
            chat,
            end,
            may_be_there: is_stored,
            reservation,
        };
        match (self.write(settle).await, again) {
            // It may be there already, by a write whose answer did not come in time. This is rare enough to be found out
            // only now.
            (Err(StoreError::Broken(_)), Some(again)) => self.write(again).await,
            (settled, _) => settled,
        }
    }

    /// Says that `node` is alive until then. A node says so before its first hold, and again in good time; it is a new
    /// one with every start of a process.
    pub async fn beat(&self, node: &str, alive_until: Millis) -> Result<(), StoreError> {
        let node = node.to_owned();
        self.write(Beat { node, alive_until }).await
    }

    /// Releases the holds of requests that nobody will end: those of nodes that are not alive any more (where no other
    /// process shares the database: of all nodes but `own_node`), and those of any node that are older than a day.
    /// Answers how many. To be done at start and again as often as [`Store::beat`].
    pub async fn release_dead_chats(&self, now: Millis, own_node: &str) -> Result<u64, StoreError> {
        let dead = Dead {
            opened_until: now - LONGEST,
            own_node: own_node.to_owned(),
            alive_until: if self.is_shared() { now } else { Millis::MAX },
        };
        let mut released = 0;
        loop {
            let args = args![dead.opened_until, own_node, dead.alive_until];
            let mut rows = self.query(&DEAD, args).await?;
            let mut writes = Vec::with_capacity(rows.len());
            for row in &mut rows {
                writes.push(self.write(ReleaseChat {
                    id: row.text(0)?,
                    user_id: row.text(1)?,
                    key_id: row.text(2)?,
                    why: Why::Dead(dead.clone()),
                    now,
                }));
            }
            let done = try_join_all(writes).await?;
            let done = done.into_iter().filter(|done| *done).count() as u64;
            released += done;
            if done == 0 {
                break;
            }
        }
        // A node that only slept finds itself again for a day.
        let dead_since = now - LONGEST;
        for mut row in self.query(&OLD_NODES, args![own_node, dead_since]).await? {
            let node = row.text(0)?;
            self.write(ForgetNode { node, dead_since }).await?;
        }
        Ok(released)
    }
}

/// A hold whose answer has not come. Dropped so, the hold is released behind it in the writer's queue.
struct Unheard<'a> {
    store: &'a Store,
    chat: Option<&'a NewChat>,
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        if let Some(chat) = self.chat {
            self.store.writer.post(ReleaseChat {
                id: chat.id.clone(),
                user_id: chat.user_id.clone(),
                key_id: chat.key_id.clone(),
                why: Why::Unheard,
                now: chat.opened_at,
            });
        }
    }
}

fn payer(chat: &NewChat) -> Payer<'_> {
    Payer {
        user_id: &chat.user_id,
        key_id: &chat.key_id,
    }
}

fn cost(model: &str, prices: &TokenPrices, units: &TokenUnits) -> Result<Amount, StoreError> {
    prices.cost(units).ok_or_else(|| {
        StoreError::Invalid(format!(
            "{units:?} of {model:?} at {prices:?} cannot be counted on with"
        ))
    })
}
