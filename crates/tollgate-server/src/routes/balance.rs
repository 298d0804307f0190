//! Balances: what is left and used of a key and of its user, on two paths each, open to other origins.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tollgate_core::{Amount, ApiError, ErrorKind};
use tollgate_store::StoreError;

use crate::access::Denied;
use crate::app::App;
use crate::http::reply::{self, Failure};

const KEY_FAILURE: &str = "token info lookup failure";
const USER_FAILURE: &str = "user quota lookup failure";
const USED_FAILURE: &str = "used-quota lookup failure";

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

/// `OPTIONS` on a balance path: the preflight, without a key.
pub async fn preflight() -> Response {
    (StatusCode::NO_CONTENT, CORS).into_response()
}

/// `GET /v1/balance`, `/balance`: the calling key's.
pub async fn of_key(app: State<Arc<App>>, headers: HeaderMap) -> Response {
    with_cors(key_balance(&app, &headers).await)
}

/// `GET /v1/user/balance`, `/user/balance`: the calling key's user's.
pub async fn of_user(app: State<Arc<App>>, headers: HeaderMap) -> Response {
    with_cors(user_balance(&app, &headers).await)
}

fn with_cors(answer: Result<Value, Failure>) -> Response {
    let answer = match answer {
        Ok(record) => reply::json(&record),
        Err(failure) => failure.into_response(),
    };
    (CORS, answer).into_response()
}

async fn key_balance(app: &App, headers: &HeaderMap) -> Result<Value, Failure> {
    let caller = app
        .access
        .authenticate(app, headers)
        .await
        .map_err(denied)?;
    // Before the sums, lest a charge written in between be missed.
    let [_, reserved] = app.store.reserved(&caller.user_id, &caller.id);
    // What authentication remembers of a key may be stale in its sums: they are read afresh.
    let key = app.store.key(&caller.id).await.map_err(database)?;
    let key = key.ok_or_else(|| {
        failed(
            ErrorKind::Authentication,
            KEY_FAILURE,
            "the token was deleted",
        )
    })?;
    let remaining = key
        .quota
        .map(|quota| quota - key.used - key.held - reserved);
    Ok(record(remaining, key.used))
}

async fn user_balance(app: &App, headers: &HeaderMap) -> Result<Value, Failure> {
    let caller = app
        .access
        .authenticate(app, headers)
        .await
        .map_err(denied)?;
    let [reserved, _] = app.store.reserved(&caller.user_id, &caller.id);
    let user = app.store.user(&caller.user_id).await.map_err(database)?;
    let user =
        user.ok_or_else(|| failed(ErrorKind::NotFound, USER_FAILURE, "there is no such user"))?;
    let remaining = (!user.unlimited).then(|| user.balance - user.held - reserved);
    Ok(record(remaining, user.used))
}

/// SPEC.md › Balance record. No limit reads as -1. A charge that is just being written may be counted twice; what is left
/// then still reads as no less than nothing.
fn record(remaining: Option<Amount>, used: Amount) -> Value {
    json!({
        "success": true,
        "remain_balance": remaining.map_or(-1.0, |left| left.max(Amount::ZERO).to_f64()),
        "used_balance": used.to_f64(),
        "unlimited_quota": remaining.is_none(),
    })
}

fn denied(denied: Denied) -> Failure {
    match denied {
        Denied::Unknown(why) => failed(ErrorKind::Authentication, KEY_FAILURE, why),
        Denied::Store(e) => database(e),
        other => Failure::from(ApiError::from(other)),
    }
}

fn database(e: StoreError) -> Failure {
    tracing::error!(error = %e, "cannot read a balance");
    failed(
        ErrorKind::Internal,
        USED_FAILURE,
        "the database did not answer",
    )
}

fn failed(kind: ErrorKind, what: &str, why: &str) -> Failure {
    Failure::balance(ApiError::new(kind, format!("{what}: {why}")))
}
