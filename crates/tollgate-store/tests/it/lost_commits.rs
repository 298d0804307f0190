//! Commits whose replies are lost, and connections that go silent. On PostgreSQL only.

use tollgate_core::Secret;
use tollgate_store::{
    DatabaseLocation, DeliveryResult, FinishOutcome, NewAttempt, NextDelivery, RateLimits,
    SettleOutcome, Store, StoreError, SubmitOutcome,
};

use crate::databases::{Db, on_postgres};
use crate::fixtures::{
    NODE, NOW, TestAccount, account, amount, begin, cancel, chat, claim_one, claim_tasks, cost,
    delivered, enqueue, finish, hold, new_key, provider_job, queued, retry_task, settle,
    start_attempt, submit, task, tokens, unlimited_account, user_sums, with_idempotency_key,
    with_webhook,
};
use crate::proxy::Proxy;

/// Makes a test of each function: on PostgreSQL, by way of a proxy.
macro_rules! with_proxy {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[test]
            fn postgres() {
                crate::lost_commits::run_with_proxy(super::$test);
            }
        }
    )+ };
}

with_proxy!(
    writes_of_users_keys_and_tasks_are_applied_once,
    writes_of_attempts_and_webhooks_are_applied_once,
    writes_of_chats_are_applied_once,
    concurrent_submissions_are_applied_once,
    concurrent_chats_are_charged_once,
    a_credit_near_the_limit_is_applied_once,
    a_claim_with_a_lost_reply_ends_with_its_lease,
    a_silent_connection_is_unavailable,
);

fn run_with_proxy(test: impl AsyncFnOnce(&Db, &Proxy, &Store)) {
    on_postgres(async |db: &Db| {
        let DatabaseLocation::Postgres(url) = &db.location else {
            unreachable!("the test runs on PostgreSQL")
        };
        let proxy = Proxy::new(url).await;
        let store = Store::open(&proxy.location).await.unwrap();
        test(db, &proxy, &store).await;
    });
}

async fn writes_of_users_keys_and_tasks_are_applied_once(_: &Db, proxy: &Proxy, store: &Store) {
    let lose = || {
        assert!(!proxy.has_commit_to_lose());
        proxy.lose_next_commit();
    };
    lose();
    let user = store
        .create_user("ann", false, amount("5"), RateLimits::default(), NOW)
        .await
        .unwrap();
    assert_eq!(user.balance, amount("5"));
    lose();
    store
        .credit_user("ann", amount("5"), None, NOW)
        .await
        .unwrap();
    lose();
    let key = store.create_key(new_key("ann", Some("3"))).await.unwrap();
    let ann = TestAccount {
        name: user.name,
        user_id: user.id,
        key_id: key.id,
    };
    assert_eq!(user_sums(store, &ann).await, ["10", "0", "0"]);

    // Its idempotency record is stored by the lost commit, and yet the outcome is Accepted.
    lose();
    let first = with_idempotency_key(task(&ann, 2, "0.5"), "k", "f");
    assert_eq!(store.submit_task(first).await, Ok(SubmitOutcome::Accepted));
    let leased = claim_one(store, NOW).await;
    lose();
    assert_eq!(start_attempt(store, &leased, NOW).await, Some(1));
    lose();
    assert!(retry_task(store, &leased, 1, NOW, NOW).await);
    let leased = claim_one(store, NOW).await;
    assert_eq!(leased.failed_attempts, 1);
    lose();
    store
        .postpone_task(&leased.task.id, leased.fence, NOW)
        .await
        .unwrap();
    let leased = claim_one(store, NOW).await;
    lose();
    let kept = store
        .renew_leases("w", vec![(leased.task.id.clone(), leased.fence)], NOW + 9)
        .await;
    assert_eq!(kept, Ok(Vec::new()));
    lose();
    let outcome = finish(store, &leased, delivered(1), NOW).await;
    assert_eq!(
        outcome,
        FinishOutcome::Finished {
            cost: amount("0.5")
        }
    );
    assert_eq!(user_sums(store, &ann).await, ["9.5", "0", "0.5"]);

    let waiting = submit(store, task(&ann, 1, "1")).await;
    let waiting = store.task(&waiting).await.unwrap().unwrap();
    lose();
    cancel(store, &waiting, NOW).await;
    lose();
    store.purge_expired(NOW, NOW).await.unwrap();
    lose();
    store.revoke_key(&ann.key_id, NOW).await.unwrap();
    lose();
    store.disable_user("ann", NOW).await.unwrap();
    assert!(!proxy.has_commit_to_lose());
    assert_eq!(user_sums(store, &ann).await, ["9.5", "0", "0.5"]);
}

async fn writes_of_attempts_and_webhooks_are_applied_once(db: &Db, proxy: &Proxy, store: &Store) {
    let lose = || {
        assert!(!proxy.has_commit_to_lose());
        proxy.lose_next_commit();
    };
    let ann = account(store, "ann", "5").await;
    submit(store, with_webhook(task(&ann, 1, "1"))).await;
    let leased = claim_one(store, NOW).await;
    lose();
    assert_eq!(begin(store, queued(&leased, NOW)).await, Some(1));
    lose();
    let accepted = provider_job(&leased, 1, "op-1", NOW);
    assert_eq!(store.record_provider_job(accepted).await, Ok(true));
    lose();
    assert!(retry_task(store, &leased, 1, NOW, NOW).await);
    let leased = claim_one(store, NOW).await;
    assert_eq!((leased.failed_attempts, &leased.open), (1, &None));
    enqueue(store, &leased, "op-2", NOW).await;
    store.release_leases(None, NOW).await.unwrap();
    let leased = claim_one(store, NOW).await;
    lose();
    // The second attempt, which abandons the first, is started once.
    let start = NewAttempt {
        abandon_queued_as: Some("lost"),
        ..queued(&leased, NOW)
    };
    assert_eq!(begin(store, start).await, Some(3));
    lose();
    let outcome = finish(store, &leased, delivered(1), NOW).await;
    assert!(
        matches!(outcome, FinishOutcome::Finished { .. }),
        "{outcome:?}"
    );
    let waiting = submit(store, with_webhook(task(&ann, 1, "1"))).await;
    let waiting = store.task(&waiting).await.unwrap().unwrap();
    lose();
    cancel(store, &waiting, NOW).await;

    lose();
    // The claim that was lost, or the one that was heard: whoever has it, both are taken once.
    let lost = store.claim_webhooks("w", 9, NOW + 99, NOW).await.unwrap();
    assert_eq!(lost, []);
    let claimed = store.claim_webhooks("w", 9, NOW + 199, NOW + 99).await;
    let claimed = claimed.unwrap();
    assert_eq!(claimed.iter().map(|c| c.tries).collect::<Vec<_>>(), [1, 1]);
    lose();
    let ids = vec![claimed[0].task_id.clone()];
    store.unclaim_webhooks("w", ids, NOW + 500).await.unwrap();
    let log = store.webhook_log(&claimed[0].task_id).await.unwrap();
    assert_eq!(log.and_then(|log| log.next_at), Some(NOW + 500));
    lose();
    let tried = DeliveryResult {
        task_id: claimed[1].task_id.clone(),
        number: 2,
        at: NOW + 99,
        took_ms: 7,
        status: Some(200),
        error: None,
        next: NextDelivery::Delivered,
    };
    store.record_delivery(tried).await.unwrap();
    let log = store.webhook_log(&claimed[1].task_id).await.unwrap();
    assert_eq!(log.map(|log| log.tries.len()), Some(1));
    lose();
    let fresh = Secret::new("whsec_x");
    let secret = store.webhook_secret(&ann.key_id, fresh.clone(), NOW).await;
    assert_eq!(secret, Ok(fresh));
    lose();
    assert_eq!(
        store.purge_expired(NOW, NOW).await,
        Ok(0),
        "they are gone already"
    );
    assert!(!proxy.has_commit_to_lose());
    assert_eq!(db.number("SELECT COUNT(*) FROM callbacks").await, 0);
    assert_eq!(user_sums(store, &ann).await, ["4", "0", "1"]);
}

async fn writes_of_chats_are_applied_once(db: &Db, proxy: &Proxy, store: &Store) {
    let lose = || {
        assert!(!proxy.has_commit_to_lose());
        proxy.lose_next_commit();
    };
    let ann = account(store, "ann", "1").await;
    let bob = unlimited_account(store, "bob", None).await;
    lose();
    store.heartbeat(NODE, NOW + 30_000).await.unwrap();
    let new = chat(&ann, "1", "1");
    lose();
    // It fits only once.
    assert_eq!(
        hold(store, &new, tokens(900_000, 0)).await,
        Ok(amount("0.9"))
    );
    assert_eq!(user_sums(store, &ann).await, ["1", "0.9", "0"]);
    lose();
    assert_eq!(
        settle(store, &new, true, tokens(950_000, 0)).await,
        cost("0.95")
    );
    assert_eq!(user_sums(store, &ann).await, ["0.05", "0", "0.95"]);
    let unheld = chat(&bob, "1", "1");
    lose();
    assert_eq!(
        settle(store, &unheld, false, tokens(7, 0)).await,
        cost("0.000007")
    );
    // The limit, too, is applied only once.
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
        .release_orphaned_chats(NOW + 30_000, "other")
        .await
        .unwrap();
    assert_eq!(
        settle(store, &dead, true, tokens(5, 0)).await,
        SettleOutcome::AlreadyReleased
    );
    assert!(!proxy.has_commit_to_lose());
    assert_eq!(user_sums(store, &bob).await, ["-0.000007", "0", "0.000007"]);
    assert_eq!(db.number("SELECT COUNT(*) FROM chats").await, 4);
}

async fn concurrent_chats_are_charged_once(_: &Db, proxy: &Proxy, store: &Store) {
    store.heartbeat(NODE, NOW + 30_000).await.unwrap();
    let ann = account(store, "ann", "1.37").await;
    let bob = unlimited_account(store, "bob", None).await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..300 {
        if i % 50 == 0 {
            proxy.lose_next_commit();
        }
        let account = if i % 3 == 0 { &bob } else { &ann };
        let (store, new, held) = (store.clone(), chat(account, "1", "1"), i % 3 > 0);
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
    assert!(!proxy.has_commit_to_lose());
    let used = store.totals().await.unwrap();
    assert_eq!(used.used.nanos(), 5_000_000 * paid as i64);
    assert_eq!(used.held.nanos(), 0);
}

async fn concurrent_submissions_are_applied_once(_: &Db, proxy: &Proxy, store: &Store) {
    let ann = account(store, "ann", "1.37").await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..300 {
        if i % 50 == 0 {
            proxy.lose_next_commit();
        }
        let (store, new) = (store.clone(), task(&ann, 1, "0.01"));
        running.spawn(async move { store.submit_task(new).await.unwrap() });
        tokio::task::yield_now().await;
    }
    let results = running.join_all().await;
    let accepted = results.iter().filter(|r| **r == SubmitOutcome::Accepted);
    assert_eq!(accepted.count(), 137);
    assert!(!proxy.has_commit_to_lose());
    assert_eq!(user_sums(store, &ann).await, ["1.37", "1.37", "0"]);
}

/// A second application would exceed the maximum balance, so a retry must detect the first.
async fn a_credit_near_the_limit_is_applied_once(_: &Db, proxy: &Proxy, store: &Store) {
    let ann = account(store, "ann", "0").await;
    for _ in 0..9 {
        store
            .credit_user("ann", amount("1000000000"), None, NOW)
            .await
            .unwrap();
    }
    let bob = account(store, "bob", "0").await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..40 {
        if i % 10 == 0 {
            proxy.lose_next_commit();
        }
        let store = store.clone();
        running.spawn(async move {
            // It fits once and not twice.
            let name = if i == 20 { "ann" } else { "bob" };
            store
                .credit_user(name, amount("200000000"), None, NOW)
                .await
        });
    }
    for credited in running.join_all().await {
        assert!(credited.is_ok(), "{credited:?}");
    }
    assert!(!proxy.has_commit_to_lose());
    assert_eq!(user_sums(store, &bob).await[0], "7800000000");
    assert_eq!(user_sums(store, &ann).await[0], "9200000000");
}

async fn a_claim_with_a_lost_reply_ends_with_its_lease(_: &Db, proxy: &Proxy, store: &Store) {
    let ann = account(store, "ann", "1").await;
    submit(store, task(&ann, 1, "0.1")).await;
    proxy.lose_next_commit();
    assert!(claim_tasks(store, NOW).await.is_empty());
    let leased = claim_one(store, NOW + 30_000).await;
    assert_eq!((leased.fence, leased.failed_attempts), (2, 0));
}

async fn a_silent_connection_is_unavailable(db: &Db, proxy: &Proxy, store: &Store) {
    let ann = account(store, "ann", "1").await;
    proxy.go_silent();
    let (write, read) = tokio::join!(
        store.submit_task(task(&ann, 1, "0.1")),
        store.user(&ann.user_id),
    );
    assert!(
        matches!(write, Err(StoreError::Unavailable(_))),
        "{write:?}"
    );
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    // Another node is not held up for long by what the first one left behind.
    let other = db.open().await;
    submit(&other, task(&ann, 1, "0.1")).await;
    proxy.resume();
    submit(store, task(&ann, 1, "0.1")).await;
    assert_eq!(user_sums(store, &ann).await, ["1", "0.2", "0"]);
}
