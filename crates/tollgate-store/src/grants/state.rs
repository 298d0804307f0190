//! The state of a node's grants. Nothing here waits or writes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use tokio::sync::Notify;
use tollgate_core::{Amount, Millis, id};

use crate::ledger::account::Account;
use crate::ledger::grants::{GrantRaise, NewGrant};

/// If a key's last chat began longer ago than this, the key gets no grant for the next one.
pub(super) const QUIET: Duration = Duration::from_secs(2);
/// A grant is closed if no chat has started on it for this long and none is running.
pub(super) const IDLE: Duration = Duration::from_secs(3);
/// How long a user gets no grants after another node requested the user's grants, or too little was available.
pub(super) const DENIED_FOR: Duration = Duration::from_secs(3);

/// Spending is counted in windows of this length: the current and the previous window together cover the last one to two seconds.
const WINDOW: Duration = Duration::from_secs(1);
/// A grant is lowered if its free part is more than this many times what its key needs.
const TOO_LARGE: i64 = 4;

/// A write that a chat causes; not every chat causes one.
#[derive(Debug, Clone)]
pub(crate) enum GrantWrite {
    Open(NewGrant),
    Raise(GrantRaise),
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct GrantsState {
    heartbeat: Option<ConfirmedHeartbeat>,
    /// By key id: the keys that had a chat recently.
    keys: HashMap<String, KeyState, RandomState>,
    /// By grant id: the grants of `keys`, and those that are being closed.
    grants: HashMap<String, Grant, RandomState>,
    /// Users who get no grants until that time.
    without: HashMap<String, Instant, RandomState>,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct ConfirmedHeartbeat {
    node: String,
    sent: Instant,
    sent_at: Millis,
    lease: Duration,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct KeyState {
    grant_id: Option<String>,
    /// Whether a grant is being opened or raised.
    is_changing: bool,
    /// Notifies the chats that wait until this has ended.
    changed: Arc<Notify>,
    need: Need,
}

/// How much the chats of a key need.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Need {
    last_chat: Instant,
    window: Instant,
    /// The sums that chats have reserved in the current window and in the previous one.
    sums: [Amount; 2],
    /// The largest amount that a chat has reserved in each of them.
    largest: [Amount; 2],
}

impl Need {
    fn new(now: Instant) -> Self {
        Self {
            last_chat: now,
            window: now,
            sums: [Amount::ZERO; 2],
            largest: [Amount::ZERO; 2],
        }
    }

    fn add(&mut self, amount: Amount, now: Instant) {
        self.last_chat = now;
        self.turn(now);
        let sum = self.sums[0].checked_add(amount);
        self.sums[0] = sum.unwrap_or(self.sums[0]);
        self.largest[0] = self.largest[0].max(amount);
    }

    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.window);
        if age < WINDOW {
            return;
        }
        let is_next = age < 2 * WINDOW;
        for sums in [&mut self.sums, &mut self.largest] {
            sums[1] = if is_next { sums[0] } else { Amount::ZERO };
            sums[0] = Amount::ZERO;
        }
        self.window = now;
    }

    /// The amount that the key needs for about two seconds; at least that of two of its largest chats.
    fn amount(&self) -> Amount {
        let [now, before] = self.sums;
        let sum = now.checked_add(before).unwrap_or(now);
        let largest = self.largest[0].max(self.largest[1]);
        sum.max(largest.checked_add(largest).unwrap_or(largest))
    }
}

/// A grant of this node.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Grant {
    user_id: String,
    key_id: String,
    free: Amount,
    reserved: Amount,
    /// The amounts that were granted, and that were released before the grant's end, in total.
    granted: Amount,
    released: Amount,
    /// Whether no chat begins on it any more.
    is_retired: bool,
    /// Whether the outcome of a write is unknown, so that no free part is known: what is left is released when the last chat has ended.
    is_uncertain: bool,
    /// Whether a part of it, or all of it, is being released.
    is_returning: bool,
}

/// What the caller must do.
pub(super) enum Step {
    /// The amount was reserved from the grant with this id.
    Reserved(String),
    Wait(Arc<Notify>),
    Hold,
}

/// A part of a grant, or all of it, that must be released.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Return {
    pub(super) id: String,
    pub(super) user_id: String,
    pub(super) key_id: String,
    /// The part; `None` closes the grant, which releases what is left of it.
    pub(super) part: Option<ReturnedPart>,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct ReturnedPart {
    pub(super) amount: Amount,
    /// The amount that was released before.
    pub(super) released: Amount,
}

impl GrantsState {
    pub(super) fn heartbeat_confirmed(
        &mut self,
        node: &str,
        sent: Instant,
        sent_at: Millis,
        lease: Millis,
    ) {
        let lease = Duration::from_millis(lease.unsigned_abs());
        let confirmed = self.heartbeat.as_ref();
        // A monotonic clock may stop while the machine is suspended.
        let was_silent = |last: &ConfirmedHeartbeat| {
            let by_wall_clock = Duration::from_millis((sent_at - last.sent_at).unsigned_abs());
            last.sent.elapsed().max(by_wall_clock) >= last.lease * 3 / 4
        };
        // Other nodes may have released this node's grants after the last heartbeat expired.
        if confirmed.is_some_and(was_silent) {
            self.retire_all();
        }
        self.heartbeat = Some(ConfirmedHeartbeat {
            node: node.to_owned(),
            sent,
            sent_at,
            lease,
        });
    }

    /// The node's name. `None` if no chat may begin on a grant at `at`.
    fn serving_node(&self, at: Millis) -> Option<&str> {
        let ConfirmedHeartbeat {
            node,
            sent,
            sent_at,
            lease,
        } = self.heartbeat.as_ref()?;
        let half = *lease / 2;
        let by_wall_clock = Duration::from_millis((at - sent_at).unsigned_abs());
        (sent.elapsed() < half && by_wall_clock < half).then_some(node)
    }

    /// Reserves `amount` for a chat. `is_repeated` if the chat has waited since its first call: its amount is added to the key's need only once.
    pub(super) fn reserve(
        &mut self,
        account: Account<'_>,
        amount: Amount,
        at: Millis,
        is_repeated: bool,
    ) -> (Step, Option<GrantWrite>) {
        let Some(node) = self.serving_node(at).map(str::to_owned) else {
            return (Step::Hold, None);
        };
        let Account { user_id, key_id } = account;
        let now = Instant::now();
        let is_without = self.without.get(user_id).is_some_and(|until| now < *until);
        let Some(key) = self.keys.get_mut(key_id) else {
            let mut need = Need::new(now);
            need.add(amount, now);
            self.keys.insert(key_id.to_owned(), KeyState::new(need));
            return (Step::Hold, None);
        };
        let was_quiet = now.saturating_duration_since(key.need.last_chat) >= QUIET;
        if !is_repeated {
            key.need.add(amount, now);
        }
        let need = key.need.amount();
        let grant = key.grant_id.as_ref().and_then(|id| self.grants.get_mut(id));
        let Some((grant, grant_id)) = grant.zip(key.grant_id.as_ref()) else {
            if key.is_changing {
                return (Step::Wait(Arc::clone(&key.changed)), None);
            }
            if is_without || was_quiet {
                return (Step::Hold, None);
            }
            key.is_changing = true;
            let open = NewGrant {
                id: id::short_id("grant_"),
                node,
                min: amount,
                max: need,
                at,
            };
            let wait = Step::Wait(Arc::clone(&key.changed));
            return (wait, Some(GrantWrite::Open(open)));
        };
        let is_covered = grant.free >= amount;
        let may_raise = !key.is_changing && !is_without;
        let raise = |grant: &Grant, min: Amount| {
            let raise = GrantRaise {
                id: grant_id.clone(),
                granted: grant.granted,
                min,
                max: need.max(min),
                at,
            };
            Some(GrantWrite::Raise(raise))
        };
        if is_covered {
            grant.free -= amount;
            grant.reserved += amount;
            let is_low = grant.free < Amount::from_nanos(need.nanos() / 2);
            let write = (may_raise && is_low)
                .then(|| raise(grant, amount))
                .flatten();
            let step = Step::Reserved(grant_id.clone());
            key.is_changing |= write.is_some();
            return (step, write);
        }
        let write = may_raise.then(|| raise(grant, amount)).flatten();
        key.is_changing |= write.is_some();
        let step = match key.is_changing {
            true => Step::Wait(Arc::clone(&key.changed)),
            false => Step::Hold,
        };
        (step, write)
    }

    /// Records that a grant of `amount` was opened.
    pub(super) fn record_open(&mut self, account: Account<'_>, id: String, amount: Amount) {
        let grant = Grant {
            user_id: account.user_id.to_owned(),
            key_id: account.key_id.to_owned(),
            free: amount,
            reserved: Amount::ZERO,
            granted: amount,
            released: Amount::ZERO,
            is_retired: false,
            is_uncertain: false,
            is_returning: false,
        };
        self.grants.insert(id.clone(), grant);
        if let Some(key) = self.keys.get_mut(account.key_id) {
            key.grant_id = Some(id);
        }
    }

    /// Records that a grant may have been opened of which only the id is known: it is closed soon.
    pub(super) fn may_be_open(&mut self, account: Account<'_>, id: String) {
        self.record_open(account, id.clone(), Amount::ZERO);
        self.retire_uncertain(&id);
    }

    /// Records that a grant was raised by `amount`.
    pub(super) fn record_raise(&mut self, id: &str, amount: Amount) {
        if let Some(grant) = self.grants.get_mut(id) {
            grant.add_free(amount);
            grant.granted += amount;
        }
    }

    /// Records that a request to open or raise a grant has ended: chats that wait for it retry.
    pub(super) fn end_change(&mut self, key_id: &str) {
        if let Some(key) = self.keys.get_mut(key_id) {
            key.is_changing = false;
            key.changed.notify_waiters();
        }
    }

    /// Gives a user no grants for a while.
    pub(super) fn leave_without(&mut self, user_id: &str) {
        let until = Instant::now() + DENIED_FOR;
        self.without.insert(user_id.to_owned(), until);
    }

    /// Reserves up to `amount` more of the free part. Returns how much was reserved.
    pub(super) fn reserve_more(&mut self, id: &str, amount: Amount) -> Amount {
        let Some(grant) = self.grants.get_mut(id) else {
            return Amount::ZERO;
        };
        let more = grant.free.min(amount);
        grant.free -= more;
        grant.reserved += more;
        more
    }

    /// Ends a reservation of which `spent` was taken from the grant.
    pub(super) fn end_reservation(&mut self, id: &str, reserved: Amount, spent: Amount) {
        if let Some(grant) = self.grants.get_mut(id) {
            grant.reserved -= reserved;
            grant.add_free(reserved - spent);
        }
    }

    /// Retires a grant: no chat begins on it any more.
    pub(super) fn retire(&mut self, id: &str) {
        let Some(grant) = self.grants.get_mut(id) else {
            return;
        };
        grant.is_retired = true;
        if let Some(key) = self.keys.get_mut(&grant.key_id)
            && key.grant_id.as_deref() == Some(id)
        {
            key.grant_id = None;
        }
    }

    /// As [`GrantsState::retire`], because it is not known how much of the grant the database has.
    pub(super) fn retire_uncertain(&mut self, id: &str) {
        if let Some(grant) = self.grants.get_mut(id) {
            grant.is_uncertain = true;
            grant.free = Amount::ZERO;
        }
        self.retire(id);
    }

    pub(super) fn retire_all(&mut self) {
        let ids: Vec<String> = self.grants.keys().cloned().collect();
        for id in ids {
            self.retire(&id);
        }
    }

    /// Retires the grants of a user, and gives the user no others for a while.
    pub(super) fn retire_of_user(&mut self, user_id: &str) {
        let of_user = self
            .grants
            .iter()
            .filter(|(_, grant)| grant.user_id == user_id);
        let ids: Vec<String> = of_user.map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.retire(&id);
        }
        self.leave_without(user_id);
    }

    pub(super) fn user_of(&self, id: &str) -> Option<String> {
        self.grants.get(id).map(|grant| grant.user_id.clone())
    }

    /// The node's name, if it has grants.
    pub(super) fn node_with_grants(&self) -> Option<String> {
        let node = self.heartbeat.as_ref().map(|heartbeat| &heartbeat.node);
        node.filter(|_| !self.grants.is_empty()).cloned()
    }

    /// Retires idle grants, and takes the amounts that must be released from the free parts. Removes keys without recent chats.
    pub(super) fn take_returns(&mut self) -> Vec<Return> {
        let now = Instant::now();
        self.without.retain(|_, until| now < *until);
        let mut idle = Vec::new();
        for (id, grant) in &self.grants {
            let key = self.keys.get(&grant.key_id);
            let last = key.map(|key| key.need.last_chat);
            let is_idle = last.is_none_or(|last| now.saturating_duration_since(last) >= IDLE);
            if is_idle && grant.reserved == Amount::ZERO && !grant.is_retired {
                idle.push(id.clone());
            }
        }
        for id in idle {
            self.retire(&id);
        }
        self.keys.retain(|_, key| {
            let is_quiet = now.saturating_duration_since(key.need.last_chat) >= IDLE;
            !is_quiet || key.is_changing || key.grant_id.is_some()
        });
        let mut returns = Vec::new();
        for (id, grant) in &mut self.grants {
            let need = self.keys.get_mut(&grant.key_id).map(|key| {
                key.need.turn(now);
                key.need.amount()
            });
            if let Some(part) = grant.take_return(need.unwrap_or_default()) {
                returns.push(Return {
                    id: id.clone(),
                    user_id: grant.user_id.clone(),
                    key_id: grant.key_id.clone(),
                    part,
                });
            }
        }
        returns
    }

    /// Records that a release is on disk, or that its write failed: then the grant is retired, and closed later.
    pub(super) fn record_return(&mut self, id: &str, is_closed: bool, is_written: bool) {
        if is_closed && is_written {
            self.grants.remove(id);
            return;
        }
        if let Some(grant) = self.grants.get_mut(id) {
            grant.is_returning = false;
        }
        if !is_written {
            self.retire_uncertain(id);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.grants.len()
    }

    /// The sums of what is reserved, over the grants of a user and of a key.
    pub(super) fn reserved_amounts(&self, account: Account<'_>) -> [Amount; 2] {
        let mut sums = [Amount::ZERO; 2];
        for grant in self.grants.values() {
            for (sum, is_of_owner) in sums.iter_mut().zip([
                grant.user_id == account.user_id,
                grant.key_id == account.key_id,
            ]) {
                if is_of_owner {
                    *sum = sum.checked_add(grant.reserved).unwrap_or(*sum);
                }
            }
        }
        sums
    }
}

impl KeyState {
    fn new(need: Need) -> Self {
        Self {
            grant_id: None,
            is_changing: false,
            changed: Arc::default(),
            need,
        }
    }
}

impl Grant {
    fn add_free(&mut self, amount: Amount) {
        if !self.is_uncertain {
            self.free += amount;
        }
    }

    /// Takes the amount that must be released if the key needs `need`: a part, or (`Some(None)`) all.
    fn take_return(&mut self, need: Amount) -> Option<Option<ReturnedPart>> {
        if self.is_returning {
            return None;
        }
        if self.is_retired && self.reserved == Amount::ZERO {
            self.is_returning = true;
            self.free = Amount::ZERO;
            return Some(None);
        }
        let kept = match self.is_retired {
            true => Amount::ZERO,
            false if self.free.nanos() / TOO_LARGE >= need.nanos() => need,
            false => return None,
        };
        let amount = self.free - kept;
        if amount <= Amount::ZERO {
            return None;
        }
        self.is_returning = true;
        self.free = kept;
        let released = self.released;
        self.released += amount;
        Some(Some(ReturnedPart { amount, released }))
    }
}

#[cfg(test)]
mod tests;
