//! Concurrent chats on two nodes against balances and quotas that are too small: the sums are right, and nobody overdraws.

use tollgate_core::Amount;
use tollgate_store::{NewChat, Rejection, SettleOutcome, Store, TokenCounts};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NODE, NOW, TestAccount, account, all, amount, assert_clean, chat, cost, hold, key_sums, node,
    settle, task, tokens, user_sums, with_key,
};

on_both!(
    concurrent_chat_holds_never_overdraw,
    costs_beyond_the_hold_are_charged_or_owed,
    charges_without_a_hold_beyond_the_balance_are_owed,
    each_hold_is_either_settled_or_released,
);

/// Holds 0.01 `each` times on every store concurrently. Returns the chats whose hold was accepted.
async fn hold_concurrently(stores: &[&Store], ann: &TestAccount, each: usize) -> Vec<NewChat> {
    let stores = stores.iter().cycle().take(each * stores.len());
    let chats = stores.map(|store| ((*store).clone(), chat(ann, "1", "1")));
    let holds = chats.map(|(store, new)| async move {
        let held = hold(&store, &new, tokens(9_000, 1_000)).await;
        (held, new)
    });
    let held = all(holds)
        .await
        .into_iter()
        .filter_map(|(held, new)| match held {
            Ok(held) => {
                assert_eq!(held, amount("0.01"));
                Some(new)
            }
            Err(Rejection::InsufficientBalance { available }) => {
                assert!(available < amount("0.01"), "{available}");
                None
            }
            Err(other) => panic!("{other:?}"),
        });
    held.collect()
}

async fn concurrent_chat_holds_never_overdraw(db: &Db) {
    let (store, other) = (node(db).await, db.open().await);
    let ann = account(&store, "ann", "1.379").await;
    let held = hold_concurrently(&[&store, &other], &ann, 250).await;
    assert_eq!(held.len(), 137);
    assert_eq!(user_sums(&other, &ann).await, ["1.379", "1.37", "0"]);
    assert_clean(&store).await;
    // Each chat uses one token more than a tenth of its hold, and is ended by either node.
    let ends = held.into_iter().enumerate().map(|(i, new)| {
        let store = [&store, &other][i % 2].clone();
        async move { settle(&store, &new, true, tokens(1_000, 1)).await }
    });
    for settled in all(ends).await {
        assert_eq!(settled, cost("0.001001"));
    }
    assert_eq!(user_sums(&store, &ann).await, ["1.241863", "0", "0.137137"]);
}

/// Concurrently: holds, ends that cost more than they hold, charges without a hold, and tasks, on two keys of one user.
async fn costs_beyond_the_hold_are_charged_or_owed(db: &Db) {
    let (store, other) = (node(db).await, db.open().await);
    let ann = account(&store, "ann", "3").await;
    let small = with_key(&store, "ann", Some("1.2345")).await;
    let operations = (0..400u64).map(|i| {
        let store = if i % 2 == 0 { &store } else { &other }.clone();
        let account = if i % 3 == 0 { &small } else { &ann }.clone();
        async move {
            if i % 10 == 9 {
                drop(store.submit_task(task(&account, 1, "0.001")).await.unwrap());
                return Amount::ZERO;
            }
            let new = chat(&account, "1", "10");
            let held = i % 4 > 0;
            if held && hold(&store, &new, tokens(1_000, 500)).await.is_err() {
                return Amount::ZERO;
            }
            let units = TokenCounts {
                cached_input: 7 * i,
                reasoning: 11 * i,
                ..tokens(i, 3 * i)
            };
            match settle(&store, &new, held, units).await {
                SettleOutcome::Settled { cost } | SettleOutcome::SettledInDebt { cost, .. } => {
                    assert_eq!(cost, new.prices.cost(&units).unwrap());
                    cost
                }
                SettleOutcome::AlreadyReleased => panic!("nobody is dead"),
            }
        }
    });
    let paid = all(operations).await.into_iter();
    let paid = paid.fold(Amount::ZERO, |sum, cost| sum + cost);
    let user = store.user(&ann.user_id).await.unwrap().unwrap();
    assert_eq!((user.used, user.balance), (paid, amount("3") - paid));
    let debt = "SELECT CAST(SUM(debt) AS BIGINT) FROM chats WHERE forgiven = 0";
    let debt = Amount::from_nanos(db.number(debt).await);
    assert!(
        debt > Amount::ZERO && user.held - user.balance <= debt,
        "{user:?} {debt}"
    );
}

async fn charges_without_a_hold_beyond_the_balance_are_owed(db: &Db) {
    let (store, other) = (db.open().await, db.open().await);
    let ann = account(&store, "ann", "1.005").await;
    let ends = (0..300).map(|i| {
        let (store, new) = ([&store, &other][i % 2].clone(), chat(&ann, "1", "1"));
        async move { settle(&store, &new, false, tokens(10_000, 0)).await }
    });
    let mut counts = [0; 3];
    for settled in all(ends).await {
        let debt = match settled {
            SettleOutcome::Settled { .. } => Amount::ZERO,
            SettleOutcome::SettledInDebt { debt, .. } => debt,
            SettleOutcome::AlreadyReleased => panic!("nothing was held"),
        };
        counts[match debt.to_string().as_str() {
            "0" => 0,
            "0.005" => 1,
            "0.01" => 2,
            other => panic!("{other}"),
        }] += 1;
    }
    assert_eq!(counts, [100, 1, 199]);
    assert_eq!(user_sums(&store, &ann).await, ["-1.995", "0", "3"]);
    assert_eq!(key_sums(&store, &ann).await, ["0", "3"]);
}

/// A node that settles its chats counts as dead meanwhile: each chat is either charged or released, and the outcome that the node gets is the right
/// one.
async fn each_hold_is_either_settled_or_released(db: &Db) {
    let (late, other) = (node(db).await, db.open().await);
    let ann = account(&late, "ann", "4").await;
    let held = hold_concurrently(&[&late], &ann, 400).await;
    assert_eq!(held.len(), 400);
    let mut running = tokio::task::JoinSet::new();
    for new in held {
        let late = late.clone();
        running.spawn(async move { settle(&late, &new, true, tokens(10_000, 0)).await });
    }
    let mut released = 0;
    while other.user(&ann.user_id).await.unwrap().unwrap().held > Amount::ZERO {
        let some = other.release_orphaned_chats(NOW + 30_000, "other").await;
        released += some.unwrap();
    }
    let ends = running.join_all().await;
    let lost = SettleOutcome::AlreadyReleased;
    let lost = ends.iter().filter(|end| **end == lost).count() as u64;
    assert_eq!(lost, released);
    let used = other.user(&ann.user_id).await.unwrap().unwrap().used;
    assert_eq!(used.nanos(), 10_000_000 * (400 - lost).cast_signed());
    let open = format!("SELECT COUNT(*) FROM chats WHERE node = '{NODE}'");
    assert_eq!(db.number(&open).await, 0);
}
