//! Counts requests and tokens of keys, users and the gateway on this node, and admits a request or rejects it with the limit that it reached.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use tollgate_core::clock::SECOND;
use tollgate_core::{ApiError, Clock, ErrorKind, Millis};
use tollgate_store::{Key, RateLimits};

use super::redis_counts::RedisCounting;
use super::sliding_window::SlidingWindow;
use crate::cluster::live_nodes::LiveNodes;
use crate::fair_permits::{FairPermit, FairPermits, Reserve};
use crate::redis::{CountedPosts, SharedPermit};

/// A table with fewer entries is not searched for idle ones to remove.
pub(super) const SWEEP_THRESHOLD: usize = 1_024;
/// How long the counts of all nodes are shown after they were read.
const SHOWN_FOR: Millis = SECOND;

/// Counts the recent use of every key and user with a limit; clones share the counts. Keys without limits have no entry; an
/// entry without requests in flight and without any in the last minute is removed.
#[derive(Clone)]
pub struct RateLimiter {
    pub(super) shared: Arc<Shared>,
    /// Limits of all users together.
    pub(super) gateway: RateLimits,
    /// The permits of the gateway's limit of requests in flight, divided fairly among users. `None` if there is no such limit.
    permits: Option<FairPermits>,
    /// The nodes among which limits are divided without Redis. `None` if each node may admit the full limit.
    divided: Option<Arc<LiveNodes>>,
    /// The counts in Redis. `None` if this node counts by itself.
    pub(super) redis: Option<RedisCounting>,
}

pub(super) struct Shared {
    table: Mutex<Table>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
pub(super) struct Table {
    pub(super) keys: UsageTable,
    pub(super) users: UsageTable,
    gateway: Usage,
}

/// The recent use, by the id of a key or user.
#[derive(Default)]
pub(super) struct UsageTable {
    pub(super) by_id: HashMap<String, Usage, RandomState>,
    /// Entries left after the last sweep.
    len_after_sweep: usize,
}

/// The owner of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope<'a> {
    Key(&'a str),
    User(&'a str),
    Gateway,
}

#[derive(Default)]
pub(super) struct Usage {
    posts: SlidingWindow,
    tokens: SlidingWindow,
    /// Estimated tokens of the requests in flight whose actual tokens are unknown.
    reserved_tokens: u64,
    in_flight: u32,
    /// The counts of all nodes, and when they were read; `None` without Redis.
    pub(super) all_nodes: Option<(CountedPosts, Millis)>,
    /// POSTs that were admitted while Redis was unreachable; the next call reports them.
    pub(super) uncounted: SlidingWindow,
}

/// An admitted request. It counts as in flight until dropped, so it must live until the response has been sent.
pub struct RequestPermit {
    shared: Arc<Shared>,
    key: Arc<Key>,
    gateway: RateLimits,
    reserved_tokens: AtomicU64,
    /// The request's permit from the gateway's limit of requests in flight.
    _permit: Option<FairPermit>,
    divided: Option<Arc<LiveNodes>>,
    pub(super) redis: Option<(RedisCounting, SharedPermit)>,
}

impl RateLimiter {
    /// A limiter with all counts at zero. `gateway` limits all users together.
    pub fn new(gateway: RateLimits, clock: Arc<dyn Clock>) -> Self {
        let table = Mutex::default();
        Self {
            shared: Arc::new(Shared { table, clock }),
            gateway,
            permits: None,
            divided: None,
            redis: None,
        }
    }

    /// Divides the limits by the number of `live_nodes` if there is no Redis.
    pub fn divided_among(mut self, live_nodes: Arc<LiveNodes>) -> Self {
        self.divided = Some(live_nodes);
        self
    }

    /// The number of nodes that limits are divided by without Redis.
    fn nodes_without_redis(&self) -> u32 {
        self.divided.as_ref().map_or(1, |nodes| nodes.count())
    }

    /// Of the `max` requests in flight that the gateway allows, keeps `reserve(max)` for users who have none, while more than one user sends
    /// requests: one user cannot take all of them from the others.
    pub fn with_reserve(mut self, reserve: impl FnOnce(usize) -> usize) -> Self {
        self.permits = self.gateway.max_concurrency.map(|max| {
            let max = max as usize;
            FairPermits::new(max, Reserve::WhenShared(reserve(max)))
        });
        self
    }

    /// Admits a request of `key`. `None` if no limit applies to the key.
    ///
    /// # Errors
    /// 429 that names the limit and says how long to wait. A request that one limit rejects counts against none. 503 if Redis is
    /// lost and `limits.on_redis_loss` is `closed`.
    pub async fn admit(
        &self,
        key: &Arc<Key>,
        is_post: bool,
        now: Millis,
    ) -> Result<Option<RequestPermit>, ApiError> {
        if limited_scopes(key, self.gateway).next().is_none() {
            return Ok(None);
        }
        match &self.redis {
            None => self.admit_here(key, is_post, now, self.nodes_without_redis()),
            Some(redis) => self.admit_with_redis(redis, key, is_post, now).await,
        }
        .map(Some)
    }

    /// Admits a request if this node's counts are below the limits divided by `nodes`.
    fn admit_here(
        &self,
        key: &Arc<Key>,
        is_post: bool,
        now: Millis,
        nodes: u32,
    ) -> Result<RequestPermit, ApiError> {
        let permit = self.try_acquire_permit(key);
        let mut table = self.shared.lock();
        self.check(&mut table, key, is_post, now, nodes, permit.as_ref())?;
        Ok(self.count(table, key, is_post, now, permit))
    }

    /// A permit from the gateway's limit of requests in flight. `None` if there is no such limit, or none is free for the user. Called before every
    /// check, because it also records which users send requests, whether or not these are admitted.
    pub(super) fn try_acquire_permit(&self, key: &Key) -> Option<FairPermit> {
        self.permits.as_ref()?.try_acquire(&key.user_id)
    }

    pub(super) fn check(
        &self,
        table: &mut Table,
        key: &Key,
        is_post: bool,
        now: Millis,
        nodes: u32,
        permit: Option<&FairPermit>,
    ) -> Result<(), ApiError> {
        for (scope, rates) in limited_scopes(key, self.gateway) {
            let usage = table.usage(scope, now);
            usage.check_requests(scope, &rates, is_post, now, nodes)?;
        }
        if self.permits.is_some() && permit.is_none() {
            let max = self.gateway.max_concurrency.unwrap_or(0);
            let what = format!("have its share of {max} requests in flight: wait for one to end");
            return Err(rejected(Scope::User(&key.user_id), &what, SECOND));
        }
        Ok(())
    }

    pub(super) fn count(
        &self,
        mut table: MutexGuard<'_, Table>,
        key: &Arc<Key>,
        is_post: bool,
        now: Millis,
        permit: Option<FairPermit>,
    ) -> RequestPermit {
        for (scope, rates) in limited_scopes(key, self.gateway) {
            let usage = table.usage(scope, now);
            usage.in_flight += 1;
            if is_post && rates.rpm.is_some() {
                usage.posts.add(1, now);
            }
        }
        drop(table);
        RequestPermit {
            shared: Arc::clone(&self.shared),
            key: Arc::clone(key),
            gateway: self.gateway,
            reserved_tokens: AtomicU64::new(0),
            _permit: permit,
            divided: self.divided.clone(),
            redis: None,
        }
    }

    /// The limit of requests with the fewest requests left, for the `x-ratelimit-*` headers. A limit of requests in flight
    /// counts only once it is reached. `None` if no limit of requests applies to the key.
    pub fn remaining_requests(&self, key: &Key, now: Millis) -> Option<RemainingRequests> {
        let mut scopes = limited_scopes(key, self.gateway).peekable();
        scopes.peek()?;
        let nodes = self.nodes_without_redis();
        let mut table = self.shared.lock();
        let mut fewest: Option<RemainingRequests> = None;
        for (scope, rates) in scopes {
            let usage = table.existing_usage(scope);
            let in_flight = usage.as_ref().map_or(0, |usage| usage.in_flight);
            let is_reached = |max: &u32| in_flight >= share_of(*max, nodes);
            let concurrency = rates.max_concurrency.filter(is_reached);
            let concurrency = concurrency.map(|max| RemainingRequests {
                limit: max,
                remaining: 0,
                reset_s: 1,
            });
            let per_minute = rates
                .rpm
                .map(|rpm| remaining_in_minute(rpm, nodes, usage, now));
            let all = fewest.into_iter().chain(per_minute).chain(concurrency);
            fewest = all.min_by_key(|left| left.remaining);
        }
        fewest
    }
}

/// The requests that a limit still allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemainingRequests {
    /// The limit.
    pub limit: u32,
    /// Requests that may still be made now.
    pub remaining: u32,
    /// Seconds until one more request is allowed.
    pub reset_s: u32,
}

/// The scopes whose limits apply to `key`.
pub(super) fn limited_scopes(
    key: &Key,
    gateway: RateLimits,
) -> impl Iterator<Item = (Scope<'_>, RateLimits)> {
    let all = [
        (Scope::Key(&key.id), key.limits.rates),
        (Scope::User(&key.user_id), key.user_rates),
        (Scope::Gateway, gateway),
    ];
    let none = RateLimits::default();
    all.into_iter().filter(move |(_, rates)| *rates != none)
}

/// The requests that a limit of `rpm` requests per minute, divided by `nodes`, still allows; `usage` is `None` if nothing was counted.
fn remaining_in_minute(
    rpm: u32,
    nodes: u32,
    usage: Option<&mut Usage>,
    now: Millis,
) -> RemainingRequests {
    let share = share_of(rpm, nodes);
    let Some(usage) = usage else {
        return RemainingRequests {
            limit: rpm,
            remaining: share,
            reset_s: 0,
        };
    };
    let mut recent = usage.posts.sum(now);
    let mut reset = usage
        .posts
        .time_until_at_most(recent.saturating_sub(1), now);
    if let Some((all_nodes, at)) = usage.all_nodes
        && now - at < SHOWN_FOR
        && all_nodes.recent > recent
    {
        (recent, reset) = (all_nodes.recent, all_nodes.reset);
    }
    let remaining = u64::from(share).saturating_sub(recent);
    RemainingRequests {
        limit: rpm,
        remaining: u32::try_from(remaining).unwrap_or(rpm),
        reset_s: seconds_rounded_up(reset),
    }
}

impl RequestPermit {
    /// Counts `estimate` tokens as used until [`RequestPermit::settle_tokens`] gives the actual number, or the permit is
    /// dropped. Called once, before the provider is called.
    ///
    /// # Errors
    /// 429 if the tokens of the last minute and the estimates of other requests in flight have reached a limit. The estimate
    /// itself may exceed it: otherwise a key with a small limit could never request a long response. 503 if Redis is lost and
    /// `limits.on_redis_loss` is `closed`.
    pub async fn reserve_tokens(&self, estimate: u64) -> Result<(), ApiError> {
        let mut nodes = self.divided.as_ref().map_or(1, |nodes| nodes.count());
        if let Some((counting, permit)) = &self.redis
            && self.token_scopes().next().is_some()
        {
            self.check_tokens(&mut self.shared.lock(), nodes)?;
            match permit.reserve(estimate).await {
                Ok(None) => {}
                Ok(Some(rejection)) => {
                    let scope = limited_scopes(&self.key, self.gateway).nth(rejection.scope);
                    let (scope, rates) = scope.ok_or_else(ApiError::internal)?;
                    return Err(rejection.into_error(scope, &rates));
                }
                Err(_) => nodes = counting.nodes_to_divide_by()?,
            }
        }
        let now = self.shared.clock.now();
        let mut table = self.shared.lock();
        self.check_tokens(&mut table, nodes)?;
        for (scope, _) in self.token_scopes() {
            let usage = table.usage(scope, now);
            usage.reserved_tokens = usage.reserved_tokens.saturating_add(estimate);
        }
        self.reserved_tokens.fetch_add(estimate, Ordering::Relaxed);
        Ok(())
    }

    fn check_tokens(&self, table: &mut Table, nodes: u32) -> Result<(), ApiError> {
        let now = self.shared.clock.now();
        for (scope, tpm) in self.token_scopes() {
            let usage = table.usage(scope, now);
            usage.check_tokens(scope, tpm, now, nodes)?;
        }
        Ok(())
    }

    /// Counts `actual` tokens, used now, instead of the estimate. Called once.
    pub fn settle_tokens(&self, actual: u64) {
        let now = self.shared.clock.now();
        let mut table = self.shared.lock();
        self.release_reserved(&mut table, now);
        for (scope, _) in self.token_scopes() {
            table.usage(scope, now).tokens.add(actual, now);
        }
        if let Some((_, permit)) = &self.redis {
            permit.settle(actual);
        }
    }

    /// The scopes with a limit of tokens per minute, and that limit.
    fn token_scopes(&self) -> impl Iterator<Item = (Scope<'_>, u32)> {
        let scopes = limited_scopes(&self.key, self.gateway);
        scopes.filter_map(|(scope, rates)| Some((scope, rates.tpm?)))
    }

    fn release_reserved(&self, table: &mut Table, now: Millis) {
        let reserved = self.reserved_tokens.swap(0, Ordering::Relaxed);
        for (scope, _) in self.token_scopes() {
            let usage = table.usage(scope, now);
            usage.reserved_tokens = usage.reserved_tokens.saturating_sub(reserved);
        }
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        let mut table = self.shared.lock();
        self.release_reserved(&mut table, now);
        for (scope, _) in limited_scopes(&self.key, self.gateway) {
            let usage = table.usage(scope, now);
            usage.in_flight = usage.in_flight.saturating_sub(1);
            if usage.is_idle(now) {
                table.remove(scope);
            }
        }
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    pub(super) fn usage(&mut self, scope: Scope<'_>, now: Millis) -> &mut Usage {
        match scope {
            Scope::Key(id) => self.keys.usage(id, now),
            Scope::User(id) => self.users.usage(id, now),
            Scope::Gateway => &mut self.gateway,
        }
    }

    /// The usage of `scope`. `None` if it has no entry.
    fn existing_usage(&mut self, scope: Scope<'_>) -> Option<&mut Usage> {
        match scope {
            Scope::Key(id) => self.keys.by_id.get_mut(id),
            Scope::User(id) => self.users.by_id.get_mut(id),
            Scope::Gateway => Some(&mut self.gateway),
        }
    }

    fn remove(&mut self, scope: Scope<'_>) {
        match scope {
            Scope::Key(id) => drop(self.keys.by_id.remove(id)),
            Scope::User(id) => drop(self.users.by_id.remove(id)),
            Scope::Gateway => self.gateway = Usage::default(),
        }
    }
}

impl UsageTable {
    pub(super) fn usage(&mut self, id: &str, now: Millis) -> &mut Usage {
        if !self.by_id.contains_key(id) {
            if self.by_id.len() >= SWEEP_THRESHOLD.max(2 * self.len_after_sweep) {
                self.by_id.retain(|_, usage| !usage.is_idle(now));
                self.len_after_sweep = self.by_id.len();
            }
            self.by_id.insert(id.to_owned(), Usage::default());
        }
        self.by_id
            .get_mut(id)
            .expect("inserted above if it was missing")
    }
}

impl Usage {
    fn check_requests(
        &mut self,
        scope: Scope<'_>,
        rates: &RateLimits,
        is_post: bool,
        now: Millis,
        nodes: u32,
    ) -> Result<(), ApiError> {
        let is_reached = |max: &u32| self.in_flight >= share_of(*max, nodes);
        if let Some(max) = rates.max_concurrency.filter(is_reached) {
            let what = too_many_in_flight(max);
            return Err(rejected(scope, &what, SECOND));
        }
        if let Some(rpm) = rates.rpm.filter(|_| is_post) {
            let allowed = u64::from(share_of(rpm, nodes)).saturating_sub(1);
            if self.posts.sum(now) > allowed {
                let what = too_many_posts(rpm);
                return Err(rejected(
                    scope,
                    &what,
                    self.posts.time_until_at_most(allowed, now),
                ));
            }
        }
        Ok(())
    }

    fn check_tokens(
        &mut self,
        scope: Scope<'_>,
        limit: u32,
        now: Millis,
        nodes: u32,
    ) -> Result<(), ApiError> {
        let tpm = u64::from(share_of(limit, nodes));
        if self.tokens.sum(now).saturating_add(self.reserved_tokens) < tpm {
            return Ok(());
        }
        // If the estimates of requests in flight alone reach the limit, one of these requests must end first, which may happen at any time.
        let wait = match tpm.checked_sub(self.reserved_tokens.saturating_add(1)) {
            Some(allowed) => self.tokens.time_until_at_most(allowed, now),
            None => SECOND,
        };
        Err(rejected(scope, &too_many_tokens(limit), wait))
    }

    fn is_idle(&mut self, now: Millis) -> bool {
        self.in_flight == 0
            && self.reserved_tokens == 0
            && self.posts.sum(now) == 0
            && self.tokens.sum(now) == 0
    }
}

/// The part of a limit that each of `nodes` nodes may use: at least 1.
fn share_of(limit: u32, nodes: u32) -> u32 {
    (limit / nodes.max(1)).max(1)
}

pub(super) fn too_many_in_flight(max: u32) -> String {
    format!("have {max} requests in flight: wait for one to end")
}

pub(super) fn too_many_posts(rpm: u32) -> String {
    format!("make {rpm} POST requests a minute")
}

pub(super) fn too_many_tokens(tpm: u32) -> String {
    format!("use {tpm} tokens a minute")
}

pub(super) fn rejected(scope: Scope<'_>, what: &str, wait: Millis) -> ApiError {
    let who = match scope {
        Scope::Key(_) => "this API key",
        Scope::User(_) => "this account, with all its API keys,",
        Scope::Gateway => "this gateway's users together",
    };
    ApiError {
        retry_after: Some(seconds_rounded_up(wait).max(1)),
        ..ApiError::new(ErrorKind::RateLimit, format!("{who} may {what}"))
    }
}

fn seconds_rounded_up(wait: Millis) -> u32 {
    u32::try_from((wait + SECOND - 1) / SECOND).unwrap_or(0)
}
