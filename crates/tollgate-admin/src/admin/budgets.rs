//! Budgets: what a user or key may spend in a day, week or month (docs/money.md#budgets).

use async_trait::async_trait;
use http::Method;
use serde_json::Value;
use tollgate_core::Millis;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{
    Budget, BudgetFilter, BudgetOwner, BudgetPatch, BudgetPeriod, NewBudget, Store,
};

use super::call::{Call, written};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields;
use super::list::{self, Item, Listing};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/budgets",
        access: Access::Scope(Scope::UsersRead),
        summary: "Budgets, newest first.",
        query: &["user_id", "key_id"],
        body: None,
        returns: Returns::List("budget"),
        handler: handler!(list_budgets),
    },
    Endpoint {
        method: Method::POST,
        path: "/budgets",
        access: Access::Scope(Scope::UsersWrite),
        summary: "Creates a budget of a user or a key. Amounts already spent in the current period count.",
        query: &[],
        body: Some("new_budget"),
        returns: Returns::Object("budget", 201),
        handler: handler!(create),
    },
    Endpoint {
        method: Method::GET,
        path: "/budgets/{id}",
        access: Access::Scope(Scope::UsersRead),
        summary: "A budget.",
        query: &[],
        body: None,
        returns: Returns::Object("budget", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::PATCH,
        path: "/budgets/{id}",
        access: Access::Scope(Scope::UsersWrite),
        summary: "Changes a budget's amount, period or mode.",
        query: &[],
        body: Some("budget_patch"),
        returns: Returns::Object("budget", 200),
        handler: handler!(update),
    },
    Endpoint {
        method: Method::DELETE,
        path: "/budgets/{id}",
        access: Access::Scope(Scope::UsersWrite),
        summary: "Deletes a budget.",
        query: &[],
        body: None,
        returns: Returns::Nothing,
        handler: handler!(delete),
    },
];

/// Members of a budget that cannot be written.
const READ_ONLY: &[&str] = &["id", "spent", "held", "resets_at", "version"];

/// Budgets, newest first.
pub(crate) struct Budgets {
    pub(crate) filter: BudgetFilter,
    pub(crate) now: Millis,
}

#[async_trait]
impl Listing for Budgets {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "user_id",
            "key_id",
            "amount",
            "period",
            "mode",
            "spent",
            "held",
            "resets_at",
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
        let budgets = store
            .list_budgets(&self.filter, after.as_ref(), limit)
            .await?;
        let items = budgets.into_iter().map(|budget| Item {
            value: budget.to_json(self.now),
            position: vec![budget.created_at.to_string(), budget.id],
        });
        Ok(items.collect())
    }
}

async fn list_budgets(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let filter = BudgetFilter {
        user_ids: call.query.list("user_id"),
        key_ids: call.query.list("key_id"),
        owner_ids: None,
    };
    let now = call.now;
    list::reply(&call, Budgets { filter, now }).await
}

fn period(name: &str, value: &Value) -> Result<BudgetPeriod, AdminError> {
    let period = value.as_str().and_then(BudgetPeriod::from_name);
    period.ok_or_else(|| {
        let names = BudgetPeriod::ALL.map(BudgetPeriod::name).join(", ");
        AdminError::invalid(name, format!("must be one of {names}"))
    })
}

/// Parses `hard` (`true`: requests beyond the budget are rejected) or `soft`.
fn mode(name: &str, value: &Value) -> Result<bool, AdminError> {
    match value.as_str() {
        Some("hard") => Ok(true),
        Some("soft") => Ok(false),
        _ => Err(AdminError::invalid(name, "must be hard or soft")),
    }
}

async fn create(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let user_id = fields.optional("user_id", fields::parse_text)?;
    let key_id = fields.optional("key_id", fields::parse_text)?;
    let (owner, owner_id) = match (user_id, key_id) {
        (Some(user_id), None) => (BudgetOwner::User, user_id),
        (None, Some(key_id)) => (BudgetOwner::Key, key_id),
        (Some(_), Some(_)) => {
            let message =
                "must not be set beside `user_id`: a budget belongs to a user or to a key";
            return Err(AdminError::invalid("key_id", message));
        }
        (None, None) => {
            let message = "is required, or `key_id`: a budget belongs to a user or to a key";
            return Err(AdminError::invalid("user_id", message));
        }
    };
    let new = NewBudget {
        owner,
        owner_id,
        amount: fields.required("amount", fields::parse_non_negative_amount)?,
        period: fields.required("period", period)?,
        is_hard: fields.required("mode", mode)?,
    };
    let request = call.write(fields, READ_ONLY)?;
    written(call.app.store.create_budget(&request, new).await, "budget")
}

async fn find(call: &Call) -> Result<Budget, AdminError> {
    let budget = call.app.store.budget(call.id()).await?;
    budget.ok_or_else(|| AdminError::not_found("budget"))
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let budget = find(&call).await?;
    call.check_query()?;
    Ok(Reply::versioned(budget.to_json(call.now), budget.version))
}

async fn update(call: Call) -> Result<Reply, AdminError> {
    let budget = find(&call).await?;
    let mut fields = call.fields()?;
    let patch = BudgetPatch {
        amount: fields.patched("amount", fields::parse_non_negative_amount)?,
        period: fields.patched("period", period)?,
        is_hard: fields.patched("mode", mode)?,
    };
    let request = call.write(fields, &[READ_ONLY, &["user_id", "key_id"]].concat())?;
    let if_match = Some(call.if_match()?);
    let store = &call.app.store;
    let result = store.update_budget(&request, &budget, if_match, patch);
    written(result.await, "budget")
}

async fn delete(call: Call) -> Result<Reply, AdminError> {
    let budget = find(&call).await?;
    let request = call.action()?;
    let if_match = Some(call.if_match()?);
    let store = &call.app.store;
    let result = store.delete_budget(&request, &budget, if_match);
    written(result.await, "budget")
}
