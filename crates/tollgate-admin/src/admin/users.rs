//! Users: list, create, change, credit.

use async_trait::async_trait;
use http::Method;
use serde_json::Value;
use tollgate_core::Amount;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{NewCredit, NewUser, RateLimits, Store, User, UserFilter, UserPatch};

use super::call::{Call, written};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields;
use super::list::{self, Item, Listing};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/users",
        access: Access::Scope(Scope::UsersRead),
        summary: "Users, newest first.",
        query: &["name", "disabled"],
        body: None,
        returns: Returns::List("user"),
        handler: handler!(list_users),
    },
    Endpoint {
        method: Method::POST,
        path: "/users",
        access: Access::Scope(Scope::UsersWrite),
        summary: "Creates a user with a balance of 0. Add credits to change the balance.",
        query: &[],
        body: Some("new_user"),
        returns: Returns::Object("user", 201),
        handler: handler!(create),
    },
    Endpoint {
        method: Method::GET,
        path: "/users/{id}",
        access: Access::Scope(Scope::UsersRead),
        summary: "A user.",
        query: &[],
        body: None,
        returns: Returns::Object("user", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::PATCH,
        path: "/users/{id}",
        access: Access::Scope(Scope::UsersWrite),
        summary: "Changes a user.",
        query: &[],
        body: Some("user_patch"),
        returns: Returns::Object("user", 200),
        handler: handler!(update),
    },
    Endpoint {
        method: Method::POST,
        path: "/users/{id}/credits",
        access: Access::Scope(Scope::MoneyWrite),
        summary: "Adds credit to a balance; a negative amount subtracts from the part that is not held. Each reference is used once: repeated requests return the first entry.",
        query: &[],
        body: Some("new_credit"),
        returns: Returns::Object("entry", 201),
        handler: handler!(credit),
    },
];

/// Members of a user that cannot be written.
const READ_ONLY: &[&str] = &["id", "balance", "held", "used", "created_at", "version"];

struct Users(UserFilter);

#[async_trait]
impl Listing for Users {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "name",
            "balance",
            "held",
            "used",
            "unlimited",
            "rpm",
            "tpm",
            "max_concurrency",
            "disabled",
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
        let users = store
            .admin_list_users(&self.0, after.as_ref(), limit)
            .await?;
        let items = users.into_iter().map(|user| Item {
            value: user.to_admin_json(),
            position: vec![user.created_at.to_string(), user.id],
        });
        Ok(items.collect())
    }
}

async fn list_users(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let filter = UserFilter {
        names: call.query.list("name"),
        disabled: call.query.flag("disabled")?,
    };
    list::reply(&call, Users(filter)).await
}

async fn create(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let new = NewUser {
        name: fields.required("name", fields::parse_object_name)?,
        unlimited: fields
            .optional("unlimited", fields::parse_flag)?
            .unwrap_or(false),
        opening: Amount::ZERO,
        rates: RateLimits {
            rpm: fields.optional("rpm", fields::parse_limit)?,
            tpm: fields.optional("tpm", fields::parse_limit)?,
            max_concurrency: fields.optional("max_concurrency", fields::parse_limit)?,
        },
    };
    let request = call.write(fields, &[READ_ONLY, &["disabled"]].concat())?;
    written(
        call.app.store.admin_create_user(&request, new).await,
        "user",
    )
}

/// Finds the user of the request's path.
///
/// # Errors
/// 404 if there is none.
pub(super) async fn find(call: &Call) -> Result<User, AdminError> {
    let user = call.app.store.user(call.id()).await?;
    user.ok_or_else(|| AdminError::not_found("user"))
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let user = find(&call).await?;
    call.check_query()?;
    Ok(Reply::versioned(user.to_admin_json(), user.version))
}

async fn update(call: Call) -> Result<Reply, AdminError> {
    find(&call).await?;
    let mut fields = call.fields()?;
    let patch = UserPatch {
        name: fields.patched("name", fields::parse_object_name)?,
        unlimited: fields.patched("unlimited", fields::parse_flag)?,
        rpm: fields.nullable("rpm", fields::parse_limit)?,
        tpm: fields.nullable("tpm", fields::parse_limit)?,
        max_concurrency: fields.nullable("max_concurrency", fields::parse_limit)?,
        disabled: fields.patched("disabled", fields::parse_flag)?,
    };
    let request = call.write(fields, READ_ONLY)?;
    let if_match = call.if_match()?;
    let store = &call.app.store;
    let result = store.admin_update_user(&request, call.id(), Some(if_match), patch);
    written(result.await, "user")
}

async fn credit(call: Call) -> Result<Reply, AdminError> {
    find(&call).await?;
    let mut fields = call.fields()?;
    let amount = fields.required("amount", nonzero_amount)?;
    let reason = fields.required("reason", fields::parse_text)?;
    let reference = fields.optional("reference", fields::parse_text)?;
    let body = fields.finish(&[])?;
    let request = call.money_request(&body, Some(reason.clone()))?;
    let new = NewCredit {
        amount,
        reason: Some(reason),
        reference,
    };
    let result = call.app.store.admin_credit_user(&request, call.id(), new);
    written(result.await, "user")
}

fn nonzero_amount(name: &str, value: &Value) -> Result<Amount, AdminError> {
    match fields::parse_amount(name, value)? {
        Amount::ZERO => Err(AdminError::invalid(name, "must not be 0")),
        amount => Ok(amount),
    }
}
