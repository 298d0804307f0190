//! A user's list of tasks in pages, and deletions and releases of many rows at a time.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::json;
use tollgate_core::clock::HOUR;
use tollgate_store::{
    AdminRequest, ChatHold, ConfigurationChange, ConfigurationKind, ConfigurationWrite, NewChat,
    Store,
};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NODE, NOW, account, begin, chat, chat_end, claim_one, claim_tasks, cost, delivered, finish,
    hold, node, queued, settle, submit, task_at, tokens, unlimited_account, user_sums,
};

on_both!(
    pages_are_newest_first_and_complete,
    a_purge_deletes_at_most_500_old_tasks_at_a_time,
    more_chats_of_one_millisecond_than_a_page_are_purged,
    an_abandoned_hold_is_released,
    only_holds_of_dead_nodes_are_released,
    a_deleted_channel_is_kept_while_a_job_is_open_on_it,
);

async fn a_deleted_channel_is_kept_while_a_job_is_open_on_it(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    submit(&store, task_at(&ann, 1, "0", NOW)).await;
    let leased = claim_one(&store, NOW).await;
    let started = queued(&leased, NOW);
    let request = AdminRequest::cli(NOW);
    let write = async |name: &str, change: ConfigurationChange| {
        let write = ConfigurationWrite {
            kind: ConfigurationKind::Channel,
            name: name.to_owned(),
            change,
            show: Arc::new(|row| row.body.clone()),
        };
        let result = store.write_configuration(&request, write).await;
        assert!(result.unwrap().is_ok());
    };
    let version = store.config_version().await.unwrap();
    for name in [started.channel.as_str(), "idle"] {
        write(name, ConfigurationChange::Create(json!({ "kind": "any" }))).await;
        write(name, ConfigurationChange::Delete(1)).await;
    }
    assert_eq!(store.config_version().await, Ok(version + 4));
    begin(&store, started.clone()).await.unwrap();
    let deleted = async || {
        let stored = store.stored_configuration().await.unwrap();
        assert!(stored.channels.is_empty());
        stored.deleted_channels.len()
    };
    for (at, kept) in [(HOUR - 1, 2), (HOUR, 1)] {
        store.purge_deleted_channels(NOW + at).await.unwrap();
        assert_eq!(deleted().await, kept);
    }
    finish(&store, &leased, delivered(1), NOW + HOUR).await;
    store.purge_deleted_channels(NOW + HOUR).await.unwrap();
    assert_eq!(deleted().await, 0);
}

async fn all_pages(store: &Store, user_id: &str, limit: usize) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.list_tasks(user_id, limit, cursor.as_deref()).await;
        let page = page.unwrap();
        found.extend(page.tasks.into_iter().map(|task| task.id));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return found,
        }
    }
}

async fn pages_are_newest_first_and_complete(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let bob = account(&store, "bob", "1").await;
    assert!(all_pages(&store, &ann.user_id, 10).await.is_empty());
    let mut ids = Vec::new();
    for i in 0..105 {
        ids.push(submit(&store, task_at(&ann, 1, "0", NOW + i / 3)).await);
        if i % 10 == 0 {
            submit(&store, task_at(&bob, 1, "0", NOW + i / 3)).await;
        }
    }
    ids.sort();
    ids.reverse();
    for limit in [1, 7, 35, 105, 100] {
        assert_eq!(all_pages(&store, &ann.user_id, limit).await, ids, "{limit}");
    }
    for (limit, cursor, expected) in [
        (5000, None, 100),
        (0, None, 1),
        (9, Some("nonsense"), 0),
        (9, Some("' OR 1=1 --"), 0),
    ] {
        let page = store.list_tasks(&ann.user_id, limit, cursor).await;
        assert_eq!(page.unwrap().tasks.len(), expected, "{limit} {cursor:?}");
    }
    assert_eq!(all_pages(&store, &bob.user_id, 4).await.len(), 11);
}

async fn a_purge_deletes_at_most_500_old_tasks_at_a_time(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let slow = submit(&store, task_at(&ann, 1, "0", NOW)).await;
    for i in 1..620 {
        submit(&store, task_at(&ann, 1, "0", NOW + i)).await;
    }
    loop {
        let some = claim_tasks(&store, NOW + 1000).await;
        for leased in &some {
            let is_slow = leased.task.id == slow;
            let at = NOW + if is_slow { 9000 } else { 2000 };
            finish(&store, leased, delivered(1), at).await;
        }
        if some.is_empty() {
            break;
        }
    }
    for purged in [500, 119, 0] {
        assert_eq!(store.purge_expired(NOW + 3000, NOW).await, Ok(purged));
    }
    assert_eq!(all_pages(&store, &ann.user_id, 9).await, [slow]);
}

async fn more_chats_of_one_millisecond_than_a_page_are_purged(db: &Db) {
    let store = db.open().await;
    let bob = unlimited_account(&store, "bob", None).await;
    let chats = (0..1_203).map(|_| {
        let new = chat(&bob, "1", "1");
        store.settle_chat(new, &ChatHold::None, chat_end(tokens(1_000, 0)))
    });
    assert_eq!(join_all(chats).await.len(), 1_203);
    for gone in [500, 500, 203, 0] {
        assert_eq!(store.purge_expired(NOW + 1, NOW).await, Ok(gone));
    }
    let detailed = "SELECT COUNT(*) FROM chats WHERE request_id <> '' OR channel IS NOT NULL
                    OR upstream_model IS NOT NULL OR attempts <> ''";
    assert_eq!(db.number(detailed).await, 0);
}

async fn an_abandoned_hold_is_released(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let worst = tokens(900_000, 0);
    let mut abandoned = 0;
    while abandoned < 20 {
        let new = chat(&ann, "1", "1");
        // The hold is requested, and its future is dropped. On a busy machine the result may be there at once.
        match store.hold_chat(&new, &worst, NODE).now_or_never() {
            None => abandoned += 1,
            Some(_) => drop(settle(&store, &new, true, tokens(0, 0)).await),
        }
    }
    // A later hold is applied after the releases.
    let new = chat(&ann, "1", "1");
    hold(&store, &new, worst).await.unwrap();
    assert_eq!(user_sums(&store, &ann).await, ["1", "0.9", "0"]);
    settle(&store, &new, true, tokens(1, 0)).await;
    let lost = "SELECT COUNT(*) FROM chats WHERE outcome = 'lost'";
    assert_eq!(db.number(lost).await, 20);
}

async fn only_holds_of_dead_nodes_are_released(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1000").await;
    let new = chat(&ann, "1", "1");
    hold(&store, &new, tokens(900_000, 0)).await.unwrap();
    let released = async |at, by| store.release_orphaned_chats(NOW + at, by).await.unwrap();
    assert_eq!(released(29_999, NODE).await, 0);
    assert_eq!(released(90_000, NODE).await, 0, "oneself is alive");
    if store.is_shared() {
        assert_eq!(released(29_999, "other").await, 0);
        store.heartbeat(NODE, NOW + 60_000).await.unwrap();
        assert_eq!(released(59_999, "other").await, 0);
    }
    // More rows than one query returns.
    let others: Vec<NewChat> = (0..1_203).map(|_| chat(&ann, "1", "0")).collect();
    let holds = others.iter().map(|new| hold(&store, new, tokens(1_000, 0)));
    assert!(join_all(holds).await.iter().all(Result::is_ok));
    let outcome = settle(&store, &new, true, tokens(100_000, 0)).await;
    assert_eq!(outcome, cost("0.1"));
    assert_eq!(released(60_000, "other").await, 1_203);
    assert_eq!(user_sums(&store, &ann).await, ["999.9", "0", "0.1"]);
}
