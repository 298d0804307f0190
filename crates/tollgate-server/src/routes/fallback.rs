//! Responses for unknown paths and wrong methods, in the error format of the API that the path belongs to.

use axum::Extension;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, Uri};
use tollgate_core::{ApiError, ErrorKind};

use crate::chat::endpoint;
use crate::chat::error::ChatErrorResponse;
use crate::http::admin_error::{AdminError, is_admin_path};
use crate::http::reply::ErrorResponse;
use crate::http::request_id::RequestId;

/// 404 for a path that does not exist.
pub async fn unknown_path(uri: Uri, request_id: Extension<RequestId>) -> Response {
    if is_admin_path(uri.path()) {
        return AdminError::not_found("path").into_response(request_id.as_str());
    }
    let doubled = uri.path().contains("/v1/v1") || uri.path().contains("/v1beta/v1");
    let message = if doubled {
        "there is no such path: the base URL must not end in the version that the client adds by itself"
    } else {
        "there is no such path: see GET /docs/api for what there is"
    };
    error_response(&uri, ApiError::not_found(message))
}

/// 405; the router adds `allow`.
pub async fn method_not_allowed(uri: Uri, request_id: Extension<RequestId>) -> Response {
    let message = "this path does not support that method: see the `allow` header";
    if is_admin_path(uri.path()) {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let error = AdminError::new(status, "method_not_allowed", message);
        return error.into_response(request_id.as_str());
    }
    error_response(&uri, ApiError::new(ErrorKind::MethodNotAllowed, message))
}

fn error_response(uri: &Uri, error: ApiError) -> Response {
    match endpoint::by_path(uri.path()) {
        Some(endpoint) => ChatErrorResponse::from(error).into_response(endpoint),
        None => ErrorResponse::from(error).into_response(),
    }
}
