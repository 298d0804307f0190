//! Registers metrics.

use prometheus::core::Collector;
use prometheus::{IntCounterVec, Opts, Registry};

/// Registers a metric. Its name must be unique.
pub(super) fn register<C: Collector + Clone + 'static>(registry: &Registry, metric: C) -> C {
    let registered = registry.register(Box::new(metric.clone()));
    registered.expect("a new name");
    metric
}

/// Registers counters with labels.
pub(super) fn new_counters(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> IntCounterVec {
    let counters = IntCounterVec::new(Opts::new(name, help), labels).expect("valid name");
    register(registry, counters)
}
