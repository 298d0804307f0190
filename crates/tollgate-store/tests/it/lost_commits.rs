//! Commits whose replies are lost, and connections that become silent. Only on PostgreSQL; `cases/lost_commits.txt` has every kind of write.

use tollgate_store::{DatabaseLocation, Store, StoreError, SubmitOutcome};

use crate::databases::{Db, on_postgres};
use crate::fixtures::{
    NODE, NOW, account, amount, chat, cost, hold, settle, submit, task, tokens, unlimited_account,
    user_sums,
};
use crate::proxy::Proxy;

/// Creates a test of each function on PostgreSQL, with connections through a proxy.
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
    concurrent_submissions_are_applied_once,
    concurrent_chats_are_charged_once,
    a_credit_near_the_limit_is_applied_once,
    a_silent_connection_is_unavailable,
);

pub(crate) fn run_with_proxy(test: impl AsyncFnOnce(&Db, &Proxy, &Store)) {
    on_postgres(async |db: &Db| {
        let DatabaseLocation::Postgres(url) = &db.location else {
            unreachable!("the test runs on PostgreSQL")
        };
        let proxy = Proxy::new(url).await;
        let store = Store::open(&proxy.location).await.unwrap();
        test(db, &proxy, &store).await;
    });
}

async fn concurrent_chats_are_charged_once(_: &Db, proxy: &Proxy, store: &Store) {
    store.heartbeat(NODE, NOW + 30_000).await.unwrap();
    let ann = account(store, "ann", "1.37").await;
    let bob = unlimited_account(store, "bob", None).await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..300 {
        if i % 50 == 0 {
            proxy.lose_another_commit().await;
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
            proxy.lose_another_commit().await;
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
        let credited = store.credit_user("ann", amount("1000000000"), None, NOW);
        credited.await.unwrap();
    }
    let bob = account(store, "bob", "0").await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..40 {
        if i % 10 == 0 {
            proxy.lose_another_commit().await;
        }
        let store = store.clone();
        running.spawn(async move {
            // The amount fits into the balance once but not twice.
            let name = if i == 20 { "ann" } else { "bob" };
            let by = amount("200000000");
            store.credit_user(name, by, None, NOW).await
        });
    }
    for credited in running.join_all().await {
        assert!(credited.is_ok(), "{credited:?}");
    }
    assert!(!proxy.has_commit_to_lose());
    assert_eq!(user_sums(store, &bob).await[0], "7800000000");
    assert_eq!(user_sums(store, &ann).await[0], "9200000000");
}

async fn a_silent_connection_is_unavailable(db: &Db, proxy: &Proxy, store: &Store) {
    let ann = account(store, "ann", "1").await;
    proxy.go_silent();
    let (write, read) = tokio::join!(
        store.submit_task(task(&ann, 1, "0.1")),
        store.user(&ann.user_id),
    );
    for error in [write.unwrap_err(), read.unwrap_err()] {
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
    // The open transaction of the first node does not delay another node for long.
    let other = db.open().await;
    submit(&other, task(&ann, 1, "0.1")).await;
    proxy.resume();
    submit(store, task(&ann, 1, "0.1")).await;
    assert_eq!(user_sums(store, &ann).await, ["1", "0.2", "0"]);
}
