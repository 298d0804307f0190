//! Leases, fencing tokens, retries, attempts.

use std::collections::BTreeSet;

use tollgate_core::TaskState;
use tollgate_store::{FinishOutcome, NewAttempt, TaskFinish};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, attempt, attempt_end, begin, claim_one, claim_tasks, delivered, failed, finish,
    retry_task, start_attempt, submit, task, task_at, task_finish, unlimited_account,
};

on_both!(
    a_claim_takes_the_longest_due_first,
    two_owners_never_claim_the_same_task,
    an_expired_lease_is_lost_to_the_next_claim,
    leases_are_renewed_by_their_owner_only,
    a_retried_task_has_no_owner,
    failed_attempts_are_counted,
    a_postponed_task_counts_no_failure,
    leases_are_released_by_owner_or_all,
    the_next_due_time_includes_leases,
    open_attempts_end_with_their_task,
);

async fn a_claim_takes_the_longest_due_first(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let mut ids = Vec::new();
    for age in [3, 1, 4, 2, 5] {
        ids.push((age, submit(&store, task_at(&ann, 1, "0", NOW - age)).await));
    }
    submit(&store, task_at(&ann, 1, "0", NOW + 1)).await;
    ids.sort();
    ids.reverse();
    let first = store.claim_tasks("w", 3, NOW + 100, NOW).await.unwrap();
    let second = store.claim_tasks("w", 3, NOW + 100, NOW).await.unwrap();
    let got: Vec<_> = first
        .iter()
        .chain(&second)
        .map(|l| l.task.id.clone())
        .collect();
    assert_eq!(got, ids.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
    let leased = &first[0];
    assert_eq!((leased.fence, leased.failed_attempts), (1, 0));
    assert_eq!(leased.job, r#"{"prompt":"a lighthouse"}"#);
    assert_eq!(leased.request_id, "req_1");
    assert_eq!(leased.task.state, TaskState::InProgress);
    assert_eq!(leased.task.started_at, Some(NOW));
    let seen = store.task(&leased.task.id).await.unwrap().unwrap();
    assert_eq!(
        (seen.state, seen.started_at),
        (TaskState::InProgress, Some(NOW))
    );
    assert!(claim_tasks(&store, NOW).await.is_empty());
}

async fn two_owners_never_claim_the_same_task(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = unlimited_account(&nodes[0], "ann", None).await;
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (store, new) = (nodes[0].clone(), task(&ann, 1, "0"));
        running.spawn(async move { submit(&store, new).await });
    }
    running.join_all().await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..60 {
        let store = nodes[i % 2].clone();
        running.spawn(async move {
            let owner = format!("w{}", i % 2);
            store.claim_tasks(&owner, 7, NOW + 100, NOW).await.unwrap()
        });
    }
    let got = running.join_all().await.into_iter().flatten();
    let got: Vec<String> = got.map(|leased| leased.task.id).collect();
    assert_eq!(got.len(), 200);
    assert_eq!(got.iter().collect::<BTreeSet<_>>().len(), 200);
}

async fn an_expired_lease_is_lost_to_the_next_claim(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let id = submit(&store, task(&ann, 1, "0.5")).await;
    let old = claim_one(&store, NOW).await;
    assert_eq!(start_attempt(&store, &old, NOW).await, Some(1));
    assert!(claim_tasks(&store, NOW + 29_999).await.is_empty());
    let late = NOW + 30_000;
    let mut taken = store
        .claim_tasks("v", 9, late + 30_000, late)
        .await
        .unwrap();
    let new = taken.remove(0);
    assert_eq!(
        (new.fence, new.failed_attempts),
        (2, 0),
        "an interruption is no failure"
    );
    assert_eq!(new.task.started_at, Some(NOW));

    assert_eq!(
        finish(&store, &old, delivered(1), late).await,
        FinishOutcome::LeaseLost
    );
    assert_eq!(
        finish(&store, &old, failed(), late).await,
        FinishOutcome::LeaseLost
    );
    let kept = store
        .renew_leases("w", vec![(id.clone(), old.fence)], late + 60_000)
        .await;
    assert_eq!(kept, Ok(vec![id.clone()]));
    assert!(!retry_task(&store, &old, 1, late, late).await);
    assert_eq!(start_attempt(&store, &old, late).await, None);
    store.set_progress(&id, old.fence, 50).await.unwrap();
    store.postpone_task(&id, old.fence, late).await.unwrap();
    assert_eq!(store.task(&id).await.unwrap().unwrap().progress, 0);
    assert!(
        claim_tasks(&store, late).await.is_empty(),
        "still leased to the new one"
    );

    assert_eq!(start_attempt(&store, &new, late).await, Some(2));
    store.set_progress(&id, new.fence, 50).await.unwrap();
    assert_eq!(store.task(&id).await.unwrap().unwrap().progress, 50);
    assert!(matches!(
        finish(&store, &new, delivered(1), late).await,
        FinishOutcome::Finished { .. }
    ));
}

async fn leases_are_renewed_by_their_owner_only(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    for _ in 0..3 {
        submit(&store, task(&ann, 1, "0")).await;
    }
    let leased = claim_tasks(&store, NOW).await;
    finish(&store, &leased[2], failed(), NOW).await;
    let leases: Vec<_> = leased
        .iter()
        .map(|l| (l.task.id.clone(), l.fence))
        .collect();
    let lost = store
        .renew_leases("w", leases.clone(), NOW + 90_000)
        .await
        .unwrap();
    assert_eq!(
        lost,
        [leased[2].task.id.clone()],
        "what has ended needs no lease"
    );
    assert_eq!(
        store
            .renew_leases("v", leases, NOW + 90_000)
            .await
            .unwrap()
            .len(),
        3
    );
    assert!(claim_tasks(&store, NOW + 30_001).await.is_empty());
    assert_eq!(claim_tasks(&store, NOW + 90_000).await.len(), 2);
}

async fn a_retried_task_has_no_owner(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    submit(&store, task(&ann, 1, "0")).await;
    let leased = claim_one(&store, NOW).await;
    let number = start_attempt(&store, &leased, NOW).await.unwrap();
    assert!(retry_task(&store, &leased, number, NOW + 10, NOW).await);
    // The fence is still the newest, and yet the lease is over.
    assert!(!retry_task(&store, &leased, number, NOW + 10, NOW).await);
    assert_eq!(
        finish(&store, &leased, delivered(1), NOW).await,
        FinishOutcome::LeaseLost
    );
    assert_eq!(start_attempt(&store, &leased, NOW).await, None);
    let leases = vec![(leased.task.id.clone(), leased.fence)];
    assert_eq!(
        store
            .renew_leases("w", leases, NOW + 99)
            .await
            .unwrap()
            .len(),
        1
    );
    let next = claim_one(&store, NOW + 10).await;
    assert_eq!((next.fence, next.failed_attempts), (2, 1));
}

async fn failed_attempts_are_counted(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    for turn in 0..3 {
        let now = NOW + turn * 10;
        let leased = claim_one(&store, now).await;
        assert_eq!(leased.failed_attempts, turn);
        let attempt = NewAttempt {
            channel: format!("channel-{turn}"),
            ..attempt(&leased, now)
        };
        let number = begin(&store, attempt).await.unwrap();
        assert_eq!(number, turn + 1);
        assert!(retry_task(&store, &leased, number, now + 10, now).await);
        assert!(claim_tasks(&store, now + 9).await.is_empty());
    }
    let channels = store.failed_channels(&id).await.unwrap();
    assert_eq!(channels, ["channel-0", "channel-1", "channel-2"]);
    assert!(store.failed_channels("task_none").await.unwrap().is_empty());
}

async fn a_postponed_task_counts_no_failure(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    let leased = claim_one(&store, NOW).await;
    store
        .postpone_task(&id, leased.fence, NOW + 500)
        .await
        .unwrap();
    assert!(claim_tasks(&store, NOW + 499).await.is_empty());
    let next = claim_one(&store, NOW + 500).await;
    assert_eq!((next.fence, next.failed_attempts), (2, 0));
}

async fn leases_are_released_by_owner_or_all(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    for _ in 0..5 {
        submit(&store, task(&ann, 1, "0")).await;
    }
    let mine = store.claim_tasks("w", 2, NOW + 30_000, NOW).await.unwrap();
    let theirs = store.claim_tasks("v", 2, NOW + 30_000, NOW).await.unwrap();
    finish(&store, &mine[0], failed(), NOW).await;
    assert_eq!(store.release_leases(Some("w"), NOW).await, Ok(1));
    assert_eq!(store.release_leases(Some("w"), NOW).await, Ok(0));
    assert_eq!(
        finish(&store, &mine[1], delivered(1), NOW).await,
        FinishOutcome::LeaseLost
    );
    assert_eq!(
        claim_tasks(&store, NOW).await.len(),
        2,
        "the one handed back and the fifth"
    );
    // A single node that starts takes back its own of before the crash, at once.
    assert_eq!(store.release_leases(None, NOW).await, Ok(4));
    let again = claim_tasks(&store, NOW).await;
    assert_eq!(again.len(), 4);
    let fences = again
        .iter()
        .filter(|l| theirs.iter().any(|t| t.task.id == l.task.id));
    assert!(fences.clone().all(|l| l.fence == 2) && fences.count() == 2);
}

async fn the_next_due_time_includes_leases(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    assert_eq!(store.next_task_due_at().await, Ok(None));
    submit(&store, task_at(&ann, 1, "0", NOW + 50)).await;
    submit(&store, task_at(&ann, 1, "0", NOW + 20)).await;
    assert_eq!(store.next_task_due_at().await, Ok(Some(NOW + 20)));
    let totals = store.totals().await.unwrap();
    assert_eq!((totals.submitted, totals.in_progress), (2, 0));
    assert_eq!(totals.oldest_due_at, Some(NOW + 20));
    let leased = store.claim_tasks("w", 1, NOW + 99, NOW + 20).await.unwrap();
    assert_eq!(store.next_task_due_at().await, Ok(Some(NOW + 50)));
    let totals = store.totals().await.unwrap();
    assert_eq!((totals.submitted, totals.in_progress), (1, 1));
    let rest = store.claim_tasks("w", 9, NOW + 99, NOW + 60).await.unwrap();
    assert_eq!(
        store.next_task_due_at().await,
        Ok(Some(NOW + 99)),
        "leases count"
    );
    for leased in leased.iter().chain(&rest) {
        finish(&store, leased, failed(), NOW + 70).await;
    }
    assert_eq!(store.next_task_due_at().await, Ok(None));
}

async fn open_attempts_end_with_their_task(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let outcomes = "SELECT outcome FROM attempts ORDER BY number";
    submit(&store, task(&ann, 1, "0")).await;
    let first = claim_one(&store, NOW).await;
    assert_eq!(start_attempt(&store, &first, NOW).await, Some(1));
    let second = claim_one(&store, NOW + 30_000).await;
    assert_eq!(start_attempt(&store, &second, NOW + 30_000).await, Some(2));
    let third = claim_one(&store, NOW + 60_000).await;
    let end = TaskFinish {
        attempt: Some(attempt_end(2)),
        ..task_finish(&third, failed(), NOW + 60_001)
    };
    assert!(matches!(
        store.finish_task(end).await,
        Ok(FinishOutcome::Finished { .. })
    ));
    let found = db.raw(outcomes).await.concat();
    assert_eq!(
        found,
        [Some("interrupted".to_owned()), Some("failed".to_owned())]
    );
}
