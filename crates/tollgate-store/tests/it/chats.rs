//! Chat requests: held, settled, charged at once, written off; exactly and once.

use tollgate_core::{Amount, money};
use tollgate_store::{ChatEnd, ChatHold, NewChat, Rejection, StoreError, TokenCounts, TokenPrices};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NODE, NOW, account, amount, assert_clean, assert_invalid, chat, chat_end, cost, hold, key_sums,
    node, settle, stored, tokens, unlimited_account, user_sums, with_key,
};

on_both!(
    used_tokens_are_settled_and_the_rest_released,
    every_kind_of_token_has_its_price,
    a_failed_chat_costs_nothing,
    an_unlimited_chat_is_one_entry_at_its_end,
    a_rejected_hold_writes_nothing,
    a_cost_beyond_the_hold_is_charged_or_written_off,
    a_cost_beyond_the_hold_never_exceeds_the_quota,
    a_charge_without_a_hold_never_overdraws,
    a_free_chat_needs_no_balance,
    settling_twice_settles_once,
    an_inactive_account_gets_no_hold_but_settles_open_chats,
    costs_out_of_range_are_invalid,
);

async fn used_tokens_are_settled_and_the_rest_released(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let new = chat(&ann, "2", "10");
    // 100,000 × 2 + 8,000 × 10 per million.
    assert_eq!(
        hold(&store, &new, tokens(100_000, 8_000)).await,
        Ok(amount("0.28"))
    );
    assert_eq!(user_sums(&store, &ann).await, ["1", "0.28", "0"]);
    assert_eq!(key_sums(&store, &ann).await, ["0.28", "0"]);
    assert_clean(&store).await;
    let outcome = settle(&store, &new, true, tokens(90_001, 7)).await;
    assert_eq!(outcome, cost("0.180072"));
    assert_eq!(user_sums(&store, &ann).await, ["0.819928", "0", "0.180072"]);
    assert_eq!(key_sums(&store, &ann).await, ["0", "0.180072"]);
    let row = format!(
        "SELECT model, format, streamed, request_id, input, output, estimated, held, settled, forgiven, outcome,
                channel, upstream_model, attempts, node, opened_at, closed_at FROM chats WHERE id = '{}'",
        new.id
    );
    let row = db.raw(&row).await.concat();
    let cells: Vec<&str> = row.iter().map(|c| c.as_deref().unwrap_or("none")).collect();
    let (now, then) = (NOW.to_string(), (NOW + 1).to_string());
    let expected = [
        "gpt-5",
        "messages",
        "1",
        "req_1",
        "90001",
        "7",
        "0",
        "280000000",
        "180072000",
        "0",
        "done",
        "main",
        "gpt-5-mini",
        "[]",
        "none",
        &now,
        &then,
    ];
    assert_eq!(cells, expected);
}

async fn every_kind_of_token_has_its_price(db: &Db) {
    let store = node(db).await;
    let (ann, bob) = (
        account(&store, "ann", "1").await,
        unlimited_account(&store, "bob", None).await,
    );
    let prices = TokenPrices {
        input: amount("1"),
        cached_input: amount("0.1"),
        cache_write: amount("1.25"),
        output: amount("8"),
        reasoning: amount("4"),
    };
    let units = TokenCounts {
        input: 1,
        cached_input: 1_001,
        cache_write: 13,
        output: 100,
        reasoning: 1_000,
    };
    for (account, held) in [(&ann, true), (&bob, false)] {
        let mut new = chat(account, "0", "0");
        new.prices = prices;
        if held {
            hold(&store, &new, tokens(5_000, 5_000)).await.unwrap();
        }
        let outcome = settle(&store, &new, held, units).await;
        // 1 + 100.1 + 16.25 + 800 + 4000 millionths.
        assert_eq!(outcome, cost("0.00491735"));
    }
}

async fn a_failed_chat_costs_nothing(db: &Db) {
    let store = node(db).await;
    let (ann, bob) = (
        account(&store, "ann", "1").await,
        unlimited_account(&store, "bob", None).await,
    );
    for (account, held) in [(&ann, true), (&bob, false)] {
        let new = chat(account, "1", "1");
        if held {
            hold(&store, &new, tokens(1_000_000, 0)).await.unwrap();
            let full = hold(&store, &chat(account, "1", "1"), tokens(1, 0)).await;
            let available = Amount::ZERO;
            assert_eq!(full, Err(Rejection::InsufficientBalance { available }));
        }
        let end = ChatEnd {
            outcome: "failed",
            channel: None,
            upstream_model: None,
            attempts: r#"[{"channel":"main","status":500}]"#.to_owned(),
            ..chat_end(TokenCounts::default())
        };
        let outcome = store.settle_chat(new, &stored(held), end).await;
        assert_eq!(outcome, Ok(cost("0")));
    }
    assert_eq!(user_sums(&store, &ann).await, ["1", "0", "0"]);
    assert_eq!(user_sums(&store, &bob).await, ["0", "0", "0"]);
}

async fn an_unlimited_chat_is_one_entry_at_its_end(db: &Db) {
    let store = db.open().await;
    let bob = unlimited_account(&store, "bob", None).await;
    let key = store.key(&bob.key_id).await.unwrap().unwrap();
    assert!(!key.needs_hold() && key.user_unlimited);
    let entries = db.number("SELECT COUNT(*) FROM entries").await;
    let outcome = settle(&store, &chat(&bob, "3", "15"), false, tokens(1_000, 200)).await;
    assert_eq!(outcome, cost("0.006"));
    assert_eq!(user_sums(&store, &bob).await, ["-0.006", "0", "0.006"]);
    assert_eq!(key_sums(&store, &bob).await, ["0", "0.006"]);
    assert_eq!(db.number("SELECT COUNT(*) FROM entries").await, entries + 1);
    let charged = "SELECT amount FROM entries WHERE kind = 'charge'";
    assert_eq!(db.number(charged).await, 6_000_000);
    assert_clean(&store).await;

    let quota = unlimited_account(&store, "cid", Some("5")).await;
    assert!(
        store
            .key(&quota.key_id)
            .await
            .unwrap()
            .unwrap()
            .needs_hold()
    );
    let balance = account(&store, "dee", "5").await;
    assert!(
        store
            .key(&balance.key_id)
            .await
            .unwrap()
            .unwrap()
            .needs_hold()
    );
}

async fn a_rejected_hold_writes_nothing(db: &Db) {
    let store = node(db).await;
    let user = store
        .user(&account(&store, "ann", "1").await.user_id)
        .await
        .unwrap()
        .unwrap();
    let small = with_key(&store, user.clone(), Some("0.3")).await;
    let large = with_key(&store, user, None).await;
    let rows = "SELECT (SELECT COUNT(*) FROM chats) + (SELECT COUNT(*) FROM entries)";
    let before = db.number(rows).await;
    let rejected = hold(&store, &chat(&small, "1", "1"), tokens(300_000, 1)).await;
    let available = amount("0.3");
    assert_eq!(rejected, Err(Rejection::InsufficientQuota { available }));
    let rejected = hold(&store, &chat(&large, "1", "1"), tokens(1_000_000, 1)).await;
    let available = amount("1");
    assert_eq!(rejected, Err(Rejection::InsufficientBalance { available }));
    assert_eq!(db.number(rows).await, before);
    assert_eq!(user_sums(&store, &small).await, ["1", "0", "0"]);
    hold(&store, &chat(&small, "1", "1"), tokens(300_000, 0))
        .await
        .unwrap();
}

/// The settled and the written-off amount of a chat's row.
async fn paid(db: &Db, id: &str) -> [i64; 2] {
    let cell = |name| format!("SELECT {name} FROM chats WHERE id = '{id}'");
    [
        db.number(&cell("settled")).await,
        db.number(&cell("forgiven")).await,
    ]
}

async fn a_cost_beyond_the_hold_is_charged_or_written_off(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let (first, second) = (chat(&ann, "1", "1"), chat(&ann, "1", "1"));
    for new in [&first, &second] {
        hold(&store, new, tokens(300_000, 0)).await.unwrap();
    }
    // 0.4 is free: it covers what 0.45 is beyond 0.3.
    let outcome = settle(&store, &first, true, tokens(400_000, 50_000)).await;
    assert_eq!(outcome, cost("0.45"));
    assert_eq!(paid(db, &first.id).await, [450_000_000, 0]);
    assert_eq!(user_sums(&store, &ann).await, ["0.55", "0.3", "0.45"]);
    assert_clean(&store).await;
    // 0.25 is left beside the hold, and 5 would have been due.
    let outcome = settle(&store, &second, true, tokens(0, 5_000_000)).await;
    assert_eq!(outcome, cost("0.55"));
    assert_eq!(paid(db, &second.id).await, [550_000_000, 4_450_000_000]);
    assert_eq!(user_sums(&store, &ann).await, ["0", "0", "1"]);
    assert_eq!(key_sums(&store, &ann).await, ["0", "1"]);
}

async fn a_cost_beyond_the_hold_never_exceeds_the_quota(db: &Db) {
    let store = node(db).await;
    let bob = unlimited_account(&store, "bob", Some("0.5")).await;
    let new = chat(&bob, "1", "1");
    hold(&store, &new, tokens(400_000, 0)).await.unwrap();
    let outcome = settle(&store, &new, true, tokens(700_000, 0)).await;
    assert_eq!(outcome, cost("0.5"));
    assert_eq!(paid(db, &new.id).await, [500_000_000, 200_000_000]);
    assert_eq!(key_sums(&store, &bob).await, ["0", "0.5"]);
    assert_eq!(user_sums(&store, &bob).await, ["-0.5", "0", "0.5"]);
}

async fn a_charge_without_a_hold_never_overdraws(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    hold(&store, &chat(&ann, "1", "1"), tokens(400_000, 0))
        .await
        .unwrap();
    let new = chat(&ann, "1", "1");
    assert_eq!(
        settle(&store, &new, false, tokens(900_000, 0)).await,
        cost("0.6")
    );
    assert_eq!(paid(db, &new.id).await, [600_000_000, 300_000_000]);
    assert_eq!(user_sums(&store, &ann).await, ["0.4", "0.4", "0.6"]);
}

async fn a_free_chat_needs_no_balance(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "0").await;
    let (held, unheld) = (chat(&ann, "0", "0"), chat(&ann, "0", "0"));
    assert_eq!(hold(&store, &held, tokens(9, 9)).await, Ok(Amount::ZERO));
    assert_eq!(settle(&store, &held, true, tokens(99, 99)).await, cost("0"));
    assert_eq!(
        settle(&store, &unheld, false, tokens(99, 99)).await,
        cost("0")
    );
    // Less than half a billionth is nothing, however it is counted.
    let tiny = chat(&ann, "0.000000001", "0");
    assert_eq!(
        hold(&store, &tiny, tokens(499_999, 0)).await,
        Ok(Amount::ZERO)
    );
    assert_eq!(settle(&store, &tiny, true, tokens(1, 0)).await, cost("0"));
    let small = chat(&ann, "0.000000001", "0");
    assert!(hold(&store, &small, tokens(500_000, 0)).await.is_err());
}

async fn settling_twice_settles_once(db: &Db) {
    let store = node(db).await;
    let (ann, bob) = (
        account(&store, "ann", "1").await,
        unlimited_account(&store, "bob", None).await,
    );
    for (account, held) in [(&ann, true), (&bob, false)] {
        let new = chat(account, "1", "1");
        if held {
            hold(&store, &new, tokens(500_000, 0)).await.unwrap();
        }
        for units in [tokens(100_000, 0), tokens(100_000, 0), tokens(200_000, 0)] {
            assert_eq!(settle(&store, &new, held, units).await, cost("0.1"));
        }
    }
    assert_eq!(user_sums(&store, &ann).await, ["0.9", "0", "0.1"]);
    assert_eq!(user_sums(&store, &bob).await, ["-0.1", "0", "0.1"]);
    // Nobody else pays for it, and those who share its batch are not the worse for it.
    let mine = chat(&ann, "1", "1");
    hold(&store, &mine, tokens(1, 0)).await.unwrap();
    let stolen = NewChat {
        user_id: bob.user_id.clone(),
        key_id: bob.key_id.clone(),
        ..mine.clone()
    };
    let stolen = store
        .settle_chat(stolen, &ChatHold::Stored, chat_end(tokens(1, 0)))
        .await;
    assert!(matches!(stolen, Err(StoreError::Broken(_))), "{stolen:?}");
    assert_eq!(
        settle(&store, &mine, true, tokens(1, 0)).await,
        cost("0.000001")
    );
}

async fn an_inactive_account_gets_no_hold_but_settles_open_chats(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let new = chat(&ann, "1", "1");
    hold(&store, &new, tokens(500_000, 0)).await.unwrap();
    store.revoke_key(&ann.key_id, NOW).await.unwrap();
    store.disable_user("ann", NOW).await.unwrap();
    let rejected = hold(&store, &chat(&ann, "1", "1"), tokens(1, 0)).await;
    assert_eq!(rejected, Err(Rejection::AccountInactive));
    assert_eq!(
        settle(&store, &new, true, tokens(600_000, 0)).await,
        cost("0.6")
    );
    assert_eq!(
        settle(&store, &chat(&ann, "1", "1"), false, tokens(100_000, 0)).await,
        cost("0.1")
    );
    assert_eq!(user_sums(&store, &ann).await, ["0.3", "0", "0.7"]);
}

async fn costs_out_of_range_are_invalid(db: &Db) {
    let store = node(db).await;
    let bob = unlimited_account(&store, "bob", None).await;
    let max = money::MAX.to_string();
    for (price, units) in [
        ("-0.000000001", tokens(1, 0)),
        (max.as_str(), tokens(1_000_001, 0)),
        ("0", tokens(u64::MAX, 0)),
        ("1", tokens(i64::MAX as u64, 0)),
    ] {
        let new = chat(&bob, price, "0");
        let held = store.hold_chat(&new, &units, NODE).await;
        assert_invalid(&held);
        let settled = store
            .settle_chat(new, &ChatHold::None, chat_end(units))
            .await;
        assert_invalid(&settled);
    }
    let lost = ChatEnd {
        outcome: ChatEnd::OUTCOME_LOST,
        ..chat_end(tokens(1, 0))
    };
    let settled = store
        .settle_chat(chat(&bob, "1", "1"), &ChatHold::None, lost)
        .await;
    assert_invalid(&settled);
    assert_eq!(db.number("SELECT COUNT(*) FROM chats").await, 0);
}
