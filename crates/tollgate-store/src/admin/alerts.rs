//! Alerts in the admin API: create, change, delete, list.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::{Amount, Secret, id};

use super::json::time_json;
use super::pages::{PageStart, page_args};
use super::request::AdminRequest;
use super::write::{AdminChange, AdminRejection, AdminReply, AdminResult};
use super::write::{Applied, Change};
use crate::alerts::{Alert, AlertKind};
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::batch::Batch;

macro_rules! select_alerts {
    () => {
        "SELECT id, kind, threshold, url, enabled, created_at, version FROM alerts "
    };
}
const ALERT_BY_ID: Sql = Sql::both(concat!(select_alerts!(), "WHERE id = $1"));
const LIST_ALERTS: Sql = Sql::both(concat!(
    select_alerts!(),
    "WHERE (created_at, id) < ($1, $2) ORDER BY created_at DESC, id DESC LIMIT $3"
));
pub(crate) const ENABLED_ALERTS: Sql =
    Sql::both(concat!(select_alerts!(), "WHERE enabled = 1 ORDER BY id"));
const SECRET: Sql = Sql::both("SELECT secret FROM alerts WHERE id = $1");
const INSERT_ALERT: Sql = Sql::both(
    "INSERT INTO alerts (id, kind, threshold, url, enabled, secret, created_at, version) VALUES ($1, $2, $3, $4, $5, $6, $7, 1)",
);
const UPDATE_ALERT: Sql = Sql::both(
    "UPDATE alerts SET kind = $1, threshold = $2, url = $3, enabled = $4, version = version + 1 WHERE id = $5 AND version = $6",
);
const DELETE_ALERT: Sql = Sql::both("DELETE FROM alerts WHERE id = $1");
const DELETE_STATES: Sql = Sql::both("DELETE FROM alert_states WHERE alert_id = $1");
const DELETE_DELIVERIES: Sql = Sql::both("DELETE FROM alert_deliveries WHERE alert_id = $1");

impl Alert {
    /// The alert as a JSON object of the admin API.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "on": self.kind.name(),
            "threshold": self.threshold.map(|threshold| threshold.to_string()),
            "url": self.url,
            "enabled": self.enabled,
            "created_at": time_json(self.created_at),
            "version": self.version,
        })
    }

    fn read(row: &mut Row) -> Result<Self, DbError> {
        let kind = row.text(1)?;
        Ok(Self {
            id: row.text(0)?,
            kind: AlertKind::from_name(&kind)
                .ok_or_else(|| DbError::UnexpectedData(format!("kind {kind:?} of an alert")))?,
            threshold: row.opt_int(2)?.map(Amount::from_nanos),
            url: row.text(3)?,
            enabled: row.int(4)? != 0,
            created_at: row.int(5)?,
            version: row.int(6)?,
        })
    }

    fn reply(&self, status: u16) -> AdminReply {
        AdminReply::new(status, self.to_json(), Some(self.version))
    }
}

/// An alert to create.
#[derive(Debug, Clone)]
pub struct NewAlert {
    /// The condition that the alert is about.
    pub kind: AlertKind,
    /// An amount, a part (0 to 1), or seconds.
    pub threshold: Option<Amount>,
    /// The URL that messages are posted to.
    pub url: String,
    /// Whether it is checked.
    pub enabled: bool,
    /// The secret that signs its messages.
    pub secret: Secret,
}

/// Changes of an alert; `None` changes nothing.
#[derive(Debug, Clone, Default)]
pub struct AlertPatch {
    /// The condition that the alert is about.
    pub kind: Option<AlertKind>,
    /// An amount, a part (0 to 1), or seconds.
    pub threshold: Option<Option<Amount>>,
    /// The URL that messages are posted to.
    pub url: Option<String>,
    /// Whether it is checked.
    pub enabled: Option<bool>,
}

impl AlertPatch {
    /// The alert after the changes, with its old version.
    pub fn apply_to(&self, alert: &Alert) -> Alert {
        Alert {
            kind: self.kind.unwrap_or(alert.kind),
            threshold: self.threshold.unwrap_or(alert.threshold),
            url: self.url.clone().unwrap_or_else(|| alert.url.clone()),
            enabled: self.enabled.unwrap_or(alert.enabled),
            ..alert.clone()
        }
    }
}

/// Alerts, for the admin API.
impl Store {
    /// Creates an alert.
    pub async fn create_alert(&self, request: &AdminRequest, new: NewAlert) -> AdminResult {
        let id = id::short_id("alert_");
        self.admin_write(request, CreateAlert { id, new }).await
    }

    /// Changes an alert that has the version `if_match`. After this it is armed again for every subject.
    pub async fn update_alert(
        &self,
        request: &AdminRequest,
        id: &str,
        if_match: i64,
        patch: AlertPatch,
    ) -> AdminResult {
        let id = id.to_owned();
        let update = UpdateAlert {
            id,
            if_match,
            patch,
        };
        self.admin_write(request, update).await
    }

    /// Deletes an alert that has the version `if_match`, with its messages.
    pub async fn delete_alert(
        &self,
        request: &AdminRequest,
        id: &str,
        if_match: i64,
    ) -> AdminResult {
        let id = id.to_owned();
        self.admin_write(request, DeleteAlert { id, if_match })
            .await
    }

    /// Records in the trail that an alert is tested.
    pub async fn note_alert_test(&self, request: &AdminRequest, alert: &Alert) -> AdminResult {
        let note = NoteTest {
            alert: alert.clone(),
        };
        self.admin_write(request, note).await
    }

    /// The alert with that id.
    pub async fn alert(&self, id: &str) -> Result<Option<Alert>, StoreError> {
        self.first(&ALERT_BY_ID, args![id], Alert::read).await
    }

    /// The secret that signs the messages of an alert.
    pub async fn alert_secret(&self, id: &str) -> Result<Option<Secret>, StoreError> {
        let read = |row: &mut Row| row.text(0).map(Secret::new);
        self.first(&SECRET, args![id], read).await
    }

    /// The enabled alerts.
    pub async fn enabled_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        let mut rows = self.query(&ENABLED_ALERTS, &[]).await?;
        Ok(rows.iter_mut().map(Alert::read).collect::<Result<_, _>>()?)
    }

    /// Alerts, newest first.
    pub async fn list_alerts(
        &self,
        after: Option<&PageStart>,
        limit: usize,
    ) -> Result<Vec<Alert>, StoreError> {
        let (at, id) = page_args(after);
        let args = args![at, id, limit as i64];
        let mut rows = self.query_slow(&LIST_ALERTS, args).await?;
        Ok(rows.iter_mut().map(Alert::read).collect::<Result<_, _>>()?)
    }
}

async fn find_alert(batch: &mut Batch<'_, '_>, id: &str) -> Result<Option<Alert>, DbError> {
    match batch.first(&ALERT_BY_ID, args![id]).await? {
        Some(mut row) => Alert::read(&mut row).map(Some),
        None => Ok(None),
    }
}

/// The alert that has the version `if_match`.
async fn find_version(
    batch: &mut Batch<'_, '_>,
    id: &str,
    if_match: i64,
) -> Result<Result<Alert, AdminRejection>, DbError> {
    Ok(match find_alert(batch, id).await? {
        None => Err(AdminRejection::NotFound),
        Some(alert) if alert.version != if_match => Err(AdminRejection::Stale {
            version: alert.version,
            current: alert.to_json(),
        }),
        Some(alert) => Ok(alert),
    })
}

struct CreateAlert {
    id: String,
    new: NewAlert,
}

#[async_trait(?Send)]
impl AdminChange for CreateAlert {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let new = &self.new;
        let alert = Alert {
            id: self.id.clone(),
            kind: new.kind,
            threshold: new.threshold,
            url: new.url.clone(),
            enabled: new.enabled,
            created_at: request.now,
            version: 1,
        };
        let args = args![
            &alert.id,
            alert.kind.name(),
            alert.threshold,
            &alert.url,
            alert.enabled,
            new.secret.expose(),
            request.now
        ];
        batch.queue_one(&INSERT_ALERT, args)?;
        Ok(Applied::Changed(Change {
            action: "alert.create",
            object_type: "alert",
            object_id: alert.id.clone(),
            before: None,
            after: Some(alert.to_json()),
            reply: alert.reply(201),
        }))
    }
}

struct UpdateAlert {
    id: String,
    if_match: i64,
    patch: AlertPatch,
}

#[async_trait(?Send)]
impl AdminChange for UpdateAlert {
    async fn apply(
        &self,
        _request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let alert = match find_version(batch, &self.id, self.if_match).await? {
            Ok(alert) => alert,
            Err(rejection) => return Ok(rejection.into()),
        };
        let mut patched = self.patch.apply_to(&alert);
        if patched == alert {
            return Ok(Applied::Unchanged(alert.reply(200)));
        }
        patched.version += 1;
        let args = args![
            patched.kind.name(),
            patched.threshold,
            &patched.url,
            patched.enabled,
            &alert.id,
            alert.version
        ];
        batch.queue_one(&UPDATE_ALERT, args)?;
        batch.queue(&DELETE_STATES, args![&alert.id])?;
        Ok(Applied::Changed(Change {
            action: "alert.update",
            object_type: "alert",
            object_id: alert.id.clone(),
            before: Some(alert.to_json()),
            after: Some(patched.to_json()),
            reply: patched.reply(200),
        }))
    }
}

struct DeleteAlert {
    id: String,
    if_match: i64,
}

#[async_trait(?Send)]
impl AdminChange for DeleteAlert {
    async fn apply(
        &self,
        _request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let alert = match find_version(batch, &self.id, self.if_match).await? {
            Ok(alert) => alert,
            Err(rejection) => return Ok(rejection.into()),
        };
        for sql in [&DELETE_ALERT, &DELETE_STATES, &DELETE_DELIVERIES] {
            batch.queue(sql, args![&self.id])?;
        }
        Ok(Applied::Changed(Change {
            action: "alert.delete",
            object_type: "alert",
            object_id: alert.id.clone(),
            before: Some(alert.to_json()),
            after: None,
            reply: AdminReply::new(204, Value::Null, None),
        }))
    }
}

struct NoteTest {
    alert: Alert,
}

#[async_trait(?Send)]
impl AdminChange for NoteTest {
    async fn apply(
        &self,
        _request: &AdminRequest,
        _batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        Ok(Applied::Changed(Change {
            action: "alert.test",
            object_type: "alert",
            object_id: self.alert.id.clone(),
            before: None,
            after: None,
            reply: AdminReply::new(200, Value::Null, None),
        }))
    }
}
