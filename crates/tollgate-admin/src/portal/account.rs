//! The caller's account: user, key, budgets.

use http::Method;
use serde_json::{Value, json};
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{BudgetFilter, Key};

use super::authenticate::own_key;
use crate::admin::budgets::Budgets;
use crate::admin::endpoint::{Access, Endpoint, Returns, handler};
use crate::admin::{Call, Reply, list, list_models};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "",
        access: Access::Any,
        summary: "The user and the key that the caller signed in with.",
        query: &[],
        body: None,
        returns: Returns::Object("portal_me", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::GET,
        path: "/budgets",
        access: Access::Any,
        summary: "The budgets of the user and of the key, newest first.",
        query: &[],
        body: None,
        returns: Returns::List("budget"),
        handler: handler!(list_budgets),
    },
    Endpoint {
        method: Method::GET,
        path: "/models",
        access: Access::Any,
        summary: "The models that the key may use, with the JSON Schema of their requests, by name.",
        query: &[],
        body: None,
        returns: Returns::List("model"),
        handler: handler!(list_models),
    },
];

/// User and key as JSON, with their current balances.
///
/// # Errors
/// The database's; 404 if the user was deleted meanwhile.
pub(super) async fn me(call: &Call, key: &Key) -> Result<Value, AdminError> {
    let store = &call.app.store;
    let user = store.user(&key.user_id).await?;
    let user = user.ok_or_else(|| AdminError::not_found("user"))?;
    // The cached key of authentication may have outdated sums, so the key is read again.
    let key = store.key(&key.id).await?;
    let key = key.ok_or_else(|| AdminError::not_found("key"))?;
    Ok(json!({ "user": user.to_admin_json(), "key": key.to_admin_json() }))
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let me = me(&call, own_key(&call)?).await?;
    Ok(Reply::json(me))
}

async fn list_budgets(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let key = own_key(&call)?;
    let owners = vec![key.user_id.clone(), key.id.clone()];
    let filter = BudgetFilter {
        owner_ids: Some(owners),
        ..BudgetFilter::default()
    };
    let now = call.now;
    list::reply(&call, Budgets { filter, now }).await
}
