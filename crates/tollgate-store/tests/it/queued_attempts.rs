//! Attempts in a provider's queue: they outlive their leases.

use std::collections::BTreeMap;

use tollgate_core::TaskState;
use tollgate_store::{
    CancelOutcome, FinishOutcome, NewAttempt, ProviderJob, QueuedAttempt, StartOutcome, StoreError,
    TaskFinish,
};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, assert_clean, attempt, attempt_end, begin, cancel, claim_one, claim_tasks,
    delivered, enqueue, failed, finish, provider_job, queued, retry_task, start_attempt, submit,
    task, task_at, task_finish, unlimited_account,
};

on_both!(
    a_queued_attempt_outlives_its_lease,
    an_attempt_outside_a_queue_is_interrupted_by_the_next,
    a_provider_job_id_is_recorded_under_the_lease_only,
    starting_an_attempt_is_idempotent,
    a_postponed_task_keeps_its_attempt_open,
    an_ended_attempt_is_not_polled,
    a_cancelled_task_names_its_last_queued_attempt,
    a_racing_cancellation_knows_the_provider_job_id_or_the_worker_fails,
    thousands_are_claimed_with_their_provider_job_ids,
    five_hundred_leases_are_renewed_in_one_commit,
);

const OUTCOMES: &str = "SELECT outcome FROM attempts ORDER BY number";

fn open(number: i64, provider_job_id: Option<&str>) -> QueuedAttempt {
    QueuedAttempt {
        number,
        channel: "main".to_owned(),
        external_id: Some("tg-1".to_owned()),
        key_fingerprint: Some("3f9a".to_owned()),
        provider_job_id: provider_job_id.map(str::to_owned),
        accepted_at: provider_job_id.map(|_| NOW),
        adjustments: None,
        started_at: NOW,
    }
}

async fn a_queued_attempt_outlives_its_lease(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let id = submit(&store, task(&ann, 1, "0.5")).await;
    assert_eq!(store.last_queued_attempt(&id).await, Ok(None));
    let old = claim_one(&store, NOW).await;
    assert_eq!(old.open, None);
    assert_eq!(begin(&store, queued(&old, NOW)).await, Some(1));
    // Whether the provider has it is not known yet, and that is what a next worker would see.
    assert_eq!(
        store.last_queued_attempt(&id).await,
        Ok(Some(open(1, None)))
    );
    let accepted = provider_job(&old, 1, "cgt-1", NOW);
    assert_eq!(store.record_provider_job(accepted).await, Ok(true));
    assert_eq!(
        store.last_queued_attempt(&id).await,
        Ok(Some(open(1, Some("cgt-1"))))
    );

    let late = NOW + 30_000;
    let new = claim_one(&store, late).await;
    let left = open(1, Some("cgt-1"));
    assert_eq!(new.open.as_ref(), Some(&left));
    assert_eq!(new.failed_attempts, 0);
    for start in [queued(&new, late), attempt(&new, late)] {
        let started = store.start_attempt(start).await;
        assert_eq!(started, Ok(StartOutcome::EarlierStillQueued));
    }
    let started = store.start_attempt(queued(&old, late)).await;
    assert_eq!(started, Ok(StartOutcome::LeaseLost));
    assert_eq!(db.number("SELECT COUNT(*) FROM attempts").await, 1);
    assert_clean(&store).await;

    let start = NewAttempt {
        abandon_queued_as: Some("lost"),
        ..queued(&new, late)
    };
    assert_eq!(begin(&store, start).await, Some(2));
    let found = db.raw(OUTCOMES).await.concat();
    assert_eq!(found, [Some("lost".to_owned()), None]);
    let second = store.last_queued_attempt(&id).await.unwrap().unwrap();
    assert_eq!((second.number, second.provider_job_id), (2, None));
}

async fn an_attempt_outside_a_queue_is_interrupted_by_the_next(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    let first = claim_one(&store, NOW).await;
    assert_eq!(start_attempt(&store, &first, NOW).await, Some(1));
    assert_eq!(store.last_queued_attempt(&id).await, Ok(None));
    let late = NOW + 30_000;
    let second = claim_one(&store, late).await;
    assert_eq!(second.open, None);
    // `abandon_queued_as` does not apply to an attempt outside a queue.
    let start = NewAttempt {
        abandon_queued_as: Some("unknown"),
        ..queued(&second, late)
    };
    assert_eq!(begin(&store, start).await, Some(2));
    let found = db.raw(OUTCOMES).await.concat();
    assert_eq!(found, [Some("interrupted".to_owned()), None]);
}

async fn a_provider_job_id_is_recorded_under_the_lease_only(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    let leased = claim_one(&store, NOW).await;
    let at =
        |number, provider_job_id: &str, now| provider_job(&leased, number, provider_job_id, now);
    assert_eq!(store.record_provider_job(at(1, "a", NOW)).await, Ok(false));
    assert_eq!(begin(&store, queued(&leased, NOW)).await, Some(1));
    let most = "x".repeat(ProviderJob::ID_MAX_BYTES);
    for (number, provider_job_id, now, is_written) in [
        (1, "a", NOW, true),
        (1, "a", NOW, true),
        (2, "b", NOW, false),
        (1, most.as_str(), NOW + 7, true),
    ] {
        let accepted = store
            .record_provider_job(at(number, provider_job_id, now))
            .await;
        assert_eq!(accepted, Ok(is_written), "{number} {now}");
    }
    let shown = store.last_queued_attempt(&id).await.unwrap().unwrap();
    assert_eq!(
        (shown.provider_job_id, shown.accepted_at),
        (Some(most.clone()), Some(NOW))
    );

    // Adjustments stay when a later provider job id comes without any.
    let adjustments_json = Some(r#"[{"field":"size"}]"#.to_owned());
    for adjustments in [adjustments_json.clone(), None] {
        let accepted = ProviderJob {
            adjustments,
            ..at(1, &most, NOW)
        };
        assert_eq!(store.record_provider_job(accepted).await, Ok(true));
        let shown = store.last_queued_attempt(&id).await.unwrap().unwrap();
        assert_eq!(shown.adjustments, adjustments_json);
    }
    for bad in [String::new(), "x".repeat(ProviderJob::ID_MAX_BYTES + 1)] {
        let rejected = store.record_provider_job(at(1, &bad, NOW)).await;
        assert!(
            matches!(&rejected, Err(StoreError::Invalid(why)) if why.contains("must have 1 to 8192")),
            "{rejected:?}"
        );
    }
    let new = claim_one(&store, NOW + 30_000).await;
    assert_eq!(
        store.record_provider_job(at(1, "late", NOW)).await,
        Ok(false)
    );
    let kept = new
        .open
        .as_ref()
        .and_then(|open| open.provider_job_id.as_ref());
    assert_eq!(kept.map(String::len), Some(ProviderJob::ID_MAX_BYTES));
    // Nor after the attempt or the task has ended.
    assert!(retry_task(&store, &new, 1, NOW, NOW).await);
    let last = claim_one(&store, NOW + 1).await;
    let ended = provider_job(&last, 1, "late", NOW);
    assert_eq!(store.record_provider_job(ended).await, Ok(false));
    finish(&store, &last, failed(), NOW + 2).await;
    let ended = provider_job(&last, 1, "late", NOW);
    assert_eq!(store.record_provider_job(ended).await, Ok(false));
}

async fn starting_an_attempt_is_idempotent(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    for _ in 0..2 {
        submit(&store, task(&ann, 1, "0")).await;
    }
    let leased = claim_tasks(&store, NOW).await;
    for start in [queued(&leased[0], NOW), attempt(&leased[1], NOW)] {
        assert_eq!(begin(&store, start.clone()).await, Some(1));
        assert_eq!(begin(&store, start).await, Some(1));
    }
    assert_eq!(db.number("SELECT COUNT(*) FROM attempts").await, 2);
    // The same moment under another lease is another attempt.
    store.release_leases(None, NOW).await.unwrap();
    let mut again = claim_tasks(&store, NOW).await;
    again.sort_by_key(|leased| leased.open.is_none());
    let start = queued(&again[0], NOW);
    assert!(matches!(
        store.start_attempt(start).await,
        Ok(StartOutcome::EarlierStillQueued)
    ));
    assert_eq!(start_attempt(&store, &again[1], NOW).await, Some(2));
}

async fn a_postponed_task_keeps_its_attempt_open(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    let leased = claim_one(&store, NOW).await;
    enqueue(&store, &leased, "op-1", NOW).await;
    store.set_progress(&id, leased.fence, 30).await.unwrap();
    store
        .postpone_task(&id, leased.fence, NOW + 5_000)
        .await
        .unwrap();
    let seen = store.task(&id).await.unwrap().unwrap();
    assert_eq!((seen.state, seen.progress), (TaskState::InProgress, 30));
    assert_eq!(
        store.last_queued_attempt(&id).await,
        Ok(Some(open(1, Some("op-1"))))
    );
    // The lease is over: a later provider job id is not recorded.
    let late = provider_job(&leased, 1, "op-2", NOW);
    assert_eq!(store.record_provider_job(late).await, Ok(false));
    assert!(claim_tasks(&store, NOW + 4_999).await.is_empty());
    let next = claim_one(&store, NOW + 5_000).await;
    assert_eq!(next.open, Some(open(1, Some("op-1"))));
    assert_eq!((next.fence, next.failed_attempts), (2, 0));
    // The attempt is ended by whoever holds the lease then.
    let outcome = TaskFinish {
        attempt: Some(tollgate_store::AttemptEnd {
            number: 1,
            outcome: "done",
            error: None,
        }),
        ..task_finish(&next, delivered(1), NOW + 6_000)
    };
    assert!(matches!(
        store.finish_task(outcome).await,
        Ok(FinishOutcome::Finished { .. })
    ));
    let found = db.raw(OUTCOMES).await.concat();
    assert_eq!(found, [Some("done".to_owned())]);
}

async fn an_ended_attempt_is_not_polled(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    let first = claim_one(&store, NOW).await;
    enqueue(&store, &first, "op-1", NOW).await;
    assert!(retry_task(&store, &first, 1, NOW + 10, NOW).await);
    assert_eq!(
        store.last_queued_attempt(&id).await,
        Ok(Some(open(1, Some("op-1"))))
    );
    let second = claim_one(&store, NOW + 10).await;
    assert_eq!(second.open, None);
    assert_eq!(enqueue(&store, &second, "op-2", NOW + 10).await, 2);
    // The end of another attempt leaves it open.
    assert!(retry_task(&store, &second, 1, NOW + 20, NOW + 10).await);
    let third = claim_one(&store, NOW + 20).await;
    let still = third
        .open
        .as_ref()
        .and_then(|open| open.provider_job_id.as_deref());
    assert_eq!(still, Some("op-2"));
    assert_clean(&store).await;
    let end = TaskFinish {
        attempt: Some(attempt_end(2)),
        ..task_finish(&third, failed(), NOW + 21)
    };
    assert!(matches!(
        store.finish_task(end).await,
        Ok(FinishOutcome::Finished { .. })
    ));
}

async fn a_cancelled_task_names_its_last_queued_attempt(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "9").await;
    for _ in 0..4 {
        submit(&store, task(&ann, 1, "0.25")).await;
    }
    let leased = claim_tasks(&store, NOW).await;
    enqueue(&store, &leased[0], "op-1", NOW).await;
    begin(&store, queued(&leased[1], NOW)).await.unwrap();
    start_attempt(&store, &leased[2], NOW).await.unwrap();
    let left = [Some(open(1, Some("op-1"))), Some(open(1, None)), None, None];
    for (leased, left) in leased.iter().zip(left) {
        let cancelled = store.cancel_task(&leased.task, NOW + 5).await;
        assert_eq!(cancelled, Ok(CancelOutcome::Cancelled));
        assert_eq!(store.last_queued_attempt(&leased.task.id).await, Ok(left));
    }
    let others = "SELECT COUNT(*) FROM attempts WHERE ended_at IS NULL OR outcome <> 'cancelled'";
    assert_eq!(db.number(others).await, 0);
}

/// Either the cancellation returns the provider job id, or the worker learns that it came too late.
async fn a_racing_cancellation_knows_the_provider_job_id_or_the_worker_fails(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = account(&nodes[0], "ann", "10").await;
    for _ in 0..40 {
        submit(&nodes[0], task(&ann, 1, "0.1")).await;
    }
    let mut running = tokio::task::JoinSet::new();
    for (i, leased) in claim_tasks(&nodes[0], NOW).await.into_iter().enumerate() {
        let [worker, user] = [nodes[0].clone(), nodes[i % 2].clone()];
        begin(&worker, queued(&leased, NOW)).await.unwrap();
        running.spawn(async move {
            let accepted = provider_job(&leased, 1, "op-1", NOW);
            let (accepted, cancelled) = if i % 4 < 2 {
                tokio::join!(
                    worker.record_provider_job(accepted),
                    user.cancel_task(&leased.task, NOW)
                )
            } else {
                let (cancelled, accepted) = tokio::join!(
                    user.cancel_task(&leased.task, NOW),
                    worker.record_provider_job(accepted)
                );
                (accepted, cancelled)
            };
            assert_eq!(cancelled, Ok(CancelOutcome::Cancelled));
            let left = user
                .last_queued_attempt(&leased.task.id)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(left.provider_job_id.is_some(), accepted.unwrap());
        });
    }
    assert_eq!(running.join_all().await.len(), 40);
}

async fn thousands_are_claimed_with_their_provider_job_ids(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..1_500 {
        let (store, new) = (store.clone(), task_at(&ann, 1, "0", NOW - i % 7));
        running.spawn(async move { submit(&store, new).await });
    }
    running.join_all().await;
    let leased = store.claim_tasks("w", 2_000, NOW + 99, NOW).await.unwrap();
    let mut expected = BTreeMap::new();
    let mut running = tokio::task::JoinSet::new();
    for (i, leased) in leased.into_iter().enumerate() {
        let provider_job_id = (i % 3 > 0).then(|| format!("op-{i}"));
        expected.insert(leased.task.id.clone(), provider_job_id.clone());
        let store = store.clone();
        running.spawn(async move {
            match provider_job_id {
                Some(provider_job_id) => enqueue(&store, &leased, &provider_job_id, NOW).await,
                None => start_attempt(&store, &leased, NOW).await.unwrap(),
            }
        });
    }
    running.join_all().await;
    assert_eq!(store.release_leases(None, NOW).await, Ok(1_500));
    let claimed = store.claim_tasks("v", 2_000, NOW + 99, NOW).await.unwrap();
    let found = claimed.into_iter().map(|leased| {
        let provider_job_id = leased.open.and_then(|open| open.provider_job_id);
        (leased.task.id, provider_job_id)
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
}

async fn five_hundred_leases_are_renewed_in_one_commit(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let (store, new) = (store.clone(), task(&ann, 1, "0"));
        running.spawn(async move { submit(&store, new).await });
    }
    running.join_all().await;
    let leased = store.claim_tasks("w", 500, NOW + 99, NOW).await.unwrap();
    for gone in &leased[100..103] {
        cancel(&store, &gone.task, NOW).await;
    }
    let leases = leased
        .iter()
        .map(|leased| (leased.task.id.clone(), leased.fence));
    let commits = store.stats().commits();
    let lost = store
        .renew_leases("w", leases.collect(), NOW + 500)
        .await
        .unwrap();
    assert_eq!(store.stats().commits(), commits + 1);
    let gone = leased[100..103].iter().map(|leased| leased.task.id.clone());
    assert_eq!(lost, gone.collect::<Vec<_>>());
    assert!(claim_tasks(&store, NOW + 499).await.is_empty());
    let next = store
        .claim_tasks("v", 999, NOW + 999, NOW + 500)
        .await
        .unwrap();
    assert_eq!(next.len(), 497);
}
