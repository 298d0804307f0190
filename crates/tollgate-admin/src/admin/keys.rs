//! API keys: list, create, change, revoke, rotate.

use async_trait::async_trait;
use http::Method;
use serde_json::Value;
use tollgate_core::clock::SECOND;
use tollgate_core::{Millis, id};
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{Key, KeyFilter, KeyLimits, KeyPatch, NewAdminKey, NewKey, RateLimits, Store};

use super::call::{Call, written};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields::{self, Fields};
use super::list::{self, Item, Listing};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/keys",
        access: Access::Scope(Scope::KeysRead),
        summary: "API keys, newest first.",
        query: &["user_id", "revoked"],
        body: None,
        returns: Returns::List("key"),
        handler: handler!(list_keys),
    },
    Endpoint {
        method: Method::POST,
        path: "/keys",
        access: Access::Scope(Scope::KeysWrite),
        summary: "Creates an API key for a user. Its secret is shown only once.",
        query: &[],
        body: Some("new_key"),
        returns: Returns::Object("key", 201),
        handler: handler!(create),
    },
    Endpoint {
        method: Method::GET,
        path: "/keys/{id}",
        access: Access::Scope(Scope::KeysRead),
        summary: "An API key.",
        query: &[],
        body: None,
        returns: Returns::Object("key", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::PATCH,
        path: "/keys/{id}",
        access: Access::Scope(Scope::KeysWrite),
        summary: "Changes an API key. A quota cannot be less than the amounts that the key has used and holds.",
        query: &[],
        body: Some("key_patch"),
        returns: Returns::Object("key", 200),
        handler: handler!(update),
    },
    Endpoint {
        method: Method::POST,
        path: "/keys/{id}/revoke",
        access: Access::Scope(Scope::KeysWrite),
        summary: "Revokes an API key: it stops working within a second.",
        query: &[],
        body: Some("action"),
        returns: Returns::Object("key", 200),
        handler: handler!(revoke),
    },
    Endpoint {
        method: Method::POST,
        path: "/keys/{id}/rotate",
        access: Access::Scope(Scope::KeysWrite),
        summary: "Gives an API key a new secret, which is shown only once. The old secret remains valid for `overlap_s` seconds.",
        query: &[],
        body: Some("rotation"),
        returns: Returns::Object("key", 200),
        handler: handler!(rotate),
    },
];

/// Members of a key that cannot be written.
pub(crate) const READ_ONLY: &[&str] = &[
    "id",
    "hint",
    "used",
    "held",
    "created_at",
    "revoked_at",
    "previous_valid_until",
    "version",
    "secret",
];
/// How long the old secret of a rotated key works, in seconds.
const DEFAULT_OVERLAP: u64 = 3600;
const MAX_OVERLAP: u64 = 604_800;
/// Models that a key may list.
const MAX_MODELS: usize = 1000;

/// Keys, newest first.
pub(crate) struct Keys(pub(crate) KeyFilter);

#[async_trait]
impl Listing for Keys {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "name",
            "user_id",
            "hint",
            "quota",
            "used",
            "held",
            "rpm",
            "tpm",
            "max_concurrency",
            "models",
            "envelope",
            "created_at",
            "expires_at",
            "revoked_at",
            "previous_valid_until",
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
        let keys = store
            .admin_list_keys(&self.0, after.as_ref(), limit)
            .await?;
        let items = keys.into_iter().map(|key| Item {
            value: key.to_admin_json(),
            position: vec![key.created_at.to_string(), key.id],
        });
        Ok(items.collect())
    }
}

async fn list_keys(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let filter = KeyFilter {
        user_ids: call.query.list("user_id"),
        revoked: call.query.flag("revoked")?,
    };
    list::reply(&call, Keys(filter)).await
}

/// Parses the list of models that a key may use.
fn models(name: &str, value: &Value) -> Result<Vec<String>, AdminError> {
    let models = fields::parse_list(fields::parse_object_name)(name, value)?;
    if models.len() > MAX_MODELS {
        return Err(AdminError::invalid(
            name,
            format!("must have at most {MAX_MODELS} models"),
        ));
    }
    Ok(models)
}

/// Parses `envelope`: whether chat responses have no envelope `{code, data}` around them.
fn bare_envelope(name: &str, value: &Value) -> Result<bool, AdminError> {
    match value.as_str() {
        Some("standard") => Ok(false),
        Some("none") => Ok(true),
        _ => Err(AdminError::invalid(
            name,
            "must be \"standard\" or \"none\"",
        )),
    }
}

/// The key that the members of a body describe, without its user.
///
/// # Errors
/// 400 that names a member.
pub(crate) fn new_key(
    fields: &mut Fields,
    secret: &str,
    now: Millis,
) -> Result<NewKey, AdminError> {
    Ok(NewKey {
        id: id::short_id("key_"),
        hash: id::key_hash(secret),
        hint: id::hint(secret, "sk-"),
        user: String::new(),
        label: fields
            .optional("name", fields::parse_label)?
            .unwrap_or_default(),
        quota: fields.optional("quota", fields::parse_non_negative_amount)?,
        limits: KeyLimits {
            rates: RateLimits {
                rpm: fields.optional("rpm", fields::parse_limit)?,
                tpm: fields.optional("tpm", fields::parse_limit)?,
                max_concurrency: fields.optional("max_concurrency", fields::parse_limit)?,
            },
            models: fields.optional("models", models)?,
            expires_at: fields.optional("expires_at", fields::parse_time)?,
            bare_envelope: fields.optional("envelope", bare_envelope)?.unwrap_or(false),
            // Only the operator may enable this, because the content is recorded in the operator's traces.
            trace_content: false,
        },
        now,
    })
}

async fn create(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let user_id = fields.required("user_id", fields::parse_text)?;
    let secret = id::api_key();
    let mut key = new_key(&mut fields, &secret, call.now)?;
    let trace_content = fields.optional("trace_content", fields::parse_flag)?;
    key.limits.trace_content = trace_content.unwrap_or(false);
    let request = call.write(fields, READ_ONLY)?;
    let new = NewAdminKey { user_id, key };
    let result = call.app.store.admin_create_key(&request, new).await;
    Ok(written(result, "key")?.with_secret("secret", &secret))
}

pub(crate) async fn find(call: &Call) -> Result<Key, AdminError> {
    let key = call.app.store.key(call.id()).await?;
    key.ok_or_else(|| AdminError::not_found("key"))
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let key = find(&call).await?;
    call.check_query()?;
    Ok(Reply::versioned(key.to_admin_json(), key.version))
}

async fn update(call: Call) -> Result<Reply, AdminError> {
    find(&call).await?;
    let mut fields = call.fields()?;
    let patch = KeyPatch {
        name: fields.patched("name", fields::parse_label)?,
        quota: fields.nullable("quota", fields::parse_non_negative_amount)?,
        rpm: fields.nullable("rpm", fields::parse_limit)?,
        tpm: fields.nullable("tpm", fields::parse_limit)?,
        max_concurrency: fields.nullable("max_concurrency", fields::parse_limit)?,
        models: fields.nullable("models", models)?,
        expires_at: fields.nullable("expires_at", fields::parse_time)?,
        bare_envelope: fields.patched("envelope", bare_envelope)?,
        trace_content: fields.patched("trace_content", fields::parse_flag)?,
    };
    let request = call.write(fields, &[READ_ONLY, &["user_id"]].concat())?;
    let if_match = call.if_match()?;
    let store = &call.app.store;
    let result = store.admin_update_key(&request, call.id(), if_match, patch);
    written(result.await, "key")
}

async fn revoke(call: Call) -> Result<Reply, AdminError> {
    find(&call).await?;
    revoke_key(call).await
}

/// Revokes the key of the path.
///
/// # Errors
/// 400.
pub(crate) async fn revoke_key(call: Call) -> Result<Reply, AdminError> {
    let request = call.action()?;
    let result = call.app.store.admin_revoke_key(&request, call.id()).await;
    written(result, "key")
}

async fn rotate(call: Call) -> Result<Reply, AdminError> {
    find(&call).await?;
    rotate_key(call).await
}

/// Rotates the key of the path.
///
/// # Errors
/// 400, 409.
pub(crate) async fn rotate_key(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let overlap = fields
        .optional("overlap_s", overlap)?
        .unwrap_or(DEFAULT_OVERLAP);
    let request = call.write(fields, &[])?;
    let secret = id::api_key();
    let until = call.now + overlap.cast_signed() * SECOND;
    let (hash, hint) = (id::key_hash(&secret), id::hint(&secret, "sk-"));
    let store = &call.app.store;
    let session = call.actor()?.portal_session_id();
    let result = store.admin_rotate_key(&request, call.id(), hash, hint, until, session);
    Ok(written(result.await, "key")?.with_secret("secret", &secret))
}

fn overlap(name: &str, value: &Value) -> Result<u64, AdminError> {
    let overlap = value.as_u64().filter(|seconds| *seconds <= MAX_OVERLAP);
    overlap.ok_or_else(|| {
        AdminError::invalid(
            name,
            format!("must be a whole number of seconds from 0 to {MAX_OVERLAP}"),
        )
    })
}
