//! How SQLite goes about each statement: none of those that run all day may read a table from end to end, however
//! many tasks are stored.

use futures_util::FutureExt as _;

use super::{access, attempt, callback, chat, end, lease, purge, read, submit};
use crate::db::{Sql, Tx};
use crate::{migrate, money};

/// What runs for every request, task, attempt or turn of a loop.
const DAILY: &[&Sql] = &[
    &access::ENTRY_EXISTS,
    &attempt::ACCEPTED,
    &attempt::ENDED_ATTEMPT,
    &attempt::END_ATTEMPT,
    &attempt::END_OPEN_ATTEMPTS,
    &attempt::HELD,
    &attempt::LAST_ATTEMPT,
    &attempt::LAST_QUEUED,
    &attempt::OPEN_ATTEMPTS,
    &attempt::SET_QUEUED,
    &attempt::TRY_AGAIN,
    &callback::CALLBACK_LOG,
    &callback::DELIVERED,
    &callback::DUE_CALLBACKS,
    &callback::GIVE_UP,
    &callback::HAND_BACK_CALLBACKS,
    &callback::LEASE_CALLBACK,
    &callback::LOCK_CALLBACK,
    &callback::NEXT_CALLBACK_DUE,
    &callback::PUT_BACK,
    &callback::TRY_LATER,
    &callback::WEBHOOK_SECRET,
    &chat::BEAT,
    &chat::DEAD,
    &chat::FORGET_NODE,
    &chat::OLD_NODES,
    &chat::OPEN,
    &chat::STILL_DEAD,
    &end::END_TASK,
    &end::LOCK_TASK,
    &lease::DUE,
    &lease::HAND_BACK,
    &lease::HAND_BACK_ALL,
    &lease::KEEP,
    &lease::LEASE,
    &lease::POSTPONE,
    &lease::PROGRESS,
    &money::CLOSE_CHARGE,
    &money::CLOSE_CHAT,
    &money::READ_CHARGE,
    &money::READ_CHAT,
    &money::ROOM,
    &purge::CHATS_FORGOTTEN,
    &purge::DROP_ATTEMPTS,
    &purge::DROP_CALLBACK,
    &purge::DROP_KEYS,
    &purge::DROP_TASK,
    &purge::DROP_TRIES,
    &purge::FORGET_CHAT,
    &purge::OLD_CHATS,
    &purge::OLD_TASKS,
    &purge::SET_CHATS_FORGOTTEN,
    &read::ACCESS_VERSION,
    &read::FAILED_CHANNELS,
    &read::KEY_BY_HASH,
    &read::KEY_BY_ID,
    &read::NEXT_DUE,
    &read::RECEIPT,
    &read::TASK,
    &read::TASKS_OF_USER,
    &read::UNFINISHED,
    &read::USER,
    &read::USER_BY_NAME,
    &submit::SEEN,
    &submit::TASK_EXISTS,
];

fn plan(conn: &rusqlite::Connection, sql: &Sql) -> Vec<String> {
    let text = format!("EXPLAIN QUERY PLAN {}", sql.sqlite);
    let mut statement = conn.prepare(&text).expect("the statement is right");
    let unbound = vec![rusqlite::types::Null; statement.parameter_count()];
    let rows = statement.query_map(rusqlite::params_from_iter(unbound), |row| row.get("detail"));
    rows.and_then(Iterator::collect).expect("a plan")
}

#[test]
fn no_daily_statement_reads_a_whole_table() {
    let conn = rusqlite::Connection::open_in_memory().expect("a database");
    migrate::migrate(&mut Tx::Sqlite(crate::db::sqlite::Open::new(&conn)))
        .now_or_never()
        .expect("SQLite answers without waiting")
        .expect("the schema is right");
    let mut wrong = Vec::new();
    for sql in DAILY {
        let steps = plan(&conn, sql);
        // Scanning the index of what waits or runs, or the list in a parameter, is not reading what is stored, and of
        // nodes there are few.
        let short = |step: &str| {
            [
                "INDEX tasks_due",
                "INDEX callbacks_due",
                "INDEX chats_open",
                "SCAN nodes",
                "SCAN json_each",
            ]
            .iter()
            .any(|known| step.contains(known))
        };
        let whole = |step: &String| {
            (step.starts_with("SCAN") && !short(step)) || step.contains("TEMP B-TREE")
        };
        if steps.iter().any(whole) {
            wrong.push(format!("{}\n  {}", sql.sqlite, steps.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
