//! A streaming replica of the database (`database.replica_url`), from which data is read that does not change any more: ended tasks, and the older
//! part of lists of tasks and chats.
//!
//! It is read only while it is fresh: `Store::watch_replica` ([`reads`]) has found within [`state::MAX_AGE`] that it had replayed everything that was
//! committed up to a moment, and this process has refunded nothing since that moment. Money, unfinished tasks and recently written data are read from
//! the primary, and so is everything for which the replica does not respond.

mod connections;
mod reads;
mod state;

use tollgate_core::{Millis, clock};

pub(crate) use connections::Replica;
pub(crate) use reads::Source;

/// The longest time between the time in a task's id and the commit of its row.
pub(crate) const TASK_WRITE_TIME: Millis = 30 * clock::SECOND;
/// The same for chats, whose rows are written when they end.
pub(crate) const CHAT_WRITE_TIME: Millis = clock::DAY;
