//! Alerts: events that operators want to be notified of, posted to a URL (docs/alerts.md).

use std::time::Duration;

use async_trait::async_trait;
use http::Method;
use serde_json::{Value, json};
use tollgate_core::{Amount, money};
use tollgate_server::alerts::post_test;
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::webhooks::signature::generate_secret;
use tollgate_store::{AdminRequest, Alert, AlertKind, AlertPatch, NewAlert, Store};

use super::call::{Call, written};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields;
use super::list::{self, Item, Listing};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/alerts",
        access: Access::Scope(Scope::ConfigRead),
        summary: "Alerts, newest first.",
        query: &[],
        body: None,
        returns: Returns::List("alert"),
        handler: handler!(list_alerts),
    },
    Endpoint {
        method: Method::POST,
        path: "/alerts",
        access: Access::Scope(Scope::ConfigWrite),
        summary: "Creates an alert. The secret that signs its messages is shown only once.",
        query: &[],
        body: Some("new_alert"),
        returns: Returns::Object("alert", 201),
        handler: handler!(create),
    },
    Endpoint {
        method: Method::GET,
        path: "/alerts/{id}",
        access: Access::Scope(Scope::ConfigRead),
        summary: "An alert.",
        query: &[],
        body: None,
        returns: Returns::Object("alert", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::PATCH,
        path: "/alerts/{id}",
        access: Access::Scope(Scope::ConfigWrite),
        summary: "Changes an alert. The alert fires again for conditions that hold after the change.",
        query: &[],
        body: Some("alert_patch"),
        returns: Returns::Object("alert", 200),
        handler: handler!(update),
    },
    Endpoint {
        method: Method::DELETE,
        path: "/alerts/{id}",
        access: Access::Scope(Scope::ConfigWrite),
        summary: "Deletes an alert with its messages.",
        query: &[],
        body: None,
        returns: Returns::Nothing,
        handler: handler!(delete),
    },
    Endpoint {
        method: Method::POST,
        path: "/alerts/{id}/test",
        access: Access::Scope(Scope::ConfigWrite),
        summary: "Sends a test message and returns the receiver's response.",
        query: &[],
        body: Some("action"),
        returns: Returns::Object("alert_test", 200),
        handler: handler!(test),
    },
    Endpoint {
        method: Method::GET,
        path: "/alerts/{id}/deliveries",
        access: Access::Scope(Scope::ConfigRead),
        summary: "The messages that an alert sent in the last 30 days, newest first.",
        query: &[],
        body: None,
        returns: Returns::List("alert_delivery"),
        handler: handler!(list_deliveries),
    },
];

/// Members of an alert that cannot be written.
const READ_ONLY: &[&str] = &["id", "created_at", "version", "secret"];
/// Timeout for resolving a receiver's host name when an alert is written.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(3);

struct Alerts;

#[async_trait]
impl Listing for Alerts {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "on",
            "threshold",
            "url",
            "enabled",
            "created_at",
            "version",
        ]
    }

    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let after = list::page_start(after)?;
        let alerts = store.list_alerts(after.as_ref(), limit).await?;
        let items = alerts.into_iter().map(|alert| Item {
            value: alert.to_json(),
            position: vec![alert.created_at.to_string(), alert.id],
        });
        Ok(items.collect())
    }
}

struct Deliveries {
    alert_id: String,
}

#[async_trait]
impl Listing for Deliveries {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id", "at", "state", "attempts", "status", "ms", "error", "next_at",
        ]
    }

    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let after = list::page_start(after)?;
        let page = store.list_alert_deliveries(&self.alert_id, after.as_ref(), limit);
        let items = page.await?.into_iter().map(|message| Item {
            position: vec![message.at.to_string(), message.id.clone()],
            value: message.into_json(),
        });
        Ok(items.collect())
    }
}

/// Parses the name of a kind of alert.
fn parse_kind(name: &str, value: &Value) -> Result<AlertKind, AdminError> {
    let kind = value.as_str().and_then(AlertKind::from_name);
    kind.ok_or_else(|| {
        let names = AlertKind::ALL.map(AlertKind::name).join(", ");
        AdminError::invalid(name, format!("must be one of {names}"))
    })
}

/// Checks that an alert has a threshold if its kind needs one, and that the value is allowed.
///
/// # Errors
/// 400 field `threshold`.
fn check_threshold(kind: AlertKind, threshold: Option<Amount>) -> Result<(), AdminError> {
    let one = Amount::from_nanos(money::NANOS);
    let invalid = |message: &str| Err(AdminError::invalid("threshold", message));
    match (kind, threshold) {
        (AlertKind::LowBalance, None) => invalid("is required: the balance below which it fires"),
        (AlertKind::Budget, None) => invalid("is required: the part of a budget, from 0 to 1"),
        (AlertKind::QueueAge, None) => invalid("is required: the age of a waiting task in seconds"),
        (AlertKind::Budget, Some(part)) if part > one => {
            invalid("must be a part of a budget, from 0 to 1")
        }
        (kind, Some(_)) if !kind.has_threshold() => invalid("must be null for this kind of alert"),
        _ => Ok(()),
    }
}

/// Checks that the gateway may post to a URL.
///
/// # Errors
/// 400 field `url`.
async fn check_url(call: &Call, url: &str) -> Result<(), AdminError> {
    let checked = call.app.egress.check_guarded_url(url, RESOLVE_TIMEOUT);
    checked
        .await
        .map_err(|e| AdminError::invalid("url", format!("cannot be used: {e}")))
}

async fn list_alerts(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    list::reply(&call, Alerts).await
}

async fn create(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let secret = generate_secret();
    let new = NewAlert {
        kind: fields.required("on", parse_kind)?,
        threshold: fields.optional("threshold", fields::parse_non_negative_amount)?,
        url: fields.required("url", fields::parse_text)?,
        enabled: fields
            .optional("enabled", fields::parse_flag)?
            .unwrap_or(true),
        secret: secret.clone(),
    };
    let request = call.write(fields, READ_ONLY)?;
    check_threshold(new.kind, new.threshold)?;
    check_url(&call, &new.url).await?;
    let created = call.app.store.create_alert(&request, new).await;
    Ok(written(created, "alert")?.with_secret("secret", secret.expose()))
}

async fn find(call: &Call) -> Result<Alert, AdminError> {
    let alert = call.app.store.alert(call.id()).await?;
    alert.ok_or_else(|| AdminError::not_found("alert"))
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let alert = find(&call).await?;
    call.check_query()?;
    Ok(Reply::versioned(alert.to_json(), alert.version))
}

async fn update(call: Call) -> Result<Reply, AdminError> {
    let alert = find(&call).await?;
    let mut fields = call.fields()?;
    let patch = AlertPatch {
        kind: fields.patched("on", parse_kind)?,
        threshold: fields.nullable("threshold", fields::parse_non_negative_amount)?,
        url: fields.patched("url", fields::parse_text)?,
        enabled: fields.patched("enabled", fields::parse_flag)?,
    };
    let request = call.write(fields, READ_ONLY)?;
    let patched = patch.apply_to(&alert);
    check_threshold(patched.kind, patched.threshold)?;
    if patched.url != alert.url {
        check_url(&call, &patched.url).await?;
    }
    let if_match = call.if_match()?;
    let store = &call.app.store;
    let updated = store.update_alert(&request, &alert.id, if_match, patch);
    written(updated.await, "alert")
}

async fn delete(call: Call) -> Result<Reply, AdminError> {
    let alert = find(&call).await?;
    let request = call.action()?;
    let if_match = call.if_match()?;
    let store = &call.app.store;
    let deleted = store.delete_alert(&request, &alert.id, if_match);
    written(deleted.await, "alert")
}

async fn test(call: Call) -> Result<Reply, AdminError> {
    let alert = find(&call).await?;
    // Each request sends a message, also one with the idempotency key of an earlier one.
    let request = AdminRequest {
        idempotency: None,
        ..call.action()?
    };
    let store = &call.app.store;
    let secret = store.alert_secret(&alert.id).await?;
    let secret = secret.ok_or_else(|| AdminError::not_found("alert"))?;
    written(store.note_alert_test(&request, &alert).await, "alert")?;
    let attempt = post_test(&call.app, &alert, &secret).await?;
    Ok(Reply::json(json!({
        "status": attempt.status,
        "ms": attempt.ms,
        "error": attempt.error,
    })))
}

async fn list_deliveries(call: Call) -> Result<Reply, AdminError> {
    let alert_id = find(&call).await?.id;
    call.check_query()?;
    list::reply(&call, Deliveries { alert_id }).await
}
