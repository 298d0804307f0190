//! Grants of this node, where nodes share a database: money that it has taken out of a user's balance and a key's quota in advance, and divides
//! among the chats that it serves without asking the database.
//!
//! For each grant this process knows a part that is free and a part that running chats have reserved. One invariant holds at all times, whatever
//! is lost on the way to the database:
//!
//! free + reserved ≤ `amount` of the grant's row.
//!
//! It holds because every change that lowers the row lowers `free` before it is sent, and every change that raises the row raises `free` after it
//! is committed. When the outcome of a write is unknown, the grant is retired and nothing of it counts as free: no chat reserves from it any more,
//! and once the last one has ended, the row is deleted and what is left of it given back, however much that is. What running chats have reserved stays
//! covered, because a chat's settlement lowers the row by at most what it has reserved itself.
//!
//! - **A chat begins**: it reserves from the grant of its key. A key that was not used for [`state::QUIET`] has none: its chat is held in the database. The
//!   next chat opens a grant; those that come meanwhile wait for it.
//! - **A chat ends**: its charge and what it takes from the grant are one write. What it reserved and did not cost is free again.
//! - **Refill**: below half of what the key needs for about two seconds, the grant is raised beside the chats.
//! - **Return**: a grant that was idle for [`state::IDLE`] is closed; one that is far too large is lowered. A node that finds too little available for a
//!   request asks the other nodes for their grants of that user, and then holds in the database for [`state::DENIED_FOR`].
//! - **A node that dies**: others release its grants as they release its holds, once its heartbeat has expired.
//! - **A node that sleeps** and wakes up after that still has its grants in memory. So a chat begins on a grant only while the last confirmed
//!   heartbeat is younger than half the lease, by the monotonic clock and by the wall clock; and after a longer gap all grants are retired. A chat
//!   that was running meanwhile is charged to what its account has left, and the rest is a debt.

mod state;
pub(crate) mod upkeep;
mod writes;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::futures::OwnedNotified;
use tollgate_core::{Amount, Millis};

use crate::ledger::account::Account;
use state::{GrantWrite, GrantsState};

/// All grants of this process.
#[derive(Debug, Default)]
pub(crate) struct Grants(Mutex<GrantsState>);

/// What a chat does to get its money.
pub(crate) enum GrantStep {
    /// It has the money.
    Reserved(GrantReservation),
    /// It waits until a grant was opened or raised, which another chat has begun, and tries again.
    Wait(OwnedNotified),
    /// It is held in the database.
    Hold,
}

impl Grants {
    fn lock(&self) -> MutexGuard<'_, GrantsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A heartbeat of `node` is on disk, which was sent at `sent` (by the wall clock at `at`) and is valid for `lease`.
    pub(crate) fn heartbeat_confirmed(&self, node: &str, sent: Instant, at: Millis, lease: Millis) {
        let mut state = self.lock();
        state.heartbeat_confirmed(node, sent, at, lease);
    }

    /// Reserves `amount` for a chat that begins at `at`; `is_repeated` if it has waited since it tried before. Returns also the write that the
    /// caller must pass to `Store::give_grant`.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        account: Account<'_>,
        amount: Amount,
        at: Millis,
        is_repeated: bool,
    ) -> (GrantStep, Option<GrantWrite>) {
        let mut state = self.lock();
        let (step, write) = state.reserve(account, amount, at, is_repeated);
        let step = match step {
            state::Step::Reserved(grant_id) => {
                GrantStep::Reserved(GrantReservation(Arc::new(GrantReserved {
                    grants: Arc::clone(self),
                    grant_id,
                    amount: Mutex::new(Some(amount)),
                })))
            }
            state::Step::Wait(changed) => GrantStep::Wait(changed.notified_owned()),
            state::Step::Hold => GrantStep::Hold,
        };
        (step, write)
    }

    /// How many there are, those that end included.
    pub(crate) fn count(&self) -> usize {
        self.lock().count()
    }

    /// What running chats of this node have reserved of a user's balance and of a key's quota.
    pub(crate) fn reserved_amounts(&self, account: Account<'_>) -> [Amount; 2] {
        self.lock().reserved_amounts(account)
    }
}

/// Money of a grant that is reserved for one chat. Free again when the last clone is dropped, unless the chat was settled.
#[derive(Debug, Clone)]
pub struct GrantReservation(Arc<GrantReserved>);

#[derive(Debug)]
struct GrantReserved {
    grants: Arc<Grants>,
    grant_id: String,
    /// `None` once the chat is settled. Changed under the lock of the grants.
    amount: Mutex<Option<Amount>>,
}

impl GrantReservation {
    /// The grant, and what is reserved of it: nothing once the chat is settled.
    pub(crate) fn covered(&self) -> (&str, Amount) {
        let amount = *self.0.lock_amount();
        (&self.0.grant_id, amount.unwrap_or_default())
    }

    /// Reserves more, so that `cost` is covered as far as the grant's free part goes.
    pub(crate) fn grow(&self, cost: Amount) {
        let mut state = self.0.grants.lock();
        let mut amount = self.0.lock_amount();
        if let Some(reserved) = &mut *amount
            && cost > *reserved
        {
            *reserved = *reserved + state.reserve_more(&self.0.grant_id, cost - *reserved);
        }
    }

    /// The chat's settlement, which took `cost` from the grant as far as it was covered, is on disk.
    pub(crate) fn settled(&self, cost: Amount) {
        let mut state = self.0.grants.lock();
        if let Some(reserved) = self.0.lock_amount().take() {
            state.end_reservation(&self.0.grant_id, reserved, cost.min(reserved));
        }
    }

    /// It is not known what the database has of the grant: no chat begins on it any more.
    pub(crate) fn retire_grant(&self) {
        self.0.grants.lock().retire_uncertain(&self.0.grant_id);
    }
}

impl GrantReserved {
    fn lock_amount(&self) -> MutexGuard<'_, Option<Amount>> {
        self.amount.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for GrantReserved {
    fn drop(&mut self) {
        let amount = self.amount.get_mut();
        let amount = amount.unwrap_or_else(PoisonError::into_inner);
        if let Some(reserved) = amount.take() {
            let mut state = self.grants.lock();
            state.end_reservation(&self.grant_id, reserved, Amount::ZERO);
        }
    }
}
