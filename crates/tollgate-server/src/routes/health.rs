//! `/healthz`, `/readyz`, `/metrics`: for supervisors, load balancers and Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use tollgate_core::{ApiError, ErrorKind};

use crate::http::reply::{self, ErrorResponse};
use crate::metrics::TextFormat;
use crate::state::App;

/// How long `/readyz` waits for database and storage together. Including the commit of the last second that it accepts, it reports a failure within 5
/// s.
const READY_TIMEOUT: Duration = Duration::from_secs(3);

/// `GET /healthz`: whether the process responds.
pub async fn healthz() -> Response {
    reply::json(&json!({ "status": "ok" }))
}

/// `GET /readyz`: whether the database commits, the storage accepts a file, and this node agrees with the others on its database.
pub async fn readyz(app: State<Arc<App>>) -> Response {
    let database = async {
        app.heartbeat
            .check_commit()
            .await
            .map_err(|e| e.to_string())
    };
    let storage = async { app.files.check_writable().await.map_err(|e| e.to_string()) };
    let too_late = |_| "no response in time".to_owned();
    let (database, storage) = tokio::join!(
        tokio::time::timeout(READY_TIMEOUT, database),
        tokio::time::timeout(READY_TIMEOUT, storage),
    );
    let problem = match (
        database.map_err(too_late).flatten(),
        storage.map_err(too_late).flatten(),
    ) {
        (Ok(_), Ok(())) => match app.readiness.reason() {
            None => return reply::json(&json!({ "status": "ready" })),
            // The reason was logged when it began.
            Some((cause, reason)) => {
                let body =
                    json!({ "status": "unavailable", "part": cause.name(), "reason": reason });
                return (StatusCode::SERVICE_UNAVAILABLE, reply::json(&body)).into_response();
            }
        },
        (Err(e), _) => ("database", e),
        (_, Err(e)) => ("storage", e),
    };
    tracing::warn!(
        part = problem.0,
        error = problem.1,
        "the readiness check failed"
    );
    let body = json!({ "status": "unavailable", "part": problem.0 });
    (StatusCode::SERVICE_UNAVAILABLE, reply::json(&body)).into_response()
}

/// Headers that proxies add: the client is elsewhere, although the connection is from this machine.
pub const FORWARDING_HEADERS: [&str; 6] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// `GET /metrics`: without a key on a loopback address if the request is not through a proxy, else with the admin key (docs/operating.md).
pub async fn metrics(app: State<Arc<App>>, headers: HeaderMap) -> Result<Response, ErrorResponse> {
    let is_forwarded = FORWARDING_HEADERS
        .iter()
        .any(|name| headers.contains_key(*name));
    let is_public = app.metrics_public && !is_forwarded;
    if !is_public && !is_admin(&app, &headers) {
        return Err(needs_admin_key());
    }
    Ok(own_metrics(app, headers).await)
}

/// `GET /metrics` of the admin listener: always with the admin key.
pub async fn keyed_metrics(
    app: State<Arc<App>>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    if !is_admin(&app, &headers) {
        return Err(needs_admin_key());
    }
    Ok(own_metrics(app, headers).await)
}

fn needs_admin_key() -> ErrorResponse {
    let message = "/metrics needs the admin key: see `tollgate admin-key`";
    ApiError::new(ErrorKind::Authentication, message).into()
}

/// The metrics as text. Also `GET /metrics` of the separate listener, which only the operator can reach: it requires no key.
pub async fn own_metrics(app: State<Arc<App>>, headers: HeaderMap) -> Response {
    update_metrics(&app).await;
    let format = TextFormat::accepted_by(&headers);
    let text = app.metrics.render(app.store.stats(), format);
    let headers = [
        (header::CONTENT_TYPE, format.content_type()),
        (header::VARY, HeaderValue::from_static("accept")),
    ];
    (headers, text).into_response()
}

/// Updates the metrics that are read from the database.
pub async fn update_metrics(app: &App) {
    match app.store.totals().await {
        Ok(totals) => app.metrics.set_totals(&totals, app.clock.now()),
        Err(e) => tracing::warn!(error = %e, "cannot read the totals for the metrics"),
    }
    match app.store.reconciliations().await {
        Ok(reconciled) => app.metrics.set_drift(&reconciled),
        Err(e) => tracing::warn!(error = %e, "cannot read the last reconciliation for the metrics"),
    }
}

fn is_admin(app: &App, headers: &HeaderMap) -> bool {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .and_then(|v| v.to_str().ok());
    bearer
        .and_then(|v| v.strip_prefix("Bearer "))
        .is_some_and(|key| app.admin_key.matches(key))
}
