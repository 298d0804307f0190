//! Many at once, on one node and on two: nobody overdraws.

use std::time::Duration;

use tollgate_store::{Location, Refusal, Store, Submitted};

use crate::db::{Db, on_both};
use crate::world::{Payer, assert_clean, payer, submit, sums, task, with_key};

on_both!(
    five_hundred_at_once_share_what_there_is,
    two_nodes_share_what_there_is,
    two_nodes_with_many_payers_do_not_wait_in_a_circle,
);

/// Submits `each` tasks of 0.01 on every store at once; answers how many were taken.
async fn rush(stores: &[&Store], ann: &Payer, each: usize) -> usize {
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..each {
        for store in stores {
            let (store, new) = ((*store).clone(), task(ann, 1, "0.01"));
            running.spawn(async move { store.submit(new).await.unwrap() });
        }
    }
    let results = running.join_all().await;
    let refused = |r: &Submitted| matches!(r, Submitted::Refused(Refusal::UserBalance { .. }));
    for result in &results {
        assert!(
            *result == Submitted::Accepted || refused(result),
            "{result:?}"
        );
    }
    results
        .iter()
        .filter(|r| **r == Submitted::Accepted)
        .count()
}

async fn five_hundred_at_once_share_what_there_is(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1.379").await;
    let (commits, operations) = (store.stats().commits(), store.stats().operations());
    assert_eq!(rush(&[&store], &ann, 500).await, 137);
    let operations = store.stats().operations() - operations;
    let commits = store.stats().commits() - commits;
    assert_eq!(operations, 500);
    assert!(commits * 8 <= operations, "{commits} commits");
    assert_eq!(sums(&store, &ann).await, ["1.379", "1.37", "0"]);
    assert_clean(&store).await;
}

async fn two_nodes_share_what_there_is(db: &Db) {
    let (store, other) = (db.open().await, db.open().await);
    let ann = payer(&store, "ann", "1.379").await;
    assert_eq!(rush(&[&store, &other], &ann, 250).await, 137);
    assert_eq!(sums(&other, &ann).await, ["1.379", "1.37", "0"]);
    assert_clean(&store).await;
}

async fn two_nodes_with_many_payers_do_not_wait_in_a_circle(db: &Db) {
    let (store, other) = (db.open().await, db.open().await);
    let mut payers = Vec::new();
    for name in ["ann", "bob", "cid", "dee"] {
        let first = payer(&store, name, "10").await;
        let user = store.user(&first.user_id).await.unwrap().unwrap();
        payers.push(with_key(&store, user, Some("2")).await);
        payers.push(first);
    }
    let mut running = tokio::task::JoinSet::new();
    for round in 0..30 {
        for i in 0..payers.len() {
            // Each node meets the payers in another order.
            let (node, i) = if round % 2 == 0 {
                (&store, i)
            } else {
                (&other, payers.len() - 1 - i)
            };
            let (node, new) = (node.clone(), task(&payers[i], 1, "0.01"));
            running.spawn(async move { submit(&node, new).await });
        }
    }
    assert_eq!(running.join_all().await.len(), 240);
    for ann in &payers {
        assert_eq!(sums(&store, ann).await, ["10", "0.6", "0"]);
    }
    assert_clean(&store).await;
}

#[test]
fn a_write_waits_for_another_process_to_end_its_own() {
    crate::db::on_sqlite(async |db: &Db| {
        let store = db.open().await;
        let ann = payer(&store, "ann", "1").await;
        let Location::Sqlite(path) = &db.location else {
            unreachable!("the test runs on SQLite")
        };
        let other = rusqlite::Connection::open(path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let waiting = tokio::spawn({
            let (store, new) = (store.clone(), task(&ann, 1, "0.5"));
            async move { store.submit(new).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!waiting.is_finished());
        // Readers do not wait.
        assert_eq!(sums(&store, &ann).await, ["1", "0", "0"]);
        other
            .execute_batch("UPDATE users SET balance = balance; COMMIT")
            .unwrap();
        assert_eq!(waiting.await.unwrap(), Ok(Submitted::Accepted));
        assert_clean(&store).await;
    });
}
