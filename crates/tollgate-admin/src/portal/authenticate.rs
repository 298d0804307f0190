//! Authenticates callers of the portal's API: by an API key, or by a session that acts for one.

use std::sync::Arc;

use http::{HeaderMap, Method};
use tollgate_core::{ApiError, ErrorKind, id};
use tollgate_server::auth::keys::{AuthError, check_is_valid, presented_keys};
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::http::cookies::find_cookie;
use tollgate_server::http::errors;
use tollgate_server::state::App;
use tollgate_store::Key;

use crate::admin::{ActorKind, Call, USE_INTERVAL, check_same_origin, is_plain_loopback};

/// The name of the session cookie, and its name on loopback without TLS.
const COOKIE: &str = "__Host-tollgate_portal";
const LOOPBACK_COOKIE: &str = "tollgate_portal";

/// The key, and the id of the session if the caller was authenticated by its cookie.
pub(super) type PortalCaller = (Arc<Key>, Option<String>);

/// Returns the caller of a request: by the key in its headers if it has one, else by its session cookie.
///
/// # Errors
/// 401; 403 for an unsafe request with a cookie that may come from another origin, and for a disabled user.
pub(super) async fn authenticate(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
) -> Result<PortalCaller, ApiError> {
    let presented = presented_keys(headers, None);
    if presented.iter().any(Option::is_some) {
        return Ok((app.auth.authenticate_any(&presented).await?, None));
    }
    let secret = find_cookie(headers, cookie_name(&app.public_url, headers));
    let secret = secret.filter(|secret| !secret.is_empty());
    let secret = secret.ok_or(AuthError::MissingKey)?;
    let (hash, now) = (id::key_hash(secret), app.clock.now());
    let session = app.store.portal_session_by_hash(&hash, now).await;
    let signed_out = || ApiError::new(ErrorKind::Authentication, "the session has ended: sign in");
    let session = session
        .map_err(errors::from_store)?
        .ok_or_else(signed_out)?;
    let key = app.store.key(&session.key_id).await;
    let key = key.map_err(errors::from_store)?.ok_or_else(signed_out)?;
    check_is_valid(&key, now)?;
    if !method.is_safe() {
        check_same_origin(&app.public_url, headers).map_err(AdminError::into_api_error)?;
    }
    if session.last_seen_at + USE_INTERVAL <= now {
        app.store.note_portal_session_use(&session.id, now);
    }
    Ok((Arc::new(key), Some(session.id)))
}

/// The name of the session cookie.
pub(super) fn cookie_name(public_url: &str, headers: &HeaderMap) -> &'static str {
    match is_plain_loopback(public_url, headers) {
        true => LOOPBACK_COOKIE,
        false => COOKIE,
    }
}

/// The key that the caller uses, itself or through a session.
///
/// # Errors
/// 401 if there is none.
pub(super) fn own_key(call: &Call) -> Result<&Arc<Key>, AdminError> {
    match &call.actor()?.kind {
        ActorKind::Key(key, _) => Ok(key),
        _ => Err(AdminError::unauthorized()),
    }
}
