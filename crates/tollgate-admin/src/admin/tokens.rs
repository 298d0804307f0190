//! Tokens of the admin API.

use async_trait::async_trait;
use http::Method;
use serde_json::Value;
use tollgate_core::id;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{AdminToken, NewAdminToken, Store};

use super::call::{Call, written};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields;
use super::list::{self, Item, Listing};
use super::reply::Reply;
use super::scope::{Scope, scope_names};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/tokens",
        access: Access::Scope(Scope::ConfigRead),
        summary: "Admin tokens, newest first.",
        query: &[],
        body: None,
        returns: Returns::List("token"),
        handler: handler!(list_tokens),
    },
    Endpoint {
        method: Method::POST,
        path: "/tokens",
        access: Access::Scope(Scope::ConfigWrite),
        summary: "Creates a token. Its secret is shown only once. Its scopes must be among the caller's scopes.",
        query: &[],
        body: Some("new_token"),
        returns: Returns::Object("token", 201),
        handler: handler!(create),
    },
    Endpoint {
        method: Method::GET,
        path: "/tokens/{id}",
        access: Access::Scope(Scope::ConfigRead),
        summary: "A token.",
        query: &[],
        body: None,
        returns: Returns::Object("token", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::DELETE,
        path: "/tokens/{id}",
        access: Access::Scope(Scope::ConfigWrite),
        summary: "Deletes a token: it stops working immediately.",
        query: &[],
        body: None,
        returns: Returns::Nothing,
        handler: handler!(delete),
    },
];

/// Members of a token that cannot be written.
const READ_ONLY: &[&str] = &[
    "id",
    "hint",
    "created_at",
    "last_used_at",
    "version",
    "secret",
];

struct Tokens;

#[async_trait]
impl Listing for Tokens {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "name",
            "scopes",
            "hint",
            "created_at",
            "expires_at",
            "last_used_at",
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
        let tokens = store.list_admin_tokens(after.as_ref(), limit).await?;
        let items = tokens.into_iter().map(|token| Item {
            value: token.to_json(),
            position: vec![token.created_at.to_string(), token.id],
        });
        Ok(items.collect())
    }
}

async fn list_tokens(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    list::reply(&call, Tokens).await
}

/// The name of a scope.
fn scope(name: &str, value: &Value) -> Result<Scope, AdminError> {
    let scope = value.as_str().and_then(Scope::from_name);
    scope.ok_or_else(|| {
        let message = format!("is not a scope; there are: {}", scope_names().join(", "));
        AdminError::invalid(name, message)
    })
}

async fn create(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let name = fields.required("name", fields::parse_actor_name)?;
    let mut scopes = fields.required("scopes", fields::parse_list(scope))?;
    let expires_at = fields.optional("expires_at", fields::parse_time)?;
    let request = call.write(fields, READ_ONLY)?;
    if scopes.is_empty() {
        return Err(AdminError::invalid(
            "scopes",
            "must have at least one scope",
        ));
    }
    if expires_at.is_some_and(|at| at <= call.now) {
        return Err(AdminError::invalid("expires_at", "must be in the future"));
    }
    call.actor()?
        .check_grant(scopes.iter().copied().collect(), call.now)?;
    let mut names: Vec<&str> = Vec::with_capacity(scopes.len());
    scopes.retain(|scope| {
        let is_new = !names.contains(&scope.name());
        names.push(scope.name());
        is_new
    });
    let secret = id::admin_token();
    let new = NewAdminToken {
        id: id::short_id("tok_"),
        name,
        scopes: scopes.iter().map(|scope| scope.name().to_owned()).collect(),
        hash: id::key_hash(&secret),
        hint: id::hint(&secret, "adm_"),
        expires_at,
    };
    let result = call.app.store.create_admin_token(&request, new).await;
    Ok(written(result, "token")?.with_secret("secret", &secret))
}

async fn find(call: &Call) -> Result<AdminToken, AdminError> {
    let token = call.app.store.admin_token(call.id()).await?;
    token.ok_or_else(|| AdminError::not_found("token"))
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let token = find(&call).await?;
    call.check_query()?;
    Ok(Reply::versioned(token.to_json(), token.version))
}

async fn delete(call: Call) -> Result<Reply, AdminError> {
    find(&call).await?;
    let request = call.action()?;
    let if_match = call.if_match()?;
    let store = &call.app.store;
    let result = store.delete_admin_token(&request, call.id(), Some(if_match));
    written(result.await, "token")
}
