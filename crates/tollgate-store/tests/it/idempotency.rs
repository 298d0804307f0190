//! Idempotency records: repeated, concurrent, reused and expired keys.

use tollgate_core::clock::DAY;
use tollgate_store::SubmitOutcome;

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, amount, insufficient_balance, submit, task, task_at, user_sums,
    with_idempotency_key,
};

on_both!(
    a_repeated_key_replays_the_first_receipt,
    concurrent_repeats_make_one_task,
    a_key_with_another_fingerprint_is_rejected,
    idempotency_keys_are_per_user,
    a_rejected_submission_stores_no_idempotency_record,
    idempotency_records_expire_after_a_day,
);

async fn a_repeated_key_replays_the_first_receipt(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let first = with_idempotency_key(task(&ann, 1, "0.6"), "k", "f");
    let receipt = first.idempotency.clone().unwrap().receipt;
    assert_eq!(store.find_receipt(&ann.user_id, "k", NOW).await, Ok(None));
    submit(&store, first).await;
    for _ in 0..3 {
        let again = store
            .submit_task(with_idempotency_key(task(&ann, 1, "0.6"), "k", "f"))
            .await;
        let receipt = receipt.clone();
        assert_eq!(again, Ok(SubmitOutcome::Replayed { receipt }));
    }
    let seen = store.find_receipt(&ann.user_id, "k", NOW).await;
    assert_eq!(seen, Ok(Some(("f".to_owned(), receipt))));
    assert_eq!(user_sums(&store, &ann).await, ["1", "0.6", "0"]);
    assert_eq!(db.number("SELECT COUNT(*) FROM tasks").await, 1);
}

async fn concurrent_repeats_make_one_task(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = account(&nodes[0], "ann", "1").await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..60 {
        let new = with_idempotency_key(task(&ann, 1, "0.1"), &format!("k{}", i / 12), "f");
        let store = nodes[i % 2].clone();
        running.spawn(async move {
            let own = new.idempotency.clone().unwrap();
            match store.submit_task(new).await.unwrap() {
                SubmitOutcome::Accepted => (own.key, own.receipt, true),
                SubmitOutcome::Replayed { receipt } => (own.key, receipt, false),
                other => panic!("{other:?}"),
            }
        });
    }
    let mut results = running.join_all().await;
    assert_eq!(results.iter().filter(|(.., first)| *first).count(), 5);
    results.sort();
    results.dedup_by(|a, b| (&a.0, &a.1) == (&b.0, &b.1));
    assert_eq!(results.len(), 5, "one receipt for each key: {results:?}");
    assert_eq!(user_sums(&nodes[0], &ann).await, ["1", "0.5", "0"]);
}

async fn a_key_with_another_fingerprint_is_rejected(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    submit(&store, with_idempotency_key(task(&ann, 1, "0.1"), "k", "f")).await;
    let other = store
        .submit_task(with_idempotency_key(task(&ann, 1, "0.1"), "k", "g"))
        .await;
    assert_eq!(other, Ok(SubmitOutcome::KeyReused));
    assert_eq!(user_sums(&store, &ann).await, ["1", "0.1", "0"]);
}

async fn idempotency_keys_are_per_user(db: &Db) {
    let store = db.open().await;
    let (ann, bob) = (
        account(&store, "ann", "1").await,
        account(&store, "bob", "1").await,
    );
    submit(&store, with_idempotency_key(task(&ann, 1, "0.1"), "k", "f")).await;
    submit(&store, with_idempotency_key(task(&bob, 1, "0.1"), "k", "g")).await;
    assert_eq!(user_sums(&store, &bob).await, ["1", "0.1", "0"]);
}

async fn a_rejected_submission_stores_no_idempotency_record(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "0").await;
    let rejected = store
        .submit_task(with_idempotency_key(task(&ann, 1, "1"), "k", "f"))
        .await;
    assert_eq!(rejected, Ok(insufficient_balance("0")));
    store
        .credit_user("ann", amount("1"), None, NOW)
        .await
        .unwrap();
    submit(&store, with_idempotency_key(task(&ann, 1, "1"), "k", "g")).await;
}

async fn idempotency_records_expire_after_a_day(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    submit(&store, with_idempotency_key(task(&ann, 1, "0.1"), "k", "f")).await;
    let nearly = NOW + DAY - 1;
    let reused = store
        .submit_task(with_idempotency_key(
            task_at(&ann, 1, "0.1", nearly),
            "k",
            "g",
        ))
        .await;
    assert_eq!(reused, Ok(SubmitOutcome::KeyReused));
    assert!(
        store
            .find_receipt(&ann.user_id, "k", nearly)
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        store
            .find_receipt(&ann.user_id, "k", NOW + DAY)
            .await
            .unwrap()
            .is_none()
    );
    // The record has expired, though it is not purged yet.
    let later = with_idempotency_key(task_at(&ann, 1, "0.1", NOW + DAY), "k", "g");
    let receipt = later.idempotency.clone().unwrap().receipt;
    submit(&store, later).await;
    let again = store
        .submit_task(with_idempotency_key(
            task_at(&ann, 1, "0.1", NOW + DAY),
            "k",
            "g",
        ))
        .await;
    assert_eq!(again, Ok(SubmitOutcome::Replayed { receipt }));
    assert_eq!(user_sums(&store, &ann).await, ["1", "0.2", "0"]);
}
