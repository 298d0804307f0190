//! Successful replies of the admin API.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;
use tollgate_server::http::reply::{self, etag};
use tollgate_store::AdminReply;

/// The header that marks the stored reply to an earlier request with the same idempotency key.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A reply.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    body: ReplyBody,
    version: Option<i64>,
    is_replay: bool,
    headers: Vec<(HeaderName, HeaderValue)>,
}

#[derive(Debug)]
enum ReplyBody {
    Json(Value),
    Stream(&'static str, Body),
}

impl Reply {
    /// 200 with an object or a list.
    pub fn json(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: ReplyBody::Json(body),
            version: None,
            is_replay: false,
            headers: Vec::new(),
        }
    }

    /// 200 with an object that has a version.
    pub fn versioned(body: Value, version: i64) -> Self {
        Self {
            version: Some(version),
            ..Self::json(body)
        }
    }

    /// 200 with a body of another media type.
    pub fn stream(content_type: &'static str, body: Body) -> Self {
        Self {
            body: ReplyBody::Stream(content_type, body),
            ..Self::json(Value::Null)
        }
    }

    /// The reply to a write. An object without a body is null.
    pub fn written(written: AdminReply) -> Self {
        Self {
            status: StatusCode::from_u16(written.status).unwrap_or(StatusCode::OK),
            body: ReplyBody::Json(written.body),
            version: written.version,
            is_replay: written.is_replay,
            headers: Vec::new(),
        }
    }

    /// Adds a secret, which is shown only once: in replies to repeated requests the member is null.
    #[must_use]
    pub fn with_secret(mut self, member: &str, secret: &str) -> Self {
        if let ReplyBody::Json(body) = &mut self.body {
            body[member] = match self.is_replay {
                true => Value::Null,
                false => Value::from(secret),
            };
        }
        self
    }

    /// Adds a member to an object or a list.
    #[must_use]
    pub fn with_member(mut self, member: &str, value: Value) -> Self {
        if let ReplyBody::Json(body) = &mut self.body {
            body[member] = value;
        }
        self
    }

    /// Replaces the status.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The response.
    pub fn into_response(self) -> Response {
        let mut response = match self.body {
            ReplyBody::Json(_) if self.status == StatusCode::NO_CONTENT => {
                self.status.into_response()
            }
            ReplyBody::Json(body) => (self.status, reply::json(&body)).into_response(),
            ReplyBody::Stream(content_type, body) => {
                (self.status, [(header::CONTENT_TYPE, content_type)], body).into_response()
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(version) = self.version {
            headers.insert(header::ETAG, etag(version));
        }
        if self.is_replay {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        headers.extend(self.headers);
        response
    }
}
