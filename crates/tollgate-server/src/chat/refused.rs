//! What a chat client is told when something is wrong: one error, in the words of its format.

use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use tollgate_chat::{Bad, WireError};
use tollgate_core::{ApiError, ErrorKind};
use tollgate_upstream::{ChatError, ChatErrorKind};

use super::mount::Mount;

/// Tells the SDKs of OpenAI and Anthropic that they need not ask again: the gateway has tried every channel.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A request that ends without a reply.
#[derive(Debug, Clone)]
pub struct Refused {
    error: ApiError,
    /// The field at fault.
    param: Option<String>,
    /// A machine-readable name beside the type.
    code: Option<String>,
    /// No channel can serve the model now.
    no_channel: bool,
}

impl From<ApiError> for Refused {
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
        }
    }
}

impl From<Bad> for Refused {
    fn from(bad: Bad) -> Self {
        let param = (!bad.field.is_empty()).then_some(bad.field);
        Self {
            param,
            ..Self::from(ApiError::invalid(bad.message))
        }
    }
}

impl Refused {
    /// The model is not in the catalogue, or is another endpoint's.
    pub fn model(error: ApiError) -> Self {
        let code = (error.kind == ErrorKind::NotFound).then(|| "model_not_found".to_owned());
        Self {
            param: Some("model".to_owned()),
            code,
            ..Self::from(error)
        }
    }

    /// No channel can serve `model` now.
    pub fn no_channel(model: &str) -> Self {
        let message = format!("no channel can serve {model} at the moment: try again later");
        let error = ApiError::new(ErrorKind::BadGateway, message);
        Self {
            no_channel: true,
            ..Self::from(error)
        }
    }

    /// Every channel that serves `model` is at its limit of calls.
    pub fn full(model: &str) -> Self {
        let message = format!("every channel that serves {model} is busy: try again shortly");
        let error = ApiError {
            retry_after: Some(1),
            ..ApiError::new(ErrorKind::Unavailable, message)
        };
        Self::from(error)
    }

    /// Every channel that serves `model` was asked by its upstream to wait.
    pub fn resting(model: &str, wait: Duration) -> Self {
        let message = format!("the providers of {model} have had too many requests");
        let seconds = u32::try_from(wait.as_secs())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        let error = ApiError {
            retry_after: Some(seconds),
            ..ApiError::new(ErrorKind::RateLimit, message)
        };
        Self::from(error)
    }

    /// Every channel was tried; `last` is what the last one said.
    pub fn upstream(last: ChatError) -> Self {
        let own = |words: &str| (ErrorKind::BadGateway, words.to_owned());
        let (kind, message) = match last.kind {
            ChatErrorKind::Rejected => (ErrorKind::InvalidRequest, last.message),
            ChatErrorKind::RateLimited => (ErrorKind::RateLimit, last.message),
            ChatErrorKind::TimedOut => (
                ErrorKind::GatewayTimeout,
                "the upstream did not answer in time; nothing was charged".to_owned(),
            ),
            // The provider spoke to the gateway, not to this client: its words about keys and bills would mislead.
            ChatErrorKind::KeyRefused => own("the provider refused the gateway's own key"),
            ChatErrorKind::QuotaExhausted => own("the gateway's quota at the provider is used up"),
            ChatErrorKind::ModelMissing => own("the provider does not have this model"),
            ChatErrorKind::Connect | ChatErrorKind::Unavailable => {
                (ErrorKind::BadGateway, last.message)
            }
        };
        let seconds = last
            .retry_after
            .map(|wait| u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).max(1));
        let error = ApiError {
            retry_after: seconds.filter(|_| kind == ErrorKind::RateLimit),
            ..ApiError::new(kind, message)
        };
        let code = match kind {
            ErrorKind::RateLimit => Some("rate_limit_exceeded".to_owned()),
            ErrorKind::InvalidRequest => last.code,
            _ => None,
        };
        Self {
            code,
            ..Self::from(error)
        }
    }

    /// As it goes over the wire at `mount`.
    pub fn wire(&self, mount: Mount) -> WireError {
        let status = if self.no_channel {
            mount.no_channel
        } else {
            self.error.kind.status()
        };
        WireError {
            status,
            message: self.error.message.clone(),
            param: self.param.clone(),
            code: self.code.clone(),
            bare: mount.bare,
        }
    }

    /// The answer at `mount`.
    pub fn into_response(self, mount: Mount) -> Response {
        let wire = self.wire(mount);
        let status = StatusCode::from_u16(wire.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let json = [(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        )];
        let mut response = (status, json, mount.format.write_error(&wire)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.error.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        match self.error.kind {
            ErrorKind::Authentication => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            ErrorKind::BadGateway | ErrorKind::GatewayTimeout => {
                headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
            }
            _ => {}
        }
        response
    }
}
