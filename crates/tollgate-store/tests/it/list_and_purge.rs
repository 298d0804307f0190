//! A user's list of tasks in pages, and purging old tasks.

use tollgate_core::clock::DAY;
use tollgate_store::Store;

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, assert_clean, claim_tasks, delivered, finish, submit, task, task_at,
    unlimited_account, user_sums, with_idempotency_key,
};

on_both!(
    pages_are_newest_first_and_complete,
    purging_tasks_keeps_the_charges,
    a_purge_deletes_at_most_500_old_tasks_at_a_time,
);

async fn all_pages(store: &Store, user_id: &str, limit: usize) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = store
            .list_tasks(user_id, limit, cursor.as_deref())
            .await
            .unwrap();
        found.extend(page.tasks.into_iter().map(|task| task.id));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return found,
        }
    }
}

async fn pages_are_newest_first_and_complete(db: &Db) {
    let store = db.open().await;
    let (ann, bob) = (
        account(&store, "ann", "1").await,
        account(&store, "bob", "1").await,
    );
    assert!(all_pages(&store, &ann.user_id, 10).await.is_empty());
    let mut ids = Vec::new();
    for i in 0..105 {
        ids.push(submit(&store, task_at(&ann, 1, "0", NOW + i / 3)).await);
        if i % 10 == 0 {
            submit(&store, task_at(&bob, 1, "0", NOW + i / 3)).await;
        }
    }
    ids.sort();
    ids.reverse();
    for limit in [1, 7, 35, 105, 100] {
        assert_eq!(all_pages(&store, &ann.user_id, limit).await, ids, "{limit}");
    }
    let page = |limit, cursor| store.list_tasks(&ann.user_id, limit, cursor);
    assert_eq!(page(5000, None).await.unwrap().tasks.len(), 100);
    assert_eq!(page(0, None).await.unwrap().tasks.len(), 1);
    assert!(page(9, Some("nonsense")).await.unwrap().tasks.is_empty());
    assert!(page(9, Some("' OR 1=1 --")).await.unwrap().tasks.is_empty());
    assert_eq!(all_pages(&store, &bob.user_id, 4).await.len(), 11);
}

async fn purging_tasks_keeps_the_charges(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "10").await;
    for i in 0..30 {
        let new = task_at(&ann, 1, "0.1", NOW + i);
        submit(&store, with_idempotency_key(new, &format!("k{i}"), "f")).await;
    }
    for leased in claim_tasks(&store, NOW + 100).await {
        finish(&store, &leased, delivered(1), NOW + 200).await;
    }
    let running = submit(&store, task_at(&ann, 1, "0.1", NOW + 300)).await;
    let before = user_sums(&store, &ann).await;
    assert_eq!(before, ["7", "0.1", "3"]);
    assert_eq!(store.purge_expired(NOW + 199, NOW + 400).await, Ok(0));
    assert_eq!(store.purge_expired(NOW + 1000, NOW + 1000).await, Ok(30));
    assert_eq!(store.purge_expired(NOW + 1000, NOW + 1000).await, Ok(0));
    assert_eq!(all_pages(&store, &ann.user_id, 9).await, [running]);
    assert_eq!(db.number("SELECT COUNT(*) FROM attempts").await, 0);
    assert_eq!(db.number("SELECT COUNT(*) FROM charges").await, 31);
    assert_eq!(user_sums(&store, &ann).await, before);
    assert_clean(&store).await;
    // Idempotency records outlive their tasks until they expire.
    assert!(
        store
            .find_receipt(&ann.user_id, "k0", NOW + 1000)
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(store.purge_expired(0, NOW + DAY + 1000).await, Ok(30));
    assert_eq!(db.number("SELECT COUNT(*) FROM idempotency").await, 0);
}

async fn a_purge_deletes_at_most_500_old_tasks_at_a_time(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let slow = submit(&store, task(&ann, 1, "0")).await;
    for i in 1..620 {
        submit(&store, task_at(&ann, 1, "0", NOW + i)).await;
    }
    let mut all = Vec::new();
    loop {
        let some = claim_tasks(&store, NOW + 1000).await;
        if some.is_empty() {
            break;
        }
        all.extend(some);
    }
    for leased in all {
        let at = if leased.task.id == slow {
            NOW + 9000
        } else {
            NOW + 2000
        };
        finish(&store, &leased, delivered(1), at).await;
    }
    // At most 500 at a time.
    assert_eq!(store.purge_expired(NOW + 3000, NOW).await, Ok(500));
    assert_eq!(store.purge_expired(NOW + 3000, NOW).await, Ok(119));
    assert_eq!(store.purge_expired(NOW + 3000, NOW).await, Ok(0));
    assert_eq!(all_pages(&store, &ann.user_id, 9).await, [slow]);
}
