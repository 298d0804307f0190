//! Money that running chats have set aside in memory, where this process is alone on its database: a hold that costs
//! no commit.
//!
//! For an account with a limit let C be what its committed row leaves available, G the reservations, and, while the
//! writer has a batch open, A what the row leaves after the batch so far, F the reservations that its settlements end, and
//! W = max(0, C − A − F) what else the batch takes. G and W live under one lock, and so does an epoch that goes up whenever
//! a batch is over, before anybody is answered. Two things hold at every moment, so that each reservation is covered whether
//! the batch is committed or rolled back:
//!
//! (1) C − G ≥ 0 and (2) A + F − G ≥ 0.
//!
//! - **A chat reserves g.** It notes the epoch, reads the row, and takes the lock. An epoch that moved means that the row
//!   may be older than an F or W that is gone: it reads again. Else what it read is C, or A where the commit has just been
//!   done; it goes on only if that less G and W is at least g. Read C: C − G − g ≥ W ≥ 0 is (1), and with A + F ≥ C − W follows (2).
//!   Read A: the batch is committed, F and W are at least 0, and (2) is what is left to keep. Chats that reserve at the
//!   same time see each other in G, as the test and the addition share the lock.
//!   What was read stands for the whole epoch: it is C or A whenever it is looked at. So many chats share one read; for no longer
//!   than [`KNOWN`], as what other processes do moves no epoch.
//! - **The writer takes t** (a hold, a debit, what a chat cost beyond its reservation): under the lock, only if A + F − G ≥ t,
//!   which keeps (2); the new W is visible before the lock is free. (1) is not touched before the commit.
//! - **A chat's settlement** moves its reservation into F and takes from A: (2) as above; of G it is still part, so that (1)
//!   stands if the batch fails.
//! - **The batch ends.** Committed, A becomes C; F leaves G and W goes, in one lock with the epoch: (2) becomes (1).
//!   Between the commit and that lock a reader counts F or W twice, which errs on the safe side. Rolled back, W goes
//!   and F is forgotten.
//! - **What the writer knows.** Of a batch that only moves money, it knows what the rows say once it is committed. That is C
//!   of the epoch that then begins, as good as read at its beginning: while writes come fast, nobody reads the rows.
//! - **A reservation is dropped** unsettled: G goes down, C stays.
//!
//! Whoever finds too little here goes the way of the stored hold, where the writer decides alone; so nobody is refused
//! for what a reader counted twice. Another process that takes from a balance sees no reservations: (1) then breaks,
//! nobody gets new ones, and settlements take what is there and forgive the rest.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use tollgate_core::Amount;

use super::Payer;
use crate::db::{DbError, Row, Sql};

pub(crate) const ROOM: Sql = Sql::both(
    "SELECT u.unlimited, u.balance, u.held, u.disabled_at, k.quota, k.held, k.used, k.revoked_at
     FROM keys k JOIN users u ON u.id = k.user_id WHERE k.id = $1 AND u.id = $2",
);

/// What two committed rows leave available; none without a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(super) user: Option<Amount>,
    pub(super) key: Option<Amount>,
}

impl Room {
    /// Whether user or key have a limit: who has none reserves nothing.
    pub(super) fn is_limited(&self) -> bool {
        self.user.is_some() || self.key.is_some()
    }

    /// From a row of [`ROOM`]; none where user or key may not spend any more.
    pub(crate) fn read(row: &mut Row) -> Result<Option<Self>, DbError> {
        if row.opt_int(3)?.is_some() || row.opt_int(7)?.is_some() {
            return Ok(None);
        }
        let (balance, held) = (row.amount(1)?, row.amount(2)?);
        let (key_held, key_used) = (row.amount(5)?, row.amount(6)?);
        let quota = row.opt_int(4)?.map(Amount::from_nanos);
        Ok(Some(Self {
            user: (row.int(0)? == 0).then(|| balance - held),
            key: quota.map(|quota| quota - key_held - key_used),
        }))
    }
}

/// All reservations of this process.
#[derive(Debug, Default)]
pub(crate) struct Reserved(Mutex<State>);

/// Amounts by the id of a user or key.
type Sums = HashMap<String, Amount, RandomState>;

/// What the lock guards.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// G, of users and of keys; no entry is nothing.
    users: Sums,
    keys: Sums,
    /// W, the same.
    batch_users: Sums,
    batch_keys: Sums,
    /// Whose amounts are F.
    ending: Vec<Reservation>,
    epoch: u64,
    /// What rows read in this epoch said, by key, and when.
    rooms: HashMap<String, (Room, Instant), RandomState>,
    /// The same for the epoch that begins if the open batch is committed.
    foretold: Vec<(String, (Room, Instant))>,
}

/// How long what a row said is believed without looking at it again.
const KNOWN: Duration = Duration::from_millis(50);

/// What became of a try to reserve.
#[derive(Debug)]
pub(crate) enum Tried {
    Done(Reservation),
    /// There may be too little.
    Short,
    /// What was read may be old.
    Moved,
}

impl Reserved {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be noted before the rows are read.
    pub(crate) fn epoch(&self) -> u64 {
        self.lock().epoch
    }

    /// What is reserved of a user's balance and of a key's quota.
    pub(crate) fn of(&self, payer: Payer<'_>) -> [Amount; 2] {
        let state = self.lock();
        [state.of_user(payer.user_id), state.of_key(payer.key_id)]
    }

    /// Reserves `amount` if a row that was read a moment ago has it; none where the rows must be read.
    pub(crate) fn reserve_known(
        self: &Arc<Self>,
        payer: Payer<'_>,
        amount: Amount,
    ) -> Option<Reservation> {
        let mut state = self.lock();
        let (room, read_at) = *state.rooms.get(payer.key_id)?;
        let is_fresh = read_at.elapsed() < KNOWN;
        match is_fresh && state.has(payer, amount, room) {
            true => Some(self.set_aside(&mut state, payer, amount, room)),
            false => None,
        }
    }

    /// Reserves `amount` if `room`, read after `epoch` was noted, has it.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        payer: Payer<'_>,
        amount: Amount,
        room: Room,
        epoch: u64,
    ) -> Tried {
        let mut state = self.lock();
        if state.epoch != epoch {
            return Tried::Moved;
        }
        let known = (room, Instant::now());
        state.rooms.insert(payer.key_id.to_owned(), known);
        if !state.has(payer, amount, room) {
            return Tried::Short;
        }
        Tried::Done(self.set_aside(&mut state, payer, amount, room))
    }

    fn set_aside(
        self: &Arc<Self>,
        state: &mut State,
        payer: Payer<'_>,
        amount: Amount,
        room: Room,
    ) -> Reservation {
        let share = Share {
            reserved: Arc::clone(self),
            user_id: payer.user_id.to_owned(),
            key_id: payer.key_id.to_owned(),
            limits: [room.user.is_some(), room.key.is_some()],
            amount,
            live: AtomicBool::new(true),
        };
        state.change(&share, amount);
        Reservation(Arc::new(share))
    }

    /// What rows say, by key, if the open batch is committed.
    pub(super) fn foretell(&self, rooms: Vec<(String, Room)>) {
        let now = Instant::now();
        let known = rooms.into_iter().map(|(key, room)| (key, (room, now)));
        self.lock().foretold = known.collect();
    }

    /// The writer's batch is over: committed and on disk, or taken back.
    pub(crate) fn end_batch(&self, committed: bool) {
        let mut state = self.lock();
        state.batch_users.clear();
        state.batch_keys.clear();
        state.epoch = state.epoch.wrapping_add(1);
        state.rooms.clear();
        let foretold = std::mem::take(&mut state.foretold);
        if committed {
            state.rooms.extend(foretold);
        }
        let ending = std::mem::take(&mut state.ending);
        for Reservation(share) in &ending {
            if committed {
                state.change(share, -share.amount);
            } else {
                share.live.store(true, Ordering::Relaxed);
            }
        }
        // The last of them may be dropped here, which takes the lock.
        drop(state);
    }
}

impl State {
    /// Whether that room, less what is reserved of it and what the batch takes, has `amount`.
    fn has(&self, payer: Payer<'_>, amount: Amount, room: Room) -> bool {
        let Payer { user_id, key_id } = payer;
        let has = |room: Option<Amount>, reserved: Amount, taken: Amount| {
            room.is_none_or(|room| room - reserved - taken >= amount)
        };
        has(
            room.user,
            self.of_user(user_id),
            get(&self.batch_users, user_id),
        ) && has(room.key, self.of_key(key_id), get(&self.batch_keys, key_id))
    }

    pub(super) fn of_user(&self, id: &str) -> Amount {
        get(&self.users, id)
    }

    pub(super) fn of_key(&self, id: &str) -> Amount {
        get(&self.keys, id)
    }

    /// The batch takes so much of a user's balance beyond what ends with it; nothing, where that is negative.
    pub(super) fn batch_takes_of_user(&mut self, id: &str, amount: Amount) {
        set(&mut self.batch_users, id, amount.max(Amount::ZERO));
    }

    /// The same of a key's quota.
    pub(super) fn batch_takes_of_key(&mut self, id: &str, amount: Amount) {
        set(&mut self.batch_keys, id, amount.max(Amount::ZERO));
    }

    /// Ends a reservation with the batch; answers what it leaves to take of: nothing where that has been done.
    pub(super) fn end(&mut self, reservation: &Reservation) -> Amount {
        let share = &reservation.0;
        if !share.live.swap(false, Ordering::Relaxed) {
            return Amount::ZERO;
        }
        self.ending.push(reservation.clone());
        share.amount
    }

    fn change(&mut self, share: &Share, by: Amount) {
        let [user, key] = share.limits;
        if user {
            let sum = self.of_user(&share.user_id) + by;
            set(&mut self.users, &share.user_id, sum);
        }
        if key {
            let sum = self.of_key(&share.key_id) + by;
            set(&mut self.keys, &share.key_id, sum);
        }
    }
}

fn get(sums: &Sums, id: &str) -> Amount {
    sums.get(id).copied().unwrap_or_default()
}

/// Nothing has no entry.
fn set(sums: &mut Sums, id: &str, amount: Amount) {
    if amount == Amount::ZERO {
        sums.remove(id);
    } else if let Some(sum) = sums.get_mut(id) {
        *sum = amount;
    } else {
        sums.insert(id.to_owned(), amount);
    }
}

/// Money set aside in memory for one chat: given back when the last clone is dropped, or when the chat's settlement is
/// on disk.
#[derive(Debug, Clone)]
pub struct Reservation(Arc<Share>);

#[derive(Debug)]
struct Share {
    reserved: Arc<Reserved>,
    user_id: String,
    key_id: String,
    /// Whether user and key have a limit: else it is not counted there, where no check would bound the sum.
    limits: [bool; 2],
    amount: Amount,
    /// Not given back, and not part of a batch that may. Changed under the lock.
    live: AtomicBool,
}

impl Reservation {
    pub(super) fn is_of(&self, payer: Payer<'_>) -> bool {
        self.0.user_id == payer.user_id && self.0.key_id == payer.key_id
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if *self.live.get_mut() {
            let reserved = Arc::clone(&self.reserved);
            reserved.lock().change(self, -self.amount);
        }
    }
}

#[cfg(test)]
mod tests;
