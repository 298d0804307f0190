//! Tests query plans on SQLite: a statement that runs frequently must not scan a table, however many rows it has.

use futures_util::FutureExt as _;

use crate::access_changes;
use crate::alerts::deliveries;
use crate::chats::orphans;
use crate::db::{Sql, Tx, migrate::migrate, sqlite::Transaction};
use crate::grants::upkeep;
use crate::ledger::{budgets, charges, chat_rows, chats, grants, refunds, reservations};
use crate::list_blocks::{self, build};
use crate::tail;
use crate::tasks::queue_table::QueueSql;
use crate::tasks::{claim, finish, lease, record, submit, trace};
use crate::usage::roll_up;
use crate::{attempts, keys, nodes, retention, totals, uploads, users, webhook_secrets, webhooks};

macro_rules! statements {
    ($($module:ident: $($name:ident)+;)+) => { &[$($(&$module::$name),+),+] };
}

/// The statements that run for every request, task or attempt, or in a loop.
const FREQUENT: &[&Sql] = statements! {
    access_changes: ACCESS_VERSION CHANGES_AFTER DELETE_OLD_CHANGES;
    deliveries: IS_DUE;
    attempts: END_ATTEMPT END_OPEN_ATTEMPTS ENDED_ATTEMPT FAILED_CHANNELS LAST_ATTEMPT LAST_QUEUED_ATTEMPT
        OPEN_QUEUED_ATTEMPTS SET_PROVIDER_JOB;
    orphans: DELETE_NODE HEARTBEAT OLD_NODES OPEN_CHAT ORPHANED_CHATS STILL_ORPHANED;
    budgets: LOAD_BUDGETS SET_SPENT;
    grants: DELETE_GRANT DELETE_GRANT_OF_DEAD_NODE LOWER_GRANT RAISE_GRANT;
    upkeep: REQUESTED_GRANTS GRANTS_OF_USER ORPHANED_GRANTS;
    list_blocks: COUNT_REMOVAL LAST_ID REMOVE_BLOCKS_FROM;
    build: CLAIM_VERSION NEXT_CHATS NEXT_TASKS STATE;
    keys: KEY_BY_HASH KEY_BY_ID KEY_BY_PREVIOUS_HASH;
    charges: CLOSE_CHARGE READ_OPEN_CHARGE;
    chat_rows: READ_CHAT;
    chats: CLOSE_CHAT;
    refunds: COUNT_REFUNDS READ_CHARGE READ_CHAT_CHARGE SET_CHARGE_REFUNDED SET_CHAT_REFUNDED SET_TASK_REFUNDED;
    reservations: READ_HEADROOM;
    retention: CHATS_PURGED_UNTIL CLEAR_CHAT_DETAILS DELETE_ATTEMPTS DELETE_DELIVERY_ATTEMPTS
        DELETE_IDEMPOTENCY_RECORDS DELETE_TASK DELETE_WEBHOOK OLD_CHATS OLD_TASKS SET_CHATS_PURGED_UNTIL;
    finish: DEQUEUE_TASK ENDED_TASK;
    claim: DUE_TASKS EXPIRE_LEASES FIRST_LEASE_END;
    nodes: END_NODE LEAD OLDEST_COMPATIBLE;
    lease: NEXT_DUE;
    record: TASK_BY_ID TASKS_OF_USER;
    submit: IDEMPOTENCY_RECORD TASK_EXISTS;
    tail: EVENTS_AFTER WATCHED_UNTIL;
    trace: TASK_TRACE;
    totals: WAITING_WEBHOOKS_OF_USER;
    uploads: ADD_BYTES UPLOADED_BYTES;
    roll_up: IS_PENDING;
    users: USER_BY_ID USER_BY_NAME;
    webhook_secrets: WEBHOOK_SECRET;
    webhooks: DUE_WEBHOOKS GIVE_UP_WEBHOOK LEASE_WEBHOOK LOCK_WEBHOOK NEXT_WEBHOOK_DUE_AT RECEIVERS
        RELEASE_ALL_WEBHOOKS RETRY_WEBHOOK SET_DELIVERED WEBHOOK_LOG;
};

/// Frequent statements on the queue. On SQLite the queue is always the table `queue`.
const QUEUE: &[&QueueSql] = &[
    &attempts::LOCK_LEASED_TASK,
    &attempts::RETRY_TASK,
    &attempts::SET_QUEUED_ATTEMPT,
    &finish::END_TASK,
    &finish::LOCK_TASK,
    &finish::OVERDUE_TASKS,
    &claim::LEASE_TASK,
    &claim::QUEUE_KEYS,
    &lease::NEXT_DUE_AT,
    &lease::POSTPONE_TASK,
    &lease::RELEASE_ALL_LEASES,
    &lease::RELEASE_LEASES,
    &lease::RENEW_LEASE,
    &lease::SET_PROGRESS,
    &totals::UNFINISHED_OF_USER,
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
        .expect("SQLite returns without waiting")
        .expect("the schema is valid");
    let mut scans = Vec::new();
    let of_queue = QUEUE.iter().map(|sql| &sql.queue);
    for sql in FREQUENT.iter().copied().chain(of_queue) {
        let steps = plan(&conn, sql);
        // Indices of unfinished rows, the nodes and the list in a parameter have few rows.
        let is_short = |step: &str| {
            [
                "INDEX queue_due",
                "INDEX queue_leased",
                "INDEX callbacks_due",
                "INDEX callbacks_of_user",
                "INDEX queue_by_deadline",
                "INDEX chats_open",
                "SCAN nodes",
                "SCAN queue_keys",
                "SCAN counted",
                "SCAN waiting_receivers",
                "SCAN CONSTANT ROW",
                "SCAN json_each",
                "SCAN usage_pending",
                "SCAN g",
                "SCAN b LEFT-JOIN",
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
