//! Tasks: the record, submission, the queue with its leases, and the end.

pub(crate) mod claim;
pub(crate) mod finish;
pub(crate) mod lease;
mod queue_move;
pub(crate) mod queue_table;
pub(crate) mod record;
pub(crate) mod shards;
pub(crate) mod submit;
pub(crate) mod trace;
