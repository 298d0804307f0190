//! Limits one by one, together, and what is left of them in memory.

use super::*;
use tollgate_core::clock::ManualClock;
use tollgate_core::{Amount, clock};
use tollgate_store::KeyLimits;

const NONE: RateLimits = RateLimits {
    rpm: None,
    tpm: None,
    max_concurrency: None,
};

fn rpm(rpm: u32) -> RateLimits {
    RateLimits {
        rpm: Some(rpm),
        ..NONE
    }
}

fn tpm(tpm: u32) -> RateLimits {
    RateLimits {
        tpm: Some(tpm),
        ..NONE
    }
}

fn in_flight(max: u32) -> RateLimits {
    RateLimits {
        max_concurrency: Some(max),
        ..NONE
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

fn limits(gateway: RateLimits) -> (Limits, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(0));
    (Limits::new(gateway, clock.clone()), clock)
}

fn said(refused: Result<impl Sized, ApiError>) -> (String, u32) {
    let refused = refused.err().expect("a refusal");
    assert_eq!(refused.kind, ErrorKind::RateLimit);
    (refused.message, refused.retry_after.expect("a wait"))
}

#[test]
fn the_minute_slides() {
    let (limits, _) = limits(NONE);
    let key = key("k", "u", rpm(3), NONE);
    for at in [0, 10_000, 20_000] {
        drop(limits.admit(&key, true, at).unwrap());
    }
    let refusal = (
        "this API key may make 3 POST requests a minute".to_owned(),
        30,
    );
    assert_eq!(said(limits.admit(&key, true, 30_000)), refusal);
    assert_eq!(limits.standing(&key, 30_000), Some([3, 0, 30]));
    assert!(
        limits.admit(&key, false, 30_000).is_ok(),
        "only POSTs count"
    );
    assert!(limits.admit(&key, true, 59_999).is_err());
    assert!(
        limits.admit(&key, true, 60_000).is_ok(),
        "the first has left"
    );
    assert!(limits.admit(&key, true, 60_001).is_err());
}

#[test]
fn requests_in_flight_are_counted_until_they_end() {
    let (limits, _) = limits(NONE);
    let key = key("k", "u", in_flight(2), NONE);
    let first = limits.admit(&key, false, 0).unwrap();
    let _second = limits.admit(&key, true, 0).unwrap();
    let refusal = "this API key may have 2 requests in flight: wait for one to end";
    assert_eq!(said(limits.admit(&key, true, 0)), (refusal.to_owned(), 1));
    let full = Some([2, 0, 1]);
    assert_eq!(limits.standing(&key, 0), full, "a limit that is reached");
    drop(first);
    assert_eq!(limits.standing(&key, 0), None, "requests a minute are free");
    assert!(limits.admit(&key, true, 0).is_ok());
}

#[test]
fn who_refuses_is_named_and_nobody_else_has_counted() {
    let (limits, _) = limits(rpm(4));
    let small = key("small", "ann", rpm(2), rpm(3));
    let large = key("large", "ann", NONE, rpm(3));
    let other = key("other", "bob", NONE, NONE);
    let post = |key| limits.admit(key, true, 0);
    assert_eq!(limits.standing(&small, 0), Some([2, 2, 0]));
    drop((post(&small).unwrap(), post(&small).unwrap()));
    assert!(said(post(&small)).0.starts_with("this API key may "));
    assert_eq!(
        limits.standing(&large, 0),
        Some([3, 1, 60]),
        "it used two of three"
    );
    drop(post(&large).unwrap());
    assert!(
        said(post(&large))
            .0
            .starts_with("this account, with all its API keys, may ")
    );
    assert_eq!(
        limits.standing(&other, 0),
        Some([4, 1, 60]),
        "refusals did not count"
    );
    drop(post(&other).unwrap());
    assert!(
        said(post(&other))
            .0
            .starts_with("this gateway's users together may ")
    );
    assert_eq!(limits.standing(&small, 0), Some([2, 0, 60]), "the tightest");
}

#[test]
fn tokens_are_counted_by_estimate_and_then_as_they_were() {
    let (limits, clock) = limits(NONE);
    let key = key("k", "u", tpm(100), NONE);
    let begin = || limits.admit(&key, true, clock.now()).unwrap().unwrap();
    let first = begin();
    first.reserve_tokens(90).unwrap();
    let second = begin();
    second.reserve_tokens(5_000).unwrap();
    let refusal = ("this API key may use 100 tokens a minute".to_owned(), 1);
    assert_eq!(said(begin().reserve_tokens(1)), refusal);
    // The second took next to nothing, and a request that is refused or fails nothing.
    second.settle_tokens(4);
    let third = begin();
    third.reserve_tokens(50).unwrap();
    assert!(begin().reserve_tokens(1).is_err());
    drop(third);
    clock.advance(10_000);
    first.settle_tokens(95);
    assert!(begin().reserve_tokens(1).is_ok(), "99 are below 100");
    begin().settle_tokens(1);
    // 4 leave after 50 seconds, and then there is room for one.
    assert_eq!(said(begin().reserve_tokens(1)).1, 50);
    clock.advance(49_999);
    assert!(begin().reserve_tokens(1).is_err());
    clock.advance(1);
    begin().reserve_tokens(1).unwrap();
    clock.advance(60_000);
    drop((first, second));
    assert!(limits.shared.table().keys.by_id.is_empty());
}

#[test]
fn tokens_of_all_keys_and_users_add_up() {
    let (limits, clock) = limits(tpm(1_000));
    let one = key("one", "ann", NONE, tpm(100));
    let two = key("two", "ann", NONE, tpm(100));
    let other = key("other", "bob", NONE, NONE);
    let begin = |key| limits.admit(key, true, clock.now()).unwrap().unwrap();
    let first = begin(&one);
    first.reserve_tokens(100).unwrap();
    let refused = said(begin(&two).reserve_tokens(1)).0;
    assert_eq!(
        refused,
        "this account, with all its API keys, may use 100 tokens a minute"
    );
    let second = begin(&other);
    second.reserve_tokens(899).unwrap();
    begin(&other).reserve_tokens(1).unwrap();
    let third = begin(&other);
    third.reserve_tokens(1).unwrap();
    let refused = said(begin(&other).reserve_tokens(1)).0;
    assert_eq!(
        refused,
        "this gateway's users together may use 1000 tokens a minute"
    );
}

#[test]
fn an_absurd_number_of_tokens_is_only_a_large_one() {
    let (limits, clock) = limits(NONE);
    let key = key("k", "u", tpm(u32::MAX), NONE);
    let begin = || limits.admit(&key, true, clock.now()).unwrap().unwrap();
    let first = begin();
    first.reserve_tokens(u64::MAX).unwrap();
    assert!(begin().reserve_tokens(u64::MAX).is_err());
    first.settle_tokens(u64::MAX);
    first.settle_tokens(u64::MAX);
    assert_eq!(said(begin().reserve_tokens(1)).1, 60);
    clock.advance(clock::SECOND * 60);
    begin().reserve_tokens(1).unwrap();
}

#[test]
fn what_is_idle_is_forgotten() {
    let (limits, clock) = limits(NONE);
    let count = || {
        let table = limits.shared.table();
        table.keys.by_id.len() + table.users.by_id.len()
    };
    drop(
        limits
            .admit(&key("k", "u", in_flight(1), NONE), true, 0)
            .unwrap(),
    );
    assert_eq!(count(), 0);
    assert!(
        limits
            .admit(&key("k", "u", NONE, NONE), true, 0)
            .unwrap()
            .is_none()
    );
    assert_eq!(count(), 0);
    // Those that never come again are forgotten when others come.
    let mut most = 0;
    for i in 0..20_000 {
        clock.advance(100);
        let key = key(&i.to_string(), "u", rpm(5), NONE);
        drop(limits.admit(&key, true, clock.now()).unwrap());
        most = most.max(count());
    }
    assert!(most <= 2 * SWEEP, "{most}");
}
