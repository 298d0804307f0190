//! Errors of the admin API: `{"error": {"code", "message", "field", "request_id"}}`.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tollgate_config::SettingError;
use tollgate_core::{ApiError, ErrorKind};
use tollgate_store::{AdminRejection, StoreError};

use crate::http::reply;

/// Whether errors of the path are in the envelope of the admin API.
pub fn is_admin_path(path: &str) -> bool {
    path == "/admin" || path.starts_with("/admin/")
}

/// An error of the admin API.
#[derive(Debug, Clone, PartialEq)]
pub struct AdminError {
    status: StatusCode,
    code: &'static str,
    message: String,
    field: Option<String>,
    /// The object in its current state and its version, for 412.
    current: Option<Box<(Value, i64)>>,
    /// The `retry-after`, in seconds.
    retry_after: Option<u32>,
}

impl AdminError {
    /// An error with this status and code.
    #[cold]
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            field: None,
            current: None,
            retry_after: None,
        }
    }

    /// 400: a member, query parameter or header is invalid.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message).at(field)
    }

    /// An error with a status of the client API, and the code that belongs to this status.
    pub fn with_status(status: u16, message: impl Into<String>) -> Self {
        let code = match status {
            404 => "not_found",
            413 => "too_large",
            500 => "internal",
            400..500 => "invalid",
            _ => "unavailable",
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, code, message)
    }

    /// 404: there is no object with that id.
    pub fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("there is no such {what}"),
        )
    }

    /// 403 with a specific code.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// 409: the state of the object does not allow the request.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// 401: the request has neither an admin token nor a session.
    pub fn unauthorized() -> Self {
        let message = "an admin token or a session is required: send `Authorization: Bearer adm_…`";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// 429: too many sign-ins have failed.
    pub fn throttled(retry_after_s: u32) -> Self {
        let message = format!("too many failed sign-ins: try again in {retry_after_s} s");
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "throttled", message);
        Self {
            retry_after: Some(retry_after_s),
            ..error
        }
    }

    /// The same error with the field that it concerns.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Converts an error of a store method. The details are logged.
    pub fn from_store(error: StoreError) -> Self {
        let (message, retry_after) = match error {
            StoreError::Unavailable(why) | StoreError::DiskFull(why) => {
                tracing::error!(error = %why, "the database is unavailable");
                (
                    "the gateway's database is unavailable: try again shortly",
                    5,
                )
            }
            StoreError::QueryTimeout => {
                let message =
                    "the query took longer than 5 s: narrow it by a filter or a shorter time";
                return Self {
                    retry_after: Some(5),
                    ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "query_timeout", message)
                };
            }
            StoreError::Overloaded => ("the gateway is overloaded: try again shortly", 1),
            StoreError::Setup(what) | StoreError::Invalid(what) | StoreError::Broken(what) => {
                tracing::error!(error = %what, "a store operation failed");
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                return Self::new(status, "internal", "an internal error: see the log");
            }
        };
        Self {
            retry_after: Some(retry_after),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
        }
    }

    /// Converts the rejection of a write. `what` is the kind of object, such as `user`.
    pub fn from_rejection(rejection: AdminRejection, what: &str) -> Self {
        match rejection {
            AdminRejection::NotFound => Self::not_found(what),
            AdminRejection::Stale { current, version } => {
                let message = format!("the {what} was changed meanwhile: its version is {version}");
                let error = Self::new(StatusCode::PRECONDITION_FAILED, "stale", message);
                Self {
                    current: Some(Box::new((current, version))),
                    ..error.at("If-Match")
                }
            }
            AdminRejection::IdempotencyKeyReused => {
                let message = "this `Idempotency-Key` was used with another body: use a new key for a new request";
                Self::conflict("idempotency_key_reused", message).at("Idempotency-Key")
            }
            AdminRejection::Invalid { field, message } => Self::invalid(field, message),
            AdminRejection::Conflict {
                code,
                field,
                message,
            } => Self {
                field: field.map(str::to_owned),
                ..Self::conflict(code, message)
            },
        }
    }

    /// Converts the error for the envelope of the client API.
    pub fn into_api_error(self) -> ApiError {
        let kind = match self.status.as_u16() {
            401 => ErrorKind::Authentication,
            403 => ErrorKind::Permission,
            404 => ErrorKind::NotFound,
            409 => ErrorKind::Conflict,
            413 => ErrorKind::TooLarge,
            429 => ErrorKind::RateLimit,
            503 => ErrorKind::Unavailable,
            500..600 => ErrorKind::Internal,
            _ => ErrorKind::InvalidRequest,
        };
        let message = match self.field {
            Some(field) => format!("`{field}`: {}", self.message),
            None => self.message,
        };
        ApiError {
            retry_after: self.retry_after,
            ..ApiError::new(kind, message)
        }
    }

    /// The response to the request with that id.
    pub fn into_response(self, request_id: &str) -> Response {
        let mut body = json!({ "error": {
            "code": self.code,
            "message": self.message,
            "field": self.field,
            "request_id": request_id,
        } });
        let version = self.current.map(|current| {
            let (current, version) = *current;
            body["current"] = current;
            version
        });
        let mut response = (self.status, reply::json(&body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(version) = version {
            headers.insert(header::ETAG, super::reply::etag(version));
        }
        if self.code == "unauthorized" {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<StoreError> for AdminError {
    fn from(error: StoreError) -> Self {
        Self::from_store(error)
    }
}

impl From<SettingError> for AdminError {
    fn from(error: SettingError) -> Self {
        let status = http::StatusCode::BAD_REQUEST;
        match error.path.as_str() {
            "" => Self::new(status, "invalid", error.message),
            path => Self::invalid(path, error.message),
        }
    }
}
