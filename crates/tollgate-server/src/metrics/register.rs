//! Registers metrics.

use prometheus::Registry;
use prometheus::core::Collector;

/// Registers a metric. Its name must be unique.
pub(super) fn register<C: Collector + Clone + 'static>(registry: &Registry, metric: C) -> C {
    let registered = registry.register(Box::new(metric.clone()));
    registered.expect("a new name");
    metric
}
