//! The ledger: the only module that moves money (hold, settle, release, charge, credit).
//!
//! A user's row has three sums over the ledger entries: `balance` (credits and refunds minus settlements and charges), `held` (holds minus
//! settlements and releases) and `used` (settlements and charges minus refunds). A key's row has `held` and `used`. A batch of the writer reads and
//! locks each row once, changes it in memory as often as it needs, and writes it with one guarded update ([`balances`]). So two batches, of one node
//! or of several, cannot spend the same money: the second waits for the row lock (PostgreSQL) or the write lock (SQLite), and the guard of the update
//! is a second protection. If only one process uses the database, chats hold money in memory ([`reservations`]), which batches do not spend; if nodes
//! share it, each holds a part of a busy balance for the chats that it serves ([`grants`]). The ledger's primary key `(ref, kind)` ensures that each
//! movement of a charge happens at most once. The amount spent of a budget is counted with each movement ([`budgets`]).

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
mod owner_balance;
pub(crate) mod refunds;
pub(crate) mod reservations;
mod sum;
