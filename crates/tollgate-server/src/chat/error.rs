//! Errors of chat requests, written in the client's format.

use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tollgate_chat::{ErrorBody, InvalidRequest};
use tollgate_core::{ApiError, ErrorKind};
use tollgate_upstream::{ProviderError, UpstreamErrorKind};

use crate::chat::endpoint::Endpoint;

/// Set so that the SDKs of OpenAI and Anthropic do not retry: the gateway has already tried every channel.
const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The error response of a chat request.
#[derive(Debug, Clone)]
pub struct ChatErrorResponse {
    error: ApiError,
    /// The invalid field.
    param: Option<String>,
    /// The machine-readable `code` beside the type.
    code: Option<String>,
    /// Whether no channel can serve the model now: the endpoint determines the status.
    no_channel: bool,
    /// `error.details`, which are sent only to clients of the format in which they are written.
    details: Option<Box<Value>>,
}

impl From<ApiError> for ChatErrorResponse {
    #[cold]
    fn from(error: ApiError) -> Self {
        let code = match error.kind {
            ErrorKind::Authentication => Some("invalid_api_key"),
            ErrorKind::PaymentRequired => Some("insufficient_quota"),
            ErrorKind::RateLimit => Some("rate_limit_exceeded"),
            _ => None,
        };
        Self {
            error,
            param: None,
            code: code.map(str::to_owned),
            no_channel: false,
            details: None,
        }
    }
}

impl From<InvalidRequest> for ChatErrorResponse {
    #[cold]
    fn from(invalid: InvalidRequest) -> Self {
        let param = (!invalid.field.is_empty()).then_some(invalid.field);
        Self {
            param,
            ..Self::from(ApiError::invalid(invalid.message))
        }
    }
}

impl ChatErrorResponse {
    /// The error for a model that is not in the catalogue, or belongs to another endpoint.
    pub fn invalid_model(error: ApiError) -> Self {
        let code = (error.kind == ErrorKind::NotFound).then(|| "model_not_found".to_owned());
        Self {
            param: Some("model".to_owned()),
            code,
            ..Self::from(error)
        }
    }

    /// The error if no channel can serve `model` now.
    pub fn no_channel(model: &str) -> Self {
        let message = format!("no channel can serve {model} at the moment: try again later");
        let error = ApiError::new(ErrorKind::BadGateway, message);
        Self {
            no_channel: true,
            ..Self::from(error)
        }
    }

    /// The error if every channel that serves `model` is at its `max_concurrency`.
    pub fn all_channels_busy(model: &str) -> Self {
        let message = format!("every channel that serves {model} is busy: try again shortly");
        let error = ApiError {
            retry_after: Some(1),
            ..ApiError::new(ErrorKind::Unavailable, message)
        };
        Self::from(error)
    }

    /// The error if every channel that serves `model` is paused by an operator.
    pub fn all_channels_paused(model: &str) -> Self {
        let message = format!("every channel that serves {model} is paused: try again later");
        let error = ApiError {
            retry_after: Some(10),
            ..ApiError::new(ErrorKind::Unavailable, message)
        };
        Self::from(error)
    }

    /// The error if the upstream of every channel that serves `model` requested a pause, of which `left` remains.
    pub fn rate_limited_upstream(model: &str, left: Duration) -> Self {
        let message = format!("the providers of {model} have had too many requests");
        let seconds = u32::try_from(left.as_secs())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        let error = ApiError {
            retry_after: Some(seconds),
            ..ApiError::new(ErrorKind::RateLimit, message)
        };
        Self::from(error)
    }

    /// The error if the request has a `thread` and no channel of the model stores conversations: the SDKs then send the complete history instead.
    pub fn thread_unsupported() -> Self {
        let message =
            "`thread` is not available for this model: send the complete history without it";
        Self {
            param: Some("thread".to_owned()),
            details: Some(Box::new(
                json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]}),
            )),
            ..Self::from(ApiError::invalid(message))
        }
    }

    /// The error if the thread that the request continues is not known, or cannot be reached now: the SDKs then begin a new one.
    pub fn thread_not_found() -> Self {
        let message = "`thread.previous_message_id` names no thread that can be continued: send the complete history";
        Self {
            param: Some("thread.previous_message_id".to_owned()),
            details: Some(Box::new(json!({"error_code": "thread_not_found"}))),
            ..Self::from(ApiError::not_found(message))
        }
    }

    /// The error if the stored response `id` is another user's: it is the error of OpenAI for an id that does not exist.
    pub fn previous_response_not_found(id: &str) -> Self {
        Self {
            param: Some("previous_response_id".to_owned()),
            ..Self::from(ApiError::not_found(format!(
                "`previous_response_id`: no response with id '{id}' is stored"
            )))
        }
    }

    /// The error if every channel was tried; `last` is the error of the last one.
    pub fn from_upstream(last: ProviderError) -> Self {
        let message = last.client_message().into_owned();
        let (kind, message) = match last.kind {
            UpstreamErrorKind::Rejected => (ErrorKind::InvalidRequest, message),
            UpstreamErrorKind::RateLimited => (ErrorKind::RateLimit, message),
            UpstreamErrorKind::TimedOut => (
                ErrorKind::GatewayTimeout,
                "the upstream did not respond in time; nothing was charged".to_owned(),
            ),
            _ => (ErrorKind::BadGateway, message),
        };
        let seconds = last
            .retry_after
            .map(|wait| u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).max(1));
        let error = ApiError {
            retry_after: seconds.filter(|_| kind == ErrorKind::RateLimit),
            ..ApiError::new(kind, message)
        };
        // Names of types and statuses are not codes: the client's format has its own codes.
        let is_code = |code: &String| {
            !code.ends_with("_error")
                && code.contains(|c: char| !c.is_ascii_uppercase() && c != '_')
        };
        let code = last.code.filter(is_code);
        match kind {
            ErrorKind::RateLimit => Self {
                code: code.or_else(|| Some("rate_limit_exceeded".to_owned())),
                ..Self::from(error)
            },
            ErrorKind::InvalidRequest => Self {
                code,
                param: last.param,
                details: last.details,
                ..Self::from(error)
            },
            _ => Self::from(error),
        }
    }

    /// The error in the endpoint's format.
    pub fn to_body(&self, endpoint: Endpoint) -> ErrorBody {
        let status = if self.no_channel {
            endpoint.no_channel_status
        } else {
            self.error.kind.status()
        };
        ErrorBody {
            status,
            message: self.error.message.clone(),
            param: self.param.clone(),
            code: self.code.clone(),
            details: self.details.as_deref().cloned(),
            bare: endpoint.bare,
        }
    }

    /// The HTTP response at `endpoint`.
    pub fn into_response(self, endpoint: Endpoint) -> Response {
        let body = self.to_body(endpoint);
        let status = StatusCode::from_u16(body.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let json = [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )];
        let mut response = (status, json, endpoint.format.write_error(&body)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.error.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        match self.error.kind {
            ErrorKind::Authentication => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            ErrorKind::BadGateway | ErrorKind::GatewayTimeout => {
                headers.insert(X_SHOULD_RETRY, HeaderValue::from_static("false"));
            }
            _ => {}
        }
        response
    }
}
