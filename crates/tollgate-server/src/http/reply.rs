//! Responses: JSON bodies, and the error envelopes of endpoints that are not chat.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tollgate_core::{ApiError, ErrorKind};

/// 200 with a JSON body.
pub fn json(value: &Value) -> Response {
    json_text(value.to_string())
}

/// 200 with a body that is JSON text.
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

/// An error response in one of the envelopes.
#[derive(Debug)]
pub struct ErrorResponse {
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

impl From<ApiError> for ErrorResponse {
    #[cold]
    fn from(error: ApiError) -> Self {
        Self {
            error,
            envelope: Envelope::Standard,
        }
    }
}

impl ErrorResponse {
    /// The error in the envelope of the upload endpoint.
    pub fn upload(error: ApiError) -> Self {
        Self {
            error,
            envelope: Envelope::Upload,
        }
    }

    /// The error in the envelope of the balance endpoints.
    pub fn balance(error: ApiError) -> Self {
        Self {
            error,
            envelope: Envelope::Balance,
        }
    }

    /// The same error in the upload endpoint's envelope.
    #[must_use]
    pub fn into_upload(self) -> Self {
        Self::upload(self.error)
    }
}

impl IntoResponse for ErrorResponse {
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

/// The entity tag of a version.
pub fn etag(version: i64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
}
