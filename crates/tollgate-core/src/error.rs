//! What a client is told when something is wrong: one error, shaped by each endpoint's envelope.

use std::fmt;

/// The kinds of SPEC.md › Errors and DECISIONS.md › Status codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// 400 `invalid_request_error`.
    InvalidRequest,
    /// 401 `authentication_error`.
    Authentication,
    /// 402 `payment_required`.
    PaymentRequired,
    /// 403 `permission_error`.
    Permission,
    /// 404 `not_found_error`.
    NotFound,
    /// 405 `invalid_request_error`.
    MethodNotAllowed,
    /// 409 `invalid_request_error`: an idempotency key reused, a finished task cancelled.
    Conflict,
    /// 410 `not_found_error`: a link past its `expires_at`.
    Gone,
    /// 413 `invalid_request_error`.
    TooLarge,
    /// 416 `invalid_request_error`: a range outside the file.
    RangeNotSatisfiable,
    /// 429 `rate_limit_error`.
    RateLimit,
    /// 500 `server_error`.
    Internal,
    /// 502 `bad_gateway`.
    BadGateway,
    /// 504 `bad_gateway`: the upstream did not answer in time.
    GatewayTimeout,
    /// 503 `unavailable`: the server itself sheds load.
    Unavailable,
}

impl ErrorKind {
    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::Authentication => 401,
            Self::PaymentRequired => 402,
            Self::Permission => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::Gone => 410,
            Self::TooLarge => 413,
            Self::RangeNotSatisfiable => 416,
            Self::RateLimit => 429,
            Self::Internal => 500,
            Self::BadGateway => 502,
            Self::GatewayTimeout => 504,
            Self::Unavailable => 503,
        }
    }

    /// The `type` of the standard envelope.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::InvalidRequest
            | Self::MethodNotAllowed
            | Self::Conflict
            | Self::TooLarge
            | Self::RangeNotSatisfiable => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::PaymentRequired => "payment_required",
            Self::Permission => "permission_error",
            Self::NotFound | Self::Gone => "not_found_error",
            Self::RateLimit => "rate_limit_error",
            Self::Internal => "server_error",
            Self::BadGateway | Self::GatewayTimeout => "bad_gateway",
            Self::Unavailable => "unavailable",
        }
    }
}

/// An error for the client. The message names the field, what came and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// Decides status and `type`.
    pub kind: ErrorKind,
    /// One sentence for a person. Holds no secret and no internals.
    pub message: String,
    /// Seconds after which another try makes sense; becomes `retry-after`.
    pub retry_after: Option<u32>,
}

impl ApiError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// 400: the request is wrong, `message` says where and what is allowed.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidRequest, message)
    }

    /// 404 with the same words whether the thing is unknown or somebody else's.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// 500. What went wrong is for the log, not for the client.
    pub fn internal() -> Self {
        Self::new(ErrorKind::Internal, "internal error")
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}
