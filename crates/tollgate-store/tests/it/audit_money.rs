//! The audit finds every changed number of money, and states that contradict it.

use tollgate_core::{Amount, TaskState};
use tollgate_store::{CancelOutcome, Charge, Store};

use crate::audit_chats;
use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, assert_clean, claim_one, delivered, failed, finish, start_attempt, submit, task,
    unlimited_account, with_idempotency_key,
};

on_both!(
    every_changed_number_is_a_violation,
    deleted_and_duplicated_rows_are_violations,
    contradicting_states_are_violations,
    an_empty_database_has_no_violations,
);

/// Every column of numbers that says something about money, and its table's key.
const MONEY: &[(&str, &[&str], &str)] = &[
    ("users", &["unlimited", "balance", "held", "used"], "id"),
    ("keys", &["quota", "held", "used"], "id"),
    (
        "charges",
        &[
            "price",
            "per",
            "units",
            "held",
            "units_settled",
            "settled",
            "released",
            "seal",
        ],
        "id",
    ),
    (
        "chats",
        &[
            "input_price",
            "cached_input_price",
            "cache_write_price",
            "output_price",
            "reasoning_price",
            "input",
            "cached_input",
            "cache_write",
            "output",
            "reasoning",
            "estimated",
            "held",
            "settled",
            "forgiven",
            "seal",
        ],
        "id",
    ),
    ("ledger", &["amount"], "ref || '/' || kind"),
    ("tasks", &["cost", "state"], "id"),
];

/// Fills the database: tasks in every state, also free ones and ones whose cost rounds to 0; chats in every state.
pub(crate) async fn live(store: &Store) {
    let ann = account(store, "ann", "10").await;
    let bob = unlimited_account(store, "bob", Some("3")).await;
    for (i, account) in [&ann, &bob, &ann, &bob].into_iter().enumerate() {
        for price in ["0", "0.25"] {
            let mut new = task(account, 2, price);
            if i > 1 {
                // Less than half a nano: it costs nothing, whatever the price.
                new.charge = Charge {
                    price: Amount::from_nanos(1250),
                    per: 1_000_000,
                    units: 2,
                };
            }
            let key = format!("{i} {price}");
            submit(store, with_idempotency_key(new, &key, "f")).await;
            let leased = claim_one(store, NOW).await;
            start_attempt(store, &leased, NOW).await.unwrap();
            match i {
                0 => drop(finish(store, &leased, delivered(1), NOW).await),
                1 => drop(finish(store, &leased, failed(), NOW).await),
                2 => drop(finish(store, &leased, delivered(2), NOW).await),
                _ => assert_eq!(
                    store.cancel_task(&leased.task, NOW).await,
                    Ok(CancelOutcome::Cancelled)
                ),
            }
        }
    }
    submit(store, task(&ann, 3, "0.5")).await;
    assert_eq!(
        claim_one(store, NOW).await.task.state,
        TaskState::InProgress
    );
    submit(store, task(&bob, 1, "0.5")).await;
    submit(store, task(&bob, 1, "0")).await;
    store
        .credit_user("ann", "-1".parse().unwrap(), None, NOW)
        .await
        .unwrap();
    audit_chats::live(store, [&ann, &bob]).await;
}

/// Runs `change`, asserts that the audit finds a violation, runs `back`, asserts that it finds none.
pub(crate) async fn assert_violation_until_undone(
    db: &Db,
    store: &Store,
    change: &str,
    back: &str,
) {
    seen(db, store, change).await;
    db.raw(back).await;
    let violations = store.audit().await.unwrap();
    assert!(violations.is_empty(), "{back}: {violations:#?}");
}

/// Runs `change` and asserts that the audit finds a violation.
async fn seen(db: &Db, store: &Store, change: &str) {
    db.raw(change).await;
    let violations = store.audit().await.unwrap();
    assert!(
        !violations.is_empty(),
        "not assert_violation_until_undone: {change}"
    );
    for violation in violations {
        assert!(!violation.subject.is_empty(), "{change}: {violation:?}");
    }
}

async fn every_changed_number_is_a_violation(db: &Db) {
    let store = db.open().await;
    live(&store).await;
    assert_clean(&store).await;
    for (table, columns, key) in MONEY {
        let keys = db.raw(&format!("SELECT {key} FROM {table}")).await.concat();
        for column in *columns {
            for id in keys.iter().flatten() {
                let row = format!("{key} = '{id}' AND {column} IS NOT NULL");
                let there = format!("SELECT COUNT(*) FROM {table} WHERE {row}");
                if db.number(&there).await == 0 {
                    continue;
                }
                let set = |by| format!("UPDATE {table} SET {column} = {column} {by} WHERE {row}");
                seen(db, &store, &set("+ 1")).await;
                seen(db, &store, &set("- 2")).await;
                db.raw(&set("+ 1")).await;
            }
            assert_clean(&store).await;
        }
    }
}

async fn deleted_and_duplicated_rows_are_violations(db: &Db) {
    let store = db.open().await;
    live(&store).await;
    assert_clean(&store).await;
    let entries = db
        .raw("SELECT ref || '/' || kind FROM ledger")
        .await
        .concat();
    db.raw("CREATE TABLE kept AS SELECT * FROM ledger").await;
    for entry in entries.iter().flatten() {
        let row = format!("WHERE ref || '/' || kind = '{entry}'");
        let delete = format!("DELETE FROM ledger {row}");
        let restore = format!("INSERT INTO ledger SELECT * FROM kept {row}");
        assert_violation_until_undone(db, &store, &delete, &restore).await;
        let columns = "kind, user_id, key_id, amount, note, at FROM kept";
        let double = format!("INSERT INTO ledger SELECT ref || 'x', {columns} {row}");
        let single = "DELETE FROM ledger WHERE ref NOT IN (SELECT ref FROM kept)";
        assert_violation_until_undone(db, &store, &double, single).await;
    }
    for table in ["charges", "users", "keys"] {
        let ids = db.raw(&format!("SELECT id FROM {table}")).await.concat();
        db.raw(&format!(
            "CREATE TABLE kept_{table} AS SELECT * FROM {table}"
        ))
        .await;
        for id in ids.iter().flatten() {
            let delete = format!("DELETE FROM {table} WHERE id = '{id}'");
            let restore =
                format!("INSERT INTO {table} SELECT * FROM kept_{table} WHERE id = '{id}'");
            assert_violation_until_undone(db, &store, &delete, &restore).await;
        }
    }
    // A chat that cost nothing has no entry.
    let ids = db
        .raw("SELECT DISTINCT ref FROM entries WHERE ref LIKE 'chat_%'")
        .await
        .concat();
    assert_eq!(ids.len(), 6);
    db.raw("CREATE TABLE kept_chats AS SELECT * FROM chats")
        .await;
    for id in ids.iter().flatten() {
        let delete = format!("DELETE FROM chats WHERE id = '{id}'");
        let restore = format!("INSERT INTO chats SELECT * FROM kept_chats WHERE id = '{id}'");
        assert_violation_until_undone(db, &store, &delete, &restore).await;
        db.raw("UPDATE kept_chats SET id = id || 'x'").await;
        let double = format!("INSERT INTO chats SELECT * FROM kept_chats WHERE id = '{id}x'");
        let single = format!("DELETE FROM chats WHERE id = '{id}x'");
        assert_violation_until_undone(db, &store, &double, &single).await;
        db.raw("UPDATE kept_chats SET id = SUBSTR(id, 1, LENGTH(id) - 1)")
            .await;
    }
    let open = "id IN (SELECT id FROM charges WHERE closed_at IS NULL)";
    db.raw(&format!(
        "CREATE TABLE kept_tasks AS SELECT * FROM tasks WHERE {open}"
    ))
    .await;
    let (delete, restore) = (
        format!("DELETE FROM tasks WHERE {open}"),
        "INSERT INTO tasks SELECT * FROM kept_tasks",
    );
    assert_violation_until_undone(db, &store, &delete, restore).await;
}

async fn contradicting_states_are_violations(db: &Db) {
    let store = db.open().await;
    live(&store).await;
    assert_clean(&store).await;
    let first =
        |state: i64| format!("WHERE id = (SELECT MIN(id) FROM tasks WHERE state = {state})");
    let (completed, failed, waiting) = (first(2), first(3), first(0));
    for (table, set, row) in [
        ("tasks", "ended_at = NULL", completed.as_str()),
        ("tasks", "ended_at = 1", waiting.as_str()),
        ("tasks", "result = NULL", completed.as_str()),
        ("tasks", "result = '{\"files\":[]}'", completed.as_str()),
        ("tasks", "result = 'no JSON'", completed.as_str()),
        ("tasks", "result = '{}'", failed.as_str()),
        ("tasks", "error_code = NULL", failed.as_str()),
        ("tasks", "error_code = 'x'", waiting.as_str()),
        ("tasks", "progress = 101", waiting.as_str()),
        ("tasks", "owner = 'w'", waiting.as_str()),
        ("tasks", "user_id = 'user_x'", waiting.as_str()),
        ("charges", "closed_at = NULL", completed.as_str()),
        ("charges", "settled = NULL", completed.as_str()),
        ("charges", "closed_at = 1", waiting.as_str()),
        ("charges", "key_id = 'key_x'", completed.as_str()),
        ("idempotency", "task_id = 'task_x'", "WHERE key = '0 0'"),
        ("keys", "quota = NULL", "WHERE quota IS NOT NULL"),
        ("keys", "quota = 5", "WHERE quota IS NULL"),
        ("attempts", "ended_at = NULL", "WHERE outcome = 'cancelled'"),
        ("ledger", "kind = 'credit'", "WHERE kind = 'hold'"),
    ] {
        let changed = set.split(' ').next().unwrap();
        let key = if table == "attempts" { "task_id" } else { "id" };
        let rows = if table == "ledger" {
            db.raw("SELECT ref FROM ledger WHERE kind = 'hold' AND amount > 0 LIMIT 1")
                .await
        } else if table == "idempotency" {
            vec![vec![Some(String::new())]]
        } else {
            db.raw(&format!("SELECT {key} FROM {table} {row} LIMIT 1"))
                .await
        };
        let id = rows.concat()[0].clone().unwrap();
        let one = match table {
            "ledger" => format!("WHERE ref = '{id}' AND (kind = 'hold' OR kind = 'credit')"),
            "idempotency" => row.to_owned(),
            _ => format!("WHERE {key} = '{id}'"),
        };
        let old = db
            .raw(&format!("SELECT {changed} FROM {table} {one}"))
            .await
            .concat();
        let old = match &old[0] {
            None => "NULL".to_owned(),
            Some(text) if text.parse::<i64>().is_ok() => text.clone(),
            Some(text) => format!("'{text}'"),
        };
        let change = format!("UPDATE {table} SET {set} {one}");
        let back = format!("UPDATE {table} SET {changed} = {old} {one}");
        assert_violation_until_undone(db, &store, &change, &back).await;
    }
}

async fn an_empty_database_has_no_violations(db: &Db) {
    drop(db.open().await);
}
