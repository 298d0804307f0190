//! Users, keys, tasks and money, in SQLite or PostgreSQL.
//!
//! Reads go straight to the database; every write goes through one group-commit writer per process, so
//! that what it answers is on disk. Only the module `money` moves money. The two databases take the same statements
//! but for row locks.

mod audit;
mod batch;
mod changes;
mod db;
mod error;
mod migrate;
pub mod model;
mod money;
mod ops;
mod store;
mod writer;

pub use error::StoreError;
pub use model::*;
pub use money::Reservation;
pub use store::{Location, Store};
pub use writer::WriterStats;
