//! The store's tests: one suite, each test on SQLite and, when `TOLLGATE_TEST_POSTGRES_URL` names a server, on
//! PostgreSQL, in a database of its own.

mod access;
mod away;
mod books;
mod callbacks;
mod chat_books;
mod chat_nodes;
mod chat_storm;
mod chats;
mod crowd;
mod db;
mod end;
mod idempotency;
mod lease;
mod lost;
mod model;
mod money;
mod opening;
mod pages;
mod proxy;
mod queued;
mod reserved;
mod server;
mod work_books;
mod world;
