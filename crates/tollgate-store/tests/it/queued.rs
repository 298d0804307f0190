//! Attempts that a provider takes into its queue: they outlive their leases, and nobody loses sight of them.

use std::collections::BTreeMap;

use tollgate_core::TaskState;
use tollgate_store::{
    Accepted, AttemptBegun, AttemptStart, Cancelled, Ended, Finish, OpenAttempt, StoreError,
};

use crate::db::{Db, on_both};
use crate::world::{
    NOW, accepted_of, assert_clean, attempt, attempt_end, begin, begin_attempt, claim, claim_one,
    delivered, enqueue, failed, finish, finish_of, payer, queued, rich, submit, task, task_at,
    try_again,
};

on_both!(
    a_queued_attempt_outlives_its_lease,
    what_is_not_queued_is_interrupted,
    a_ticket_is_written_under_the_lease,
    a_begin_can_be_repeated,
    a_task_waits_with_its_attempt_open,
    an_attempt_that_ended_is_no_longer_open,
    a_cancelled_task_says_what_is_left,
    a_cancellation_meets_a_ticket,
    thousands_are_claimed_with_their_tickets,
    five_hundred_leases_are_kept_at_once,
);

const OUTCOMES: &str = "SELECT outcome FROM attempts ORDER BY number";

fn open(number: i64, ticket: Option<&str>) -> OpenAttempt {
    OpenAttempt {
        number,
        channel: "main".to_owned(),
        external_id: Some("tg-1".to_owned()),
        key_print: Some("3f9a".to_owned()),
        ticket: ticket.map(str::to_owned),
        ticket_at: ticket.map(|_| NOW),
        adjustments: None,
        started_at: NOW,
    }
}

async fn a_queued_attempt_outlives_its_lease(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    let id = submit(&store, task(&ann, 1, "0.5")).await;
    assert_eq!(store.last_attempt(&id).await, Ok(None));
    let old = claim_one(&store, NOW).await;
    assert_eq!(old.open, None);
    assert_eq!(begin(&store, queued(&old, NOW)).await, Some(1));
    // Whether the provider has it is not known yet, and that is what a next worker would see.
    assert_eq!(store.last_attempt(&id).await, Ok(Some(open(1, None))));
    let accepted = accepted_of(&old, 1, "cgt-1", NOW);
    assert_eq!(store.accepted(accepted).await, Ok(true));
    assert_eq!(
        store.last_attempt(&id).await,
        Ok(Some(open(1, Some("cgt-1"))))
    );

    let late = NOW + 30_000;
    let new = claim_one(&store, late).await;
    let left = open(1, Some("cgt-1"));
    assert_eq!(new.open.as_ref(), Some(&left));
    assert_eq!(new.failed_attempts, 0);
    for start in [queued(&new, late), attempt(&new, late)] {
        let begun = store.begin_attempt(start).await;
        assert_eq!(begun, Ok(AttemptBegun::StillOpen));
    }
    let begun = store.begin_attempt(queued(&old, late)).await;
    assert_eq!(begun, Ok(AttemptBegun::LostLease));
    assert_eq!(db.number("SELECT COUNT(*) FROM attempts").await, 1);
    assert_clean(&store).await;

    let start = AttemptStart {
        abandon: Some("lost"),
        ..queued(&new, late)
    };
    assert_eq!(begin(&store, start).await, Some(2));
    let found = db.raw(OUTCOMES).await.concat();
    assert_eq!(found, [Some("lost".to_owned()), None]);
    let second = store.last_attempt(&id).await.unwrap().unwrap();
    assert_eq!((second.number, second.ticket), (2, None));
    assert_clean(&store).await;
}

async fn what_is_not_queued_is_interrupted(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    let first = claim_one(&store, NOW).await;
    assert_eq!(begin_attempt(&store, &first, NOW).await, Some(1));
    assert_eq!(store.last_attempt(&id).await, Ok(None));
    let late = NOW + 30_000;
    let second = claim_one(&store, late).await;
    assert_eq!(second.open, None);
    // What is said of queued attempts is not said of this one.
    let start = AttemptStart {
        abandon: Some("unknown"),
        ..queued(&second, late)
    };
    assert_eq!(begin(&store, start).await, Some(2));
    let found = db.raw(OUTCOMES).await.concat();
    assert_eq!(found, [Some("interrupted".to_owned()), None]);
    assert_clean(&store).await;
}

async fn a_ticket_is_written_under_the_lease(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    let leased = claim_one(&store, NOW).await;
    let at = |number, ticket: &str, now| accepted_of(&leased, number, ticket, now);
    assert_eq!(store.accepted(at(1, "a", NOW)).await, Ok(false));
    assert_eq!(begin(&store, queued(&leased, NOW)).await, Some(1));
    let most = "x".repeat(Accepted::TICKET_MAX);
    for (number, ticket, now, is_written) in [
        (1, "a", NOW, true),
        (1, "a", NOW, true),
        (2, "b", NOW, false),
        (1, most.as_str(), NOW + 7, true),
    ] {
        let accepted = store.accepted(at(number, ticket, now)).await;
        assert_eq!(accepted, Ok(is_written), "{number} {now}");
    }
    let shown = store.last_attempt(&id).await.unwrap().unwrap();
    assert_eq!(
        (shown.ticket, shown.ticket_at),
        (Some(most.clone()), Some(NOW))
    );

    // Adjustments stay when a later ticket comes without any.
    let told = Some(r#"[{"field":"size"}]"#.to_owned());
    for adjustments in [told.clone(), None] {
        let accepted = Accepted {
            adjustments,
            ..at(1, &most, NOW)
        };
        assert_eq!(store.accepted(accepted).await, Ok(true));
        let shown = store.last_attempt(&id).await.unwrap().unwrap();
        assert_eq!(shown.adjustments, told);
    }
    for bad in [String::new(), "x".repeat(Accepted::TICKET_MAX + 1)] {
        let refused = store.accepted(at(1, &bad, NOW)).await;
        assert!(
            matches!(&refused, Err(StoreError::Invalid(why)) if why.contains("expected 1 to 8192")),
            "{refused:?}"
        );
    }
    let new = claim_one(&store, NOW + 30_000).await;
    assert_eq!(store.accepted(at(1, "late", NOW)).await, Ok(false));
    let kept = new.open.as_ref().and_then(|open| open.ticket.as_ref());
    assert_eq!(kept.map(String::len), Some(Accepted::TICKET_MAX));
    // Nor has it a place once the attempt or the task has ended.
    assert!(try_again(&store, &new, 1, NOW, NOW).await);
    let last = claim_one(&store, NOW + 1).await;
    let ended = accepted_of(&last, 1, "late", NOW);
    assert_eq!(store.accepted(ended).await, Ok(false));
    finish(&store, &last, failed(), NOW + 2).await;
    let ended = accepted_of(&last, 1, "late", NOW);
    assert_eq!(store.accepted(ended).await, Ok(false));
    assert_clean(&store).await;
}

async fn a_begin_can_be_repeated(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    for _ in 0..2 {
        submit(&store, task(&ann, 1, "0")).await;
    }
    let leased = claim(&store, NOW).await;
    for start in [queued(&leased[0], NOW), attempt(&leased[1], NOW)] {
        assert_eq!(begin(&store, start.clone()).await, Some(1));
        assert_eq!(begin(&store, start).await, Some(1));
    }
    assert_eq!(db.number("SELECT COUNT(*) FROM attempts").await, 2);
    // At the same moment, and yet another: the lease is.
    store.hand_back(None, NOW).await.unwrap();
    let mut again = claim(&store, NOW).await;
    again.sort_by_key(|leased| leased.open.is_none());
    let start = queued(&again[0], NOW);
    assert!(matches!(
        store.begin_attempt(start).await,
        Ok(AttemptBegun::StillOpen)
    ));
    assert_eq!(begin_attempt(&store, &again[1], NOW).await, Some(2));
    assert_clean(&store).await;
}

async fn a_task_waits_with_its_attempt_open(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    let leased = claim_one(&store, NOW).await;
    enqueue(&store, &leased, "op-1", NOW).await;
    store.progress(&id, leased.fence, 30).await.unwrap();
    store
        .postpone(&id, leased.fence, NOW + 5_000)
        .await
        .unwrap();
    let seen = store.task(&id).await.unwrap().unwrap();
    assert_eq!((seen.state, seen.progress), (TaskState::InProgress, 30));
    assert_eq!(
        store.last_attempt(&id).await,
        Ok(Some(open(1, Some("op-1"))))
    );
    // The lease is over: what comes late from it is not written.
    let late = accepted_of(&leased, 1, "op-2", NOW);
    assert_eq!(store.accepted(late).await, Ok(false));
    assert!(claim(&store, NOW + 4_999).await.is_empty());
    let next = claim_one(&store, NOW + 5_000).await;
    assert_eq!(next.open, Some(open(1, Some("op-1"))));
    assert_eq!((next.fence, next.failed_attempts), (2, 0));
    // The attempt is ended by whoever holds the lease then.
    let done = Finish {
        attempt: Some(tollgate_store::AttemptEnd {
            number: 1,
            outcome: "done",
            error: None,
        }),
        ..finish_of(&next, delivered(1), NOW + 6_000)
    };
    assert!(matches!(store.finish(done).await, Ok(Ended::Done { .. })));
    let found = db.raw(OUTCOMES).await.concat();
    assert_eq!(found, [Some("done".to_owned())]);
    assert_clean(&store).await;
}

async fn an_attempt_that_ended_is_no_longer_open(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let id = submit(&store, task(&ann, 1, "0")).await;
    let first = claim_one(&store, NOW).await;
    enqueue(&store, &first, "op-1", NOW).await;
    assert!(try_again(&store, &first, 1, NOW + 10, NOW).await);
    assert_eq!(
        store.last_attempt(&id).await,
        Ok(Some(open(1, Some("op-1"))))
    );
    let second = claim_one(&store, NOW + 10).await;
    assert_eq!(second.open, None);
    assert_eq!(enqueue(&store, &second, "op-2", NOW + 10).await, 2);
    // The end of another attempt leaves it open.
    assert!(try_again(&store, &second, 1, NOW + 20, NOW + 10).await);
    let third = claim_one(&store, NOW + 20).await;
    let still = third.open.as_ref().and_then(|open| open.ticket.as_deref());
    assert_eq!(still, Some("op-2"));
    assert_clean(&store).await;
    let end = Finish {
        attempt: Some(attempt_end(2)),
        ..finish_of(&third, failed(), NOW + 21)
    };
    assert!(matches!(store.finish(end).await, Ok(Ended::Done { .. })));
    assert_clean(&store).await;
}

async fn a_cancelled_task_says_what_is_left(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "9").await;
    for _ in 0..4 {
        submit(&store, task(&ann, 1, "0.25")).await;
    }
    let leased = claim(&store, NOW).await;
    enqueue(&store, &leased[0], "op-1", NOW).await;
    begin(&store, queued(&leased[1], NOW)).await.unwrap();
    begin_attempt(&store, &leased[2], NOW).await.unwrap();
    let left = [Some(open(1, Some("op-1"))), Some(open(1, None)), None, None];
    for (leased, left) in leased.iter().zip(left) {
        let cancelled = store.cancel(&leased.task, NOW + 5).await;
        assert_eq!(cancelled, Ok(Cancelled::Done));
        assert_eq!(store.last_attempt(&leased.task.id).await, Ok(left));
    }
    let others = "SELECT COUNT(*) FROM attempts WHERE ended_at IS NULL OR outcome <> 'cancelled'";
    assert_eq!(db.number(others).await, 0);
    assert_clean(&store).await;
}

/// Either the cancellation knows the ticket, or the worker hears that its ticket came too late.
async fn a_cancellation_meets_a_ticket(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = payer(&nodes[0], "ann", "10").await;
    for _ in 0..40 {
        submit(&nodes[0], task(&ann, 1, "0.1")).await;
    }
    let mut running = tokio::task::JoinSet::new();
    for (i, leased) in claim(&nodes[0], NOW).await.into_iter().enumerate() {
        let [worker, user] = [nodes[0].clone(), nodes[i % 2].clone()];
        begin(&worker, queued(&leased, NOW)).await.unwrap();
        running.spawn(async move {
            let accepted = accepted_of(&leased, 1, "op-1", NOW);
            let (accepted, cancelled) = if i % 4 < 2 {
                tokio::join!(worker.accepted(accepted), user.cancel(&leased.task, NOW))
            } else {
                let (cancelled, accepted) =
                    tokio::join!(user.cancel(&leased.task, NOW), worker.accepted(accepted));
                (accepted, cancelled)
            };
            assert_eq!(cancelled, Ok(Cancelled::Done));
            let left = user.last_attempt(&leased.task.id).await.unwrap().unwrap();
            assert_eq!(left.ticket.is_some(), accepted.unwrap());
        });
    }
    assert_eq!(running.join_all().await.len(), 40);
    assert_clean(&nodes[0]).await;
}

async fn thousands_are_claimed_with_their_tickets(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..1_500 {
        let (store, new) = (store.clone(), task_at(&ann, 1, "0", NOW - i % 7));
        running.spawn(async move { submit(&store, new).await });
    }
    running.join_all().await;
    let leased = store.claim("w", 2_000, NOW + 99, NOW).await.unwrap();
    let mut expected = BTreeMap::new();
    let mut running = tokio::task::JoinSet::new();
    for (i, leased) in leased.into_iter().enumerate() {
        let ticket = (i % 3 > 0).then(|| format!("op-{i}"));
        expected.insert(leased.task.id.clone(), ticket.clone());
        let store = store.clone();
        running.spawn(async move {
            match ticket {
                Some(ticket) => enqueue(&store, &leased, &ticket, NOW).await,
                None => begin_attempt(&store, &leased, NOW).await.unwrap(),
            }
        });
    }
    running.join_all().await;
    assert_eq!(store.hand_back(None, NOW).await, Ok(1_500));
    let claimed = store.claim("v", 2_000, NOW + 99, NOW).await.unwrap();
    let found = claimed.into_iter().map(|leased| {
        let ticket = leased.open.and_then(|open| open.ticket);
        (leased.task.id, ticket)
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
    assert_clean(&store).await;
}

async fn five_hundred_leases_are_kept_at_once(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let (store, new) = (store.clone(), task(&ann, 1, "0"));
        running.spawn(async move { submit(&store, new).await });
    }
    running.join_all().await;
    let leased = store.claim("w", 500, NOW + 99, NOW).await.unwrap();
    for gone in &leased[100..103] {
        assert_eq!(store.cancel(&gone.task, NOW).await, Ok(Cancelled::Done));
    }
    let leases = leased
        .iter()
        .map(|leased| (leased.task.id.clone(), leased.fence));
    let commits = store.stats().commits();
    let lost = store.keep("w", leases.collect(), NOW + 500).await.unwrap();
    assert_eq!(store.stats().commits(), commits + 1);
    let gone = leased[100..103].iter().map(|leased| leased.task.id.clone());
    assert_eq!(lost, gone.collect::<Vec<_>>());
    assert!(claim(&store, NOW + 499).await.is_empty());
    let next = store.claim("v", 999, NOW + 999, NOW + 500).await.unwrap();
    assert_eq!(next.len(), 497);
    assert_clean(&store).await;
}
