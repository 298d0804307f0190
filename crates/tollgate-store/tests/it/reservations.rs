//! Chats reserved in memory, concurrently with every other change of balances.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_core::Amount;
use tollgate_store::{AdminRejection, ChatHold, Rejection, SettleOutcome, Store, SubmitOutcome};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, TestAccount, account, all, amount, cancel, chat, cost, hold, key_sums, node, reserve,
    set_quota, settle_hold, submit, task, tokens, user_sums, with_key,
};

on_both!(
    a_reserved_chat_is_one_entry_at_its_end,
    reservations_and_holds_together_never_exceed_the_quota,
    a_quota_is_never_set_below_what_is_reserved,
    a_chat_within_the_balance_is_never_rejected,
    concurrent_operations_of_every_kind_never_overdraw,
);

/// The amount held on disk: 0 if the store reserves in memory.
fn either(store: &Store, stored: &'static str) -> &'static str {
    if store.is_shared() { stored } else { "0" }
}

async fn a_reserved_chat_is_one_entry_at_its_end(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let new = chat(&ann, "1", "1");
    let held = reserve(&store, &new, tokens(600_000, 0)).await.unwrap();
    assert_eq!(matches!(held, ChatHold::Stored), store.is_shared());
    let on_disk = either(&store, "0.6");
    assert_eq!(user_sums(&store, &ann).await, ["1", on_disk, "0"]);
    let [reserved, _] = store.reserved_amounts(&ann.user_id, &ann.key_id);
    assert_eq!(reserved, amount("0.6") - amount(on_disk));
    // The reservation counts for chats, tasks and debits; a cost beyond it is taken from the available amount.
    let available = amount("0.4");
    let rejection = Rejection::InsufficientBalance { available };
    let rejected = reserve(&store, &chat(&ann, "1", "1"), tokens(400_001, 0)).await;
    assert_eq!(rejected.map(drop), Err(rejection));
    let rejected = store.submit_task(task(&ann, 1, "0.41")).await;
    assert_eq!(rejected, Ok(SubmitOutcome::Rejected(rejection)));
    let debit = store.credit_user("ann", amount("-0.41"), None, NOW).await;
    assert!(debit.is_err());
    let outcome = settle_hold(&store, &new, &held, tokens(700_000, 0)).await;
    assert_eq!(outcome, cost("0.7"));
    // A second call returns the first outcome.
    let again = settle_hold(&store, &new, &held, tokens(900_000, 0)).await;
    assert_eq!(again, cost("0.7"));
    assert_eq!(store.reserved_amounts(&ann.user_id, ""), [Amount::ZERO; 2]);
    assert_eq!(user_sums(&store, &ann).await, ["0.3", "0", "0.7"]);
    // An inactive account gets no reservation.
    store.revoke_key(&ann.key_id, NOW).await.unwrap();
    let gone = reserve(&store, &chat(&ann, "1", "1"), tokens(1, 0)).await;
    assert_eq!(gone.map(drop), Err(Rejection::AccountInactive));
}

async fn a_quota_is_never_set_below_what_is_reserved(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "9").await;
    let small = with_key(&store, &ann.name, Some("1")).await;
    let new = chat(&small, "1", "1");
    let held = reserve(&store, &new, tokens(600_000, 0)).await.unwrap();
    let rejected = set_quota(&store, &small, "0.5").await.unwrap_err();
    let AdminRejection::Conflict { field, message, .. } = rejected else {
        panic!("{rejected:?}")
    };
    assert_eq!(field, Some("quota"));
    assert!(message.contains("holds 0.6"), "{message}");
    set_quota(&store, &small, "0.6").await.unwrap();
    let available = Amount::ZERO;
    let rejection = Rejection::InsufficientQuota { available };
    let rejected = reserve(&store, &chat(&small, "1", "1"), tokens(1, 0)).await;
    assert_eq!(rejected.map(drop), Err(rejection));
    let settled = settle_hold(&store, &new, &held, tokens(600_000, 0)).await;
    assert_eq!(settled, cost("0.6"));
}

async fn reservations_and_holds_together_never_exceed_the_quota(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "9").await;
    let small = with_key(&store, &ann.name, Some("1.379")).await;
    let operations = (0..500).map(|i| {
        let (store, small) = (store.clone(), small.clone());
        async move {
            let new = chat(&small, "1", "1");
            let units = tokens(9_000, 1_000);
            let rejection = match i % 4 {
                0 => match store.submit_task(task(&small, 1, "0.01")).await.unwrap() {
                    SubmitOutcome::Rejected(rejection) => rejection,
                    _ => return Some(ChatHold::None),
                },
                1 => match hold(&store, &new, units).await {
                    Err(rejection) => rejection,
                    Ok(_) => return Some(ChatHold::Stored),
                },
                _ => match reserve(&store, &new, units).await {
                    Err(rejection) => rejection,
                    Ok(held) => return Some(held),
                },
            };
            let Rejection::InsufficientQuota { available } = rejection else {
                panic!("{rejection:?}")
            };
            assert!(available < amount("0.01"), "{available}");
            None
        }
    });
    let held = all(operations).await;
    let held: Vec<_> = held.into_iter().flatten().collect();
    assert_eq!(held.len(), 137);
    let [_, of_key] = store.reserved_amounts(&small.user_id, &small.key_id);
    let [on_disk, used] = key_sums(&store, &small).await;
    assert_eq!((amount(&on_disk) + of_key, &*used), (amount("1.37"), "0"));
    drop(held);
    let reserved = store.reserved_amounts(&small.user_id, &small.key_id);
    assert_eq!(reserved, [Amount::ZERO; 2]);
}

/// As many concurrent callers as the balance covers, each of which holds one chat at a time.
async fn a_chat_within_the_balance_is_never_rejected(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "0.08").await;
    let callers = (0..8).map(|i| {
        let (store, ann) = (store.clone(), ann.clone());
        async move {
            for turn in 0..40 {
                let new = chat(&ann, "1", "1");
                let units = tokens(10_000, 0);
                if (i + turn) % 8 == 0 {
                    let id = submit(&store, task(&ann, 1, "0.01")).await;
                    let task = store.task(&id).await.unwrap().unwrap();
                    cancel(&store, &task, NOW).await;
                    continue;
                }
                let held = if (i + turn) % 8 == 1 {
                    hold(&store, &new, units).await.map(|_| ChatHold::Stored)
                } else {
                    reserve(&store, &new, units).await
                };
                let held = held.unwrap_or_else(|e| panic!("turn {turn} of {i}: {e:?}"));
                let settled = settle_hold(&store, &new, &held, tokens(0, 0)).await;
                assert_eq!(settled, cost("0"));
            }
        }
    });
    all(callers).await;
    assert_eq!(user_sums(&store, &ann).await, ["0.08", "0", "0"]);
}

/// Runs one of ten kinds of operation, which `i` selects. Returns the amounts charged and credited.
async fn act(store: &Store, account: &TestAccount, i: u64) -> [Amount; 2] {
    let nothing = [Amount::ZERO; 2];
    match i % 10 {
        8 => {
            drop(store.submit_task(task(account, 1, "0.001")).await.unwrap());
            return nothing;
        }
        9 => {
            let by = amount(if i % 20 == 9 { "-0.003" } else { "0.002" });
            let credited = store.credit_user("ann", by, None, NOW).await;
            return [Amount::ZERO, credited.map_or(Amount::ZERO, |_| by)];
        }
        _ => {}
    }
    let new = chat(account, "1", "10");
    let worst = tokens(1_000, 1_000);
    let held = match i % 5 {
        0 => hold(store, &new, worst).await.map(|_| ChatHold::Stored),
        _ => reserve(store, &new, worst).await,
    };
    let Ok(held) = held else { return nothing };
    if i.is_multiple_of(7) && !matches!(held, ChatHold::Stored) {
        return nothing;
    }
    // The cost is within the hold, so no balance becomes negative.
    let units = tokens(i, 2 * i);
    let due = new.prices.cost(&units).unwrap();
    let settled = settle_hold(store, &new, &held, units).await;
    assert_ne!(settled, SettleOutcome::AlreadyReleased, "nobody is dead");
    [due, Amount::ZERO]
}

async fn concurrent_operations_of_every_kind_never_overdraw(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let small = with_key(&store, "ann", Some("0.3")).await;
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
    let operations = (0..400u64).map(|i| {
        let account = if i % 3 == 0 { &small } else { &ann }.clone();
        let store = store.clone();
        async move { act(&store, &account, i).await }
    });
    let sums = all(operations).await.into_iter();
    let [paid, credited] = sums.fold([Amount::ZERO; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
    over.store(true, Ordering::Relaxed);
    watch.await.unwrap();
    let user = store.user(&ann.user_id).await.unwrap().unwrap();
    assert_eq!(user.used, paid);
    assert_eq!(user.balance, amount("1") + credited - paid);
    let reserved = store.reserved_amounts(&ann.user_id, &small.key_id);
    assert_eq!(reserved, [Amount::ZERO; 2]);
    let settled = "SELECT COUNT(*) FROM chats WHERE settled > 0";
    assert!(db.number(settled).await > 0);
}
