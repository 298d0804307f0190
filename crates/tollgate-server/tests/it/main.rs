//! The gateway over real HTTP: each test starts the real binary on a data directory of its own, on SQLite and, when
//! `TOLLGATE_TEST_POSTGRES_URL` names a server, on PostgreSQL. At the end of every test the books must close.

mod access;
mod adjusted;
mod bad;
mod callbacks;
mod catalogue;
mod chat;
mod cleaning;
mod cluster;
mod commands;
mod crash;
mod deadlines;
mod directives;
mod drain;
mod films;
mod gate;
mod idempotency;
mod limits;
mod models;
mod money;
mod nodes;
mod operations;
mod outage;
mod pictures;
mod queues;
mod records;
mod references;
mod shop;
mod starting;
mod storm;
mod uploads;
mod voices;
