//! The endpoint `/openapi.json`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, header};
use tollgate_server::http::reply;
use tollgate_server::state::App;

use super::document::document;

/// `GET /openapi.json`.
pub(crate) async fn openapi(app: State<Arc<App>>) -> Response {
    let document = app
        .openapi
        .get_or_init(|| document(&app.public_url).to_string());
    let mut response = reply::json_text(document.clone());
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
    response
}
