//! Counts POSTs in flight by receiver: a receiver that hangs does not delay the webhooks of others, and gets no POSTs for a growing time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::live_nodes::LiveNodes;

/// POSTs to one receiver at the same time, from all nodes together.
const MAX_IN_FLIGHT: usize = 64;
/// POSTs of this node to one receiver at the same time, until it has responded with 2xx for the first time.
const MAX_UNPROVEN: usize = 4;
/// POSTs of this node to all such receivers together.
const MAX_UNPROVEN_TOTAL: usize = 512;
/// How long a receiver that did not respond gets no further POST; then it gets one at a time until it responds.
const BACKOFF: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(300),
    Duration::from_secs(600),
];
/// Receivers that are remembered; if there are more, those without POSTs in flight and backoff are removed.
const MAX_REMEMBERED: usize = 10_000;

/// The state of the receivers (scheme, host and port); clones share it.
#[derive(Clone)]
pub(super) struct Receivers {
    table: Arc<Mutex<Table>>,
    live_nodes: Arc<LiveNodes>,
}

#[derive(Default)]
struct Table {
    by_name: HashMap<String, Receiver>,
    /// POSTs in flight to receivers that have never responded with 2xx.
    unproven: usize,
}

#[derive(Default)]
struct Receiver {
    in_flight: usize,
    /// Whether it has responded with 2xx.
    is_proven: bool,
    /// How often in a row it did not respond.
    failures: usize,
    /// Until when it gets no POST.
    backoff_until: Option<Instant>,
}

/// Permission for one POST to a receiver, which is returned when it is dropped.
pub(super) struct ReceiverPermit {
    receivers: Receivers,
    name: String,
    /// Whether it counts among [`Table::unproven`].
    is_unproven: bool,
}

impl Receivers {
    /// No receiver is known yet. Each of the `live_nodes` sends its share of the POSTs to a receiver.
    pub(super) fn new(live_nodes: Arc<LiveNodes>) -> Self {
        let table = Arc::default();
        Self { table, live_nodes }
    }

    /// How many webhooks of each of these receivers can be posted now, with `free` POSTs for all; receivers with zero are left out.
    pub(super) fn share_out(&self, names: Vec<String>, mut free: usize) -> Vec<(String, usize)> {
        let table = self.lock();
        let now = Instant::now();
        let max = self.live_nodes.share(MAX_IN_FLIGHT);
        let mut unproven = MAX_UNPROVEN_TOTAL.saturating_sub(table.unproven);
        let each = (free / names.len().max(1)).max(1);
        let mut shares = Vec::new();
        for name in names {
            let known = table.by_name.get(&name);
            let is_proven = known.is_some_and(|receiver| receiver.is_proven);
            let capacity = known.map_or(MAX_UNPROVEN.min(max), |receiver| {
                receiver.capacity(max, now)
            });
            let mut share = capacity.min(each).min(free);
            if !is_proven {
                share = share.min(unproven);
                unproven -= share;
            }
            free -= share;
            if share > 0 {
                shares.push((name, share));
            }
        }
        shares
    }

    /// Counts a POST to a receiver as in flight.
    pub(super) fn begin(&self, name: &str) -> ReceiverPermit {
        let mut table = self.lock();
        if table.by_name.len() >= MAX_REMEMBERED && !table.by_name.contains_key(name) {
            table.forget_some(Instant::now());
        }
        let receiver = table.by_name.entry(name.to_owned()).or_default();
        receiver.in_flight += 1;
        let is_unproven = !receiver.is_proven;
        table.unproven += usize::from(is_unproven);
        ReceiverPermit {
            receivers: self.clone(),
            name: name.to_owned(),
            is_unproven,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Forgets receivers without a POST in flight: first those that are not proven or fail, and if that is not enough, all that may be posted to.
    fn forget_some(&mut self, now: Instant) {
        let is_needed = |receiver: &Receiver| {
            receiver.in_flight > 0 || receiver.backoff_until.is_some_and(|until| until > now)
        };
        self.by_name.retain(|_, receiver| {
            is_needed(receiver) || (receiver.is_proven && receiver.failures == 0)
        });
        if self.by_name.len() >= MAX_REMEMBERED {
            self.by_name.retain(|_, receiver| is_needed(receiver));
        }
    }
}

impl Receiver {
    /// How many POSTs may begin now, if this node may make `max` at the same time.
    fn capacity(&self, max: usize, now: Instant) -> usize {
        let max = match (self.failures, self.is_proven) {
            _ if self.backoff_until.is_some_and(|until| until > now) => 0,
            (0, true) => max,
            (0, false) => MAX_UNPROVEN.min(max),
            _ => 1,
        };
        max.saturating_sub(self.in_flight)
    }

    fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.failures == 0
    }
}

impl ReceiverPermit {
    /// Records the status of the response; `None` if there was none.
    pub(super) fn record(&self, status: Option<u16>) {
        let mut table = self.receivers.lock();
        let Some(receiver) = table.by_name.get_mut(&self.name) else {
            return;
        };
        if status.is_some() {
            receiver.failures = 0;
            receiver.backoff_until = None;
            receiver.is_proven |= matches!(status, Some(200..=299));
            return;
        }
        let now = Instant::now();
        // Several POSTs that failed at the same time count once.
        if receiver.backoff_until.is_none_or(|until| until <= now) {
            let backoff = BACKOFF[receiver.failures.min(BACKOFF.len() - 1)];
            receiver.failures += 1;
            receiver.backoff_until = Some(now + backoff);
        }
    }
}

impl Drop for ReceiverPermit {
    fn drop(&mut self) {
        let mut table = self.receivers.lock();
        table.unproven -= usize::from(self.is_unproven);
        if let Some(receiver) = table.by_name.get_mut(&self.name) {
            receiver.in_flight -= 1;
            if receiver.is_idle() && !receiver.is_proven {
                table.by_name.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_store::NodeRecord;

    use super::*;

    const A: &str = "https://a.example";

    fn share(receivers: &Receivers) -> usize {
        let shares = receivers.share_out(vec![A.to_owned()], 1_000);
        shares.first().map_or(0, |(_, share)| *share)
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_gets_few_posts_until_one_succeeds() {
        let receivers = Receivers::new(Arc::new(LiveNodes::new(true)));
        let first: Vec<_> = (0..MAX_UNPROVEN).map(|_| receivers.begin(A)).collect();
        assert_eq!(share(&receivers), 0);
        first[0].record(Some(500));
        assert_eq!(share(&receivers), 0, "not a success");
        first[1].record(Some(204));
        assert_eq!(share(&receivers), MAX_IN_FLIGHT - MAX_UNPROVEN);
        drop(first);
        assert_eq!(share(&receivers), MAX_IN_FLIGHT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_receiver_gets_no_more_posts_than_the_share_of_this_node() {
        let live_nodes = LiveNodes::new(false);
        let others = (0..40).map(|number| NodeRecord {
            id: format!("node_{number}"),
            ..NodeRecord::default()
        });
        live_nodes.set(&others.collect::<Vec<_>>(), "this_node");
        let receivers = Receivers::new(Arc::new(live_nodes));
        assert_eq!(
            share(&receivers),
            1,
            "64 for 41 nodes, of which it is the last"
        );
        let _posted = receivers.begin(A);
        assert_eq!(share(&receivers), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_hangs_gets_no_posts_for_a_growing_time() {
        let receivers = Receivers::new(Arc::new(LiveNodes::new(true)));
        let hanging: Vec<_> = (0..MAX_UNPROVEN).map(|_| receivers.begin(A)).collect();
        hanging.iter().for_each(|permit| permit.record(None));
        drop(hanging);
        for backoff in BACKOFF.into_iter().chain([BACKOFF[5]]) {
            assert_eq!(share(&receivers), 0, "{backoff:?}");
            tokio::time::advance(backoff).await;
            assert_eq!(share(&receivers), 1, "one at a time");
            let probe = receivers.begin(A);
            assert_eq!(share(&receivers), 0);
            probe.record(None);
        }
        tokio::time::advance(BACKOFF[5]).await;
        receivers.begin(A).record(Some(404));
        assert_eq!(share(&receivers), MAX_UNPROVEN, "it responds");
    }

    #[tokio::test(start_paused = true)]
    async fn posts_are_shared_among_receivers() {
        let receivers = Receivers::new(Arc::new(LiveNodes::new(true)));
        let names = || (0..300).map(|n| format!("https://{n}.example")).collect();
        let shares = receivers.share_out(names(), 600);
        let total = |shares: &[(String, usize)]| shares.iter().map(|(_, n)| n).sum::<usize>();
        assert_eq!(
            total(&shares),
            MAX_UNPROVEN_TOTAL,
            "some are left for others"
        );
        assert!(shares.iter().all(|(_, share)| *share <= 2));
        let started = shares.iter().map(|(name, _)| receivers.begin(name));
        let started: Vec<_> = started.collect();
        let left = total(&receivers.share_out(names(), 10_000));
        assert_eq!(left, MAX_UNPROVEN_TOTAL - started.len());
        drop(started);
        assert!(receivers.lock().by_name.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn receivers_that_do_not_respond_are_forgotten_if_too_many_are_remembered() {
        const PROVEN: &str = "https://proven.example";
        const NEW: &str = "https://new.example";
        let receivers = Receivers::new(Arc::new(LiveNodes::new(true)));
        receivers.begin(PROVEN).record(Some(204));
        let _in_flight = receivers.begin(A);
        for number in 2..MAX_REMEMBERED {
            let posted = receivers.begin(&format!("https://{number}.example"));
            posted.record(None);
        }
        assert_eq!(receivers.lock().by_name.len(), MAX_REMEMBERED);
        tokio::time::advance(BACKOFF[0]).await;
        let _posted = receivers.begin(NEW);
        let table = receivers.lock();
        let mut remembered: Vec<&str> = table.by_name.keys().map(String::as_str).collect();
        remembered.sort_unstable();
        assert_eq!(remembered, [A, NEW, PROVEN]);
    }
}
