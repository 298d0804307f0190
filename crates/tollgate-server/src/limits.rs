//! Limits of keys, of users over all their keys, and of the gateway over all users: POSTs and tokens in a sliding minute,
//! requests in flight. What is over a limit is refused, never queued.

mod window;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use tollgate_core::clock::SECOND;
use tollgate_core::{ApiError, Clock, ErrorKind, Millis};
use tollgate_store::{Key, RateLimits};

use window::Window;

/// So many may be remembered before those are looked for that have long been idle.
const SWEEP: usize = 1_024;

/// What everybody with a limit has done lately. Who has none is never in here; one without requests in flight, and
/// without any in the last minute, is forgotten.
pub struct Limits {
    shared: Arc<Shared>,
    gateway: RateLimits,
}

struct Shared {
    table: Mutex<Table>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Table {
    keys: Usages,
    users: Usages,
    gateway: Usage,
}

/// By the id of a key or user.
#[derive(Default)]
struct Usages {
    by_id: HashMap<String, Usage, RandomState>,
    /// How many there were after the last sweep.
    swept: usize,
}

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope<'a> {
    Key(&'a str),
    User(&'a str),
    Gateway,
}

#[derive(Default)]
struct Usage {
    posts: Window,
    tokens: Window,
    /// Tokens that requests in flight are expected to take.
    reserved: u64,
    in_flight: u32,
}

/// A request that was let in; counts as in flight until dropped, so it must live as long as the answer is being sent.
pub struct Permit {
    shared: Arc<Shared>,
    key: Arc<Key>,
    gateway: RateLimits,
    reserved: AtomicU64,
}

impl Limits {
    /// Nobody has done anything yet. `gateway` limits all users together.
    pub fn new(gateway: RateLimits, clock: Arc<dyn Clock>) -> Self {
        let table = Mutex::default();
        Self {
            shared: Arc::new(Shared { table, clock }),
            gateway,
        }
    }

    /// Lets a request of `key` in. None where nothing limits it.
    ///
    /// # Errors
    /// 429 that names the limit and says how long to wait. A request that one limit refuses counts against none.
    pub fn admit(
        &self,
        key: &Arc<Key>,
        is_post: bool,
        now: Millis,
    ) -> Result<Option<Permit>, ApiError> {
        let limited = || limited(key, self.gateway);
        if limited().next().is_none() {
            return Ok(None);
        }
        let mut table = self.shared.table();
        for (scope, rates) in limited() {
            table
                .usage(scope, now)
                .may_begin(scope, &rates, is_post, now)?;
        }
        for (scope, rates) in limited() {
            let usage = table.usage(scope, now);
            usage.in_flight += 1;
            if is_post && rates.rpm.is_some() {
                usage.posts.add(1, now);
            }
        }
        drop(table);
        Ok(Some(Permit {
            shared: Arc::clone(&self.shared),
            key: Arc::clone(key),
            gateway: self.gateway,
            reserved: AtomicU64::new(0),
        }))
    }

    /// What is left by that limit of requests which leaves the least: limit, remaining, and seconds until one more is free. A
    /// limit of requests in flight counts once it is reached. None where requests are not limited.
    pub fn standing(&self, key: &Key, now: Millis) -> Option<[u32; 3]> {
        let mut limited = limited(key, self.gateway).peekable();
        limited.peek()?;
        let mut table = self.shared.table();
        let mut least: Option<[u32; 3]> = None;
        for (scope, rates) in limited {
            let usage = table.there(scope);
            let in_flight = usage.as_ref().map_or(0, |usage| usage.in_flight);
            let full = rates.max_concurrency.filter(|most| in_flight >= *most);
            let full = full.map(|most| [most, 0, 1]);
            let minute = rates.rpm.map(|rpm| of_minute(rpm, usage, now));
            let standings = least.into_iter().chain(minute).chain(full);
            least = standings.min_by_key(|[_, remaining, _]| *remaining);
        }
        least
    }
}

/// Everybody whose limits hold for `key`.
fn limited(key: &Key, gateway: RateLimits) -> impl Iterator<Item = (Scope<'_>, RateLimits)> {
    let all = [
        (Scope::Key(&key.id), key.limits.rates),
        (Scope::User(&key.user_id), key.user_rates),
        (Scope::Gateway, gateway),
    ];
    let none = RateLimits::default();
    all.into_iter().filter(move |(_, rates)| *rates != none)
}

/// What is left of the minute to somebody who may send `rpm` requests in it.
fn of_minute(rpm: u32, usage: Option<&mut Usage>, now: Millis) -> [u32; 3] {
    let Some(usage) = usage else {
        return [rpm, rpm, 0];
    };
    let recent = usage.posts.sum(now);
    let remaining = u64::from(rpm).saturating_sub(recent);
    let reset = usage.posts.wait(recent.saturating_sub(1), now);
    let remaining = u32::try_from(remaining).unwrap_or(rpm);
    [rpm, remaining, whole_seconds(reset)]
}

impl Permit {
    /// Counts `estimate` tokens as taken until [`Permit::settle_tokens`], or the permit's end, says how many it were. To be
    /// called once, before the provider is.
    ///
    /// # Errors
    /// 429 where the tokens of the last minute and the estimates of other requests in flight have reached a limit. The
    /// estimate itself may go beyond it: else nobody with a small limit could ask for a long answer.
    pub fn reserve_tokens(&self, estimate: u64) -> Result<(), ApiError> {
        let now = self.shared.clock.now();
        let mut table = self.shared.table();
        for (scope, tpm) in self.counted() {
            table.usage(scope, now).may_take_tokens(scope, tpm, now)?;
        }
        for (scope, _) in self.counted() {
            let usage = table.usage(scope, now);
            usage.reserved = usage.reserved.saturating_add(estimate);
        }
        self.reserved.fetch_add(estimate, Ordering::Relaxed);
        Ok(())
    }

    /// Counts `actual` tokens, taken now, instead of the estimate. To be called once.
    pub fn settle_tokens(&self, actual: u64) {
        let now = self.shared.clock.now();
        let mut table = self.shared.table();
        self.give_back(&mut table, now);
        for (scope, _) in self.counted() {
            table.usage(scope, now).tokens.add(actual, now);
        }
    }

    /// Those of the limits that count tokens.
    fn counted(&self) -> impl Iterator<Item = (Scope<'_>, u32)> {
        let limited = limited(&self.key, self.gateway);
        limited.filter_map(|(scope, rates)| Some((scope, rates.tpm?)))
    }

    fn give_back(&self, table: &mut Table, now: Millis) {
        let reserved = self.reserved.swap(0, Ordering::Relaxed);
        for (scope, _) in self.counted() {
            let usage = table.usage(scope, now);
            usage.reserved = usage.reserved.saturating_sub(reserved);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        let mut table = self.shared.table();
        self.give_back(&mut table, now);
        for (scope, _) in limited(&self.key, self.gateway) {
            let usage = table.usage(scope, now);
            usage.in_flight = usage.in_flight.saturating_sub(1);
            if usage.is_idle(now) {
                table.forget(scope);
            }
        }
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn usage(&mut self, scope: Scope<'_>, now: Millis) -> &mut Usage {
        match scope {
            Scope::Key(id) => self.keys.usage(id, now),
            Scope::User(id) => self.users.usage(id, now),
            Scope::Gateway => &mut self.gateway,
        }
    }

    /// The same where there is any.
    fn there(&mut self, scope: Scope<'_>) -> Option<&mut Usage> {
        match scope {
            Scope::Key(id) => self.keys.by_id.get_mut(id),
            Scope::User(id) => self.users.by_id.get_mut(id),
            Scope::Gateway => Some(&mut self.gateway),
        }
    }

    fn forget(&mut self, scope: Scope<'_>) {
        match scope {
            Scope::Key(id) => drop(self.keys.by_id.remove(id)),
            Scope::User(id) => drop(self.users.by_id.remove(id)),
            Scope::Gateway => self.gateway = Usage::default(),
        }
    }
}

impl Usages {
    fn usage(&mut self, id: &str, now: Millis) -> &mut Usage {
        if !self.by_id.contains_key(id) {
            if self.by_id.len() >= SWEEP.max(2 * self.swept) {
                self.by_id.retain(|_, usage| !usage.is_idle(now));
                self.swept = self.by_id.len();
            }
            self.by_id.insert(id.to_owned(), Usage::default());
        }
        self.by_id
            .get_mut(id)
            .expect("it is there, or was put there")
    }
}

impl Usage {
    fn may_begin(
        &mut self,
        scope: Scope<'_>,
        rates: &RateLimits,
        is_post: bool,
        now: Millis,
    ) -> Result<(), ApiError> {
        if let Some(max) = rates.max_concurrency.filter(|max| self.in_flight >= *max) {
            let what = format!("have {max} requests in flight: wait for one to end");
            return Err(refused(scope, &what, SECOND));
        }
        if let Some(rpm) = rates.rpm.filter(|_| is_post) {
            let allowed = u64::from(rpm).saturating_sub(1);
            if self.posts.sum(now) > allowed {
                let what = format!("make {rpm} POST requests a minute");
                return Err(refused(scope, &what, self.posts.wait(allowed, now)));
            }
        }
        Ok(())
    }

    fn may_take_tokens(&mut self, scope: Scope<'_>, tpm: u32, now: Millis) -> Result<(), ApiError> {
        let tpm = u64::from(tpm);
        if self.tokens.sum(now).saturating_add(self.reserved) < tpm {
            return Ok(());
        }
        // Where the estimates alone are too many, it takes the end of a request, which may come at any moment.
        let wait = match tpm.checked_sub(self.reserved.saturating_add(1)) {
            Some(allowed) => self.tokens.wait(allowed, now),
            None => SECOND,
        };
        Err(refused(scope, &format!("use {tpm} tokens a minute"), wait))
    }

    fn is_idle(&mut self, now: Millis) -> bool {
        self.in_flight == 0
            && self.reserved == 0
            && self.posts.sum(now) == 0
            && self.tokens.sum(now) == 0
    }
}

fn refused(scope: Scope<'_>, what: &str, wait: Millis) -> ApiError {
    let who = match scope {
        Scope::Key(_) => "this API key",
        Scope::User(_) => "this account, with all its API keys,",
        Scope::Gateway => "this gateway's users together",
    };
    ApiError {
        retry_after: Some(whole_seconds(wait).max(1)),
        ..ApiError::new(ErrorKind::RateLimit, format!("{who} may {what}"))
    }
}

/// Seconds, rounded up.
fn whole_seconds(wait: Millis) -> u32 {
    u32::try_from((wait + SECOND - 1) / SECOND).unwrap_or(0)
}
