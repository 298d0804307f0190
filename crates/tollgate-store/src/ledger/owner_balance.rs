//! The balance of one user and of one key in a batch of the writer ([`super::balances`]).

use tollgate_core::Amount;

use super::budgets::Budgets;
use super::reservations::ReservationState;
use super::sum::sum;
use crate::db::DbError;

#[derive(Debug)]
pub(super) struct UserBalance {
    pub(super) unlimited: bool,
    pub(super) disabled: bool,
    /// Balance, held, used: the values of the row plus `moved`.
    pub(super) sums: [Amount; 3],
    /// The amounts by which this batch has changed each of them.
    pub(super) moved: [Amount; 3],
    /// The amount that this batch has charged beyond balance minus held.
    pub(super) debt: Amount,
    /// The sum of the reservations that end with this batch.
    pub(super) ended_reservations: Amount,
    pub(super) budgets: Budgets,
}

#[derive(Debug)]
pub(super) struct KeyBalance {
    pub(super) user_id: String,
    pub(super) quota: Option<Amount>,
    pub(super) revoked: bool,
    /// Held, used: the values of the row plus `moved`.
    pub(super) sums: [Amount; 2],
    pub(super) moved: [Amount; 2],
    /// The amount by which this batch has lowered the quota; negative if it has raised it.
    pub(super) quota_taken: Amount,
    /// The amount that this batch has charged beyond the quota.
    pub(super) debt: Amount,
    pub(super) ended_reservations: Amount,
    pub(super) budgets: Budgets,
}

impl UserBalance {
    /// The amount that is not held; negative if the user is in debt, `None` without a limit.
    pub(super) fn unreserved(&self) -> Result<Option<Amount>, DbError> {
        let [balance, held, _] = self.sums;
        (!self.unlimited).then(|| sum(balance, -held)).transpose()
    }

    /// The amount that is neither held nor reserved. Never negative: if the user is in debt, nothing is available.
    pub(super) fn available(
        &self,
        reserved: &ReservationState,
        id: &str,
    ) -> Result<Amount, DbError> {
        let [balance, held, _] = self.sums;
        let reserved = self.reserved(reserved, id)?;
        Ok(sum(sum(balance, -held)?, -reserved)?.max(Amount::ZERO))
    }

    /// The sum of the reservations that do not end with this batch.
    pub(super) fn reserved(
        &self,
        reserved: &ReservationState,
        id: &str,
    ) -> Result<Amount, DbError> {
        sum(reserved.of_user(id), -self.ended_reservations)
    }

    pub(super) fn apply(&mut self, by: [Amount; 3]) -> Result<(), DbError> {
        apply_movement(&mut self.sums, &mut self.moved, by)
    }

    /// Publishes how much this batch has taken, under the lock under which that was found available.
    pub(super) fn publish_taken(
        &self,
        reserved: &mut ReservationState,
        id: &str,
    ) -> Result<(), DbError> {
        let [balance, held, _] = self.moved;
        let of_balance = (!self.unlimited).then_some(-balance);
        if let Some(spent) = of_balance.max(self.budgets.moved()) {
            let taken = sum(sum(held, spent)?, -self.ended_reservations)?;
            reserved.set_taken_of_user(id, taken);
        }
        Ok(())
    }
}

impl KeyBalance {
    /// The quota minus what is used and held; negative if the quota is exceeded, `None` without a quota.
    pub(super) fn unreserved(&self) -> Result<Option<Amount>, DbError> {
        let [held, used] = self.sums;
        let left = |quota| sum(sum(quota, -used)?, -held);
        self.quota.map(left).transpose()
    }

    /// What is available of the quota, never negative; `None` without a quota.
    pub(super) fn available(
        &self,
        reserved: &ReservationState,
        id: &str,
    ) -> Result<Option<Amount>, DbError> {
        let Some(quota) = self.quota else {
            return Ok(None);
        };
        let [held, used] = self.sums;
        let reserved = self.reserved(reserved, id)?;
        let left = sum(sum(sum(quota, -used)?, -held)?, -reserved)?;
        Ok(Some(left.max(Amount::ZERO)))
    }

    /// As [`UserBalance::reserved`].
    pub(super) fn reserved(
        &self,
        reserved: &ReservationState,
        id: &str,
    ) -> Result<Amount, DbError> {
        sum(reserved.of_key(id), -self.ended_reservations)
    }

    pub(super) fn apply(&mut self, by: [Amount; 2]) -> Result<(), DbError> {
        apply_movement(&mut self.sums, &mut self.moved, by)
    }

    /// As [`UserBalance::publish_taken`].
    pub(super) fn publish_taken(
        &self,
        reserved: &mut ReservationState,
        id: &str,
    ) -> Result<(), DbError> {
        let [held, used] = self.moved;
        let of_quota = self
            .quota
            .map(|_| sum(used, self.quota_taken))
            .transpose()?;
        if let Some(spent) = of_quota.max(self.budgets.moved()) {
            let taken = sum(sum(held, spent)?, -self.ended_reservations)?;
            reserved.set_taken_of_key(id, taken);
        }
        Ok(())
    }
}

/// Adds `by` to the sums and to the changes of the batch. If a sum leaves the range of an amount, the operation and its batch fail, and the other
/// operations are retried without it.
fn apply_movement<const N: usize>(
    sums: &mut [Amount; N],
    moved: &mut [Amount; N],
    by: [Amount; N],
) -> Result<(), DbError> {
    for ((total, moved), by) in sums.iter_mut().zip(moved).zip(by) {
        *total = sum(*total, by)?;
        *moved = sum(*moved, by)?;
    }
    Ok(())
}
