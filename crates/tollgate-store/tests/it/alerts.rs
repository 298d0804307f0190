//! Alerts: each kind fires once per condition, and fires again once the condition has ended and begun again.

use tollgate_core::clock::{DAY, HOUR, SECOND};
use tollgate_core::{Millis, Secret};
use tollgate_store::{
    AdminRequest, Alert, AlertAttempt, AlertKind, BudgetOwner, NewAlert, NextDelivery, Store,
};

use crate::budgets::{create_budget, new_budget};
use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, all, amount, cancel, chat, chat_end, claim_one, delivered, finish, node, settle,
    submit, task, tokens, unlimited_account, with_webhook,
};

on_both!(
    balance_debt_and_budget_alerts_fire_once_per_crossing,
    queue_circuit_audit_and_webhook_alerts_fire_once,
    concurrent_checks_on_several_nodes_fire_an_alert_once,
    messages_are_retried_until_they_are_delivered_or_abandoned,
    a_disabled_alert_does_not_fire,
);

async fn create(store: &Store, kind: AlertKind, threshold: Option<&str>) -> Alert {
    let new = NewAlert {
        kind,
        threshold: threshold.map(amount),
        url: "https://example.com/hook".to_owned(),
        enabled: true,
        secret: Secret::new("whsec_c2VjcmV0"),
    };
    let created = store.create_alert(&AdminRequest::cli(NOW), new).await;
    let id = created.unwrap().unwrap().body["id"].clone();
    store.alert(id.as_str().unwrap()).await.unwrap().unwrap()
}

async fn check(store: &Store, alert: &Alert, now: Millis) -> usize {
    store.check_alert(alert, now).await.unwrap()
}

/// Claims the messages that are due; returns their contents.
async fn claim(store: &Store, now: Millis) -> Vec<serde_json::Value> {
    let due = store.claim_alerts(now).await.unwrap();
    let bodies = due
        .iter()
        .map(|due| serde_json::from_str(&due.body).unwrap());
    bodies.collect()
}

async fn balance_debt_and_budget_alerts_fire_once_per_crossing(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    // The alert never fires for a user who never had a balance, or for an unlimited user.
    account(&store, "new", "0").await;
    unlimited_account(&store, "free", None).await;
    let low = create(&store, AlertKind::LowBalance, Some("0.5")).await;
    let debt = create(&store, AlertKind::Debt, None).await;
    let half = create(&store, AlertKind::Budget, Some("0.5")).await;
    let budget = create_budget(&store, new_budget(&ann, BudgetOwner::Key, "2", false), NOW).await;
    for alert in [&low, &debt, &half] {
        assert_eq!(check(&store, alert, NOW).await, 0);
    }
    settle(&store, &chat(&ann, "1", "1"), false, tokens(600_000, 0)).await;
    assert_eq!(check(&store, &low, NOW).await, 1);
    assert_eq!(check(&store, &low, NOW).await, 0, "once");
    assert_eq!(check(&store, &half, NOW).await, 0);
    settle(&store, &chat(&ann, "1", "1"), false, tokens(500_000, 0)).await;
    assert_eq!(check(&store, &debt, NOW).await, 1);
    assert_eq!(check(&store, &half, NOW).await, 1);
    assert_eq!(check(&store, &half, NOW).await, 0, "once");
    let events = claim(&store, NOW).await;
    let find = |kind: &str| events.iter().find(|body| body["type"] == kind).unwrap();
    assert_eq!(find("low_balance")["data"]["balance"], "0.4");
    assert_eq!(find("debt")["data"]["debt"], "0.1");
    let of_budget = find("budget");
    assert_eq!(of_budget["data"]["budget_id"], budget.as_str());
    assert_eq!(
        (&of_budget["data"]["spent"], &of_budget["test"]),
        (&"1.1".into(), &false.into())
    );
    // The debt is paid, and the balance is spent again.
    store
        .credit_user("ann", amount("1"), None, NOW)
        .await
        .unwrap();
    assert_eq!(check(&store, &low, NOW).await, 0);
    assert_eq!(check(&store, &debt, NOW).await, 0);
    settle(&store, &chat(&ann, "1", "1"), false, tokens(500_000, 0)).await;
    assert_eq!(check(&store, &low, NOW).await, 1);
    // The next day of the budget is a new crossing.
    let tomorrow = NOW + DAY;
    assert_eq!(check(&store, &half, tomorrow).await, 0);
    let end = tollgate_store::ChatEnd {
        ended_at: tomorrow,
        ..chat_end(tokens(1_200_000, 0))
    };
    let new = tollgate_store::NewChat {
        opened_at: tomorrow,
        ..chat(&ann, "1", "1")
    };
    let settled = store.settle_chat(new, &tollgate_store::ChatHold::None, end);
    settled.await.unwrap();
    assert_eq!(check(&store, &half, tomorrow).await, 1);
}

async fn queue_circuit_audit_and_webhook_alerts_fire_once(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "9").await;
    let queue = create(&store, AlertKind::QueueAge, Some("60")).await;
    let waiting = submit(&store, task(&ann, 1, "0.1")).await;
    assert_eq!(check(&store, &queue, NOW + 59 * SECOND).await, 0);
    assert_eq!(check(&store, &queue, NOW + 61 * SECOND).await, 1);
    assert_eq!(check(&store, &queue, NOW + 90 * SECOND).await, 0);
    let waiting = store.task(&waiting).await.unwrap().unwrap();
    cancel(&store, &waiting, NOW).await;
    assert_eq!(check(&store, &queue, NOW + 91 * SECOND).await, 0);

    let circuits = create(&store, AlertKind::CircuitOpen, None).await;
    let open = |node: &'static str, channels: &[&str], now| {
        let channels = channels.iter().map(|name| (*name).to_owned()).collect();
        let store = store.clone();
        async move { store.note_open_circuits(node, channels, now).await.unwrap() }
    };
    open("a", &["main"], NOW).await;
    open("b", &["main", "other"], NOW).await;
    assert_eq!(
        check(&store, &circuits, NOW).await,
        2,
        "one for each channel"
    );
    open("a", &[], NOW + 1).await;
    assert_eq!(
        check(&store, &circuits, NOW + 1).await,
        0,
        "it is open on b"
    );
    open("b", &["other"], NOW + 2).await;
    assert_eq!(check(&store, &circuits, NOW + 2).await, 0);
    open("a", &["main"], NOW + 3).await;
    assert_eq!(
        check(&store, &circuits, NOW + 3).await,
        1,
        "main was closed between"
    );
    // The circuits of a node that has ended do not count as open.
    assert_eq!(check(&store, &circuits, NOW + HOUR).await, 0);
    open("a", &["other"], NOW + HOUR).await;
    assert_eq!(check(&store, &circuits, NOW + HOUR).await, 1);

    let audits = create(&store, AlertKind::AuditViolation, None).await;
    let request = AdminRequest::cli(NOW);
    db.raw("UPDATE users SET used = used + 1").await;
    store
        .admin_start_audit(&request, "audit_1")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(store.run_started_audit("audit_1", || NOW).await, Ok(false));
    db.raw("UPDATE users SET used = used - 1").await;
    store
        .admin_start_audit(&request, "audit_2")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(store.run_started_audit("audit_2", || NOW).await, Ok(true));
    assert_eq!(check(&store, &audits, NOW + 1).await, 1);
    assert_eq!(check(&store, &audits, NOW + 1).await, 0);

    let webhooks = create(&store, AlertKind::WebhookGivenUp, None).await;
    for _ in 0..2 {
        submit(&store, with_webhook(task(&ann, 1, "0.1"))).await;
        let leased = claim_one(&store, NOW).await;
        finish(&store, &leased, delivered(1), NOW).await;
        let due = store.claim_webhooks("w", crate::fixtures::receivers(9), NOW + SECOND, NOW);
        let [due] = &due.await.unwrap()[..] else {
            panic!("one webhook is due")
        };
        let given_up = tollgate_store::DeliveryResult {
            task_id: due.task_id.clone(),
            number: 1,
            at: NOW,
            took_ms: 1,
            status: Some(410),
            error: None,
            next: NextDelivery::GivenUp,
        };
        store.record_delivery(given_up).await.unwrap();
    }
    assert_eq!(
        check(&store, &webhooks, NOW + 1).await,
        1,
        "one for each receiver"
    );
    let events = claim(&store, NOW + HOUR).await;
    let given_up = events
        .iter()
        .find(|body| body["type"] == "webhook_given_up")
        .unwrap();
    assert_eq!(given_up["data"]["webhooks"], 2);
    assert_eq!(check(&store, &webhooks, NOW + 2 * HOUR).await, 0);
}

async fn concurrent_checks_on_several_nodes_fire_an_alert_once(db: &Db) {
    let (store, other) = (node(db).await, db.open().await);
    let ann = account(&store, "ann", "1").await;
    settle(&store, &chat(&ann, "1", "1"), false, tokens(600_000, 0)).await;
    // While the leader changes, two nodes may check at once: the alert fires once, and each message is claimed once.
    let low = create(&store, AlertKind::LowBalance, Some("0.5")).await;
    let fired = all((0..10).map(|i| {
        let (store, low) = ([&store, &other][i % 2].clone(), low.clone());
        async move { check(&store, &low, NOW).await }
    }));
    assert_eq!(fired.await.into_iter().sum::<usize>(), 1);
    let claimed = all((0..10).map(|i| {
        let store = [&store, &other][i % 2].clone();
        async move { store.claim_alerts(NOW).await.unwrap().len() }
    }));
    assert_eq!(claimed.await.into_iter().sum::<usize>(), 1);
}

async fn messages_are_retried_until_they_are_delivered_or_abandoned(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "1").await;
    let low = create(&store, AlertKind::LowBalance, Some("2")).await;
    assert_eq!(check(&store, &low, NOW).await, 1);
    let mut now = NOW;
    let mut attempts = 0;
    loop {
        let due = store.claim_alerts(now).await.unwrap();
        let [due] = &due[..] else {
            // The message is claimed for a minute, or not due yet.
            now += 10 * SECOND;
            if now > NOW + DAY {
                break;
            }
            continue;
        };
        assert_eq!(due.attempts, attempts);
        attempts += 1;
        let attempt = AlertAttempt {
            id: due.id.clone(),
            number: attempts,
            status: None,
            error: Some("no connection".to_owned()),
            ms: 3,
            at: now,
        };
        store.record_alert_attempt(attempt).await.unwrap();
    }
    assert_eq!(attempts, 7);
    let listed = store.list_alert_deliveries(&low.id, None, 9).await.unwrap();
    let listed = listed
        .into_iter()
        .map(|one| one.into_json())
        .collect::<Vec<_>>();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["state"], "given_up");
    assert_eq!(listed[0]["error"], "no connection");
    // The alert is armed again, and its message is delivered.
    store
        .credit_user("ann", amount("5"), None, NOW)
        .await
        .unwrap();
    assert_eq!(check(&store, &low, now).await, 0);
    settle(&store, &chat(&ann, "1", "1"), false, tokens(5_000_000, 0)).await;
    assert_eq!(check(&store, &low, now).await, 1);
    let due = store.claim_alerts(now).await.unwrap().remove(0);
    let attempt = AlertAttempt {
        id: due.id,
        number: 1,
        status: Some(204),
        error: None,
        ms: 3,
        at: now,
    };
    store.record_alert_attempt(attempt).await.unwrap();
    assert!(store.claim_alerts(now + DAY).await.unwrap().is_empty());
}

async fn a_disabled_alert_does_not_fire(db: &Db) {
    let store = node(db).await;
    account(&store, "ann", "1").await;
    let low = create(&store, AlertKind::LowBalance, Some("2")).await;
    let patch = tollgate_store::AlertPatch {
        enabled: Some(false),
        ..Default::default()
    };
    let request = AdminRequest::cli(NOW);
    let disabled = store.update_alert(&request, &low.id, 1, patch).await;
    disabled.unwrap().unwrap();
    assert!(store.enabled_alerts().await.unwrap().is_empty());
    // The alert was read before it was disabled.
    assert_eq!(check(&store, &low, NOW).await, 0);
}
