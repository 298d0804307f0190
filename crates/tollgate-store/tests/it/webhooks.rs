//! Webhooks on two nodes at once: one for each end of a task, claimed once; one secret for each key.

use std::collections::BTreeSet;

use tollgate_core::{Secret, id};
use tollgate_store::{
    CancelOutcome, DeliveryResult, DueWebhook, FinishOutcome, NextDelivery, Store,
};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, all, cancel, claim_one, claim_tasks, delivered, finish, receivers, submit, task,
    task_finish, unlimited_account, with_webhook,
};

on_both!(
    the_echoed_fields_and_the_callback_url_are_stored,
    two_nodes_never_claim_the_same_webhook,
    concurrent_cancel_and_finish_insert_one_webhook,
    a_delivery_concurrent_with_the_purge_leaves_no_row,
    a_key_has_one_webhook_secret_on_every_node,
);

/// Claims the webhooks that are due.
async fn due(store: &Store) -> Vec<DueWebhook> {
    let claimed = store
        .claim_webhooks("w", receivers(100), NOW + 60_000, NOW)
        .await;
    claimed.unwrap()
}

fn arrived(webhook: &DueWebhook) -> DeliveryResult {
    DeliveryResult {
        task_id: webhook.task_id.clone(),
        number: webhook.earlier_attempts + 1,
        at: NOW,
        took_ms: 40,
        status: Some(200),
        error: None,
        next: NextDelivery::Delivered,
    }
}

async fn the_echoed_fields_and_the_callback_url_are_stored(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let fields = r#"{"seconds":"8","size":"1280x720"}"#;
    let mut new = with_webhook(task(&ann, 1, "0"));
    fields.clone_into(&mut new.echoed_fields);
    let id = submit(&store, new).await;
    let leased = claim_one(&store, NOW).await;
    let seen = store.task(&id).await.unwrap().unwrap();
    for task in [&leased.task, &seen] {
        let url = task.callback_url.as_deref();
        assert_eq!(
            (&*task.echoed_fields, url),
            (fields, Some("https://example.com/hook?a=1"))
        );
    }
    let plain = submit(&store, task(&ann, 1, "0")).await;
    let plain = store.task(&plain).await.unwrap().unwrap();
    assert_eq!(
        (plain.echoed_fields.as_str(), plain.callback_url),
        ("{}", None)
    );
}

async fn two_nodes_never_claim_the_same_webhook(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = unlimited_account(&nodes[0], "ann", None).await;
    let ends = (0..120).map(|i| {
        let (store, new) = (nodes[i % 2].clone(), with_webhook(task(&ann, 1, "0")));
        async move {
            let id = submit(&store, new).await;
            let task = store.task(&id).await.unwrap().unwrap();
            cancel(&store, &task, NOW).await;
        }
    });
    all(ends).await;
    let claims = (0..40).map(|i| {
        let store = nodes[i % 2].clone();
        async move {
            let claimed = store
                .claim_webhooks("w", receivers(7), NOW + 99, NOW)
                .await
                .unwrap();
            for webhook in &claimed {
                store.record_delivery(arrived(webhook)).await.unwrap();
            }
            claimed
        }
    });
    let mut got = all(claims).await.concat();
    // On PostgreSQL a claim may return fewer than are due while another claim is running.
    got.extend(due(&nodes[0]).await);
    assert_eq!(got.len(), 120);
    assert!(got.iter().all(|webhook| webhook.earlier_attempts == 0));
    let ids: BTreeSet<_> = got.iter().map(|webhook| &webhook.task_id).collect();
    assert_eq!(ids.len(), 120);
}

async fn concurrent_cancel_and_finish_insert_one_webhook(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = account(&nodes[0], "ann", "10").await;
    for _ in 0..40 {
        submit(&nodes[0], with_webhook(task(&ann, 1, "0.1"))).await;
    }
    let leases = claim_tasks(&nodes[0], NOW).await.into_iter().enumerate();
    let races = leases.map(|(i, leased)| {
        let [worker, user, sender] = [&nodes[0], &nodes[i % 2], &nodes[1]].map(Store::clone);
        async move {
            let end = task_finish(&leased, delivered(1), NOW);
            let (ended, cancelled, sent) = tokio::join!(
                worker.finish_task(end),
                user.cancel_task(&leased.task, NOW),
                sender.claim_webhooks("w", receivers(3), NOW + 99, NOW)
            );
            match (ended.unwrap(), cancelled.unwrap()) {
                (FinishOutcome::Finished { .. }, CancelOutcome::AlreadyFinal)
                | (FinishOutcome::AlreadyFinal, CancelOutcome::Cancelled) => {}
                both => panic!("{both:?}"),
            }
            sent.unwrap()
        }
    });
    let mut got = all(races).await.concat();
    got.extend(due(&nodes[0]).await);
    let ids: BTreeSet<_> = got.iter().map(|webhook| &webhook.task_id).collect();
    assert_eq!((got.len(), ids.len()), (40, 40));
}

async fn a_delivery_concurrent_with_the_purge_leaves_no_row(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = unlimited_account(&nodes[0], &id::short_id("ann_"), None).await;
    for _ in 0..20 {
        submit(&nodes[0], with_webhook(task(&ann, 1, "0"))).await;
        let leased = claim_one(&nodes[0], NOW).await;
        finish(&nodes[0], &leased, delivered(1), NOW).await;
    }
    let webhooks = due(&nodes[0]).await;
    assert_eq!(webhooks.len(), 20);
    let mut running = tokio::task::JoinSet::new();
    for (i, webhook) in webhooks.into_iter().enumerate() {
        let store = nodes[i % 2].clone();
        running.spawn(async move { store.record_delivery(arrived(&webhook)).await });
    }
    let purged = nodes[0].purge_expired(NOW + 1, NOW + 1).await;
    assert_eq!(purged, Ok(20));
    assert_eq!(running.join_all().await, [const { Ok(()) }; 20]);
    assert_eq!(db.number("SELECT COUNT(*) FROM callback_tries").await, 0);
}

async fn a_key_has_one_webhook_secret_on_every_node(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = unlimited_account(&nodes[0], "ann", None).await;
    let bob = unlimited_account(&nodes[0], "bob", None).await;
    let secrets = all((0..30).map(|i| {
        let (store, key) = (nodes[i % 2].clone(), ann.key_id.clone());
        async move {
            let fresh = Secret::new(format!("whsec_{i}"));
            store.webhook_secret(&key, fresh, NOW).await.unwrap()
        }
    }));
    let secrets = secrets.await;
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    assert!(secrets[0].expose().starts_with("whsec_"));
    let fresh = || Secret::new("whsec_fresh");
    let known = nodes[1].webhook_secret(&ann.key_id, fresh(), NOW).await;
    assert_eq!(known.as_ref(), Ok(&secrets[0]));
    let other = nodes[1].webhook_secret(&bob.key_id, fresh(), NOW).await;
    assert_eq!(other, Ok(fresh()));
}
