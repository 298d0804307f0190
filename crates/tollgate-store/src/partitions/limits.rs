//! What a change of the tables may take.

/// Clients wait while a change waits for its locks, which long reads of these tables (a backup) are in the way of: it gives up early, and is tried again in
/// the next round.
pub(super) const LIMITS: &str =
    "SET LOCAL lock_timeout = '500ms'; SET LOCAL statement_timeout = '3s'";
