//! `POST /v1/uploads/images`: stores an image and returns its link.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use serde_json::json;

use crate::auth::caller::Caller;
use crate::http::body::drain_unread;
use crate::http::reply::{self, ErrorResponse};
use crate::state::App;
use crate::storage::uploads::store_upload;

/// `POST /v1/uploads/images`. Every error is in this endpoint's own envelope.
pub async fn image(
    app: State<Arc<App>>,
    caller: Result<Caller, ErrorResponse>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    // Held to the end: the request counts as in flight.
    let _caller = match caller {
        Ok(caller) => caller,
        Err(error) => {
            drain_unread(&headers, body);
            return Err(error.into_upload());
        }
    };
    let now = app.clock.now();
    let expires_at = (now + app.config.expiry.long_ms()) / 1000;
    let upload = store_upload(&app.files, expires_at, &headers, body)
        .await
        .map_err(ErrorResponse::upload)?;
    app.metrics.uploaded(upload.bytes);
    Ok(reply::json(&json!({
        "url": app.files.url(&upload.name),
        "filename": upload.filename,
        "content_type": upload.format.media_type(),
        "bytes": upload.bytes,
        "created_at": now / 1000,
    })))
}
