//! Metrics of this node as one of the nodes on its database.

use std::sync::OnceLock;

use prometheus::{Gauge, GaugeVec, Opts, Registry};
use tollgate_core::{Millis, clock};

use super::register::register;

/// The handles of these metrics in the registry.
pub(super) struct ClusterMetrics {
    nodes: Gauge,
    leader: Gauge,
    clock_offset: Gauge,
    not_ready: GaugeVec,
    grants: Gauge,
    replica_up: OnceLock<Gauge>,
    registry: Registry,
}

impl ClusterMetrics {
    /// The metrics of a node that is alone, in `registry`.
    pub(super) fn new(registry: &Registry) -> Self {
        let gauge = |name: &str, help: &str| {
            let gauge = Gauge::with_opts(Opts::new(name, help)).expect("a valid name");
            register(registry, gauge)
        };
        let not_ready = Opts::new(
            "tollgate_node_not_ready",
            "1 for what keeps this node from being ready",
        );
        Self {
            nodes: gauge(
                "tollgate_nodes",
                "Nodes that are alive and ready, this one included",
            ),
            leader: gauge(
                "tollgate_leader",
                "Whether this node does what only one has to do",
            ),
            clock_offset: gauge(
                "tollgate_clock_offset_seconds",
                "How far the clock of this node is ahead of the database's",
            ),
            grants: gauge(
                "tollgate_grants",
                "Grants that this node has: money that it serves chats from",
            ),
            not_ready: register(
                registry,
                GaugeVec::new(not_ready, &["cause"]).expect("a valid name"),
            ),
            replica_up: OnceLock::new(),
            registry: registry.clone(),
        }
    }

    pub(super) fn set_nodes(&self, count: u32, is_leader: bool) {
        self.nodes.set(f64::from(count));
        self.leader.set(f64::from(u8::from(is_leader)));
    }

    pub(super) fn set_grants(&self, count: usize) {
        self.grants.set(count as f64);
    }

    /// Registers the gauge when it is first set: without a replica the metric does not exist.
    pub(super) fn set_replica_up(&self, is_up: bool) {
        let gauge = self.replica_up.get_or_init(|| {
            let help = "1 while the replica of the database is read";
            let gauge = Gauge::with_opts(Opts::new("tollgate_replica_up", help));
            register(&self.registry, gauge.expect("a valid name"))
        });
        gauge.set(f64::from(u8::from(is_up)));
    }

    pub(super) fn set_clock_offset(&self, offset: Millis) {
        self.clock_offset.set(offset as f64 / clock::SECOND as f64);
    }

    pub(super) fn set_not_ready(&self, cause: &str, is_so: bool) {
        let gauge = self.not_ready.with_label_values(&[cause]);
        gauge.set(f64::from(u8::from(is_so)));
    }
}
