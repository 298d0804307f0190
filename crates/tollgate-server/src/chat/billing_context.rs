//! The parts of the gateway that billing of chats needs.

use std::sync::Arc;

use tokio_util::task::TaskTracker;
use tollgate_config::Currency;
use tollgate_core::Clock;
use tollgate_store::Store;

use crate::metrics::Metrics;

/// The parts of the gateway that billing needs.
pub struct BillingContext {
    /// Holds and charges.
    pub store: Store,
    /// The source of the current time, in Unix milliseconds.
    pub clock: Arc<dyn Clock>,
    /// This process's name in the database.
    pub node: String,
    /// Counts chats and tokens.
    pub metrics: Arc<Metrics>,
    /// Settlements in the background that shutdown waits for.
    pub closing: TaskTracker,
    /// The currency that error messages name.
    pub currency: Currency,
}
