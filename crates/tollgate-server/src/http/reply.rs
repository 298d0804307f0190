//! Answers: JSON bodies, and each endpoint's own error envelope (SPEC.md › Errors).

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, Uri, header};
use serde_json::{Value, json};
use tollgate_core::{ApiError, ErrorKind};

use crate::chat::mount;
use crate::chat::refused::Refused;

/// 200 with a JSON body.
pub fn json(value: &Value) -> Response {
    json_text(value.to_string())
}

/// 200 with a body that is JSON text already.
pub fn json_text(text: impl Into<Bytes>) -> Response {
    (
        [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )],
        text.into(),
    )
        .into_response()
}

/// An error on its way out, in one of the envelopes.
#[derive(Debug)]
pub struct Failure {
    error: ApiError,
    envelope: Envelope,
}

#[derive(Debug, Clone, Copy)]
enum Envelope {
    /// `{error: {code, message, type}}`.
    Standard,
    /// `{error: {message, type}}`, with `code` only for 429.
    Upload,
    /// `{success: false, message}`.
    Balance,
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self {
            error,
            envelope: Envelope::Standard,
        }
    }
}

impl Failure {
    /// In the envelope of the upload endpoint.
    pub fn upload(error: ApiError) -> Self {
        Self {
            error,
            envelope: Envelope::Upload,
        }
    }

    /// In the envelope of the balance endpoints.
    pub fn balance(error: ApiError) -> Self {
        Self {
            error,
            envelope: Envelope::Balance,
        }
    }

    /// The same error in the upload endpoint's envelope.
    #[must_use]
    pub fn for_upload(self) -> Self {
        Self::upload(self.error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let ApiError {
            kind,
            message,
            retry_after,
        } = self.error;
        let status = kind.status();
        let body = match self.envelope {
            Envelope::Standard => {
                json!({ "error": { "code": status, "message": message, "type": kind.type_name() } })
            }
            Envelope::Upload if kind == ErrorKind::RateLimit => {
                json!({ "error": { "code": status, "message": message, "type": kind.type_name() } })
            }
            Envelope::Upload => {
                json!({ "error": { "message": message, "type": kind.type_name() } })
            }
            Envelope::Balance => json!({ "success": false, "message": message }),
        };
        let mut response = json(&body);
        *response.status_mut() =
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if kind == ErrorKind::Authentication {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// 404 for a path that does not exist, in the words of the API that the path is of.
pub async fn unknown_path(uri: Uri) -> Response {
    let doubled = uri.path().contains("/v1/v1") || uri.path().contains("/v1beta/v1");
    let message = if doubled {
        "there is no such path: the base URL must not end in the version that the client adds by itself"
    } else {
        "there is no such path: see GET /docs for what there is"
    };
    in_words_of(&uri, ApiError::not_found(message))
}

/// 405; the router adds `allow`.
pub async fn wrong_method(uri: Uri) -> Response {
    let message = "this path does not take that method: see the `allow` header";
    in_words_of(&uri, ApiError::new(ErrorKind::MethodNotAllowed, message))
}

fn in_words_of(uri: &Uri, error: ApiError) -> Response {
    match mount::of_path(uri.path()) {
        Some(mount) => Refused::from(error).into_response(mount),
        None => Failure::from(error).into_response(),
    }
}
