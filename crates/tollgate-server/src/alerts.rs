//! Alerts (docs/alerts.md): every few seconds the leader of the nodes checks the conditions of all alerts, and every node posts messages that are
//! due.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::time::Instant;
use tollgate_core::{Clock, Millis, Secret};
use tollgate_store::{Alert, AlertAttempt, AlertKind, DueAlert, Store, StoreError};
use tollgate_upstream::egress;

use crate::cluster::live_nodes::LiveNodes;
use crate::reloadable::ReloadableHandle;
use crate::state::App;
use crate::webhooks::deliver::signed_headers;

/// How often messages that are due are posted, and open circuits are recorded.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often the leader checks alerts.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);
/// How long one POST may take, DNS included.
const POST_TIMEOUT: Duration = Duration::from_secs(15);

/// Checks alerts and posts their messages.
pub struct AlertSender {
    store: Store,
    clock: Arc<dyn Clock>,
    egress: egress::Client,
    reloadable: ReloadableHandle,
    live_nodes: Arc<LiveNodes>,
    /// This process's name in the database.
    node: String,
}

impl AlertSender {
    /// The sender of a running gateway.
    pub fn new(app: &App) -> Self {
        Self {
            store: app.store.clone(),
            clock: Arc::clone(&app.clock),
            egress: app.egress.clone(),
            reloadable: app.reloadable.clone(),
            live_nodes: Arc::clone(&app.live_nodes),
            node: app.heartbeat.node.clone(),
        }
    }

    /// Checks alerts and posts messages in a loop. Never returns.
    pub async fn run(&self) {
        let mut next_check = Instant::now();
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(e) = self.check(&mut next_check).await {
                tracing::warn!(error = %e, "alerts cannot be checked");
            }
            if let Err(e) = self.deliver().await {
                tracing::warn!(error = %e, "messages of alerts cannot be claimed");
            }
        }
    }

    async fn check(&self, next_check: &mut Instant) -> Result<(), StoreError> {
        let alerts = self.store.enabled_alerts().await?;
        if alerts.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        if alerts
            .iter()
            .any(|alert| alert.kind == AlertKind::CircuitOpen)
        {
            self.note_open_circuits(now).await?;
        }
        if Instant::now() < *next_check || !self.live_nodes.is_leader() {
            return Ok(());
        }
        *next_check = Instant::now() + CHECK_INTERVAL;
        for alert in &alerts {
            match self.store.check_alert(alert, now).await {
                Ok(0) => {}
                Ok(messages) => tracing::warn!(
                    alert = alert.id,
                    kind = alert.kind.name(),
                    messages,
                    "an alert fired"
                ),
                Err(e) => {
                    tracing::warn!(alert = alert.id, error = %e, "an alert cannot be checked")
                }
            }
        }
        Ok(())
    }

    /// Records the circuits that are open on this node, because other nodes do not know them.
    async fn note_open_circuits(&self, now: Millis) -> Result<(), StoreError> {
        let reloadable = self.reloadable.current();
        let channels = reloadable.routing.channels().iter();
        let open = channels.filter(|open| open.health_report().circuit != "closed");
        let open: Vec<String> = open.map(|open| open.channel.name.clone()).collect();
        self.store.note_open_circuits(&self.node, open, now).await
    }

    async fn deliver(&self) -> Result<(), StoreError> {
        let due = self.store.claim_alerts(self.clock.now()).await?;
        join_all(due.into_iter().map(|message| self.deliver_one(message))).await;
        Ok(())
    }

    async fn deliver_one(&self, due: DueAlert) {
        let DueAlert {
            id,
            body,
            url,
            secret,
            attempts,
        } = due;
        let attempt = post(&self.egress, &*self.clock, &url, &secret, id, body).await;
        let attempt = AlertAttempt {
            number: attempts + 1,
            ..attempt
        };
        if let Err(e) = self.store.record_alert_attempt(attempt).await {
            // The lease of the message expires, and it is posted again.
            tracing::warn!(error = %e, "cannot record a message of an alert");
        }
    }
}

/// Posts a message, signed like a webhook.
async fn post(
    egress: &egress::Client,
    clock: &dyn Clock,
    url: &str,
    secret: &Secret,
    id: String,
    body: String,
) -> AlertAttempt {
    let started = Instant::now();
    let body = Bytes::from(body);
    let posted = match signed_headers(&id, clock.now(), secret, &body) {
        Some(headers) => egress
            .post_guarded(url, headers, body, POST_TIMEOUT)
            .await
            .map_err(|e| e.to_string()),
        None => Err("the message cannot be signed".to_owned()),
    };
    let (status, error) = match posted {
        Ok(status) => (Some(status), None),
        Err(e) => (None, Some(e)),
    };
    AlertAttempt {
        id,
        number: 1,
        status,
        error,
        ms: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
        at: clock.now(),
    }
}

/// Posts a test message of an alert and adds it to the list of the alert's messages.
///
/// # Errors
/// The database's.
pub async fn post_test(
    app: &App,
    alert: &Alert,
    secret: &Secret,
) -> Result<AlertAttempt, StoreError> {
    let body = Store::alert_test_message(alert, app.clock.now());
    let id = tollgate_core::id::short_id("msg_");
    let attempt = post(
        &app.egress,
        &*app.clock,
        &alert.url,
        secret,
        id,
        body.clone(),
    );
    let attempt = attempt.await;
    let recorded = app
        .store
        .record_alert_test(&alert.id, attempt.clone(), body);
    recorded.await?;
    Ok(attempt)
}
