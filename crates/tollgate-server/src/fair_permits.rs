//! Permits that are shared fairly among users: a free permit goes to the user with the fewest, and some are reserved for users who have none.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long after a user's request for a permit the permits count as shared with that user, under [`Reserve::WhenShared`].
const SHARED_FOR: Duration = Duration::from_secs(60);

/// When permits are reserved for users who have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// This number is always reserved: calls may take long, and a new user must not wait for their end.
    Always(usize),
    /// This number is reserved while more than one user requests permits; a single user may have all.
    WhenShared(usize),
}

/// Permits of one kind; clones share them.
#[derive(Clone)]
pub struct FairPermits(Arc<Mutex<State>>);

struct State {
    max: usize,
    granted: Option<Granted>,
    reserve: Reserve,
    in_use: usize,
    /// The number of permits of each user who has any.
    by_user: HashMap<String, usize, RandomState>,
    /// The requests that wait for a permit, the oldest first.
    waiting: VecDeque<Waiting>,
    last_user: String,
    /// When last a user requested a permit who was not the one before. `None` if only one user has requested permits.
    shared_at: Option<Instant>,
}

/// Replaces `max` until a time.
#[derive(Debug, Clone, Copy)]
struct Granted {
    count: usize,
    until: Instant,
    /// The maximum that can be granted.
    limit: usize,
}

/// The permits that are in use and requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermitUse {
    /// Permits in use.
    pub in_use: usize,
    /// Requests that wait for a permit.
    pub waiting: usize,
    /// Permits that are reserved for users who have none; there may be fewer permits than that.
    pub reserve: usize,
}

struct Waiting {
    user_id: String,
    grant: oneshot::Sender<FairPermit>,
}

/// One permit of a user; dropping it returns the permit.
pub struct FairPermit {
    permits: FairPermits,
    user_id: String,
}

impl FairPermits {
    /// `max` permits. A single user can always get at least one of them.
    pub fn new(max: usize, reserve: Reserve) -> Self {
        Self(Arc::new(Mutex::new(State {
            max,
            granted: None,
            reserve,
            in_use: 0,
            by_user: HashMap::default(),
            waiting: VecDeque::new(),
            last_user: String::new(),
            shared_at: None,
        })))
    }

    /// Takes a permit, if the user may have one now.
    pub fn try_acquire(&self, user_id: &str) -> Option<FairPermit> {
        let mut state = self.lock();
        state.note_user(user_id);
        state
            .may_take(user_id)
            .then(|| self.take(&mut state, user_id))
    }

    /// Takes a permit even if it is reserved for other users. While a granted number applies, it may exceed the granted number, up to the limit.
    pub fn try_acquire_any(&self, user_id: &str) -> Option<FairPermit> {
        let mut state = self.lock();
        let max = state.granted.map_or(state.max, |granted| granted.limit);
        (state.in_use < max).then(|| self.take(&mut state, user_id))
    }

    /// Waits for a permit. A free one goes to the waiting user who has the fewest; of several, to the one whose request is the oldest.
    pub async fn acquire(&self, user_id: &str) -> FairPermit {
        loop {
            let granted = {
                let mut state = self.lock();
                state.note_user(user_id);
                if state.may_take(user_id) {
                    return self.take(&mut state, user_id);
                }
                let (grant, granted) = oneshot::channel();
                let user_id = user_id.to_owned();
                state.waiting.push_back(Waiting { user_id, grant });
                granted
            };
            if let Ok(permit) = granted.await {
                return permit;
            }
        }
    }

    /// How many requests of a user wait for a permit.
    pub fn waiting_of(&self, user_id: &str) -> usize {
        let mut state = self.lock();
        state.waiting.retain(|waiting| !waiting.grant.is_closed());
        let of_user = state.waiting.iter().filter(|w| w.user_id == user_id);
        of_user.count()
    }

    /// Permits that are not in use.
    pub fn free(&self) -> usize {
        let state = self.lock();
        state.current_max().saturating_sub(state.in_use)
    }

    /// The permits that are in use and requested.
    pub fn usage(&self) -> PermitUse {
        let mut state = self.lock();
        state.waiting.retain(|waiting| !waiting.grant.is_closed());
        PermitUse {
            in_use: state.in_use,
            waiting: state.waiting.len(),
            reserve: state.uncapped_reserve(),
        }
    }

    /// Permits in use.
    pub fn in_use(&self) -> usize {
        self.lock().in_use
    }

    /// The permits that are now reserved for users who have none.
    pub fn reserve(&self) -> usize {
        self.lock().current_reserve()
    }

    /// Changes the number of permits. If it becomes smaller, permits beyond it stay valid until they are dropped.
    pub fn set_max(&self, max: usize) {
        self.change(|state| state.max = max);
    }

    /// Replaces the maximum by a number of permits until a time; `None` ends that. `limit` is the maximum that can be granted. Permits beyond a
    /// smaller number stay valid until they are dropped.
    pub fn set_granted(&self, granted: Option<(usize, Instant)>, limit: usize) {
        let granted = granted.map(|(count, until)| Granted {
            count,
            until,
            limit,
        });
        self.change(|state| state.granted = granted);
    }

    /// Lowers the granted number to the permits in use, so that no more are given until [`Self::set_granted`] is called, and returns that number. Has
    /// no effect if no number was granted, or once its time has passed.
    pub fn freeze(&self) -> usize {
        let mut state = self.lock();
        let in_use = state.in_use;
        if let Some(granted) = &mut state.granted {
            granted.count = in_use;
        }
        in_use
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        // The maximum may also have grown before, when the time of a granted number passed.
        self.grant();
    }

    fn take(&self, state: &mut State, user_id: &str) -> FairPermit {
        state.in_use += 1;
        *state.by_user.entry(user_id.to_owned()).or_default() += 1;
        FairPermit {
            permits: self.clone(),
            user_id: user_id.to_owned(),
        }
    }

    /// Gives free permits to waiting requests.
    fn grant(&self) {
        loop {
            let mut state = self.lock();
            let Some(next) = state.next_waiting() else {
                return;
            };
            let Some(waiting) = state.waiting.remove(next) else {
                return;
            };
            let permit = self.take(&mut state, &waiting.user_id);
            drop(state);
            // If the request waits no more, dropping the permit returns it.
            drop(waiting.grant.send(permit));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note_user(&mut self, user_id: &str) {
        if self.last_user != user_id {
            self.shared_at = (!self.last_user.is_empty()).then(Instant::now);
            user_id.clone_into(&mut self.last_user);
        }
    }

    fn current_max(&self) -> usize {
        let granted = self
            .granted
            .filter(|granted| Instant::now() < granted.until);
        granted.map_or(self.max, |granted| granted.count)
    }

    /// The number of permits that the reserve is a part of: also permits that are not granted yet.
    fn reserved_of(&self) -> usize {
        self.current_max().max(self.max)
    }

    fn uncapped_reserve(&self) -> usize {
        match self.reserve {
            Reserve::Always(reserve) => reserve,
            Reserve::WhenShared(reserve) => {
                let is_shared = self.shared_at.is_some_and(|at| at.elapsed() < SHARED_FOR);
                if is_shared { reserve } else { 0 }
            }
        }
    }

    fn current_reserve(&self) -> usize {
        let max = self.reserved_of().saturating_sub(1);
        self.uncapped_reserve().min(max)
    }

    fn may_take(&self, user_id: &str) -> bool {
        let free = self.reserved_of().saturating_sub(self.in_use);
        self.in_use < self.current_max()
            && (!self.by_user.contains_key(user_id) || free > self.current_reserve())
    }

    /// The index of the waiting request that gets the next permit, if one may be given.
    fn next_waiting(&mut self) -> Option<usize> {
        if self.in_use >= self.current_max() {
            return None;
        }
        self.waiting.retain(|waiting| !waiting.grant.is_closed());
        let count = |waiting: &Waiting| self.by_user.get(&waiting.user_id).copied().unwrap_or(0);
        let may_take = self.waiting.iter().enumerate();
        let may_take = may_take.filter(|(_, waiting)| self.may_take(&waiting.user_id));
        let next = may_take.min_by_key(|(_, waiting)| count(waiting));
        next.map(|(at, _)| at)
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let mut state = self.permits.lock();
        state.in_use -= 1;
        if let Some(count) = state.by_user.get_mut(&self.user_id) {
            *count -= 1;
            if *count == 0 {
                state.by_user.remove(&self.user_id);
            }
        }
        let somebody_waits = !state.waiting.is_empty();
        drop(state);
        if somebody_waits {
            self.permits.grant();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_user_leaves_the_reserve_to_others() {
        let permits = FairPermits::new(4, Reserve::Always(2));
        let take = |user| permits.try_acquire(user);
        let ann = [take("ann"), take("ann"), take("ann")];
        assert_eq!(ann.iter().flatten().count(), 2);
        let (bob, eve) = (take("bob"), take("eve"));
        assert!(bob.is_some() && eve.is_some());
        assert!(take("joe").is_none() && permits.free() == 0);
        drop(bob);
        assert!(take("ann").is_none(), "it is in the reserve");
        assert!(permits.try_acquire_any("ann").is_some());
        drop((ann, eve));
        assert_eq!(permits.free(), 4);
        let one = FairPermits::new(1, Reserve::Always(9));
        assert!(one.try_acquire("ann").is_some(), "one can always be taken");
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_user_may_have_all_until_another_requests_one() {
        let permits = FairPermits::new(4, Reserve::WhenShared(1));
        let take = |user| permits.try_acquire(user);
        let mut ann: Vec<_> = (0..4).map(|_| take("ann").unwrap()).collect();
        assert!(take("bob").is_none(), "all are in use");
        ann.pop();
        assert!(
            take("ann").is_none(),
            "one is kept, since bob requested one"
        );
        drop(take("bob").unwrap());
        tokio::time::advance(SHARED_FOR).await;
        // Once the time of the other user has passed, the next user counts as the only one again.
        let _again = take("bob").unwrap();
        tokio::time::advance(SHARED_FOR).await;
        drop(ann);
        assert_eq!(permits.reserve(), 0);
    }

    #[tokio::test]
    async fn a_free_permit_goes_to_the_user_who_has_the_fewest() {
        let permits = FairPermits::new(2, Reserve::Always(0));
        let mut ann = vec![permits.acquire("ann").await, permits.acquire("ann").await];
        let mut waits = Box::pin(permits.acquire("ann"));
        let mut gone = Box::pin(permits.acquire("bob"));
        let mut bob = Box::pin(permits.acquire("bob"));
        assert!((&mut waits).now_or_never().is_none());
        assert!((&mut gone).now_or_never().is_none());
        assert!((&mut bob).now_or_never().is_none());
        assert_eq!(permits.waiting_of("bob"), 2);
        drop(gone);
        assert_eq!(permits.waiting_of("bob"), 1);
        ann.pop();
        assert!((&mut waits).now_or_never().is_none(), "ann has one");
        let bob = bob.now_or_never().expect("bob had none");
        permits.set_max(3);
        assert!(waits.now_or_never().is_some());
        drop(bob);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_granted_stands_for_the_maximum_for_a_while() {
        let permits = FairPermits::new(2, Reserve::Always(0));
        let until = Instant::now() + Duration::from_secs(10);
        permits.set_granted(Some((1, until)), 3);
        let one = permits.try_acquire("ann").expect("one");
        let mut waits = Box::pin(permits.acquire("ann"));
        assert!((&mut waits).now_or_never().is_none());
        let expected = PermitUse {
            in_use: 1,
            waiting: 1,
            reserve: 0,
        };
        assert_eq!(permits.usage(), expected);
        let runs = permits.try_acquire_any("bob").expect("it runs anyway");
        permits.set_granted(Some((3, until)), 3);
        let two = waits.now_or_never().expect("granted");
        assert_eq!(permits.free(), 0);
        assert!(permits.try_acquire_any("bob").is_none(), "beyond the limit");
        drop((one, runs));
        assert_eq!(permits.free(), 2);
        assert_eq!(permits.freeze(), 1);
        assert_eq!(permits.free(), 0);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(permits.free(), 1, "the maximum itself");
        drop(two);
    }

    #[tokio::test]
    async fn a_granted_permit_that_nobody_takes_is_released() {
        let permits = FairPermits::new(1, Reserve::Always(0));
        let first = permits.acquire("ann").await;
        let mut waits = Box::pin(permits.acquire("bob"));
        assert!((&mut waits).now_or_never().is_none());
        drop(first);
        assert_eq!(permits.free(), 0, "granted to bob");
        drop(waits);
        assert_eq!(permits.free(), 1);
    }
}
