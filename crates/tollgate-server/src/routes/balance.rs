//! Balances of a key and of its user: remaining and used amounts, on two paths each, which pages of any origin may read.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tollgate_core::{Amount, ApiError, ErrorKind};
use tollgate_store::StoreError;

use crate::auth::keys::AuthError;
use crate::http::reply::{self, ErrorResponse};
use crate::state::App;

const KEY_LOOKUP_FAILED: &str = "token info lookup failure";
const USER_LOOKUP_FAILED: &str = "user quota lookup failure";
const USED_LOOKUP_FAILED: &str = "used-quota lookup failure";

const CORS: [(HeaderName, HeaderValue); 4] = [
    (
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    ),
    (
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, HEAD, OPTIONS"),
    ),
    (
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "authorization, x-api-key, x-goog-api-key, content-type, x-request-id",
        ),
    ),
    (
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("86400"),
    ),
];

/// `OPTIONS` on a balance path: a browser's preflight request, without a key.
pub async fn preflight() -> Response {
    (StatusCode::NO_CONTENT, CORS).into_response()
}

/// `GET /v1/balance`, `/balance`: the balance of the calling key.
pub async fn key_balance(app: State<Arc<App>>, headers: HeaderMap) -> Response {
    with_cors(read_key_balance(&app, &headers).await)
}

/// `GET /v1/user/balance`, `/user/balance`: the balance of the calling key's user.
pub async fn user_balance(app: State<Arc<App>>, headers: HeaderMap) -> Response {
    with_cors(read_user_balance(&app, &headers).await)
}

fn with_cors(result: Result<Value, ErrorResponse>) -> Response {
    let response = match result {
        Ok(record) => reply::json(&record),
        Err(error) => error.into_response(),
    };
    (CORS, response).into_response()
}

async fn read_key_balance(app: &App, headers: &HeaderMap) -> Result<Value, ErrorResponse> {
    let caller = app.auth.authenticate(headers).await.map_err(auth_failed)?;
    // Read before the sums: otherwise a charge that is written in between would be missed.
    let [_, reserved] = app.store.reserved_amounts(&caller.user_id, &caller.id);
    // The cached key of authentication may have outdated sums.
    let key = app.store.key(&caller.id).await.map_err(database_failed)?;
    let key = key.ok_or_else(|| {
        build_error(
            ErrorKind::Authentication,
            KEY_LOOKUP_FAILED,
            "the token was deleted",
        )
    })?;
    let remaining = key
        .quota
        .map(|quota| quota - key.used - key.held - reserved);
    Ok(balance_record(remaining, key.used))
}

async fn read_user_balance(app: &App, headers: &HeaderMap) -> Result<Value, ErrorResponse> {
    let caller = app.auth.authenticate(headers).await.map_err(auth_failed)?;
    let [reserved, _] = app.store.reserved_amounts(&caller.user_id, &caller.id);
    let user = app
        .store
        .user(&caller.user_id)
        .await
        .map_err(database_failed)?;
    let user = user.ok_or_else(|| {
        build_error(
            ErrorKind::NotFound,
            USER_LOOKUP_FAILED,
            "there is no such user",
        )
    })?;
    let remaining = (!user.unlimited).then(|| user.balance - user.held - reserved);
    Ok(balance_record(remaining, user.used))
}

/// The balance record. Without a limit, the remaining balance is -1. A charge that is being written at this moment may be counted twice; the
/// remaining balance is still at least 0 then.
fn balance_record(remaining: Option<Amount>, used: Amount) -> Value {
    json!({
        "success": true,
        "remain_balance": remaining.map_or(-1.0, |left| left.max(Amount::ZERO).to_f64()),
        "used_balance": used.to_f64(),
        "unlimited_quota": remaining.is_none(),
    })
}

fn auth_failed(error: AuthError) -> ErrorResponse {
    match error {
        AuthError::InvalidKey(why) => {
            build_error(ErrorKind::Authentication, KEY_LOOKUP_FAILED, why)
        }
        AuthError::UserDisabled => build_error(
            ErrorKind::Permission,
            KEY_LOOKUP_FAILED,
            "this account is disabled",
        ),
        AuthError::Store(e) => database_failed(e),
        other => ErrorResponse::from(ApiError::from(other)),
    }
}

fn database_failed(e: StoreError) -> ErrorResponse {
    tracing::error!(error = %e, "cannot read a balance");
    build_error(
        ErrorKind::Internal,
        USED_LOOKUP_FAILED,
        "the balance cannot be read from the database",
    )
}

fn build_error(kind: ErrorKind, what: &str, why: &str) -> ErrorResponse {
    ErrorResponse::balance(ApiError::new(kind, format!("{what}: {why}")))
}
