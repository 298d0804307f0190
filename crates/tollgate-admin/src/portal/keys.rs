//! The user's keys: list, create, rotate, revoke. The limits of the key that signed in also limit the keys that it creates or changes.

use http::Method;
use tollgate_core::id;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{Key, KeyFilter, NewAdminKey, NewKey};

use super::authenticate::own_key;
use crate::admin::endpoint::{Access, Endpoint, Returns, handler};
use crate::admin::keys::{self, Keys, READ_ONLY};
use crate::admin::{Call, Reply, list, written};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/keys",
        access: Access::Any,
        summary: "The user's keys, newest first.",
        query: &["revoked"],
        body: None,
        returns: Returns::List("key"),
        handler: handler!(list_keys),
    },
    Endpoint {
        method: Method::POST,
        path: "/keys",
        access: Access::Any,
        summary: "Creates a key with at most the limits, models and expiry of the caller's key. Its secret is shown only once. A quota is subtracted from the caller's quota.",
        query: &[],
        body: Some("new_own_key"),
        returns: Returns::Object("key", 201),
        handler: handler!(create),
    },
    Endpoint {
        method: Method::POST,
        path: "/keys/{id}/rotate",
        access: Access::Any,
        summary: "Gives a key a new secret; the old secret remains valid for `overlap_s` seconds.",
        query: &[],
        body: Some("rotation"),
        returns: Returns::Object("key", 200),
        handler: handler!(rotate),
    },
    Endpoint {
        method: Method::POST,
        path: "/keys/{id}/revoke",
        access: Access::Any,
        summary: "Revokes a key.",
        query: &[],
        body: Some("action"),
        returns: Returns::Object("key", 200),
        handler: handler!(revoke),
    },
];

async fn list_keys(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let filter = KeyFilter {
        user_ids: Some(vec![own_key(&call)?.user_id.clone()]),
        revoked: call.query.flag("revoked")?,
    };
    list::reply(&call, Keys(filter)).await
}

async fn create(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let secret = id::api_key();
    let key = keys::new_key(&mut fields, &secret, call.now)?;
    let request = call.write(fields, &[READ_ONLY, &["user_id"]].concat())?;
    let parent = own_key(&call)?;
    let new = NewAdminKey {
        user_id: parent.user_id.clone(),
        key: limit_to_parent(key, parent)?,
    };
    let store = &call.app.store;
    let created = store.create_own_key(&request, &parent.id, new).await;
    Ok(written(created, "key")?.with_secret("secret", &secret))
}

/// The new key; limits that it does not set are those of its parent.
///
/// # Errors
/// 400 for a limit that exceeds the parent's.
fn limit_to_parent(mut key: NewKey, parent: &Key) -> Result<NewKey, AdminError> {
    let (limits, most) = (&mut key.limits, &parent.limits);
    let rates = (&mut limits.rates, &most.rates);
    for (name, limit, most) in [
        ("rpm", &mut rates.0.rpm, rates.1.rpm),
        ("tpm", &mut rates.0.tpm, rates.1.tpm),
        (
            "max_concurrency",
            &mut rates.0.max_concurrency,
            rates.1.max_concurrency,
        ),
    ] {
        let Some(most) = most else { continue };
        if *limit.get_or_insert(most) > most {
            let message = format!("must be at most {most}, as that of the key that creates it");
            return Err(AdminError::invalid(name, message));
        }
    }
    if let Some(models) = &most.models {
        let chosen = limits.models.get_or_insert_with(|| models.clone());
        let unknown = |model: &&String| !models.contains(model);
        if let Some(at) = chosen.iter().position(|model| unknown(&model)) {
            let message = format!(
                "must be one of the models of the key that creates it: {}",
                models.join(", ")
            );
            return Err(AdminError::invalid(format!("models[{at}]"), message));
        }
    }
    if let Some(end) = most.expires_at
        && *limits.expires_at.get_or_insert(end) > end
    {
        let message = "must not be later than that of the key that creates it";
        return Err(AdminError::invalid("expires_at", message));
    }
    Ok(key)
}

/// Checks that the caller may change the key of the path: its own key, a key that it created, or any of the user's keys if its own has no limits. So
/// no caller gains permissions with the new secret of another key.
///
/// # Errors
/// 404 for a key of another user, 403.
async fn check_may_change(call: &Call) -> Result<(), AdminError> {
    let key = keys::find(call).await?;
    let own = own_key(call)?;
    if key.user_id != own.user_id {
        return Err(AdminError::not_found("key"));
    }
    let limits = &own.limits;
    let is_unlimited = own.quota.is_none()
        && limits.rates == Default::default()
        && limits.models.is_none()
        && limits.expires_at.is_none();
    if key.id == own.id || is_unlimited {
        return Ok(());
    }
    let parent = call.app.store.parent_key_id(&key.id).await?;
    if parent.is_some_and(|parent| parent == own.id) {
        return Ok(());
    }
    let message = "a key with limits may only change itself and the keys that it created";
    Err(AdminError::forbidden("escalation", message))
}

async fn rotate(call: Call) -> Result<Reply, AdminError> {
    check_may_change(&call).await?;
    keys::rotate_key(call).await
}

async fn revoke(call: Call) -> Result<Reply, AdminError> {
    check_may_change(&call).await?;
    keys::revoke_key(call).await
}
