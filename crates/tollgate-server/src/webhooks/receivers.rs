//! POSTs in flight by receiver: a receiver that hangs delays nobody else's webhooks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use url::Url;

/// POSTs to one receiver at the same time.
const MAX_IN_FLIGHT: usize = 64;

/// Counts of POSTs in flight, by receiver (scheme, host and port); clones share them.
#[derive(Clone, Default)]
pub(super) struct Receivers(Arc<Mutex<HashMap<String, usize>>>);

/// The right to one POST to a receiver, given back when dropped.
pub(super) struct ReceiverPermit {
    receivers: Receivers,
    receiver: String,
}

impl Receivers {
    /// A permit for a POST to `url`. `None` if its receiver has [`MAX_IN_FLIGHT`] already.
    pub(super) fn try_acquire(&self, url: &str) -> Option<ReceiverPermit> {
        let receiver = receiver_of(url);
        let mut in_flight = self.lock();
        let count = in_flight.entry(receiver.clone()).or_default();
        if *count >= MAX_IN_FLIGHT {
            return None;
        }
        *count += 1;
        drop(in_flight);
        Some(ReceiverPermit {
            receivers: self.clone(),
            receiver,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReceiverPermit {
    fn drop(&mut self) {
        let mut in_flight = self.receivers.lock();
        if let Some(count) = in_flight.get_mut(&self.receiver) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(&self.receiver);
            }
        }
    }
}

/// The receiver of a URL: scheme, host and port.
fn receiver_of(url: &str) -> String {
    Url::parse(url).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_in_flight_are_limited_per_scheme_host_and_port() {
        assert_eq!(receiver_of("https://a.example/x?y"), "https://a.example");
        assert_eq!(receiver_of("http://a.example:81/x"), "http://a.example:81");
        let receivers = Receivers::default();
        let mut permits: Vec<_> = (0..MAX_IN_FLIGHT)
            .map(|n| receivers.try_acquire(&format!("https://a.example/{n}")))
            .collect();
        assert!(permits.iter().all(Option::is_some));
        assert!(receivers.try_acquire("https://a.example").is_none());
        assert!(receivers.try_acquire("https://b.example").is_some());
        permits.pop();
        assert!(receivers.try_acquire("https://a.example").is_some());
    }
}
