//! The webhook outbox (tables `callbacks` and `callback_tries`): a webhook is inserted with a task's end, claimed, tried, and delivered or given up.
//!
//! A claimed webhook is leased: nobody else may deliver it before the lease expires, as with tasks. Each claim has the next attempt number, and only
//! the attempt with the newest number decides on a retry or on giving up. Any attempt may record that it was delivered.

use async_trait::async_trait;
use tollgate_core::{Millis, clock};

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::ledger::account::Account;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

const INSERT_WEBHOOK: Sql = Sql::both(
    "INSERT INTO callbacks (task_id, key_id, user_id, url, receiver, state, due_at, attempts, first_at)
     VALUES ($1, $2, $3, $4, $5, 'waiting', $6, 0, $6)",
);
/// The receivers after a given one that have waiting webhooks, sorted, with the time when the next webhook is due. Each step is a search in an index.
macro_rules! waiting_receivers {
    ($collation:literal) => {
        concat!(
            "WITH RECURSIVE waiting_receivers (receiver, number) AS (
                 SELECT (SELECT MIN(c.receiver) FROM callbacks c
                         WHERE c.state = 'waiting' AND c.receiver >= CAST($1 AS TEXT) COLLATE ",
            $collation,
            "), 1
                 UNION ALL
                 SELECT (SELECT MIN(c.receiver) FROM callbacks c
                         WHERE c.state = 'waiting' AND c.receiver > waiting_receivers.receiver), number + 1
                 FROM waiting_receivers WHERE waiting_receivers.receiver IS NOT NULL AND number < $2
             )
             SELECT receiver, (SELECT MIN(c.due_at) FROM callbacks c
                               WHERE c.state = 'waiting' AND c.receiver = waiting_receivers.receiver)
             FROM waiting_receivers WHERE receiver IS NOT NULL"
        )
    };
}
pub(crate) const RECEIVERS: Sql =
    Sql::per_database(waiting_receivers!("BINARY"), waiting_receivers!("\"C\""));
pub(crate) const DUE_WEBHOOKS: Sql = Sql::per_database(
    "SELECT task_id, key_id, url, attempts, first_at FROM callbacks
     WHERE state = 'waiting' AND receiver = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3",
    "SELECT task_id, key_id, url, attempts, first_at FROM callbacks
     WHERE state = 'waiting' AND receiver = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED",
);
pub(crate) const LEASE_WEBHOOK: Sql = Sql::both(
    "UPDATE callbacks SET owner = $1, due_at = $2, attempts = $3 WHERE task_id = $4 AND state = 'waiting'",
);
pub(crate) const RELEASE_ALL_WEBHOOKS: Sql = Sql::both(
    "UPDATE callbacks SET owner = NULL, due_at = $1 WHERE state = 'waiting' AND owner IS NOT NULL",
);
pub(crate) const RELEASE_STRANDED_WEBHOOKS: Sql = Sql::both(
    "UPDATE callbacks SET due_at = $1 WHERE state = 'waiting' AND owner IS NULL AND due_at > $2",
);
/// Longer than the longest pause between two attempts.
pub(crate) const MAX_WEBHOOK_PAUSE: Millis = 4 * clock::HOUR;
pub(crate) const LOCK_WEBHOOK: Sql = Sql::per_database(
    "SELECT attempts FROM callbacks WHERE task_id = $1",
    "SELECT attempts FROM callbacks WHERE task_id = $1 FOR UPDATE",
);
const INSERT_DELIVERY_ATTEMPT: Sql = Sql::both(
    "INSERT INTO callback_tries (task_id, number, at, took_ms, status, error) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (task_id, number) DO NOTHING",
);
pub(crate) const SET_DELIVERED: Sql = Sql::both(
    "UPDATE callbacks SET state = 'delivered', owner = NULL, ended_at = $1 WHERE task_id = $2 AND state <> 'delivered'",
);
pub(crate) const RETRY_WEBHOOK: Sql = Sql::both(
    "UPDATE callbacks SET owner = NULL, due_at = $1 WHERE task_id = $2 AND attempts = $3 AND state = 'waiting'",
);
pub(crate) const GIVE_UP_WEBHOOK: Sql = Sql::both(
    "UPDATE callbacks SET state = 'given_up', owner = NULL, ended_at = $1
     WHERE task_id = $2 AND attempts = $3 AND state = 'waiting'",
);
pub(crate) const NEXT_WEBHOOK_DUE_AT: Sql =
    Sql::both("SELECT MIN(due_at) FROM callbacks WHERE state = 'waiting'");
pub(crate) const WEBHOOK_LOG: Sql = Sql::both(
    "SELECT c.url, c.state, c.due_at, t.number, t.at, t.took_ms, t.status, t.error
     FROM callbacks c LEFT JOIN callback_tries t ON t.task_id = c.task_id WHERE c.task_id = $1 ORDER BY t.number",
);

/// A webhook that its claimer must deliver now. Until the lease expires, nobody else delivers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueWebhook {
    /// The task that has ended.
    pub task_id: String,
    /// The key it was submitted with: its secret signs the webhook.
    pub key_id: String,
    /// The URL to post to.
    pub url: String,
    /// Its receiver: scheme, host and port of the URL. Empty for webhooks of earlier versions.
    pub receiver: String,
    /// Delivery attempts before this one, including those whose node died; this one has the next number.
    pub earlier_attempts: i64,
    /// When the task ended.
    pub task_ended_at: Millis,
}

/// The result of a delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryResult {
    /// The task.
    pub task_id: String,
    /// The number of the attempt, from 1: [`DueWebhook::earlier_attempts`] + 1.
    pub number: i64,
    /// When the attempt began.
    pub at: Millis,
    /// Its duration in milliseconds.
    pub took_ms: i64,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Why there was no response. `None` if there was one.
    pub error: Option<String>,
    /// What happens next.
    pub next: NextDelivery,
}

/// What happens after a delivery attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextDelivery {
    /// Nothing: it was delivered.
    Delivered,
    /// Another attempt, at that time.
    RetryAt(Millis),
    /// Nothing: it is not retried.
    GivenUp,
}

/// The state of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookState {
    /// Still to be delivered.
    Waiting,
    /// Delivered. Only [`Store::admin_resend_webhook`] changes this.
    Delivered,
    /// Not delivered, and not retried; but a late attempt or [`Store::admin_resend_webhook`] may change this.
    GivenUp,
}

impl WebhookState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Delivered, Self::GivenUp];

    /// The name in the database and in responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::GivenUp => "given_up",
        }
    }

    /// The state with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// A webhook and its delivery attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookLog {
    /// The URL.
    pub url: String,
    /// Its state.
    pub state: WebhookState,
    /// If the webhook is waiting: when it is delivered next or, during an attempt, when the lease of that attempt expires. Else `None`.
    pub next_at: Option<Millis>,
    /// The recorded attempts, in order. An attempt whose node died is not recorded.
    pub tries: Vec<DeliveryAttempt>,
}

/// A recorded delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// Its number, from 1.
    pub number: i64,
    /// When it began.
    pub at: Millis,
    /// Its duration in milliseconds.
    pub took_ms: i64,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Why there was no response. `None` if there was one.
    pub error: Option<String>,
}

/// The webhook outbox.
impl Store {
    /// Up to `max` receivers with waiting webhooks, sorted, from `first` on, each with the time when its next webhook is due or its next lease
    /// expires.
    pub async fn waiting_receivers(
        &self,
        first: &str,
        max: usize,
    ) -> Result<Vec<(String, Millis)>, StoreError> {
        let mut rows = self.query(&RECEIVERS, args![first, max as i64]).await?;
        let receivers = rows.iter_mut().map(|row| Ok((row.text(0)?, row.int(1)?)));
        Ok(receivers.collect::<Result<_, DbError>>()?)
    }

    /// Leases due webhooks to `owner` until `until`: for each receiver up to the given number, those that have been due longest first.
    pub async fn claim_webhooks(
        &self,
        owner: &str,
        wanted: Vec<(String, usize)>,
        until: Millis,
        now: Millis,
    ) -> Result<Vec<DueWebhook>, StoreError> {
        let claim = ClaimWebhooks {
            owner: owner.to_owned(),
            wanted,
            until,
            now,
        };
        self.write(claim).await
    }

    /// When the next webhook is due or the next lease expires; `None` if none is waiting.
    pub async fn next_webhook_due_at(&self) -> Result<Option<Millis>, StoreError> {
        let at = self.first(&NEXT_WEBHOOK_DUE_AT, &[], |row| row.opt_int(0));
        Ok(at.await?.flatten())
    }

    /// Records a delivery attempt and what happens next. Idempotent. If the webhook was claimed again since, only a successful delivery counts. A
    /// delivered webhook stays delivered.
    pub async fn record_delivery(&self, result: DeliveryResult) -> Result<(), StoreError> {
        self.write(result).await
    }

    /// A task's webhook and its attempts; `None` if the task has no webhook or has not ended.
    pub async fn webhook_log(&self, task_id: &str) -> Result<Option<WebhookLog>, StoreError> {
        let mut rows = self.query(&WEBHOOK_LOG, args![task_id]).await?;
        Ok(read_log(&mut rows)?)
    }
}

/// Inserts a webhook, in the transaction that ends its task.
pub(crate) fn insert_webhook(
    batch: &mut Batch<'_, '_>,
    task_id: &str,
    account: Account<'_>,
    url: &str,
    now: Millis,
) -> Result<(), DbError> {
    let (user_id, key_id) = (account.user_id, account.key_id);
    let receiver = receiver_of(url);
    let args = args![task_id, key_id, user_id, url, &receiver, now];
    batch.queue_one(&INSERT_WEBHOOK, args)
}

/// The receiver of a URL: scheme, host and port, without user name and password.
fn receiver_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    format!("{scheme}://{host}").to_ascii_lowercase()
}

/// If a claim is committed but its reply is lost, its webhooks are leased to nobody; they are due again when the lease expires.
struct ClaimWebhooks {
    owner: String,
    wanted: Vec<(String, usize)>,
    until: Millis,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for ClaimWebhooks {
    type Out = Vec<DueWebhook>;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Vec<DueWebhook>, DbError> {
        let mut claimed = Vec::new();
        for (receiver, limit) in &self.wanted {
            let due = args![receiver, self.now, *limit as i64];
            for mut row in batch.query(&DUE_WEBHOOKS, due).await? {
                let webhook = DueWebhook {
                    task_id: row.text(0)?,
                    key_id: row.text(1)?,
                    url: row.text(2)?,
                    receiver: receiver.clone(),
                    earlier_attempts: row.int(3)?,
                    task_ended_at: row.int(4)?,
                };
                let number = webhook.earlier_attempts + 1;
                let args = args![&self.owner, self.until, number, &webhook.task_id];
                batch.queue_one(&LEASE_WEBHOOK, args)?;
                claimed.push(webhook);
            }
        }
        Ok(claimed)
    }
}

#[async_trait(?Send)]
impl Write for DeliveryResult {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        let Self {
            task_id, number, ..
        } = self;
        // If the webhook was purged with its task in between, the attempt is not recorded.
        if batch.first(&LOCK_WEBHOOK, args![task_id]).await?.is_none() {
            return Ok(());
        }
        let status = self.status.map(i64::from);
        let (at, took_ms, error) = (self.at, self.took_ms, self.error.as_ref());
        batch.queue(
            &INSERT_DELIVERY_ATTEMPT,
            args![task_id, *number, at, took_ms, status, error],
        )?;
        let ended_at = at.saturating_add(took_ms);
        match self.next {
            NextDelivery::Delivered => batch.queue(&SET_DELIVERED, args![ended_at, task_id]),
            NextDelivery::RetryAt(due_at) => {
                batch.queue(&RETRY_WEBHOOK, args![due_at, task_id, *number])
            }
            NextDelivery::GivenUp => {
                batch.queue(&GIVE_UP_WEBHOOK, args![ended_at, task_id, *number])
            }
        }
    }
}

/// Reads a log from the rows of [`WEBHOOK_LOG`]: each row has the webhook, and an attempt or nulls.
fn read_log(rows: &mut [Row]) -> Result<Option<WebhookLog>, DbError> {
    let Some(first) = rows.first_mut() else {
        return Ok(None);
    };
    let name = first.text(1)?;
    let state = WebhookState::from_name(&name)
        .ok_or_else(|| DbError::UnexpectedData(format!("unknown webhook state {name}")))?;
    let due_at = first.int(2)?;
    let mut log = WebhookLog {
        url: first.text(0)?,
        state,
        next_at: (state == WebhookState::Waiting).then_some(due_at),
        tries: Vec::with_capacity(rows.len()),
    };
    for row in rows {
        if let Some(number) = row.opt_int(3)? {
            let status = row.opt_int(6)?;
            log.tries.push(DeliveryAttempt {
                number,
                at: row.int(4)?,
                took_ms: row.int(5)?,
                status: status.and_then(|status| u16::try_from(status).ok()),
                error: row.opt_text(7)?,
            });
        }
    }
    Ok(Some(log))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_is_the_scheme_host_and_port_of_the_url() {
        for (url, receiver) in [
            ("https://a.example/x?y", "https://a.example"),
            ("http://A.example:81?x", "http://a.example:81"),
            ("http://me:secret@a.example#x", "http://a.example"),
            ("https://[::1]:9/x@y", "https://[::1]:9"),
        ] {
            assert_eq!(receiver_of(url), receiver, "{url}");
        }
    }

    #[test]
    fn the_statements_contain_every_state_name() {
        for state in WebhookState::ALL {
            let name = format!("'{}'", state.name());
            let statements = [&SET_DELIVERED, &GIVE_UP_WEBHOOK, &INSERT_WEBHOOK];
            assert!(statements.iter().any(|sql| sql.sqlite.contains(&name)));
            assert_eq!(WebhookState::from_name(state.name()), Some(state));
        }
    }
}
