//! Chat holds of dead nodes, and purging chat details.

use futures_util::FutureExt as _;
use tollgate_core::{Millis, clock, id};
use tollgate_store::{ChatEnd, ChatHold, NewChat, SettleOutcome, Store, StoreError};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NODE, NOW, TestAccount, account, assert_clean, chat, chat_end, cost, hold, key_sums, node,
    settle, tokens, unlimited_account, user_sums,
};

on_both!(
    an_abandoned_hold_is_released,
    the_hold_of_a_crashed_node_is_released_and_costs_nothing,
    only_dead_nodes_lose_their_holds,
    a_hold_older_than_a_day_is_released,
    a_hold_needs_a_node_with_a_heartbeat,
    dead_nodes_are_deleted_after_a_day,
    purging_chat_details_keeps_the_charges,
    purging_chat_details_stops_at_an_open_chat,
    more_chats_of_one_millisecond_than_a_page_are_purged,
);

async fn an_abandoned_hold_is_released(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    for _ in 0..20 {
        let new = chat(&ann, "1", "1");
        // The hold is requested, and its future dropped.
        let given_up = store
            .hold_chat(&new, &tokens(900_000, 0), NODE)
            .now_or_never();
        assert!(given_up.is_none(), "no answer can be there yet");
    }
    // A later hold is applied after the releases.
    let new = chat(&ann, "1", "1");
    hold(&store, &new, tokens(900_000, 0)).await.unwrap();
    assert_eq!(user_sums(&store, &ann).await, ["1", "0.9", "0"]);
    settle(&store, &new, true, tokens(1, 0)).await;
    assert_eq!(
        db.number("SELECT COUNT(*) FROM chats WHERE outcome = 'lost'")
            .await,
        20
    );
}

/// A node that holds and then crashes. Returns the chat.
async fn crash(db: &Db, account: &TestAccount) -> NewChat {
    let store = node(db).await;
    let new = chat(account, "1", "1");
    hold(&store, &new, tokens(900_000, 0)).await.unwrap();
    new
}

async fn the_hold_of_a_crashed_node_is_released_and_costs_nothing(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let crashed = crash(db, &ann).await;
    assert_eq!(user_sums(&store, &ann).await, ["1", "0.9", "0"]);
    assert_clean(&store).await;
    let later = NOW + 30_000;
    assert_eq!(store.release_orphaned_chats(later, "node_2").await, Ok(1));
    assert_eq!(store.release_orphaned_chats(later, "node_2").await, Ok(0));
    store.heartbeat("node_2", later + 30_000).await.unwrap();
    assert_eq!(user_sums(&store, &ann).await, ["1", "0", "0"]);
    assert_eq!(key_sums(&store, &ann).await, ["0", "0"]);
    // The node was only late: its chat is not charged.
    let late = settle(&store, &crashed, true, tokens(100_000, 0)).await;
    assert_eq!(late, SettleOutcome::AlreadyReleased);
    assert_eq!(
        settle(&store, &crashed, true, tokens(100_000, 0)).await,
        SettleOutcome::AlreadyReleased
    );
    assert_eq!(user_sums(&store, &ann).await, ["1", "0", "0"]);
    assert_clean(&store).await;
    let again = chat(&ann, "1", "1");
    assert!(
        store
            .hold_chat(&again, &tokens(1_000_000, 0), "node_2")
            .await
            .unwrap()
            .is_ok()
    );
}

async fn only_dead_nodes_lose_their_holds(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1000").await;
    let new = chat(&ann, "1", "1");
    hold(&store, &new, tokens(900_000, 0)).await.unwrap();
    assert_eq!(
        store.release_orphaned_chats(NOW + 29_999, NODE).await,
        Ok(0)
    );
    assert_eq!(
        store.release_orphaned_chats(NOW + 90_000, NODE).await,
        Ok(0),
        "oneself is alive"
    );
    if store.is_shared() {
        assert_eq!(
            store.release_orphaned_chats(NOW + 29_999, "other").await,
            Ok(0)
        );
        store.heartbeat(NODE, NOW + 60_000).await.unwrap();
        assert_eq!(
            store.release_orphaned_chats(NOW + 59_999, "other").await,
            Ok(0)
        );
    }
    // More than one query returns.
    let others: Vec<NewChat> = (0..1_203).map(|_| chat(&ann, "1", "0")).collect();
    let units = tokens(1_000, 0);
    let holds = others.iter().map(|new| hold(&store, new, units));
    for held in futures_util::future::join_all(holds).await {
        held.unwrap();
    }
    let outcome = settle(&store, &new, true, tokens(100_000, 0)).await;
    assert_eq!(outcome, cost("0.1"));
    assert_eq!(
        store.release_orphaned_chats(NOW + 60_000, "other").await,
        Ok(1_203)
    );
    assert_eq!(user_sums(&store, &ann).await, ["999.9", "0", "0.1"]);
}

async fn a_hold_older_than_a_day_is_released(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let new = chat(&ann, "1", "1");
    hold(&store, &new, tokens(900_000, 0)).await.unwrap();
    let day = NOW + clock::DAY;
    store.heartbeat(NODE, day + 30_000).await.unwrap();
    assert_eq!(store.release_orphaned_chats(day - 1, NODE).await, Ok(0));
    assert_eq!(store.release_orphaned_chats(day, NODE).await, Ok(1));
    assert_eq!(user_sums(&store, &ann).await, ["1", "0", "0"]);
}

async fn a_hold_needs_a_node_with_a_heartbeat(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let new = chat(&ann, "1", "1");
    let unknown = store.hold_chat(&new, &tokens(1, 0), "node_unknown").await;
    assert!(matches!(unknown, Err(StoreError::Broken(_))), "{unknown:?}");
    assert_eq!(user_sums(&store, &ann).await, ["1", "0", "0"]);
    store.heartbeat("node_unknown", NOW + 1).await.unwrap();
    assert!(
        store
            .hold_chat(&new, &tokens(1, 0), "node_unknown")
            .await
            .unwrap()
            .is_ok()
    );
}

async fn dead_nodes_are_deleted_after_a_day(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    store.heartbeat("dead", NOW).await.unwrap();
    store
        .heartbeat("alive", NOW + clock::DAY + 1)
        .await
        .unwrap();
    hold(&store, &chat(&ann, "1", "1"), tokens(1, 0))
        .await
        .unwrap();
    let nodes = async || {
        let rows = db.raw("SELECT id FROM nodes ORDER BY id").await;
        rows.concat()
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    };
    store
        .release_orphaned_chats(NOW + clock::DAY - 1, "alive")
        .await
        .unwrap();
    assert_eq!(nodes().await, format!("alive dead {NODE}"));
    store
        .release_orphaned_chats(NOW + clock::DAY, "alive")
        .await
        .unwrap();
    assert_eq!(nodes().await, format!("alive {NODE}"));
    store
        .release_orphaned_chats(NOW + 2 * clock::DAY, "alive")
        .await
        .unwrap();
    assert_eq!(nodes().await, "alive");
}

/// Settles a chat request of that time without a hold. Returns its id.
async fn settle_at(store: &Store, account: &TestAccount, at: Millis) -> String {
    let new = NewChat {
        id: id::chat_id(at),
        opened_at: at,
        ..chat(account, "1", "1")
    };
    let end = ChatEnd {
        ended_at: at + 1,
        ..chat_end(tokens(1_000, 0))
    };
    let id = new.id.clone();
    store.settle_chat(new, &ChatHold::None, end).await.unwrap();
    id
}

/// The number of chats that have their details.
async fn detailed(db: &Db) -> i64 {
    let with = "request_id <> '' AND channel IS NOT NULL AND upstream_model IS NOT NULL AND attempts <> ''";
    let without =
        "request_id = '' AND channel IS NULL AND upstream_model IS NULL AND attempts = ''";
    let count = |what| format!("SELECT COUNT(*) FROM chats WHERE {what}");
    let (with, all) = (
        db.number(&count(with)).await,
        db.number(&count("1 = 1")).await,
    );
    assert_eq!(with + db.number(&count(without)).await, all);
    with
}

async fn purging_chat_details_keeps_the_charges(db: &Db) {
    let store = db.open().await;
    let bob = unlimited_account(&store, "bob", None).await;
    for at in 0..10 {
        settle_at(&store, &bob, NOW + 10 * at).await;
    }
    assert_eq!(store.purge_expired(NOW, NOW).await, Ok(0), "none has ended");
    assert_eq!(store.purge_expired(NOW + 1, NOW).await, Ok(1));
    assert_eq!(store.purge_expired(NOW + 1, NOW).await, Ok(0));
    assert_eq!(detailed(db).await, 9);
    assert_eq!(
        store.purge_expired(NOW + 50, NOW).await,
        Ok(4),
        "one of them had not ended"
    );
    assert_eq!(store.purge_expired(NOW + 51, NOW).await, Ok(1));
    assert_eq!(store.purge_expired(NOW, NOW).await, Ok(0));
    assert_eq!(store.purge_expired(NOW + 1_000, NOW).await, Ok(4));
    assert_eq!(detailed(db).await, 0);
    assert_eq!(user_sums(&store, &bob).await, ["-0.01", "0", "0.01"]);
}

async fn purging_chat_details_stops_at_an_open_chat(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let long = chat(&ann, "1", "1");
    settle_at(&store, &ann, NOW - 5).await;
    hold(&store, &long, tokens(500_000, 0)).await.unwrap();
    settle_at(&store, &ann, NOW + 5).await;
    assert_eq!(store.purge_expired(NOW + 1_000, NOW).await, Ok(1));
    assert_eq!(store.purge_expired(NOW + 1_000, NOW).await, Ok(0));
    settle(&store, &long, true, tokens(500_000, 0)).await;
    assert_eq!(store.purge_expired(NOW + 1_000, NOW).await, Ok(2));
    assert_eq!(detailed(db).await, 0);
}

async fn more_chats_of_one_millisecond_than_a_page_are_purged(db: &Db) {
    let store = db.open().await;
    let bob = unlimited_account(&store, "bob", None).await;
    let chats = (0..1_203).map(|_| settle_at(&store, &bob, NOW));
    assert_eq!(futures_util::future::join_all(chats).await.len(), 1_203);
    for gone in [500, 500, 203, 0] {
        assert_eq!(store.purge_expired(NOW + 1, NOW).await, Ok(gone));
    }
    assert_eq!(detailed(db).await, 0);
}
