//! The store's tests: one suite, each test on SQLite and, when `TOLLGATE_TEST_POSTGRES_URL` names a server, on
//! PostgreSQL, in a database of its own.

mod audit_chats;
mod audit_money;
mod audit_tasks;
mod chat_concurrency;
mod chats;
mod concurrency;
mod databases;
mod finish;
mod fixtures;
mod idempotency;
mod leases;
mod list_and_purge;
mod lost_commits;
mod model;
mod opening;
mod orphaned_chats;
mod postgres_outage;
mod postgres_server;
mod proxy;
mod queued_attempts;
mod reservations;
mod task_charges;
mod users_and_keys;
mod webhooks;
