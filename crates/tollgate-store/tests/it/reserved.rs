//! Chats that are held for in memory, many at once and beside everything else that takes money: what is reserved is there
//! when it is settled, nobody overdraws, and nobody is refused who can pay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_core::Amount;
use tollgate_store::{Cancelled, ChatSettled, Hold, Refusal, Store, Submitted};

use crate::db::{Db, on_both};
use crate::world::{
    NOW, Payer, amount, assert_clean, chat, cost, hold, key_sums, node, payer, reserve,
    settle_hold, submit, sums, task, tokens, with_key,
};

on_both!(
    a_reserved_chat_is_one_entry_at_its_end,
    reservations_and_holds_share_what_there_is,
    who_can_pay_in_turn_is_never_refused,
    everything_at_once_overdraws_nobody,
);

/// What is on disk where it cannot be reserved.
fn either(store: &Store, stored: &'static str) -> &'static str {
    if store.is_shared() { stored } else { "0" }
}

async fn a_reserved_chat_is_one_entry_at_its_end(db: &Db) {
    let store = node(db).await;
    let ann = payer(&store, "ann", "1").await;
    let new = chat(&ann, "1", "1");
    let held = reserve(&store, &new, tokens(600_000, 0)).await.unwrap();
    assert_eq!(matches!(held, Hold::Stored), store.is_shared());
    assert_eq!(sums(&store, &ann).await, ["1", either(&store, "0.6"), "0"]);
    let [reserved, _] = store.reserved(&ann.user_id, &ann.key_id);
    assert_eq!(reserved, amount("0.6") - amount(either(&store, "0.6")));
    // It counts for chats, tasks and whoever takes from the balance, and costs beyond it come from what is left.
    let available = amount("0.4");
    let refusal = Refusal::UserBalance { available };
    let refused = reserve(&store, &chat(&ann, "1", "1"), tokens(400_001, 0)).await;
    assert_eq!(refused.map(drop), Err(refusal));
    let refused = store.submit(task(&ann, 1, "0.41")).await;
    assert_eq!(refused, Ok(Submitted::Refused(refusal)));
    assert!(
        store
            .credit("ann", amount("-0.41"), None, NOW)
            .await
            .is_err()
    );
    let done = settle_hold(&store, &new, &held, tokens(700_000, 0)).await;
    assert_eq!(done, cost("0.7"));
    // Told twice, it is ended once.
    let again = settle_hold(&store, &new, &held, tokens(900_000, 0)).await;
    assert_eq!(again, cost("0.7"));
    assert_eq!(store.reserved(&ann.user_id, ""), [Amount::ZERO; 2]);
    assert_eq!(sums(&store, &ann).await, ["0.3", "0", "0.7"]);
    // Who is gone gets none.
    store.revoke_key(&ann.key_id, NOW).await.unwrap();
    let gone = reserve(&store, &chat(&ann, "1", "1"), tokens(1, 0)).await;
    assert_eq!(gone.map(drop), Err(Refusal::Gone));
    assert_clean(&store).await;
}

async fn reservations_and_holds_share_what_there_is(db: &Db) {
    let store = node(db).await;
    let ann = payer(&store, "ann", "9").await;
    let user = store.user(&ann.user_id).await.unwrap().unwrap();
    let small = with_key(&store, user, Some("1.379")).await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..500 {
        let (store, small) = (store.clone(), small.clone());
        running.spawn(async move {
            let new = chat(&small, "1", "1");
            let units = tokens(9_000, 1_000);
            let refusal = match i % 4 {
                0 => match store.submit(task(&small, 1, "0.01")).await.unwrap() {
                    Submitted::Refused(refusal) => refusal,
                    _ => return Some(Hold::None),
                },
                1 => match hold(&store, &new, units).await {
                    Err(refusal) => refusal,
                    Ok(_) => return Some(Hold::Stored),
                },
                _ => match reserve(&store, &new, units).await {
                    Err(refusal) => refusal,
                    Ok(held) => return Some(held),
                },
            };
            let Refusal::KeyQuota { available } = refusal else {
                panic!("{refusal:?}")
            };
            assert!(available < amount("0.01"), "{available}");
            None
        });
    }
    let held = running.join_all().await;
    let held: Vec<_> = held.into_iter().flatten().collect();
    assert_eq!(held.len(), 137);
    let [_, of_key] = store.reserved(&small.user_id, &small.key_id);
    let [on_disk, used] = key_sums(&store, &small).await;
    assert_eq!(
        (amount(&on_disk) + of_key, used.as_str()),
        (amount("1.37"), "0")
    );
    drop(held);
    assert_eq!(
        store.reserved(&small.user_id, &small.key_id),
        [Amount::ZERO; 2]
    );
    assert_clean(&store).await;
}

/// As many customers as the balance has room for, each with one thing at a time.
async fn who_can_pay_in_turn_is_never_refused(db: &Db) {
    let store = node(db).await;
    let ann = payer(&store, "ann", "0.08").await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..8 {
        let (store, ann) = (store.clone(), ann.clone());
        running.spawn(async move {
            for turn in 0..40 {
                let new = chat(&ann, "1", "1");
                let units = tokens(10_000, 0);
                if (i + turn) % 8 == 0 {
                    let id = submit(&store, task(&ann, 1, "0.01")).await;
                    let task = store.task(&id).await.unwrap().unwrap();
                    assert_eq!(store.cancel(&task, NOW).await, Ok(Cancelled::Done));
                    continue;
                }
                let held = if (i + turn) % 8 == 1 {
                    hold(&store, &new, units).await.map(|_| Hold::Stored)
                } else {
                    reserve(&store, &new, units).await
                };
                let held = held.unwrap_or_else(|e| panic!("turn {turn} of {i}: {e:?}"));
                assert_eq!(
                    settle_hold(&store, &new, &held, tokens(0, 0)).await,
                    cost("0")
                );
            }
        });
    }
    running.join_all().await;
    assert_eq!(sums(&store, &ann).await, ["0.08", "0", "0"]);
    assert_clean(&store).await;
}

/// One customer of the storm, in one of its ways; answers what was paid and what was credited.
async fn act(store: &Store, payer: &Payer, i: u64) -> [Amount; 2] {
    let nothing = [Amount::ZERO; 2];
    match i % 10 {
        8 => {
            drop(store.submit(task(payer, 1, "0.001")).await.unwrap());
            return nothing;
        }
        9 => {
            let by = amount(if i % 20 == 9 { "-0.003" } else { "0.002" });
            let credited = store.credit("ann", by, None, NOW).await;
            return [Amount::ZERO, credited.map_or(Amount::ZERO, |_| by)];
        }
        _ => {}
    }
    let new = chat(payer, "1", "10");
    let worst = tokens(1_000, 500);
    let held = match i % 5 {
        0 => hold(store, &new, worst).await.map(|_| Hold::Stored),
        _ => reserve(store, &new, worst).await,
    };
    let Ok(held) = held else { return nothing };
    if i.is_multiple_of(7) && !matches!(held, Hold::Stored) {
        return nothing;
    }
    // Up to half as much again as was held for.
    let units = tokens(i, 2 * i);
    let due = new.prices.cost(&units).unwrap();
    let ChatSettled::Done { cost: paid } = settle_hold(store, &new, &held, units).await else {
        panic!("nobody is dead")
    };
    let reserved = new.prices.cost(&worst).unwrap();
    assert!(paid <= due && paid >= due.min(reserved), "{paid} of {due}");
    [paid, Amount::ZERO]
}

async fn everything_at_once_overdraws_nobody(db: &Db) {
    let store = node(db).await;
    let ann = payer(&store, "ann", "1").await;
    let user = store.user(&ann.user_id).await.unwrap().unwrap();
    let small = with_key(&store, user, Some("0.3")).await;
    let over = Arc::new(AtomicBool::new(false));
    let watch = {
        let (store, ann, over) = (store.clone(), ann.clone(), Arc::clone(&over));
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let user = store.user(&ann.user_id).await.unwrap().unwrap();
                assert!(user.balance >= user.held, "{user:?}");
                tokio::task::yield_now().await;
            }
        })
    };
    let mut running = tokio::task::JoinSet::new();
    for i in 0..400u64 {
        let (store, payer) = (
            store.clone(),
            if i % 3 == 0 { &small } else { &ann }.clone(),
        );
        running.spawn(async move { act(&store, &payer, i).await });
    }
    let mut sum = [Amount::ZERO; 2];
    for [paid, credited] in running.join_all().await {
        sum = [sum[0] + paid, sum[1] + credited];
    }
    over.store(true, Ordering::Relaxed);
    watch.await.unwrap();
    let [paid, credited] = sum;
    let user = store.user(&ann.user_id).await.unwrap().unwrap();
    assert_eq!(
        (user.used, user.balance),
        (paid, amount("1") + credited - paid)
    );
    assert_eq!(
        store.reserved(&ann.user_id, &small.key_id),
        [Amount::ZERO; 2]
    );
    assert!(
        db.number("SELECT COUNT(*) FROM chats WHERE settled > 0")
            .await
            > 0
    );
    assert_clean(&store).await;
}
