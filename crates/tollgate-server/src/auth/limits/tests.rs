//! Tests of the rate limits: each alone, all together, and the entries that they leave in memory.

use super::*;
use tollgate_core::clock::ManualClock;
use tollgate_core::{Amount, clock};
use tollgate_store::KeyLimits;

const UNLIMITED: RateLimits = RateLimits {
    rpm: None,
    tpm: None,
    max_concurrency: None,
};

fn rpm(rpm: u32) -> RateLimits {
    RateLimits {
        rpm: Some(rpm),
        ..UNLIMITED
    }
}

fn tpm(tpm: u32) -> RateLimits {
    RateLimits {
        tpm: Some(tpm),
        ..UNLIMITED
    }
}

fn in_flight(max: u32) -> RateLimits {
    RateLimits {
        max_concurrency: Some(max),
        ..UNLIMITED
    }
}

fn key(id: &str, user: &str, rates: RateLimits, user_rates: RateLimits) -> Arc<Key> {
    Arc::new(Key {
        id: id.to_owned(),
        label: String::new(),
        user_id: user.to_owned(),
        user: user.to_owned(),
        quota: None,
        held: Amount::ZERO,
        used: Amount::ZERO,
        limits: KeyLimits {
            rates,
            ..KeyLimits::default()
        },
        revoked_at: None,
        user_unlimited: false,
        user_rates,
        user_disabled_at: None,
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

fn remaining(limit: u32, remaining: u32, reset_s: u32) -> Option<RemainingRequests> {
    Some(RemainingRequests {
        limit,
        remaining,
        reset_s,
    })
}

#[test]
fn requests_per_minute_are_counted_in_a_sliding_window() {
    let (limiter, _) = limiter(UNLIMITED);
    let key = key("k", "u", rpm(3), UNLIMITED);
    for at in [0, 10_000, 20_000] {
        drop(limiter.admit(&key, true, at).unwrap());
    }
    let expected = (
        "this API key may make 3 POST requests a minute".to_owned(),
        30,
    );
    assert_eq!(
        rate_limit_error(limiter.admit(&key, true, 30_000)),
        expected
    );
    assert_eq!(
        limiter.remaining_requests(&key, 30_000),
        remaining(3, 0, 30)
    );
    assert!(
        limiter.admit(&key, false, 30_000).is_ok(),
        "only POSTs count"
    );
    assert!(limiter.admit(&key, true, 59_999).is_err());
    assert!(
        limiter.admit(&key, true, 60_000).is_ok(),
        "the first request has left the window"
    );
    assert!(limiter.admit(&key, true, 60_001).is_err());
}

#[test]
fn requests_in_flight_are_counted_until_they_end() {
    let (limiter, _) = limiter(UNLIMITED);
    let key = key("k", "u", in_flight(2), UNLIMITED);
    let first = limiter.admit(&key, false, 0).unwrap();
    let _second = limiter.admit(&key, true, 0).unwrap();
    let expected = "this API key may have 2 requests in flight: wait for one to end";
    assert_eq!(
        rate_limit_error(limiter.admit(&key, true, 0)),
        (expected.to_owned(), 1)
    );
    let full = remaining(2, 0, 1);
    assert_eq!(
        limiter.remaining_requests(&key, 0),
        full,
        "a limit that is reached"
    );
    drop(first);
    assert_eq!(
        limiter.remaining_requests(&key, 0),
        None,
        "requests a minute are free"
    );
    assert!(limiter.admit(&key, true, 0).is_ok());
}

#[test]
fn the_error_names_the_limit_and_a_rejected_request_counts_nowhere() {
    let (limiter, _) = limiter(rpm(4));
    let small = key("small", "ann", rpm(2), rpm(3));
    let large = key("large", "ann", UNLIMITED, rpm(3));
    let other = key("other", "bob", UNLIMITED, UNLIMITED);
    let post = |key| limiter.admit(key, true, 0);
    assert_eq!(limiter.remaining_requests(&small, 0), remaining(2, 2, 0));
    drop((post(&small).unwrap(), post(&small).unwrap()));
    assert!(
        rate_limit_error(post(&small))
            .0
            .starts_with("this API key may ")
    );
    assert_eq!(
        limiter.remaining_requests(&large, 0),
        remaining(3, 1, 60),
        "it used two of three"
    );
    drop(post(&large).unwrap());
    assert!(
        rate_limit_error(post(&large))
            .0
            .starts_with("this account, with all its API keys, may ")
    );
    assert_eq!(
        limiter.remaining_requests(&other, 0),
        remaining(4, 1, 60),
        "rejected requests did not count"
    );
    drop(post(&other).unwrap());
    assert!(
        rate_limit_error(post(&other))
            .0
            .starts_with("this gateway's users together may ")
    );
    assert_eq!(
        limiter.remaining_requests(&small, 0),
        remaining(2, 0, 60),
        "the tightest"
    );
}

#[test]
fn tokens_count_by_estimate_until_the_actual_number_is_known() {
    let (limiter, clock) = limiter(UNLIMITED);
    let key = key("k", "u", tpm(100), UNLIMITED);
    let begin = || limiter.admit(&key, true, clock.now()).unwrap().unwrap();
    let first = begin();
    first.reserve_tokens(90).unwrap();
    let second = begin();
    second.reserve_tokens(5_000).unwrap();
    let expected = ("this API key may use 100 tokens a minute".to_owned(), 1);
    assert_eq!(rate_limit_error(begin().reserve_tokens(1)), expected);
    // The second used next to nothing; a rejected or failed request uses nothing.
    second.settle_tokens(4);
    let third = begin();
    third.reserve_tokens(50).unwrap();
    assert!(begin().reserve_tokens(1).is_err());
    drop(third);
    clock.advance(10_000);
    first.settle_tokens(95);
    assert!(begin().reserve_tokens(1).is_ok(), "99 are below 100");
    begin().settle_tokens(1);
    // 4 leave the window after 50 seconds: then one more request may begin.
    assert_eq!(rate_limit_error(begin().reserve_tokens(1)).1, 50);
    clock.advance(49_999);
    assert!(begin().reserve_tokens(1).is_err());
    clock.advance(1);
    begin().reserve_tokens(1).unwrap();
    clock.advance(60_000);
    drop((first, second));
    assert!(limiter.shared.lock().keys.by_id.is_empty());
}

#[test]
fn tokens_of_all_keys_and_users_add_up() {
    let (limiter, clock) = limiter(tpm(1_000));
    let one = key("one", "ann", UNLIMITED, tpm(100));
    let two = key("two", "ann", UNLIMITED, tpm(100));
    let other = key("other", "bob", UNLIMITED, UNLIMITED);
    let begin = |key| limiter.admit(key, true, clock.now()).unwrap().unwrap();
    let first = begin(&one);
    first.reserve_tokens(100).unwrap();
    let message = rate_limit_error(begin(&two).reserve_tokens(1)).0;
    assert_eq!(
        message,
        "this account, with all its API keys, may use 100 tokens a minute"
    );
    let second = begin(&other);
    second.reserve_tokens(899).unwrap();
    begin(&other).reserve_tokens(1).unwrap();
    let third = begin(&other);
    third.reserve_tokens(1).unwrap();
    let message = rate_limit_error(begin(&other).reserve_tokens(1)).0;
    assert_eq!(
        message,
        "this gateway's users together may use 1000 tokens a minute"
    );
}

#[test]
fn a_huge_number_of_tokens_does_not_overflow() {
    let (limiter, clock) = limiter(UNLIMITED);
    let key = key("k", "u", tpm(u32::MAX), UNLIMITED);
    let begin = || limiter.admit(&key, true, clock.now()).unwrap().unwrap();
    let first = begin();
    first.reserve_tokens(u64::MAX).unwrap();
    assert!(begin().reserve_tokens(u64::MAX).is_err());
    first.settle_tokens(u64::MAX);
    first.settle_tokens(u64::MAX);
    assert_eq!(rate_limit_error(begin().reserve_tokens(1)).1, 60);
    clock.advance(clock::SECOND * 60);
    begin().reserve_tokens(1).unwrap();
}

#[test]
fn idle_entries_are_removed() {
    let (limiter, clock) = limiter(UNLIMITED);
    let count = || {
        let table = limiter.shared.lock();
        table.keys.by_id.len() + table.users.by_id.len()
    };
    drop(
        limiter
            .admit(&key("k", "u", in_flight(1), UNLIMITED), true, 0)
            .unwrap(),
    );
    assert_eq!(count(), 0);
    assert!(
        limiter
            .admit(&key("k", "u", UNLIMITED, UNLIMITED), true, 0)
            .unwrap()
            .is_none()
    );
    assert_eq!(count(), 0);
    // Entries of keys that are not used again are removed when others are added.
    let mut max = 0;
    for i in 0..20_000 {
        clock.advance(100);
        let key = key(&i.to_string(), "u", rpm(5), UNLIMITED);
        drop(limiter.admit(&key, true, clock.now()).unwrap());
        max = max.max(count());
    }
    assert!(max <= 2 * SWEEP_THRESHOLD, "{max}");
}
