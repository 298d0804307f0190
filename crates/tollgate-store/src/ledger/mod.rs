//! The ledger: the only module that moves money (hold, settle, release, charge, credit).
//!
//! A user's row holds three sums over the ledger entries: `balance` (credits and refunds less settlements and charges), `held` (holds less
//! settlements and releases) and `used` (settlements and charges less refunds). A key's row holds `held` and `used`. A batch of the writer
//! reads and locks each row once, moves it in memory as often as it needs, and writes it back with one guarded update
//! ([`balances`]). So two batches, of one node or of many, cannot spend the same money: the second waits for the row lock
//! (PostgreSQL) or the write lock (SQLite), and the guard of the update is a second line of defence. Where one process has
//! the database to itself, chats hold money in memory ([`reservations`]), which batches leave alone; where nodes share it, each holds a part of a busy balance for the chats that it serves ([`grants`]). The ledger's primary key
//! `(ref, kind)` makes each movement of a charge happen at most once. What was spent of a budget is counted with each movement ([`budgets`]).

pub(crate) mod account;
mod balance_rows;
pub(crate) mod balances;
pub(crate) mod budgets;
pub(crate) mod charges;
pub(crate) mod chat_rows;
pub(crate) mod chats;
pub(crate) mod checksum;
pub(crate) mod entries;
pub(crate) mod grants;
pub(crate) mod refunds;
pub(crate) mod reservations;
mod sum;
