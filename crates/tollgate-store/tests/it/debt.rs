//! Costs beyond the balance: charged in full, recorded as debt, and paid before anything else.

use tollgate_core::Amount;
use tollgate_store::{
    ChatChargeSums, ChatEnd, ChatHold, Rejection, SettleOutcome, Store, StoreError, User,
};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, TestAccount, account, amount, assert_clean, chat, chat_end, cost, hold, in_debt, key_sums,
    node, reserve, settle, settle_hold, task, tokens, unlimited_account, user_sums, with_key,
};
use crate::old_schemas::undo_migrations;

on_both!(
    credits_pay_the_debt_before_they_can_be_spent,
    reserved_and_stored_holds_create_the_same_debt,
    concurrent_chats_owe_their_cost,
    a_task_in_progress_is_settled_while_the_user_has_a_debt,
    a_debt_is_in_the_entries_the_totals_and_the_charge_sums,
    a_changed_debt_is_a_violation,
    a_database_without_debts_is_migrated,
);

/// Holds a new chat of this number of tokens, at a price of 1 per million.
async fn hold_new(store: &Store, account: &TestAccount, units: u64) -> Result<Amount, Rejection> {
    hold(store, &chat(account, "1", "1"), tokens(units, 0)).await
}

/// Settles a new chat of this number of tokens without a hold.
async fn settle_new(store: &Store, account: &TestAccount, units: u64) -> SettleOutcome {
    settle(store, &chat(account, "1", "1"), false, tokens(units, 0)).await
}

async fn credit(store: &Store, by: &str) -> Result<User, StoreError> {
    store.credit_user("ann", amount(by), None, NOW).await
}

async fn credits_pay_the_debt_before_they_can_be_spent(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let new = chat(&ann, "1", "1");
    hold(&store, &new, tokens(1_000_000, 0)).await.unwrap();
    assert_eq!(
        settle(&store, &new, true, tokens(3_000_000, 0)).await,
        in_debt("3", "2")
    );
    let nothing = Err(Rejection::InsufficientBalance {
        available: Amount::ZERO,
    });
    assert_eq!(hold_new(&store, &ann, 1).await, nothing);
    assert!(credit(&store, "-0.1").await.is_err());
    // A credit of 1.5 pays a part of the debt, and no chat can be held yet.
    let user = credit(&store, "1.5").await.unwrap();
    assert_eq!((user.balance, user.debt()), (amount("-0.5"), amount("0.5")));
    assert_eq!(hold_new(&store, &ann, 1).await, nothing);
    assert_clean(&store).await;
    let user = credit(&store, "0.7").await.unwrap();
    assert_eq!((user.balance, user.debt()), (amount("0.2"), Amount::ZERO));
    hold_new(&store, &ann, 200_000).await.unwrap();
    assert_eq!(hold_new(&store, &ann, 1).await, nothing);
    assert_clean(&store).await;
}

async fn reserved_and_stored_holds_create_the_same_debt(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let small = with_key(&store, "ann", Some("0.5")).await;
    let new = chat(&small, "1", "1");
    let held = reserve(&store, &new, tokens(400_000, 0)).await.unwrap();
    // The quota has 0.5, the balance 1: the part that the quota does not cover is taken from the balance.
    assert_eq!(
        settle_hold(&store, &new, &held, tokens(900_000, 0)).await,
        in_debt("0.9", "0.4")
    );
    assert_eq!(user_sums(&store, &ann).await, ["0.1", "0", "0.9"]);
    assert_eq!(key_sums(&store, &small).await, ["0", "0.9"]);
    let full = reserve(&store, &chat(&small, "1", "1"), tokens(1, 0)).await;
    let available = Amount::ZERO;
    assert!(matches!(full, Err(Rejection::InsufficientQuota { available: a }) if a == available));
    // Another key of the same user can use the remaining balance.
    let other = chat(&ann, "1", "1");
    let held = reserve(&store, &other, tokens(100_000, 0)).await.unwrap();
    assert_eq!(
        settle_hold(&store, &other, &held, tokens(100_001, 0)).await,
        in_debt("0.100001", "0.000001")
    );
    assert_eq!(
        user_sums(&store, &ann).await,
        ["-0.000001", "0", "1.000001"]
    );
    assert_clean(&store).await;
}

async fn concurrent_chats_owe_their_cost(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let mut held = Vec::new();
    for _ in 0..10 {
        let new = chat(&ann, "1", "1");
        let hold = reserve(&store, &new, tokens(100_000, 0)).await.unwrap();
        held.push((new, hold));
    }
    assert!(
        reserve(&store, &chat(&ann, "1", "1"), tokens(1, 0))
            .await
            .is_err()
    );
    let ends = held
        .iter()
        .map(|(new, hold)| settle_hold(&store, new, hold, tokens(150_000, 0)));
    futures_util::future::join_all(ends).await;
    assert_eq!(user_sums(&store, &ann).await, ["-0.5", "0", "1.5"]);
    let debt = db
        .number("SELECT CAST(SUM(debt) AS BIGINT) FROM chats")
        .await;
    assert_eq!(
        debt, 500_000_000,
        "neither more nor less than what the balance lacks"
    );
    assert_clean(&store).await;
}

async fn a_task_in_progress_is_settled_while_the_user_has_a_debt(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    drop(store.submit_task(task(&ann, 1, "0.6")).await.unwrap());
    assert_eq!(
        settle_new(&store, &ann, 900_000).await,
        in_debt("0.9", "0.5")
    );
    assert_eq!(user_sums(&store, &ann).await, ["0.1", "0.6", "0.9"]);
    assert_clean(&store).await;
    assert_eq!(
        settle_new(&store, &ann, 200_000).await,
        in_debt("0.2", "0.2")
    );
    assert_clean(&store).await;
    credit(&store, "5").await.unwrap();
    assert_eq!(settle_new(&store, &ann, 1).await, cost("0.000001"));
    assert_clean(&store).await;
}

/// Creates a user with a debt of 2, and another one with a clamped and an estimated chat.
async fn fill(store: &Store) {
    let ann = account(store, "ann", "1").await;
    assert_eq!(settle_new(store, &ann, 3_000_000).await, in_debt("3", "2"));
    let bob = unlimited_account(store, "bob", None).await;
    for (clamped, estimated) in [(7, false), (0, true), (0, false)] {
        let end = ChatEnd {
            clamped,
            estimated,
            ..chat_end(tokens(500_000, 0))
        };
        store
            .settle_chat(chat(&bob, "1", "1"), &ChatHold::None, end)
            .await
            .unwrap();
    }
}

async fn a_debt_is_in_the_entries_the_totals_and_the_charge_sums(db: &Db) {
    let store = node(db).await;
    fill(&store).await;
    assert_clean(&store).await;
    let entry = "SELECT kind, amount FROM entries WHERE kind = 'debt'";
    assert_eq!(
        db.raw(entry).await.concat(),
        [Some("debt".to_owned()), Some("2000000000".to_owned())]
    );
    let totals = store.totals().await.unwrap();
    assert_eq!(
        (totals.balance, totals.used, totals.debt),
        (amount("-3.5"), amount("4.5"), amount("2"))
    );
    let books = |user: &str, chats, estimated, clamped, charged, debt| ChatChargeSums {
        user: user.to_owned(),
        model: "gpt-5".to_owned(),
        chats,
        estimated,
        clamped,
        charged: amount(charged),
        debt: amount(debt),
        written_off: Amount::ZERO,
    };
    let expected = [
        books("ann", 1, 0, 0, "3", "2"),
        books("bob", 3, 1, 1, "1.5", "0"),
    ];
    assert_eq!(store.chat_charge_sums(0).await.unwrap(), expected);
    assert_eq!(store.chat_charge_sums(i64::MAX).await.unwrap(), []);
}

async fn a_changed_debt_is_a_violation(db: &Db) {
    let store = node(db).await;
    fill(&store).await;
    for (change, back, check) in [
        (
            "debt = 0 WHERE debt > 0",
            "debt = 2000000000 WHERE settled = 3000000000",
            "never_overdrawn",
        ),
        (
            "debt = debt - 1 WHERE debt > 0",
            "debt = debt + 1 WHERE debt > 0",
            "chat_seal",
        ),
        (
            "clamped = 8 WHERE clamped = 7",
            "clamped = 7 WHERE clamped = 8",
            "chat_seal",
        ),
    ] {
        db.raw(&format!("UPDATE chats SET {change}")).await;
        assert_violated(&store, check).await;
        db.raw(&format!("UPDATE chats SET {back}")).await;
        assert_clean(&store).await;
    }
}

async fn assert_violated(store: &Store, check: &str) {
    let found = store.audit().await.unwrap();
    assert!(
        found.iter().any(|violation| violation.check == check),
        "{check}: {found:?}"
    );
}

/// A database of schema version 1, with a write-off.
async fn a_database_without_debts_is_migrated(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    assert_eq!(settle_new(&store, &ann, 250_000).await, cost("0.25"));
    drop(store);
    undo_migrations(db, 1).await;
    let store = node(db).await;
    assert_clean(&store).await;
    assert_eq!(user_sums(&store, &ann).await, ["0.75", "0", "0.25"]);
    assert_eq!(
        settle_new(&store, &ann, 1_000_000).await,
        in_debt("1", "0.25")
    );
    assert_clean(&store).await;
}
