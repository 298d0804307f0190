//! The tracer of this process, to which the spans of requests and tasks are given when they end.

use std::sync::{Arc, OnceLock};

use tollgate_config::Ratio;

use super::export::SpanQueue;

/// The tracer of this process, if it has a collector.
static TRACER: OnceLock<Tracer> = OnceLock::new();

pub(super) struct Tracer {
    pub(super) sample_ratio: Ratio,
    /// The spans that ended and are not sent yet.
    pub(super) queue: Arc<SpanQueue>,
}

/// The tracer. `None` if no collector is configured.
pub(super) fn tracer() -> Option<&'static Tracer> {
    TRACER.get()
}

/// Sets the tracer for the rest of the process; without effect if it is set already.
pub(super) fn set_tracer(tracer: Tracer) {
    let _ = TRACER.set(tracer);
}
