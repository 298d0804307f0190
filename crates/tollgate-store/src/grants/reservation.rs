//! The grants of this process, and what chats reserve of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::futures::OwnedNotified;
use tollgate_core::{Amount, Millis};

use super::state::{GrantWrite, GrantsState, Step};
use crate::ledger::account::Account;

/// All grants of this process.
#[derive(Debug, Default)]
pub(crate) struct Grants(Mutex<GrantsState>);

/// How a chat gets its money.
pub(super) enum GrantStep {
    /// The money is reserved from a grant.
    Reserved(GrantReservation),
    /// The chat must wait until another chat's request to open or raise a grant has ended, and then retry.
    Wait(OwnedNotified),
    /// The money must be held in the database.
    Hold,
}

impl Grants {
    pub(super) fn lock(&self) -> MutexGuard<'_, GrantsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a heartbeat of `node` is on disk, which was sent at `sent` (by the wall clock at `at`) and is valid for `lease`.
    pub(super) fn heartbeat_confirmed(&self, node: &str, sent: Instant, at: Millis, lease: Millis) {
        let mut state = self.lock();
        state.heartbeat_confirmed(node, sent, at, lease);
    }

    /// Reserves `amount` for a chat that begins at `at`; `is_repeated` if the chat has waited since its first call. Also returns the write that the
    /// caller must pass to `Store::give_grant`.
    pub(super) fn reserve(
        self: &Arc<Self>,
        account: Account<'_>,
        amount: Amount,
        at: Millis,
        is_repeated: bool,
    ) -> (GrantStep, Option<GrantWrite>) {
        let mut state = self.lock();
        let (step, write) = state.reserve(account, amount, at, is_repeated);
        let step = match step {
            Step::Reserved(grant_id) => {
                GrantStep::Reserved(GrantReservation(Arc::new(GrantReserved {
                    grants: Arc::clone(self),
                    grant_id,
                    amount: Mutex::new(Some(amount)),
                })))
            }
            Step::Wait(changed) => GrantStep::Wait(changed.notified_owned()),
            Step::Hold => GrantStep::Hold,
        };
        (step, write)
    }

    /// The number of grants, including those that are being closed.
    pub(super) fn count(&self) -> usize {
        self.lock().count()
    }

    /// The amounts of a user's balance and of a key's quota that running chats of this node have reserved.
    pub(crate) fn reserved_amounts(&self, account: Account<'_>) -> [Amount; 2] {
        self.lock().reserved_amounts(account)
    }
}

/// Money of a grant that is reserved for one chat. It is free again when the last clone is dropped, unless the chat was settled.
#[derive(Debug, Clone)]
pub struct GrantReservation(Arc<GrantReserved>);

#[derive(Debug)]
struct GrantReserved {
    grants: Arc<Grants>,
    grant_id: String,
    /// `None` once the chat is settled. Changed only while the grants are locked.
    amount: Mutex<Option<Amount>>,
}

impl GrantReservation {
    /// The grant, and the amount that is reserved of it: nothing once the chat is settled.
    pub(crate) fn covered(&self) -> (&str, Amount) {
        let amount = *self.0.lock_amount();
        (&self.0.grant_id, amount.unwrap_or_default())
    }

    /// Reserves more, so that `cost` is covered as far as the grant's free part allows.
    pub(crate) fn grow(&self, cost: Amount) {
        let mut state = self.0.grants.lock();
        let mut amount = self.0.lock_amount();
        if let Some(reserved) = &mut *amount
            && cost > *reserved
        {
            *reserved = *reserved + state.reserve_more(&self.0.grant_id, cost - *reserved);
        }
    }

    /// Records that the chat's settlement is on disk, which took `cost` from the grant as far as it was covered.
    pub(crate) fn settled(&self, cost: Amount) {
        let mut state = self.0.grants.lock();
        if let Some(reserved) = self.0.lock_amount().take() {
            state.end_reservation(&self.0.grant_id, reserved, cost.min(reserved));
        }
    }

    /// Retires the grant, because it is not known how much of it the database has: no chat begins on it any more.
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
