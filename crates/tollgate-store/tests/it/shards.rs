//! Shards of the queue: a node claims the tasks of its own shards first, and those of others once they have been due for two seconds.

use std::collections::BTreeSet;

use tollgate_store::{FOREIGN_DELAY, Shards, Store};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, TestAccount, claim_one, claim_tasks, submit, task, task_at, unlimited_account,
};

on_both!(
    nodes_claim_their_own_shards_first_and_those_of_a_dead_node_later,
    tasks_of_a_node_without_shards_are_claimed_by_others,
    the_next_due_time_counts_only_tasks_that_the_node_may_claim,
);

/// Opens two nodes that share the shards of the queue.
async fn two_nodes(db: &Db) -> [Store; 2] {
    let nodes = [db.open().await, db.open().await];
    for (store, name) in nodes.iter().zip(["node_a", "node_b"]) {
        store.set_own_shards(Shards::of_node(name, ["node_a", "node_b"]));
    }
    nodes
}

/// Submits three tasks of each user to a node; returns their ids.
async fn submit_all(store: &Store, users: &[TestAccount]) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for user in users {
        for _ in 0..3 {
            ids.insert(submit(store, task(user, 1, "0")).await);
        }
    }
    ids
}

/// The ids of the tasks that a node claims at that time.
async fn claimed(store: &Store, now: i64) -> BTreeSet<String> {
    let tasks = claim_tasks(store, now).await.into_iter();
    tasks.map(|leased| leased.task.id).collect()
}

async fn nodes_claim_their_own_shards_first_and_those_of_a_dead_node_later(db: &Db) {
    let [a, b] = two_nodes(db).await;
    let mut users = Vec::new();
    for n in 0..8 {
        users.push(unlimited_account(&a, &format!("user{n}"), None).await);
    }
    let (of_a, of_b) = (submit_all(&a, &users).await, submit_all(&b, &users).await);
    let shards = "SELECT COUNT(DISTINCT shard) FROM queue";
    assert!(db.number(shards).await > 4);
    // Each node claims what it has accepted, whichever node claims first.
    assert_eq!(claimed(&a, NOW).await, of_a);
    assert_eq!(claimed(&a, NOW + FOREIGN_DELAY - 1).await, BTreeSet::new());
    assert_eq!(claimed(&b, NOW).await, of_b);
    // The other node claims what one node does not claim in time, although that one is alive.
    let left = submit_all(&b, &users).await;
    assert_eq!(claimed(&a, NOW + FOREIGN_DELAY - 1).await, BTreeSet::new());
    assert_eq!(claimed(&a, NOW + FOREIGN_DELAY).await, left);
    // Once a node counts as dead, its shards are claimed at once.
    let left = submit_all(&b, &users).await;
    a.set_own_shards(Shards::of_node("node_a", ["node_a"]));
    assert_eq!(claimed(&a, NOW).await, left);
}

async fn tasks_of_a_node_without_shards_are_claimed_by_others(db: &Db) {
    let [a, b] = two_nodes(db).await;
    a.set_own_shards(Shards::of_node("node_a", ["node_b"]));
    b.set_own_shards(Shards::of_node("node_b", ["node_b"]));
    let ann = unlimited_account(&a, "ann", None).await;
    assert_eq!(a.has_unfinished_tasks().await, Ok(false));
    let id = submit(&a, task(&ann, 1, "0")).await;
    assert!(claim_tasks(&a, NOW).await.is_empty());
    assert_eq!(claim_one(&b, NOW).await.task.id, id);
    // A claimed task does not wait, but is unfinished: after a crash nodes start carefully.
    assert_eq!(a.next_task_due_at().await, Ok(None));
    assert_eq!(a.has_unfinished_tasks().await, Ok(true));
}

async fn the_next_due_time_counts_only_tasks_that_the_node_may_claim(db: &Db) {
    let [a, b] = two_nodes(db).await;
    let ann = unlimited_account(&a, "ann", None).await;
    assert_eq!(a.next_task_due_at().await, Ok(None));
    submit(&a, task_at(&ann, 1, "0", NOW)).await;
    assert_eq!(a.next_task_due_at().await, Ok(Some(NOW)));
    assert_eq!(b.next_task_due_at().await, Ok(Some(NOW + FOREIGN_DELAY)));
    submit(&b, task_at(&ann, 1, "0", NOW + 500)).await;
    assert_eq!(b.next_task_due_at().await, Ok(Some(NOW + 500)));
    a.set_own_shards(Shards::ALL);
    assert_eq!(a.next_task_due_at().await, Ok(Some(NOW)));
}
