//! How many nodes are alive and ready, the rank of this one among them, and its share of a limit for all nodes.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tollgate_store::NodeRecord;

/// The nodes that were alive and ready at this node's last heartbeat; this node always counts. Before the first heartbeat, only this node.
#[derive(Debug)]
pub struct LiveNodes {
    count: AtomicU32,
    /// How many of these nodes have a smaller id than this node.
    rank: AtomicU32,
    leads_until: Mutex<Option<Instant>>,
    /// Whether no other process uses the database: then this node always leads.
    is_alone: bool,
}

impl LiveNodes {
    /// Only this node is known; `is_alone` if there can be no other.
    pub fn new(is_alone: bool) -> Self {
        Self {
            count: AtomicU32::new(1),
            rank: AtomicU32::new(0),
            leads_until: Mutex::new(None),
            is_alone,
        }
    }

    /// How many nodes are alive and ready, this one always included; at least 1.
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

    /// Whether this node does work that only one node needs to do. All such work is also correct if two nodes do it: the leader only saves duplicate
    /// work.
    pub fn is_leader(&self) -> bool {
        self.is_alone
            || self
                .lock_leads_until()
                .is_some_and(|until| Instant::now() < until)
    }

    /// Updates the count and the rank from the nodes that are alive. Other nodes that are not ready receive no requests, and so have no share.
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

    /// Makes this node the leader for `lease`, counted from `since`; not if `leads` is false.
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
        // If the limit is less than the number of nodes, the shares add up to a little more than it.
        assert_eq!(shares(1), [1, 1, 1]);
    }

    #[test]
    fn nodes_that_are_not_ready_have_no_share() {
        let nodes = [node("node_a", Some("its clock")), node("node_b", None)];
        let live = LiveNodes::new(false);
        live.set(&nodes, "node_b");
        assert_eq!((live.count(), live.share(10)), (1, 10));
        // A node that is not ready but gets requests has the share that is left for it.
        live.set(&nodes, "node_a");
        assert_eq!((live.count(), live.share(10)), (2, 5));
        // This node is not in the list yet.
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
