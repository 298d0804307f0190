//! Commands of webhooks.

use tollgate_core::id;
use tollgate_store::{DeliveryResult, NextDelivery};

use super::{Fixture, NOW, Step, ok, or_dash, outcome, since};
use crate::fixtures::receivers;

impl Fixture<'_> {
    /// - `take [owner=] [max=] [until=] [ordered=yes]` claims due webhooks and shows them with the attempts before.
    /// - `deliver TASK NUMBER STATUS|- delivered|given-up|retry [due=]` records an attempt.
    /// - `receivers [first=] [max=]` shows whom webhooks wait for, and when; `webhook TASK` shows the webhook; `outbox` how many wait, and when the next is due.
    pub(super) async fn webhook_step(&mut self, step: &Step<'_>) -> String {
        let (now, store) = (step.now(), &self.store);
        match step.command {
            "take" => {
                let owner = step.option("owner").unwrap_or("w");
                let max = step.option("max").map_or(100, |max| max.parse().unwrap());
                let until = step.time("until", now + 60_000);
                let claimed = store
                    .claim_webhooks(owner, receivers(max), until, now)
                    .await
                    .unwrap();
                let shown = claimed.iter().map(|webhook| {
                    assert_eq!(webhook.url, "https://example.com/hook?a=1");
                    assert!(webhook.key_id.starts_with("key_"));
                    let name = self.name_of(&webhook.task_id);
                    format!(
                        "{name} {}{}",
                        webhook.earlier_attempts,
                        since(webhook.task_ended_at)
                    )
                });
                let mut shown: Vec<_> = shown.collect();
                if step.option("ordered").is_none() {
                    shown.sort();
                }
                shown.join(", ")
            }
            "deliver" => {
                let id = match step.args[0] {
                    "unknown" => id::task_id(NOW),
                    name => self.task_id(name).to_owned(),
                };
                let status = step.args[2].parse().ok();
                let result = DeliveryResult {
                    task_id: id,
                    number: step.args[1].parse().unwrap(),
                    at: now,
                    took_ms: 40,
                    status,
                    error: status.is_none().then(|| "timeout".to_owned()),
                    next: match step.args[3] {
                        "delivered" => NextDelivery::Delivered,
                        "given-up" => NextDelivery::GivenUp,
                        _ => NextDelivery::RetryAt(step.time("due", now)),
                    },
                };
                outcome(store.record_delivery(result).await, ok)
            }
            "receivers" => {
                let first = step.option("first").unwrap_or_default();
                let max = step.option("max").map_or(100, |max| max.parse().unwrap());
                let found = store.waiting_receivers(first, max).await.unwrap();
                let shown = found
                    .iter()
                    .map(|(receiver, due)| format!("{receiver} {}", since(*due)));
                shown.collect::<Vec<_>>().join(", ")
            }
            "webhook" => {
                let log = store.webhook_log(self.task_id(step.args[0])).await.unwrap();
                or_dash(log.map(|log| {
                    let tries = log.tries.iter().map(|t| {
                        let why = or_dash(t.error.as_ref());
                        let status = or_dash(t.status);
                        format!(
                            ", {}: {status} {why} at {} in {} ms",
                            t.number,
                            since(t.at),
                            t.took_ms
                        )
                    });
                    format!(
                        "{:?} next={}{}",
                        log.state,
                        since(log.next_at),
                        tries.collect::<String>()
                    )
                }))
            }
            "outbox" => {
                let pending = store.totals().await.unwrap().pending_webhooks;
                format!(
                    "{pending} next={}",
                    since(store.next_webhook_due_at().await.unwrap())
                )
            }
            other => panic!("there is no command {other}"),
        }
    }
}
