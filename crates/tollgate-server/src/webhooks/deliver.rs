//! Delivers webhooks: when a task ends, its record is posted to its `callback_url` until the receiver responds with 2xx.
//!
//! The outbox is a table: its row is written in the transaction that ends the task, so a webhook is neither lost nor sent for an end that was not
//! committed. It may be received twice (after a crash between the POST and recording it), with the same `webhook-id`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_core::{ApiError, Clock, Millis, Secret, clock, crash};
use tollgate_storage::files::FileStorage;
use tollgate_store::{DeliveryResult, DueWebhook, NextDelivery, Store, StoreError};
use tollgate_upstream::egress;

use crate::cluster::live_nodes::LiveNodes;
use crate::http::errors;
use crate::metrics::Metrics;
use crate::spawn::spawn_detached;
use crate::tasks::view::{self, View};
use crate::webhooks::receivers::{ReceiverPermit, Receivers};
use crate::webhooks::retry::next_delivery;
use crate::webhooks::signature;

/// POSTs at the same time.
const MAX_IN_FLIGHT: usize = 1_024;
/// How long one POST may take, DNS included.
const POST_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a claimed webhook is leased, so that other nodes do not post it: longer than a POST can take.
const LEASE: Millis = 60 * clock::SECOND;
/// Receivers that one turn of the loop checks.
const MAX_RECEIVERS: usize = 512;
/// After each turn the loop pauses this many times as long as the turn took, up to [`MAX_PAUSE`].
const PAUSE_FACTOR: u32 = 10;
/// Longest pause of the loop, and so the longest delay until the webhook of a task that ended on another node is noticed.
const MAX_PAUSE: Duration = Duration::from_millis(500);
const MIN_PAUSE: Duration = Duration::from_millis(5);

/// Posts the webhooks that are due.
pub struct WebhookSender {
    parts: WebhookParts,
    permits: Arc<Semaphore>,
    receivers: Receivers,
}

/// The parts of the gateway that the sender needs.
pub struct WebhookParts {
    /// Tasks and the outbox.
    pub store: Store,
    /// The source of the current time, in Unix milliseconds.
    pub clock: Arc<dyn Clock>,
    /// This process's name in the database.
    pub node: String,
    /// Posts through the egress guard.
    pub egress: egress::Client,
    /// Generates links to results.
    pub files: FileStorage,
    /// Counts attempts.
    pub metrics: Arc<Metrics>,
    /// Fires when a task with a webhook has ended.
    pub due: Arc<Notify>,
}

impl WebhookSender {
    /// A sender with nothing in flight.
    pub fn new(parts: WebhookParts, live_nodes: Arc<LiveNodes>) -> Self {
        Self {
            parts,
            permits: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            receivers: Receivers::new(live_nodes),
        }
    }

    /// Posts due webhooks until `drain` fires, then completes the POSTs in flight.
    pub async fn run(self: &Arc<Self>, drain: CancellationToken) {
        let tracker = TaskTracker::new();
        // Where the next turn continues if there are many receivers. It is only a hint.
        let mut next_receiver = String::new();
        while !drain.is_cancelled() {
            let started = Instant::now();
            let pause = match self.take_turn(&tracker, &mut next_receiver).await {
                Ok(pause) => pause,
                Err(e) => {
                    tracing::warn!(error = %e, "cannot claim webhooks");
                    MAX_PAUSE
                }
            };
            tokio::time::sleep(started.elapsed().min(MAX_PAUSE / PAUSE_FACTOR) * PAUSE_FACTOR)
                .await;
            tokio::select! {
                () = drain.cancelled() => {}
                () = self.parts.due.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        tracker.close();
        tracker.wait().await;
    }

    /// Claims webhooks that are due and can be posted now, and posts them. Reading needs no commit, but claiming does, so nothing is claimed for a
    /// receiver that hangs. Returns how long to wait for the next turn.
    async fn take_turn(
        self: &Arc<Self>,
        tracker: &TaskTracker,
        next_receiver: &mut String,
    ) -> Result<Duration, StoreError> {
        let WebhookParts {
            store, clock, node, ..
        } = &self.parts;
        let now = clock.now();
        let pause_until = |due_at: Millis| {
            let left = u64::try_from(due_at - now).unwrap_or(0);
            Duration::from_millis(left).clamp(MIN_PAUSE, MAX_PAUSE)
        };
        match store.next_webhook_due_at().await? {
            None => return Ok(MAX_PAUSE),
            Some(due_at) if due_at > now => return Ok(pause_until(due_at)),
            Some(_) => {}
        }
        let receivers = store
            .waiting_receivers(next_receiver, MAX_RECEIVERS)
            .await?;
        let is_complete = receivers.len() < MAX_RECEIVERS && next_receiver.is_empty();
        *next_receiver = match receivers.last() {
            // The smallest text after the last one.
            Some((last, _)) if receivers.len() == MAX_RECEIVERS => format!("{last}\0"),
            _ => String::new(),
        };
        let due = receivers.into_iter().filter(|(_, due_at)| *due_at <= now);
        let due: Vec<String> = due.map(|(receiver, _)| receiver).collect();
        let wanted = self
            .receivers
            .share_out(due, self.permits.available_permits());
        if wanted.is_empty() {
            return Ok(if is_complete { MAX_PAUSE } else { MIN_PAUSE });
        }
        let claimed = store.claim_webhooks(node, wanted, now + LEASE, now).await?;
        for webhook in claimed {
            let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
                // The lease of the webhook expires. Only this loop takes permits, and never more than there were.
                continue;
            };
            let receiver = self.receivers.begin(&webhook.receiver);
            spawn_detached(
                tracker.track_future(Arc::clone(self).deliver(webhook, receiver, permit)),
            );
        }
        Ok(MIN_PAUSE)
    }

    /// Posts one webhook and records the attempt.
    async fn deliver(
        self: Arc<Self>,
        webhook: DueWebhook,
        receiver: ReceiverPermit,
        _permit: OwnedSemaphorePermit,
    ) {
        let (at, started) = (self.parts.clock.now(), Instant::now());
        let posted = match self.prepare(&webhook, at).await {
            Ok((headers, body)) => {
                let posted = self.post(&webhook.url, headers, body).await;
                crash::point("webhook.after_post");
                receiver.record(posted.as_ref().ok().copied());
                posted
            }
            // The receiver was not called, so this shows nothing about it.
            Err(e) => Err(e),
        };
        let took_ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let (status, error) = match posted {
            Ok(status) => (Some(status), None),
            Err(e) => (None, Some(e)),
        };
        let next = next_delivery(&webhook, status, self.parts.clock.now());
        tracing::info!(
            task = webhook.task_id,
            attempt = webhook.earlier_attempts + 1,
            status,
            error,
            next = ?next,
            "posted a webhook"
        );
        let is_delivered = matches!(next, NextDelivery::Delivered);
        self.parts.metrics.callback(is_delivered);
        let result = DeliveryResult {
            task_id: webhook.task_id.clone(),
            number: webhook.earlier_attempts + 1,
            at,
            took_ms,
            status,
            error,
            next,
        };
        if let Err(e) = self.parts.store.record_delivery(result).await {
            // The lease of the webhook expires and it is posted again.
            tracing::warn!(task = webhook.task_id, error = %e, "cannot record a webhook's delivery");
        }
        drop(receiver);
        self.parts.due.notify_one();
    }

    /// The signed headers and the body of a webhook: the task's record.
    ///
    /// # Errors
    /// The receiver is not called; why is logged.
    async fn prepare(
        &self,
        webhook: &DueWebhook,
        now: Millis,
    ) -> Result<(HeaderMap, Bytes), String> {
        let internal = |e: &dyn std::fmt::Display| {
            tracing::warn!(task = webhook.task_id, error = %e, "cannot build a webhook");
            "the gateway could not send the webhook".to_owned()
        };
        let task = self.parts.store.task(&webhook.task_id).await;
        let task = task.map_err(|e| internal(&e))?;
        let task = task.ok_or_else(|| internal(&"the task's record has expired"))?;
        let record = view::render(&self.parts.files, &task, View::Record);
        let record = record.map_err(|e| internal(&e))?;
        let secret = self.secret(&webhook.key_id).await;
        let secret = secret.map_err(|e| internal(&e))?;
        let body = Bytes::from(record.to_string());
        let headers = signed_headers(&webhook.task_id, now, &secret, &body);
        let headers = headers.ok_or_else(|| internal(&"the headers cannot be written"))?;
        Ok((headers, body))
    }

    /// Posts a webhook; returns the receiver's status.
    ///
    /// # Errors
    /// Why no status was received.
    async fn post(&self, url: &str, headers: HeaderMap, body: Bytes) -> Result<u16, String> {
        let egress = &self.parts.egress;
        let post = egress.post_guarded(url, headers, body, POST_TIMEOUT);
        post.await.map_err(|e| e.to_string())
    }

    /// The secret that signs the webhooks of that key's tasks: `whsec_` and base64, generated when it is first needed.
    ///
    /// # Errors
    /// The store's errors, as responses to clients.
    pub async fn secret(&self, key_id: &str) -> Result<Secret, ApiError> {
        let (store, now) = (&self.parts.store, self.parts.clock.now());
        let secret = store
            .webhook_secret(key_id, signature::generate_secret(), now)
            .await;
        secret.map_err(errors::from_store)
    }
}

/// The headers of Standard Webhooks (<https://www.standardwebhooks.com>). `None` if a value cannot be a header.
pub(crate) fn signed_headers(
    id: &str,
    now: Millis,
    secret: &Secret,
    body: &[u8],
) -> Option<HeaderMap> {
    let timestamp = now.div_euclid(1000);
    let signature = signature::sign(secret, id, timestamp, body)?;
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", HeaderValue::from_str(id).ok()?);
    headers.insert("webhook-timestamp", HeaderValue::from(timestamp));
    headers.insert("webhook-signature", HeaderValue::from_str(&signature).ok()?);
    Some(headers)
}

#[cfg(test)]
mod tests {
    use tollgate_core::{SystemClock, id};
    use tollgate_store::DatabaseLocation;

    use super::*;

    #[tokio::test]
    async fn an_error_of_the_gateway_does_not_count_as_one_of_the_receiver() {
        let folder = std::env::temp_dir().join(id::short_id("tollgate-webhooks-"));
        std::fs::create_dir_all(&folder).unwrap();
        let location = DatabaseLocation::Sqlite(folder.join("tollgate.db"));
        let parts = WebhookParts {
            store: Store::open(&location).await.unwrap(),
            clock: Arc::new(SystemClock),
            node: "node".to_owned(),
            egress: egress::Client::new(egress::ClientOptions::default()),
            files: FileStorage::open(&folder, "https://gateway.example").unwrap(),
            metrics: Arc::new(Metrics::new()),
            due: Arc::new(Notify::new()),
        };
        let sender = Arc::new(WebhookSender::new(parts, Arc::new(LiveNodes::new(true))));
        let receiver = "https://a.example:443".to_owned();
        let capacity = || sender.receivers.share_out(vec![receiver.clone()], 100);
        let before = capacity();
        // The task's record has expired.
        let webhook = DueWebhook {
            task_id: "task_x".to_owned(),
            key_id: "key_x".to_owned(),
            url: "https://a.example/".to_owned(),
            receiver: receiver.clone(),
            earlier_attempts: 0,
            task_ended_at: 0,
        };
        let receiver_permit = sender.receivers.begin(&webhook.receiver);
        let permit = Arc::clone(&sender.permits).try_acquire_owned().unwrap();
        let delivery = Arc::clone(&sender).deliver(webhook, receiver_permit, permit);
        delivery.await;
        assert!(!before.is_empty());
        assert_eq!(capacity(), before);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
