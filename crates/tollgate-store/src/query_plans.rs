//! Query plans on SQLite: a statement that runs all day must not scan a table, however many rows it has.

use futures_util::FutureExt as _;

use crate::chats::orphans;
use crate::db::{Sql, Tx, migrate::migrate, sqlite::Transaction};
use crate::ledger::{charges, chat_rows, chats, entries, reservations};
use crate::tasks::{finish, lease, record, submit};
use crate::{attempts, keys, retention, totals, users, webhook_secrets, webhooks};

/// The statements that run for every request, task or attempt, or in a loop.
const FREQUENT: &[&Sql] = &[
    &attempts::END_ATTEMPT,
    &attempts::END_OPEN_ATTEMPTS,
    &attempts::ENDED_ATTEMPT,
    &attempts::FAILED_CHANNELS,
    &attempts::LAST_ATTEMPT,
    &attempts::LAST_QUEUED_ATTEMPT,
    &attempts::LOCK_LEASED_TASK,
    &attempts::OPEN_QUEUED_ATTEMPTS,
    &attempts::RETRY_TASK,
    &attempts::SET_PROVIDER_JOB,
    &attempts::SET_QUEUED_ATTEMPT,
    &orphans::DELETE_NODE,
    &orphans::HEARTBEAT,
    &orphans::OLD_NODES,
    &orphans::OPEN_CHAT,
    &orphans::ORPHANED_CHATS,
    &orphans::STILL_ORPHANED,
    &keys::KEY_BY_HASH,
    &keys::KEY_BY_ID,
    &charges::CLOSE_CHARGE,
    &charges::READ_OPEN_CHARGE,
    &chat_rows::READ_CHAT,
    &chats::CLOSE_CHAT,
    &entries::ENTRY_EXISTS,
    &reservations::READ_HEADROOM,
    &retention::CHATS_PURGED_UNTIL,
    &retention::CLEAR_CHAT_DETAILS,
    &retention::DELETE_ATTEMPTS,
    &retention::DELETE_DELIVERY_ATTEMPTS,
    &retention::DELETE_IDEMPOTENCY_RECORDS,
    &retention::DELETE_TASK,
    &retention::DELETE_WEBHOOK,
    &retention::OLD_CHATS,
    &retention::OLD_TASKS,
    &retention::SET_CHATS_PURGED_UNTIL,
    &finish::END_TASK,
    &finish::LOCK_TASK,
    &lease::DUE_TASKS,
    &lease::LEASE_TASK,
    &lease::NEXT_DUE_AT,
    &lease::POSTPONE_TASK,
    &lease::RELEASE_ALL_LEASES,
    &lease::RELEASE_LEASES,
    &lease::RENEW_LEASE,
    &lease::SET_PROGRESS,
    &record::TASK_BY_ID,
    &record::TASKS_OF_USER,
    &submit::IDEMPOTENCY_RECORD,
    &submit::TASK_EXISTS,
    &totals::UNFINISHED,
    &users::ACCESS_VERSION,
    &users::USER_BY_ID,
    &users::USER_BY_NAME,
    &webhook_secrets::WEBHOOK_SECRET,
    &webhooks::DUE_WEBHOOKS,
    &webhooks::GIVE_UP_WEBHOOK,
    &webhooks::LEASE_WEBHOOK,
    &webhooks::LOCK_WEBHOOK,
    &webhooks::NEXT_WEBHOOK_DUE_AT,
    &webhooks::RELEASE_ALL_WEBHOOKS,
    &webhooks::RETRY_WEBHOOK,
    &webhooks::SET_DELIVERED,
    &webhooks::UNCLAIM_WEBHOOK,
    &webhooks::WEBHOOK_LOG,
];

fn plan(conn: &rusqlite::Connection, sql: &Sql) -> Vec<String> {
    let text = format!("EXPLAIN QUERY PLAN {}", sql.sqlite);
    let mut statement = conn.prepare(&text).expect("the statement is valid");
    let unbound = vec![rusqlite::types::Null; statement.parameter_count()];
    let rows = statement.query_map(rusqlite::params_from_iter(unbound), |row| row.get("detail"));
    rows.and_then(Iterator::collect).expect("a plan")
}

#[test]
fn no_frequent_statement_scans_a_table() {
    let conn = rusqlite::Connection::open_in_memory().expect("a database");
    migrate(&mut Tx::Sqlite(Transaction::new(&conn)))
        .now_or_never()
        .expect("SQLite answers without waiting")
        .expect("the schema is valid");
    let mut scans = Vec::new();
    for sql in FREQUENT {
        let steps = plan(&conn, sql);
        // The indices of unfinished rows, the nodes and the list in a parameter are short.
        let is_short = |step: &str| {
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
        let is_scan = |step: &String| {
            (step.starts_with("SCAN") && !is_short(step)) || step.contains("TEMP B-TREE")
        };
        if steps.iter().any(is_scan) {
            scans.push(format!("{}\n  {}", sql.sqlite, steps.join("\n  ")));
        }
    }
    assert!(scans.is_empty(), "{}", scans.join("\n\n"));
}
