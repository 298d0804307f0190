//! The user's keys: list, create, rotate, revoke. The limits of the key that signed in also limit the keys that it creates or changes.

use http::Method;
use tollgate_core::id;
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{Key, KeyFilter, KeyLimits, NewAdminKey, NewKey};

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
        summary: "Creates a key with at most the limits, models and expiry of the caller's key. Its secret is shown only once. A quota is subtracted from the caller's quota. A key with a hard budget may not create keys.",
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
    if call.app.store.has_hard_budget(&parent.id).await? {
        let message =
            "a key with a hard budget may not create keys: they would not have the budget";
        return Err(AdminError::forbidden("escalation", message));
    }
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
    let (limits, max_limits) = (&mut key.limits, &parent.limits);
    let rates = (&mut limits.rates, &max_limits.rates);
    for (name, limit, max) in [
        ("rpm", &mut rates.0.rpm, rates.1.rpm),
        ("tpm", &mut rates.0.tpm, rates.1.tpm),
        (
            "max_concurrency",
            &mut rates.0.max_concurrency,
            rates.1.max_concurrency,
        ),
    ] {
        let Some(max) = max else { continue };
        if *limit.get_or_insert(max) > max {
            let message = format!("must be at most {max}, as that of the key that creates it");
            return Err(AdminError::invalid(name, message));
        }
    }
    if let Some(models) = &max_limits.models {
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
    if let Some(end) = max_limits.expires_at
        && *limits.expires_at.get_or_insert(end) > end
    {
        let message = "must not be later than that of the key that creates it";
        return Err(AdminError::invalid("expires_at", message));
    }
    Ok(key)
}

/// Returns the key of the path if the caller may change it: its own key, a key that it created, or any of the user's keys if its own has no limits.
///
/// # Errors
/// 404 for a key of another user; 403 if the caller's key has limits and did not create the key.
async fn find_changeable(call: &Call) -> Result<Key, AdminError> {
    let key = keys::find(call).await?;
    let own = own_key(call)?;
    if key.user_id != own.user_id {
        return Err(AdminError::not_found("key"));
    }
    let limits = &own.limits;
    let is_unlimited = own.quota.is_none()
        && limits.rates == Default::default()
        && limits.models.is_none()
        && limits.expires_at.is_none()
        && !call.app.store.has_hard_budget(&own.id).await?;
    if key.id == own.id || is_unlimited {
        return Ok(key);
    }
    let parent = call.app.store.parent_key_id(&key.id).await?;
    if parent.is_some_and(|parent| parent == own.id) {
        return Ok(key);
    }
    let message = "a key with limits may only change itself and the keys that it created";
    Err(AdminError::forbidden("escalation", message))
}

/// Whether a key with these limits can do no more than one with the limits `max_limits`.
fn is_within(limits: &KeyLimits, max_limits: &KeyLimits) -> bool {
    let is_rate_within = |rate: Option<u32>, max: Option<u32>| {
        max.is_none_or(|max| rate.is_some_and(|rate| rate <= max))
    };
    let (rates, max_rates) = (&limits.rates, &max_limits.rates);
    let has_models = max_limits.models.as_ref().is_none_or(|allowed| {
        let models = limits.models.as_ref();
        models.is_some_and(|models| models.iter().all(|model| allowed.contains(model)))
    });
    let ends = max_limits.expires_at;
    has_models
        && is_rate_within(rates.rpm, max_rates.rpm)
        && is_rate_within(rates.tpm, max_rates.tpm)
        && is_rate_within(rates.max_concurrency, max_rates.max_concurrency)
        && ends.is_none_or(|end| limits.expires_at.is_some_and(|at| at <= end))
}

/// Checks that the caller gains no permissions with a new secret of the key: an operator may have raised the limits of a key that the caller created,
/// or lowered the caller's own.
///
/// # Errors
/// 403.
async fn check_may_rotate(call: &Call, key: &Key) -> Result<(), AdminError> {
    let own = own_key(call)?;
    if key.id == own.id {
        return Ok(());
    }
    // The quota of a key was subtracted from the quota of the key that created it.
    let has_quota = key.quota.is_some() || own.quota.is_none();
    let exceeds = !has_quota || !is_within(&key.limits, &own.limits);
    if exceeds || call.app.store.has_hard_budget(&own.id).await? {
        let message = "a key may only rotate itself and keys whose limits do not exceed its own";
        return Err(AdminError::forbidden("escalation", message));
    }
    Ok(())
}

async fn rotate(call: Call) -> Result<Reply, AdminError> {
    let key = find_changeable(&call).await?;
    check_may_rotate(&call, &key).await?;
    keys::rotate_key(call).await
}

async fn revoke(call: Call) -> Result<Reply, AdminError> {
    find_changeable(&call).await?;
    keys::revoke_key(call).await
}

#[cfg(test)]
mod tests {
    use tollgate_store::RateLimits;

    use super::*;

    fn limits(rpm: Option<u32>, models: &[&str], expires_at: Option<i64>) -> KeyLimits {
        let models: Vec<String> = models.iter().map(|model| (*model).to_owned()).collect();
        KeyLimits {
            rates: RateLimits {
                rpm,
                ..RateLimits::default()
            },
            models: (!models.is_empty()).then_some(models),
            expires_at,
            ..KeyLimits::default()
        }
    }

    #[test]
    fn a_key_with_more_than_another_in_any_limit_is_not_within_it() {
        let most = limits(Some(5), &["a", "b"], Some(100));
        for (key, expected) in [
            (most.clone(), true),
            (limits(Some(4), &["b"], Some(99)), true),
            (limits(Some(6), &["a"], Some(100)), false),
            (limits(None, &["a"], Some(100)), false),
            (limits(Some(5), &["a", "c"], Some(100)), false),
            (limits(Some(5), &[], Some(100)), false),
            (limits(Some(5), &["a"], Some(101)), false),
            (limits(Some(5), &["a"], None), false),
        ] {
            assert_eq!(is_within(&key, &most), expected, "{key:?}");
        }
        assert!(is_within(&most, &KeyLimits::default()));
    }
}
