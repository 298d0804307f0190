//! Tasks on two nodes at once: every task is leased, ended and cancelled once, every repeated submission is applied once.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_store::{CancelOutcome, FinishOutcome, SubmitOutcome};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, all, amount, begin, cancel, claim_tasks, delivered, enqueue, finish,
    provider_job, queued, start_attempt, submit, task, task_at, task_finish, unlimited_account,
    user_sums, with_idempotency_key,
};

on_both!(
    concurrent_repeats_create_one_task,
    two_owners_never_claim_the_same_task,
    concurrent_cancel_and_finish_end_the_task_once,
    a_concurrent_cancellation_gets_the_provider_job_id_or_the_worker_fails,
    thousands_are_claimed_with_their_provider_job_ids,
    five_hundred_leases_are_renewed_in_one_commit,
    releasing_leases_includes_those_that_have_expired,
);

async fn concurrent_repeats_create_one_task(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = account(&nodes[0], "ann", "1").await;
    let submissions = (0..60).map(|i| {
        let new = with_idempotency_key(task(&ann, 1, "0.1"), &format!("k{}", i / 12), "f");
        let store = nodes[i % 2].clone();
        async move {
            let own = new.idempotency.clone().unwrap();
            match store.submit_task(new).await.unwrap() {
                SubmitOutcome::Accepted => (own.key, own.receipt, true),
                SubmitOutcome::Replayed { receipt } => (own.key, receipt, false),
                other => panic!("{other:?}"),
            }
        }
    });
    let results = all(submissions).await;
    assert_eq!(results.iter().filter(|(.., first)| *first).count(), 5);
    let receipts: BTreeSet<_> = results.iter().map(|(key, id, _)| (key, id)).collect();
    assert_eq!(receipts.len(), 5, "one receipt for each key: {results:?}");
    assert_eq!(user_sums(&nodes[0], &ann).await, ["1", "0.5", "0"]);
}

async fn two_owners_never_claim_the_same_task(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = unlimited_account(&nodes[0], "ann", None).await;
    let new = (0..200).map(|_| (nodes[0].clone(), task(&ann, 1, "0")));
    all(new.map(|(store, new)| async move { submit(&store, new).await })).await;
    let claims = (0..60).map(|i| {
        let store = nodes[i % 2].clone();
        async move {
            let owner = format!("w{}", i % 2);
            store.claim_tasks(&owner, 7, NOW + 100, NOW).await.unwrap()
        }
    });
    let got = all(claims).await.into_iter().flatten();
    let got: Vec<String> = got.map(|leased| leased.task.id).collect();
    assert_eq!(got.len(), 200);
    assert_eq!(got.iter().collect::<BTreeSet<_>>().len(), 200);
}

async fn concurrent_cancel_and_finish_end_the_task_once(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = account(&nodes[0], "ann", "10").await;
    for _ in 0..40 {
        submit(&nodes[0], task(&ann, 1, "0.1")).await;
    }
    let leases = claim_tasks(&nodes[0], NOW).await.into_iter().enumerate();
    let races = leases.map(|(i, leased)| {
        let [worker, user] = [nodes[0].clone(), nodes[i % 2].clone()];
        async move {
            let end = worker.finish_task(task_finish(&leased, delivered(1), NOW));
            let cancelled = user.cancel_task(&leased.task, NOW);
            let (ended, cancelled) = if i % 4 < 2 {
                tokio::join!(end, cancelled)
            } else {
                let (cancelled, ended) = tokio::join!(cancelled, end);
                (ended, cancelled)
            };
            match (ended.unwrap(), cancelled.unwrap()) {
                (FinishOutcome::Finished { .. }, CancelOutcome::AlreadyFinal) => true,
                (FinishOutcome::AlreadyFinal, CancelOutcome::Cancelled) => false,
                both => panic!("{both:?}"),
            }
        }
    });
    let delivered = all(races).await.into_iter().filter(|d| *d).count();
    let user = nodes[1].user(&ann.user_id).await.unwrap().unwrap();
    assert_eq!(user.used.nanos(), 100_000_000 * delivered as i64);
    assert_eq!(user.held.nanos(), 0);
    assert_eq!(user.balance + user.used, amount("10"));
}

/// Either the cancellation returns the provider job id, or the worker's call that records it reports that it came too late.
async fn a_concurrent_cancellation_gets_the_provider_job_id_or_the_worker_fails(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = account(&nodes[0], "ann", "10").await;
    for _ in 0..40 {
        submit(&nodes[0], task(&ann, 1, "0.1")).await;
    }
    let leases = claim_tasks(&nodes[0], NOW).await;
    for leased in &leases {
        begin(&nodes[0], queued(leased, NOW)).await.unwrap();
    }
    let races = leases.into_iter().enumerate().map(|(i, leased)| {
        let [worker, user] = [nodes[0].clone(), nodes[i % 2].clone()];
        async move {
            let accepted = worker.record_provider_job(provider_job(&leased, 1, "op-1", NOW));
            let cancelled = user.cancel_task(&leased.task, NOW);
            let (accepted, cancelled) = if i % 4 < 2 {
                tokio::join!(accepted, cancelled)
            } else {
                let (cancelled, accepted) = tokio::join!(cancelled, accepted);
                (accepted, cancelled)
            };
            assert_eq!(cancelled, Ok(CancelOutcome::Cancelled));
            let left = user.last_queued_attempt(&leased.task.id).await;
            let known = left.unwrap().unwrap().provider_job_id;
            assert_eq!(known.is_some(), accepted.unwrap());
        }
    });
    assert_eq!(all(races).await.len(), 40);
}

async fn thousands_are_claimed_with_their_provider_job_ids(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let new = (0..1_500).map(|i| (store.clone(), task_at(&ann, 1, "0", NOW - i % 7)));
    all(new.map(|(store, new)| async move { submit(&store, new).await })).await;
    let leased = store.claim_tasks("w", 2_000, NOW + 99, NOW).await.unwrap();
    let mut expected = BTreeMap::new();
    let attempts = leased.into_iter().enumerate().map(|(i, leased)| {
        let id = (i % 3 > 0).then(|| format!("op-{i}"));
        expected.insert(leased.task.id.clone(), id.clone());
        let store = store.clone();
        async move {
            match id {
                Some(id) => enqueue(&store, &leased, &id, NOW).await,
                None => start_attempt(&store, &leased, NOW).await.unwrap(),
            }
        }
    });
    all(attempts).await;
    assert_eq!(store.release_leases(None, NOW).await, Ok(1_500));
    let claimed = store.claim_tasks("v", 2_000, NOW + 99, NOW).await.unwrap();
    let found = claimed.into_iter().map(|leased| {
        let id = leased.queued_attempt.and_then(|open| open.provider_job_id);
        (leased.task.id, id)
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
}

async fn five_hundred_leases_are_renewed_in_one_commit(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let new = (0..500).map(|_| (store.clone(), task(&ann, 1, "0")));
    all(new.map(|(store, new)| async move { submit(&store, new).await })).await;
    let leased = store.claim_tasks("w", 500, NOW + 99, NOW).await.unwrap();
    let gone = &leased[100..103];
    for leased in gone {
        cancel(&store, &leased.task, NOW).await;
    }
    let leases = leased
        .iter()
        .map(|leased| (leased.task.id.clone(), leased.fence));
    let commits = store.stats().commits();
    let lost = store.renew_leases("w", leases.collect(), NOW + 500).await;
    assert_eq!(store.stats().commits(), commits + 1);
    let gone = gone.iter().map(|leased| leased.task.id.clone());
    assert_eq!(lost, Ok(gone.collect()));
    assert!(claim_tasks(&store, NOW + 499).await.is_empty());
    let next = store.claim_tasks("v", 999, NOW + 999, NOW + 500).await;
    assert_eq!(next.unwrap().len(), 497);
}

async fn releasing_leases_includes_those_that_have_expired(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    for _ in 0..3 {
        submit(&store, task(&ann, 1, "0")).await;
    }
    let leased = store.claim_tasks("w", 3, NOW + 100, NOW).await.unwrap();
    let later = NOW + 101;
    let claimed = store.claim_tasks("v", 1, later + 100, later).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(store.release_leases(Some("w"), later).await, Ok(2));
    for leased in leased {
        let outcome = finish(&store, &leased, delivered(1), later).await;
        assert_eq!(outcome, FinishOutcome::LeaseLost);
    }
    let again = store.claim_tasks("v", 3, later + 100, later).await.unwrap();
    assert_eq!(again.len(), 2);
}
