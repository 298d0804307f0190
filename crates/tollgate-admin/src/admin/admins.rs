//! Admins: list, create with a one-time link, change, delete.

use async_trait::async_trait;
use http::Method;
use serde_json::Value;
use tollgate_core::id;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{Admin, AdminPatch, NewAdmin, Store};

use super::call::{Call, written};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields;
use super::list::{self, Item, Listing};
use super::reply::Reply;
use super::scope::{ROLES, Role, Scope};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/admins",
        access: Access::Scope(Scope::ConfigRead),
        summary: "Admins, newest first.",
        query: &[],
        body: None,
        returns: Returns::List("admin"),
        handler: handler!(list_admins),
    },
    Endpoint {
        method: Method::POST,
        path: "/admins",
        access: Access::Scope(Scope::ConfigWrite),
        summary: "Creates an admin. The response has a one-time sign-in link, which is shown only once and valid for an hour.",
        query: &[],
        body: Some("new_admin"),
        returns: Returns::Object("admin", 201),
        handler: handler!(create),
    },
    Endpoint {
        method: Method::GET,
        path: "/admins/{id}",
        access: Access::Scope(Scope::ConfigRead),
        summary: "An admin.",
        query: &[],
        body: None,
        returns: Returns::Object("admin", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::PATCH,
        path: "/admins/{id}",
        access: Access::Scope(Scope::ConfigWrite),
        summary: "Changes an admin. Disabling one ends its sessions.",
        query: &[],
        body: Some("admin_patch"),
        returns: Returns::Object("admin", 200),
        handler: handler!(update),
    },
    Endpoint {
        method: Method::DELETE,
        path: "/admins/{id}",
        access: Access::Scope(Scope::ConfigWrite),
        summary: "Deletes an admin with its sessions.",
        query: &[],
        body: None,
        returns: Returns::Nothing,
        handler: handler!(delete),
    },
];

/// Members of an admin that cannot be written.
const READ_ONLY: &[&str] = &["id", "created_at", "last_sign_in_at", "version", "link"];

/// The link with which an admin sets its password. The code behind `#` is not sent to servers, and not logged.
pub fn sign_in_link(console_url: &str, code: &str) -> String {
    format!("{console_url}/console/setup#code={code}")
}

struct Admins;

#[async_trait]
impl Listing for Admins {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "name",
            "role",
            "disabled",
            "created_at",
            "last_sign_in_at",
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
        let admins = store.list_admins(after.as_ref(), limit).await?;
        let items = admins.into_iter().map(|admin| Item {
            value: admin.to_json(),
            position: vec![admin.created_at.to_string(), admin.id],
        });
        Ok(items.collect())
    }
}

async fn list_admins(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    list::reply(&call, Admins).await
}

/// Parses the name of a role.
fn parse_role(name: &str, value: &Value) -> Result<Role, AdminError> {
    let role = value.as_str().and_then(Role::from_name);
    role.ok_or_else(|| {
        let names = ROLES.map(|(_, name)| name).join(", ");
        AdminError::invalid(name, format!("is not a role; there are: {names}"))
    })
}

async fn create(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let name = fields.required("name", fields::parse_actor_name)?;
    let role = fields.required("role", parse_role)?;
    let request = call.write(fields, &[READ_ONLY, &["disabled"]].concat())?;
    call.actor()?.check_grant(role.scopes(), call.now)?;
    let code = id::random_secret("");
    let new = NewAdmin {
        name,
        role: role.name().to_owned(),
        link_hash: id::key_hash(&code),
    };
    let result = call.app.store.create_admin(&request, new).await;
    let link = sign_in_link(&call.app.console_url, &code);
    Ok(written(result, "admin")?.with_secret("link", &link))
}

async fn find(call: &Call) -> Result<Admin, AdminError> {
    let admin = call.app.store.admin(call.id()).await?;
    admin.ok_or_else(|| AdminError::not_found("admin"))
}

/// Checks that the caller has every scope of the admin of the path: otherwise an operator could enable an owner who was disabled.
///
/// # Errors
/// 404 if there is no such admin; 403 `escalation`.
async fn check_may_change(call: &Call) -> Result<(), AdminError> {
    let admin = find(call).await?;
    match Role::from_name(&admin.role) {
        Some(role) => call.actor()?.check_includes(role.scopes()),
        None => Ok(()),
    }
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let admin = find(&call).await?;
    call.check_query()?;
    Ok(Reply::versioned(admin.to_json(), admin.version))
}

async fn update(call: Call) -> Result<Reply, AdminError> {
    check_may_change(&call).await?;
    let mut fields = call.fields()?;
    let role = fields.patched("role", parse_role)?;
    let patch = AdminPatch {
        name: fields.patched("name", fields::parse_actor_name)?,
        role: role.map(|role| role.name().to_owned()),
        disabled: fields.patched("disabled", fields::parse_flag)?,
    };
    let request = call.write(fields, READ_ONLY)?;
    if let Some(role) = role {
        call.actor()?.check_grant(role.scopes(), call.now)?;
    }
    let if_match = call.if_match()?;
    let store = &call.app.store;
    let result = store.update_admin(&request, call.id(), Some(if_match), patch);
    written(result.await, "admin")
}

async fn delete(call: Call) -> Result<Reply, AdminError> {
    check_may_change(&call).await?;
    let request = call.action()?;
    let if_match = call.if_match()?;
    let store = &call.app.store;
    written(
        store.delete_admin(&request, call.id(), if_match).await,
        "admin",
    )
}
