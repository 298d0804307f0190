//! Reservations: money that running chats hold in memory, if only this process uses the database. Such a hold needs no commit.
//!
//! For an account with a limit let C be the amount that its committed row leaves available, G the sum of its reservations, and, while the writer has
//! a batch open, A the amount that the row will leave available after the batch so far, F the sum of the reservations that the batch's settlements
//! end, and W = max(0, C − A − F) the amount that the batch takes beyond them. One lock protects G, W and an epoch. The epoch is raised when a batch
//! has ended, before any caller gets its reply. Two invariants hold at all times, so that each reservation is covered whether the batch is committed
//! or rolled back:
//!
//! (1) C − G ≥ 0 and (2) A + F − G ≥ 0.
//!
//! - **A chat reserves g.** It notes the epoch, reads the row and takes the lock. If the epoch has changed, the row may be
//!   older than an F or W that is gone: it reads again. Otherwise what it read is C, or A if the commit has just happened. It
//!   reserves only if that amount − G − W ≥ g. If it read C: C − G − g ≥ W ≥ 0 is (1), and with A + F ≥ C − W follows (2). If
//!   it read A: the batch is committed, F and W are at least 0, and only (2) has to hold. Chats that reserve at the same time
//!   see each other in G, because the test and the addition share the lock.
//!   What was read stays valid for the whole epoch, as it is C or A at any later moment. So many chats share one read, for at
//!   most [`HEADROOM_TTL`], because writes of other processes do not raise the epoch.
//! - **The writer takes t** (a hold, a debit, the part of a chat's cost beyond its reservation): under the lock, and only if
//!   A + F − G ≥ t, which keeps (2). The new W is published before the lock is released. (1) is untouched until the commit.
//! - **A chat's settlement** adds its reservation to F and takes from A: (2) as above. It stays part of G, so that (1) holds if
//!   the batch fails.
//! - **The batch ends.** On commit, A becomes C; F is subtracted from G and W is cleared, under one lock with the epoch: (2)
//!   becomes (1). Between the commit and that moment a reader counts F or W twice, which errs on the safe side. On rollback, W
//!   is cleared and F forgotten.
//! - **Priming.** Of a batch that only moves money, the writer knows what the rows will say. That is C of the epoch that
//!   begins with the commit, as good as a read: while writes come fast, no chat reads the rows.
//! - **A reservation is dropped** unsettled: G decreases, C is unchanged.
//!
//! A hard budget is a limit like the balance, of which A is what its row leaves after what was spent and held. Where an owner has several
//! limits, C is the smallest amount that one leaves and W the largest that the batch takes of one, so that (1) and (2) hold for each. The end of a
//! period only raises what a budget leaves.
//!
//! A chat that finds too little here falls back to a hold on disk, which the writer alone decides; so no chat is rejected
//! because a reader counted an amount twice. (1) and (2) fail if a chat costs more than its hold, or if another process, which
//! does not see reservations, takes from a balance. Then nothing is reserved any more until there is headroom again, and what
//! settlements charge beyond the balance or the quota is debt.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use tollgate_core::{Amount, Millis};

use super::account::Account;
use super::budgets::BudgetPeriod;
use crate::db::{DbError, Row, Sql};

pub(crate) const READ_HEADROOM: Sql = Sql::both(
    "SELECT u.unlimited, u.balance, u.held, u.disabled_at, k.quota, k.held, k.used, k.revoked_at,
            CASE WHEN u.budgets > 0 THEN
                (SELECT MIN(b.amount - CASE WHEN b.period_start < CASE b.period WHEN 'day' THEN CAST($1 AS BIGINT) WHEN 'week'
                     THEN CAST($2 AS BIGINT) ELSE CAST($3 AS BIGINT) END THEN 0 ELSE b.spent END)
                 FROM budgets b WHERE b.owner_id = u.id AND b.hard = 1) END,
            CASE WHEN k.budgets > 0 THEN
                (SELECT MIN(b.amount - CASE WHEN b.period_start < CASE b.period WHEN 'day' THEN CAST($1 AS BIGINT) WHEN 'week'
                     THEN CAST($2 AS BIGINT) ELSE CAST($3 AS BIGINT) END THEN 0 ELSE b.spent END)
                 FROM budgets b WHERE b.owner_id = k.id AND b.hard = 1) END
     FROM keys k JOIN users u ON u.id = k.user_id WHERE k.id = $4 AND u.id = $5",
);

/// How long a headroom is used before the rows are read again.
const HEADROOM_TTL: Duration = Duration::from_millis(50);

/// The amount that the committed rows of a user, a key and their hard budgets leave available; `None` without a limit. If an owner has several
/// limits, it is the smallest amount: each is lowered by every movement that is counted here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Headroom {
    pub(super) user: Option<Amount>,
    pub(super) key: Option<Amount>,
}

impl Headroom {
    /// Computes the headroom from the amounts that the balance and the hard budgets of a user leave, of which `held` is held, and from those of the
    /// key. `None` means no limit.
    pub(super) fn new(
        user: [Option<Amount>; 2],
        held: Amount,
        key: [Option<Amount>; 2],
        key_held: Amount,
    ) -> Self {
        let smallest = |limits: [Option<Amount>; 2]| limits.into_iter().flatten().min();
        Self {
            user: smallest(user).map(|left| left - held),
            key: smallest(key).map(|left| left - key_held),
        }
    }

    /// The parameters of [`READ_HEADROOM`] before the ids of key and user: the beginning of the day, week and month of that time.
    pub(crate) fn period_starts(at: Millis) -> [Millis; 3] {
        BudgetPeriod::ALL.map(|period| period.start(at))
    }

    /// Whether the user or the key has a limit. Without one, nothing is reserved.
    pub(super) fn is_limited(&self) -> bool {
        self.user.is_some() || self.key.is_some()
    }

    /// Reads a row of [`READ_HEADROOM`]; `None` if the user is disabled or the key revoked.
    pub(crate) fn read(row: &mut Row) -> Result<Option<Self>, DbError> {
        if row.opt_int(3)?.is_some() || row.opt_int(7)?.is_some() {
            return Ok(None);
        }
        let (balance, held) = (row.amount(1)?, row.amount(2)?);
        let (key_held, key_used) = (row.amount(5)?, row.amount(6)?);
        let quota = row.opt_int(4)?.map(Amount::from_nanos);
        let budget = |column| row.opt_int(column).map(|left| left.map(Amount::from_nanos));
        let is_limited = row.int(0)? == 0;
        Ok(Some(Self::new(
            [is_limited.then_some(balance), budget(8)?],
            held,
            [quota.map(|quota| quota - key_used), budget(9)?],
            key_held,
        )))
    }
}

/// All reservations of this process.
#[derive(Debug, Default)]
pub(crate) struct Reservations(Mutex<ReservationState>);

/// Amounts by the id of a user or key. An amount of 0 has no entry.
type Sums = HashMap<String, Amount, RandomState>;

/// The state that the lock protects. The letters are those of the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct ReservationState {
    /// G.
    users: Sums,
    keys: Sums,
    /// W.
    taken_of_users: Sums,
    taken_of_keys: Sums,
    /// The reservations with the sum F.
    ending: Vec<Reservation>,
    epoch: u64,
    /// The headrooms that were read in this epoch, with the time of the read, by key id.
    headrooms: HashMap<String, (Headroom, Instant), RandomState>,
    /// The headrooms of the next epoch, which apply if the open batch is committed.
    primed: Vec<(String, (Headroom, Instant))>,
}

/// The outcome of [`Reservations::reserve`].
#[derive(Debug)]
pub(crate) enum ReserveOutcome {
    Reserved(Reservation),
    /// The headroom may not suffice.
    Insufficient,
    /// The epoch has changed since the headroom was read, which must be read again.
    Stale,
}

impl Reservations {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ReservationState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current epoch. Note it before reading the rows.
    pub(crate) fn epoch(&self) -> u64 {
        self.lock().epoch
    }

    /// The sums reserved of a user's balance and of a key's quota.
    pub(crate) fn sums(&self, account: Account<'_>) -> [Amount; 2] {
        let state = self.lock();
        [state.of_user(account.user_id), state.of_key(account.key_id)]
    }

    /// Reserves `amount` if a headroom of this epoch covers it; `None` if the rows must be read first.
    pub(crate) fn reserve_from_cache(
        self: &Arc<Self>,
        account: Account<'_>,
        amount: Amount,
    ) -> Option<Reservation> {
        let mut state = self.lock();
        let (headroom, read_at) = *state.headrooms.get(account.key_id)?;
        let is_fresh = read_at.elapsed() < HEADROOM_TTL;
        match is_fresh && state.covers(account, amount, headroom) {
            true => Some(self.add(&mut state, account, amount, headroom)),
            false => None,
        }
    }

    /// Reserves `amount` if `headroom`, which was read after `epoch` was noted, covers it.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        account: Account<'_>,
        amount: Amount,
        headroom: Headroom,
        epoch: u64,
    ) -> ReserveOutcome {
        let mut state = self.lock();
        if state.epoch != epoch {
            return ReserveOutcome::Stale;
        }
        let read = (headroom, Instant::now());
        state.headrooms.insert(account.key_id.to_owned(), read);
        if !state.covers(account, amount, headroom) {
            return ReserveOutcome::Insufficient;
        }
        ReserveOutcome::Reserved(self.add(&mut state, account, amount, headroom))
    }

    fn add(
        self: &Arc<Self>,
        state: &mut ReservationState,
        account: Account<'_>,
        amount: Amount,
        headroom: Headroom,
    ) -> Reservation {
        let reserved = ReservedAmount {
            reservations: Arc::clone(self),
            user_id: account.user_id.to_owned(),
            key_id: account.key_id.to_owned(),
            limits: [headroom.user.is_some(), headroom.key.is_some()],
            amount,
            active: AtomicBool::new(true),
        };
        state.change(&reserved, amount);
        Reservation(Arc::new(reserved))
    }

    /// Sets the headroom, by key id, that the rows have if the open batch is committed.
    pub(super) fn prime(&self, headrooms: Vec<(String, Headroom)>) {
        let now = Instant::now();
        let primed = headrooms
            .into_iter()
            .map(|(key, headroom)| (key, (headroom, now)));
        self.lock().primed = primed.collect();
    }

    /// Ends the writer's batch, which is either committed and on disk, or rolled back.
    pub(crate) fn end_batch(&self, committed: bool) {
        let mut state = self.lock();
        state.taken_of_users.clear();
        state.taken_of_keys.clear();
        state.epoch = state.epoch.wrapping_add(1);
        state.headrooms.clear();
        let primed = std::mem::take(&mut state.primed);
        if committed {
            state.headrooms.extend(primed);
        }
        let ending = std::mem::take(&mut state.ending);
        for Reservation(reserved) in &ending {
            if committed {
                state.change(reserved, -reserved.amount);
            } else {
                reserved.active.store(true, Ordering::Relaxed);
            }
        }
        // Dropping the last clone of a reservation takes the lock, so release it before `ending` is dropped.
        drop(state);
    }
}

impl ReservationState {
    /// Whether the headroom, minus the reservations and what the open batch takes, covers `amount`.
    fn covers(&self, account: Account<'_>, amount: Amount, headroom: Headroom) -> bool {
        let Account { user_id, key_id } = account;
        let covers = |headroom: Option<Amount>, reserved: Amount, taken: Amount| {
            // An amount of zero can be reserved even if the headroom is negative.
            amount == Amount::ZERO
                || headroom.is_none_or(|headroom| headroom - reserved - taken >= amount)
        };
        covers(
            headroom.user,
            self.of_user(user_id),
            get(&self.taken_of_users, user_id),
        ) && covers(
            headroom.key,
            self.of_key(key_id),
            get(&self.taken_of_keys, key_id),
        )
    }

    pub(super) fn of_user(&self, id: &str) -> Amount {
        get(&self.users, id)
    }

    pub(super) fn of_key(&self, id: &str) -> Amount {
        get(&self.keys, id)
    }

    /// Sets how much the batch takes of a user's balance beyond the reservations that it ends. A negative amount counts as 0.
    pub(super) fn set_taken_of_user(&mut self, id: &str, amount: Amount) {
        set(&mut self.taken_of_users, id, amount.max(Amount::ZERO));
    }

    /// As [`ReservationState::set_taken_of_user`], for a key's quota.
    pub(super) fn set_taken_of_key(&mut self, id: &str, amount: Amount) {
        set(&mut self.taken_of_keys, id, amount.max(Amount::ZERO));
    }

    /// Ends a reservation with the open batch. Returns the amounts that it frees of the user and of the key: 0 if it has ended before, or had no
    /// limit when it was created.
    pub(super) fn end(&mut self, reservation: &Reservation) -> [Amount; 2] {
        let reserved = &reservation.0;
        if !reserved.active.swap(false, Ordering::Relaxed) {
            return [Amount::ZERO; 2];
        }
        self.ending.push(reservation.clone());
        let freed = |is_limited| match is_limited {
            true => reserved.amount,
            false => Amount::ZERO,
        };
        reserved.limits.map(freed)
    }

    fn change(&mut self, reserved: &ReservedAmount, by: Amount) {
        let [user, key] = reserved.limits;
        if user {
            let sum = self.of_user(&reserved.user_id) + by;
            set(&mut self.users, &reserved.user_id, sum);
        }
        if key {
            let sum = self.of_key(&reserved.key_id) + by;
            set(&mut self.keys, &reserved.key_id, sum);
        }
    }
}

fn get(sums: &Sums, id: &str) -> Amount {
    sums.get(id).copied().unwrap_or_default()
}

fn set(sums: &mut Sums, id: &str, amount: Amount) {
    if amount == Amount::ZERO {
        sums.remove(id);
    } else if let Some(sum) = sums.get_mut(id) {
        *sum = amount;
    } else {
        sums.insert(id.to_owned(), amount);
    }
}

/// Money held in memory for one chat. Freed when the last clone is dropped, or when the chat's settlement is on disk.
#[derive(Debug, Clone)]
pub struct Reservation(Arc<ReservedAmount>);

#[derive(Debug)]
struct ReservedAmount {
    reservations: Arc<Reservations>,
    user_id: String,
    key_id: String,
    /// Whether user and key have a limit. Without one the amount is not added to the sum, which nothing would bound.
    limits: [bool; 2],
    amount: Amount,
    /// Whether it is neither freed nor part of a batch that may free it. Changed while the lock is held.
    active: AtomicBool,
}

impl Reservation {
    pub(super) fn belongs_to(&self, account: Account<'_>) -> bool {
        self.0.user_id == account.user_id && self.0.key_id == account.key_id
    }
}

impl Drop for ReservedAmount {
    fn drop(&mut self) {
        if *self.active.get_mut() {
            let reservations = Arc::clone(&self.reservations);
            reservations.lock().change(self, -self.amount);
        }
    }
}

#[cfg(test)]
mod tests;
