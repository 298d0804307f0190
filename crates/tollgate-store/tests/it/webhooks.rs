//! The webhook outbox: one webhook for each end of a task with a URL, delivered at least once; webhook secrets.

use std::collections::BTreeSet;

use tollgate_core::{Millis, Secret, id};
use tollgate_store::{
    CancelOutcome, DeliveryAttempt, DeliveryResult, DueWebhook, FinishOutcome, NextDelivery, Store,
    WebhookLog, WebhookState,
};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, assert_clean, cancel, claim_one, claim_tasks, delivered, failed, finish, submit,
    task, task_finish, unlimited_account, with_webhook,
};

on_both!(
    every_end_inserts_one_webhook,
    the_shown_fields_and_the_callback_url_are_stored,
    a_webhook_is_retried_until_delivered,
    a_given_up_webhook_is_final,
    a_late_attempt_counts_only_if_it_delivered,
    an_unclaimed_webhook_does_not_count_an_attempt,
    a_single_node_reclaims_its_webhooks_at_start,
    two_nodes_never_claim_the_same_webhook,
    racing_cancel_and_finish_insert_one_webhook,
    webhooks_are_purged_with_their_tasks,
    a_delivery_racing_the_purge_leaves_no_row,
    a_key_has_one_webhook_secret_on_every_node,
);

const URL: &str = "https://example.com/hook?a=1";

/// Takes what is due, for 60 s.
async fn due(store: &Store, now: Millis) -> Vec<DueWebhook> {
    store
        .claim_webhooks("w", 100, now + 60_000, now)
        .await
        .unwrap()
}

fn tried(
    webhook: &DueWebhook,
    at: Millis,
    status: Option<u16>,
    next: NextDelivery,
) -> DeliveryResult {
    DeliveryResult {
        task_id: webhook.task_id.clone(),
        number: webhook.tries + 1,
        at,
        took_ms: 40,
        status,
        error: status.is_none().then(|| "no answer in time".to_owned()),
        next,
    }
}

/// A task that ended at `NOW` and whose webhook is due.
async fn ended(store: &Store) -> String {
    let ann = unlimited_account(store, &id::short_id("ann_"), None).await;
    let id = submit(store, with_webhook(task(&ann, 1, "0"))).await;
    let leased = claim_one(store, NOW).await;
    finish(store, &leased, delivered(1), NOW).await;
    id
}

async fn log(store: &Store, task_id: &str) -> WebhookLog {
    store.webhook_log(task_id).await.unwrap().unwrap()
}

async fn every_end_inserts_one_webhook(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "9").await;
    for _ in 0..3 {
        submit(&store, with_webhook(task(&ann, 1, "0.5"))).await;
    }
    submit(&store, task(&ann, 1, "0.5")).await;
    let leased = claim_tasks(&store, NOW).await;
    assert!(due(&store, NOW).await.is_empty());
    assert_eq!(store.next_webhook_due_at().await, Ok(None));
    assert_eq!(store.webhook_log(&leased[0].task.id).await, Ok(None));
    finish(&store, &leased[0], delivered(1), NOW + 3).await;
    finish(&store, &leased[1], failed(), NOW + 2).await;
    cancel(&store, &leased[2].task, NOW + 1).await;
    finish(&store, &leased[3], delivered(1), NOW).await;
    // A late end inserts no second webhook.
    for leased in &leased {
        let late = finish(&store, leased, failed(), NOW + 4).await;
        assert_eq!(late, FinishOutcome::AlreadyFinal);
        let late = store.cancel_task(&leased.task, NOW + 4).await;
        assert_eq!(late, Ok(CancelOutcome::AlreadyFinal));
    }
    assert_eq!(store.totals().await.unwrap().pending_webhooks, 3);
    assert_eq!(store.next_webhook_due_at().await, Ok(Some(NOW + 1)));
    assert_clean(&store).await;
    let waiting = log(&store, &leased[0].task.id).await;
    let expected = WebhookLog {
        url: URL.to_owned(),
        state: WebhookState::Waiting,
        next_at: Some(NOW + 3),
        tries: Vec::new(),
    };
    assert_eq!(waiting, expected);
    assert_eq!(store.webhook_log(&leased[3].task.id).await, Ok(None));

    // The longest due first.
    let first = store
        .claim_webhooks("w", 2, NOW + 99, NOW + 3)
        .await
        .unwrap();
    let second = store
        .claim_webhooks("w", 2, NOW + 99, NOW + 3)
        .await
        .unwrap();
    let expected = [2, 1, 0].map(|i: usize| DueWebhook {
        task_id: leased[i].task.id.clone(),
        key_id: ann.key_id.clone(),
        url: URL.to_owned(),
        tries: 0,
        first_at: NOW + 3 - i as Millis,
    });
    assert_eq!([first, second].concat(), expected);
    assert_eq!(store.next_webhook_due_at().await, Ok(Some(NOW + 99)));
}

async fn the_shown_fields_and_the_callback_url_are_stored(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let mut new = with_webhook(task(&ann, 1, "0"));
    new.shown = r#"{"seconds":"8","size":"1280x720"}"#.to_owned();
    let shown = new.shown.clone();
    let id = submit(&store, new).await;
    let leased = claim_one(&store, NOW).await;
    let seen = store.task(&id).await.unwrap().unwrap();
    for task in [&leased.task, &seen] {
        assert_eq!(task.shown, shown);
        assert_eq!(task.callback_url.as_deref(), Some(URL));
    }
    let plain = submit(&store, task(&ann, 1, "0")).await;
    let plain = store.task(&plain).await.unwrap().unwrap();
    assert_eq!((plain.shown.as_str(), plain.callback_url), ("{}", None));
}

async fn a_webhook_is_retried_until_delivered(db: &Db) {
    let store = db.open().await;
    let id = ended(&store).await;
    let first = due(&store, NOW).await.remove(0);
    assert!(due(&store, NOW + 59_999).await.is_empty(), "it is leased");
    let again = tried(&first, NOW, Some(500), NextDelivery::RetryAt(NOW + 5_000));
    for _ in 0..2 {
        store.record_delivery(again.clone()).await.unwrap();
        assert_eq!(log(&store, &id).await.next_at, Some(NOW + 5_000));
    }
    assert!(due(&store, NOW + 4_999).await.is_empty());
    let second = due(&store, NOW + 5_000).await.remove(0);
    assert_eq!((second.tries, second.first_at), (1, NOW));
    // Recorded again after another claim: the new claim keeps its lease.
    store.record_delivery(again).await.unwrap();
    assert!(due(&store, NOW + 5_000).await.is_empty());
    // The node dies during its attempt.
    let third = due(&store, NOW + 65_000).await.remove(0);
    assert_eq!(third.tries, 2);
    let arrived = tried(&third, NOW + 65_000, Some(204), NextDelivery::Delivered);
    for _ in 0..2 {
        store.record_delivery(arrived.clone()).await.unwrap();
        let expected = WebhookLog {
            url: URL.to_owned(),
            state: WebhookState::Delivered,
            next_at: None,
            tries: vec![
                DeliveryAttempt {
                    number: 1,
                    at: NOW,
                    took_ms: 40,
                    status: Some(500),
                    error: None,
                },
                DeliveryAttempt {
                    number: 3,
                    at: NOW + 65_000,
                    took_ms: 40,
                    status: Some(204),
                    error: None,
                },
            ],
        };
        assert_eq!(log(&store, &id).await, expected);
    }
    assert_eq!(store.totals().await.unwrap().pending_webhooks, 0);
    assert_eq!(store.next_webhook_due_at().await, Ok(None));
    assert!(due(&store, NOW + 999_999).await.is_empty());
}

async fn a_given_up_webhook_is_final(db: &Db) {
    let store = db.open().await;
    let id = ended(&store).await;
    let last = due(&store, NOW).await.remove(0);
    let given_up = tried(&last, NOW, None, NextDelivery::GivenUp);
    for _ in 0..2 {
        store.record_delivery(given_up.clone()).await.unwrap();
        let seen = log(&store, &id).await;
        assert_eq!((seen.state, seen.next_at), (WebhookState::GivenUp, None));
        assert_eq!(seen.tries.len(), 1);
        assert_eq!(seen.tries[0].error.as_deref(), Some("no answer in time"));
    }
    assert!(due(&store, NOW + 999_999).await.is_empty());
    assert_clean(&store).await;
    // A result for an unknown task leaves no row.
    let strange = DeliveryResult {
        task_id: id::task_id(NOW),
        ..given_up
    };
    store.record_delivery(strange).await.unwrap();
}

async fn a_late_attempt_counts_only_if_it_delivered(db: &Db) {
    let store = db.open().await;
    let id = ended(&store).await;
    let old = due(&store, NOW).await.remove(0);
    let new = due(&store, NOW + 60_000).await.remove(0);
    for next in [NextDelivery::GivenUp, NextDelivery::RetryAt(NOW)] {
        let late = tried(&old, NOW, None, next);
        store.record_delivery(late).await.unwrap();
        let seen = log(&store, &id).await;
        assert_eq!(seen.state, WebhookState::Waiting);
        assert_eq!(seen.next_at, Some(NOW + 120_000));
        assert_eq!(seen.tries.len(), 1, "it is written down all the same");
    }
    // A delivery counts whoever records it, and whatever is recorded after.
    let arrived = tried(&old, NOW, Some(200), NextDelivery::Delivered);
    store.record_delivery(arrived).await.unwrap();
    for next in [NextDelivery::GivenUp, NextDelivery::RetryAt(NOW)] {
        let other = tried(&new, NOW + 60_000, Some(500), next);
        store.record_delivery(other).await.unwrap();
        assert_eq!(log(&store, &id).await.state, WebhookState::Delivered);
    }
    assert!(due(&store, NOW + 999_999).await.is_empty());
    assert_clean(&store).await;

    let id = ended(&store).await;
    let old = due(&store, NOW).await.remove(0);
    let new = due(&store, NOW + 60_000).await.remove(0);
    let given_up = tried(&new, NOW + 60_000, None, NextDelivery::GivenUp);
    store.record_delivery(given_up).await.unwrap();
    let arrived = tried(&old, NOW, Some(200), NextDelivery::Delivered);
    store.record_delivery(arrived).await.unwrap();
    assert_eq!(log(&store, &id).await.state, WebhookState::Delivered);
}

async fn an_unclaimed_webhook_does_not_count_an_attempt(db: &Db) {
    let store = db.open().await;
    let id = ended(&store).await;
    let put_back = async |owner: &str, due_at| {
        let ids = vec![id.clone()];
        store.unclaim_webhooks(owner, ids, due_at).await.unwrap();
    };
    due(&store, NOW).await;
    put_back("v", NOW + 1).await;
    assert_eq!(store.next_webhook_due_at().await, Ok(Some(NOW + 60_000)));
    for _ in 0..2 {
        put_back("w", NOW + 250).await;
        assert_eq!(store.next_webhook_due_at().await, Ok(Some(NOW + 250)));
    }
    assert_clean(&store).await;
    let next = due(&store, NOW + 250).await.remove(0);
    assert_eq!(next.tries, 0, "a claim is no try");
    let arrived = tried(&next, NOW + 250, Some(200), NextDelivery::Delivered);
    store.record_delivery(arrived).await.unwrap();
    put_back("w", NOW + 500).await;
    assert_eq!(log(&store, &id).await.state, WebhookState::Delivered);
}

async fn a_single_node_reclaims_its_webhooks_at_start(db: &Db) {
    let store = db.open().await;
    ended(&store).await;
    ended(&store).await;
    let before = store.claim_webhooks("w", 1, NOW + 60_000, NOW).await;
    assert_eq!(before.unwrap().len(), 1);
    // A draining node is still posting.
    assert_eq!(store.release_leases(Some("w"), NOW + 5).await, Ok(0));
    assert_eq!(due(&store, NOW + 5).await.len(), 1);
    // A starting single node is not. Whether the receiver got it is unknown, so the attempt counts.
    assert_eq!(store.release_leases(None, NOW + 6).await, Ok(0));
    let again = due(&store, NOW + 6).await;
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|webhook| webhook.tries == 1));
}

async fn two_nodes_never_claim_the_same_webhook(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = unlimited_account(&nodes[0], "ann", None).await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..120 {
        let (store, new) = (nodes[i % 2].clone(), with_webhook(task(&ann, 1, "0")));
        running.spawn(async move {
            let id = submit(&store, new).await;
            let task = store.task(&id).await.unwrap().unwrap();
            cancel(&store, &task, NOW).await;
        });
    }
    running.join_all().await;
    let mut running = tokio::task::JoinSet::new();
    for i in 0..40 {
        let store = nodes[i % 2].clone();
        running.spawn(async move {
            let claimed = store.claim_webhooks("w", 7, NOW + 99, NOW).await.unwrap();
            for webhook in &claimed {
                let arrived = tried(webhook, NOW, Some(200), NextDelivery::Delivered);
                store.record_delivery(arrived).await.unwrap();
            }
            claimed
        });
    }
    let mut got: Vec<_> = running.join_all().await.into_iter().flatten().collect();
    // On PostgreSQL a claim may return fewer than are due while another claim is running.
    got.extend(due(&nodes[0], NOW).await);
    assert_eq!(got.len(), 120);
    assert!(got.iter().all(|webhook| webhook.tries == 0));
    let ids: BTreeSet<_> = got.iter().map(|webhook| &webhook.task_id).collect();
    assert_eq!(ids.len(), 120);
}

async fn racing_cancel_and_finish_insert_one_webhook(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = account(&nodes[0], "ann", "10").await;
    for _ in 0..40 {
        submit(&nodes[0], with_webhook(task(&ann, 1, "0.1"))).await;
    }
    let mut running = tokio::task::JoinSet::new();
    for (i, leased) in claim_tasks(&nodes[0], NOW).await.into_iter().enumerate() {
        let [worker, user, sender] = [&nodes[0], &nodes[i % 2], &nodes[1]].map(Store::clone);
        running.spawn(async move {
            let end = task_finish(&leased, delivered(1), NOW);
            let (ended, cancelled, sent) = tokio::join!(
                worker.finish_task(end),
                user.cancel_task(&leased.task, NOW),
                sender.claim_webhooks("w", 3, NOW + 99, NOW)
            );
            match (ended.unwrap(), cancelled.unwrap()) {
                (FinishOutcome::Finished { .. }, CancelOutcome::AlreadyFinal)
                | (FinishOutcome::AlreadyFinal, CancelOutcome::Cancelled) => {}
                both => panic!("{both:?}"),
            }
            sent.unwrap()
        });
    }
    let mut got: Vec<_> = running.join_all().await.into_iter().flatten().collect();
    got.extend(due(&nodes[0], NOW).await);
    let ids: BTreeSet<_> = got.iter().map(|webhook| &webhook.task_id).collect();
    assert_eq!((got.len(), ids.len()), (40, 40));
}

async fn webhooks_are_purged_with_their_tasks(db: &Db) {
    let store = db.open().await;
    let id = ended(&store).await;
    let webhook = due(&store, NOW).await.remove(0);
    let again = tried(&webhook, NOW, Some(500), NextDelivery::RetryAt(NOW + 9));
    store.record_delivery(again.clone()).await.unwrap();
    assert_eq!(store.purge_expired(NOW + 1, NOW + 1).await, Ok(1));
    assert_eq!(store.webhook_log(&id).await, Ok(None));
    assert_eq!(store.next_webhook_due_at().await, Ok(None));
    store.record_delivery(again).await.unwrap();
    assert_eq!(db.number("SELECT COUNT(*) FROM callback_tries").await, 0);
}

async fn a_delivery_racing_the_purge_leaves_no_row(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    for _ in 0..20 {
        ended(&nodes[0]).await;
    }
    let webhooks = due(&nodes[0], NOW).await;
    assert_eq!(webhooks.len(), 20);
    let mut running = tokio::task::JoinSet::new();
    for (i, webhook) in webhooks.into_iter().enumerate() {
        let store = nodes[i % 2].clone();
        let arrived = tried(&webhook, NOW, Some(200), NextDelivery::Delivered);
        running.spawn(async move { store.record_delivery(arrived).await });
    }
    let purged = nodes[0].purge_expired(NOW + 1, NOW + 1).await;
    assert_eq!(purged, Ok(20));
    for written in running.join_all().await {
        assert_eq!(written, Ok(()));
    }
    assert_eq!(db.number("SELECT COUNT(*) FROM callback_tries").await, 0);
}

async fn a_key_has_one_webhook_secret_on_every_node(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let (ann, bob) = (
        unlimited_account(&nodes[0], "ann", None).await,
        unlimited_account(&nodes[0], "bob", None).await,
    );
    let mut running = tokio::task::JoinSet::new();
    for i in 0..30 {
        let (store, key) = (nodes[i % 2].clone(), ann.key_id.clone());
        running.spawn(async move {
            let fresh = Secret::new(format!("whsec_{i}"));
            store.webhook_secret(&key, fresh, NOW).await.unwrap()
        });
    }
    let secrets = running.join_all().await;
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    assert!(secrets[0].expose().starts_with("whsec_"));
    let fresh = || Secret::new("whsec_fresh");
    let known = nodes[1].webhook_secret(&ann.key_id, fresh(), NOW).await;
    assert_eq!(known.as_ref(), Ok(&secrets[0]));
    let other = nodes[1].webhook_secret(&bob.key_id, fresh(), NOW).await;
    assert_eq!(other, Ok(fresh()));
}
