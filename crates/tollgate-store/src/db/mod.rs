//! One interface to both databases: SQL statements, parameter values, rows and transactions; also the drivers and the migrations.

pub(crate) mod disk_reserve;
pub(crate) mod migrate;
mod one_of;
pub(crate) mod postgres;
mod rows;
pub(crate) mod sql;
pub(crate) mod sqlite;
pub(crate) mod sqlite_copy;
mod transaction;

pub use migrate::{known_schema_version, schema_sql};
pub(crate) use one_of::{list_arg, one_of};
pub(crate) use rows::RowsSql;
pub(crate) use sql::{DbError, Row, Sql, Value, args, cells};
pub(crate) use transaction::Tx;
