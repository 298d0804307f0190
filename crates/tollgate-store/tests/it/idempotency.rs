//! The same `Idempotency-Key` again.

use tollgate_core::clock::DAY;
use tollgate_store::Submitted;

use crate::db::{Db, on_both};
use crate::world::{
    NOW, amount, assert_clean, keyed, no_balance, payer, submit, sums, task, task_at,
};

on_both!(
    repeats_get_the_first_receipt,
    concurrent_repeats_are_one_task,
    another_body_is_refused,
    keys_belong_to_their_user,
    a_refused_request_uses_none_up,
    keys_are_forgotten_after_a_day,
);

async fn repeats_get_the_first_receipt(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    let first = keyed(task(&ann, 1, "0.6"), "k", "f");
    let receipt = first.idempotency.clone().unwrap().receipt;
    assert_eq!(store.receipt(&ann.user_id, "k", NOW).await, Ok(None));
    submit(&store, first).await;
    for _ in 0..3 {
        let again = store.submit(keyed(task(&ann, 1, "0.6"), "k", "f")).await;
        let receipt = receipt.clone();
        assert_eq!(again, Ok(Submitted::Repeated { receipt }));
    }
    let seen = store.receipt(&ann.user_id, "k", NOW).await;
    assert_eq!(seen, Ok(Some(("f".to_owned(), receipt))));
    assert_eq!(sums(&store, &ann).await, ["1", "0.6", "0"]);
    assert_eq!(db.number("SELECT COUNT(*) FROM tasks").await, 1);
    assert_clean(&store).await;
}

async fn concurrent_repeats_are_one_task(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = payer(&nodes[0], "ann", "1").await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..60 {
        let new = keyed(task(&ann, 1, "0.1"), &format!("k{}", i / 12), "f");
        let store = nodes[i % 2].clone();
        running.spawn(async move {
            let own = new.idempotency.clone().unwrap();
            match store.submit(new).await.unwrap() {
                Submitted::Accepted => (own.key, own.receipt, true),
                Submitted::Repeated { receipt } => (own.key, receipt, false),
                other => panic!("{other:?}"),
            }
        });
    }
    let mut results = running.join_all().await;
    assert_eq!(results.iter().filter(|(.., first)| *first).count(), 5);
    results.sort();
    results.dedup_by(|a, b| (&a.0, &a.1) == (&b.0, &b.1));
    assert_eq!(results.len(), 5, "one receipt for each key: {results:?}");
    assert_eq!(sums(&nodes[0], &ann).await, ["1", "0.5", "0"]);
    assert_clean(&nodes[1]).await;
}

async fn another_body_is_refused(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    submit(&store, keyed(task(&ann, 1, "0.1"), "k", "f")).await;
    let other = store.submit(keyed(task(&ann, 1, "0.1"), "k", "g")).await;
    assert_eq!(other, Ok(Submitted::KeyReused));
    assert_eq!(sums(&store, &ann).await, ["1", "0.1", "0"]);
    assert_clean(&store).await;
}

async fn keys_belong_to_their_user(db: &Db) {
    let store = db.open().await;
    let (ann, bob) = (
        payer(&store, "ann", "1").await,
        payer(&store, "bob", "1").await,
    );
    submit(&store, keyed(task(&ann, 1, "0.1"), "k", "f")).await;
    submit(&store, keyed(task(&bob, 1, "0.1"), "k", "g")).await;
    assert_eq!(sums(&store, &bob).await, ["1", "0.1", "0"]);
    assert_clean(&store).await;
}

async fn a_refused_request_uses_none_up(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "0").await;
    let refused = store.submit(keyed(task(&ann, 1, "1"), "k", "f")).await;
    assert_eq!(refused, Ok(no_balance("0")));
    store.credit("ann", amount("1"), None, NOW).await.unwrap();
    submit(&store, keyed(task(&ann, 1, "1"), "k", "g")).await;
    assert_clean(&store).await;
}

async fn keys_are_forgotten_after_a_day(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    submit(&store, keyed(task(&ann, 1, "0.1"), "k", "f")).await;
    let nearly = NOW + DAY - 1;
    let reused = store
        .submit(keyed(task_at(&ann, 1, "0.1", nearly), "k", "g"))
        .await;
    assert_eq!(reused, Ok(Submitted::KeyReused));
    assert!(
        store
            .receipt(&ann.user_id, "k", nearly)
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        store
            .receipt(&ann.user_id, "k", NOW + DAY)
            .await
            .unwrap()
            .is_none()
    );
    // Too old to count, though nobody has swept it away yet.
    let later = keyed(task_at(&ann, 1, "0.1", NOW + DAY), "k", "g");
    let receipt = later.idempotency.clone().unwrap().receipt;
    submit(&store, later).await;
    let again = store
        .submit(keyed(task_at(&ann, 1, "0.1", NOW + DAY), "k", "g"))
        .await;
    assert_eq!(again, Ok(Submitted::Repeated { receipt }));
    assert_eq!(sums(&store, &ann).await, ["1", "0.2", "0"]);
    assert_clean(&store).await;
}
