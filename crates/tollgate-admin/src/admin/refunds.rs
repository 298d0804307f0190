//! Refunds of tasks and chats.

use http::Method;
use serde_json::Value;
use tollgate_core::Amount;
use tollgate_media::{Job, MediaJob as _};
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::quote::unit_name;
use tollgate_store::{AdminRequest, ChargeRecord, NewRefund};

use super::call::{Call, written};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields;
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::POST,
        path: "/tasks/{id}/refund",
        access: Access::Scope(Scope::MoneyWrite),
        summary: "Refunds the cost of a task, or a part of it: at most the settled amount that is not refunded yet.",
        query: &[],
        body: Some("new_refund"),
        returns: Returns::Object("refund", 201),
        handler: handler!(refund_task),
    },
    Endpoint {
        method: Method::POST,
        path: "/chats/{id}/refund",
        access: Access::Scope(Scope::MoneyWrite),
        summary: "Refunds the cost of a chat, or a part of it: at most the settled amount that is not refunded yet.",
        query: &[],
        body: Some("new_refund"),
        returns: Returns::Object("refund", 201),
        handler: handler!(refund_chat),
    },
];

async fn refund_task(call: Call) -> Result<Reply, AdminError> {
    let charge = call.app.store.task_charge(call.id()).await?;
    let charge = charge.ok_or_else(|| AdminError::not_found("task"))?;
    let (request, new) = read_refund(&call, unit_of_task(&charge))?;
    let store = &call.app.store;
    let result = store.admin_refund_task(&request, charge, new).await;
    call.app.record_cache.remove(call.id());
    written(result, "task")
}

async fn refund_chat(call: Call) -> Result<Reply, AdminError> {
    let charge = call.app.store.chat_charge(call.id()).await?;
    let charge = charge.ok_or_else(|| AdminError::not_found("chat"))?;
    let (request, new) = read_refund(&call, Some(UNIT_OF_CHATS))?;
    let store = &call.app.store;
    written(store.admin_refund_chat(&request, charge, new).await, "chat")
}

/// The unit of a chat's charge.
pub(super) const UNIT_OF_CHATS: &str = "token";

/// The unit of a task's charge. `None` once the task was purged.
pub(super) fn unit_of_task(charge: &ChargeRecord) -> Option<&'static str> {
    let (kind, job) = charge.job.as_ref()?;
    let job = Job::from_text(*kind, job).ok()?;
    Some(unit_name(job.units(), u64::try_from(charge.units).ok()?))
}

fn read_refund(
    call: &Call,
    unit: Option<&'static str>,
) -> Result<(AdminRequest, NewRefund), AdminError> {
    let mut fields = call.fields()?;
    let amount = fields.optional("amount", positive_amount)?;
    let reason = fields.required("reason", fields::parse_text)?;
    let body = fields.finish(&[])?;
    let request = call.money_request(&body, Some(reason.clone()))?;
    let new = NewRefund {
        amount,
        reason,
        unit,
    };
    Ok((request, new))
}

/// An amount of more than 0.
fn positive_amount(name: &str, value: &Value) -> Result<Amount, AdminError> {
    match fields::parse_amount(name, value)? {
        amount if amount > Amount::ZERO => Ok(amount),
        _ => Err(AdminError::invalid(name, "must be more than 0")),
    }
}
