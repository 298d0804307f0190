//! Rate limits that all nodes count together: sliding windows and sets of requests in flight in Redis, with the clock of Redis. Each script checks
//! all scopes of a request in one call.
//!
//! Keys begin with the version of the scripts ([`PREFIX`]): nodes with other scripts count separately until all run the same. A request in flight
//! expires if its node stops renewing it: [`SharedLimits::run`] renews those of this node, and adds those that Redis has lost.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::{Script, ScriptInvocation};
use tokio::time::sleep;
use tollgate_core::Millis;

use super::connection::{RedisClient, RedisUnavailable};

use crate::spawn::spawn_detached;

/// The prefix of all keys. Its number is raised when the meaning of a key changes; the braces keep all keys on one node of a cluster.
const PREFIX: &str = "{tollgate:limits:1}";
/// Requests in flight that one call renews or removes.
const BATCH: usize = 256;

macro_rules! script {
    ($file:literal) => {
        LazyLock::new(|| Script::new(concat!(include_str!("window.lua"), include_str!($file))))
    };
}

static ADMIT: LazyLock<Script> = script!("admit.lua");
static RESERVE: LazyLock<Script> = script!("reserve.lua");
static SETTLE: LazyLock<Script> = script!("settle.lua");
static RENEW: LazyLock<Script> = script!("renew.lua");
static REMOVE: LazyLock<Script> = script!("remove.lua");

/// A scope with its limits: `key:ID`, `user:ID` or `gateway`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedScope {
    /// The scope's name.
    pub name: String,
    /// POST requests per minute.
    pub rpm: Option<u32>,
    /// Tokens per minute.
    pub tpm: Option<u32>,
    /// Requests in flight.
    pub max_concurrency: Option<u32>,
}

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachedLimit {
    /// Requests in flight.
    Concurrency,
    /// POST requests per minute.
    Rpm,
    /// Tokens per minute.
    Tpm,
}

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// Position of the scope among those of the request.
    pub scope: usize,
    /// The limit that was reached.
    pub limit: ReachedLimit,
    /// How long to wait.
    pub wait: Millis,
}

/// POSTs that all nodes counted for a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedPosts {
    /// POSTs in the last minute.
    pub recent: u64,
    /// The time until one more POST is allowed.
    pub reset: Millis,
}

/// The counts of all nodes.
pub struct SharedLimits {
    redis: Arc<RedisClient>,
    /// This process's name, with which ids of requests begin.
    node: String,
    /// How long a request in flight counts without renewal.
    lease: Millis,
    next_id: AtomicU64,
    in_flight: Mutex<HashMap<u64, Vec<Member>>>,
}

/// A request in flight, as an entry of one set.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    set_key: String,
    /// The key of the sum of tokens; that of the set if there is no sum.
    sum_key: String,
    member: String,
}

/// A request in flight on this node. It counts until it is dropped.
pub struct SharedPermit {
    limits: Arc<SharedLimits>,
    id: u64,
    scopes: Vec<LimitedScope>,
    reserved: AtomicU64,
}

impl SharedLimits {
    /// Counts in Redis.
    pub fn new(redis: Arc<RedisClient>, node: String, lease: Millis) -> Self {
        Self {
            redis,
            node,
            lease,
            next_id: AtomicU64::new(0),
            in_flight: Mutex::default(),
        }
    }

    /// Renews the requests in flight at intervals. Never returns.
    pub async fn run(&self) {
        let interval = Duration::from_millis(self.lease.unsigned_abs() / 3);
        loop {
            sleep(interval).await;
            self.renew().await;
        }
    }

    /// Begins a request: it counts as in flight from its admission or, if Redis is unreachable then, from the time when Redis is back.
    pub fn begin(self: &Arc<Self>, scopes: Vec<LimitedScope>) -> SharedPermit {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        SharedPermit {
            limits: Arc::clone(self),
            id,
            scopes,
            reserved: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Vec<Member>>> {
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds `members` to those that are renewed until the request with that id ends.
    fn keep_renewed(&self, id: u64, members: Vec<Member>) {
        if !members.is_empty() {
            self.lock().entry(id).or_default().extend(members);
        }
    }

    async fn renew(&self) {
        let held: Vec<(u64, Vec<Member>)> = self
            .lock()
            .iter()
            .map(|(id, members)| (*id, members.clone()))
            .collect();
        let members: Vec<Member> = held.iter().flat_map(|(_, m)| m.iter().cloned()).collect();
        for batch in members.chunks(BATCH) {
            let mut call = RENEW.arg(self.lease);
            add_members(&mut call, batch);
            if self.redis.run_script::<i64>(&call).await.is_err() {
                return;
            }
        }
        // Entries that have ended in between may have been added again: remove them.
        let ended = ended_members(held, &self.lock());
        self.remove(&ended).await;
    }

    async fn remove(&self, members: &[Member]) {
        for batch in members.chunks(BATCH) {
            let mut call = REMOVE.prepare_invoke();
            add_members(&mut call, batch);
            if self.redis.run_script::<i64>(&call).await.is_err() {
                return;
            }
        }
    }
}

/// The entries of `renewed` that have ended: those of requests that are no longer in flight, and reservations that were settled.
fn ended_members(
    renewed: Vec<(u64, Vec<Member>)>,
    in_flight: &HashMap<u64, Vec<Member>>,
) -> Vec<Member> {
    let ended = renewed.into_iter().flat_map(|(id, mut members)| {
        if let Some(current) = in_flight.get(&id) {
            members.retain(|member| !current.contains(member));
        }
        members
    });
    ended.collect()
}

fn add_members(call: &mut ScriptInvocation<'_>, members: &[Member]) {
    for member in members {
        call.key(&member.set_key)
            .key(&member.sum_key)
            .arg(&member.member);
    }
}

impl LimitedScope {
    fn key(&self, what: &str) -> String {
        let mut key = String::with_capacity(PREFIX.len() + self.name.len() + what.len() + 2);
        // Writing to a string cannot fail.
        let _ = write!(key, "{PREFIX}:{}:{what}", self.name);
        key
    }
}

impl SharedPermit {
    /// Admits the request, or returns the limit that rejects it. It counts as in flight from now on unless it is rejected: without a reply, it is
    /// added at the next renewal. The returned counts are in the order of the scopes, as are the `uncounted` POSTs that this node admitted while
    /// Redis was unreachable.
    ///
    /// # Errors
    /// [`RedisUnavailable`].
    pub async fn admit(
        &self,
        is_post: bool,
        uncounted: &[u64],
    ) -> Result<(Option<Rejection>, Vec<CountedPosts>), RedisUnavailable> {
        let member = self.member(0);
        let mut call = ADMIT.prepare_invoke();
        call.arg(u8::from(is_post))
            .arg(&member)
            .arg(self.limits.lease);
        let mut members = Vec::new();
        for (scope, uncounted) in self.scopes.iter().zip(uncounted) {
            let set_key = scope.key("in_flight");
            call.key(scope.key("posts")).key(&set_key);
            call.arg(scope.rpm.unwrap_or(0));
            call.arg(scope.max_concurrency.unwrap_or(0));
            call.arg(*uncounted);
            if scope.max_concurrency.is_some() {
                members.push(Member {
                    sum_key: set_key.clone(),
                    set_key,
                    member: member.clone(),
                });
            }
        }
        self.limits.keep_renewed(self.id, members);
        let reply: Vec<i64> = self.limits.redis.run_script(&call).await?;
        let [scope, limit, wait, posts @ ..] = reply.as_slice() else {
            return Err(RedisUnavailable::NoReply);
        };
        let posts = posts.chunks_exact(2).map(|pair| CountedPosts {
            recent: pair[0].unsigned_abs(),
            reset: pair[1],
        });
        let rejection = usize::try_from(scope - 1).ok().map(|scope| Rejection {
            scope,
            limit: match limit {
                1 => ReachedLimit::Concurrency,
                _ => ReachedLimit::Rpm,
            },
            wait: *wait,
        });
        if rejection.is_some() {
            // A rejected request is not counted, so there is nothing to remove.
            self.limits.lock().remove(&self.id);
        }
        Ok((rejection, posts.collect()))
    }

    /// Counts `estimate` tokens until [`SharedPermit::settle`] or the end of the permit, or returns the limit that rejects the request. Called once,
    /// if a scope limits tokens.
    ///
    /// # Errors
    /// [`RedisUnavailable`].
    pub async fn reserve(&self, estimate: u64) -> Result<Option<Rejection>, RedisUnavailable> {
        let member = self.member(estimate);
        let mut call = RESERVE.prepare_invoke();
        call.arg(&member).arg(self.limits.lease);
        let mut members = Vec::new();
        let mut positions = Vec::new();
        for (position, scope) in self.scopes.iter().enumerate() {
            let Some(tpm) = scope.tpm else { continue };
            positions.push(position);
            let reservation = scope.reservation(&member);
            call.key(scope.key("tokens"));
            call.key(&reservation.set_key).key(&reservation.sum_key);
            call.arg(tpm);
            members.push(reservation);
        }
        // Stored before the call, so that a reservation whose reply is lost is removed too.
        self.limits.keep_renewed(self.id, members);
        self.reserved.store(estimate, Ordering::Relaxed);
        let (scope, wait): (usize, Millis) = self.limits.redis.run_script(&call).await?;
        let scope = scope.checked_sub(1).and_then(|at| positions.get(at));
        Ok(scope.map(|scope| Rejection {
            scope: *scope,
            limit: ReachedLimit::Tpm,
            wait,
        }))
    }

    /// Replaces the estimate by `actual` tokens, in the background. Called once.
    pub fn settle(&self, actual: u64) {
        let member = self.member(self.reserved.load(Ordering::Relaxed));
        let mut call = SETTLE.arg(member.clone());
        call.arg(actual);
        let mut sets = Vec::new();
        for scope in self.scopes.iter().filter(|scope| scope.tpm.is_some()) {
            let reservation = scope.reservation(&member);
            call.key(scope.key("tokens"));
            call.key(&reservation.set_key).key(&reservation.sum_key);
            sets.push(reservation.set_key);
        }
        if sets.is_empty() {
            return;
        }
        if let Some(members) = self.limits.lock().get_mut(&self.id) {
            members.retain(|member| !sets.contains(&member.set_key));
        }
        let limits = Arc::clone(&self.limits);
        // If Redis is unreachable, its estimate expires with the lease.
        spawn_detached(async move {
            let _ = limits.redis.run_script::<i64>(&call).await;
        });
    }

    fn member(&self, tokens: u64) -> String {
        format!("{}:{}:{tokens}", self.limits.node, self.id)
    }
}

impl LimitedScope {
    fn reservation(&self, member: &str) -> Member {
        Member {
            set_key: self.key("reservations"),
            sum_key: self.key("reserved"),
            member: member.to_owned(),
        }
    }
}

impl Drop for SharedPermit {
    fn drop(&mut self) {
        let members = self.limits.lock().remove(&self.id).unwrap_or_default();
        if !members.is_empty() {
            let limits = Arc::clone(&self.limits);
            spawn_detached(async move { limits.remove(&members).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_end_during_a_renewal_are_removed() {
        let member = |set: &str, id: u64| Member {
            set_key: set.to_owned(),
            sum_key: set.to_owned(),
            member: format!("node:{id}:0"),
        };
        let both = |id| vec![member("in_flight", id), member("reservations", id)];
        let renewed = vec![(1, both(1)), (2, both(2)), (3, both(3))];
        let in_flight = HashMap::from([(1, both(1)), (2, vec![member("in_flight", 2)])]);
        let mut expected = vec![member("reservations", 2)];
        expected.extend(both(3));
        assert_eq!(ended_members(renewed, &in_flight), expected);
    }
}
