//! Leases, fences, attempts.

use std::collections::BTreeSet;

use tollgate_core::TaskState;
use tollgate_store::{AttemptStart, Ended, Finish};

use crate::db::{Db, on_both};
use crate::world::{
    NOW, assert_clean, attempt, attempt_end, begin, begin_attempt, claim, claim_one, delivered,
    failed, finish, finish_of, payer, rich, submit, task, task_at, try_again,
};

on_both!(
    a_claim_takes_the_longest_due_first,
    two_owners_never_get_the_same_task,
    a_lease_that_ended_is_lost_to_the_next,
    leases_can_be_kept,
    a_task_put_back_is_nobodys,
    failed_attempts_are_counted,
    a_task_without_room_waits_and_counts_nothing,
    leases_are_handed_back,
    the_next_due_time_is_known,
    attempts_are_closed_with_their_task,
);

async fn a_claim_takes_the_longest_due_first(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let mut ids = Vec::new();
    for age in [3, 1, 4, 2, 5] {
        ids.push((age, submit(&store, task_at(&ann, 1, "0", NOW - age)).await));
    }
    submit(&store, task_at(&ann, 1, "0", NOW + 1)).await;
    ids.sort();
    ids.reverse();
    let first = store.claim("w", 3, NOW + 100, NOW).await.unwrap();
    let second = store.claim("w", 3, NOW + 100, NOW).await.unwrap();
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
    assert!(claim(&store, NOW).await.is_empty());
    assert_clean(&store).await;
}

async fn two_owners_never_get_the_same_task(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = rich(&nodes[0], "ann", None).await;
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
            store.claim(&owner, 7, NOW + 100, NOW).await.unwrap()
        });
    }
    let got = running.join_all().await.into_iter().flatten();
    let got: Vec<String> = got.map(|leased| leased.task.id).collect();
    assert_eq!(got.len(), 200);
    assert_eq!(got.iter().collect::<BTreeSet<_>>().len(), 200);
    assert_clean(&nodes[1]).await;
}

async fn a_lease_that_ended_is_lost_to_the_next(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    let id = submit(&store, task(&ann, 1, "0.5")).await;
    let old = claim_one(&store, NOW).await;
    assert_eq!(begin_attempt(&store, &old, NOW).await, Some(1));
    assert!(claim(&store, NOW + 29_999).await.is_empty());
    let late = NOW + 30_000;
    let mut taken = store.claim("v", 9, late + 30_000, late).await.unwrap();
    let new = taken.remove(0);
    assert_eq!(
        (new.fence, new.failed_attempts),
        (2, 0),
        "an interruption is no failure"
    );
    assert_eq!(new.task.started_at, Some(NOW));

    assert_eq!(
        finish(&store, &old, delivered(1), late).await,
        Ended::LostLease
    );
    assert_eq!(finish(&store, &old, failed(), late).await, Ended::LostLease);
    let kept = store
        .keep("w", vec![(id.clone(), old.fence)], late + 60_000)
        .await;
    assert_eq!(kept, Ok(vec![id.clone()]));
    assert!(!try_again(&store, &old, 1, late, late).await);
    assert_eq!(begin_attempt(&store, &old, late).await, None);
    store.progress(&id, old.fence, 50).await.unwrap();
    store.postpone(&id, old.fence, late).await.unwrap();
    assert_eq!(store.task(&id).await.unwrap().unwrap().progress, 0);
    assert!(
        claim(&store, late).await.is_empty(),
        "still leased to the new one"
    );

    assert_eq!(begin_attempt(&store, &new, late).await, Some(2));
    store.progress(&id, new.fence, 50).await.unwrap();
    assert_eq!(store.task(&id).await.unwrap().unwrap().progress, 50);
    assert!(matches!(
        finish(&store, &new, delivered(1), late).await,
        Ended::Done { .. }
    ));
    assert_clean(&store).await;
}

async fn leases_can_be_kept(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    for _ in 0..3 {
        submit(&store, task(&ann, 1, "0")).await;
    }
    let leased = claim(&store, NOW).await;
    finish(&store, &leased[2], failed(), NOW).await;
    let leases: Vec<_> = leased
        .iter()
        .map(|l| (l.task.id.clone(), l.fence))
        .collect();
    let lost = store.keep("w", leases.clone(), NOW + 90_000).await.unwrap();
    assert_eq!(
        lost,
        [leased[2].task.id.clone()],
        "what has ended needs no lease"
    );
    assert_eq!(
        store.keep("v", leases, NOW + 90_000).await.unwrap().len(),
        3
    );
    assert!(claim(&store, NOW + 30_001).await.is_empty());
    assert_eq!(claim(&store, NOW + 90_000).await.len(), 2);
    assert_clean(&store).await;
}

async fn a_task_put_back_is_nobodys(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    submit(&store, task(&ann, 1, "0")).await;
    let leased = claim_one(&store, NOW).await;
    let number = begin_attempt(&store, &leased, NOW).await.unwrap();
    assert!(try_again(&store, &leased, number, NOW + 10, NOW).await);
    // The fence is still the newest, and yet the lease is over.
    assert!(!try_again(&store, &leased, number, NOW + 10, NOW).await);
    assert_eq!(
        finish(&store, &leased, delivered(1), NOW).await,
        Ended::LostLease
    );
    assert_eq!(begin_attempt(&store, &leased, NOW).await, None);
    let leases = vec![(leased.task.id.clone(), leased.fence)];
    assert_eq!(store.keep("w", leases, NOW + 99).await.unwrap().len(), 1);
    let next = claim_one(&store, NOW + 10).await;
    assert_eq!((next.fence, next.failed_attempts), (2, 1));
    assert_clean(&store).await;
}

async fn failed_attempts_are_counted(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    for turn in 0..3 {
        let now = NOW + turn * 10;
        let leased = claim_one(&store, now).await;
        assert_eq!(leased.failed_attempts, turn);
        let attempt = AttemptStart {
            channel: format!("channel-{turn}"),
            ..attempt(&leased, now)
        };
        let number = begin(&store, attempt).await.unwrap();
        assert_eq!(number, turn + 1);
        assert!(try_again(&store, &leased, number, now + 10, now).await);
        assert!(claim(&store, now + 9).await.is_empty());
    }
    let channels = store.failed_channels(&id).await.unwrap();
    assert_eq!(channels, ["channel-0", "channel-1", "channel-2"]);
    assert!(store.failed_channels("task_none").await.unwrap().is_empty());
    assert_clean(&store).await;
}

async fn a_task_without_room_waits_and_counts_nothing(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    let leased = claim_one(&store, NOW).await;
    store.postpone(&id, leased.fence, NOW + 500).await.unwrap();
    assert!(claim(&store, NOW + 499).await.is_empty());
    let next = claim_one(&store, NOW + 500).await;
    assert_eq!((next.fence, next.failed_attempts), (2, 0));
    assert_clean(&store).await;
}

async fn leases_are_handed_back(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    for _ in 0..5 {
        submit(&store, task(&ann, 1, "0")).await;
    }
    let mine = store.claim("w", 2, NOW + 30_000, NOW).await.unwrap();
    let theirs = store.claim("v", 2, NOW + 30_000, NOW).await.unwrap();
    finish(&store, &mine[0], failed(), NOW).await;
    assert_eq!(store.hand_back(Some("w"), NOW).await, Ok(1));
    assert_eq!(store.hand_back(Some("w"), NOW).await, Ok(0));
    assert_eq!(
        finish(&store, &mine[1], delivered(1), NOW).await,
        Ended::LostLease
    );
    assert_eq!(
        claim(&store, NOW).await.len(),
        2,
        "the one handed back and the fifth"
    );
    // A single node that starts takes back its own of before the crash, at once.
    assert_eq!(store.hand_back(None, NOW).await, Ok(4));
    let again = claim(&store, NOW).await;
    assert_eq!(again.len(), 4);
    let fences = again
        .iter()
        .filter(|l| theirs.iter().any(|t| t.task.id == l.task.id));
    assert!(fences.clone().all(|l| l.fence == 2) && fences.count() == 2);
    assert_clean(&store).await;
}

async fn the_next_due_time_is_known(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    assert_eq!(store.next_due().await, Ok(None));
    submit(&store, task_at(&ann, 1, "0", NOW + 50)).await;
    submit(&store, task_at(&ann, 1, "0", NOW + 20)).await;
    assert_eq!(store.next_due().await, Ok(Some(NOW + 20)));
    let totals = store.totals().await.unwrap();
    assert_eq!((totals.submitted, totals.in_progress), (2, 0));
    assert_eq!(totals.oldest_due_at, Some(NOW + 20));
    let leased = store.claim("w", 1, NOW + 99, NOW + 20).await.unwrap();
    assert_eq!(store.next_due().await, Ok(Some(NOW + 50)));
    let totals = store.totals().await.unwrap();
    assert_eq!((totals.submitted, totals.in_progress), (1, 1));
    let rest = store.claim("w", 9, NOW + 99, NOW + 60).await.unwrap();
    assert_eq!(store.next_due().await, Ok(Some(NOW + 99)), "leases count");
    for leased in leased.iter().chain(&rest) {
        finish(&store, leased, failed(), NOW + 70).await;
    }
    assert_eq!(store.next_due().await, Ok(None));
    assert_clean(&store).await;
}

async fn attempts_are_closed_with_their_task(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let outcomes = "SELECT outcome FROM attempts ORDER BY number";
    submit(&store, task(&ann, 1, "0")).await;
    let first = claim_one(&store, NOW).await;
    assert_eq!(begin_attempt(&store, &first, NOW).await, Some(1));
    let second = claim_one(&store, NOW + 30_000).await;
    assert_eq!(begin_attempt(&store, &second, NOW + 30_000).await, Some(2));
    let third = claim_one(&store, NOW + 60_000).await;
    let end = Finish {
        attempt: Some(attempt_end(2)),
        ..finish_of(&third, failed(), NOW + 60_001)
    };
    assert!(matches!(store.finish(end).await, Ok(Ended::Done { .. })));
    let found = db.raw(outcomes).await.concat();
    assert_eq!(
        found,
        [Some("interrupted".to_owned()), Some("failed".to_owned())]
    );
    assert_clean(&store).await;
}
