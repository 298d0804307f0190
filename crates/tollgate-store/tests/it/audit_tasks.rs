//! The audit finds attempts, webhooks and results that contradict each other.

use tollgate_core::{Secret, TaskKind};
use tollgate_store::{CancelOutcome, Delivered, DeliveryResult, NextDelivery, Store, TaskEnd};

use crate::audit_money::assert_violation_until_undone;
use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, assert_clean, claim_one, delivered, enqueue, failed, finish, start_attempt, submit, task,
    task_at, unlimited_account, with_webhook,
};

on_both!(
    changed_attempts_are_violations,
    changed_webhooks_are_violations,
    webhooks_without_their_task_are_violations,
    the_settled_units_must_match_the_files_in_the_result,
);

/// Sets a cell to an SQL value, asserts that the audit finds a violation, and sets it back.
async fn assert_change_is_violation(
    db: &Db,
    store: &Store,
    table: &str,
    row: &str,
    column: &str,
    value: &str,
) {
    let old = format!("SELECT {column} FROM {table} WHERE {row}");
    let old = db.raw(&old).await.concat();
    assert_eq!(old.len(), 1, "{table} {row}");
    let old = match &old[0] {
        None => "NULL".to_owned(),
        Some(number) if number.parse::<i64>().is_ok() => number.clone(),
        Some(text) => format!("'{text}'"),
    };
    let set = |value: &str| format!("UPDATE {table} SET {column} = {value} WHERE {row}");
    assert_violation_until_undone(db, store, &set(value), &set(&old)).await;
}

async fn changed_attempts_are_violations(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let queued = submit(&store, task(&ann, 1, "0")).await;
    enqueue(&store, &claim_one(&store, NOW).await, "op-1", NOW).await;
    let direct = submit(&store, task(&ann, 1, "0")).await;
    start_attempt(&store, &claim_one(&store, NOW).await, NOW).await;
    let ended = submit(&store, task(&ann, 1, "0")).await;
    let leased = claim_one(&store, NOW).await;
    enqueue(&store, &leased, "op-2", NOW).await;
    finish(&store, &leased, delivered(1), NOW).await;
    assert_clean(&store).await;

    let attempts = [
        (&queued, "queued", "0"),
        (&queued, "queued", "2"),
        (&queued, "ticket", "NULL"),
        (&queued, "ticket_at", "NULL"),
        (&queued, "ended_at", "1"),
        (&queued, "outcome", "'done'"),
        (&queued, "error", "'it broke'"),
        (&queued, "number", "2"),
        (&queued, "fence", "2"),
        (&direct, "fence", "0"),
        (&direct, "queued", "1"),
        (&direct, "ticket", "'op-3'"),
        (&direct, "number", "0"),
        (&ended, "ended_at", "NULL"),
        (&ended, "outcome", "NULL"),
        (&ended, "queued", "0"),
    ];
    for (id, column, value) in attempts {
        let row = format!("task_id = '{id}'");
        assert_change_is_violation(db, &store, "attempts", &row, column, value).await;
    }
    for (id, value) in [
        (&queued, "NULL"),
        (&queued, "2"),
        (&direct, "1"),
        (&ended, "1"),
    ] {
        let row = format!("id = '{id}'");
        assert_change_is_violation(db, &store, "tasks", &row, "queued_attempt", value).await;
    }
    let columns = "channel, fence, queued, external_id, key_print, ticket, ticket_at, started_at";
    let second = format!(
        "INSERT INTO attempts (task_id, number, {columns})
         SELECT task_id, number + 1, {columns} FROM attempts WHERE ended_at IS NULL"
    );
    assert_violation_until_undone(db, &store, &second, "DELETE FROM attempts WHERE number = 2")
        .await;
}

/// Inserts tasks with webhooks in every state; their ids: waiting, claimed, delivered, given up, and one that has not ended.
async fn webhooks(store: &Store) -> [String; 5] {
    let ann = unlimited_account(store, "ann", None).await;
    let mut ids = Vec::new();
    for i in 0..4 {
        let id = submit(store, with_webhook(task(&ann, 1, "0"))).await;
        let leased = claim_one(store, NOW).await;
        match i {
            0 => drop(finish(store, &leased, failed(), NOW + i).await),
            1 => assert_eq!(
                store.cancel_task(&leased.task, NOW + i).await,
                Ok(CancelOutcome::Cancelled)
            ),
            _ => drop(finish(store, &leased, delivered(1), NOW + i).await),
        }
        ids.push(id);
    }
    let claimed = store.claim_webhooks("w", 9, NOW + 99, NOW + 9).await;
    for webhook in claimed.unwrap() {
        let next = match ids.iter().position(|id| *id == webhook.task_id) {
            Some(0) => NextDelivery::RetryAt(NOW + 500),
            Some(1) => continue,
            Some(2) => NextDelivery::Delivered,
            _ => NextDelivery::GivenUp,
        };
        let tried = DeliveryResult {
            task_id: webhook.task_id,
            number: 1,
            at: NOW,
            took_ms: 5,
            status: Some(500),
            error: None,
            next,
        };
        store.record_delivery(tried).await.unwrap();
    }
    ids.push(submit(store, with_webhook(task_at(&ann, 1, "0", NOW))).await);
    let secret = Secret::new("whsec_x");
    store
        .webhook_secret(&ann.key_id, secret, NOW)
        .await
        .unwrap();
    assert_clean(store).await;
    ids.try_into().expect("five of them")
}

async fn changed_webhooks_are_violations(db: &Db) {
    let store = db.open().await;
    let [waiting, claimed, delivered, given_up, running] = webhooks(&store).await;
    for (id, column, value) in [
        (&waiting, "state", "'delivered'"),
        (&waiting, "state", "'given_up'"),
        (&waiting, "state", "'lost'"),
        (&waiting, "ended_at", "1"),
        (&waiting, "attempts", "0"),
        (&waiting, "url", "'https://example.net'"),
        (&waiting, "key_id", "'key_x'"),
        (&waiting, "first_at", "1"),
        (&claimed, "attempts", "-1"),
        (&claimed, "attempts", "0"),
        (&claimed, "state", "'delivered'"),
        (&delivered, "state", "'waiting'"),
        (&delivered, "ended_at", "NULL"),
        (&delivered, "owner", "'w'"),
        (&given_up, "state", "'waiting'"),
        (&given_up, "ended_at", "NULL"),
    ] {
        let row = format!("task_id = '{id}'");
        assert_change_is_violation(db, &store, "callbacks", &row, column, value).await;
    }
    for (id, column, value) in [
        (&waiting, "callback_url", "NULL"),
        (&waiting, "callback_url", "'https://example.net'"),
        (&waiting, "ended_at", "1"),
        (&running, "state", "4"),
    ] {
        let row = format!("id = '{id}'");
        assert_change_is_violation(db, &store, "tasks", &row, column, value).await;
    }
    let row = format!("task_id = '{given_up}'");
    for number in ["0", "2"] {
        assert_change_is_violation(db, &store, "callback_tries", &row, "number", number).await;
    }
    let key = "secret = 'whsec_x'";
    assert_change_is_violation(db, &store, "webhook_secrets", key, "key_id", "'key_x'").await;
    let key = "key_id LIKE 'key%'";
    assert_change_is_violation(db, &store, "webhook_secrets", key, "secret", "''").await;
}

async fn webhooks_without_their_task_are_violations(db: &Db) {
    let store = db.open().await;
    let [_, _, _, _, running] = webhooks(&store).await;
    for table in ["callbacks", "callback_tries"] {
        let keep = format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}");
        db.raw(&keep).await;
        let ids = db.raw(&format!("SELECT task_id FROM {table}")).await;
        for id in ids.concat().iter().flatten() {
            let delete = format!("DELETE FROM {table} WHERE task_id = '{id}'");
            let restore =
                format!("INSERT INTO {table} SELECT * FROM kept_{table} WHERE task_id = '{id}'");
            // A missing failed attempt is a violation only if it was the one that ended the webhook.
            let ended = "SELECT COUNT(*) FROM callbacks WHERE state <> 'waiting' AND task_id";
            let is_missed =
                table == "callbacks" || db.number(&format!("{ended} = '{id}'")).await == 1;
            if is_missed {
                assert_violation_until_undone(db, &store, &delete, &restore).await;
            }
        }
    }
    let columns = "key_id, callback_url, 'waiting', 5, 0, 5 FROM tasks";
    for (id, task) in [(running.as_str(), "id"), ("task_x", "'task_x'")] {
        let early = format!(
            "INSERT INTO callbacks (task_id, key_id, url, state, due_at, attempts, first_at)
             SELECT {task}, {columns} WHERE id = '{running}'"
        );
        let back = format!("DELETE FROM callbacks WHERE task_id = '{id}'");
        assert_violation_until_undone(db, &store, &early, &back).await;
    }
}

async fn the_settled_units_must_match_the_files_in_the_result(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let (units, full_order) = (Delivered::Units, Delivered::FullOrder);
    for (kind, delivered, files, is_clean) in [
        (TaskKind::Image, units(2), 2, true),
        (TaskKind::Image, units(3), 3, true),
        (TaskKind::Image, units(9), 9, true),
        (TaskKind::Image, full_order, 3, true),
        (TaskKind::Image, full_order, 2, false),
        (TaskKind::Image, units(1), 2, false),
        (TaskKind::Image, units(2), 1, false),
        (TaskKind::Image, full_order, 0, false),
        (
            TaskKind::Video,
            Delivered::from_files(TaskKind::Video, 1),
            1,
            true,
        ),
        (
            TaskKind::Speech,
            Delivered::from_files(TaskKind::Speech, 1),
            1,
            true,
        ),
        (TaskKind::Video, units(1), 1, false),
        (TaskKind::Speech, full_order, 0, false),
    ] {
        let mut new = task(&ann, 3, "0.5");
        new.kind = kind;
        let id = submit(&store, new).await;
        let leased = claim_one(&store, NOW).await;
        let shown = vec!["a file"; files];
        let end = TaskEnd::Completed {
            delivered,
            result: serde_json::json!({ "files": shown }).to_string(),
        };
        finish(&store, &leased, end, NOW).await;
        let found = store.audit().await.unwrap();
        let expected = if is_clean { "" } else { "delivered_units" };
        let found: String = found.into_iter().map(|violation| violation.check).collect();
        assert_eq!(found, expected, "{kind:?} {delivered:?} {files}");
        db.raw(&format!("DELETE FROM attempts WHERE task_id = '{id}'"))
            .await;
        db.raw(&format!("DELETE FROM tasks WHERE id = '{id}'"))
            .await;
        assert_clean(&store).await;
    }
}
