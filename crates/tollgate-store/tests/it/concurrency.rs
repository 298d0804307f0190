//! Concurrent submissions on one node and on two: nobody overdraws, and a rejected submission makes no other one fail.

use std::time::Duration;

use tollgate_store::{DatabaseLocation, Rejection, Store, StoreError, SubmitOutcome};

use crate::databases::{Db, on_both, on_sqlite};
use crate::fixtures::{
    NOW, TestAccount, account, all, assert_clean, claim_tasks, submit, task, unlimited_account,
    user_sums, with_key,
};

on_both!(
    concurrent_submissions_never_overdraw_and_share_commits,
    two_nodes_never_overdraw,
    two_nodes_with_many_accounts_do_not_deadlock,
    an_operation_that_overflows_does_not_fail_its_batch,
);

/// Submits `each` tasks of 0.01 on every store concurrently. Returns how many were accepted.
async fn submit_concurrently(stores: &[&Store], ann: &TestAccount, each: usize) -> usize {
    let stores = stores.iter().cycle().take(each * stores.len());
    let new = stores.map(|store| ((*store).clone(), task(ann, 1, "0.01")));
    let results = all(new.map(|(store, new)| async move { store.submit_task(new).await.unwrap() }));
    let is_accepted = |result: &SubmitOutcome| match result {
        SubmitOutcome::Accepted => true,
        SubmitOutcome::Rejected(Rejection::InsufficientBalance { .. }) => false,
        other => panic!("{other:?}"),
    };
    results.await.iter().filter(|r| is_accepted(r)).count()
}

async fn concurrent_submissions_never_overdraw_and_share_commits(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1.379").await;
    let (commits, operations) = (store.stats().commits(), store.stats().operations());
    assert_eq!(submit_concurrently(&[&store], &ann, 500).await, 137);
    let operations = store.stats().operations() - operations;
    let commits = store.stats().commits() - commits;
    assert_eq!(operations, 500);
    assert!(commits * 8 <= operations, "{commits} commits");
    assert_eq!(user_sums(&store, &ann).await, ["1.379", "1.37", "0"]);
}

async fn two_nodes_never_overdraw(db: &Db) {
    let (store, other) = (db.open().await, db.open().await);
    let ann = account(&store, "ann", "1.379").await;
    assert_eq!(submit_concurrently(&[&store, &other], &ann, 250).await, 137);
    assert_eq!(user_sums(&other, &ann).await, ["1.379", "1.37", "0"]);
}

async fn two_nodes_with_many_accounts_do_not_deadlock(db: &Db) {
    let (store, other) = (db.open().await, db.open().await);
    let mut accounts = Vec::new();
    for name in ["ann", "bob", "cid", "dee"] {
        let first = account(&store, name, "10").await;
        accounts.push(with_key(&store, name, Some("2")).await);
        accounts.push(first);
    }
    // Each node gets the accounts in another order.
    let there = accounts.iter().map(|account| (&store, account));
    let back = accounts.iter().rev().map(|account| (&other, account));
    let orders = (0..15).flat_map(|_| there.clone().chain(back.clone()));
    let new = orders.map(|(node, account)| (node.clone(), task(account, 1, "0.01")));
    let submitted = all(new.map(|(node, new)| async move { submit(&node, new).await })).await;
    assert_eq!(submitted.len(), 240);
    for ann in &accounts {
        assert_eq!(user_sums(&store, ann).await, ["10", "0.6", "0"]);
    }
}

/// Holds of an unlimited user whose sum overflows: the last holds are rejected by an arithmetic error in the middle of a batch with operations of
/// another user.
async fn an_operation_that_overflows_does_not_fail_its_batch(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let bob = account(&store, "bob", "100").await;
    let huge = || task(&ann, 1, "1000000000");
    for _ in 0..9 {
        submit(&store, huge()).await;
    }
    let results = all((0..60).map(|i| {
        let overflows = i % 20 == 7;
        let new = if overflows {
            huge()
        } else {
            task(&bob, 1, "1")
        };
        let store = store.clone();
        async move { (overflows, store.submit_task(new).await) }
    }));
    for (overflows, result) in results.await {
        if overflows {
            assert!(matches!(result, Err(StoreError::Broken(_))), "{result:?}");
        } else {
            assert_eq!(result, Ok(SubmitOutcome::Accepted));
        }
    }
    assert_eq!(user_sums(&store, &bob).await, ["100", "57", "0"]);
    assert_eq!(user_sums(&store, &ann).await, ["0", "9000000000", "0"]);
    assert_eq!(claim_tasks(&store, NOW).await.len(), 66);
}

#[test]
fn a_write_waits_for_the_write_lock_of_another_process() {
    on_sqlite(async |db: &Db| {
        let store = db.open().await;
        let ann = account(&store, "ann", "1").await;
        let DatabaseLocation::Sqlite(path) = &db.location else {
            unreachable!("the test runs on SQLite")
        };
        let other = rusqlite::Connection::open(path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let (writer, new) = (store.clone(), task(&ann, 1, "0.5"));
        let waiting = tokio::spawn(async move { writer.submit_task(new).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!waiting.is_finished());
        // Reads do not wait for the write.
        assert_eq!(user_sums(&store, &ann).await, ["1", "0", "0"]);
        let change = "UPDATE users SET balance = balance; COMMIT";
        other.execute_batch(change).unwrap();
        assert_eq!(waiting.await.unwrap(), Ok(SubmitOutcome::Accepted));
        assert_clean(&store).await;
    });
}
