//! Blocks of ended chats and tasks, so that lists with filters read few rows however many are stored, and plain chats need no index for this.
//!
//! The rows of a list, in the order of their ids, are divided into blocks of 1024 (table `list_blocks`). `list_values` contains which values occur
//! together in a row, and in which blocks. [`build`] adds the next block some seconds or minutes after its rows were written, when all of them have
//! ended: after that their values do not change. [`search`] reads the rows after the last block, and for the rows before that only blocks that may
//! contain a row with the wanted values. If a row is inserted late, with an id before the end of the last block, its transaction removes the blocks
//! from its position on ([`note_inserted`]), and they are built again. So a list has exactly the rows that reading all of them would find.
//!
//! If a row loses values (retention purges details) or is deleted, its block still lists them: it is then read without finding the row.

mod bloom;
pub(crate) mod build;
mod layout;
pub(crate) mod search;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate_core::clock::SECOND;
use tollgate_core::{Clock as _, Millis, SystemClock};

pub(crate) use layout::List;

use crate::db::{DbError, Sql, Tx, args};

/// If a row is this old when it is inserted, its id may be within a block. It is much less than [`build::BUILD_AFTER`], because the transaction is not
/// committed yet and clocks differ a little.
const LATE_AFTER: Millis = 10 * SECOND;

pub(crate) const COUNT_REMOVAL: Sql =
    Sql::both("UPDATE meta SET value = value + 4294967296 WHERE name = 'list_blocks_version'");
pub(crate) const LAST_ID: Sql =
    Sql::both("SELECT last_id FROM list_blocks WHERE list = $1 ORDER BY number DESC LIMIT 1");
pub(crate) const REMOVE_BLOCKS_FROM: Sql =
    Sql::both("DELETE FROM list_blocks WHERE list = $1 AND last_id >= $2");

/// The last id in the blocks of each list that this process has added: on SQLite no other process adds any. `None` before it adds any. If a block was
/// removed or not committed, the id is too large: rows before it then remove blocks that do not exist.
#[derive(Debug, Default)]
pub(crate) struct BlockEnds(Mutex<[Option<String>; 2]>);

impl BlockEnds {
    fn locked(&self) -> MutexGuard<'_, [Option<String>; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that blocks up to this id were added.
    fn raise(&self, list: List, last_id: &str) {
        let end = &mut self.locked()[list as usize];
        if end.as_deref() < Some(last_id) {
            *end = Some(last_id.to_owned());
        }
    }

    /// Whether the id is within the blocks. `None` if this process has not added any.
    fn contain(&self, list: List, id: &str) -> Option<bool> {
        self.locked()[list as usize].as_deref().map(|end| id <= end)
    }
}

/// Must be called by every transaction that inserts rows, before it inserts them: `first_id` is the smallest of their ids.
pub(crate) fn note_inserted(
    tx: &mut Tx<'_>,
    ends: &BlockEnds,
    list: List,
    first_id: &str,
) -> Result<(), DbError> {
    let is_late = match tx {
        Tx::Sqlite(open) => match ends.contain(list, first_id) {
            Some(is_late) => is_late,
            None => {
                let last = open.query_repeated(&LAST_ID, args![list.name()])?;
                match last.into_iter().next() {
                    Some(mut row) => row.text(0)?.as_str() >= first_id,
                    None => false,
                }
            }
        },
        // This needs only the current time, except for rows that are inserted late.
        Tx::Postgres(_) => first_id < list.min_id_at(SystemClock.now() - LATE_AFTER).as_str(),
    };
    if !is_late {
        return Ok(());
    }
    // The version is changed first: a process that builds blocks locks its row until they are on disk.
    tx.queue(&COUNT_REMOVAL, args![])?;
    tx.queue(&REMOVE_BLOCKS_FROM, args![list.name(), first_id])
}
