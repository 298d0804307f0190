//! `/openapi.json` and `/docs`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};

use crate::http::reply;
use crate::state::App;

const DOCS: &str = include_str!("../pages/docs.html");
/// The page loads nothing from other servers.
const POLICY: &str =
    "default-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'";

/// `GET /openapi.json`.
pub async fn openapi(app: State<Arc<App>>) -> Response {
    let mut response = reply::json_text(app.openapi.clone());
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
    response
}

/// `GET /docs`.
pub async fn docs() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, DOCS).into_response()
}
