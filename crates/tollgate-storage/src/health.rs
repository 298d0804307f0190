//! The state of the storage: whether writes fail, and whether its disk is nearly full.

use std::sync::atomic::AtomicBool;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The state of the storage, shared by everything that writes to it.
#[derive(Debug, Default)]
pub(super) struct Availability {
    pub(super) is_failing: AtomicBool,
    /// When the last probe ended. The lock lets one probe run at a time.
    pub(super) last_probe: Mutex<Option<Instant>>,
    pub(super) space: std::sync::Mutex<FreeSpace>,
}

/// The result of the last check of the disk's free space.
#[derive(Debug, Default)]
pub(super) struct FreeSpace {
    pub(super) checked_at: Option<Instant>,
    pub(super) is_low: bool,
}
