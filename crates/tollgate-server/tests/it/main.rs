//! The gateway over real HTTP: each test starts the real binary on a data directory of its own, on SQLite and, if
//! `TOLLGATE_TEST_POSTGRES_URL` names a server, on PostgreSQL. At the end of every test the books must close.

mod adjustments;
mod admin;
mod aliases;
mod auth;
mod bodies;
mod charges;
mod chat;
mod commands;
mod connections;
mod crash;
mod database_outage;
mod drain;
mod every_model;
mod expiry;
mod exposure;
mod fair_queue;
mod harness;
mod idempotency;
mod limits;
mod models;
mod nodes;
mod operations;
mod provider_queues;
mod references;
mod rejected;
mod result_downloads;
mod sandbox;
mod speech;
mod startup;
mod storage_faults;
mod stress;
mod tasks;
mod uploads;
mod videos;
mod webhooks;
