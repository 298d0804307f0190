//! Tests of the rate limits: each alone, all together, and the entries that they leave in memory.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tollgate_core::clock::ManualClock;
use tollgate_core::{Amount, ApiError, Clock as _, ErrorKind, Millis, clock};
use tollgate_store::{Key, KeyLimits, NodeRecord, RateLimits};

use super::rate_limiter::SWEEP_THRESHOLD;
use super::*;
use crate::cluster::live_nodes::LiveNodes;

const NONE: RateLimits = RateLimits {
    rpm: None,
    tpm: None,
    max_concurrency: None,
};

/// Limits of requests per minute, tokens per minute and requests in flight; zero means no limit.
fn rates(rpm: u32, tpm: u32, max_concurrency: u32) -> RateLimits {
    let limit = |number: u32| (number > 0).then_some(number);
    RateLimits {
        rpm: limit(rpm),
        tpm: limit(tpm),
        max_concurrency: limit(max_concurrency),
    }
}

fn key(id: &str, user: &str, rates: RateLimits, user_rates: RateLimits) -> Arc<Key> {
    let limits = KeyLimits {
        rates,
        ..KeyLimits::default()
    };
    Arc::new(Key {
        id: id.to_owned(),
        label: String::new(),
        user_id: user.to_owned(),
        user: user.to_owned(),
        quota: None,
        held: Amount::ZERO,
        used: Amount::ZERO,
        limits,
        revoked_at: None,
        user_unlimited: false,
        user_rates,
        user_disabled_at: None,
        hash: String::new(),
        hint: String::new(),
        previous_valid_until: None,
        created_at: 0,
        version: 1,
        has_budget: false,
    })
}

fn limiter(gateway: RateLimits) -> (RateLimiter, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(0));
    (RateLimiter::new(gateway, clock.clone()), clock)
}

fn rate_limit_error(result: Result<impl Sized, ApiError>) -> (String, u32) {
    let error = result.err().expect("an error");
    assert_eq!(error.kind, ErrorKind::RateLimit);
    (error.message, error.retry_after.expect("a wait"))
}

/// Admits a request; without Redis, nothing waits.
fn admit(
    limiter: &RateLimiter,
    key: &Arc<Key>,
    is_post: bool,
    at: Millis,
) -> Result<Option<RequestPermit>, ApiError> {
    let admitted = limiter.admit(key, is_post, at).now_or_never();
    admitted.expect("nothing to wait for")
}

/// Counts estimated tokens; without Redis, nothing waits.
fn reserve(permit: &RequestPermit, tokens: u64) -> Result<(), ApiError> {
    let reserved = permit.reserve_tokens(tokens).now_or_never();
    reserved.expect("nothing to wait for")
}

fn remaining(limit: u32, remaining: u32, reset_s: u32) -> Option<RemainingRequests> {
    Some(RemainingRequests {
        limit,
        remaining,
        reset_s,
    })
}

#[test]
fn requests_per_minute_are_counted_in_a_sliding_window() {
    let (limiter, _) = limiter(NONE);
    let key = key("k", "u", rates(3, 0, 0), NONE);
    for at in [0, 10_000, 20_000] {
        drop(admit(&limiter, &key, true, at).unwrap());
    }
    let expected = (
        "this API key may make 3 POST requests a minute".to_owned(),
        30,
    );
    let fourth = admit(&limiter, &key, true, 30_000);
    assert_eq!(rate_limit_error(fourth), expected);
    let left = limiter.remaining_requests(&key, 30_000);
    assert_eq!(left, remaining(3, 0, 30));
    // Only POSTs count, and at 60,000 the first one has left the window.
    for (is_post, at, is_admitted) in [
        (false, 30_000, true),
        (true, 59_999, false),
        (true, 60_000, true),
        (true, 60_001, false),
    ] {
        let admitted = admit(&limiter, &key, is_post, at).is_ok();
        assert_eq!(admitted, is_admitted, "{at}");
    }
}

#[test]
fn requests_in_flight_are_counted_until_they_end() {
    let (limiter, _) = limiter(NONE);
    let key = key("k", "u", rates(0, 0, 2), NONE);
    let first = admit(&limiter, &key, false, 0).unwrap();
    let _second = admit(&limiter, &key, true, 0).unwrap();
    let expected = "this API key may have 2 requests in flight: wait for one to end";
    let third = admit(&limiter, &key, true, 0);
    assert_eq!(rate_limit_error(third), (expected.to_owned(), 1));
    let left = || limiter.remaining_requests(&key, 0);
    assert_eq!(left(), remaining(2, 0, 1), "a limit that is reached");
    drop(first);
    assert_eq!(left(), None, "requests a minute are free");
    assert!(admit(&limiter, &key, true, 0).is_ok());
}

#[test]
fn headers_count_a_nodes_part_of_a_limit_of_requests_in_flight() {
    let nodes = Arc::new(LiveNodes::new(false));
    let node = |id: &str| NodeRecord {
        id: id.to_owned(),
        ..NodeRecord::default()
    };
    nodes.set(&[node("a"), node("b")], "a");
    let (limiter, _) = limiter(NONE);
    let limiter = limiter.divided_among(nodes);
    let key = key("k", "u", rates(0, 0, 2), NONE);
    let _first = admit(&limiter, &key, true, 0).unwrap();
    assert!(admit(&limiter, &key, true, 0).is_err());
    assert_eq!(limiter.remaining_requests(&key, 0), remaining(2, 0, 1));
}

#[test]
fn one_user_leaves_requests_in_flight_to_others() {
    let (limiter, _) = limiter(rates(0, 0, 4));
    let limiter = limiter.with_reserve(|max| max / 4);
    let (ann, bob) = (key("a", "ann", NONE, NONE), key("b", "bob", NONE, NONE));
    let admit = |key| admit(&limiter, key, true, 0);
    let mut of_ann: Vec<_> = (0..4).map(|_| admit(&ann).unwrap()).collect();
    let (message, _) = rate_limit_error(admit(&bob));
    assert!(message.contains("requests in flight"), "{message}");
    // Bob has requested a permit, so Ann may not take all that become free.
    of_ann.pop();
    let (message, _) = rate_limit_error(admit(&ann));
    let expected = "this account, with all its API keys, may have its share of 4 requests";
    assert!(message.starts_with(expected), "{message}");
    let _of_bob = admit(&bob).unwrap();
    of_ann.truncate(1);
    assert!(admit(&ann).is_ok());
}

#[test]
fn the_error_names_the_limit_and_a_rejected_request_counts_nowhere() {
    let (limiter, _) = limiter(rates(4, 0, 0));
    let small = key("small", "ann", rates(2, 0, 0), rates(3, 0, 0));
    let large = key("large", "ann", NONE, rates(3, 0, 0));
    let other = key("other", "bob", NONE, NONE);
    let post = |key| admit(&limiter, key, true, 0);
    assert_eq!(limiter.remaining_requests(&small, 0), remaining(2, 2, 0));
    drop((post(&small).unwrap(), post(&small).unwrap()));
    let check = |key, start: &str| {
        let (message, _) = rate_limit_error(post(key));
        assert!(message.starts_with(start), "{message}");
    };
    let left = |key| limiter.remaining_requests(key, 0);
    check(&small, "this API key may ");
    assert_eq!(left(&large), remaining(3, 1, 60), "it used two of three");
    drop(post(&large).unwrap());
    check(&large, "this account, with all its API keys, may ");
    // Rejected requests did not count.
    assert_eq!(left(&other), remaining(4, 1, 60));
    drop(post(&other).unwrap());
    check(&other, "this gateway's users together may ");
    assert_eq!(left(&small), remaining(2, 0, 60), "the tightest");
}

#[test]
fn tokens_count_by_estimate_until_the_actual_number_is_known() {
    let (limiter, clock) = limiter(NONE);
    let key = key("k", "u", rates(0, 100, 0), NONE);
    let begin = || admit(&limiter, &key, true, clock.now()).unwrap().unwrap();
    let first = begin();
    reserve(&first, 90).unwrap();
    let second = begin();
    reserve(&second, 5_000).unwrap();
    let expected = ("this API key may use 100 tokens a minute".to_owned(), 1);
    assert_eq!(rate_limit_error(reserve(&begin(), 1)), expected);
    // The second request used few tokens; a rejected or failed request uses none.
    second.settle_tokens(4);
    let third = begin();
    reserve(&third, 50).unwrap();
    assert!(reserve(&begin(), 1).is_err());
    drop(third);
    clock.advance(10_000);
    first.settle_tokens(95);
    assert!(reserve(&begin(), 1).is_ok(), "99 are below 100");
    begin().settle_tokens(1);
    // 4 leave the window after 50 seconds: then one more request may begin.
    assert_eq!(rate_limit_error(reserve(&begin(), 1)).1, 50);
    clock.advance(49_999);
    assert!(reserve(&begin(), 1).is_err());
    clock.advance(1);
    reserve(&begin(), 1).unwrap();
    clock.advance(60_000);
    drop((first, second));
    assert!(limiter.shared.lock().keys.by_id.is_empty());
}

#[test]
fn tokens_of_all_keys_and_users_add_up() {
    let (limiter, clock) = limiter(rates(0, 1_000, 0));
    let one = key("one", "ann", NONE, rates(0, 100, 0));
    let two = key("two", "ann", NONE, rates(0, 100, 0));
    let other = key("other", "bob", NONE, NONE);
    let begin = |key| admit(&limiter, key, true, clock.now()).unwrap().unwrap();
    let first = begin(&one);
    reserve(&first, 100).unwrap();
    let message = rate_limit_error(reserve(&begin(&two), 1)).0;
    assert_eq!(
        message,
        "this account, with all its API keys, may use 100 tokens a minute"
    );
    let second = begin(&other);
    reserve(&second, 899).unwrap();
    reserve(&begin(&other), 1).unwrap();
    let third = begin(&other);
    reserve(&third, 1).unwrap();
    let message = rate_limit_error(reserve(&begin(&other), 1)).0;
    assert_eq!(
        message,
        "this gateway's users together may use 1000 tokens a minute"
    );
}

#[test]
fn a_huge_number_of_tokens_does_not_overflow() {
    let (limiter, clock) = limiter(NONE);
    let key = key("k", "u", rates(0, u32::MAX, 0), NONE);
    let begin = || admit(&limiter, &key, true, clock.now()).unwrap().unwrap();
    let first = begin();
    reserve(&first, u64::MAX).unwrap();
    assert!(reserve(&begin(), u64::MAX).is_err());
    first.settle_tokens(u64::MAX);
    first.settle_tokens(u64::MAX);
    assert_eq!(rate_limit_error(reserve(&begin(), 1)).1, 60);
    clock.advance(clock::SECOND * 60);
    reserve(&begin(), 1).unwrap();
}

#[test]
fn idle_entries_are_removed() {
    let (limiter, clock) = limiter(NONE);
    let count = || {
        let table = limiter.shared.lock();
        table.keys.by_id.len() + table.users.by_id.len()
    };
    let limited = key("k", "u", rates(0, 0, 1), NONE);
    drop(admit(&limiter, &limited, true, 0).unwrap());
    assert_eq!(count(), 0);
    let unlimited = key("k", "u", NONE, NONE);
    let admitted = admit(&limiter, &unlimited, true, 0).unwrap();
    assert!(admitted.is_none() && count() == 0);
    // Entries of keys that are not used again are removed when others are added.
    let mut max = 0;
    for i in 0..20_000 {
        clock.advance(100);
        let key = key(&i.to_string(), "u", rates(5, 0, 0), NONE);
        drop(admit(&limiter, &key, true, clock.now()).unwrap());
        max = max.max(count());
    }
    assert!(max <= 2 * SWEEP_THRESHOLD, "{max}");
}
