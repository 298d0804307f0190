//! Time limits for changes of the tables.

/// Clients wait while a change waits for its locks, which long reads of these tables (a backup) block: so it gives up early, and is retried in the
/// next round.
pub(super) const LIMITS: &str =
    "SET LOCAL lock_timeout = '500ms'; SET LOCAL statement_timeout = '3s'";
