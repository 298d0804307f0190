//! The store's tests: one suite, each test on SQLite and, when `TOLLGATE_TEST_POSTGRES_URL` names a server, on
//! PostgreSQL, in a database of its own.

mod alerts;
mod budgets;
mod chat_concurrency;
mod concurrency;
mod databases;
mod debt;
mod fixtures;
mod grants;
mod list_blocks;
mod lost_commits;
mod model;
mod nodes;
mod old_schemas;
mod opening;
mod partitions;
mod postgres_outage;
mod postgres_server;
mod proxy;
mod queue_move;
mod replica;
mod reservations;
mod retention;
mod scenarios;
mod shards;
mod task_concurrency;
mod uploads;
mod usage;
mod users_and_keys;
mod webhooks;
