//! Callbacks: when a task ends, its record is posted to where its client asked, until that answers or a day has passed.
//!
//! The outbox is a table: its row is written in the transaction that ends the task, so a callback is neither lost nor sent
//! for an end that did not happen. It may arrive twice (a crash between the post and the note of it): `webhook-id` is the
//! same each time.

mod sign;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_core::{ApiError, Millis, Secret, clock, crash};
use tollgate_store::{CallbackNext, CallbackTried, DueCallback, StoreError};
use url::Url;

use crate::app::App;
use crate::task_view::{self, View};

use sign::new_secret;

/// Posts at the same time, and of them to one receiver: whoever hangs keeps nobody else waiting.
const AT_ONCE: usize = 1_024;
const PER_RECEIVER: usize = 64;
/// How long a receiver may take, the look-up of its name included.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a claimed callback is kept from others: longer than a post can take.
const LEASE: Millis = 60 * clock::SECOND;
/// How long one waits whose receiver has enough posts in flight.
const FULL_PAUSE: Millis = 250;
/// Pauses between tries; the last one is repeated until a day is over.
const PAUSES: [Millis; 8] = [
    5 * clock::SECOND,
    30 * clock::SECOND,
    2 * clock::MINUTE,
    10 * clock::MINUTE,
    30 * clock::MINUTE,
    clock::HOUR,
    2 * clock::HOUR,
    3 * clock::HOUR,
];
/// How long it is tried (DECISIONS.md › Values).
const LIFE: Millis = 24 * clock::HOUR;
/// Longest sleep: how late a callback of a task that ended on another node may be seen.
const LONGEST_NAP: Duration = Duration::from_millis(500);
const SHORTEST_NAP: Duration = Duration::from_millis(5);

/// What this process is posting.
pub struct Callbacks {
    woken: Notify,
    seats: Arc<Semaphore>,
    /// Posts in flight by receiver (scheme, host and port).
    receivers: Mutex<HashMap<String, usize>>,
}

impl Default for Callbacks {
    fn default() -> Self {
        Self {
            woken: Notify::new(),
            seats: Arc::new(Semaphore::new(AT_ONCE)),
            receivers: Mutex::default(),
        }
    }
}

/// A post's place at its receiver, given back when dropped.
struct Place<'a> {
    callbacks: &'a Callbacks,
    receiver: String,
}

impl Callbacks {
    /// A task with a callback has ended.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// Posts what is due until `drain` fires; what is in flight then is finished.
    pub async fn work(&self, app: &Arc<App>, drain: CancellationToken) {
        let tracker = TaskTracker::new();
        while !drain.is_cancelled() {
            // Looking costs no commit, claiming does.
            let nap = match app.store.next_callback_due().await {
                Ok(Some(due)) if due <= app.clock.now() => match self.turn(app, &tracker).await {
                    Ok(()) => SHORTEST_NAP,
                    Err(e) => {
                        tracing::warn!(error = %e, "cannot claim callbacks");
                        LONGEST_NAP
                    }
                },
                Ok(Some(due)) => {
                    let until = u64::try_from(due - app.clock.now()).unwrap_or(0);
                    Duration::from_millis(until).clamp(SHORTEST_NAP, LONGEST_NAP)
                }
                Ok(None) => LONGEST_NAP,
                Err(e) => {
                    tracing::warn!(error = %e, "cannot look for callbacks");
                    LONGEST_NAP
                }
            };
            tokio::select! {
                () = drain.cancelled() => {}
                () = self.woken.notified() => {}
                () = tokio::time::sleep(nap) => {}
            }
        }
        tracker.close();
        tracker.wait().await;
    }

    /// Claims what is due and for which there are seats.
    async fn turn(&self, app: &Arc<App>, tracker: &TaskTracker) -> Result<(), StoreError> {
        let Ok(first) = Arc::clone(&self.seats).acquire_owned().await else {
            return Ok(());
        };
        let mut seats = vec![first];
        while let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() {
            seats.push(seat);
        }
        let now = app.clock.now();
        let claimed = app
            .store
            .claim_callbacks(&app.node, seats.len(), now + LEASE, now)
            .await?;
        let mut full = Vec::new();
        for (callback, seat) in claimed.into_iter().zip(seats) {
            let receiver = receiver(&callback.url);
            if self.enter(&receiver) {
                tracker.spawn(one(Arc::clone(app), callback, receiver, seat));
            } else {
                full.push(callback.task_id);
            }
        }
        if !full.is_empty() {
            app.store
                .put_back_callbacks(&app.node, full, now + FULL_PAUSE)
                .await?;
        }
        Ok(())
    }

    fn enter(&self, receiver: &str) -> bool {
        let mut receivers = self
            .receivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = receivers.entry(receiver.to_owned()).or_default();
        let enters = *count < PER_RECEIVER;
        *count += usize::from(enters);
        enters
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let receivers = &self.callbacks.receivers;
        let mut receivers = receivers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = receivers.get_mut(&self.receiver) {
            *count -= 1;
            if *count == 0 {
                receivers.remove(&self.receiver);
            }
        }
    }
}

/// Who is asked: scheme, host and port.
fn receiver(url: &str) -> String {
    Url::parse(url).map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

/// One try of one callback, noted.
async fn one(app: Arc<App>, callback: DueCallback, receiver: String, _seat: OwnedSemaphorePermit) {
    let _place = Place {
        callbacks: &app.callbacks,
        receiver,
    };
    let (at, begun) = (app.clock.now(), Instant::now());
    let said = post(&app, &callback, at).await;
    let took_ms = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
    crash::point("callback.after_post");
    let (status, error) = match said {
        Ok(status) => (Some(status), None),
        Err(e) => (None, Some(e)),
    };
    let next = next(&callback, status, app.clock.now());
    tracing::info!(
        task = callback.task_id,
        attempt = callback.tries + 1,
        status,
        error,
        next = ?next,
        "posted a callback"
    );
    app.metrics
        .callback(matches!(next, CallbackNext::Delivered));
    let tried = CallbackTried {
        task_id: callback.task_id.clone(),
        number: callback.tries + 1,
        at,
        took_ms,
        status,
        error,
        next,
    };
    if let Err(e) = app.store.callback_tried(tried).await {
        // Its lease runs out and it is posted again.
        tracing::warn!(task = callback.task_id, error = %e, "cannot note a callback");
    }
}

/// What comes after a try that was answered so.
fn next(callback: &DueCallback, status: Option<u16>, now: Millis) -> CallbackNext {
    // 410 Gone is how a receiver says that it wants no more (Standard Webhooks).
    match status {
        Some(200..=299) => return CallbackNext::Delivered,
        Some(410) => return CallbackNext::GivenUp,
        _ => {}
    }
    let before = usize::try_from(callback.tries).unwrap_or(usize::MAX);
    let pause = PAUSES[before.min(PAUSES.len() - 1)];
    if now + pause > callback.first_at + LIFE {
        return CallbackNext::GivenUp;
    }
    CallbackNext::Again(now + pause)
}

/// Posts the task's record, signed; the receiver's status, or why there is none.
async fn post(app: &App, callback: &DueCallback, now: Millis) -> Result<u16, String> {
    let broken = |e: &dyn std::fmt::Display| {
        tracing::warn!(task = callback.task_id, error = %e, "cannot make a callback");
        "the gateway could not make the callback".to_owned()
    };
    let task = app.store.task(&callback.task_id).await;
    let task = task.map_err(|e| broken(&e))?;
    let task = task.ok_or_else(|| broken(&"the task is forgotten"))?;
    let record = task_view::view(app, &task, View::Record).map_err(|e| broken(&e))?;
    let secret = secret(app, &callback.key_id).await;
    let secret = secret.map_err(|e| broken(&e))?;
    let body = Bytes::from(record.to_string());
    let headers = headers(&callback.task_id, now, &secret, &body);
    let headers = headers.ok_or_else(|| broken(&"the headers cannot be written"))?;
    let posted = app
        .egress
        .post_guarded(&callback.url, headers, body, PATIENCE);
    posted.await.map_err(|e| e.to_string())
}

/// The headers of Standard Webhooks.
fn headers(id: &str, now: Millis, secret: &Secret, body: &[u8]) -> Option<HeaderMap> {
    let seconds = now.div_euclid(1000);
    let signature = sign::signature(secret, id, seconds, body)?;
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", HeaderValue::from_str(id).ok()?);
    headers.insert("webhook-timestamp", HeaderValue::from(seconds));
    headers.insert("webhook-signature", HeaderValue::from_str(&signature).ok()?);
    Some(headers)
}

/// The secret that callbacks of that key's tasks are signed with: `whsec_` and base64, made when first asked for.
///
/// # Errors
/// The store's, as the client hears them.
pub async fn secret(app: &App, key_id: &str) -> Result<Secret, ApiError> {
    let now = app.clock.now();
    let secret = app.store.webhook_secret(key_id, new_secret(), now).await;
    secret.map_err(crate::errors::store)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callback(tries: i64) -> DueCallback {
        DueCallback {
            task_id: "task_1".to_owned(),
            key_id: "key_1".to_owned(),
            url: "https://a.example/b".to_owned(),
            tries,
            first_at: 0,
        }
    }

    #[test]
    fn a_receiver_has_a_day_to_say_yes() {
        let mut now = 0;
        let mut tries = 0;
        loop {
            match next(&callback(tries), Some(500), now) {
                CallbackNext::Again(at) => {
                    assert!(at > now && at <= LIFE);
                    now = at;
                    tries += 1;
                }
                CallbackNext::GivenUp => break,
                CallbackNext::Delivered => panic!("500 is no yes"),
            }
        }
        assert!(
            tries > 10 && now > 20 * clock::HOUR,
            "{tries} tries until {now}"
        );
        assert_eq!(next(&callback(0), Some(204), 0), CallbackNext::Delivered);
        assert_eq!(next(&callback(0), Some(410), 0), CallbackNext::GivenUp);
        assert_eq!(
            next(&callback(0), Some(302), 0),
            CallbackNext::Again(5_000),
            "a redirect is not followed and is no yes"
        );
        assert_eq!(next(&callback(0), None, 0), CallbackNext::Again(5_000));
    }

    #[test]
    fn receivers_are_told_apart_by_origin() {
        assert_eq!(receiver("https://a.example/x?y"), "https://a.example");
        assert_eq!(receiver("http://a.example:81/x"), "http://a.example:81");
        let callbacks = Callbacks::default();
        for _ in 0..PER_RECEIVER {
            assert!(callbacks.enter("a"));
        }
        assert!(!callbacks.enter("a") && callbacks.enter("b"));
        drop(Place {
            callbacks: &callbacks,
            receiver: "a".to_owned(),
        });
        assert!(callbacks.enter("a"));
    }
}
