//! `/openapi.json`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, header};

use crate::http::reply;
use crate::openapi;
use crate::state::App;

/// `GET /openapi.json`.
pub async fn openapi(app: State<Arc<App>>) -> Response {
    let document = app
        .openapi
        .get_or_init(|| openapi::document(&app.public_url).to_string());
    let mut response = reply::json_text(document.clone());
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
    response
}
