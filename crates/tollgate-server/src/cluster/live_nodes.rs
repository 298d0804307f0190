//! How many nodes are alive, which of them this one is, and its share of what all nodes may do together.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tollgate_store::NodeRecord;

/// The nodes that are alive, by the last heartbeat of this one; a node that is alone until it knows better.
#[derive(Debug)]
pub struct LiveNodes {
    count: AtomicU32,
    /// How many of them have a smaller id than this node.
    rank: AtomicU32,
    leads_until: Mutex<Option<Instant>>,
    /// Whether no other process uses the database: then this node always leads.
    is_alone: bool,
}

impl LiveNodes {
    /// That of a node that knows of no other yet; `is_alone` if there can be no other.
    pub fn new(is_alone: bool) -> Self {
        Self {
            count: AtomicU32::new(1),
            rank: AtomicU32::new(0),
            leads_until: Mutex::new(None),
            is_alone,
        }
    }

    /// How many nodes are alive, this one included; at least 1.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// This node's share of `limit`, at least 1: the shares of all nodes add up to `limit` unless that is less than their number.
    pub fn share(&self, limit: usize) -> usize {
        let (count, rank) = (
            self.count() as usize,
            self.rank.load(Ordering::Relaxed) as usize,
        );
        let share = limit / count + usize::from(rank < limit % count);
        share.max(1)
    }

    /// Whether this node does what only one node has to do. All such work is also right if two nodes do it: this only saves it.
    pub fn is_leader(&self) -> bool {
        self.is_alone
            || self
                .lock_leads_until()
                .is_some_and(|until| Instant::now() < until)
    }

    /// Takes over which nodes are alive. Those that are not ready get no requests, and so no share.
    pub fn set(&self, nodes: &[NodeRecord], own_node: &str) {
        let serving = || {
            let others = nodes.iter().filter(|node| node.id != own_node);
            others.filter(|node| node.not_ready.is_none())
        };
        let before = serving().filter(|node| node.id.as_str() < own_node);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        self.count
            .store(number(serving().count()) + 1, Ordering::Relaxed);
        self.rank.store(number(before.count()), Ordering::Relaxed);
    }

    /// This node leads for `lease` from `since` on, or not at all.
    pub fn set_leader(&self, leads: bool, since: Instant, lease: Duration) {
        *self.lock_leads_until() = leads.then(|| since + lease);
    }

    fn lock_leads_until(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.leads_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, not_ready: Option<&str>) -> NodeRecord {
        NodeRecord {
            id: id.to_owned(),
            not_ready: not_ready.map(str::to_owned),
            ..NodeRecord::default()
        }
    }

    #[test]
    fn shares_add_up_to_the_limit() {
        let ids = ["node_a", "node_b", "node_c"];
        let nodes = ids.map(|id| node(id, None));
        let shares = |limit| {
            ids.map(|id| {
                let live = LiveNodes::new(false);
                live.set(&nodes, id);
                live.share(limit)
            })
        };
        assert_eq!(shares(64), [22, 21, 21]);
        assert_eq!(shares(5), [2, 2, 1]);
        assert_eq!(shares(3), [1, 1, 1]);
        // Less than one each: then a little more than the limit.
        assert_eq!(shares(1), [1, 1, 1]);
    }

    #[test]
    fn nodes_that_are_not_ready_have_no_share() {
        let nodes = [node("node_a", Some("its clock")), node("node_b", None)];
        let live = LiveNodes::new(false);
        live.set(&nodes, "node_b");
        assert_eq!((live.count(), live.share(10)), (1, 10));
        // One that is served all the same takes what is left to it.
        live.set(&nodes, "node_a");
        assert_eq!((live.count(), live.share(10)), (2, 5));
        // Not in the list yet.
        live.set(&[], "node_a");
        assert_eq!((live.count(), live.share(10)), (1, 10));
    }

    #[test]
    fn a_leader_is_one_for_its_lease() {
        let (live, now) = (LiveNodes::new(false), Instant::now());
        assert!(!live.is_leader());
        live.set_leader(true, now, Duration::from_secs(60));
        assert!(live.is_leader());
        live.set_leader(true, now, Duration::ZERO);
        assert!(!live.is_leader());
        live.set_leader(true, now, Duration::from_secs(60));
        live.set_leader(false, now, Duration::from_secs(60));
        assert!(!live.is_leader());
        assert!(LiveNodes::new(true).is_leader());
    }
}
