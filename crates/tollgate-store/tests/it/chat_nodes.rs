//! Holds whose process is gone, and what of a chat request is forgotten in time.

use futures_util::FutureExt as _;
use tollgate_core::{Millis, clock, id};
use tollgate_store::{ChatEnd, ChatSettled, Hold, NewChat, Store, StoreError};

use crate::db::{Db, on_both};
use crate::world::{
    NODE, NOW, Payer, assert_clean, chat, chat_end, cost, hold, key_sums, node, payer, rich,
    settle, sums, tokens,
};

on_both!(
    a_hold_that_nobody_waits_for_is_released,
    a_crash_releases_what_was_held,
    only_the_dead_lose_their_holds,
    what_is_a_day_old_is_released,
    only_nodes_that_live_may_hold,
    dead_nodes_are_forgotten,
    old_details_are_forgotten_and_the_books_kept,
    forgetting_waits_for_what_is_open,
    the_time_of_many_chats_may_be_the_same,
);

async fn a_hold_that_nobody_waits_for_is_released(db: &Db) {
    let store = node(db).await;
    let ann = payer(&store, "ann", "1").await;
    for _ in 0..20 {
        let new = chat(&ann, "1", "1");
        // It is asked for, and then given up.
        let given_up = store
            .hold_chat(&new, &tokens(900_000, 0), NODE)
            .now_or_never();
        assert!(given_up.is_none(), "no answer can be there yet");
    }
    // What comes later is done later.
    let new = chat(&ann, "1", "1");
    hold(&store, &new, tokens(900_000, 0)).await.unwrap();
    assert_eq!(sums(&store, &ann).await, ["1", "0.9", "0"]);
    settle(&store, &new, true, tokens(1, 0)).await;
    assert_eq!(
        db.number("SELECT COUNT(*) FROM chats WHERE outcome = 'lost'")
            .await,
        20
    );
    assert_clean(&store).await;
}

/// Holds, and is gone before it settles; answers what was held for.
async fn crash(db: &Db, payer: &Payer) -> NewChat {
    let store = node(db).await;
    let new = chat(payer, "1", "1");
    hold(&store, &new, tokens(900_000, 0)).await.unwrap();
    new
}

async fn a_crash_releases_what_was_held(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    let crashed = crash(db, &ann).await;
    assert_eq!(sums(&store, &ann).await, ["1", "0.9", "0"]);
    assert_clean(&store).await;
    let later = NOW + 30_000;
    assert_eq!(store.release_dead_chats(later, "node_2").await, Ok(1));
    assert_eq!(store.release_dead_chats(later, "node_2").await, Ok(0));
    store.beat("node_2", later + 30_000).await.unwrap();
    assert_eq!(sums(&store, &ann).await, ["1", "0", "0"]);
    assert_eq!(key_sums(&store, &ann).await, ["0", "0"]);
    // It was not dead but late: what it did is free.
    let late = settle(&store, &crashed, true, tokens(100_000, 0)).await;
    assert_eq!(late, ChatSettled::Lost);
    assert_eq!(
        settle(&store, &crashed, true, tokens(100_000, 0)).await,
        ChatSettled::Lost
    );
    assert_eq!(sums(&store, &ann).await, ["1", "0", "0"]);
    assert_clean(&store).await;
    let again = chat(&ann, "1", "1");
    assert!(
        store
            .hold_chat(&again, &tokens(1_000_000, 0), "node_2")
            .await
            .unwrap()
            .is_ok()
    );
    assert_clean(&store).await;
}

async fn only_the_dead_lose_their_holds(db: &Db) {
    let store = node(db).await;
    let ann = payer(&store, "ann", "1000").await;
    let new = chat(&ann, "1", "1");
    hold(&store, &new, tokens(900_000, 0)).await.unwrap();
    assert_eq!(store.release_dead_chats(NOW + 29_999, NODE).await, Ok(0));
    assert_eq!(
        store.release_dead_chats(NOW + 90_000, NODE).await,
        Ok(0),
        "oneself is alive"
    );
    if store.is_shared() {
        assert_eq!(store.release_dead_chats(NOW + 29_999, "other").await, Ok(0));
        store.beat(NODE, NOW + 60_000).await.unwrap();
        assert_eq!(store.release_dead_chats(NOW + 59_999, "other").await, Ok(0));
    }
    // More than are looked for at once.
    let others: Vec<NewChat> = (0..1_203).map(|_| chat(&ann, "1", "0")).collect();
    let units = tokens(1_000, 0);
    let holds = others.iter().map(|new| hold(&store, new, units));
    for held in futures_util::future::join_all(holds).await {
        held.unwrap();
    }
    let done = settle(&store, &new, true, tokens(100_000, 0)).await;
    assert_eq!(done, cost("0.1"));
    assert_eq!(
        store.release_dead_chats(NOW + 60_000, "other").await,
        Ok(1_203)
    );
    assert_eq!(sums(&store, &ann).await, ["999.9", "0", "0.1"]);
    assert_clean(&store).await;
}

async fn what_is_a_day_old_is_released(db: &Db) {
    let store = node(db).await;
    let ann = payer(&store, "ann", "1").await;
    let new = chat(&ann, "1", "1");
    hold(&store, &new, tokens(900_000, 0)).await.unwrap();
    let day = NOW + clock::DAY;
    store.beat(NODE, day + 30_000).await.unwrap();
    assert_eq!(store.release_dead_chats(day - 1, NODE).await, Ok(0));
    assert_eq!(store.release_dead_chats(day, NODE).await, Ok(1));
    assert_eq!(sums(&store, &ann).await, ["1", "0", "0"]);
    assert_clean(&store).await;
}

async fn only_nodes_that_live_may_hold(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    let new = chat(&ann, "1", "1");
    let stranger = store.hold_chat(&new, &tokens(1, 0), "node_unknown").await;
    assert!(
        matches!(stranger, Err(StoreError::Broken(_))),
        "{stranger:?}"
    );
    assert_eq!(sums(&store, &ann).await, ["1", "0", "0"]);
    store.beat("node_unknown", NOW + 1).await.unwrap();
    assert!(
        store
            .hold_chat(&new, &tokens(1, 0), "node_unknown")
            .await
            .unwrap()
            .is_ok()
    );
    assert_clean(&store).await;
}

async fn dead_nodes_are_forgotten(db: &Db) {
    let store = node(db).await;
    let ann = payer(&store, "ann", "1").await;
    store.beat("dead", NOW).await.unwrap();
    store.beat("alive", NOW + clock::DAY + 1).await.unwrap();
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
        .release_dead_chats(NOW + clock::DAY - 1, "alive")
        .await
        .unwrap();
    assert_eq!(nodes().await, format!("alive dead {NODE}"));
    store
        .release_dead_chats(NOW + clock::DAY, "alive")
        .await
        .unwrap();
    assert_eq!(nodes().await, format!("alive {NODE}"));
    store
        .release_dead_chats(NOW + 2 * clock::DAY, "alive")
        .await
        .unwrap();
    assert_eq!(nodes().await, "alive");
    assert_clean(&store).await;
}

/// A chat request of that time, done and over at once.
async fn done_at(store: &Store, payer: &Payer, at: Millis) -> String {
    let new = NewChat {
        id: id::chat_id(at),
        opened_at: at,
        ..chat(payer, "1", "1")
    };
    let end = ChatEnd {
        ended_at: at + 1,
        ..chat_end(tokens(1_000, 0))
    };
    let id = new.id.clone();
    store.settle_chat(new, &Hold::None, end).await.unwrap();
    id
}

/// How many chats have their details.
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

async fn old_details_are_forgotten_and_the_books_kept(db: &Db) {
    let store = db.open().await;
    let bob = rich(&store, "bob", None).await;
    for at in 0..10 {
        done_at(&store, &bob, NOW + 10 * at).await;
    }
    assert_eq!(store.purge(NOW, NOW).await, Ok(0), "none has ended");
    assert_eq!(store.purge(NOW + 1, NOW).await, Ok(1));
    assert_eq!(store.purge(NOW + 1, NOW).await, Ok(0));
    assert_eq!(detailed(db).await, 9);
    assert_eq!(
        store.purge(NOW + 50, NOW).await,
        Ok(4),
        "one of them had not ended"
    );
    assert_eq!(store.purge(NOW + 51, NOW).await, Ok(1));
    assert_eq!(store.purge(NOW, NOW).await, Ok(0));
    assert_eq!(store.purge(NOW + 1_000, NOW).await, Ok(4));
    assert_eq!(detailed(db).await, 0);
    assert_eq!(sums(&store, &bob).await, ["-0.01", "0", "0.01"]);
    assert_clean(&store).await;
}

async fn forgetting_waits_for_what_is_open(db: &Db) {
    let store = node(db).await;
    let ann = payer(&store, "ann", "1").await;
    let long = chat(&ann, "1", "1");
    done_at(&store, &ann, NOW - 5).await;
    hold(&store, &long, tokens(500_000, 0)).await.unwrap();
    done_at(&store, &ann, NOW + 5).await;
    assert_eq!(store.purge(NOW + 1_000, NOW).await, Ok(1));
    assert_eq!(store.purge(NOW + 1_000, NOW).await, Ok(0));
    settle(&store, &long, true, tokens(500_000, 0)).await;
    assert_eq!(store.purge(NOW + 1_000, NOW).await, Ok(2));
    assert_eq!(detailed(db).await, 0);
    assert_clean(&store).await;
}

async fn the_time_of_many_chats_may_be_the_same(db: &Db) {
    let store = db.open().await;
    let bob = rich(&store, "bob", None).await;
    let chats = (0..1_203).map(|_| done_at(&store, &bob, NOW));
    assert_eq!(futures_util::future::join_all(chats).await.len(), 1_203);
    for gone in [500, 500, 203, 0] {
        assert_eq!(store.purge(NOW + 1, NOW).await, Ok(gone));
    }
    assert_eq!(detailed(db).await, 0);
    assert_clean(&store).await;
}
