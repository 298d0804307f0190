//! Callbacks: one for each end that somebody wants to hear of, delivered at least once, and their secrets.

use std::collections::BTreeSet;

use tollgate_core::{Millis, Secret, id};
use tollgate_store::{
    CallbackLog, CallbackNext, CallbackState, CallbackTried, CallbackTry, Cancelled, DueCallback,
    Ended, Store,
};

use crate::db::{Db, on_both};
use crate::world::{
    NOW, assert_clean, calling, claim, claim_one, delivered, failed, finish, finish_of, payer,
    rich, submit, task,
};

on_both!(
    every_end_puts_one_callback_out,
    what_a_task_shows_is_kept,
    a_callback_is_tried_until_it_arrives,
    a_callback_is_given_up,
    a_late_try_has_no_say,
    what_was_not_tried_is_put_back,
    a_single_node_takes_its_callbacks_up_at_once,
    two_nodes_never_try_the_same,
    cancel_and_finish_put_one_out,
    callbacks_are_forgotten_with_their_tasks,
    a_try_meets_the_purge,
    a_key_has_one_secret,
);

const URL: &str = "https://example.com/hook?a=1";

/// Takes what is due, for 60 s.
async fn due(store: &Store, now: Millis) -> Vec<DueCallback> {
    store
        .claim_callbacks("w", 100, now + 60_000, now)
        .await
        .unwrap()
}

fn tried(
    callback: &DueCallback,
    at: Millis,
    status: Option<u16>,
    next: CallbackNext,
) -> CallbackTried {
    CallbackTried {
        task_id: callback.task_id.clone(),
        number: callback.tries + 1,
        at,
        took_ms: 40,
        status,
        error: status.is_none().then(|| "no answer in time".to_owned()),
        next,
    }
}

/// A task that ended at `NOW` and whose callback is due.
async fn ended(store: &Store) -> String {
    let ann = rich(store, &id::short_id("ann_"), None).await;
    let id = submit(store, calling(task(&ann, 1, "0"))).await;
    let leased = claim_one(store, NOW).await;
    finish(store, &leased, delivered(1), NOW).await;
    id
}

async fn log(store: &Store, task_id: &str) -> CallbackLog {
    store.callback_log(task_id).await.unwrap().unwrap()
}

async fn every_end_puts_one_callback_out(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "9").await;
    for _ in 0..3 {
        submit(&store, calling(task(&ann, 1, "0.5"))).await;
    }
    submit(&store, task(&ann, 1, "0.5")).await;
    let leased = claim(&store, NOW).await;
    assert!(due(&store, NOW).await.is_empty());
    assert_eq!(store.next_callback_due().await, Ok(None));
    assert_eq!(store.callback_log(&leased[0].task.id).await, Ok(None));
    finish(&store, &leased[0], delivered(1), NOW + 3).await;
    finish(&store, &leased[1], failed(), NOW + 2).await;
    assert_eq!(
        store.cancel(&leased[2].task, NOW + 1).await,
        Ok(Cancelled::Done)
    );
    finish(&store, &leased[3], delivered(1), NOW).await;
    // What comes too late puts out no more.
    for leased in &leased {
        let late = finish(&store, leased, failed(), NOW + 4).await;
        assert_eq!(late, Ended::Already);
        let late = store.cancel(&leased.task, NOW + 4).await;
        assert_eq!(late, Ok(Cancelled::AlreadyFinal));
    }
    assert_eq!(store.totals().await.unwrap().callbacks, 3);
    assert_eq!(store.next_callback_due().await, Ok(Some(NOW + 1)));
    assert_clean(&store).await;
    let waiting = log(&store, &leased[0].task.id).await;
    let expected = CallbackLog {
        url: URL.to_owned(),
        state: CallbackState::Waiting,
        next_at: Some(NOW + 3),
        tries: Vec::new(),
    };
    assert_eq!(waiting, expected);
    assert_eq!(store.callback_log(&leased[3].task.id).await, Ok(None));

    // The longest due first.
    let first = store
        .claim_callbacks("w", 2, NOW + 99, NOW + 3)
        .await
        .unwrap();
    let second = store
        .claim_callbacks("w", 2, NOW + 99, NOW + 3)
        .await
        .unwrap();
    let expected = [2, 1, 0].map(|i: usize| DueCallback {
        task_id: leased[i].task.id.clone(),
        key_id: ann.key_id.clone(),
        url: URL.to_owned(),
        tries: 0,
        first_at: NOW + 3 - i as Millis,
    });
    assert_eq!([first, second].concat(), expected);
    assert_eq!(store.next_callback_due().await, Ok(Some(NOW + 99)));
    assert_clean(&store).await;
}

async fn what_a_task_shows_is_kept(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let mut new = calling(task(&ann, 1, "0"));
    new.shown = r#"{"seconds":"8","size":"1280x720"}"#.to_owned();
    let shown = new.shown.clone();
    let id = submit(&store, new).await;
    let leased = claim_one(&store, NOW).await;
    let seen = store.task(&id).await.unwrap().unwrap();
    for task in [&leased.task, &seen] {
        assert_eq!(task.shown, shown);
        assert_eq!(task.callback_url.as_deref(), Some(URL));
    }
    let plain = submit(&store, task(&ann, 1, "0")).await;
    let plain = store.task(&plain).await.unwrap().unwrap();
    assert_eq!((plain.shown.as_str(), plain.callback_url), ("{}", None));
}

async fn a_callback_is_tried_until_it_arrives(db: &Db) {
    let store = db.open().await;
    let id = ended(&store).await;
    let first = due(&store, NOW).await.remove(0);
    assert!(due(&store, NOW + 59_999).await.is_empty(), "it is leased");
    let again = tried(&first, NOW, Some(500), CallbackNext::Again(NOW + 5_000));
    for _ in 0..2 {
        store.callback_tried(again.clone()).await.unwrap();
        assert_eq!(log(&store, &id).await.next_at, Some(NOW + 5_000));
    }
    assert!(due(&store, NOW + 4_999).await.is_empty());
    let second = due(&store, NOW + 5_000).await.remove(0);
    assert_eq!((second.tries, second.first_at), (1, NOW));
    // Written down twice, the second time after somebody claimed it: it is still theirs.
    store.callback_tried(again).await.unwrap();
    assert!(due(&store, NOW + 5_000).await.is_empty());
    // The node dies over its try.
    let third = due(&store, NOW + 65_000).await.remove(0);
    assert_eq!(third.tries, 2);
    let arrived = tried(&third, NOW + 65_000, Some(204), CallbackNext::Delivered);
    for _ in 0..2 {
        store.callback_tried(arrived.clone()).await.unwrap();
        let expected = CallbackLog {
            url: URL.to_owned(),
            state: CallbackState::Delivered,
            next_at: None,
            tries: vec![
                CallbackTry {
                    number: 1,
                    at: NOW,
                    took_ms: 40,
                    status: Some(500),
                    error: None,
                },
                CallbackTry {
                    number: 3,
                    at: NOW + 65_000,
                    took_ms: 40,
                    status: Some(204),
                    error: None,
                },
            ],
        };
        assert_eq!(log(&store, &id).await, expected);
    }
    assert_eq!(store.totals().await.unwrap().callbacks, 0);
    assert_eq!(store.next_callback_due().await, Ok(None));
    assert!(due(&store, NOW + 999_999).await.is_empty());
    assert_clean(&store).await;
}

async fn a_callback_is_given_up(db: &Db) {
    let store = db.open().await;
    let id = ended(&store).await;
    let last = due(&store, NOW).await.remove(0);
    let given_up = tried(&last, NOW, None, CallbackNext::GivenUp);
    for _ in 0..2 {
        store.callback_tried(given_up.clone()).await.unwrap();
        let seen = log(&store, &id).await;
        assert_eq!((seen.state, seen.next_at), (CallbackState::GivenUp, None));
        assert_eq!(seen.tries.len(), 1);
        assert_eq!(seen.tries[0].error.as_deref(), Some("no answer in time"));
    }
    assert!(due(&store, NOW + 999_999).await.is_empty());
    assert_clean(&store).await;
    // Who asks again for a task that ended, or never was, leaves nothing.
    let strange = CallbackTried {
        task_id: id::task_id(NOW),
        ..given_up
    };
    store.callback_tried(strange).await.unwrap();
    assert_clean(&store).await;
}

async fn a_late_try_has_no_say(db: &Db) {
    let store = db.open().await;
    let id = ended(&store).await;
    let old = due(&store, NOW).await.remove(0);
    let new = due(&store, NOW + 60_000).await.remove(0);
    for next in [CallbackNext::GivenUp, CallbackNext::Again(NOW)] {
        let late = tried(&old, NOW, None, next);
        store.callback_tried(late).await.unwrap();
        let seen = log(&store, &id).await;
        assert_eq!(seen.state, CallbackState::Waiting);
        assert_eq!(seen.next_at, Some(NOW + 120_000));
        assert_eq!(seen.tries.len(), 1, "it is written down all the same");
    }
    // But that it arrived is so, whoever says it, and whatever others say after.
    let arrived = tried(&old, NOW, Some(200), CallbackNext::Delivered);
    store.callback_tried(arrived).await.unwrap();
    for next in [CallbackNext::GivenUp, CallbackNext::Again(NOW)] {
        let other = tried(&new, NOW + 60_000, Some(500), next);
        store.callback_tried(other).await.unwrap();
        assert_eq!(log(&store, &id).await.state, CallbackState::Delivered);
    }
    assert!(due(&store, NOW + 999_999).await.is_empty());
    assert_clean(&store).await;

    let id = ended(&store).await;
    let old = due(&store, NOW).await.remove(0);
    let new = due(&store, NOW + 60_000).await.remove(0);
    let given_up = tried(&new, NOW + 60_000, None, CallbackNext::GivenUp);
    store.callback_tried(given_up).await.unwrap();
    let arrived = tried(&old, NOW, Some(200), CallbackNext::Delivered);
    store.callback_tried(arrived).await.unwrap();
    assert_eq!(log(&store, &id).await.state, CallbackState::Delivered);
    assert_clean(&store).await;
}

async fn what_was_not_tried_is_put_back(db: &Db) {
    let store = db.open().await;
    let id = ended(&store).await;
    let put_back = async |owner: &str, due_at| {
        let ids = vec![id.clone()];
        store.put_back_callbacks(owner, ids, due_at).await.unwrap();
    };
    due(&store, NOW).await;
    put_back("v", NOW + 1).await;
    assert_eq!(store.next_callback_due().await, Ok(Some(NOW + 60_000)));
    for _ in 0..2 {
        put_back("w", NOW + 250).await;
        assert_eq!(store.next_callback_due().await, Ok(Some(NOW + 250)));
    }
    assert_clean(&store).await;
    let next = due(&store, NOW + 250).await.remove(0);
    assert_eq!(next.tries, 0, "a claim is no try");
    let arrived = tried(&next, NOW + 250, Some(200), CallbackNext::Delivered);
    store.callback_tried(arrived).await.unwrap();
    put_back("w", NOW + 500).await;
    assert_eq!(log(&store, &id).await.state, CallbackState::Delivered);
    assert_clean(&store).await;
}

async fn a_single_node_takes_its_callbacks_up_at_once(db: &Db) {
    let store = db.open().await;
    ended(&store).await;
    ended(&store).await;
    let before = store.claim_callbacks("w", 1, NOW + 60_000, NOW).await;
    assert_eq!(before.unwrap().len(), 1);
    // One that drains is still posting.
    assert_eq!(store.hand_back(Some("w"), NOW + 5).await, Ok(0));
    assert_eq!(due(&store, NOW + 5).await.len(), 1);
    // Of one that starts nobody is; whether the receiver had heard is not known, so the try counts.
    assert_eq!(store.hand_back(None, NOW + 6).await, Ok(0));
    let again = due(&store, NOW + 6).await;
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|callback| callback.tries == 1));
    assert_clean(&store).await;
}

async fn two_nodes_never_try_the_same(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = rich(&nodes[0], "ann", None).await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..120 {
        let (store, new) = (nodes[i % 2].clone(), calling(task(&ann, 1, "0")));
        running.spawn(async move {
            let id = submit(&store, new).await;
            let task = store.task(&id).await.unwrap().unwrap();
            assert_eq!(store.cancel(&task, NOW).await, Ok(Cancelled::Done));
        });
    }
    running.join_all().await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..40 {
        let store = nodes[i % 2].clone();
        running.spawn(async move {
            let claimed = store.claim_callbacks("w", 7, NOW + 99, NOW).await.unwrap();
            for callback in &claimed {
                let arrived = tried(callback, NOW, Some(200), CallbackNext::Delivered);
                store.callback_tried(arrived).await.unwrap();
            }
            claimed
        });
    }
    let mut got: Vec<_> = running.join_all().await.into_iter().flatten().collect();
    // On PostgreSQL a claim may come away with less than there is, while another is under way.
    got.extend(due(&nodes[0], NOW).await);
    assert_eq!(got.len(), 120);
    assert!(got.iter().all(|callback| callback.tries == 0));
    let ids: BTreeSet<_> = got.iter().map(|callback| &callback.task_id).collect();
    assert_eq!(ids.len(), 120);
    assert_clean(&nodes[1]).await;
}

async fn cancel_and_finish_put_one_out(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = payer(&nodes[0], "ann", "10").await;
    for _ in 0..40 {
        submit(&nodes[0], calling(task(&ann, 1, "0.1"))).await;
    }
    let mut running = tokio::task::JoinSet::new();
    for (i, leased) in claim(&nodes[0], NOW).await.into_iter().enumerate() {
        let [worker, user, sender] = [&nodes[0], &nodes[i % 2], &nodes[1]].map(Store::clone);
        running.spawn(async move {
            let end = finish_of(&leased, delivered(1), NOW);
            let (ended, cancelled, sent) = tokio::join!(
                worker.finish(end),
                user.cancel(&leased.task, NOW),
                sender.claim_callbacks("w", 3, NOW + 99, NOW)
            );
            match (ended.unwrap(), cancelled.unwrap()) {
                (Ended::Done { .. }, Cancelled::AlreadyFinal)
                | (Ended::Already, Cancelled::Done) => {}
                both => panic!("{both:?}"),
            }
            sent.unwrap()
        });
    }
    let mut got: Vec<_> = running.join_all().await.into_iter().flatten().collect();
    got.extend(due(&nodes[0], NOW).await);
    let ids: BTreeSet<_> = got.iter().map(|callback| &callback.task_id).collect();
    assert_eq!((got.len(), ids.len()), (40, 40));
    assert_clean(&nodes[0]).await;
}

async fn callbacks_are_forgotten_with_their_tasks(db: &Db) {
    let store = db.open().await;
    let id = ended(&store).await;
    let callback = due(&store, NOW).await.remove(0);
    let again = tried(&callback, NOW, Some(500), CallbackNext::Again(NOW + 9));
    store.callback_tried(again.clone()).await.unwrap();
    assert_eq!(store.purge(NOW + 1, NOW + 1).await, Ok(1));
    assert_eq!(store.callback_log(&id).await, Ok(None));
    assert_eq!(store.next_callback_due().await, Ok(None));
    store.callback_tried(again).await.unwrap();
    assert_eq!(db.number("SELECT COUNT(*) FROM callback_tries").await, 0);
    assert_clean(&store).await;
}

async fn a_try_meets_the_purge(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    for _ in 0..20 {
        ended(&nodes[0]).await;
    }
    let callbacks = due(&nodes[0], NOW).await;
    assert_eq!(callbacks.len(), 20);
    let mut running = tokio::task::JoinSet::new();
    for (i, callback) in callbacks.into_iter().enumerate() {
        let store = nodes[i % 2].clone();
        let arrived = tried(&callback, NOW, Some(200), CallbackNext::Delivered);
        running.spawn(async move { store.callback_tried(arrived).await });
    }
    let purged = nodes[0].purge(NOW + 1, NOW + 1).await;
    assert_eq!(purged, Ok(20));
    for written in running.join_all().await {
        assert_eq!(written, Ok(()));
    }
    assert_eq!(db.number("SELECT COUNT(*) FROM callback_tries").await, 0);
    assert_clean(&nodes[0]).await;
}

async fn a_key_has_one_secret(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let (ann, bob) = (
        rich(&nodes[0], "ann", None).await,
        rich(&nodes[0], "bob", None).await,
    );
    let mut running = tokio::task::JoinSet::new();
    for i in 0..30 {
        let (store, key) = (nodes[i % 2].clone(), ann.key_id.clone());
        running.spawn(async move {
            let fresh = Secret::new(format!("whsec_{i}"));
            store.webhook_secret(&key, fresh, NOW).await.unwrap()
        });
    }
    let secrets = running.join_all().await;
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    assert!(secrets[0].expose().starts_with("whsec_"));
    let fresh = || Secret::new("whsec_fresh");
    let known = nodes[1].webhook_secret(&ann.key_id, fresh(), NOW).await;
    assert_eq!(known.as_ref(), Ok(&secrets[0]));
    let other = nodes[1].webhook_secret(&bob.key_id, fresh(), NOW).await;
    assert_eq!(other, Ok(fresh()));
    assert_clean(&nodes[0]).await;
}
