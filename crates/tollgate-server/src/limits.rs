//! Limits of keys: POSTs in a sliding minute, requests in flight. What is over the limit is refused, never queued.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate_core::clock::SECOND;
use tollgate_core::{ApiError, ErrorKind, Millis};
use tollgate_store::Key;

/// The sliding window.
const MINUTE: Millis = 60 * SECOND;

/// What each limited key has done lately. A key without limits is never in here; one without requests in the last
/// minute and in flight is forgotten.
#[derive(Default)]
pub struct Limits {
    keys: Arc<Mutex<HashMap<String, Usage>>>,
}

#[derive(Default)]
struct Usage {
    /// When the POSTs of the last minute came, oldest first: at most `rpm` of them.
    posts: VecDeque<Millis>,
    in_flight: u32,
}

/// A request that was let in; counts as in flight until dropped.
pub struct Permit {
    keys: Arc<Mutex<HashMap<String, Usage>>>,
    key_id: String,
}

impl Limits {
    /// Lets a request of `key` in, or says how long to wait. None where the key has no limits.
    pub fn admit(&self, key: &Key, is_post: bool, now: Millis) -> Result<Option<Permit>, ApiError> {
        let limits = &key.limits.rates;
        if limits.rpm.is_none() && limits.max_concurrency.is_none() {
            return Ok(None);
        }
        let mut keys = locked(&self.keys);
        let usage = keys.entry(key.id.clone()).or_default();
        if let Some(max) = limits.max_concurrency.filter(|max| usage.in_flight >= *max) {
            let message =
                format!("this API key may have {max} requests in flight: wait for one to end");
            return Err(refused(message, 1));
        }
        while usage.posts.front().is_some_and(|at| *at <= now - MINUTE) {
            usage.posts.pop_front();
        }
        if let Some(rpm) = limits.rpm.filter(|_| is_post) {
            if usage.posts.len() >= rpm as usize {
                let oldest = usage.posts.front().copied().unwrap_or(now);
                let wait = (oldest + MINUTE - now).clamp(1, MINUTE);
                let seconds = u32::try_from((wait + SECOND - 1) / SECOND).unwrap_or(60);
                return Err(refused(
                    format!("this API key may make {rpm} POST requests a minute"),
                    seconds,
                ));
            }
            usage.posts.push_back(now);
        }
        usage.in_flight += 1;
        Ok(Some(Permit {
            keys: Arc::clone(&self.keys),
            key_id: key.id.clone(),
        }))
    }

    /// What a limited key has left of its minute: limit, remaining, and seconds until one more is free.
    pub fn standing(&self, key: &Key, now: Millis) -> Option<[u32; 3]> {
        let rpm = key.limits.rates.rpm?;
        let keys = locked(&self.keys);
        let usage = keys.get(&key.id);
        let recent = usage.map_or(0, |u| {
            u.posts.iter().filter(|at| **at > now - MINUTE).count()
        });
        let oldest = usage.and_then(|u| u.posts.iter().find(|at| **at > now - MINUTE));
        let reset = oldest.map_or(0, |at| (at + MINUTE - now + SECOND - 1) / SECOND);
        let recent = u32::try_from(recent).unwrap_or(u32::MAX);
        Some([
            rpm,
            rpm.saturating_sub(recent),
            u32::try_from(reset).unwrap_or(0),
        ])
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut keys = locked(&self.keys);
        if let Some(usage) = keys.get_mut(&self.key_id) {
            usage.in_flight = usage.in_flight.saturating_sub(1);
            if usage.in_flight == 0 && usage.posts.is_empty() {
                keys.remove(&self.key_id);
            }
        }
    }
}

fn locked(keys: &Mutex<HashMap<String, Usage>>) -> MutexGuard<'_, HashMap<String, Usage>> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(message: String, seconds: u32) -> ApiError {
    ApiError {
        retry_after: Some(seconds),
        ..ApiError::new(ErrorKind::RateLimit, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::Amount;
    use tollgate_store::{KeyLimits, RateLimits};

    fn key(rpm: Option<u32>, max_concurrency: Option<u32>) -> Key {
        Key {
            id: "key_1".to_owned(),
            label: String::new(),
            user_id: "user_1".to_owned(),
            user: "u".to_owned(),
            quota: None,
            held: Amount::ZERO,
            used: Amount::ZERO,
            limits: KeyLimits {
                rates: RateLimits {
                    rpm,
                    tpm: None,
                    max_concurrency,
                },
                ..KeyLimits::default()
            },
            revoked_at: None,
            user_unlimited: false,
            user_rates: RateLimits::default(),
            user_disabled_at: None,
        }
    }

    #[test]
    fn the_minute_slides() {
        let (limits, key) = (Limits::default(), key(Some(3), None));
        for at in [0, 10_000, 20_000] {
            drop(limits.admit(&key, true, at).unwrap());
        }
        let refused = limits.admit(&key, true, 30_000).err().unwrap();
        assert_eq!(
            (refused.kind, refused.retry_after),
            (ErrorKind::RateLimit, Some(30))
        );
        assert_eq!(limits.standing(&key, 30_000), Some([3, 0, 30]));
        assert!(
            limits.admit(&key, false, 30_000).is_ok(),
            "only POSTs count"
        );
        assert!(limits.admit(&key, true, 59_999).is_err());
        assert!(
            limits.admit(&key, true, 60_000).is_ok(),
            "the first has left the window"
        );
        assert!(limits.admit(&key, true, 60_001).is_err());
    }

    #[test]
    fn requests_in_flight_are_counted_until_they_end() {
        let (limits, key) = (Limits::default(), key(None, Some(2)));
        let first = limits.admit(&key, false, 0).unwrap();
        let _second = limits.admit(&key, true, 0).unwrap();
        assert!(limits.admit(&key, true, 0).is_err());
        drop(first);
        assert!(limits.admit(&key, true, 0).is_ok());
    }

    #[test]
    fn what_is_idle_is_forgotten() {
        let limits = Limits::default();
        drop(limits.admit(&key(None, Some(1)), true, 0).unwrap());
        assert!(locked(&limits.keys).is_empty());
        assert!(limits.admit(&key(None, None), true, 0).unwrap().is_none());
        assert!(locked(&limits.keys).is_empty());
    }
}
