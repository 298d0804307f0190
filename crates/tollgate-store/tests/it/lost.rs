//! Commits whose answers are lost, and wires that go dead. On PostgreSQL only: SQLite has no wire.

use tollgate_core::Secret;
use tollgate_store::{
    AttemptStart, CallbackNext, CallbackTried, Cancelled, ChatSettled, Ended, Location, RateLimits,
    Store, StoreError, Submitted,
};

use crate::db::{Db, on_postgres};
use crate::proxy::Proxy;
use crate::world::{
    NODE, NOW, Payer, accepted_of, amount, assert_clean, begin, begin_attempt, calling, chat,
    claim, claim_one, cost, delivered, enqueue, finish, hold, keyed, new_key, payer, queued, rich,
    settle, submit, sums, task, tokens, try_again,
};

/// Makes a test of each function: on PostgreSQL, by way of a wire.
macro_rules! on_a_wire {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[test]
            fn postgres() {
                crate::lost::on_wire(super::$test);
            }
        }
    )+ };
}

on_a_wire!(
    every_write_answers_as_if_nothing_had_been_lost,
    attempts_and_callbacks_answer_as_if_nothing_had_been_lost,
    chats_answer_as_if_nothing_had_been_lost,
    concurrent_submissions_are_done_once,
    concurrent_chats_are_charged_once,
    what_fits_only_once_is_done_once,
    a_claim_that_nobody_heard_of_ends_with_its_lease,
    a_dead_wire_is_said_to_be_unavailable,
);

fn on_wire(test: impl AsyncFnOnce(&Db, &Proxy, &Store)) {
    on_postgres(async |db: &Db| {
        let Location::Postgres(url) = &db.location else {
            unreachable!("the test runs on PostgreSQL")
        };
        let wire = Proxy::new(url).await;
        let store = Store::open(&wire.location).await.unwrap();
        test(db, &wire, &store).await;
    });
}

async fn every_write_answers_as_if_nothing_had_been_lost(_: &Db, wire: &Proxy, store: &Store) {
    let lose = || {
        assert!(!wire.has_one_to_lose());
        wire.lose_next_commit();
    };
    lose();
    let user = store
        .create_user("ann", false, amount("5"), RateLimits::default(), NOW)
        .await
        .unwrap();
    assert_eq!(user.balance, amount("5"));
    lose();
    store.credit("ann", amount("5"), None, NOW).await.unwrap();
    lose();
    let key = store.create_key(new_key("ann", Some("3"))).await.unwrap();
    let ann = Payer {
        name: user.name,
        user_id: user.id,
        key_id: key.id,
    };
    assert_eq!(sums(store, &ann).await, ["10", "0", "0"]);

    // Its receipt is remembered by then, and yet it is told that it was the first.
    lose();
    let first = keyed(task(&ann, 2, "0.5"), "k", "f");
    assert_eq!(store.submit(first).await, Ok(Submitted::Accepted));
    let leased = claim_one(store, NOW).await;
    lose();
    assert_eq!(begin_attempt(store, &leased, NOW).await, Some(1));
    lose();
    assert!(try_again(store, &leased, 1, NOW, NOW).await);
    let leased = claim_one(store, NOW).await;
    assert_eq!(leased.failed_attempts, 1);
    lose();
    store
        .postpone(&leased.task.id, leased.fence, NOW)
        .await
        .unwrap();
    let leased = claim_one(store, NOW).await;
    lose();
    let kept = store
        .keep("w", vec![(leased.task.id.clone(), leased.fence)], NOW + 9)
        .await;
    assert_eq!(kept, Ok(Vec::new()));
    lose();
    let done = finish(store, &leased, delivered(1), NOW).await;
    assert_eq!(
        done,
        Ended::Done {
            cost: amount("0.5")
        }
    );
    assert_eq!(sums(store, &ann).await, ["9.5", "0", "0.5"]);

    let waiting = submit(store, task(&ann, 1, "1")).await;
    let waiting = store.task(&waiting).await.unwrap().unwrap();
    lose();
    assert_eq!(store.cancel(&waiting, NOW).await, Ok(Cancelled::Done));
    lose();
    store.purge(NOW, NOW).await.unwrap();
    lose();
    store.revoke_key(&ann.key_id, NOW).await.unwrap();
    lose();
    store.disable_user("ann", NOW).await.unwrap();
    assert!(!wire.has_one_to_lose());
    assert_eq!(sums(store, &ann).await, ["9.5", "0", "0.5"]);
    assert_clean(store).await;
}

async fn attempts_and_callbacks_answer_as_if_nothing_had_been_lost(
    db: &Db,
    wire: &Proxy,
    store: &Store,
) {
    let lose = || {
        assert!(!wire.has_one_to_lose());
        wire.lose_next_commit();
    };
    let ann = payer(store, "ann", "5").await;
    submit(store, calling(task(&ann, 1, "1"))).await;
    let leased = claim_one(store, NOW).await;
    lose();
    assert_eq!(begin(store, queued(&leased, NOW)).await, Some(1));
    lose();
    let accepted = accepted_of(&leased, 1, "op-1", NOW);
    assert_eq!(store.accepted(accepted).await, Ok(true));
    lose();
    assert!(try_again(store, &leased, 1, NOW, NOW).await);
    let leased = claim_one(store, NOW).await;
    assert_eq!((leased.failed_attempts, &leased.open), (1, &None));
    enqueue(store, &leased, "op-2", NOW).await;
    store.hand_back(None, NOW).await.unwrap();
    let leased = claim_one(store, NOW).await;
    lose();
    // Of two that are open in turn, the second is begun once.
    let start = AttemptStart {
        abandon: Some("lost"),
        ..queued(&leased, NOW)
    };
    assert_eq!(begin(store, start).await, Some(3));
    lose();
    let done = finish(store, &leased, delivered(1), NOW).await;
    assert!(matches!(done, Ended::Done { .. }), "{done:?}");
    let waiting = submit(store, calling(task(&ann, 1, "1"))).await;
    let waiting = store.task(&waiting).await.unwrap().unwrap();
    lose();
    assert_eq!(store.cancel(&waiting, NOW).await, Ok(Cancelled::Done));

    lose();
    // The claim that was lost, or the one that was heard: whoever has it, both are taken once.
    let lost = store.claim_callbacks("w", 9, NOW + 99, NOW).await.unwrap();
    assert_eq!(lost, []);
    let claimed = store.claim_callbacks("w", 9, NOW + 199, NOW + 99).await;
    let claimed = claimed.unwrap();
    assert_eq!(claimed.iter().map(|c| c.tries).collect::<Vec<_>>(), [1, 1]);
    lose();
    let ids = vec![claimed[0].task_id.clone()];
    store.put_back_callbacks("w", ids, NOW + 500).await.unwrap();
    let log = store.callback_log(&claimed[0].task_id).await.unwrap();
    assert_eq!(log.and_then(|log| log.next_at), Some(NOW + 500));
    lose();
    let tried = CallbackTried {
        task_id: claimed[1].task_id.clone(),
        number: 2,
        at: NOW + 99,
        took_ms: 7,
        status: Some(200),
        error: None,
        next: CallbackNext::Delivered,
    };
    store.callback_tried(tried).await.unwrap();
    let log = store.callback_log(&claimed[1].task_id).await.unwrap();
    assert_eq!(log.map(|log| log.tries.len()), Some(1));
    lose();
    let fresh = Secret::new("whsec_x");
    let secret = store.webhook_secret(&ann.key_id, fresh.clone(), NOW).await;
    assert_eq!(secret, Ok(fresh));
    lose();
    assert_eq!(store.purge(NOW, NOW).await, Ok(0), "they are gone already");
    assert!(!wire.has_one_to_lose());
    assert_eq!(db.number("SELECT COUNT(*) FROM callbacks").await, 0);
    assert_eq!(sums(store, &ann).await, ["4", "0", "1"]);
    assert_clean(store).await;
}

async fn chats_answer_as_if_nothing_had_been_lost(db: &Db, wire: &Proxy, store: &Store) {
    let lose = || {
        assert!(!wire.has_one_to_lose());
        wire.lose_next_commit();
    };
    let ann = payer(store, "ann", "1").await;
    let bob = rich(store, "bob", None).await;
    lose();
    store.beat(NODE, NOW + 30_000).await.unwrap();
    let new = chat(&ann, "1", "1");
    lose();
    // It fits only once.
    assert_eq!(
        hold(store, &new, tokens(900_000, 0)).await,
        Ok(amount("0.9"))
    );
    assert_eq!(sums(store, &ann).await, ["1", "0.9", "0"]);
    lose();
    assert_eq!(
        settle(store, &new, true, tokens(950_000, 0)).await,
        cost("0.95")
    );
    assert_eq!(sums(store, &ann).await, ["0.05", "0", "0.95"]);
    let unheld = chat(&bob, "1", "1");
    lose();
    assert_eq!(
        settle(store, &unheld, false, tokens(7, 0)).await,
        cost("0.000007")
    );
    // The cap, too, is asked of it only once.
    let capped = chat(&ann, "1", "1");
    lose();
    assert_eq!(
        settle(store, &capped, false, tokens(90_000, 0)).await,
        cost("0.05")
    );
    let dead = chat(&bob, "1", "1");
    hold(store, &dead, tokens(5, 0)).await.unwrap();
    lose();
    store
        .release_dead_chats(NOW + 30_000, "other")
        .await
        .unwrap();
    assert_eq!(
        settle(store, &dead, true, tokens(5, 0)).await,
        ChatSettled::Lost
    );
    assert!(!wire.has_one_to_lose());
    assert_eq!(sums(store, &bob).await, ["-0.000007", "0", "0.000007"]);
    assert_eq!(db.number("SELECT COUNT(*) FROM chats").await, 4);
    assert_clean(store).await;
}

async fn concurrent_chats_are_charged_once(_: &Db, wire: &Proxy, store: &Store) {
    store.beat(NODE, NOW + 30_000).await.unwrap();
    let ann = payer(store, "ann", "1.37").await;
    let bob = rich(store, "bob", None).await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..300 {
        if i % 50 == 0 {
            wire.lose_next_commit();
        }
        let payer = if i % 3 == 0 { &bob } else { &ann };
        let (store, new, held) = (store.clone(), chat(payer, "1", "1"), i % 3 > 0);
        running.spawn(async move {
            if held && hold(&store, &new, tokens(10_000, 0)).await.is_err() {
                return cost("0");
            }
            settle(&store, &new, held, tokens(5_000, 0)).await
        });
        tokio::task::yield_now().await;
    }
    let paid = running.join_all().await;
    let paid = paid.iter().filter(|paid| **paid == cost("0.005")).count();
    assert!((237..=300).contains(&paid), "{paid}");
    assert!(!wire.has_one_to_lose());
    let used = store.totals().await.unwrap();
    assert_eq!(used.used.nanos(), 5_000_000 * paid as i64);
    assert_eq!(used.held.nanos(), 0);
    assert_clean(store).await;
}

async fn concurrent_submissions_are_done_once(_: &Db, wire: &Proxy, store: &Store) {
    let ann = payer(store, "ann", "1.37").await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..300 {
        if i % 50 == 0 {
            wire.lose_next_commit();
        }
        let (store, new) = (store.clone(), task(&ann, 1, "0.01"));
        running.spawn(async move { store.submit(new).await.unwrap() });
        tokio::task::yield_now().await;
    }
    let results = running.join_all().await;
    let accepted = results.iter().filter(|r| **r == Submitted::Accepted);
    assert_eq!(accepted.count(), 137);
    assert!(!wire.has_one_to_lose());
    assert_eq!(sums(store, &ann).await, ["1.37", "1.37", "0"]);
    assert_clean(store).await;
}

/// Its second try finds no room for it: that must not be asked of what is done already.
async fn what_fits_only_once_is_done_once(_: &Db, wire: &Proxy, store: &Store) {
    let ann = payer(store, "ann", "0").await;
    for _ in 0..9 {
        store
            .credit("ann", amount("1000000000"), None, NOW)
            .await
            .unwrap();
    }
    let bob = payer(store, "bob", "0").await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..40 {
        if i % 10 == 0 {
            wire.lose_next_commit();
        }
        let store = store.clone();
        running.spawn(async move {
            // It fits once and not twice.
            let name = if i == 20 { "ann" } else { "bob" };
            store.credit(name, amount("200000000"), None, NOW).await
        });
    }
    for credited in running.join_all().await {
        assert!(credited.is_ok(), "{credited:?}");
    }
    assert!(!wire.has_one_to_lose());
    assert_eq!(sums(store, &bob).await[0], "7800000000");
    assert_eq!(sums(store, &ann).await[0], "9200000000");
    assert_clean(store).await;
}

async fn a_claim_that_nobody_heard_of_ends_with_its_lease(_: &Db, wire: &Proxy, store: &Store) {
    let ann = payer(store, "ann", "1").await;
    submit(store, task(&ann, 1, "0.1")).await;
    wire.lose_next_commit();
    assert!(claim(store, NOW).await.is_empty());
    let leased = claim_one(store, NOW + 30_000).await;
    assert_eq!((leased.fence, leased.failed_attempts), (2, 0));
    assert_clean(store).await;
}

async fn a_dead_wire_is_said_to_be_unavailable(db: &Db, wire: &Proxy, store: &Store) {
    let ann = payer(store, "ann", "1").await;
    wire.go_dead();
    let (write, read) = tokio::join!(store.submit(task(&ann, 1, "0.1")), store.user(&ann.user_id),);
    assert!(
        matches!(write, Err(StoreError::Unavailable(_))),
        "{write:?}"
    );
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    // Another node is not held up for long by what the first one left behind.
    let other = db.open().await;
    submit(&other, task(&ann, 1, "0.1")).await;
    wire.go_on();
    submit(store, task(&ann, 1, "0.1")).await;
    assert_eq!(sums(store, &ann).await, ["1", "0.2", "0"]);
    assert_clean(store).await;
}
