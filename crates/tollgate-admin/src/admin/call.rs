//! One request to an endpoint of the admin API, after its caller and scope were checked.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Map, Value};
use tollgate_core::Millis;
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::state::App;
use tollgate_server::tasks::idempotency;
use tollgate_store::{AdminIdempotency, AdminRequest, AdminResult};

use super::authenticate::{Actor, ActorKind};
use super::fields::{self, Fields};
use super::query::{PAGE_PARAMETERS, Query};
use super::reply::Reply;

/// The header with the reason of a write, for requests without a body.
const REASON_HEADER: &str = "x-tollgate-reason";
/// A version number that no object has.
const NO_VERSION: i64 = -1;

/// A request to the admin API or the portal's API. Handlers check in this order: the object, then body and query, then the version, then the object's
/// state.
pub struct Call {
    /// The running gateway.
    pub app: Arc<App>,
    /// The caller; `None` if the endpoint is public (sign-in).
    pub actor: Option<Actor>,
    /// The path of the request.
    pub path: String,
    /// The values of the path's parameters.
    pub ids: Vec<String>,
    /// The query parameters of the endpoint.
    pub(super) parameters: &'static [&'static str],
    /// Whether the endpoint is a list, which also has `limit` and `cursor`.
    pub(super) is_list: bool,
    /// The query parameters, not checked yet.
    pub query: Query,
    /// The headers of the request.
    pub headers: HeaderMap,
    /// The client's address; behind trusted proxies, the one that they report.
    pub address: IpAddr,
    /// The address of the other end of the connection.
    pub peer: IpAddr,
    /// The request's id.
    pub request_id: String,
    /// When the request was received.
    pub now: Millis,
    pub(super) method: Method,
    pub(super) body: Result<Bytes, AdminError>,
}

impl Call {
    /// Returns the caller.
    ///
    /// # Errors
    /// 401 if there is none.
    pub fn actor(&self) -> Result<&Actor, AdminError> {
        self.actor.as_ref().ok_or_else(AdminError::unauthorized)
    }

    /// The first parameter of the path; empty if the path has none.
    pub fn id(&self) -> &str {
        self.ids.first().map_or("", String::as_str)
    }

    /// Checks that the query has no parameters other than those of the endpoint.
    ///
    /// # Errors
    /// 400 that names the parameter.
    pub fn check_query(&self) -> Result<(), AdminError> {
        match self.is_list {
            true => self
                .query
                .allow(&[self.parameters, &PAGE_PARAMETERS].concat()),
            false => self.query.allow(self.parameters),
        }
    }

    /// The body as JSON, after a check of the query. An empty body counts as `{}`.
    ///
    /// # Errors
    /// 415 for another media type, 413, 400.
    pub fn json_body(&self) -> Result<Value, AdminError> {
        self.check_query()?;
        let body = self.body.clone()?;
        if body.is_empty() {
            return Ok(serde_json::json!({}));
        }
        let content_type = self.headers.get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let media_type = content_type.unwrap_or("").split(';').next().unwrap_or("");
        let media_type = media_type.trim().to_ascii_lowercase();
        let is_merge_patch =
            self.method == Method::PATCH && media_type == "application/merge-patch+json";
        if media_type != "application/json" && !is_merge_patch {
            return Err(AdminError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "the body must be `application/json`",
            ));
        }
        serde_json::from_slice(&body).map_err(|e| {
            let message = format!("the body is not JSON: {e}");
            AdminError::new(StatusCode::BAD_REQUEST, "invalid", message)
        })
    }

    /// The version in `If-Match`, which the write compares; a malformed header counts as a version that no object has.
    ///
    /// # Errors
    /// 428 if there is no such header, or it is `*`.
    pub fn if_match(&self) -> Result<i64, AdminError> {
        let value = self.headers.get(header::IF_MATCH);
        let value = value.map(|value| value.to_str().unwrap_or_default().trim());
        match value {
            None | Some("*") => Err(AdminError::new(
                StatusCode::PRECONDITION_REQUIRED,
                "precondition_required",
                "send the object's `etag` as `If-Match`",
            )
            .at("If-Match")),
            Some(tag) => {
                let version = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
                let version = version.filter(|v| v.bytes().all(|b| b.is_ascii_digit()));
                Ok(version.and_then(|v| v.parse().ok()).unwrap_or(NO_VERSION))
            }
        }
    }

    /// The caller, reason and idempotency key of a write. `body` is the parsed body; `reason` is the one in the body; without it, that of the header
    /// is used.
    ///
    /// # Errors
    /// 400 for an invalid `Idempotency-Key` or reason; 401 without a caller.
    fn write_request(
        &self,
        body: &Value,
        reason: Option<String>,
    ) -> Result<AdminRequest, AdminError> {
        let actor = self.actor()?;
        let reason = match (reason, self.headers.get(REASON_HEADER)) {
            (None, Some(value)) => {
                let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
                Some(fields::parse_text(REASON_HEADER, &Value::String(text))?)
            }
            (reason, _) => reason,
        };
        let key = match self.method {
            Method::POST => idempotency::parse_key(&self.headers)
                .map_err(|e| AdminError::invalid("Idempotency-Key", e.message))?,
            _ => None,
        };
        Ok(AdminRequest {
            actor: actor.name.clone(),
            token_id: match &actor.kind {
                ActorKind::Token(id) => Some(id.clone()),
                _ => None,
            },
            address: Some(self.address.to_string()),
            request_id: Some(self.request_id.clone()),
            reason,
            idempotency: key.map(|key| AdminIdempotency {
                caller: actor.id().to_owned(),
                path: self.path.clone(),
                key,
                fingerprint: idempotency::fingerprint(&self.path, body),
            }),
            now: self.now,
        })
    }

    /// As `write_request`, for a write that moves money.
    ///
    /// # Errors
    /// 400 also if there is no `Idempotency-Key`.
    pub fn money_request(
        &self,
        body: &Value,
        reason: Option<String>,
    ) -> Result<AdminRequest, AdminError> {
        let request = self.write_request(body, reason)?;
        if request.idempotency.is_none() {
            let message = "is required where money moves, so that the request can be repeated";
            return Err(AdminError::invalid("Idempotency-Key", message));
        }
        Ok(request)
    }

    /// The members of the body, for checks that come before the body itself is checked. Empty if the body is no object.
    pub fn body_members(&self) -> Map<String, Value> {
        let body = self.body.as_deref().unwrap_or_default();
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// The members of the body.
    ///
    /// # Errors
    /// As [`Call::json_body`]; 400 if the body is no object.
    pub fn fields(&self) -> Result<Fields, AdminError> {
        Fields::new(self.json_body()?)
    }

    /// Finishes a write's body after its members were taken: takes the reason, rejects members that are left, and returns the caller, reason and
    /// idempotency key. `read_only` are known members that cannot be written.
    ///
    /// # Errors
    /// 400.
    pub fn write(
        &self,
        mut fields: Fields,
        read_only: &[&str],
    ) -> Result<AdminRequest, AdminError> {
        let reason = fields.optional("reason", fields::parse_text)?;
        let body = fields.finish(read_only)?;
        self.write_request(&body, reason)
    }

    /// As [`Call::write`], for an action whose body may contain nothing but a reason.
    ///
    /// # Errors
    /// 400, 413, 415.
    pub fn action(&self) -> Result<AdminRequest, AdminError> {
        self.write(self.fields()?, &[])
    }
}

/// The reply to a write of an object; `what` is its kind, such as `user`.
///
/// # Errors
/// The error for the rejection, or the database's.
pub fn written(result: AdminResult, what: &str) -> Result<Reply, AdminError> {
    match result? {
        Ok(reply) => Ok(Reply::written(reply)),
        Err(rejection) => Err(AdminError::from_rejection(rejection, what)),
    }
}
