//! Concurrent submissions on one node and on two: nobody overdraws.

use std::time::Duration;

use tollgate_store::{DatabaseLocation, Rejection, Store, SubmitOutcome};

use crate::databases::{Db, on_both};
use crate::fixtures::{TestAccount, account, assert_clean, submit, task, user_sums, with_key};

on_both!(
    concurrent_submissions_never_overdraw_and_share_commits,
    two_nodes_never_overdraw,
    two_nodes_with_many_accounts_do_not_deadlock,
);

/// Submits `each` tasks of 0.01 on every store concurrently. Returns how many were accepted.
async fn run_concurrently(stores: &[&Store], ann: &TestAccount, each: usize) -> usize {
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..each {
        for store in stores {
            let (store, new) = ((*store).clone(), task(ann, 1, "0.01"));
            running.spawn(async move { store.submit_task(new).await.unwrap() });
        }
    }
    let results = running.join_all().await;
    let rejected = |r: &SubmitOutcome| {
        matches!(
            r,
            SubmitOutcome::Rejected(Rejection::InsufficientBalance { .. })
        )
    };
    for result in &results {
        assert!(
            *result == SubmitOutcome::Accepted || rejected(result),
            "{result:?}"
        );
    }
    results
        .iter()
        .filter(|r| **r == SubmitOutcome::Accepted)
        .count()
}

async fn concurrent_submissions_never_overdraw_and_share_commits(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1.379").await;
    let (commits, operations) = (store.stats().commits(), store.stats().operations());
    assert_eq!(run_concurrently(&[&store], &ann, 500).await, 137);
    let operations = store.stats().operations() - operations;
    let commits = store.stats().commits() - commits;
    assert_eq!(operations, 500);
    assert!(commits * 8 <= operations, "{commits} commits");
    assert_eq!(user_sums(&store, &ann).await, ["1.379", "1.37", "0"]);
}

async fn two_nodes_never_overdraw(db: &Db) {
    let (store, other) = (db.open().await, db.open().await);
    let ann = account(&store, "ann", "1.379").await;
    assert_eq!(run_concurrently(&[&store, &other], &ann, 250).await, 137);
    assert_eq!(user_sums(&other, &ann).await, ["1.379", "1.37", "0"]);
}

async fn two_nodes_with_many_accounts_do_not_deadlock(db: &Db) {
    let (store, other) = (db.open().await, db.open().await);
    let mut accounts = Vec::new();
    for name in ["ann", "bob", "cid", "dee"] {
        let first = account(&store, name, "10").await;
        let user = store.user(&first.user_id).await.unwrap().unwrap();
        accounts.push(with_key(&store, user, Some("2")).await);
        accounts.push(first);
    }
    let mut running = tokio::task::JoinSet::new();
    for round in 0..30 {
        for i in 0..accounts.len() {
            // Each node meets the accounts in another order.
            let (node, i) = if round % 2 == 0 {
                (&store, i)
            } else {
                (&other, accounts.len() - 1 - i)
            };
            let (node, new) = (node.clone(), task(&accounts[i], 1, "0.01"));
            running.spawn(async move { submit(&node, new).await });
        }
    }
    assert_eq!(running.join_all().await.len(), 240);
    for ann in &accounts {
        assert_eq!(user_sums(&store, ann).await, ["10", "0.6", "0"]);
    }
}

#[test]
fn a_write_waits_for_the_write_lock_of_another_process() {
    crate::databases::on_sqlite(async |db: &Db| {
        let store = db.open().await;
        let ann = account(&store, "ann", "1").await;
        let DatabaseLocation::Sqlite(path) = &db.location else {
            unreachable!("the test runs on SQLite")
        };
        let other = rusqlite::Connection::open(path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let waiting = tokio::spawn({
            let (store, new) = (store.clone(), task(&ann, 1, "0.5"));
            async move { store.submit_task(new).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!waiting.is_finished());
        // Readers do not wait.
        assert_eq!(user_sums(&store, &ann).await, ["1", "0", "0"]);
        other
            .execute_batch("UPDATE users SET balance = balance; COMMIT")
            .unwrap();
        assert_eq!(waiting.await.unwrap(), Ok(SubmitOutcome::Accepted));
        assert_clean(&store).await;
    });
}
