//! `POST /v1/uploads/images`: stores an image and returns its link.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use serde_json::json;
use tollgate_core::{ApiError, ErrorKind, Millis};
use tollgate_storage::files::Visibility;
use tollgate_store::{NewUpload, UploadLimits, UploadRejection};

use crate::auth::caller::Caller;
use crate::http::body::drain_unread;
use crate::http::errors;
use crate::http::reply::{self, ErrorResponse};
use crate::image_upload::{Upload, store_upload};
use crate::state::App;

/// `POST /v1/uploads/images`. Every error is in this endpoint's own envelope.
pub async fn image(
    app: State<Arc<App>>,
    caller: Result<Caller, ErrorResponse>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    // Kept until the end, so that the request counts as in flight.
    let caller = match caller {
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
    let counted = count_upload(&app, &caller.key.user_id, &upload, expires_at * 1000).await;
    if let Err(error) = counted {
        app.files.delete(Visibility::Public, &upload.name).await;
        return Err(ErrorResponse::upload(error));
    }
    app.metrics.uploaded(upload.bytes);
    Ok(reply::json(&json!({
        "url": app.files.url(&upload.name),
        "filename": upload.filename,
        "content_type": upload.format.media_type(),
        "bytes": upload.bytes,
        "created_at": now / 1000,
    })))
}

/// Counts an upload against the limits of its user and of all users. `expires_at` is in Unix milliseconds.
///
/// # Errors
/// 429 if a limit is reached; the errors of the database.
async fn count_upload(
    app: &App,
    user_id: &str,
    upload: &Upload,
    expires_at: Millis,
) -> Result<(), ApiError> {
    const MB: u64 = 1_048_576;
    let new = NewUpload {
        user_id: user_id.to_owned(),
        bytes: upload.bytes,
        expires_at,
    };
    let limits = UploadLimits {
        of_user: Some(app.config.fairness.upload_mb * MB),
        of_all: app.config.limits.upload_mb.map(|mb| mb * MB),
    };
    let counted = app.store.count_upload(new, limits, app.clock.now()).await;
    counted.map_err(errors::from_store)?.map_err(|rejection| {
        let (whose, limit) = match rejection {
            UploadRejection::OfUser(limit) => ("your uploads", limit),
            UploadRejection::OfAll(limit) => ("all uploads", limit),
        };
        let message = format!(
            "{whose} may have {} MB together until they expire: try again when earlier ones have expired",
            limit / MB
        );
        ApiError {
            retry_after: Some(3600),
            ..ApiError::new(ErrorKind::RateLimit, message)
        }
    })
}
