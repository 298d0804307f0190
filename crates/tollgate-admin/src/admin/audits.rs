//! Audits: starts one, and shows the latest ones with their findings.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use serde_json::json;
use tollgate_core::{Millis, id};
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::Store;

use super::call::{Call, written};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::list::{self, Item, Listing};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/audits",
        access: Access::Scope(Scope::EventsRead),
        summary: "Audits that were started through this API, newest first.",
        query: &[],
        body: None,
        returns: Returns::List("audit"),
        handler: handler!(list_audits),
    },
    Endpoint {
        method: Method::POST,
        path: "/audits",
        access: Access::Scope(Scope::EventsWrite),
        summary: "Starts an audit, which reads the complete database. If an audit is running, returns that audit.",
        query: &[],
        body: Some("action"),
        returns: Returns::Object("audit", 202),
        handler: handler!(start),
    },
    Endpoint {
        method: Method::GET,
        path: "/audits/{id}",
        access: Access::Scope(Scope::EventsRead),
        summary: "An audit.",
        query: &[],
        body: None,
        returns: Returns::Object("audit", 200),
        handler: handler!(get),
    },
];

struct Audits {
    now: Millis,
}

#[async_trait]
impl Listing for Audits {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "state",
            "ok",
            "violations",
            "progress",
            "started_at",
            "ended_at",
        ]
    }

    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let after = list::page_start(after)?;
        let audits = store.admin_list_audits(after.as_ref(), limit).await?;
        let items = audits.into_iter().map(|audit| Item {
            value: audit.to_json(self.now),
            position: vec![audit.started_at.to_string(), audit.id],
        });
        Ok(items.collect())
    }
}

async fn list_audits(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let now = call.now;
    list::reply(&call, Audits { now }).await
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let audit = call.app.store.admin_audit(call.id()).await?;
    let audit = audit.ok_or_else(|| AdminError::not_found("audit"))?;
    call.check_query()?;
    Ok(Reply::json(audit.to_json(call.now)))
}

async fn start(call: Call) -> Result<Reply, AdminError> {
    let request = call.action()?;
    let audit_id = id::short_id("audit_");
    let result = call.app.store.admin_start_audit(&request, &audit_id).await;
    let is_started = matches!(&result, Ok(Ok(reply)) if reply.body["id"] == json!(audit_id));
    if is_started {
        let app = Arc::clone(&call.app);
        let runtime = tokio::runtime::Handle::current();
        // The audit runs on a separate thread, which the end of the process does not wait for: an audit that is cut off is shown as failed.
        tokio::task::spawn_blocking(move || {
            let now = || app.clock.now();
            let outcome = runtime.block_on(app.store.run_started_audit(&audit_id, now));
            match outcome {
                Ok(true) => tracing::info!(audit = audit_id, "the audit found no violation"),
                Ok(false) => tracing::error!(audit = audit_id, "the audit found violations"),
                Err(error) => tracing::error!(audit = audit_id, %error, "the audit ended early"),
            }
        });
    }
    written(result, "audit")
}
